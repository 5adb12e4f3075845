//! Packs on disk: the container of many small files that the strategy `defer-close` writes ([`Writer`]), what is in
//! one ([`Pack`]), and real files made of it ([`unpack`]).
//!
//! A real file is there with all its bytes and attributes or not at all ([`make`]), and no other file is ever
//! overwritten. What a pack says is checked before it is believed; which records there are and what they come to is
//! `iolab_pack`'s.

mod make;
mod pack;
mod unpack;
mod writer;

pub use make::{Made, make, scratch_prefix};
pub use pack::{Pack, PackError};
pub use unpack::{Unpacked, unpack};
pub use writer::{Writer, is_name, left_in, now_ns};
