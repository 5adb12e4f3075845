//! What calls of MPI-IO, HDF5 and NetCDF come to on each file: what strategies of these layers would find to do.

use crate::analysis::Analysis;
use iolab_trace::{Event, Function, Layer, Trace};
use std::collections::{BTreeMap, BTreeSet};

/// From this size on an independent write gains nothing by going out with others; measured, see `collect`.
const SMALL_BYTES: u64 = 64 << 10;
/// Accesses that move that much more than they ask for read or write chunks over and over.
const AMPLIFICATION: f64 = 1.5;

/// Calls of the layers above POSIX on one file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Above {
    /// Blocking collective reads and writes.
    pub(super) collective: u64,
    /// Independent writes below [`SMALL_BYTES`], blocking or not.
    pub(super) small_independent_writes: u64,
    /// Independent reads and writes that a view scatters over the file.
    pub(super) scattered: u64,
    /// Processes that have opened it through MPI-IO.
    pub(super) rank_count: u64,
    /// Reads and writes of datasets of HDF5.
    pub(super) dataset_accesses: u64,
    /// Those of datasets of HDF5 that move chunks more than once.
    pub(super) repeated_chunks: u64,
    /// HDF5's own small writes between those of data.
    pub(super) metadata_between: u64,
    /// Reads and writes of variables of NetCDF that move chunks more than once.
    pub(super) repeated_variable_chunks: u64,
    /// Writes of variables of NetCDF.
    pub(super) variable_writes: u64,
    /// Returns of a file of NetCDF to its definitions.
    pub(super) redefinitions: u64,
}

/// All files with such calls, by their place in the header.
pub(super) fn above(trace: &Trace, analysis: &Analysis) -> BTreeMap<usize, Above> {
    let mut files: BTreeMap<usize, Above> = BTreeMap::new();
    let (mut opened, mut scattered) = (BTreeSet::new(), BTreeSet::new());
    for event in &trace.events {
        let Some(file) = event.file.index() else { continue };
        let is_above = matches!(event.function.layer(), Layer::Mpiio | Layer::Hdf5 | Layer::Netcdf);
        if !is_above || event.result < 0 {
            continue;
        }
        let of_file = files.entry(file).or_default();
        of_file.add(event);
        if event.function == Function::MPI_FILE_OPEN && opened.insert((file, event.process)) {
            of_file.rank_count += 1;
        }
        if is_piece_of_independent(event, trace) && scattered.insert(event.parent) {
            of_file.scattered += 1;
        }
    }
    for (at, both) in analysis.objects.datasets() {
        let Some(object) = analysis.header.objects.get(at) else { continue };
        let Some(of_file) = files.get_mut(&(object.file as usize)) else { continue };
        let moves_again = |accesses: &crate::objects::Accesses| {
            !object.chunk.is_empty()
                && accesses.amplification().is_some_and(|ratio| ratio >= AMPLIFICATION)
        };
        let hits = both.iter().filter(|(_, accesses)| moves_again(accesses));
        let repeated: u64 = hits.map(|(_, accesses)| accesses.count).sum();
        match object.kind.as_str() {
            "variable" => of_file.repeated_variable_chunks += repeated,
            _ => of_file.repeated_chunks += repeated,
        }
    }
    for (file, known) in analysis.objects.files() {
        if let Some(of_file) = files.get_mut(&file).filter(|_| known.layer == Layer::Hdf5) {
            of_file.metadata_between = known.between.count;
        }
    }
    files
}

impl Above {
    fn add(&mut self, event: &Event) {
        match event.function {
            Function::MPI_FILE_READ_ALL | Function::MPI_FILE_WRITE_ALL => self.collective += 1,
            Function::MPI_FILE_WRITE | Function::MPI_FILE_IWRITE
                if event.moved_bytes() < SMALL_BYTES =>
            {
                self.small_independent_writes += 1;
            }
            Function::H5D_READ | Function::H5D_WRITE => self.dataset_accesses += 1,
            Function::NC_REDEF | Function::NCMPI_REDEF => self.redefinitions += 1,
            Function::NC_PUT_VAR
            | Function::NC_PUT_VAR1
            | Function::NC_PUT_VARA
            | Function::NC_PUT_VARS
            | Function::NC_PUT_VARM => self.variable_writes += 1,
            _ => {}
        }
    }
}

/// Whether it is one of the places to which a view has brought an independent access.
fn is_piece_of_independent(event: &Event, trace: &Trace) -> bool {
    let call = || trace.events.get(usize::try_from(event.parent).ok()?);
    let is_independent = |it: &Event| {
        use Function as F;
        matches!(
            it.function,
            F::MPI_FILE_READ | F::MPI_FILE_WRITE | F::MPI_FILE_IREAD | F::MPI_FILE_IWRITE
        )
    };
    event.function == Function::VIEW_PIECE && call().is_some_and(is_independent)
}
