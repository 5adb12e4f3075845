//! One table of commands and the functions of a trace they stand as, read both ways.

use super::{Command, FileOperation, What};
use iolab_policy::collective::CollectiveKind;
use iolab_trace::Function;

/// A command without its arguments.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shape {
    /// [`What::Compute`] and [`What::Idle`].
    Compute,
    /// [`What::File`].
    File(FileOperation),
    /// [`What::Send`].
    Send,
    /// [`What::Receive`].
    Receive,
    /// [`What::SendReceive`].
    SendReceive,
    /// [`What::Collective`].
    Collective(CollectiveKind),
    /// [`What::Wait`].
    Wait,
}

/// A command, the function it stands as, and the one it stands as where it only begins.
type Row = (Shape, Function, Option<Function>);

const fn awaited(shape: Shape, function: Function) -> Row {
    (shape, function, None)
}

const fn both(shape: Shape, function: Function, begins: Function) -> Row {
    (shape, function, Some(begins))
}

const ROWS: &[Row] = &[
    awaited(Shape::Compute, Function::COMPUTE),
    awaited(Shape::File(FileOperation::Open), Function::MPI_FILE_OPEN),
    awaited(Shape::File(FileOperation::Close), Function::MPI_FILE_CLOSE),
    awaited(Shape::File(FileOperation::Sync), Function::MPI_FILE_SYNC),
    awaited(Shape::File(FileOperation::SetSize), Function::MPI_FILE_SET_SIZE),
    both(Shape::File(FileOperation::Read), Function::MPI_FILE_READ, Function::MPI_FILE_IREAD),
    both(Shape::File(FileOperation::Write), Function::MPI_FILE_WRITE, Function::MPI_FILE_IWRITE),
    both(
        Shape::File(FileOperation::ReadAll),
        Function::MPI_FILE_READ_ALL,
        Function::MPI_FILE_IREAD_ALL,
    ),
    both(
        Shape::File(FileOperation::WriteAll),
        Function::MPI_FILE_WRITE_ALL,
        Function::MPI_FILE_IWRITE_ALL,
    ),
    both(Shape::Send, Function::MPI_SEND, Function::MPI_ISEND),
    both(Shape::Receive, Function::MPI_RECV, Function::MPI_IRECV),
    awaited(Shape::SendReceive, Function::MPI_SENDRECV),
    awaited(Shape::Collective(CollectiveKind::Barrier), Function::MPI_BARRIER),
    awaited(Shape::Collective(CollectiveKind::Broadcast), Function::MPI_BCAST),
    awaited(Shape::Collective(CollectiveKind::Reduce), Function::MPI_REDUCE),
    awaited(Shape::Collective(CollectiveKind::Allreduce), Function::MPI_ALLREDUCE),
    awaited(Shape::Collective(CollectiveKind::Gather), Function::MPI_GATHER),
    awaited(Shape::Collective(CollectiveKind::Scatter), Function::MPI_SCATTER),
    awaited(Shape::Collective(CollectiveKind::Allgather), Function::MPI_ALLGATHER),
    awaited(Shape::Collective(CollectiveKind::Alltoall), Function::MPI_ALLTOALL),
    awaited(Shape::Wait, Function::MPI_WAIT),
];

impl What {
    /// What it is, without its arguments.
    pub const fn shape(self) -> Shape {
        match self {
            What::Compute { .. } | What::Idle { .. } => Shape::Compute,
            What::File { operation, .. } => Shape::File(operation),
            What::Send { .. } => Shape::Send,
            What::Receive { .. } => Shape::Receive,
            What::SendReceive { .. } => Shape::SendReceive,
            What::Collective { kind, .. } => Shape::Collective(kind),
            What::Alltoallv { .. } => Shape::Collective(CollectiveKind::Alltoall),
            What::Wait(_) => Shape::Wait,
        }
    }
}

/// The function a command stands as in a trace. What has no function of its own to begin it stands
/// as the one that waits.
pub fn function_of(command: Command) -> Function {
    let shape = command.what.shape();
    let row = ROWS.iter().find(|row| row.0 == shape);
    let &(_, function, begins) = row.expect("every command that the checks let through has a row");
    match command.ticket {
        Some(_) => begins.unwrap_or(function),
        None => function,
    }
}

/// The command a function stands for, and whether it only begins it.
pub fn of_function(function: Function) -> Option<(Shape, bool)> {
    ROWS.iter().find_map(|&(shape, awaited, begins)| match begins {
        _ if awaited == function => Some((shape, false)),
        Some(begins) if begins == function => Some((shape, true)),
        _ => None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_function_and_no_command_has_two_rows() {
        let functions: Vec<_> =
            ROWS.iter().flat_map(|row| [Some(row.1), row.2]).flatten().collect();
        for (place, row) in ROWS.iter().enumerate() {
            assert!(ROWS[..place].iter().all(|other| other.0 != row.0), "{:?}", row.0);
        }
        for (place, function) in functions.iter().enumerate() {
            assert!(!functions[..place].contains(function), "{}", function.name());
        }
    }

    #[test]
    fn every_collective_kind_without_a_file_has_a_function() {
        for kind in CollectiveKind::ALL.into_iter().filter(|kind| *kind != CollectiveKind::File) {
            let command = What::Collective { kind, root: 0, bytes: 0, communicator: 0 }.awaited();
            assert_eq!(of_function(function_of(command)), Some((Shape::Collective(kind), false)));
        }
    }

    #[test]
    fn what_can_start_has_a_function_that_begins_it() {
        let operations = [
            FileOperation::Open,
            FileOperation::Close,
            FileOperation::Sync,
            FileOperation::SetSize,
            FileOperation::Read,
            FileOperation::Write,
            FileOperation::ReadAll,
            FileOperation::WriteAll,
        ];
        for operation in operations {
            let command = operation.of(0);
            let row = of_function(function_of(command.started(1)));
            assert_eq!(row, Some((Shape::File(operation), command.what.can_start())));
        }
    }
}
