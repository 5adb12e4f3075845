//! Flags of opens and operations, as OTF2 numbers them.

use crate::open_flags as posix;
use crate::{CallView, Event, Function, Layer};

/// `O_NONBLOCK`.
const NON_BLOCKING: i64 = 0o4000;

/// Flags of `open`, each with the number that OTF2 has for it.
const CREATION: [(i64, u64); 4] =
    [(posix::CREATE, 1), (posix::TRUNCATE, 2), (posix::DIRECTORY, 4), (posix::EXCLUSIVE, 8)];
const STATUS: [(i64, u64); 6] = [
    (posix::CLOSE_ON_EXEC, 1),
    (posix::APPEND, 2),
    (NON_BLOCKING, 4),
    (posix::SYNC, 16),
    (posix::DATA_SYNC, 32),
    (posix::DIRECT, 64),
];
/// The same of MPI's modes.
const MPI_CREATION: [(i64, u64); 2] = [(1, 1), (64, 8)];
const MPI_STATUS: [(i64, u64); 2] = [(128, 2), (16, 256)];
/// `MPI_MODE_WRONLY` and `MPI_MODE_RDWR`.
const MPI_ACCESS: [(i64, u64); 2] = [(4, 1), (8, 2)];

/// Access mode, creation flags and status flags.
pub(super) fn open_flags(event: &Event) -> [u64; 3] {
    if event.function.layer() == Layer::Mpiio {
        let mode = match CallView::of(event) {
            Some(CallView::Open { mode, .. }) => mode.max(0),
            _ => 0,
        };
        return [sum(&MPI_ACCESS, mode), sum(&MPI_CREATION, mode), sum(&MPI_STATUS, mode)];
    }
    let flags = event.argument.max(0);
    // Three is no access at all, for which there is no word.
    let access = (flags & posix::ACCESS_MODE) as u64 % 3;
    [access, sum(&CREATION, flags), sum(&STATUS, flags)]
}

fn sum(table: &[(i64, u64)], flags: i64) -> u64 {
    table.iter().filter(|row| flags & row.0 != 0).map(|row| row.1).sum()
}

/// `OTF2_IO_OPERATION_FLAG_NON_BLOCKING` and `_COLLECTIVE`.
pub(super) fn of_operation(function: Function) -> u64 {
    match function {
        Function::MPI_FILE_IREAD | Function::MPI_FILE_IWRITE => 1,
        Function::MPI_FILE_READ_ALL | Function::MPI_FILE_WRITE_ALL => 2,
        Function::MPI_FILE_IREAD_ALL | Function::MPI_FILE_IWRITE_ALL => 3,
        _ => 0,
    }
}
