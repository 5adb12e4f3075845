//! One run: a workload, or any programs, on a platform; what it took and what every part did.
//!
//! [`run`] is the way in for workloads, [`simulate`] for programs of one's own (imported traces,
//! programs written in Python). Both are deterministic: equal arguments give equal outcomes.

use super::described::Workload;
use super::outcome::{ApplicationOutcome, CacheOutcome, FileSystemOutcome, LinkOutcome};
use super::outcome::{Outcome, ServerOutcome, TrafficOutcome};
use super::recorded_run::RecordedRun;
use super::run_of::Run;
use super::staged::Staged;
use crate::cluster::{Cluster, FileState, Order, PolicyOverrides, Progress, RunError, Setup};
use crate::file_system::{self, Configuration, Costs, FileSystem};
use crate::platform::Platform;
use crate::program::Program;
use crate::queue::{Ordered, Published};
use crate::scenario::{Faults, Scenario};
use iolab_policy::collective::{CollectiveKind, CollectiveSelection};
use iolab_policy::insitu::StrategySpec;
use iolab_vocab::{Nanos, Refusal, Seed};
use std::ops::ControlFlow;

/// How to run.
#[derive(Clone, Debug)]
pub struct Settings {
    /// What decides among simultaneous events.
    pub order: Order,
    /// Shuffles simultaneous events; 0 leaves them as the order has them.
    pub tie_seed: Seed,
    /// Cache layer of every server; by itself each server has the platform's.
    pub cache: Option<String>,
    /// Which algorithm carries out which collective command.
    pub collectives: CollectiveSelection,
    /// In-situ strategies that the accesses of every process go through, the first one next to the
    /// program.
    pub strategies: Vec<StrategySpec>,
    /// What goes wrong.
    pub faults: Option<Scenario>,
    /// Keep what every part did and when, as [`Outcome::trace`].
    pub record: bool,
    /// Servers are those of this parallel file system, not those of the cluster's model.
    pub file_system: Option<Configuration>,
}

impl Default for Settings {
    fn default() -> Settings {
        let collectives = CollectiveSelection::default();
        let (order, tie_seed) = (Order::Documented, Seed(0));
        Settings {
            order,
            tie_seed,
            cache: None,
            collectives,
            strategies: Vec::new(),
            faults: None,
            record: false,
            file_system: None,
        }
    }
}

/// Programs and their files, with names for results.
pub struct Job {
    /// Name and size at the start of each file.
    pub files: Vec<(String, u64)>,
    /// Name and program of each application; their processes fill the platform's clients in order.
    pub applications: Vec<(String, Box<dyn Program>)>,
}

/// Events between two looks at the progress: about a tenth of a second.
const EVENTS_PER_LOOK: u64 = 1 << 20;

/// Runs a workload on a platform.
///
/// # Errors
/// What is wrong with the platform or the settings, or who waits for whom in a hang.
pub fn run(
    workload: &Workload,
    platform: &Platform,
    settings: &Settings,
) -> Result<Outcome, Refusal> {
    run_watched(workload, platform, settings, &mut |_| ControlFlow::Continue(()))
}

/// The same; `watch` is told the progress now and then and may stop the run.
///
/// # Errors
/// As for [`run`], and when stopped.
pub fn run_watched(
    workload: &Workload,
    platform: &Platform,
    settings: &Settings,
    watch: &mut dyn FnMut(Progress) -> ControlFlow<()>,
) -> Result<Outcome, Refusal> {
    simulate(prepare(workload, platform)?, platform, settings, watch)
}

/// Only clusters can run programs.
fn check(platform: &Platform) -> Result<(), Refusal> {
    if platform.nodes.is_empty() {
        return Err(Refusal {
            message: format!("platform `{}` has no nodes", platform.name),
            hint: "give a cluster: a preset such as classic-hdd, or a file with [[nodes]]"
                .to_owned(),
        });
    }
    platform.check()
}

/// The programs of a workload on this platform.
///
/// # Errors
/// What is wrong with the platform, or that it has fewer clients than the workload ranks.
pub fn prepare(workload: &Workload, platform: &Platform) -> Result<Job, Refusal> {
    check(platform)?;
    if workload.rank_count() > platform.client_count() {
        let (wanted, clients) = (workload.rank_count(), platform.client_count());
        return Err(Refusal {
            message: format!("the workload has {wanted} ranks, but platform `{}` has {clients} clients", platform.name),
            hint: "give the platform more client nodes or `clients` per node, or the workload fewer ranks".to_owned(),
        });
    }
    let mut speeds = platform.client_speeds();
    let mut applications = Vec::new();
    for application in &workload.applications {
        let speeds = speeds.by_ref().take(application.rank_count as usize).collect();
        applications.push((application.name.clone(), application.program(speeds)));
    }
    let files = workload.files.iter().map(|file| (file.name.clone(), file.bytes)).collect();
    Ok(Job { files, applications })
}

/// Runs programs on a platform.
///
/// # Errors
/// As for [`run_watched`].
pub fn simulate(
    job: Job,
    platform: &Platform,
    settings: &Settings,
    watch: &mut dyn FnMut(Progress) -> ControlFlow<()>,
) -> Result<Outcome, Refusal> {
    simulate_with(job, platform, settings, Box::new(()), watch)
}

/// The same, with what parts `own` makes in place of the catalogues'.
///
/// # Errors
/// As for [`run_watched`].
pub fn simulate_with(
    job: Job,
    platform: &Platform,
    settings: &Settings,
    own: Box<dyn PolicyOverrides>,
    watch: &mut dyn FnMut(Progress) -> ControlFlow<()>,
) -> Result<Outcome, Refusal> {
    check(platform)?;
    if platform.server_count() == 0 && !job.files.is_empty() {
        return Err(Refusal {
            message: format!("there are files, but platform `{}` has no server", platform.name),
            hint: "give a group of nodes a `server`".to_owned(),
        });
    }
    let staged = |program: Box<dyn Program>| match settings.strategies.is_empty() {
        true => program,
        false => Box::new(Staged::new(program, settings.strategies.clone(), &job.files)),
    };
    let applications = job.applications.into_iter();
    let (names, programs): (Vec<_>, Vec<_>) =
        applications.map(|(name, program)| (name, staged(program))).unzip();
    let scenario = settings.faults.as_ref();
    let faults = scenario.map(|scenario| scenario.resolve(platform)).transpose()?;
    let files: Vec<String> = job.files.iter().map(|file| file.0.clone()).collect();
    let recorded = settings.record.then_some(files);
    let instance = settings.file_system.as_ref();
    let watched = Watched { names, recorded, platform, faults, instance, watch };
    if let Some(configuration) = instance {
        check_choices(settings)?;
        let setup = file_system::Setup {
            configuration: configuration.clone(),
            costs: Costs::default(),
            collectives: settings.collectives,
            files: job.files,
            before: file_system::Before::OnDevices,
            programs,
        };
        return watched.run(FileSystem::build(platform, setup, Ordered::new(settings.tie_seed))?);
    }
    let setup = Setup {
        order: settings.order,
        cache: settings.cache.clone(),
        collectives: settings.collectives,
        files: job.files.iter().map(|&(_, bytes)| FileState { bytes }).collect(),
        programs,
    };
    match (settings.order, settings.tie_seed) {
        (Order::Published, Seed(0)) => {
            watched.run(Cluster::build_with(platform, setup, Published::new(), own)?)
        }
        (_, seed) => watched.run(Cluster::build_with(platform, setup, Ordered::new(seed), own)?),
    }
}

/// What is chosen for the cluster's own model means nothing on a file system.
fn check_choices(settings: &Settings) -> Result<(), Refusal> {
    let usual = CollectiveSelection::default();
    let file = CollectiveKind::File;
    let chosen = [
        ("a cache layer", settings.cache.is_some()),
        ("the published order", settings.order == Order::Published),
        (
            "an algorithm of collective accesses",
            settings.collectives.of(file).name != usual.of(file).name,
        ),
    ];
    match chosen.iter().find(|choice| choice.1) {
        None => Ok(()),
        Some((what, _)) => Refusal::refuse(
            format!("{what} does nothing on a parallel file system"),
            "its servers have their own cache, and carry out collective accesses themselves",
        ),
    }
}

struct Watched<'a> {
    names: Vec<String>,
    /// Names of the files, if a trace is wanted.
    recorded: Option<Vec<String>>,
    platform: &'a Platform,
    faults: Option<Faults>,
    instance: Option<&'a Configuration>,
    watch: &'a mut dyn FnMut(Progress) -> ControlFlow<()>,
}

impl Watched<'_> {
    fn run(self, mut cluster: impl Run) -> Result<Outcome, Refusal> {
        if let Some(faults) = &self.faults {
            cluster.inject(faults);
        }
        if self.recorded.is_some() {
            cluster.record();
        }
        cluster.start();
        while cluster.advance(EVENTS_PER_LOOK) {
            if (self.watch)(cluster.progress()).is_break() {
                return Err(Refusal {
                    message: format!(
                        "the run was stopped at {} s of simulated time",
                        cluster.progress().now.seconds()
                    ),
                    hint: "give it more time, or a smaller workload".to_owned(),
                });
            }
        }
        let end = cluster.verdict().map_err(|error| self.told(error))?;
        let mut outcome = self.outcome(end, &cluster);
        if let (Some(files), Some(recording)) = (&self.recorded, cluster.take_recording()) {
            let caches = outcome.file_system.iter().flat_map(|one| &one.caches);
            let recorded_run = RecordedRun {
                applications: &outcome.applications,
                files,
                platform: self.platform,
                caches: caches.map(|cache| cache.name.as_str()).collect(),
            };
            outcome.trace = Some(recorded_run.trace(recording, end));
        }
        Ok(outcome)
    }

    fn outcome(&self, end: Nanos, cluster: &impl Run) -> Outcome {
        let applications = self.names.iter().zip(cluster.applications()).map(
            |(name, (program, end)): (_, (&dyn Program, _))| {
                let (rank_count, name) = (program.rank_count(), name.clone());
                let (phases, notes) = (program.phases(), program.notes());
                ApplicationOutcome { name, rank_count, end, phases, notes }
            },
        );
        let servers = self.platform.server_names().into_iter().zip(cluster.server_totals());
        let links = self.platform.link_names().into_iter().zip(cluster.link_totals());
        Outcome {
            end,
            event_count: cluster.event_count(),
            event_hash: cluster.event_hash(),
            lost_packet_count: cluster.lost_packet_count(),
            applications: applications.collect(),
            servers: servers.map(|(name, totals)| ServerOutcome { name, totals }).collect(),
            links: links.map(|(name, (kind, totals))| LinkOutcome { name, kind, totals }).collect(),
            file_system: self.instance.map(|instance| self.file_system(instance, cluster)),
            trace: None,
        }
    }

    fn file_system(&self, instance: &Configuration, run: &impl Run) -> FileSystemOutcome {
        let names = self.platform.server_names();
        let servers: Vec<TrafficOutcome> = run
            .traffic()
            .into_iter()
            .map(|(place, totals)| TrafficOutcome { name: names[place].clone(), totals })
            .collect();
        let nodes: Vec<String> = self.platform.node_names().collect();
        let caches = run.caches().into_iter();
        let cache = |(node, totals): (usize, _)| CacheOutcome { name: nodes[node].clone(), totals };
        let layout = instance.layout(servers.len() as u32);
        FileSystemOutcome {
            name: instance.instance.name.clone(),
            durability: instance.instance.durability,
            layout: layout.map_or_else(|_| String::new(), |layout| layout.to_string()),
            servers,
            caches: caches.map(cache).collect(),
        }
    }

    /// A failed run, with applications and servers by name instead of by number.
    fn told(&self, mut error: RunError) -> Refusal {
        if let RunError::Deadlock(deadlock) = &mut error {
            deadlock.server_names = self.platform.server_names();
        }
        if let RunError::Late(part) = error {
            let mut late = Refusal::from(error);
            late.message = late.message.replace(&part.to_string(), &part.name_on(self.platform));
            return late;
        }
        let mut error = Refusal::from(error);
        for (index, name) in self.names.iter().enumerate() {
            let (number, name) =
                (format!("application {index},"), format!("application `{name}`,"));
            error.message = error.message.replace(&number, &name);
        }
        error
    }
}
