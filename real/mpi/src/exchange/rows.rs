//! Which function of MPI has which part.

use super::Part::{
    self, Access, Alone, AloneBegun, Begin, Close, End, Finalize, Init, Joint, Open, Other, Seek,
    SetAtomicity, SetInfo, SetView, Theirs,
};
use super::Place::{Explicit, Own};
use super::Sort::{NonBlocking, Ordered};
use iolab_vocab::Direction::{Read, Write};

/// What the function of that name has to do with accesses to files: under its own name or its
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
        b"MPI_File_read_ordered" | b"MPI_File_read_ordered_begin" => Theirs(Ordered),
        b"MPI_File_write_ordered" | b"MPI_File_write_ordered_begin" => Theirs(Ordered),
        b"MPI_File_iread_all" | b"MPI_File_iread_at_all" => Theirs(NonBlocking),
        b"MPI_File_iwrite_all" | b"MPI_File_iwrite_at_all" => Theirs(NonBlocking),
        b"MPI_File_sync" | b"MPI_File_set_size" | b"MPI_File_preallocate" => Joint,
        b"MPI_File_seek_shared" => Joint,
        b"MPI_File_read" => Alone(Read, Own),
        b"MPI_File_read_at" => Alone(Read, Explicit),
        b"MPI_File_write" => Alone(Write, Own),
        b"MPI_File_write_at" => Alone(Write, Explicit),
        b"MPI_File_iread" => AloneBegun(Read, Own),
        b"MPI_File_iread_at" => AloneBegun(Read, Explicit),
        b"MPI_File_iwrite" => AloneBegun(Write, Own),
        b"MPI_File_iwrite_at" => AloneBegun(Write, Explicit),
        b"MPI_File_iread_shared" | b"MPI_File_iwrite_shared" => Other,
        b"MPI_File_read_shared" | b"MPI_File_write_shared" | b"MPI_File_get_size" => Other,
        b"MPI_File_seek" => Seek,
        b"MPI_Finalize" => Finalize,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A call that others need not be in must never wait for them.
    #[test]
    fn only_calls_that_all_ranks_make_and_that_may_wait_are_joint() {
        for name in ["MPI_File_close", "MPI_File_sync", "MPI_File_write_all_begin"] {
            assert!(part(name).unwrap().is_joint(), "{name}");
        }
        for name in
            ["MPI_File_write", "MPI_File_iwrite", "MPI_File_iread_all", "MPI_File_read_shared"]
        {
            assert!(!part(name).unwrap().is_joint(), "{name}");
        }
        for name in ["MPI_File_write_all_end", "MPI_File_open", "MPI_Finalize", "MPI_File_seek"] {
            assert!(!part(name).unwrap().is_joint(), "{name}");
        }
    }

    #[test]
    fn all_names_of_a_collective_access_mean_the_same() {
        for name in ["MPI_File_read_all", "PMPI_File_read_all", "PMPI_File_read_all_c"] {
            assert_eq!(part(name), Some(Access(Read, Own)), "{name}");
        }
        for name in ["MPI_File_write_at", "PMPI_File_write_at_c"] {
            assert_eq!(part(name), Some(Alone(Write, Explicit)), "{name}");
        }
        for name in ["MPI_File_iwrite_at", "PMPI_File_iwrite_at_c"] {
            assert_eq!(part(name), Some(AloneBegun(Write, Explicit)), "{name}");
        }
        assert_eq!(part("MPI_File_get_position"), None);
        assert_eq!(part("MPI_Allreduce"), None);
    }
}
