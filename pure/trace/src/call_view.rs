//! What a row of MPI says, with types: encoding and decoding of its fields side by side.
//!
//! A row has the same few numbers whatever was called; which of them holds the partner of a message,
//! its request or a root depends on the function (`docs/format/trace.md` has the table). Whoever
//! makes or reads such rows goes by this.

use crate::{Event, Function};
use iolab_vocab::{Extent, Nanos};

/// As the rank of a partner in a row: whoever sends first.
const ANY_RANK: i64 = i32::MAX as i64;

/// The other side of a message, and what both name it by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Partner {
    /// Its rank in the whole program; `None` for whoever sends first.
    pub rank: Option<u32>,
    /// The tag; `None` for any.
    pub tag: Option<u32>,
}

impl Partner {
    /// As a field of a row; −1 for the null process.
    pub const fn to_field(partner: Option<Partner>) -> i64 {
        let Some(Partner { rank, tag }) = partner else { return -1 };
        let rank = match rank {
            Some(rank) => rank as i64,
            None => ANY_RANK,
        };
        let tag = match tag {
            Some(tag) => tag,
            None => u32::MAX,
        };
        rank << 32 | tag as i64
    }

    /// What a field says.
    pub const fn of_field(field: i64) -> Option<Partner> {
        if field < 0 {
            return None;
        }
        let (rank, tag) = (field >> 32, field as u32);
        let rank = if rank == ANY_RANK { None } else { Some(rank as u32) };
        Some(Partner { rank, tag: if tag == u32::MAX { None } else { Some(tag) } })
    }
}

/// What a row says beside its function, file, times and result. Communicators are indices into
/// `Header::communicators`, −1 for one that was not declared; ranks are those of the whole program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CallView {
    /// Work of a processor, noted by a simulator.
    Compute {
        /// Whole instructions.
        instructions: u64,
        /// And so many of [`CallView::FRACTIONS`] of one.
        fraction: u64,
    },
    /// A process did nothing, and kept nobody from the processor.
    Idle {
        /// For so long, beside what going to sleep takes.
        nanos: Nanos,
    },
    /// `MPI_File_open`.
    Open {
        /// Who opens together.
        communicator: i64,
        /// Of the file before, −1 if not known.
        size_bytes: i64,
        /// MPI's mode, −1 if not known.
        mode: i64,
    },
    /// A read or write of MPI-IO.
    Data {
        /// The first byte, if it could be followed, and the bytes asked for.
        extent: (Option<u64>, u64),
        /// What it is waited for by, where it only begins.
        request: Option<i64>,
    },
    /// `MPI_File_set_size`.
    SetSize {
        /// Where the file ends from now on.
        bytes: u64,
    },
    /// A message sent, received, or one of each.
    Message {
        /// For whom; `None` also for the null process.
        to: Option<Partner>,
        /// Bytes sent.
        bytes: u64,
        /// From whom.
        from: Option<Partner>,
        /// Of which both are.
        communicator: i64,
        /// What it is waited for by, where it only begins.
        request: Option<i64>,
    },
    /// A collective call that is about no file.
    Collective {
        /// Who gives or gets, where one does.
        root: Option<u32>,
        /// Of each rank; of this rank where they differ; `None` for a barrier.
        bytes: Option<u64>,
        /// Among whom.
        communicator: i64,
    },
    /// `MPI_Wait`.
    Wait {
        /// For what.
        request: i64,
    },
}

const fn at_least_zero(field: i64) -> Option<u64> {
    if field < 0 { None } else { Some(field as u64) }
}

const fn request_of(field: i64) -> Option<i64> {
    if field < 0 { None } else { Some(field) }
}

const fn or_none(value: Option<u64>) -> i64 {
    match value {
        Some(value) if value <= i64::MAX as u64 => value as i64,
        Some(_) => i64::MAX,
        None => -1,
    }
}

impl CallView {
    /// So many fractions make an instruction: as fine as a double above 1 is, so that none is rounded.
    pub const FRACTIONS: f64 = (1_u64 << 52) as f64;

    /// What a row says; `None` for functions that have no view.
    pub fn of(row: &Event) -> Option<CallView> {
        let message = |to: i64, from: i64, request: Option<i64>| CallView::Message {
            to: Partner::of_field(to),
            bytes: row.length.max(0) as u64,
            from: Partner::of_field(from),
            communicator: row.fd.into(),
            request,
        };
        Some(match row.function {
            Function::COMPUTE => match (at_least_zero(row.argument), at_least_zero(row.length)) {
                (Some(instructions), _) => {
                    let fraction = row.offset.clamp(0, CallView::FRACTIONS as i64 - 1) as u64;
                    CallView::Compute { instructions, fraction }
                }
                (None, Some(nanos)) => CallView::Idle { nanos: Nanos(nanos) },
                (None, None) => return None,
            },
            Function::MPI_FILE_OPEN => CallView::Open {
                communicator: row.offset,
                size_bytes: row.length,
                mode: row.argument,
            },
            Function::MPI_FILE_READ
            | Function::MPI_FILE_READ_ALL
            | Function::MPI_FILE_WRITE
            | Function::MPI_FILE_WRITE_ALL => CallView::Data { extent: extent(row), request: None },
            Function::MPI_FILE_IREAD
            | Function::MPI_FILE_IREAD_ALL
            | Function::MPI_FILE_IWRITE
            | Function::MPI_FILE_IWRITE_ALL => {
                CallView::Data { extent: extent(row), request: request_of(row.argument) }
            }
            Function::MPI_FILE_SET_SIZE => CallView::SetSize { bytes: row.length.max(0) as u64 },
            Function::MPI_SEND => message(row.argument, -1, None),
            Function::MPI_RECV => message(-1, row.offset, None),
            Function::MPI_SENDRECV => message(row.argument, row.offset, None),
            Function::MPI_ISEND => message(row.argument, -1, request_of(row.offset)),
            Function::MPI_IRECV => message(-1, row.offset, request_of(row.argument)),
            Function::MPI_WAIT => CallView::Wait { request: row.argument },
            Function::MPI_BARRIER
            | Function::MPI_BCAST
            | Function::MPI_REDUCE
            | Function::MPI_ALLREDUCE
            | Function::MPI_GATHER
            | Function::MPI_SCATTER
            | Function::MPI_ALLGATHER
            | Function::MPI_ALLTOALL
            | Function::MPI_SCAN
            | Function::MPI_REDUCE_SCATTER => CallView::Collective {
                root: u32::try_from(row.argument).ok(),
                bytes: at_least_zero(row.length),
                communicator: row.fd.into(),
            },
            _ => return None,
        })
    }

    /// The row of `function` that says so; everything else is as in `row`.
    #[must_use]
    pub fn on(self, function: Function, row: Event) -> Event {
        let row = Event { function, ..row };
        match self {
            CallView::Compute { instructions, fraction } => {
                let (offset, argument) = (or_none(Some(fraction)), or_none(Some(instructions)));
                Event { offset, argument, ..row }
            }
            CallView::Idle { nanos } => Event { length: or_none(Some(nanos.0)), ..row },
            CallView::Open { communicator, size_bytes, mode } => {
                Event { offset: communicator, length: size_bytes, argument: mode, ..row }
            }
            CallView::Data { extent: (offset, bytes), request } => Event {
                offset: or_none(offset),
                length: or_none(Some(bytes)),
                argument: request.unwrap_or(-1),
                ..row
            },
            CallView::Message { to, bytes, from, communicator, request } => {
                let (to_field, from_field) = (Partner::to_field(to), Partner::to_field(from));
                let number = request.unwrap_or(-1);
                let (offset, argument) = match function {
                    Function::MPI_ISEND => (number, to_field),
                    Function::MPI_IRECV => (from_field, number),
                    _ => (from_field, to_field),
                };
                let receives = matches!(function, Function::MPI_RECV | Function::MPI_IRECV);
                let length = if receives { -1 } else { or_none(Some(bytes)) };
                Event { fd: communicator as i32, offset, length, argument, ..row }
            }
            CallView::Collective { root, bytes, communicator } => Event {
                fd: communicator as i32,
                length: or_none(bytes),
                argument: root.map_or(-1, i64::from),
                ..row
            },
            CallView::SetSize { bytes } => Event { length: or_none(Some(bytes)), ..row },
            CallView::Wait { request } => Event { argument: request, ..row },
        }
    }
}

fn extent(row: &Event) -> (Option<u64>, u64) {
    (at_least_zero(row.offset), row.length.max(0) as u64)
}

impl Event {
    /// The bytes of the file that a read or write asked for; those of one whose place is not known
    /// begin at 0.
    pub fn extent(&self) -> Extent {
        let (offset, bytes) = extent(self);
        Extent::new(offset.unwrap_or(0), bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const THIRD: Partner = Partner { rank: Some(3), tag: Some(17) };
    const ANYBODY: Partner = Partner { rank: None, tag: None };

    fn message(to: Option<Partner>, from: Option<Partner>, request: Option<i64>) -> CallView {
        let bytes = if to.is_some() { 4096 } else { 0 };
        CallView::Message { to, bytes, from, communicator: 2, request }
    }

    #[test]
    fn a_view_put_into_a_row_is_found_there_again() {
        let data = CallView::Data { extent: (Some(1 << 40), 512), request: None };
        let lost = CallView::Data { extent: (None, 512), request: Some(8) };
        let views = [
            (Function::COMPUTE, CallView::Compute { instructions: 12, fraction: 7 }),
            (Function::COMPUTE, CallView::Idle { nanos: Nanos(3_000_000) }),
            (
                Function::MPI_FILE_OPEN,
                CallView::Open { communicator: 1, size_bytes: 5 << 30, mode: 9 },
            ),
            (Function::MPI_FILE_WRITE_ALL, data),
            (Function::MPI_FILE_IREAD_ALL, lost),
            (Function::MPI_FILE_SET_SIZE, CallView::SetSize { bytes: 1 << 33 }),
            (Function::MPI_SEND, message(Some(THIRD), None, None)),
            (Function::MPI_RECV, message(None, Some(ANYBODY), None)),
            (Function::MPI_SENDRECV, message(Some(THIRD), Some(ANYBODY), None)),
            (Function::MPI_ISEND, message(Some(THIRD), None, Some(4))),
            (Function::MPI_IRECV, message(None, Some(THIRD), Some(5))),
            (Function::MPI_IRECV, message(None, None, Some(6))),
            (Function::MPI_WAIT, CallView::Wait { request: 4 }),
            (
                Function::MPI_BCAST,
                CallView::Collective { root: Some(1), bytes: Some(8), communicator: 0 },
            ),
            (
                Function::MPI_BARRIER,
                CallView::Collective { root: None, bytes: None, communicator: -1 },
            ),
        ];
        for (function, view) in views {
            let row = view.on(function, Event::of(Function::READ));
            assert_eq!(CallView::of(&row), Some(view), "{}", function.name());
        }
    }

    #[test]
    fn the_fields_are_those_of_the_format() {
        let any = Partner::to_field(Some(ANYBODY));
        assert_eq!(any, 2_147_483_647 << 32 | 4_294_967_295);
        assert_eq!(Partner::to_field(None), -1);
        let row =
            message(Some(THIRD), None, Some(4)).on(Function::MPI_ISEND, Event::of(Function::READ));
        assert_eq!((row.offset, row.argument, row.length, row.fd), (4, 3 << 32 | 17, 4096, 2));
    }
}
