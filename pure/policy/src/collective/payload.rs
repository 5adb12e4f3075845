//! What a message of a collective operation carries, named so that whoever has the bytes can find
//! them: the simulator needs their number only, an MPI library packs and unpacks them.

use super::{Access, FileCall, HEADER_BYTES, Shape};
use iolab_vocab::Extent;
use std::sync::Arc;

/// Wire size of a piece in a list of pieces.
const PIECE_BYTES: u64 = 16;

/// The bytes of one message behind its header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Payload {
    /// None: that it comes is what it says.
    Nothing,
    /// That part of the vector that is broadcast; after a reduction, of its result.
    Vector(Extent),
    /// The contributions of these ranks to a reduction, combined.
    Combined(Ranks),
    /// Blocks of the sender: of these ranks, or for these ranks where each has its own (scatter,
    /// alltoall). Who has a block of every rank of a reduction combines them in the order of ranks.
    Blocks(Ranks),
    /// What the rank `of` wants inside `within` of the file, piece after piece.
    Pieces {
        /// Whose list.
        of: u32,
        /// Which part of it.
        within: Extent,
    },
    /// Where these pieces lie, not their bytes.
    List {
        /// Whose list.
        of: u32,
        /// Which part of it.
        within: Extent,
    },
    /// So many bytes on the wire, header included, that nobody can name: enough for a simulation, and
    /// for nothing else.
    Opaque(u64),
}

/// `count` ranks from `first` on, around the end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ranks {
    /// The first.
    pub first: u32,
    /// How many; at most all.
    pub count: u32,
}

impl Ranks {
    /// One rank.
    pub fn one(rank: u32) -> Ranks {
        Ranks { first: rank, count: 1 }
    }

    /// Each of them, of so many in all.
    pub fn iter(self, rank_count: u32) -> impl Iterator<Item = u32> {
        (0..self.count).map(move |index| (self.first + index) % rank_count)
    }
}

/// What the payload of one call is measured by.
#[derive(Clone, Debug, Default)]
pub struct Sizes {
    /// Of the vector, and of each block.
    pub bytes: u64,
    /// Of the sender's block for each rank, where they differ; else empty.
    pub lengths: Vec<u64>,
    /// What the ranks want of a file, in a collective access.
    pub access: Option<Arc<Access>>,
}

impl Sizes {
    /// Of a command of messages.
    pub fn of(shape: Shape) -> Sizes {
        Sizes { bytes: shape.bytes, ..Sizes::default() }
    }

    /// Of a collective access.
    pub fn of_file(call: &FileCall) -> Sizes {
        Sizes { access: Some(call.access.clone()), ..Sizes::default() }
    }

    /// What a rank wants inside of a part of the file.
    pub fn pieces(&self, of: u32, within: Extent) -> impl Iterator<Item = Extent> + '_ {
        let access = self.access.iter();
        let wanted = access.filter_map(move |access| access.wanted.get(of as usize));
        wanted.flat_map(move |wanted| wanted.within(within))
    }

    /// Pieces and their bytes.
    fn measure(&self, of: u32, within: Extent) -> Option<(u64, u64)> {
        Some(self.access.as_ref()?.wanted.get(of as usize)?.measure(within))
    }
}

impl Payload {
    /// Size on the wire with its header; nothing where it has no meaning in such a call.
    pub fn wire_bytes(self, sizes: &Sizes) -> Option<u64> {
        let bytes = match self {
            Payload::Nothing => 0,
            Payload::Vector(part) => part.length,
            Payload::Combined(_) => sizes.bytes,
            Payload::Blocks(ranks) if sizes.lengths.is_empty() => {
                sizes.bytes * u64::from(ranks.count)
            }
            Payload::Blocks(ranks) => {
                let lengths = &sizes.lengths;
                ranks.iter(lengths.len() as u32).map(|rank| lengths[rank as usize]).sum()
            }
            Payload::Pieces { of, within } => sizes.measure(of, within)?.0,
            Payload::List { of, within } => sizes.measure(of, within)?.1 * PIECE_BYTES,
            Payload::Opaque(bytes) => return Some(bytes),
        };
        Some(bytes + HEADER_BYTES)
    }
}
