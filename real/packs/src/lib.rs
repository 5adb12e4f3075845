//! Packs on disk: the container of many small files that the strategy `defer-close` writes ([`Writer`]), what is in
//! one ([`Pack`]), real files made of it ([`unpack`]), and those that earlier runs have left ([`Left`]).
//!
//! A real file is there with all its bytes and attributes or not at all ([`make`]), and no other file is ever
//! overwritten. What a pack says is checked before it is believed; which records there are and what they come to is
//! `iolab_pack`'s.

mod directories;
mod left;
mod make;
mod pack;
mod unpack;
mod writer;

pub use directories::{directory_below, split};
pub use left::{Left, left_in, packs_in};
pub use make::{Made, make, scratch_prefix, timestamps, write_all};
pub use pack::{OnDisk, Pack, PackError, begun_ns};
pub use unpack::{Unpacked, unpack};
pub use writer::{Writer, is_name, now_ns};

/// A name of a file, for a line of text.
pub fn shown(name: &[u8]) -> String {
    iolab_vocab::printable(&String::from_utf8_lossy(name)).into_owned()
}
