//! Which function of MPI is carried out how.

use super::Work::{self, Alone, Begins, Completes, Ends, OnFile};
use super::access::{Place, Together, Wish, begun, ended, moved, started};
use super::request::Completing;
use super::{attributes, open, view};
use Place::{Explicit, Ordered, Own, Shared};
use Together::{All, Alone as Independent};
use iolab_vocab::Direction::{self, Read, Write};

const fn wish(direction: Direction, place: Place, together: Together) -> Wish {
    Wish { direction, place, together }
}

/// How the function of that name is carried out on files of ours: under its own name or its profiling
/// name, with usual or large counts. None: it has to do with no file of ours.
pub(crate) const fn work(name: &str) -> Option<Work> {
    let name = match name.as_bytes() {
        [b'P', rest @ ..] => rest,
        name => name,
    };
    if let Some(how) = completing(name) {
        return Some(Completes(how));
    }
    match name {
        b"MPI_Session_init" => return Some(Begins),
        b"MPI_Session_finalize" => return Some(Ends),
        _ => {}
    }
    let name = match name {
        [rest @ .., b'_', b'c'] => rest,
        name => name,
    };
    let Some((start, name)) = name.split_at_checked(START.len()) else { return None };
    let [b'M', b'P', b'I', b'_', b'F', b'i', b'l', b'e', b'_'] = start else { return None };
    Some(match name {
        b"open" => Alone(open::open),
        b"close" => Alone(open::close),
        b"delete" => Alone(open::delete),
        b"set_size" => OnFile(attributes::set_size),
        b"preallocate" => OnFile(attributes::preallocate),
        b"get_size" => OnFile(attributes::get_size),
        b"get_group" => OnFile(attributes::get_group),
        b"get_amode" => OnFile(attributes::get_amode),
        b"set_info" => OnFile(attributes::set_info),
        b"get_info" => OnFile(attributes::get_info),
        b"set_view" => OnFile(view::set_view),
        b"get_view" => OnFile(view::get_view),
        b"seek" => OnFile(view::seek),
        b"get_position" => OnFile(view::get_position),
        b"seek_shared" => OnFile(view::seek_shared),
        b"get_position_shared" => OnFile(view::get_position_shared),
        b"get_byte_offset" => OnFile(view::get_byte_offset),
        b"get_type_extent" => OnFile(view::get_type_extent),
        b"set_atomicity" => OnFile(attributes::set_atomicity),
        b"get_atomicity" => OnFile(attributes::get_atomicity),
        b"sync" => OnFile(attributes::sync),
        b"set_errhandler" => OnFile(attributes::set_errhandler),
        b"get_errhandler" => OnFile(attributes::get_errhandler),
        b"call_errhandler" => Alone(attributes::call_errhandler),
        b"create_errhandler" => Alone(attributes::create_errhandler),

        b"read" => OnFile(|file, call| moved(file, call, wish(Read, Own, Independent))),
        b"read_at" => OnFile(|file, call| moved(file, call, wish(Read, Explicit, Independent))),
        b"read_all" => OnFile(|file, call| moved(file, call, wish(Read, Own, All))),
        b"read_at_all" => OnFile(|file, call| moved(file, call, wish(Read, Explicit, All))),
        b"write" => OnFile(|file, call| moved(file, call, wish(Write, Own, Independent))),
        b"write_at" => OnFile(|file, call| moved(file, call, wish(Write, Explicit, Independent))),
        b"write_all" => OnFile(|file, call| moved(file, call, wish(Write, Own, All))),
        b"write_at_all" => OnFile(|file, call| moved(file, call, wish(Write, Explicit, All))),

        b"read_shared" => OnFile(|file, call| moved(file, call, wish(Read, Shared, Independent))),
        b"write_shared" => OnFile(|file, call| moved(file, call, wish(Write, Shared, Independent))),
        b"read_ordered" => OnFile(|file, call| moved(file, call, wish(Read, Ordered, All))),
        b"write_ordered" => OnFile(|file, call| moved(file, call, wish(Write, Ordered, All))),

        b"iread" => OnFile(|file, call| started(file, call, wish(Read, Own, Independent))),
        b"iread_at" => OnFile(|file, call| started(file, call, wish(Read, Explicit, Independent))),
        b"iread_all" => OnFile(|file, call| started(file, call, wish(Read, Own, All))),
        b"iread_at_all" => OnFile(|file, call| started(file, call, wish(Read, Explicit, All))),
        b"iwrite" => OnFile(|file, call| started(file, call, wish(Write, Own, Independent))),
        b"iwrite_at" => {
            OnFile(|file, call| started(file, call, wish(Write, Explicit, Independent)))
        }
        b"iwrite_all" => OnFile(|file, call| started(file, call, wish(Write, Own, All))),
        b"iwrite_at_all" => OnFile(|file, call| started(file, call, wish(Write, Explicit, All))),
        b"iread_shared" => {
            OnFile(|file, call| started(file, call, wish(Read, Shared, Independent)))
        }
        b"iwrite_shared" => {
            OnFile(|file, call| started(file, call, wish(Write, Shared, Independent)))
        }

        b"read_all_begin" => {
            OnFile(|file, call| begun(file, call, wish(Read, Own, All), "read_all"))
        }
        b"read_at_all_begin" => {
            OnFile(|file, call| begun(file, call, wish(Read, Explicit, All), "read_at_all"))
        }
        b"write_all_begin" => {
            OnFile(|file, call| begun(file, call, wish(Write, Own, All), "write_all"))
        }
        b"write_at_all_begin" => {
            OnFile(|file, call| begun(file, call, wish(Write, Explicit, All), "write_at_all"))
        }
        b"read_ordered_begin" => {
            OnFile(|file, call| begun(file, call, wish(Read, Ordered, All), "read_ordered"))
        }
        b"write_ordered_begin" => {
            OnFile(|file, call| begun(file, call, wish(Write, Ordered, All), "write_ordered"))
        }
        b"read_all_end" => OnFile(|file, call| ended(file, call, "read_all")),
        b"read_at_all_end" => OnFile(|file, call| ended(file, call, "read_at_all")),
        b"write_all_end" => OnFile(|file, call| ended(file, call, "write_all")),
        b"write_at_all_end" => OnFile(|file, call| ended(file, call, "write_at_all")),
        b"read_ordered_end" => OnFile(|file, call| ended(file, call, "read_ordered")),
        b"write_ordered_end" => OnFile(|file, call| ended(file, call, "write_ordered")),
        _ => return None,
    })
}

const START: &str = "MPI_File_";

/// How the function of that name has to do with the end of requests.
const fn completing(name: &[u8]) -> Option<Completing> {
    Some(match name {
        b"MPI_Wait" => Completing::Wait,
        b"MPI_Test" => Completing::Test,
        b"MPI_Waitall" => Completing::WaitAll,
        b"MPI_Testall" => Completing::TestAll,
        b"MPI_Waitany" => Completing::WaitAny,
        b"MPI_Testany" => Completing::TestAny,
        b"MPI_Waitsome" => Completing::WaitSome,
        b"MPI_Testsome" => Completing::TestSome,
        b"MPI_Request_get_status" => Completing::Status,
        b"MPI_Request_get_status_all"
        | b"MPI_Request_get_status_any"
        | b"MPI_Request_get_status_some" => Completing::Statuses,
        b"MPI_Request_free" => Completing::Free,
        b"MPI_Finalize" => Completing::Finalize,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_names_of_a_function_are_carried_out_alike() {
        let is_on_file = |name| matches!(work(name), Some(OnFile(_)));
        for name in ["MPI_File_read", "PMPI_File_read", "MPI_File_read_c", "PMPI_File_read_c"] {
            assert!(is_on_file(name), "{name}");
        }
        assert!(matches!(work("PMPI_File_open"), Some(Alone(_))));
        assert!(matches!(work("PMPI_Waitall"), Some(Completes(Completing::WaitAll))));
        assert!(work("MPI_Send").is_none() && work("MPI_Init").is_none());
    }
}
