//! The MPI adapter: found, or compiled by the site's mpicc on first use.
//!
//! Which MPI a job belongs to is told by the launcher's environment; the mpicc must be of the same
//! family. What was compiled is kept in the user's cache, named after everything that went into it.

use crate::CommError;
use iolab_host::own_place;
use std::collections::hash_map::DefaultHasher;
use std::env;
use std::ffi::OsStr;
use std::fs;
use std::hash::{Hash, Hasher};
use std::path::{Path, PathBuf};
use std::process::Command;

const SOURCE: &str = include_str!("../adapter/iolab_mpi.c");

/// Libraries that understand each other's launchers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Family {
    /// MPICH and its relatives (hydra, PMI).
    Mpich,
    /// Open MPI (orterun, prterun, PMIx).
    OpenMpi,
}

impl Family {
    /// For messages.
    pub fn name(self) -> &'static str {
        match self {
            Family::Mpich => "MPICH",
            Family::OpenMpi => "Open MPI",
        }
    }

    fn compilers(self) -> [&'static str; 3] {
        match self {
            Family::Mpich => ["mpicc", "mpicc.mpich", "mpicc_abi"],
            Family::OpenMpi => ["mpicc", "mpicc.openmpi", "ompicc"],
        }
    }
}

/// What the environment says about how this process was started.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Launch {
    /// Whose launcher it was.
    pub family: Family,
    /// How many ranks it started.
    pub ranks: u32,
    /// Which of them this process is.
    pub rank: u32,
}

/// The launch by mpiexec, if this process was started by one.
pub fn launch() -> Option<Launch> {
    let number = |name: &str| env::var(name).ok()?.parse().ok();
    let by = |family, size: &str, rank: &str| {
        Some(Launch { family, ranks: number(size)?, rank: number(rank)? })
    };
    by(Family::OpenMpi, "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_RANK")
        .or_else(|| by(Family::Mpich, "PMI_SIZE", "PMI_RANK"))
}

/// An adapter ready to be loaded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Adapter {
    /// The shared object.
    pub path: PathBuf,
    /// The compiler it was made with.
    pub compiler: PathBuf,
    /// Whose headers that compiler uses.
    pub family: Family,
    /// Whether it was made just now.
    pub fresh: bool,
}

/// The adapter of a family: from the cache, or compiled now. `IOLAB_MPICC` overrides the search.
///
/// # Errors
/// Naming what was looked for, or what the compiler said.
pub(crate) fn adapter(family: Family) -> Result<Adapter, CommError> {
    if let Some(named) = env::var_os("IOLAB_MPICC") {
        let compiler = find(&named).ok_or_else(|| {
            CommError::Mpi(format!("IOLAB_MPICC names {}, not found", named.display()))
        })?;
        let family = family_of(&compiler).unwrap_or(family);
        return make(compiler, family);
    }
    let names = family.compilers();
    let mut found = names.iter().filter_map(|name| find(OsStr::new(name)));
    match found.find(|compiler| family_of(compiler) == Some(family)) {
        Some(compiler) => make(compiler, family),
        None => Err(CommError::Mpi(format!(
            "no mpicc of {} found (looked for {}); install its compiler or set IOLAB_MPICC",
            family.name(),
            names.join(", ")
        ))),
    }
}

/// The adapters of all families that have a compiler here.
pub fn adapters() -> Vec<(Family, Result<Adapter, CommError>)> {
    [Family::Mpich, Family::OpenMpi].map(|family| (family, adapter(family))).into()
}

fn find(name: &OsStr) -> Option<PathBuf> {
    let path = Path::new(name);
    if path.components().count() > 1 {
        return path.is_file().then(|| path.to_owned());
    }
    let folders = env::var_os("PATH")?;
    env::split_paths(&folders).map(|folder| folder.join(name)).find(|path| path.is_file())
}

/// Open MPI's wrapper knows `-showme`, MPICH's `-show`.
fn family_of(compiler: &Path) -> Option<Family> {
    let knows = |flag: &str| {
        let output = Command::new(compiler).arg(flag).output();
        output.is_ok_and(|output| output.status.success())
    };
    match () {
        () if knows("-showme:version") => Some(Family::OpenMpi),
        () if knows("-show") => Some(Family::Mpich),
        () => None,
    }
}

fn make(compiler: PathBuf, family: Family) -> Result<Adapter, CommError> {
    let folder = cache_folder()?;
    let path = folder.join(format!("mpi-{:016x}.so", key(&compiler)));
    if path.is_file() {
        return Ok(Adapter { path, compiler, family, fresh: false });
    }
    let failed = |what: &str, error: &dyn std::fmt::Display| {
        CommError::Mpi(format!("cannot build the adapter: {what}: {error}"))
    };
    fs::create_dir_all(&folder).map_err(|e| failed(&folder.display().to_string(), &e))?;
    // All ranks may come here at once: each compiles under its own name, the last rename wins.
    let stem = folder.join(format!("mpi-{}", std::process::id()));
    let (source, made) = (stem.with_extension("c"), stem.with_extension("so"));
    fs::write(&source, SOURCE).map_err(|e| failed(&source.display().to_string(), &e))?;
    let output = Command::new(&compiler)
        .args(["-O2", "-fPIC", "-shared"])
        .arg(&source)
        .arg("-o")
        .arg(&made)
        .output()
        .map_err(|e| failed(&compiler.display().to_string(), &e))?;
    let _ = fs::remove_file(&source);
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        return Err(failed(&compiler.display().to_string(), &said.trim()));
    }
    fs::rename(&made, &path).map_err(|e| failed(&path.display().to_string(), &e))?;
    Ok(Adapter { path, compiler, family, fresh: true })
}

/// Changes with the source, the compiler and what the compiler would do.
fn key(compiler: &Path) -> u64 {
    let mut hasher = DefaultHasher::new();
    SOURCE.hash(&mut hasher);
    fs::canonicalize(compiler).unwrap_or_else(|_| compiler.to_owned()).hash(&mut hasher);
    let shown = Command::new(compiler).arg("-show").output();
    shown.map(|output| output.stdout).unwrap_or_default().hash(&mut hasher);
    hasher.finish()
}

/// A place only this user writes to: what lies in it is loaded into the process.
fn cache_folder() -> Result<PathBuf, CommError> {
    let named = |name: &str| env::var_os(name).filter(|value| !value.is_empty());
    let chosen = named("IOLAB_CACHE")
        .map(PathBuf::from)
        .or_else(|| named("XDG_CACHE_HOME").map(|folder| PathBuf::from(folder).join("iolab")))
        .or_else(|| named("HOME").map(|folder| PathBuf::from(folder).join(".cache/iolab")));
    match chosen {
        Some(folder) => Ok(folder),
        None => own_place::on_this_node()
            .map(|place| place.join("cache"))
            .map_err(|error| CommError::Mpi(format!("no place for the adapter: {error}"))),
    }
}
