//! What `iolab run` says of strategies of layers above POSIX: what they did, or that no program came to that layer.

use crate::failure::Failure;
use crate::lines::Lines;
use crate::record::launch_failure;
use iolab_host::job::Job;
use iolab_host::launch::{self, LaunchError};
use iolab_policy::insitu::classes::Layer;
use iolab_policy::insitu::{StrategySpec, hdf5, mpiio, netcdf};
use std::path::PathBuf;
use std::process::Command;

/// Finds a library of ours.
pub(crate) type Finder = fn() -> Result<PathBuf, LaunchError>;

/// A layer whose strategies a library of its own hosts.
struct Hosted {
    layer: Layer,
    /// Where that library lies.
    library: Finder,
    /// The variable that names the file for its lines.
    variable: &'static str,
    /// What the lines say of the stages of these names; whether any program came to the layer, first.
    told: fn(&str, &[&str]) -> (bool, Vec<String>),
}

const LAYERS: [Hosted; 3] = [
    Hosted {
        layer: Layer::NetCdf,
        library: launch::find_netcdf_library,
        variable: "IOLAB_NETCDF_LOG",
        told: |text, _| {
            let account = netcdf::Account::of(text);
            (account.has_library(), account.lines("nc", "NetCDF"))
        },
    },
    Hosted {
        layer: Layer::Hdf5,
        library: launch::find_hdf5_library,
        variable: "IOLAB_HDF5_LOG",
        told: |text, _| {
            let account = hdf5::Account::of(text);
            (account.has_library(), account.lines("h5", "HDF5"))
        },
    },
    Hosted {
        layer: Layer::MpiIo,
        library: launch::find_mpi_library,
        variable: "IOLAB_MPIIO_LOG",
        told: |text, stages| {
            let account = mpiio::Account::of(text);
            (account.has_mpi(), account.lines(stages))
        },
    },
];

/// The layers that these strategies are of.
fn layers_of(specs: &[StrategySpec]) -> impl Iterator<Item = &'static Hosted> + '_ {
    LAYERS.iter().filter(|hosted| specs.iter().any(|spec| spec.layer() == hosted.layer))
}

/// The libraries to be preloaded, each once: that of the hooks first, those of `others` that are wanted, and those that
/// host strategies.
pub(crate) fn preloaded(
    others: &[(bool, Finder)],
    specs: &[StrategySpec],
) -> Result<Vec<PathBuf>, Failure> {
    let others = others.iter().filter(|(is_wanted, _)| *is_wanted).map(|(_, find)| *find);
    let hosts = layers_of(specs).map(|hosted| hosted.library);
    let first: Finder = launch::find_library;
    let mut libraries = Vec::new();
    for find in [first].into_iter().chain(others).chain(hosts) {
        let library = find().map_err(launch_failure)?;
        if !libraries.contains(&library) {
            libraries.push(library);
        }
    }
    Ok(libraries)
}

/// What processes leave of a run.
pub(crate) struct Above {
    layers: Vec<(&'static Hosted, Vec<&'static str>, Lines)>,
    is_quiet: bool,
}

impl Above {
    /// Places for the processes of a command, which find them by their environment. None where nobody asked,
    /// or where none could be made.
    pub(crate) fn begin(
        command: &mut Command,
        specs: &[StrategySpec],
        is_quiet: bool,
        is_strict: bool,
    ) -> Option<Above> {
        if is_quiet && !is_strict {
            return None;
        }
        let mut layers = Vec::new();
        for hosted in layers_of(specs) {
            let of_it = specs.iter().filter(|spec| spec.layer() == hosted.layer);
            let mut stages: Vec<_> = of_it.map(|spec| spec.name).collect();
            stages.dedup();
            match Lines::begin(&format!("iolab-{}", hosted.layer)) {
                Ok(lines) => {
                    command.env(hosted.variable, lines.place());
                    layers.push((hosted, stages, lines));
                }
                Err(error) => {
                    let layer = hosted.layer;
                    eprintln!(
                        "iolab: warning: nothing will be told of strategies of {layer}: {error}"
                    );
                }
            }
        }
        (!layers.is_empty()).then_some(Above { layers, is_quiet })
    }

    /// Says it, once for all ranks of a job that have a run each; true when programs came to each of the layers.
    pub(crate) fn end(self, is_strict: bool) -> bool {
        let tells = Job::find().is_none_or(|job| job.rank == 0);
        let mut are_reached = true;
        for (hosted, stages, lines) in self.layers {
            let (is_reached, told) = match lines.end() {
                Ok(text) => (hosted.told)(&text, &stages),
                Err(error) => {
                    let layer = hosted.layer;
                    eprintln!("iolab: warning: nothing is known of strategies of {layer}: {error}");
                    (false, Vec::new())
                }
            };
            if tells && (!self.is_quiet || is_strict && !is_reached) {
                told.iter().for_each(|line| eprintln!("iolab: {line}"));
            }
            are_reached &= is_reached;
        }
        are_reached
    }
}
