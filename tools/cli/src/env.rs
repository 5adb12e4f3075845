//! `iolab env`: the variables that do without `iolab record` and `iolab run` around a program, as a shell, a batch
//! system, a container or a module file takes them.
//!
//! What the variables mean is in `docs/format/environment.md`. Strategies that need a launcher, because
//! what a killed process held has to be written out by somebody, are refused here.

mod shell;

pub(crate) use shell::sh_word;

use crate::above::{self, Finder};
use crate::failure::Failure;
use crate::profile;
use crate::storage_block;
use clap::{Args, ValueEnum};
use iolab_host::launch;
use iolab_policy::insitu::StrategySpec;
use iolab_policy::insitu::stacking::{self, Consent, Setting};
use shell::{Shell, Variable};
use std::fs::{self, DirBuilder};
use std::io::Read;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Print the variables that record a program, or apply strategies to its files, without a launcher of iolab's
/// around it.
///
/// `env $(iolab env --record DIR) COMMAND`, then `iolab merge DIR -o RUN.iot`. Each time, they name another run.
#[derive(Args)]
pub(crate) struct Arguments {
    /// A profile, whose strategies are applied.
    #[arg(
        value_name = "@PROFILE.toml",
        value_parser = profile::named,
        groups = ["does", "strategies"],
        conflicts_with = "apply"
    )]
    profile: Option<PathBuf>,
    /// A strategy or a stack, as in `iolab run`; none that needs a launcher.
    #[arg(long, value_name = "STRATEGY", groups = ["does", "strategies"])]
    apply: Vec<String>,
    /// Take a strategy although it gives this up: `weaker-durability`, `age`, `late-visibility`,
    /// `undefined-bytes`.
    #[arg(long, value_name = "WORD", requires = "strategies")]
    allow: Vec<String>,
    /// Record into spools in this directory, one for each node and run.
    #[arg(long, value_name = "DIR", group = "does")]
    record: Option<PathBuf>,
    /// Layers to record. [default: posix,stdio]
    #[arg(long, value_delimiter = ',', value_name = "LAYER,…", requires = "record")]
    layers: Vec<Layer>,
    /// Only in programs of these names.
    #[arg(long, value_name = "PROGRAM,…")]
    only: Option<String>,
    /// In no program of these names.
    #[arg(long, value_name = "PROGRAM,…")]
    never: Option<String>,
    /// For whom they are written; without it as words for `env`.
    #[arg(long, value_name = "SHELL")]
    shell: Option<Shell>,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Layer {
    Posix,
    Stdio,
    Mpi,
    Hdf5,
    Netcdf,
}

impl Layer {
    const fn name(self) -> &'static str {
        match self {
            Layer::Posix => "posix",
            Layer::Stdio => "stdio",
            Layer::Mpi => "mpi",
            Layer::Hdf5 => "hdf5",
            Layer::Netcdf => "netcdf",
        }
    }
}

pub(crate) fn run(arguments: &Arguments) -> Result<ExitCode, Failure> {
    if arguments.profile.is_none() && arguments.apply.is_empty() && arguments.record.is_none() {
        return Err(Failure::new("nothing to record and nothing to apply")
            .hint("give --record DIR, --apply STRATEGY or @PROFILE.toml"));
    }
    let shell = arguments.shell.unwrap_or(Shell::Words);
    let (specs, consent) = applied(arguments)?;
    let mut variables = vec![Variable::preload(libraries(&arguments.layers, &specs)?)?];
    let mut add = |name, value: String| variables.push(Variable::new(name, value));
    if let Some(directory) = &arguments.record {
        add("IOLAB_RECORD", made(directory)?);
        if !shell.is_kept() {
            add("IOLAB_RUN_ID", run_id()?);
        }
        if !arguments.layers.is_empty() {
            let names: Vec<&str> = arguments.layers.iter().map(|layer| layer.name()).collect();
            // No comma: those who take lists of variables divide them there.
            add("IOLAB_LAYERS", names.join(":"));
        }
    }
    if !specs.is_empty() {
        add("IOLAB_APPLY", StrategySpec::join(&specs));
        if !consent.is_empty() {
            add("IOLAB_ALLOW", consent);
        }
    }
    for (name, list) in [("IOLAB_ONLY", &arguments.only), ("IOLAB_NEVER", &arguments.never)] {
        if let Some(list) = list {
            add(name, list.replace(',', ":"));
        }
    }
    if shell.is_here() {
        add("IOLAB_FILTERS", launch::filters().to_string());
    }
    let places: Vec<String> = arguments.record.iter().map(|it| it.display().to_string()).collect();
    say_line!("{}", shell.text(&variables, &places)?);
    Ok(ExitCode::SUCCESS)
}

/// The libraries to preload, that of the hooks first.
fn libraries(layers: &[Layer], specs: &[StrategySpec]) -> Result<Vec<PathBuf>, Failure> {
    let recorded: [(bool, Finder); 3] = [
        (layers.contains(&Layer::Mpi), launch::find_mpi_library),
        (layers.contains(&Layer::Hdf5), launch::find_hdf5_library),
        (layers.contains(&Layer::Netcdf), launch::find_netcdf_library),
    ];
    above::preloaded(&recorded, specs)
}

/// The directory for spools, which every node has to reach by this path.
fn made(directory: &Path) -> Result<String, Failure> {
    let failed = |error: std::io::Error| {
        Failure::new(format!("{}: {error}", directory.display()))
            .hint("give a directory that can be made and that every node reaches by one path")
    };
    if !directory.is_dir() {
        DirBuilder::new().recursive(true).mode(0o700).create(directory).map_err(failed)?;
    }
    let path = directory.canonicalize().map_err(failed)?;
    path.into_os_string().into_string().map_err(|path| {
        Failure::new(format!("{} is no text", path.display())).hint("give another directory")
    })
}

/// A name for the run that no other has.
fn run_id() -> Result<String, Failure> {
    let mut bytes = [0; 6];
    fs::File::open("/dev/urandom")
        .and_then(|mut file| file.read_exact(&mut bytes))
        .map_err(|error| Failure::new(format!("/dev/urandom: {error}")))?;
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}

/// The strategies, and what was consented to.
fn applied(arguments: &Arguments) -> Result<(Vec<StrategySpec>, String), Failure> {
    let specs = match &arguments.profile {
        Some(path) => profile::for_command(path, &[])?.unwrap_or_default(),
        None => StrategySpec::parse_each_on(&arguments.apply, &storage_block::of_selection())?,
    };
    let consent = Consent::of(&arguments.allow, false, false)?;
    for remark in stacking::check(&specs, Setting::Loaded, consent)? {
        eprintln!("iolab: {remark}");
    }
    let needs_launcher = |spec: &&StrategySpec| spec.owns_files() || spec.plan.is_some();
    if let Some(spec) = specs.iter().find(needs_launcher) {
        return Err(Failure::new(format!(
            "{} needs a launcher, which writes out what a killed process held",
            spec.text
        ))
        .hint(format!("iolab run --apply '{}' -- COMMAND", spec.text)));
    }
    Ok((profile::rooted_here(specs)?, consent.text()))
}
