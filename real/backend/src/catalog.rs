//! The catalogue of access methods: one row each. It feeds the command line, the conformance
//! suite and the table of cells.

use crate::mpiio::{Mode, MpiIo};
use crate::null::Null;
use crate::pfs::Pfs;
use crate::posix::Posix;
use crate::queued::Queued;
use crate::{Arena, Backend};
use iolab_host::mpi::Kind;

/// What a method needs to run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Needs {
    /// Nothing.
    Nothing,
    /// A kernel with io_uring.
    Uring,
    /// A start under mpiexec.
    Mpi,
    /// A parallel file system that is served.
    FileSystem,
    /// A platform: it is predicted, not run.
    Platform,
}

/// One access method.
pub struct Method {
    /// Name on the command line.
    pub name: &'static str,
    /// One sentence.
    pub summary: &'static str,
    /// What it needs.
    pub needs: Needs,
    /// Whether it keeps data at all; without, nothing can be verified.
    pub keeps_data: bool,
    /// Whether all ranks have to take part in every operation.
    pub collective: bool,
    /// Whether several operations may be under way at once.
    pub queues: bool,
    /// Whether it can go around the page cache.
    pub direct: bool,
    /// Makes one with this memory and this many operations under way at most.
    pub make: fn(Arena, usize) -> Result<Box<dyn Backend>, crate::IoError>,
}

impl Method {
    const POSIX: Method = Method {
        name: "posix",
        summary: "pread and pwrite, one call per contiguous piece",
        needs: Needs::Nothing,
        keeps_data: true,
        collective: false,
        queues: false,
        direct: true,
        make: |arena, _| Ok(Box::new(Posix::new(arena, false))),
    };

    /// Whoever runs a plan predicts these by itself; there is nothing to be made.
    const SIM: Method = Method {
        name: "sim",
        summary: "predicted on a simulated cluster: every rank for itself",
        needs: Needs::Platform,
        keeps_data: false,
        make: |_, _| Err(crate::IoError::Cannot("it is predicted, not run".to_owned())),
        ..Method::POSIX
    };

    /// Its servers keep files in the page cache.
    const PFS: Method = Method { needs: Needs::FileSystem, direct: false, ..Method::POSIX };

    /// ROMIO and OMPIO have hints of their own for direct I/O, which few builds honour.
    const MPI: Method = Method { needs: Needs::Mpi, direct: false, ..Method::POSIX };
}

fn mpi(arena: Arena, depth: usize, mode: Mode) -> Result<Box<dyn Backend>, crate::IoError> {
    Ok(Box::new(MpiIo::new(arena, depth, mode)))
}

/// All methods.
pub struct Catalog;

impl Catalog {
    /// Every row, in the order of documentation.
    pub const ROWS: &[Method] = &[
        Method {
            name: "null",
            summary: "does nothing: what the harness itself costs",
            keeps_data: false,
            direct: true,
            make: |arena, _| Ok(Box::new(Null::new(arena))),
            ..Method::POSIX
        },
        Method::POSIX,
        Method {
            name: "vectored",
            summary: "preadv and pwritev, one call per contiguous range of the file",
            make: |arena, _| Ok(Box::new(Posix::new(arena, true))),
            ..Method::POSIX
        },
        Method {
            name: "uring",
            summary: "io_uring, several operations under way with depth",
            needs: Needs::Uring,
            queues: true,
            make: |arena, depth| Ok(Box::new(Queued::uring(arena, depth)?)),
            ..Method::POSIX
        },
        Method {
            name: "aio",
            summary: "POSIX aio_read and aio_write, several operations under way with depth",
            queues: true,
            make: |arena, depth| Ok(Box::new(Queued::aio(arena, depth))),
            ..Method::POSIX
        },
        Method {
            name: "independent",
            summary: "MPI-IO: MPI_File_read_at and write_at",
            make: |arena, depth| mpi(arena, depth, Mode::Blocking(Kind::Independent)),
            ..Method::MPI
        },
        Method {
            name: "collective",
            summary: "MPI-IO: MPI_File_read_at_all and write_at_all",
            collective: true,
            make: |arena, depth| mpi(arena, depth, Mode::Blocking(Kind::Collective)),
            ..Method::MPI
        },
        Method {
            name: "split",
            summary: "MPI-IO: MPI_File_read_at_all_begin and _end",
            collective: true,
            make: |arena, depth| mpi(arena, depth, Mode::Blocking(Kind::SplitCollective)),
            ..Method::MPI
        },
        Method {
            name: "nonblocking",
            summary: "MPI-IO: MPI_File_iread_at and iwrite_at",
            queues: true,
            make: |arena, depth| mpi(arena, depth, Mode::NonBlocking { collective: false }),
            ..Method::MPI
        },
        Method {
            name: "nonblocking-collective",
            summary: "MPI-IO: MPI_File_iread_at_all and iwrite_at_all",
            collective: true,
            queues: true,
            make: |arena, depth| mpi(arena, depth, Mode::NonBlocking { collective: true }),
            ..Method::MPI
        },
        Method {
            name: "pfs",
            summary: "the parallel file system of `iolab fs`: every rank for itself",
            make: |arena, _| Ok(Box::new(Pfs::new(arena, false))),
            ..Method::PFS
        },
        Method {
            name: "pfs-collective",
            summary: "the parallel file system of `iolab fs`: collective transfers",
            collective: true,
            make: |arena, _| Ok(Box::new(Pfs::new(arena, true))),
            ..Method::PFS
        },
        Method::SIM,
        Method {
            name: "sim-collective",
            summary: "predicted on a simulated cluster: collective transfers",
            collective: true,
            ..Method::SIM
        },
    ];

    /// The row of that name.
    pub fn find(name: &str) -> Option<&'static Method> {
        Self::ROWS.iter().find(|row| row.name == name)
    }
}
