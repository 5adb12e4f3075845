//! Which function a region is of, by its name.

use super::super::hdtrace;
use crate::{Class, Function, Layer, function};

/// What the name of a region says.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Region {
    /// A call that is a row.
    Call(Function),
    /// A test of requests: those that it finds complete are rows of `MPI_Wait`, as recorded ones are.
    Test,
    /// A call of MPI that no row is kept of.
    LeftOut,
    /// A function of the program.
    Program,
}

/// Names of MPI that are rows of another one and that the importers of older formats do not meet.
const OTHERS: &[(&str, Function)] = &[
    ("Waitany", Function::MPI_WAIT),
    ("Waitsome", Function::MPI_WAIT),
    ("Alltoallv", Function::MPI_ALLTOALL),
    ("Alltoallw", Function::MPI_ALLTOALL),
    ("Scan", Function::MPI_SCAN),
    ("Exscan", Function::MPI_SCAN),
    ("Reduce_scatter", Function::MPI_REDUCE_SCATTER),
    ("Reduce_scatter_block", Function::MPI_REDUCE_SCATTER),
];

/// Of the names of accesses of MPI-IO these parts say which row they are; the others (`_at`, `_shared`) do not.
pub(in crate::import) fn access(name: &str) -> Option<Function> {
    let rest = name.strip_prefix("File_")?;
    // The second half of a split collective call moves nothing of its own.
    if rest.ends_with("_end") {
        return None;
    }
    let is_collective = rest.contains("_all") || rest.contains("_ordered");
    let is_begun = rest.starts_with('i') || rest.ends_with("_begin");
    let is_read = match rest.trim_start_matches('i') {
        rest if rest.starts_with("read") => true,
        rest if rest.starts_with("write") => false,
        _ => return None,
    };
    Some(of_mpiio(is_read, is_collective, is_begun))
}

/// The access of MPI-IO with these properties.
pub(super) fn of_mpiio(is_read: bool, is_collective: bool, is_begun: bool) -> Function {
    match (is_read, is_collective, is_begun) {
        (true, false, false) => Function::MPI_FILE_READ,
        (true, true, false) => Function::MPI_FILE_READ_ALL,
        (true, false, true) => Function::MPI_FILE_IREAD,
        (true, true, true) => Function::MPI_FILE_IREAD_ALL,
        (false, false, false) => Function::MPI_FILE_WRITE,
        (false, true, false) => Function::MPI_FILE_WRITE_ALL,
        (false, false, true) => Function::MPI_FILE_IWRITE,
        (false, true, true) => Function::MPI_FILE_IWRITE_ALL,
    }
}

impl Region {
    pub(super) fn of(name: &str) -> Region {
        if let Some(name) = name.strip_prefix("MPI_") {
            if name.starts_with("Test") {
                return Region::Test;
            }
            let other = OTHERS.iter().find(|row| row.0 == name).map(|row| row.1);
            let function =
                other.or_else(|| access(name)).or_else(|| hdtrace::function_of_mpi(name));
            return function.map_or(Region::LeftOut, Region::Call);
        }
        match name {
            // Which of its rows it is, the events inside say.
            "fcntl" | "fcntl64" => return Region::Call(Function::FCNTL_SETFL),
            "" => return Region::Program,
            _ => {}
        }
        let row = function::TABLE.iter().find(|row| {
            row.name == name || row.symbols.contains(&name) || row.by_hand.contains(&name)
        });
        let is_taken = |row: &&function::Row| {
            matches!(row.layer, Layer::Posix | Layer::Stdio)
                && !matches!(row.class, Class::Process | Class::Unseen)
        };
        match row.filter(is_taken) {
            Some(row) => Region::Call(row.function),
            None => Region::Program,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_regions_are_rows_of_the_table() {
        for (name, function) in [
            ("pwrite64", Function::PWRITE),
            ("fprintf", Function::FPRINTF),
            ("fcntl", Function::FCNTL_SETFL),
            ("MPI_Ssend", Function::MPI_SEND),
            ("MPI_Waitsome", Function::MPI_WAIT),
            ("MPI_Alltoallv", Function::MPI_ALLTOALL),
            ("MPI_File_read_at_all", Function::MPI_FILE_READ_ALL),
            ("MPI_File_iwrite_shared", Function::MPI_FILE_IWRITE),
            ("MPI_File_write_all_begin", Function::MPI_FILE_IWRITE_ALL),
            ("MPI_File_read_ordered", Function::MPI_FILE_READ_ALL),
            ("MPI_File_open", Function::MPI_FILE_OPEN),
        ] {
            assert!(Region::of(name) == Region::Call(function), "{name}");
        }
        assert!(Region::of("MPI_Testsome") == Region::Test);
        assert!(Region::of("MPI_Comm_rank") == Region::LeftOut);
        assert!(Region::of("MPI_File_write_all_end") == Region::LeftOut);
        for name in ["main", "", "fork", "compute", "MPI-IO"] {
            assert!(Region::of(name) == Region::Program, "{name}");
        }
    }
}
