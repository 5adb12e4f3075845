//! What a recording records, by which clock, and how much room it may take.

use super::clock_source::ClockSource;
use std::path::PathBuf;

/// How calls on streams are recorded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum StreamCalls {
    /// The first calls on a file one by one; later those that reach no system call are counted.
    #[default]
    Auto,
    /// All one by one.
    Calls,
    /// Those that reach no system call are counted from the first on.
    Counts,
    /// Not at all.
    Nothing,
}

impl StreamCalls {
    /// After so many calls on a file they cost more to record than they tell.
    const FIRST_CALLS: u32 = 1000;

    /// How many calls on a file get records of their own, as the control page says it.
    pub(super) const fn rows(self) -> u32 {
        match self {
            StreamCalls::Auto => StreamCalls::FIRST_CALLS,
            StreamCalls::Counts => 0,
            StreamCalls::Calls | StreamCalls::Nothing => u32::MAX,
        }
    }
}

/// What to record and how much room it may take.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The clock; `None`: the time-stamp counter where it can be trusted.
    pub clock: Option<ClockSource>,
    /// Record the POSIX layer.
    pub posix: bool,
    /// How to record the stdio layer.
    pub stdio: StreamCalls,
    /// Record what comes out below the strategies.
    pub below: bool,
    /// Calls of MPI, of the library that [`crate::launch::find_mpi_library`] finds.
    pub mpi: bool,
    /// Calls of HDF5, of the library that [`crate::launch::find_hdf5_library`] finds.
    pub hdf5: bool,
    /// Calls of NetCDF, of the library that [`crate::launch::find_netcdf_library`] finds.
    pub netcdf: bool,
    /// The spool directory takes no more than this (and a few heads of processes).
    pub limit_bytes: u64,
    /// When it is full: go on, overwriting the oldest records.
    pub ring: bool,
    /// Where to make the spool directory; `None`: in memory where there is room (the drained
    /// records then go to the place for temporary files), else in the place for temporary files.
    pub directory: Option<PathBuf>,
}

impl Default for Settings {
    fn default() -> Settings {
        Settings {
            clock: None,
            posix: true,
            stdio: StreamCalls::Auto,
            below: false,
            mpi: false,
            hdf5: false,
            netcdf: false,
            limit_bytes: 2 << 30,
            ring: false,
            directory: None,
        }
    }
}
