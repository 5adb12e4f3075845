//! Which function of MPI has which part.

use super::Part::{
    self, Access, Begin, Close, End, Init, Open, SetAtomicity, SetInfo, SetView, Theirs,
};
use super::Place::{Explicit, Own};
use iolab_vocab::Direction::{Read, Write};

/// Calls whose place other processes move.
const SHARED: &str = "its ordered calls go by the shared pointer";

/// What the function of that name has to do with collective accesses: under its own name or its
/// profiling name, with usual or large counts.
pub(crate) const fn part(name: &str) -> Option<Part> {
    let name = match name.as_bytes() {
        [b'P', rest @ ..] => rest,
        name => name,
    };
    let name = match name {
        [rest @ .., b'_', b'c'] => rest,
        name => name,
    };
    Some(match name {
        b"MPI_Init" | b"MPI_Init_thread" => Init,
        b"MPI_File_open" => Open,
        b"MPI_File_close" => Close,
        b"MPI_File_set_view" => SetView,
        b"MPI_File_set_info" => SetInfo,
        b"MPI_File_set_atomicity" => SetAtomicity,
        b"MPI_File_read_all" => Access(Read, Own),
        b"MPI_File_read_at_all" => Access(Read, Explicit),
        b"MPI_File_write_all" => Access(Write, Own),
        b"MPI_File_write_at_all" => Access(Write, Explicit),
        b"MPI_File_read_all_begin" => Begin(Read, Own, "read_all"),
        b"MPI_File_read_at_all_begin" => Begin(Read, Explicit, "read_at_all"),
        b"MPI_File_write_all_begin" => Begin(Write, Own, "write_all"),
        b"MPI_File_write_at_all_begin" => Begin(Write, Explicit, "write_at_all"),
        b"MPI_File_read_all_end" => End("read_all"),
        b"MPI_File_read_at_all_end" => End("read_at_all"),
        b"MPI_File_write_all_end" => End("write_all"),
        b"MPI_File_write_at_all_end" => End("write_at_all"),
        b"MPI_File_read_ordered" | b"MPI_File_read_ordered_begin" => Theirs(SHARED),
        b"MPI_File_write_ordered" | b"MPI_File_write_ordered_begin" => Theirs(SHARED),
        b"MPI_File_iread_all" | b"MPI_File_iread_at_all" => Theirs(GOES_ON),
        b"MPI_File_iwrite_all" | b"MPI_File_iwrite_at_all" => Theirs(GOES_ON),
        _ => return None,
    })
}

/// Calls that go on while the program computes.
const GOES_ON: &str = "its calls are non-blocking";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_names_of_a_collective_access_mean_the_same() {
        for name in ["MPI_File_read_all", "PMPI_File_read_all", "PMPI_File_read_all_c"] {
            assert_eq!(part(name), Some(Access(Read, Own)), "{name}");
        }
        assert_eq!(part("MPI_File_write"), None);
        assert_eq!(part("MPI_Allreduce"), None);
    }
}
