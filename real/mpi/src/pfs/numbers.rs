//! Numbers of MPI's files that differ between families: error classes, and handles that everybody knows.
//!
//! From the headers named in `family`.

use crate::family::{Family, Kind};
use crate::next;
use iolab_layer::loader;
use std::ffi::CStr;
use std::sync::OnceLock;

/// Classes of errors, in the order of [`Numbers::classes`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Class {
    Count,
    Type,
    Arg,
    Other,
    Access,
    Amode,
    BadFile,
    FileExists,
    FileInUse,
    File,
    Io,
    NoMem,
    NotSame,
    NoSpace,
    NoSuchFile,
    Quota,
    ReadOnly,
    UnsupportedDatarep,
    UnsupportedOperation,
    Conversion,
}

impl Class {
    /// All of them, in their order.
    pub(crate) const ALL: [Class; 20] = [
        Class::Count,
        Class::Type,
        Class::Arg,
        Class::Other,
        Class::Access,
        Class::Amode,
        Class::BadFile,
        Class::FileExists,
        Class::FileInUse,
        Class::File,
        Class::Io,
        Class::NoMem,
        Class::NotSame,
        Class::NoSpace,
        Class::NoSuchFile,
        Class::Quota,
        Class::ReadOnly,
        Class::UnsupportedDatarep,
        Class::UnsupportedOperation,
        Class::Conversion,
    ];

    /// The class of a number that a rank has told of its own.
    pub(crate) fn told(number: u64) -> Class {
        Class::ALL.get(number as usize).copied().unwrap_or(Class::Other)
    }
}

/// What one family says.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Numbers {
    classes: [i32; Class::ALL.len()],
    pub(crate) no_communicator: usize,
    pub(crate) no_datatype: usize,
    pub(crate) no_file: usize,
    pub(crate) no_info: usize,
    pub(crate) no_handler: usize,
    pub(crate) errors_are_fatal: usize,
    pub(crate) errors_abort: usize,
    pub(crate) errors_return: usize,
    pub(crate) ignored_status: usize,
    pub(crate) status_bytes: usize,
    /// Where in a status its `MPI_ERROR` is.
    pub(crate) status_error: usize,
    /// `MPI_ERR_IN_STATUS`.
    pub(crate) error_in_status: i32,
    pub(crate) seek_set: i32,
}

const MPICH: Numbers = Numbers {
    classes: [2, 3, 12, 15, 20, 21, 22, 25, 26, 27, 32, 34, 35, 36, 37, 39, 40, 43, 44, 23],
    no_communicator: 0x0400_0000,
    no_datatype: 0x0c00_0000,
    no_file: 0,
    no_info: 0x1c00_0000,
    no_handler: 0x1400_0000,
    errors_are_fatal: 0x5400_0000,
    errors_return: 0x5400_0001,
    errors_abort: 0x5400_0003,
    ignored_status: 1,
    status_bytes: 20,
    status_error: 16,
    error_in_status: 17,
    seek_set: 600,
};

/// Its handles are addresses, which are looked up.
const OPEN_MPI: Numbers = Numbers {
    classes: [2, 3, 13, 16, 20, 21, 23, 28, 29, 30, 35, 39, 40, 41, 42, 44, 45, 51, 52, 25],
    ignored_status: 0,
    status_bytes: 24,
    status_error: 8,
    error_in_status: 18,
    ..MPICH
};

const STANDARD: Numbers = Numbers {
    classes: [2, 3, 13, 16, 20, 21, 23, 28, 29, 30, 35, 39, 40, 41, 42, 44, 45, 54, 55, 25],
    no_communicator: 0x100,
    no_datatype: 0x200,
    no_file: 0x118,
    no_info: 0x130,
    no_handler: 0x140,
    errors_are_fatal: 0x141,
    errors_abort: 0x142,
    errors_return: 0x143,
    ignored_status: 0,
    status_bytes: 32,
    status_error: 8,
    error_in_status: 19,
    seek_set: 403,
};

/// What libraries answer about a filetype or etype whose offsets go back, or overlap where they may be written: ROMIO, which
/// MPICH has, `MPI_ERR_IO`; Open MPI `MPI_ERR_TYPE`. The standard names no class.
pub(super) const fn improper_view(kind: Kind) -> Class {
    match kind {
        Kind::Mpich | Kind::Standard => Class::Io,
        Kind::OpenMpi => Class::Type,
    }
}

/// What libraries answer about a view of `MPI_DATATYPE_NULL`.
pub(super) const fn view_of_nothing(kind: Kind) -> Class {
    match kind {
        Kind::Mpich | Kind::Standard => Class::Arg,
        Kind::OpenMpi => Class::Type,
    }
}

impl Numbers {
    /// Whether a handler is one of those that all programs have.
    pub(crate) fn is_usual_handler(&self, handle: usize) -> bool {
        [self.errors_return, self.errors_are_fatal, self.errors_abort].contains(&handle)
    }

    /// Those of this process's family.
    pub(crate) fn here() -> &'static Numbers {
        static NUMBERS: OnceLock<Numbers> = OnceLock::new();
        NUMBERS.get_or_init(|| match Family::here().kind {
            Kind::Mpich => MPICH,
            Kind::Standard => STANDARD,
            Kind::OpenMpi => Numbers {
                no_communicator: address(c"ompi_mpi_comm_null"),
                no_datatype: address(c"ompi_mpi_datatype_null"),
                no_file: address(c"ompi_mpi_file_null"),
                no_info: address(c"ompi_mpi_info_null"),
                no_handler: address(c"ompi_mpi_errhandler_null"),
                errors_are_fatal: address(c"ompi_mpi_errors_are_fatal"),
                errors_abort: address(c"ompi_mpi_errors_abort"),
                errors_return: address(c"ompi_mpi_errors_return"),
                ..OPEN_MPI
            },
        })
    }

    /// The number of a class, which is a code of an error as well.
    pub(crate) fn code(&self, class: Class) -> i32 {
        self.classes[class as usize]
    }
}

/// Where a symbol is; a number that is no handle if this library has none.
fn address(name: &CStr) -> usize {
    loader::anywhere(name).or_else(|| next::in_library(name)).unwrap_or(usize::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn classes_of_errors_have_the_numbers_of_their_family() {
        let of = |class| [MPICH, OPEN_MPI, STANDARD].map(|numbers| numbers.code(class));
        assert_eq!(of(Class::Arg), [12, 13, 13]);
        assert_eq!(of(Class::NoSuchFile), [37, 42, 42]);
        assert_eq!(of(Class::UnsupportedOperation), [44, 52, 55]);
        assert_eq!(of(Class::Io), [32, 35, 35]);
    }
}
