//! Whatever programs do and whatever goes wrong: a run ends, with a result or with an error.

mod small_cluster;

use iolab_policy::collective::{CollectiveKind, CollectiveSelection};
use iolab_sim::cluster::{Cluster, Event, Order, RunError};
use iolab_sim::file_system::{self, Configuration, Costs, FileSystem};
use iolab_sim::platform::Platform;
use iolab_sim::program::{ANY_SOURCE, ANY_TAG, Command, FileOperation, Program, What};
use iolab_sim::queue::{EventQueue, Ordered, Published};
use iolab_sim::scenario::{Faults, Scenario};
use iolab_sim::workload::recorded::Recording;
use iolab_sim::workload::{Job, Line, Script, Settings, simulate};
use iolab_vocab::{Extent, Nanos, Random, Seed};
use small_cluster::*;
use std::fmt::Write;
use std::ops::ControlFlow;

const RANKS: u32 = 4;
const FILES: u64 = 2;

struct Maker(Random);

impl Maker {
    fn below(&mut self, limit: u64) -> u64 {
        self.0.below(limit)
    }

    /// Mostly something sensible.
    fn rank(&mut self) -> u32 {
        let one_too_many = u64::from(self.below(50) == 0);
        self.below(u64::from(RANKS) + one_too_many) as u32
    }

    fn source(&mut self) -> u32 {
        if self.below(4) == 0 { ANY_SOURCE } else { self.rank() }
    }

    fn tag(&mut self) -> u32 {
        if self.below(4) == 0 { ANY_TAG } else { self.below(2) as u32 }
    }

    fn bytes(&mut self) -> u64 {
        [0, 10, 102_400, 102_401, 1 << 20][self.below(5) as usize]
    }

    fn communicator(&mut self) -> u32 {
        if self.below(3) == 0 { self.below(3) as u32 } else { 0 }
    }

    fn list(&mut self) -> Vec<Extent> {
        let pieces = self.below(4);
        (0..pieces).map(|_| Extent::new(self.below(70 << 20), self.below(1 << 20))).collect()
    }

    /// What all ranks do, in the same order.
    fn together(&mut self) -> Command {
        let (root, bytes, communicator) = (self.below(4) as u32, self.bytes(), 0);
        let file = self.below(FILES) as u32;
        match self.below(12) {
            0 => FileOperation::Open.of(file),
            1 => FileOperation::Close.of(file),
            2 => FileOperation::ReadAll.of(file),
            3 => FileOperation::WriteAll.of(file),
            4 => What::barrier(communicator).awaited(),
            5 => What::Collective { kind: CollectiveKind::Broadcast, root, bytes, communicator }
                .awaited(),
            6 => What::Collective { kind: CollectiveKind::Reduce, root, bytes, communicator }
                .awaited(),
            7 => What::Collective { kind: CollectiveKind::Allreduce, root: 0, bytes, communicator }
                .awaited(),
            8 => What::Collective { kind: CollectiveKind::Gather, root, bytes, communicator }
                .awaited(),
            9 => What::Collective { kind: CollectiveKind::Scatter, root, bytes, communicator }
                .awaited(),
            10 => {
                What::Collective { kind: CollectiveKind::Allgather, root: 0, bytes, communicator }
                    .awaited()
            }
            _ => What::Collective { kind: CollectiveKind::Alltoall, root: 0, bytes, communicator }
                .awaited(),
        }
    }

    fn alone(&mut self) -> Command {
        let (bytes, communicator) = (self.bytes(), self.communicator());
        let (file, ticket) = (self.below(FILES) as u32, self.below(4) as u32);
        match self.below(14) {
            0 => What::Send { to: self.rank(), tag: 0, bytes, communicator }.awaited(),
            1 => What::Receive { from: self.source(), tag: self.tag(), communicator }.awaited(),
            2 => What::SendReceive {
                to: self.rank(),
                send_tag: 1,
                bytes,
                from: self.source(),
                receive_tag: self.tag(),
                communicator,
            }
            .awaited(),
            3 => What::Send { to: self.rank(), tag: 1, bytes, communicator }.started(ticket),
            4 => {
                let (from, tag) = (self.source(), self.tag());
                What::Receive { from, tag, communicator }.started(ticket)
            }
            5 => What::Wait(ticket).awaited(),
            6 => FileOperation::Read.of(file).started(ticket),
            7 => FileOperation::Write.of(file).started(ticket),
            8 => FileOperation::WriteAll.of(file).started(ticket),
            9 => FileOperation::Sync.of(file),
            10 => What::Idle { nanos: Nanos(self.below(10_000_000)) }.awaited(),
            11 => What::Compute { instructions: self.below(10_000) as f64 }.awaited(),
            12 => FileOperation::Read.of(file),
            _ => FileOperation::Write.of(file),
        }
    }

    /// Commands of all ranks; the wilder, the less they agree.
    fn script(&mut self, wildness: u64) -> Script {
        self.script_behind(wildness, &[])
    }

    /// The same behind what all ranks do first.
    fn script_behind(&mut self, wildness: u64, first: &[Line]) -> Script {
        let mut ranks: Vec<Vec<Line>> = vec![first.to_vec(); RANKS as usize];
        for _ in 0..self.below(12) {
            let command = self.together();
            for rank in &mut ranks {
                if self.below(100) >= wildness {
                    rank.push((command, self.list()));
                }
                while self.below(100) < wildness {
                    rank.push((self.alone(), self.list()));
                }
            }
        }
        for rank in &mut ranks {
            self.await_started(rank);
        }
        Script::new(ranks).with_communicator(vec![3, 1]).with_communicator(vec![0, 1, 2, 3])
    }

    /// Mostly only what was begun is waited for, and no ticket is taken twice.
    fn await_started(&mut self, rank: &mut Vec<Line>) {
        if self.below(10) == 0 {
            return;
        }
        let mut open = Vec::new();
        rank.retain(|(command, _)| match (command.ticket, command.what) {
            (Some(ticket), _) => {
                !open.contains(&ticket) && {
                    open.push(ticket);
                    true
                }
            }
            (None, What::Wait(ticket)) => {
                let place = open.iter().position(|one| *one == ticket);
                place.map(|place| open.remove(place)).is_some()
            }
            _ => true,
        });
        rank.extend(open.into_iter().map(|ticket| (What::Wait(ticket).awaited(), vec![])));
    }

    fn scenario(&mut self) -> String {
        let mut text = format!("seed = {}\n", self.below(100));
        for number in 0..self.below(4) {
            let from = self.below(60);
            let until = from + 1 + self.below(300);
            let span = match self.below(4) {
                0 => format!("from = '{from}ms'"),
                _ => format!("from = '{from}ms'\nuntil = '{until}ms'"),
            };
            let node = [format!("server{number}"), format!("client{number}")];
            let fault = match self.below(5) {
                0 => format!("kind = 'slow-device'\nserver = 'server{number}'\nfactor = 3\n{span}"),
                1 => format!("kind = 'stalled-server'\nserver = 'server{number}'\n{span}"),
                2 => {
                    let link = &node[self.below(2) as usize];
                    format!(
                        "kind = 'lossy-link'\nlink = '{link}'\nshare = 0.2\ntimeout = '3ms'\n{span}"
                    )
                }
                3 => {
                    let link = &node[self.below(2) as usize];
                    format!("kind = 'cut-link'\nlink = '{link}'\ntimeout = '3ms'\n{span}")
                }
                _ => format!("kind = 'crashed-client'\nclient = 'client{number}'\nat = '{from}ms'"),
            };
            let _ = writeln!(text, "[[faults]]\n{fault}");
        }
        text
    }
}

/// The classic cluster, or a small one with a process on a server's node, behind two switches.
fn platform(is_mixed: bool) -> Platform {
    if !is_mixed {
        return classic();
    }
    Platform::parse(
        "switches = [{ name = 'left' }, { name = 'right' }]
         links = [{ from = 'left', to = 'right' }]
         [[nodes]]
         name = 'client'
         count = 3
         cpus = 2
         clients = 1
         switch = 'left'
         [[nodes]]
         name = 'server'
         count = 3
         clients = 1
         switch = 'right'
         memory_bytes = '1m'
         server = { device = { model = 'hdd' } }",
    )
    .unwrap()
}

/// One random run; gives the error's kind and text.
fn attempt(seed: u64, wildness: u64, with_faults: bool) -> (&'static str, String) {
    let mut maker = Maker(Random::new(Seed(seed)));
    let caches = ["none", "write-behind", "aggregation", "server-directed"];
    let mut setup = setup(vec![Box::new(maker.script(wildness))], FILES as usize);
    setup.cache = Some(caches[maker.below(4) as usize].to_owned());
    if maker.below(2) == 0 {
        setup.collectives.choose("file=interleaved-two-phase").unwrap();
        setup.collectives.choose("barrier=dissemination").unwrap();
        setup.collectives.choose("alltoall=pairwise").unwrap();
    }
    let platform = platform(maker.below(2) == 0);
    let is_published = maker.below(3) == 0;
    setup.order = if is_published { Order::Published } else { Order::Documented };
    let scenario = if with_faults { maker.scenario() } else { String::new() };
    let faults = Scenario::parse(&scenario).unwrap().resolve(&platform).unwrap();
    let tie_seed = Seed(maker.below(3));
    match is_published {
        true => outcome(Cluster::build(&platform, setup, Published::new()).unwrap(), &faults),
        false => {
            outcome(Cluster::build(&platform, setup, Ordered::new(tie_seed)).unwrap(), &faults)
        }
    }
}

fn outcome<Q: EventQueue<Event>>(
    mut cluster: Cluster<'_, Q>,
    faults: &Faults,
) -> (&'static str, String) {
    cluster.inject(faults);
    kind_of(cluster.run())
}

fn kind_of(result: Result<Nanos, RunError>) -> (&'static str, String) {
    match result {
        Ok(time) => ("ended", time.0.to_string()),
        Err(error) => {
            let kind = match &error {
                RunError::Platform(_) => "platform",
                RunError::Refused(_) => "refused",
                RunError::Deadlock(_) => "deadlock",
                RunError::Unreceived(_) => "unreceived",
                RunError::Late(_) => "late",
            };
            (kind, error.to_string())
        }
    }
}

/// One random run on a parallel file system, whose files all ranks have opened.
fn attempt_on_a_file_system(seed: u64, wildness: u64, with_faults: bool) -> (&'static str, String) {
    let mut maker = Maker(Random::new(Seed(seed)));
    let opens = (0..FILES).map(|file| (FileOperation::Open.of(file as u32), vec![]));
    let opens: Vec<Line> = opens.collect();
    let script = maker.script_behind(wildness, &opens);
    let class = ["process", "device"][maker.below(2) as usize];
    let text = format!("[instance]\ndurability = '{class}'\n[layout]\ndefault = 'stripe:unit=64k'");
    let platform = platform(maker.below(2) == 0);
    let setup = file_system::Setup {
        configuration: Configuration::parse(&text).unwrap(),
        costs: Costs::default(),
        collectives: CollectiveSelection::default(),
        files: (0..FILES).map(|file| (format!("file {file}"), FILE_BYTES)).collect(),
        before: file_system::Before::OnDevices,
        programs: vec![Box::new(script)],
    };
    let scenario = if with_faults { maker.scenario() } else { String::new() };
    let faults = Scenario::parse(&scenario).unwrap().resolve(&platform).unwrap();
    let queue = Ordered::new(Seed(maker.below(3)));
    let mut run = FileSystem::build(&platform, setup, queue).unwrap();
    run.inject(&faults);
    run.start();
    assert!(!run.advance(20_000_000), "seed {seed}: the run does not end\n{scenario}");
    let (kind, text) = kind_of(run.verdict());
    (kind, format!("{text} {:x}", run.event_hash()))
}

#[test]
fn what_all_ranks_do_together_on_a_file_system_ends_or_is_refused() {
    let mut kinds = std::collections::BTreeMap::<&str, u32>::new();
    for seed in 0..200 {
        let (kind, text) = attempt_on_a_file_system(seed, 0, false);
        let is_closed = text.contains("the rank has not opened it");
        assert!(kind == "ended" || is_closed, "seed {seed}: {text}");
        *kinds.entry(kind).or_default() += 1;
    }
    assert!(kinds["ended"] > 40, "{kinds:?}");
}

#[test]
fn any_program_on_a_file_system_ends_or_is_told_what_is_wrong_with_it() {
    let mut kinds = std::collections::BTreeMap::<&str, u32>::new();
    for seed in 0..600 {
        let (kind, text) = attempt_on_a_file_system(seed, 2 + seed % 20, seed % 2 == 0);
        assert!(!text.contains("does not go on"), "seed {seed}: {text}");
        let again = attempt_on_a_file_system(seed, 2 + seed % 20, seed % 2 == 0);
        assert_eq!((kind, text), again, "seed {seed}");
        *kinds.entry(kind).or_default() += 1;
    }
    assert!(kinds["ended"] > 10 && kinds["deadlock"] > 5 && kinds["refused"] > 10, "{kinds:?}");
}

#[test]
fn what_all_ranks_do_together_always_ends() {
    for seed in 0..200 {
        let (kind, text) = attempt(seed, 0, false);
        assert_eq!(kind, "ended", "seed {seed}: {text}");
    }
}

#[test]
fn any_program_ends_or_is_told_what_is_wrong_with_it() {
    let mut kinds = std::collections::BTreeMap::<&str, u32>::new();
    for seed in 0..1500 {
        let (kind, text) = attempt(seed, 5 + seed % 30, false);
        assert_eq!((kind, &text), (attempt(seed, 5 + seed % 30, false).0, &text));
        assert!(!text.contains("does not go on"), "seed {seed}: {text}");
        *kinds.entry(kind).or_default() += 1;
    }
    assert!(kinds.len() == 4 && kinds.values().all(|count| *count > 10), "{kinds:?}");
}

#[test]
fn faults_never_break_a_run() {
    let mut kinds = std::collections::BTreeMap::<&str, u32>::new();
    for seed in 0..1500 {
        let (kind, text) = attempt(seed, seed % 10, true);
        assert!(!text.contains("does not go on"), "seed {seed}: {text}");
        *kinds.entry(kind).or_default() += 1;
    }
    assert!(kinds["ended"] > 300 && kinds["deadlock"] > 100, "{kinds:?}");
}

#[test]
fn faults_that_pass_only_cost_time() {
    let lasting = ["[[faults]]", "until"];
    let mut count = 0;
    for seed in 0..400 {
        let mut maker = Maker(Random::new(Seed(seed)));
        let (script, text) = (maker.script(0), maker.scenario());
        let begins = text.matches(lasting[0]).count();
        if begins == 0 || text.matches(lasting[1]).count() < begins {
            continue;
        }
        let mut cluster = build(setup(vec![Box::new(script)], FILES as usize));
        cluster.inject(&Scenario::parse(&text).unwrap().resolve(&classic()).unwrap());
        cluster.run().unwrap_or_else(|error| panic!("seed {seed}: {error}\n{text}"));
        count += 1;
    }
    assert!(count > 50, "{count}");
}

#[test]
fn what_was_recorded_of_any_run_is_that_run_again() {
    let platform = classic();
    let settings = Settings { record: true, ..Settings::default() };
    let files = || (0..FILES).map(|file| (format!("file {file}"), FILE_BYTES)).collect();
    let run = |program: Box<dyn Program>| {
        let job = Job { files: files(), applications: vec![("any".to_owned(), program)] };
        simulate(job, &platform, &settings, &mut |_| ControlFlow::Continue(()))
    };
    let mut count = 0;
    for seed in 0..600 {
        let script = Maker(Random::new(Seed(seed))).script(seed % 6);
        let Ok(first) = run(Box::new(script)) else { continue };
        let recording = Recording::of(&first.trace.unwrap()).unwrap();
        let again = run(Box::new(recording.program())).unwrap();
        assert_eq!((again.end, again.event_hash), (first.end, first.event_hash), "seed {seed}");
        count += 1;
    }
    assert!(count > 200, "{count}");
}
