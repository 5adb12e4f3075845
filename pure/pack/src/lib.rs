//! The container of many small files (`.pack`), which the strategy `defer-close` writes: records that are only
//! added to, each with its length, time and checksum; byte exact in `docs/format/pack.md`.
//!
//! A record says what a program did: bytes of a file came, it was renamed, its name went. What they come to is
//! [`Contents`]: files by name. Any beginning of a pack reads as what was so after its last whole record
//! ([`scan`]); the index at the end only spares the reading ([`index`]). Nothing here is trusted: names that lead
//! out of a directory are refused, a record is as long as its bytes.

mod contents;
mod fields;
mod header;
pub mod index;
mod record;
mod scan;

pub use contents::{Contents, Directory, Misfit, Packed, Piece};
pub use header::{HEADER_BYTES, Header, NODE_BYTES};
pub use record::{
    Attributes, BODY_BYTES_MAX, Head, PATH_BYTES_MAX, RECORD_HEAD_BYTES, Record, Time,
};
pub use scan::{Bytes, End, Scanned, contents_of, scan};

#[cfg(test)]
mod tests;
