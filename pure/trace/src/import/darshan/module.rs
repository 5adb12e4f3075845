//! What counted or traced calls: modules of Darshan, with the numbers that they have in the header of a log.

use super::log::Format;
use std::fmt;

/// What counted or traced the calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Module {
    /// Counters of POSIX calls.
    Posix,
    /// Counters of MPI-IO calls.
    MpiIo,
    /// Counters of calls on files of HDF5.
    H5File,
    /// Counters of calls on datasets of HDF5.
    H5Dataset,
    /// Counters of calls on files of PnetCDF.
    PnetcdfFile,
    /// Counters of calls on variables of PnetCDF.
    PnetcdfVariable,
    /// Where a Blue Gene ran it.
    BlueGene,
    /// How files lie on Lustre.
    Lustre,
    /// Counters of calls on streams.
    Stdio,
    /// Single POSIX accesses.
    DxtPosix,
    /// Single MPI-IO accesses.
    DxtMpiIo,
    /// Calls of a key-value store.
    Mdhim,
    /// Counters of Cray's network.
    CrayNetwork,
    /// Calls of MPI.
    Mpi,
    /// Bytes over time, per rank.
    HeatMap,
    /// Calls of DAOS by its file system.
    Dfs,
    /// Calls of DAOS on objects.
    Daos,
}

impl Module {
    /// Every one, in the order of their numbers.
    pub const ALL: [Module; 17] = [
        Module::Posix,
        Module::MpiIo,
        Module::H5File,
        Module::H5Dataset,
        Module::PnetcdfFile,
        Module::PnetcdfVariable,
        Module::BlueGene,
        Module::Lustre,
        Module::Stdio,
        Module::DxtPosix,
        Module::DxtMpiIo,
        Module::Mdhim,
        Module::CrayNetwork,
        Module::Mpi,
        Module::HeatMap,
        Module::Dfs,
        Module::Daos,
    ];

    /// As Darshan calls it.
    pub const fn name(self) -> &'static str {
        match self {
            Module::Posix => "POSIX",
            Module::MpiIo => "MPI-IO",
            Module::H5File => "H5F",
            Module::H5Dataset => "H5D",
            Module::PnetcdfFile => "PNETCDF_FILE",
            Module::PnetcdfVariable => "PNETCDF_VAR",
            Module::BlueGene => "BG/Q",
            Module::Lustre => "LUSTRE",
            Module::Stdio => "STDIO",
            Module::DxtPosix => "DXT_POSIX",
            Module::DxtMpiIo => "DXT_MPIIO",
            Module::Mdhim => "MDHIM",
            Module::CrayNetwork => "APXC",
            Module::Mpi => "APMPI",
            Module::HeatMap => "HEATMAP",
            Module::Dfs => "DFS",
            Module::Daos => "DAOS",
        }
    }

    /// Its number; none where the format had no such module yet. Two came in between over time.
    pub(super) fn number(self, format: Format) -> Option<usize> {
        let latest = self as usize + 1;
        let later = |than: Module| usize::from(self > than);
        match (self, format.minor) {
            (_, 41..) => Some(latest),
            (Module::PnetcdfVariable, _) | (Module::H5Dataset, ..20) => None,
            (_, 20..) => Some(latest - later(Module::PnetcdfVariable)),
            _ => Some(latest - later(Module::PnetcdfVariable) - later(Module::H5Dataset)),
        }
        .filter(|number| *number < format.layout().modules)
    }
}

impl fmt::Display for Module {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
