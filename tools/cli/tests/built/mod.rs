//! The libraries that are preloaded. Cargo does not build another package's shared library for a
//! test, and building them from within a test would choose other features and compile half of the
//! workspace again: they have to be there, and to be those of the sources at hand.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::time::SystemTime;

/// The one that holds recorder and strategies; those for MPI, HDF5, NetCDF and names lie beside it, and all beside
/// the command.
///
/// # Panics
/// If one is missing or older than a source of it, with what to do.
pub(crate) fn library() -> &'static Path {
    static LIBRARY: OnceLock<PathBuf> = OnceLock::new();
    LIBRARY.get_or_init(|| {
        let folder = Path::new(env!("CARGO_BIN_EXE_iolab")).parent().unwrap();
        for name in [
            "libiolab_intercept",
            "libiolab_mpi",
            "libiolab_hdf5",
            "libiolab_netcdf",
            "libiolab_names",
        ] {
            let library = folder.join(name).with_extension("so");
            if let Some(problem) = problem(&library) {
                panic!("{}: {problem}; run cargo build --workspace", library.display());
            }
        }
        folder.join(iolab_host::launch::LIBRARY_NAME)
    })
}

/// Why a library can't be used: cargo lists beside it what it was made of.
fn problem(library: &Path) -> Option<String> {
    let Some(made) = changed(library) else { return Some("is missing".to_owned()) };
    let Ok(list) = fs::read_to_string(library.with_extension("d")) else {
        return Some("has no list of its sources".to_owned());
    };
    let (_, sources) = list.split_once(": ")?;
    let newer = |source: &&str| changed(Path::new(source)).is_some_and(|changed| changed > made);
    sources.split_whitespace().find(newer).map(|source| format!("is older than {source}"))
}

fn changed(path: &Path) -> Option<SystemTime> {
    fs::metadata(path).and_then(|metadata| metadata.modified()).ok()
}
