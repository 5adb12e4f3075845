//! The family's conformance suite: every strategy of the catalogue, alone, above and below those it may
//! stand with, must be indistinguishable from the file itself. A random program runs on a stack over a model
//! file, and beside it on a plain model file; every answer, every byte read and the final contents
//! must agree. A new strategy is enrolled by its row in the catalogue.

use iolab_policy::insitu::catalog::Row;
use iolab_policy::insitu::classes::{Layer, Semantics};
use iolab_policy::insitu::stacking::{Verdict, verdict};
use iolab_policy::insitu::{
    Access, At, Call, Catalog, Command, Driver, Errno, Handle, Outcome, Plan, Short, Slot, Stack,
    StrategySpec, Totals, Whence,
};
use iolab_trace::{Event, FileEntry, Function, Header, Trace};
use iolab_vocab::{FileId, Nanos, Random, Seed};
use std::collections::BTreeMap;

#[path = "insitu_conformance/data.rs"]
mod data;
#[path = "insitu_conformance/shared.rs"]
mod shared;

const ENOSPC: Errno = Errno(28);

/// The plainest file there is, with the semantics of Linux.
#[derive(Clone, Default)]
struct File {
    bytes: Vec<u8>,
    positions: BTreeMap<Handle, (u64, Access)>,
    /// Writes beyond this size fail.
    capacity: Option<u64>,
    /// After so many writes one fails.
    fails_at: Option<u64>,
}

impl File {
    fn carry_out(&mut self, handle: Handle, call: Call, memory: &mut [u8]) -> Outcome {
        let size = self.bytes.len() as u64;
        let (position, access) = self.positions.get(&handle).copied().unwrap_or_default();
        match call {
            Call::Read { .. } if !access.read => Err(Errno(9)),
            Call::Write { .. } | Call::Truncate { .. } if !access.write => Err(Errno(9)),
            Call::Read { at, .. } => {
                let offset = if let At::Offset(offset) = at { offset } else { position };
                let from = offset.min(size) as usize;
                let moved = memory.len().min(self.bytes.len() - from);
                memory[..moved].copy_from_slice(&self.bytes[from..from + moved]);
                self.advance(handle, at, offset + moved as u64);
                Ok(moved as u64)
            }
            Call::Write { at, .. } => {
                let offset = match at {
                    _ if access.append => size,
                    At::Offset(offset) => offset,
                    At::Position => position,
                };
                let end = offset + memory.len() as u64;
                if memory.is_empty() {
                    return Ok(0);
                }
                if self.capacity.is_some_and(|capacity| end > capacity) {
                    return Err(ENOSPC);
                }
                if self.fails_at == Some(0) {
                    self.fails_at = None;
                    return Err(ENOSPC);
                }
                self.fails_at = self.fails_at.map(|writes| writes - 1);
                self.bytes.resize((size.max(end)) as usize, 0);
                self.bytes[offset as usize..end as usize].copy_from_slice(memory);
                self.advance(handle, at, end);
                Ok(memory.len() as u64)
            }
            Call::Seek { offset, whence } => {
                let base = match whence {
                    Whence::Start => 0,
                    Whence::Current => position,
                    _ => size,
                };
                let target = base as i64 + offset;
                if target < 0 {
                    return Err(Errno(22));
                }
                self.advance(handle, At::Position, target as u64);
                Ok(target as u64)
            }
            Call::Truncate { length } => {
                self.bytes.resize(length as usize, 0);
                Ok(0)
            }
            Call::Allocate { offset, length, .. } => {
                self.bytes.resize(size.max(offset + length) as usize, 0);
                Ok(0)
            }
            Call::Sync { .. } | Call::Open { .. } | Call::Flush | Call::Settle | Call::Close => {
                Ok(0)
            }
            // Nobody may care.
            Call::Advise { offset, length } => match (offset ^ length) % 3 {
                0 => Err(Errno(22)),
                other => Ok(other),
            },
        }
    }

    fn advance(&mut self, handle: Handle, at: At, to: u64) {
        if at == At::Position {
            self.positions.get_mut(&handle).expect("opened").0 = to;
        }
    }
}

/// A stack on a file.
struct Host {
    stack: Stack,
    bottom: Bottom,
    takes_short_way: bool,
    /// When work is begun and done while no call waits for it; never, where there is none.
    leisure: Option<Random>,
}

/// The strategy, with a plan where it goes by one: reads of a small file, of which some follow each other.
fn planned(mut spec: StrategySpec) -> StrategySpec {
    if spec.plan_path().is_some() {
        let mut random = Random::new(Seed(7));
        let read = |number: u64| {
            let offset = match number % 3 {
                0 => number * 20 % 700,
                _ => random.below(700),
            } as i64;
            let (process, result) = (number as u32 % 2, 1 + random.below(40) as i64);
            Event { process, file: FileId(0), fd: 3, offset, result, ..Event::of(Function::PREAD) }
        };
        let events = (0..400).map(read).collect();
        let files = vec![FileEntry { path: "/file".to_owned(), ..FileEntry::default() }];
        let trace =
            Trace { header: Header { files, ..Header::default() }, events, ..Trace::default() };
        spec.plan = Some(Plan::of(&trace).expect("it reads"));
    }
    spec
}

/// Carries out a stack's commands, moving real bytes.
struct Bottom {
    /// Of the program's call.
    memory: Vec<u8>,
    staging: Vec<Vec<u8>>,
    below: File,
    now: Nanos,
    commands: Vec<Command>,
    /// The work that was begun.
    work: Option<Begun>,
}

/// Work under way.
struct Begun {
    handle: Handle,
    call: Call,
    /// What was in its memory when it began.
    bytes: Vec<u8>,
    /// Where that memory is.
    memory: Slot,
    /// What it came to, once it is done.
    outcome: Option<Outcome>,
}

impl Host {
    fn new(strategies: &[&str]) -> Host {
        let build = |text: &&str| planned(spec_of(text)).build_for("/file");
        let stack = Stack::new(strategies.iter().map(build).collect());
        let bottom = Bottom {
            memory: Vec::new(),
            staging: stack.staging_bytes().map(|bytes| vec![0; bytes as usize]).collect(),
            below: File::default(),
            now: Nanos::ZERO,
            commands: Vec::new(),
            work: None,
        };
        Host { stack, bottom, takes_short_way: true, leisure: None }
    }

    /// Between two calls: work is begun, done, told of, or none of these.
    fn work_at_leisure(&mut self) {
        match self.leisure.as_mut().map(|random| random.below(5)) {
            Some(0 | 1) => self.begin_work(),
            Some(2) => self.bottom.do_work(),
            Some(3) if self.bottom.work.is_some() => {
                let outcome = self.bottom.work_ended();
                self.stack.ended(outcome);
            }
            _ => {}
        }
    }

    fn begin_work(&mut self) {
        let Some(work) = self.stack.begin() else { return };
        assert!(self.bottom.work.is_none(), "{work:?} is begun while other work is under way");
        for (from, to, length) in work.copies {
            self.bottom.copy(from, to, length);
        }
        let (handle, call, memory) = (work.handle, work.call, work.memory);
        let bytes = self.bottom.place(memory, call.transfer_bytes()).to_vec();
        self.bottom.commands.push(Command::Perform { handle, call, memory });
        self.bottom.work = Some(Begun { handle, call, bytes, memory, outcome: None });
    }

    /// As a driver may: the short way for writes, if the stack offers it.
    fn call(&mut self, handle: Handle, call: Call, memory: &mut [u8]) -> Outcome {
        if let Call::Write { at, length } = call
            && self.takes_short_way
            && let Some(to) = self.stack.absorb(handle, at, length)
        {
            let from = Slot::Program(0);
            self.bottom.memory = memory.to_vec();
            self.bottom.copy(from, to, length);
            let copy = Command::Copy { from, to, length };
            self.bottom.commands.extend([copy, Command::Answer(Ok(length))]);
            return Ok(length);
        }
        if let Call::Read { at, length } = call
            && self.takes_short_way
            && let Some(from) = self.stack.serve(handle, at, length)
        {
            let to = Slot::Program(0);
            self.bottom.memory = memory.to_vec();
            self.bottom.copy(from, to, length);
            memory.copy_from_slice(&self.bottom.memory);
            let copy = Command::Copy { from, to, length };
            self.bottom.commands.extend([copy, Command::Answer(Ok(length))]);
            return Ok(length);
        }
        if self.takes_short_way
            && let Some(outcome) = self.call_short(handle, call, memory)
        {
            return outcome;
        }
        self.call_step(handle, call, memory)
    }

    /// The short way for seeks and transfers that only change their place.
    fn call_short(&mut self, handle: Handle, call: Call, memory: &mut [u8]) -> Option<Outcome> {
        let (below, stage) = match (self.stack.short(handle, &call), call) {
            ((_, Short::Ask), _) => return None,
            ((_, Short::Answer(value)), _) => {
                self.bottom.commands.push(Command::Answer(Ok(value)));
                return Some(Ok(value));
            }
            ((stage, Short::At(offset)), Call::Read { length, .. }) => {
                (Call::Read { at: At::Offset(offset), length }, stage)
            }
            ((stage, Short::At(offset)), Call::Write { length, .. }) => {
                (Call::Write { at: At::Offset(offset), length }, stage)
            }
            (short, call) => panic!("{call:?} came to {short:?}"),
        };
        self.bottom.memory = memory.to_vec();
        let outcome = self.bottom.perform(handle, below, Slot::Program(0));
        memory.copy_from_slice(&self.bottom.memory);
        if let Ok(bytes) = outcome {
            self.stack.moved(stage, handle, bytes);
        }
        let perform = Command::Perform { handle, call: below, memory: Slot::Program(0) };
        self.bottom.commands.extend([perform, Command::Answer(outcome)]);
        Some(outcome)
    }

    fn call_step(&mut self, handle: Handle, call: Call, memory: &mut [u8]) -> Outcome {
        self.bottom.memory = memory.to_vec();
        let outcome = self.stack.drive(handle, call, &mut self.bottom);
        memory.copy_from_slice(&self.bottom.memory);
        outcome
    }
}

impl Bottom {
    /// Carries the work out that is under way; the bytes must be those with which it began.
    fn do_work(&mut self) {
        if self.work.as_ref().is_none_or(|work| work.outcome.is_some()) {
            return;
        }
        let Some(mut work) = self.work.take() else { return };
        let now = self.place(work.memory, work.bytes.len() as u64);
        assert!(*now == *work.bytes, "bytes changed on their way out");
        work.outcome = Some(self.below.carry_out(work.handle, work.call, &mut work.bytes));
        self.work = Some(work);
    }

    fn place(&mut self, slot: Slot, length: u64) -> &mut [u8] {
        let (whole, offset) = match slot {
            Slot::Program(offset) => (&mut self.memory[..], offset),
            Slot::Staging { stage, offset } => (&mut self.staging[stage as usize][..], offset),
            Slot::Nowhere => return &mut [],
        };
        &mut whole[offset as usize..(offset + length) as usize]
    }
}

impl Driver for Bottom {
    fn now(&mut self) -> Nanos {
        self.now
    }

    fn copy(&mut self, from: Slot, to: Slot, length: u64) {
        let bytes = self.place(from, length).to_vec();
        self.place(to, length).copy_from_slice(&bytes);
    }

    fn perform(&mut self, handle: Handle, call: Call, slot: Slot) -> Outcome {
        let length = call.transfer_bytes();
        let mut bytes = self.place(slot, length).to_vec();
        let outcome = self.below.carry_out(handle, call, &mut bytes);
        if matches!(call, Call::Read { .. }) {
            self.place(slot, length).copy_from_slice(&bytes);
        }
        outcome
    }

    fn wait_until(&mut self, time: Nanos) {
        self.now = time;
    }

    fn work_ended(&mut self) -> Outcome {
        self.do_work();
        self.work.take().and_then(|work| work.outcome).expect("work was begun")
    }

    fn ended(&mut self, command: &Command) {
        self.commands.push(*command);
    }
}

const ACCESSES: [Access; 4] = [
    Access { read: true, write: true, append: false, synchronous: false },
    Access { read: true, write: true, append: true, synchronous: false },
    Access { read: false, write: true, append: false, synchronous: false },
    Access { read: true, write: false, append: false, synchronous: false },
];

fn random_call(random: &mut Random) -> Call {
    let at = match random.below(2) {
        0 => At::Position,
        _ => At::Offset(random.below(600)),
    };
    let length = match random.below(12) {
        0 => 0,
        1 => 100 + random.below(200),
        _ => 1 + random.below(40),
    };
    match random.below(16) {
        0..=7 => Call::Write { at, length },
        8..=10 => Call::Read { at, length },
        11 | 12 => {
            let whence = [Whence::Start, Whence::Current, Whence::End][random.below(3) as usize];
            Call::Seek { offset: random.below(400) as i64 - 100, whence }
        }
        13 => Call::Sync { data_only: random.below(2) == 0 },
        14 => Call::Flush,
        _ => match random.below(3) {
            0 => Call::Truncate { length: random.below(500) },
            1 => Call::Allocate { mode: 0, offset: random.below(300), length: random.below(300) },
            _ => Call::Settle,
        },
    }
}

/// Small reads that mostly follow each other: forwards, backwards, by a step, or to the same place.
struct Streams {
    at: u64,
    step: i64,
    length: u64,
}

impl Streams {
    fn next(&mut self, random: &mut Random) -> Call {
        if random.below(12) == 0 {
            self.length = 1 + random.below(20);
            self.at = random.below(700);
            let length = self.length as i64;
            self.step =
                [length, length, -length, length + 5, -length - 3, 0, 60][random.below(7) as usize];
        }
        self.at = self.at.saturating_add_signed(self.step);
        match random.below(30) {
            0 => random_call(random),
            1..=7 if self.step == self.length as i64 => {
                Call::Read { at: At::Position, length: self.length }
            }
            _ => Call::Read { at: At::Offset(self.at), length: self.length },
        }
    }
}

/// One random program on `strategies` and on a plain file, side by side.
fn compare(strategies: &[&str], seed: u64, calls: usize) -> Vec<Command> {
    compare_on(Host::new(strategies), strategies, seed, calls)
}

/// The same where work is done between calls, at random moments.
fn compare_at_leisure(strategies: &[&str], seed: u64, calls: usize) {
    let mut host = Host::new(strategies);
    host.leisure = Some(Random::new(Seed(seed ^ 0x5eed)));
    compare_on(host, strategies, seed, calls);
}

fn compare_on(mut host: Host, strategies: &[&str], seed: u64, calls: usize) -> Vec<Command> {
    compare_with(&mut host, strategies, seed, calls)
}

fn compare_with(host: &mut Host, strategies: &[&str], seed: u64, calls: usize) -> Vec<Command> {
    let keeps_syncs = |text: &&str| spec_of(text).classes().semantics == Semantics::Kept;
    let keeps_syncs = strategies.iter().all(keeps_syncs);
    let mut random = Random::new(Seed(seed));
    let mut plain = File::default();
    let mut handles: Vec<Handle> = (0..1 + random.below(3) as u32).map(Handle).collect();
    for &handle in &handles {
        open_both(host, &mut plain, handle, ACCESSES[random.below(4) as usize]);
    }
    let mut opened = handles.len() as u32;
    let mut streams = Streams { at: 0, step: 0, length: 1 };
    let reads = random.below(3) == 0;
    for number in 0..calls {
        host.work_at_leisure();
        // Descriptions come and go: whoever hears less without readers learns of the next one.
        if random.below(40) == 0 && handles.len() > 1 {
            let gone = handles.remove(1 + random.below(handles.len() as u64 - 1) as usize);
            assert_eq!(host.call(gone, Call::Close, &mut []), Ok(0));
        }
        if random.below(40) == 0 && handles.len() < 4 {
            assert_eq!(host.call(handles[0], Call::Flush, &mut []), Ok(0));
            handles.push(Handle(opened));
            open_both(host, &mut plain, Handle(opened), ACCESSES[random.below(4) as usize]);
            opened += 1;
        }
        let handle = match reads && random.below(8) > 0 {
            true => handles[0],
            false => handles[random.below(handles.len() as u64) as usize],
        };
        let call = match reads && number > 12 {
            true => streams.next(&mut random),
            false => random_call(&mut random),
        };
        let scene = format!("{strategies:?}, seed {seed}, call {number}: {call:?} on {handle:?}");
        let length = match call {
            Call::Read { length, .. } | Call::Write { length, .. } => length as usize,
            _ => 0,
        };
        let mut expected_memory: Vec<u8> = (0..length).map(|_| random.below(256) as u8).collect();
        let mut memory = expected_memory.clone();
        let expected = plain.carry_out(handle, call, &mut expected_memory);
        assert_eq!(host.call(handle, call, &mut memory), expected, "{scene}");
        assert_eq!(memory, expected_memory, "{scene}");
        let shows = match call {
            Call::Sync { .. } => keeps_syncs,
            Call::Flush | Call::Settle => true,
            _ => false,
        };
        if shows {
            assert_eq!(host.bottom.below.bytes, plain.bytes, "{scene}");
            assert_eq!(host.stack.held_bytes(), 0, "{scene}");
        }
        if call == Call::Settle {
            assert_eq!(
                host.bottom.below.positions[&handle].0, plain.positions[&handle].0,
                "{scene}"
            );
        }
    }
    for &handle in &handles {
        assert_eq!(host.call(handle, Call::Close, &mut []), Ok(0));
    }
    assert_eq!(host.bottom.below.bytes, plain.bytes, "{strategies:?}, seed {seed}, after close");
    std::mem::take(&mut host.bottom.commands)
}

/// Another description of the file, on both.
fn open_both(host: &mut Host, plain: &mut File, handle: Handle, access: Access) {
    plain.positions.insert(handle, (0, access));
    host.bottom.below.positions.insert(handle, (0, access));
    let file_bytes = host.bottom.below.bytes.len() as u64;
    assert_eq!(host.call(handle, Call::Open { access, file_bytes, position: 0 }, &mut []), Ok(0));
}

fn row_of(text: &str) -> &'static iolab_policy::insitu::catalog::Row {
    spec_of(text).row()
}

fn spec_of(text: &str) -> StrategySpec {
    StrategySpec::parse(text).expect("a good strategy")
}

/// With parameters that make its corners frequent.
fn samples(name: &str) -> Vec<String> {
    let texts: &[&str] = match name {
        "write-back" => &[
            "write-back:buffer=64",
            "write-back:buffer=1k,largest=90",
            "write-back:buffer=1m",
            "write-back:buffer=200,age=0",
        ],
        "fsync-relax" => &["fsync-relax", "fsync-relax:every=1ms", "fsync-relax:join=1ms"],
        "seek-elide" => &["seek-elide", "seek-elide:outsiders=none"],
        "align" => &["align:block=8,buffer=50", "align:block=64", "align:block=100,age=0"],
        "aggregate" => &[
            "aggregate:block=8,buffer=50",
            "aggregate:block=64,buffer=1k",
            "aggregate:block=100,buffer=300,age=0",
        ],
        "single-writer" => &["single-writer:buffer=64", "single-writer:buffer=1k"],
        "read-ahead" => &[
            "read-ahead:window=4k",
            "read-ahead:via=buffer,outsiders=none,window=64,largest=30",
            "read-ahead:via=buffer,outsiders=none,window=1k,largest=1k",
        ],
        "data-sieve" => &[
            "data-sieve:outsiders=none,hole=6,window=100,largest=50",
            "data-sieve:outsiders=none,hole=90,window=400,largest=300",
        ],
        "prefetch" => &["prefetch:plan=made-up,window=4k"],
        "stage" => &["stage:to=fast"],
        name => &[name],
    };
    texts.iter().map(|&text| text.to_owned()).collect()
}

/// Every strategy that hears calls of POSIX.
fn of_posix() -> impl Iterator<Item = &'static Row> {
    Catalog::ROWS.iter().filter(|row| row.classes.layer == Layer::Posix)
}

/// Every strategy that keeps semantics.
fn honest() -> Vec<String> {
    let honest = of_posix().filter(|row| row.classes.is_honest());
    honest.flat_map(|row| samples(row.name)).collect()
}

/// Every strategy under which a program sees the same file and the same results, as long as the
/// machine does not crash; `delay` is cruel, but any delay conforms.
fn comparable() -> Vec<String> {
    let is_comparable = |row: &&Row| {
        let same = matches!(row.classes.semantics, Semantics::Kept | Semantics::WeakerDurability);
        same && !row.classes.is_cruel || row.name == "delay"
    };
    of_posix().filter(is_comparable).flat_map(|row| samples(row.name)).collect()
}

#[test]
fn every_honest_strategy_is_indistinguishable_from_the_file() {
    for strategy in honest() {
        for seed in 0..2500 {
            compare(&[&strategy], seed, 60);
            compare_at_leisure(&[&strategy], seed, 60);
        }
    }
}

#[test]
fn every_allowed_pair_is_indistinguishable_from_the_file() {
    let comparable = comparable();
    for above in &comparable {
        for below in &comparable {
            if matches!(verdict(row_of(above), row_of(below)), Verdict::Refused { .. }) {
                continue;
            }
            for seed in 0..25 {
                compare(&[above, below], seed, 60);
                compare_at_leisure(&[above, below], seed, 60);
            }
        }
    }
}

#[test]
fn weaker_durability_changes_nothing_but_when_bytes_are_safe() {
    for strategy in samples("fsync-relax") {
        for seed in 0..1000 {
            compare(&[&strategy], seed, 60);
        }
    }
}

#[test]
fn the_short_way_decides_as_the_long_one_does() {
    for strategy in honest() {
        for seed in 0..1000 {
            let mut long_way = Host::new(&[&strategy]);
            long_way.takes_short_way = false;
            let long = compare_on(long_way, &[&strategy], seed, 80);
            assert_eq!(compare(&[&strategy], seed, 80), long, "{strategy}, seed {seed}");
        }
    }
}

#[test]
fn what_comes_by_is_counted_alike_on_the_short_way_and_on_the_long_one() {
    for strategy in &honest() {
        let stack = ["count:name=above", strategy, "count:name=below"];
        for seed in 0..60 {
            let counted = |takes_short_way| {
                let mut host = Host::new(&stack);
                host.takes_short_way = takes_short_way;
                let mut totals = Totals::default();
                let commands = compare_with(&mut host, &stack, seed, 80);
                totals.take(&host.stack, "file");
                (totals, commands)
            };
            let (short, commands) = counted(true);
            assert_eq!(short, counted(false).0, "{strategy}, seed {seed}");
            let performed = |command: &&Command| match command {
                Command::Perform { call, .. } => !is_unseen(*call),
                _ => false,
            };
            let below = short.rows().find(|row| row.0 == "below").expect("all are counted").2;
            let performed = commands.iter().filter(performed).count() as u64;
            assert_eq!(below.calls(), performed, "{strategy}, seed {seed}");
        }
    }
}

/// Nobody counts these.
fn is_unseen(call: Call) -> bool {
    matches!(call, Call::Flush | Call::Settle | Call::Close)
}

/// Appending in one go what could only be written in part: the file must end up whole.
#[test]
fn write_back_survives_short_writes_below_it() {
    for seed in 0..200 {
        let cruel = format!("cruel:seed={seed},short=60");
        let mut host = Host::new(&["write-back:buffer=256", &cruel]);
        let mut expected = Vec::new();
        let handle = open(&mut host, ACCESSES[(seed % 2) as usize]);
        for i in 0..200_u8 {
            let mut record = [i; 23];
            let call = Call::Write { at: At::Position, length: 23 };
            assert_eq!(host.call(handle, call, &mut record), Ok(23));
            expected.extend(record);
        }
        assert_eq!(host.call(handle, Call::Close, &mut []), Ok(0));
        assert_eq!(host.bottom.below.bytes, expected, "seed {seed}");
    }
}

fn open(host: &mut Host, access: Access) -> Handle {
    let handle = Handle(0);
    host.bottom.below.positions.insert(handle, (0, access));
    let call = Call::Open { access, file_bytes: 0, position: 0 };
    assert_eq!(host.call(handle, call, &mut []), Ok(0));
    handle
}

/// A full disk: every byte count the program was told is either on the file or was followed by
/// an error at a later write, sync or close.
#[test]
fn a_full_disk_is_told_and_never_swallowed() {
    let holders =
        ["write-back:buffer=256", "aggregate:block=64,buffer=256", "single-writer:buffer=256"];
    let strategies = holders.iter().flat_map(|strategy| [(strategy, false), (strategy, true)]);
    for (capacity, (strategy, at_leisure)) in [0, 1, 100, 256, 300, 999, 1000]
        .into_iter()
        .flat_map(|it| strategies.clone().map(move |s| (it, s)))
    {
        for ending in [Call::Sync { data_only: false }, Call::Close] {
            let mut host = Host::new(&[strategy]);
            host.leisure = at_leisure.then(|| Random::new(Seed(capacity)));
            host.bottom.below.capacity = Some(capacity);
            let handle = open(&mut host, ACCESSES[0]);
            let mut outcomes = Vec::new();
            for _ in 0..100 {
                let call = Call::Write { at: At::Position, length: 10 };
                host.work_at_leisure();
                outcomes.push(host.call(handle, call, &mut [7; 10]));
            }
            outcomes.push(host.call(handle, ending, &mut []));
            let told: u64 = outcomes[..100].iter().flatten().sum();
            let arrived = host.bottom.below.bytes.len() as u64;
            let failed = outcomes.contains(&Err(ENOSPC));
            assert!(told == arrived || failed, "{told} told, {arrived} arrived, no error");
            assert_eq!(failed, capacity < 1000, "{strategy}, capacity {capacity}");
        }
    }
}

#[test]
fn a_failed_flush_before_a_stat_is_reported_by_the_next_close() {
    let mut host = Host::new(&["write-back"]);
    host.bottom.below.capacity = Some(5);
    let handle = open(&mut host, ACCESSES[0]);
    let call = Call::Write { at: At::Position, length: 10 };
    assert_eq!(host.call(handle, call, &mut [1; 10]), Ok(10));
    assert_eq!(host.call(handle, Call::Flush, &mut []), Ok(0));
    assert_eq!(host.call(handle, Call::Close, &mut []), Err(ENOSPC));
}

#[test]
fn a_write_that_has_to_wait_for_what_is_held_gets_its_failure() {
    let mut host = Host::new(&["write-back:buffer=256"]);
    host.bottom.below.capacity = Some(5);
    let handle = open(&mut host, ACCESSES[0]);
    let small = Call::Write { at: At::Offset(0), length: 10 };
    assert_eq!(host.call(handle, small, &mut [1; 10]), Ok(10));
    // It overlaps what is held and is too long to be held itself.
    let large = Call::Write { at: At::Offset(4), length: 300 };
    assert_eq!(host.call(handle, large, &mut [2; 300]), Err(ENOSPC));
    assert_eq!(host.stack.held_bytes(), 10, "for another try");
    host.bottom.below.capacity = None;
    assert_eq!(host.call(handle, Call::Sync { data_only: false }, &mut []), Ok(0));
    assert_eq!(host.bottom.below.bytes, [1; 10]);
}

#[test]
fn what_somebody_else_has_written_out_is_held_no_more() {
    let mut host = Host::new(&["write-back:buffer=64"]);
    let handle = open(&mut host, ACCESSES[0]);
    let write = Call::Write { at: At::Position, length: 10 };
    assert_eq!(host.call(handle, write, &mut [1; 10]), Ok(10));
    assert_eq!(host.stack.held_bytes(), 10);
    // Whoever shares the memory has written it out, between two calls.
    host.bottom.below.bytes = vec![1; 10];
    host.stack.drained(10);
    assert_eq!(host.stack.held_bytes(), 0);
    let end = Call::Seek { offset: -4, whence: Whence::End };
    assert_eq!(host.call(handle, end, &mut []), Ok(6), "it knows how long the file is");
    assert_eq!(host.call(handle, Call::Close, &mut []), Ok(0));
    assert_eq!(host.bottom.commands.iter().filter_map(written).count(), 0);
}

#[test]
fn the_buffer_has_a_second_one_beside_it_to_sort_in() {
    let strategy = StrategySpec::parse("write-back:buffer=64").unwrap().build();
    assert_eq!((strategy.holding_bytes(), strategy.staging_bytes()), (64, 128));
}

#[test]
fn write_back_turns_a_thousand_small_appends_into_few_large_writes() {
    let mut host = Host::new(&["write-back:buffer=16k"]);
    let handle = open(&mut host, ACCESSES[0]);
    for _ in 0..1000 {
        let call = Call::Write { at: At::Position, length: 64 };
        assert_eq!(host.call(handle, call, &mut [1; 64]), Ok(64));
    }
    assert_eq!(host.call(handle, Call::Close, &mut []), Ok(0));
    let lengths: Vec<u64> = host.bottom.commands.iter().filter_map(written).collect();
    assert_eq!(lengths, [16384, 16384, 16384, 14848]);
}

fn written(command: &Command) -> Option<u64> {
    match command {
        Command::Perform { call: Call::Write { length, .. }, .. } => Some(*length),
        _ => None,
    }
}

#[test]
fn held_bytes_age_from_the_oldest_on_and_go_out_at_the_limit() {
    let mut host = Host::new(&["write-back:age=1"]);
    let handle = open(&mut host, ACCESSES[0]);
    let written_at = |seconds: f64, host: &mut Host| {
        host.bottom.now = Nanos((seconds * 1e9) as u64);
        let call = Call::Write { at: At::Position, length: 10 };
        assert_eq!(host.call(handle, call, &mut [1; 10]), Ok(10));
        host.bottom.below.bytes.len()
    };
    assert_eq!([5.0, 5.5, 5.999].map(|at| written_at(at, &mut host)), [0; 3]);
    let after_the_limit = written_at(6.0, &mut host);
    assert!(after_the_limit >= 30, "a write renewed the age of what was held: {after_the_limit}");
    let young = written_at(6.999, &mut host);
    assert_eq!(young, after_the_limit, "what came at the limit is young");
    assert!(written_at(7.0, &mut host) > young);
}

#[test]
fn random_small_writes_go_out_sorted_and_merged() {
    let mut host = Host::new(&["write-back"]);
    let handle = open(&mut host, ACCESSES[0]);
    for block in [7, 2, 5, 0, 6, 1, 3, 4] {
        let call = Call::Write { at: At::Offset(block * 10), length: 10 };
        host.call(handle, call, &mut [block as u8; 10]).expect("written");
    }
    host.call(handle, Call::Close, &mut []).expect("closed");
    assert_eq!(host.bottom.commands.iter().filter_map(written).collect::<Vec<_>>(), [80]);
    let expected: Vec<u8> = (0..80).map(|i| i / 10).collect();
    assert_eq!(host.bottom.below.bytes, expected);
}

#[test]
fn seek_elide_sends_no_seek_below_but_to_find_the_end() {
    let mut host = Host::new(&["seek-elide"]);
    let handle = open(&mut host, ACCESSES[0]);
    for i in 0..10 {
        let seek = Call::Seek { offset: i * 10, whence: Whence::Start };
        assert_eq!(host.call(handle, seek, &mut []), Ok(i as u64 * 10));
        let write = Call::Write { at: At::Position, length: 10 };
        assert_eq!(host.call(handle, write, &mut [1; 10]), Ok(10));
    }
    let is_seek =
        |command: &&Command| matches!(command, Command::Perform { call: Call::Seek { .. }, .. });
    assert_eq!(host.bottom.commands.iter().filter(is_seek).count(), 0);
    assert_eq!(host.bottom.below.bytes.len(), 100);
}

#[test]
fn seek_free_writes_one_behind_the_other_and_the_program_does_not_notice() {
    let mut host = Host::new(&["seek-free"]);
    let handle = open(&mut host, ACCESSES[0]);
    for block in [7, 2, 5, 0] {
        let seek = Call::Seek { offset: block * 100, whence: Whence::Start };
        assert_eq!(host.call(handle, seek, &mut []), Ok(block as u64 * 100));
        let write = Call::Write { at: At::Position, length: 10 };
        assert_eq!(host.call(handle, write, &mut [block as u8; 10]), Ok(10));
    }
    let write = Call::Write { at: At::Offset(5000), length: 10 };
    assert_eq!(host.call(handle, write, &mut [9; 10]), Ok(10));
    assert_eq!(host.call(handle, Call::Truncate { length: 6000 }, &mut []), Ok(0));
    for (whence, position) in [(Whence::Current, 10), (Whence::End, 6000)] {
        assert_eq!(host.call(handle, Call::Seek { offset: 0, whence }, &mut []), Ok(position));
    }
    assert_eq!(host.call(handle, Call::Settle, &mut []), Ok(0));
    assert_eq!(host.bottom.below.positions[&handle].0, 6000);
    assert_eq!(host.call(handle, Call::Close, &mut []), Ok(0));
    let expected: Vec<u8> = [7, 2, 5, 0, 9].iter().flat_map(|&block| [block; 10]).collect();
    assert_eq!(host.bottom.below.bytes, expected);
    let seeks =
        |command: &&Command| matches!(command, Command::Perform { call: Call::Seek { .. }, .. });
    assert_eq!(host.bottom.commands.iter().filter(seeks).count(), 1, "for the settle alone");
}

#[test]
fn seek_free_leaves_a_file_alone_that_held_bytes() {
    for seed in 0..200 {
        let mut host = Host::new(&["seek-free"]);
        let access = ACCESSES[0];
        host.bottom.below.bytes = vec![1; 50];
        let mut plain = host.bottom.below.clone();
        let handle = Handle(0);
        for file in [&mut plain, &mut host.bottom.below] {
            file.positions.insert(handle, (0, access));
        }
        let call = Call::Open { access, file_bytes: 50, position: 0 };
        assert_eq!(host.call(handle, call, &mut []), Ok(0));
        let mut random = Random::new(Seed(seed));
        for _ in 0..30 {
            let call = random_call(&mut random);
            let mut memory = vec![2; call.transfer_bytes() as usize];
            let mut expected = memory.clone();
            let outcome = plain.carry_out(handle, call, &mut expected);
            assert_eq!(host.call(handle, call, &mut memory), outcome, "{call:?}");
            assert_eq!(memory, expected);
        }
        assert_eq!(host.bottom.below.bytes, plain.bytes);
    }
}
