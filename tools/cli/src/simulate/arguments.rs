//! The flags of `iolab simulate`, and which of them mean something together.

use crate::failure::Failure;
use crate::output::{self, Output};
use crate::platform_file::read_platform;
use crate::storage_block;
use crate::ties::{OrderName, Ties};
use clap::{ArgGroup, Args};
use iolab_policy::insitu::StrategySpec;
use iolab_sim::platform::Platform;
use std::path::{Path, PathBuf};

/// Predict what a recorded program or a described workload would take on a platform.
#[derive(Args)]
#[command(group(ArgGroup::new("what").required(true).args(["trace", "workload", "template", "show"])))]
pub(crate) struct Arguments {
    /// The recorded program
    #[arg(long, value_name = "RUN.iot|X.proj")]
    pub(super) trace: Option<PathBuf>,
    /// A workload in TOML: files, applications, phases, commands; or a log of Darshan, reconstructed from its counters
    #[arg(long, value_name = "W.toml|X.darshan")]
    pub(super) workload: Option<PathBuf>,
    /// Print a commented workload
    #[arg(long)]
    pub(super) template: bool,
    /// Draw the platform: as text, or as a picture (to --output, or stdout)
    #[arg(long, value_name = "FORM", num_args = 0..=1, default_missing_value = "text", value_parser = ["text", "svg", "html"])]
    pub(super) show: Option<String>,
    /// Platform file, or the name of a preset
    #[arg(long, value_name = "P.toml", required_unless_present = "template")]
    pub(super) platform: Option<String>,
    /// Strategies on top of the file system, as `iolab run` takes them; the first one is on top
    #[arg(long, value_name = "STRATEGY")]
    pub(super) apply: Vec<String>,
    /// Cache layer of the servers of a cluster platform (none, write-behind, …)
    #[arg(long)]
    pub(super) cache: Option<String>,
    /// Parallel file system on the platform's servers, as its configuration says it
    #[arg(long, value_name = "F.toml")]
    pub(super) file_system: Option<PathBuf>,
    /// Beside each kind of call of a recorded run: how long it took, and how far the prediction is off
    #[arg(long, requires = "trace", requires = "file_system", conflicts_with = "faults")]
    pub(super) predict: bool,
    /// Time of calls that strategies leave as they were
    #[arg(long, default_value = "recorded", value_parser = ["recorded", "model"])]
    pub(super) durations: String,
    /// Files that exist before the run are not in the page cache
    #[arg(long)]
    pub(super) cold: bool,
    /// A workload's random patterns, instead of its own seed
    #[arg(long, conflicts_with = "trace")]
    pub(super) seed: Option<u64>,
    /// Where the simulated trace goes
    #[arg(short, long, value_name = "OUT.iot")]
    pub(super) output: Option<PathBuf>,
    /// Algorithm of a collective command, as in `allgather=ring`; a bare name is for file accesses
    #[arg(long, value_name = "NAME")]
    pub(super) collective: Vec<String>,
    /// What decides among simultaneous events
    #[arg(long, value_enum, default_value = "documented")]
    pub(super) order: OrderName,
    #[command(flatten)]
    pub(super) ties: Ties,
    /// Print everything as one table of comma-separated values
    #[arg(long, conflicts_with = "json")]
    pub(super) csv: bool,
    /// What goes wrong meanwhile; the run without it is told beside
    #[arg(long, value_name = "SCENARIO.toml")]
    pub(super) faults: Option<PathBuf>,
    /// Where what the strategies decided goes, one row per command
    #[arg(long, value_name = "FILE.iot")]
    pub(super) decisions: Option<PathBuf>,
    /// Print the summary as JSON
    #[arg(long)]
    pub(super) json: bool,
}

/// Traces that are written.
pub(super) struct Outputs {
    pub(super) trace: Option<Output>,
    pub(super) decisions: Option<Output>,
}

impl Arguments {
    /// Where traces go, seen to be possible before the simulation.
    pub(super) fn outputs(&self) -> Result<Outputs, Failure> {
        let mut inputs: Vec<&Path> = self.platform.iter().map(Path::new).collect();
        let files = [&self.trace, &self.workload, &self.faults, &self.file_system];
        inputs.extend(files.into_iter().flatten().map(PathBuf::as_path));
        let trace = Output::begin_if(self.output.as_deref(), "-o", &inputs)?;
        let decisions = Output::begin_if(self.decisions.as_deref(), "--decisions", &inputs)?;
        output::distinct(&trace.iter().chain(&decisions).collect::<Vec<_>>())?;
        Ok(Outputs { trace, decisions })
    }
}

/// Flags that were given and would be ignored.
pub(super) fn refuse(flags: &[(&str, bool)], whereabouts: &str, hint: &str) -> Result<(), Failure> {
    match flags.iter().find(|flag| flag.1) {
        None => Ok(()),
        Some((flag, _)) => {
            Err(Failure::new(format!("{flag} does nothing {whereabouts}")).hint(hint))
        }
    }
}

impl Arguments {
    /// What only means something where whole programs run on a cluster.
    pub(super) fn refuse_cluster_flags(&self) -> Result<(), Failure> {
        let flags = [
            ("--collective", !self.collective.is_empty()),
            ("--order", self.order != OrderName::Documented),
            ("--csv", self.csv),
            ("--faults", self.faults.is_some()),
            ("--file-system", self.file_system.is_some()),
        ];
        refuse(&flags, "for this trace", "it is for workloads and for traces with calls of MPI")
    }

    /// What only means something for the cluster's own servers and clients.
    pub(super) fn refuse_model_flags(&self) -> Result<(), Failure> {
        let flags = [
            ("--cache", self.cache.is_some()),
            ("--apply", !self.apply.is_empty()),
            ("--order published", self.order == OrderName::Published),
            ("--collective NAME", self.collective.iter().any(|name| !name.contains('='))),
        ];
        let hint = "a file system has its own clients, and servers that cache; `--collective \
                    KIND=NAME` chooses how messages go";
        refuse(&flags, "with --file-system", hint)
    }

    /// What only means something for recorded calls of POSIX.
    pub(super) fn refuse_posix_flags(&self) -> Result<(), Failure> {
        let flags = [
            ("--decisions", self.decisions.is_some()),
            ("--cold", self.cold),
            ("--durations", self.durations != "recorded"),
        ];
        let hint = "it is for traces with calls of POSIX alone; a cluster has strategies (--apply), \
                    cache layers (--cache) and collectives (--collective)";
        refuse(&flags, "here", hint)
    }

    /// The strategies, the first one on top.
    pub(super) fn strategies(&self, platform: &Platform) -> Result<Vec<StrategySpec>, Failure> {
        // Local storage has no stripes.
        let stripe_bytes = match platform.nodes.is_empty() {
            true => storage_block::USUAL_BYTES,
            false => platform.files.stripe_bytes.0,
        };
        crate::run::parse_for_scratch(&self.apply, &|_| Some(stripe_bytes))
    }

    /// The platform, which all but the template want.
    pub(super) fn platform(&self) -> Result<Platform, Failure> {
        read_platform(self.platform.as_deref().unwrap_or_default())
    }
}
