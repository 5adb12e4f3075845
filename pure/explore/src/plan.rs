//! What a seed stands for: an instance, the programs that run on it, and what will go wrong.
//!
//! All of it is drawn before the first step, so parts can be masked ([`Mask`]) without shifting the rest.

use crate::dice::Dice;
use crate::views;
use crate::views::FILE_BYTES_MAX;
use iolab_pattern::Nest;
use iolab_pfs::configuration::Durability;
use iolab_pfs::{Kind, Layout, OpenWish};
use iolab_policy::schedule::catalog as schedule;
use std::collections::BTreeSet;
use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

/// What may go wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Fault {
    /// Connections break, with what is under way on them.
    Loss,
    /// Some messages and some work of devices take long.
    Delay,
    /// Nothing gets through between two parties for a while, in one direction or both.
    Partition,
    /// An I/O server crashes, and starts again.
    Crash,
    /// The metadata manager crashes, and starts again.
    CrashMetadata,
    /// A party does nothing for a while.
    Pause,
    /// A client dies.
    Death,
    /// Devices fail or are full.
    Disk,
    /// Bytes change on their way.
    Mangle,
    /// A cache manager crashes and starts again, does nothing for a while, or is cut off from a server.
    Cache,
    /// The power of all servers, cache managers and the manager goes and comes again: disks lose any of what
    /// they have not synced.
    Power,
}

impl Fault {
    /// All there are.
    pub const ALL: [Fault; 11] = [
        Fault::Loss,
        Fault::Delay,
        Fault::Partition,
        Fault::Crash,
        Fault::CrashMetadata,
        Fault::Pause,
        Fault::Death,
        Fault::Disk,
        Fault::Mangle,
        Fault::Cache,
        Fault::Power,
    ];

    /// As the command line names it.
    pub fn name(self) -> &'static str {
        match self {
            Fault::Loss => "loss",
            Fault::Delay => "delay",
            Fault::Partition => "partition",
            Fault::Crash => "crash",
            Fault::CrashMetadata => "crash-metadata",
            Fault::Pause => "pause",
            Fault::Death => "death",
            Fault::Disk => "disk",
            Fault::Mangle => "mangle",
            Fault::Cache => "cache",
            Fault::Power => "power",
        }
    }
}

impl FromStr for Fault {
    type Err = String;

    fn from_str(text: &str) -> Result<Fault, String> {
        let known = || Fault::ALL.map(Fault::name).join(", ");
        let found = Fault::ALL.into_iter().find(|fault| fault.name() == text);
        found.ok_or_else(|| format!("no such fault; there are {}", known()))
    }
}

/// Which parts of a seed are left out.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Mask {
    /// Faults that do not happen.
    pub without: BTreeSet<Fault>,
    /// Programs that do not run.
    pub idle: BTreeSet<usize>,
    /// How many rounds of each program are run.
    pub rounds: Option<usize>,
    /// Rounds that are left out, of all programs.
    pub skipped: BTreeSet<usize>,
}

impl fmt::Display for Mask {
    /// As options of the command.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let list = |items: Vec<String>| items.join(",");
        if !self.without.is_empty() {
            let names = self.without.iter().map(|fault| fault.name().to_owned());
            write!(f, " --without {}", list(names.collect()))?;
        }
        if !self.idle.is_empty() {
            write!(f, " --idle {}", list(self.idle.iter().map(usize::to_string).collect()))?;
        }
        if let Some(rounds) = self.rounds {
            write!(f, " --rounds {rounds}")?;
        }
        if !self.skipped.is_empty() {
            write!(f, " --skip {}", list(self.skipped.iter().map(usize::to_string).collect()))?;
        }
        Ok(())
    }
}

/// An instance, its programs and its faults.
#[derive(Clone, Debug)]
pub(crate) struct Plan {
    pub(crate) servers: u32,
    /// Cache managers, the bytes of each one's memory, and of a block at most.
    pub(crate) caches: u32,
    pub(crate) cache_memory: u64,
    pub(crate) block_bytes: u64,
    pub(crate) durability: Durability,
    /// How many times as long as other works of devices syncs take.
    pub(crate) slow_syncs: u64,
    pub(crate) layout: Layout,
    pub(crate) transfer_bytes: u64,
    pub(crate) depth: u32,
    pub(crate) schedule: &'static schedule::Row,
    pub(crate) view_bytes_max: u64,
    /// The longest delay of an ordinary message and of ordinary work of a device, in ns.
    pub(crate) pace_ns: u64,
    pub(crate) programs: Vec<Program>,
    pub(crate) rates: Rates,
    pub(crate) events: Vec<Event>,
}

/// One in how many messages or works meets it; 0: none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Rates {
    pub(crate) loss: u64,
    pub(crate) delay: u64,
    pub(crate) disk: u64,
    pub(crate) mangle: u64,
    /// Of changes of the journal: the manager crashes before they are written.
    pub(crate) journal: u64,
    /// Of syncs of devices: they fail, beside those that fail as all works do.
    pub(crate) sync: u64,
    /// Of syncs that programs are told of: the power goes soon after.
    pub(crate) power: u64,
    /// Of verdicts on collectives: their home crashes when it has told one.
    pub(crate) verdict: u64,
}

impl Rates {
    /// Whether nothing of the kind can happen.
    pub(crate) fn peaceful(&self) -> bool {
        *self == Rates::default()
    }
}

/// Something that goes wrong once.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Event {
    /// After so many steps.
    pub(crate) at: u64,
    pub(crate) what: What,
    /// How long it lasts, in ns.
    pub(crate) for_ns: u64,
}

/// What goes wrong once.
#[derive(Clone, Copy, Debug)]
pub(crate) enum What {
    Crash {
        server: u32,
    },
    CrashMetadata,
    PowerCut,
    CrashCache {
        cache: u32,
    },
    /// It is told that it will end, and ends then.
    EndCache {
        cache: u32,
    },
    PauseCache {
        cache: u32,
    },
    /// Connections between both break, and nothing gets through in these ways.
    PartitionCache {
        cache: u32,
        server: u32,
        ways: [bool; 2],
    },
    Pause {
        party: Option<u32>,
        client: Option<u32>,
    },
    /// If it breaks them off, connections are lost before; else messages wait.
    Partition {
        client: u32,
        server: Option<u32>,
        ways: [bool; 2],
        breaks: bool,
    },
    Death {
        client: u32,
    },
}

/// What the ranks of a group do; a process without a group is one of one rank.
#[derive(Clone, Debug)]
pub(crate) struct Program {
    pub(crate) ranks: u32,
    pub(crate) rounds: Vec<Round>,
}

/// Steps of a program; each rank does its own and goes on.
#[derive(Clone, Debug)]
pub(crate) struct Round {
    /// The place of the round in its program, masked ones counted.
    pub(crate) number: usize,
    pub(crate) steps: Vec<Step>,
}

/// What ranks do.
#[derive(Clone, Debug)]
pub(crate) enum Step {
    /// Rank 0 opens, then all adopt.
    Open { slot: usize, path: Vec<u8>, wish: OpenWish },
    /// Each rank its own access, all of them collectively; they may go on before the call has been answered.
    Collective { slot: usize, ranks: Vec<Access>, waits: bool },
    /// One rank by itself; it may go on before the call has been answered.
    Access { slot: usize, rank: u32, access: Access, waits: bool },
    /// From now on all accesses are atomic, or none is.
    SetAtomic { slot: usize, atomic: bool },
    /// One rank moves the pointer that all share.
    Advance { slot: usize, rank: u32, by: u64 },
    /// All put it somewhere.
    Put { slot: usize, to: u64 },
    /// All come together.
    Agree { slot: usize },
    /// All make their data durable.
    Sync { slot: usize },
    /// One rank asks how long the file is.
    Size { slot: usize, rank: u32 },
    /// One rank changes the length.
    Resize { slot: usize, rank: u32, bytes: u64 },
    /// All close.
    Close { slot: usize },
    /// One rank does something with names.
    Name { rank: u32, call: NameCall },
}

/// An access of one rank.
#[derive(Clone, Debug)]
pub(crate) struct Access {
    pub(crate) writes: bool,
    pub(crate) view: Arc<Nest>,
    pub(crate) from: u64,
    pub(crate) to: u64,
}

/// A call about names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum NameCall {
    Look(Vec<u8>),
    MakeDirectory(Vec<u8>),
    Remove(Vec<u8>, Kind),
    Rename(Vec<u8>, Vec<u8>),
    List(Vec<u8>, Vec<u8>),
}

/// Names that programs use.
const FILES: [&str; 6] = ["/a", "/b", "/c", "/d/a", "/d/b", "/e/d/a"];
const DIRECTORIES: [&str; 3] = ["/d", "/e", "/e/d"];
/// How many files a process has open at a time.
pub(crate) const SLOTS: usize = 3;

impl Plan {
    /// What a seed stands for, without what is masked.
    pub(crate) fn of(seed: u64, mask: &Mask) -> Plan {
        let mut dice = Dice::new(seed, 1);
        let servers = dice.between(1, 6) as u32;
        let unit = dice.magnitude(16, 4096);
        let subfiles = dice.between(1, u64::from(servers) + 2) as u32;
        let layout = Layout::striped(unit, subfiles, 0).expect("in range");
        let transfer_bytes = dice.magnitude(32, 4096);
        let depth = dice.between(1, 4) as u32;
        let view_bytes_max = if dice.one_in(3) { 400 } else { 64 << 20 };
        // Of the seed itself, so that the rest of the plan stays as it was without schedules.
        let schedule = &schedule::ROWS[(seed % schedule::ROWS.len() as u64) as usize];
        let pace_ns = dice.magnitude(1_000, 20_000_000);
        let mut programs = programs(&mut dice);
        start_collectives(&mut Dice::new(seed, 6), &mut programs);
        // Of draws of their own, so that instances without caches stay as they are.
        let mut own = Dice::new(seed, 5);
        let caches = if own.one_in(2) { 0 } else { own.between(1, 4) as u32 };
        let block_bytes = own.magnitude(16, 4096);
        let cache_memory = block_bytes * own.between(8, 32);
        let durability = match own.below(8) {
            0 => Durability::None,
            1..4 => Durability::Process,
            _ => Durability::Device,
        };
        let slow_syncs = own.magnitude(1, 64);
        let clients = programs.iter().map(|program| program.ranks).sum();
        let (mut rates, mut events) =
            faults(&mut Dice::new(seed, 2), (servers, caches), clients, &mask.without);
        // A manager that has cut throws away what was written since all was brought to the servers; when a
        // server then cannot cut, older data is seen there.
        if caches > 0 && rates.disk == 0 {
            programs.iter_mut().for_each(|program| cut_while_used(&mut own, program));
        }
        for (at, program) in programs.iter_mut().enumerate() {
            let idle = mask.idle.contains(&at);
            let ends = mask.rounds.unwrap_or(usize::MAX);
            let runs = |round: &Round| {
                !idle && round.number < ends && !mask.skipped.contains(&round.number)
            };
            program.rounds.retain(runs);
        }
        // Only devices promise anything of a power cut.
        events.retain(|event| {
            durability == Durability::Device || !matches!(event.what, What::PowerCut)
        });
        if durability != Durability::Device {
            rates = Rates { sync: 0, power: 0, ..rates };
        }
        Plan {
            servers,
            caches,
            cache_memory,
            block_bytes,
            durability,
            slow_syncs,
            layout,
            transfer_bytes,
            depth,
            schedule,
            view_bytes_max,
            pace_ns,
            programs,
            rates,
            events,
        }
    }

    /// Whether nothing goes wrong.
    pub(crate) fn peaceful(&self) -> bool {
        self.events.is_empty() && self.rates.peaceful()
    }
}

/// In some runs, some collective accesses are started, and waited for later.
fn start_collectives(dice: &mut Dice, programs: &mut [Program]) {
    if !dice.one_in(4) {
        return;
    }
    let rounds = programs.iter_mut().flat_map(|program| &mut program.rounds);
    for step in rounds.flat_map(|round| &mut round.steps) {
        if let Step::Collective { waits, .. } = step {
            *waits = dice.one_in(2);
        }
    }
}

fn programs(dice: &mut Dice) -> Vec<Program> {
    let mut ranks_left = dice.between(1, 9);
    let mut programs = Vec::new();
    for _ in 0..dice.between(1, 3) {
        if ranks_left > 0 {
            let ranks = if dice.one_in(3) { 1 } else { dice.between(1, ranks_left) };
            ranks_left -= ranks;
            programs.push(program(dice, ranks as u32));
        }
    }
    programs
}

/// Rounds of a program: it keeps track of what will be open, and closes it at the end.
fn program(dice: &mut Dice, ranks: u32) -> Program {
    let mut open = [false; SLOTS];
    let mut rounds = Vec::new();
    // Some programs are mostly about names.
    let bookish = dice.one_in(4);
    // And some about the same few bytes.
    let contends = dice.one_in(4);
    let favourite = *dice.pick(&FILES[..3]);
    let views = views::family(dice, ranks);
    let count = dice.between(2, 24) as usize;
    for number in 0..count {
        let usual = dice.one_in(4);
        let steps = match open.iter().position(|open| *open) {
            Some(slot) if bookish && dice.one_in(4) => advances(dice, ranks, slot),
            _ if bookish && !usual => names(dice, ranks),
            Some(slot) if contends && !usual => contend(dice, ranks, slot),
            _ => round(dice, ranks, &mut open, favourite, &views),
        };
        rounds.push(Round { number, steps });
    }
    let last = (0..SLOTS).filter(|&slot| open[slot]).map(|slot| Step::Close { slot }).collect();
    rounds.push(Round { number: count, steps: last });
    Program { ranks, rounds }
}

fn round(
    dice: &mut Dice,
    ranks: u32,
    open: &mut [bool; SLOTS],
    favourite: &str,
    views: &[Vec<Arc<Nest>>],
) -> Vec<Step> {
    let rank = dice.below(u64::from(ranks)) as u32;
    let slot = dice.below(SLOTS as u64) as usize;
    let Some(slot) = (0..SLOTS).map(|step| (slot + step) % SLOTS).find(|&slot| open[slot]) else {
        open[slot] = true;
        let path = if dice.one_in(3) { *dice.pick(&FILES) } else { favourite };
        let mut steps = vec![Step::Open { slot, path: path.into(), wish: wish(dice) }];
        if dice.one_in(2) {
            steps.push(Step::SetAtomic { slot, atomic: true });
        }
        return steps;
    };
    match dice.below(22) {
        0..6 => independent(dice, ranks, slot, views),
        6..13 => {
            let writes = dice.one_in(2);
            let odd = dice.one_in(8);
            let family = dice.pick(views);
            let one = |rank: u32| {
                let view = &family[rank as usize % family.len()];
                access(dice, writes ^ (odd && rank == 0), view)
            };
            let ranks = (0..ranks).map(one).collect();
            vec![Step::Collective { slot, ranks, waits: true }]
        }
        13 => vec![Step::Agree { slot }],
        14 => vec![Step::Sync { slot }, Step::Agree { slot }],
        15 => vec![Step::Size { slot, rank }],
        16 => {
            let resize = Step::Resize { slot, rank, bytes: dice.below(FILE_BYTES_MAX / 2) };
            if dice.one_in(2) { vec![resize] } else { vec![resize, Step::Agree { slot }] }
        }
        17 => {
            open[slot] = false;
            vec![Step::Close { slot }]
        }
        18 => match (0..SLOTS).find(|&slot| !open[slot]) {
            Some(slot) => {
                open[slot] = true;
                vec![Step::Open {
                    slot,
                    path: dice.pick(&FILES).as_bytes().into(),
                    wish: wish(dice),
                }]
            }
            None => vec![Step::Agree { slot }],
        },
        19 => names(dice, ranks),
        20 if dice.one_in(2) => vec![Step::SetAtomic { slot, atomic: dice.one_in(2) }],
        20 => vec![Step::Put { slot, to: dice.below(50) }],
        _ => advances(dice, ranks, slot),
    }
}

/// Some rounds in which ranks only come together become others, in which one cuts the file that all use.
fn cut_while_used(dice: &mut Dice, program: &mut Program) {
    for round in &mut program.rounds {
        let &[Step::Agree { slot }] = round.steps.as_slice() else { continue };
        let cutter = dice.below(u64::from(program.ranks)) as u32;
        let mut steps = Vec::new();
        for rank in (0..program.ranks).filter(|&rank| rank != cutter) {
            for _ in 0..dice.between(1, 8) {
                let (from, length) = (dice.below(300), dice.magnitude(1, 1024));
                let (writes, view) = (!dice.one_in(3), Arc::new(Nest::WHOLE_FILE));
                let access = Access { writes, view, from, to: from + length };
                steps.push(Step::Access { slot, rank, access, waits: true });
            }
        }
        for _ in 0..dice.between(1, 3) {
            steps.push(Step::Resize { slot, rank: cutter, bytes: dice.below(300) });
        }
        steps.push(Step::Agree { slot });
        round.steps = steps;
    }
}

/// Ranks move the shared pointer, without waiting for each other.
fn advances(dice: &mut Dice, ranks: u32, slot: usize) -> Vec<Step> {
    let advance = |dice: &mut Dice| {
        let rank = dice.below(u64::from(ranks)) as u32;
        Step::Advance { slot, rank, by: dice.below(5) }
    };
    (0..4 * ranks).map(|_| advance(dice)).collect()
}

fn independent(dice: &mut Dice, ranks: u32, slot: usize, views: &[Vec<Arc<Nest>>]) -> Vec<Step> {
    let mut steps = Vec::new();
    for rank in 0..ranks {
        for _ in 0..dice.below(4) {
            let family = dice.pick(views);
            let view = family[dice.below(family.len() as u64) as usize].clone();
            let writes = dice.one_in(2);
            let access = access(dice, writes, &view);
            steps.push(Step::Access { slot, rank, access, waits: !dice.one_in(4) });
        }
    }
    steps
}

/// Atomic accesses of all ranks to the same bytes.
fn contend(dice: &mut Dice, ranks: u32, slot: usize) -> Vec<Step> {
    let mut steps = vec![Step::SetAtomic { slot, atomic: true }];
    for _ in 0..dice.between(1, 4) {
        for rank in 0..ranks {
            let (from, length) = (dice.below(100), dice.magnitude(16, 1024));
            let (writes, view) = (dice.one_in(2), Arc::new(Nest::WHOLE_FILE));
            let access = Access { writes, view, from, to: from + length };
            steps.push(Step::Access { slot, rank, access, waits: dice.one_in(2) });
        }
    }
    steps
}

fn access(dice: &mut Dice, writes: bool, view: &Arc<Nest>) -> Access {
    let size = view.size().min(view.rank(FILE_BYTES_MAX).unwrap_or(0));
    let from = if dice.one_in(2) { dice.below(size + 1) } else { dice.below(size.min(200) + 1) };
    let length = match dice.below(12) {
        0 => 0,
        1..6 => dice.magnitude(1, 64),
        _ => dice.magnitude(1, 1024),
    };
    Access { writes, view: view.clone(), from, to: (from + length).min(size) }
}

fn wish(dice: &mut Dice) -> OpenWish {
    let creates = !dice.one_in(5);
    let exclusive = creates && dice.one_in(6);
    let unit = dice.magnitude(16, 4096);
    let subfiles = if dice.one_in(8) { dice.between(9, 120) } else { dice.between(1, 8) };
    let layout = Layout::striped(unit, subfiles as u32, 0).expect("in range");
    let layout = dice.one_in(2).then_some(layout);
    let reads = !dice.one_in(12);
    let writes = !reads || !dice.one_in(12);
    OpenWish { reads, writes, creates, exclusive, mode: 0o644, layout }
}

fn names(dice: &mut Dice, ranks: u32) -> Vec<Step> {
    let call = |dice: &mut Dice| {
        let files = &FILES[..];
        let path = |dice: &mut Dice| -> Vec<u8> {
            let of = if dice.one_in(3) { &DIRECTORIES[..] } else { files };
            dice.pick(of).as_bytes().into()
        };
        match dice.below(12) {
            10.. => NameCall::Rename(path(dice), path(dice)),
            0..2 => NameCall::Look(path(dice)),
            2..5 => NameCall::MakeDirectory(dice.pick(&DIRECTORIES).as_bytes().into()),
            5 => NameCall::Remove(path(dice), *dice.pick(&[Kind::File, Kind::Directory])),
            6 => NameCall::Remove(dice.pick(files).as_bytes().into(), Kind::File),
            7 => NameCall::Rename(path(dice), path(dice)),
            8 => {
                let (from, to) = (*dice.pick(files), *dice.pick(files));
                NameCall::Rename(from.into(), to.into())
            }
            _ => {
                let after = if dice.one_in(3) { b"a".to_vec() } else { Vec::new() };
                let of = if dice.one_in(2) { "/" } else { *dice.pick(&DIRECTORIES) };
                NameCall::List(of.into(), after)
            }
        }
    };
    let count = dice.between(1, 5);
    let rank = |dice: &mut Dice| dice.below(u64::from(ranks)) as u32;
    (0..count).map(|_| Step::Name { rank: rank(dice), call: call(dice) }).collect()
}

/// A subset of the faults, each with a rate of its own: one that is always there would hide others.
fn faults(
    dice: &mut Dice,
    (servers, caches): (u32, u32),
    clients: u32,
    without: &BTreeSet<Fault>,
) -> (Rates, Vec<Event>) {
    let mut rates = Rates::default();
    let mut events = Vec::new();
    let calm = dice.one_in(8);
    for fault in Fault::ALL {
        // Drawn before it is looked at whether it is left out, so that the others stay as they are.
        let mut dice = Dice::new(dice.bits(), 3);
        if calm || !dice.one_in(3) || without.contains(&fault) {
            continue;
        }
        match fault {
            Fault::Loss => rates.loss = dice.magnitude(8, 2000),
            Fault::Delay => rates.delay = dice.magnitude(8, 2000),
            Fault::Disk => {
                rates.disk = dice.magnitude(8, 1000);
                rates.sync = dice.magnitude(2, 8);
                // Without it nobody would see what a failed sync has lost.
                let has_power = !without.contains(&Fault::Power);
                rates.power = if has_power { dice.magnitude(4, 32) } else { 0 };
            }
            Fault::Mangle => rates.mangle = dice.magnitude(20, 2000),
            Fault::Power if !dice.one_in(3) => rates.power = dice.magnitude(1, 8),
            Fault::CrashMetadata if dice.one_in(2) => rates.journal = dice.magnitude(2, 32),
            Fault::Crash if dice.one_in(3) => rates.verdict = dice.magnitude(4, 64),
            Fault::Cache if caches == 0 => {}
            Fault::Cache => {
                let count = dice.between(1, 4);
                events.extend((0..count).map(|_| cache_event(&mut dice, servers, caches)));
            }
            once => {
                let count = dice.between(1, 4);
                let draw = |_| event(&mut dice, once, servers, clients);
                events.extend((0..count).map(draw));
            }
        }
    }
    events.sort_by_key(|event| event.at);
    (rates, events)
}

fn event(dice: &mut Dice, fault: Fault, servers: u32, clients: u32) -> Event {
    let server = dice.below(u64::from(servers)) as u32;
    let client = dice.below(u64::from(clients)) as u32;
    let manager = dice.one_in(4);
    let what = match fault {
        Fault::Crash => What::Crash { server },
        Fault::CrashMetadata => What::CrashMetadata,
        Fault::Power => What::PowerCut,
        Fault::Pause if dice.one_in(3) => What::Pause { party: None, client: Some(client) },
        Fault::Pause => What::Pause { party: (!manager).then_some(server), client: None },
        Fault::Partition => {
            let ways = *dice.pick(&[[true, true], [true, false], [false, true]]);
            let server = (!manager).then_some(server);
            What::Partition { client, server, ways, breaks: dice.one_in(2) }
        }
        _ => What::Death { client },
    };
    Event { at: dice.magnitude(1, 3000), what, for_ns: dice.magnitude(1_000, 14_000_000_000) }
}

fn cache_event(dice: &mut Dice, servers: u32, caches: u32) -> Event {
    let cache = dice.below(u64::from(caches)) as u32;
    let server = dice.below(u64::from(servers)) as u32;
    let what = match dice.below(6) {
        0 => What::PauseCache { cache },
        1 => {
            let ways = *dice.pick(&[[true, true], [true, false], [false, true]]);
            What::PartitionCache { cache, server, ways }
        }
        2 => What::EndCache { cache },
        _ => What::CrashCache { cache },
    };
    Event { at: dice.magnitude(1, 3000), what, for_ns: dice.magnitude(1_000, 14_000_000_000) }
}
