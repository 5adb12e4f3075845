//! What a strategy says it need not hear, held against what it does when it hears it all the same: the
//! call would have gone down unchanged, its outcome up, and nothing would be different after it. So a
//! driver may leave such calls out, and decides as one that does not.

use iolab_policy::Machine;
use iolab_policy::insitu::classes::Layer;
use iolab_policy::insitu::{
    Access, Action, At, Call, Catalog, Command, Driver, Errno, Event, Handle, HeldPiece, Holding,
    Interest, Outcome, Place, Slot, Stack, Strategy, StrategySpec, Whence,
};
use iolab_vocab::{Nanos, Random, Seed};

/// A strategy that is made to hear everything.
struct Attentive {
    inner: Box<dyn Strategy>,
    /// The call it need not have heard, and what it looked like before.
    unneeded: Option<(Handle, Call, String)>,
}

impl Attentive {
    fn state(&self) -> String {
        let (mut pieces, inner) = (Vec::new(), &self.inner);
        inner.held_pieces(&mut |piece| pieces.push(piece));
        let held = (inner.held_bytes(), inner.holding(), pieces);
        format!("{held:?} {:?}", inner.interest())
    }
}

impl Machine for Attentive {
    type Event = Event;
    type Action = Action;

    fn step(&mut self, now: Nanos, event: Event, out: &mut Vec<Action>) {
        if let Event::Arrived { handle, call } = event {
            let needs = self.inner.interest().without(self.inner.passes());
            let needed = needs.hears(Interest::of(&call));
            self.unneeded = (!needed).then(|| (handle, call, self.state()));
        }
        let from = out.len();
        self.inner.step(now, event, out);
        let Some((handle, call, before)) = &self.unneeded else { return };
        let memory = match call {
            Call::Read { .. } | Call::Write { .. } => Place::Caller(0),
            _ => Place::Nowhere,
        };
        let expected = match event {
            Event::Performed(outcome) => Action::Answer(outcome),
            _ => Action::Perform { handle: *handle, call: *call, memory },
        };
        assert_eq!(out[from..], [expected], "{call:?} is not heard");
        if matches!(event, Event::Performed(_)) {
            assert_eq!(self.state(), *before, "{call:?} is not heard and changed something");
        }
    }
}

impl Strategy for Attentive {
    fn staging_bytes(&self) -> u64 {
        self.inner.staging_bytes()
    }

    fn holding_bytes(&self) -> u64 {
        self.inner.holding_bytes()
    }

    fn holding(&self) -> Holding {
        self.inner.holding()
    }

    fn held_pieces(&self, show: &mut dyn FnMut(HeldPiece)) {
        self.inner.held_pieces(show);
    }

    fn drained(&mut self, file_bytes: u64) {
        self.inner.drained(file_bytes);
    }

    fn reads_clock(&self) -> bool {
        self.inner.reads_clock()
    }

    fn held_bytes(&self) -> u64 {
        self.inner.held_bytes()
    }
}

/// A file that answers at random, as any file might.
struct Bottom {
    random: Random,
    now: Nanos,
    commands: Vec<Command>,
}

impl Driver for Bottom {
    fn now(&mut self) -> Nanos {
        self.now = self.now.after(Nanos(1000));
        self.now
    }

    fn copy(&mut self, _from: Slot, _to: Slot, _length: u64) {}

    fn perform(&mut self, _handle: Handle, call: Call, _memory: Slot) -> Outcome {
        let most = match call {
            Call::Seek { .. } => 1000,
            call => call.transfer_bytes(),
        };
        match self.random.below(20) {
            0 => Err(Errno(28)),
            1 => Ok(self.random.below(most + 1)),
            _ => Ok(most),
        }
    }

    fn wait_until(&mut self, time: Nanos) {
        self.now = time;
    }

    fn ended(&mut self, command: &Command) {
        self.commands.push(*command);
    }
}

fn random_call(random: &mut Random) -> Call {
    let at = match random.below(2) {
        0 => At::Position,
        _ => At::Offset(random.below(600)),
    };
    let length = random.below(120);
    let whence = [Whence::Start, Whence::Current, Whence::End, Whence::Sparse(3)];
    match random.below(16) {
        0..=4 => Call::Write { at, length },
        5..=9 => Call::Read { at, length },
        10 => Call::Seek {
            offset: random.below(400) as i64 - 100,
            whence: whence[random.below(4) as usize],
        },
        11 => Call::Sync { data_only: random.below(2) == 0 },
        12 => Call::Flush,
        13 => Call::Truncate { length: random.below(500) },
        14 => Call::Allocate { mode: 0, offset: random.below(300), length: random.below(300) },
        _ => Call::Settle,
    }
}

/// Outcomes and commands of a random program on a stack.
fn decisions(stack: Vec<Box<dyn Strategy>>, seed: u64) -> (Vec<Outcome>, Vec<Command>) {
    let mut stack = Stack::new(stack);
    let mut random = Random::new(Seed(seed));
    let mut bottom =
        Bottom { random: Random::new(Seed(seed ^ 0x5eed)), now: Nanos::ZERO, commands: Vec::new() };
    let handles = [Handle(0), Handle(1)];
    let mut outcomes = Vec::new();
    let access = |random: &mut Random| {
        let (write, append) = (random.below(4) > 0, random.below(3) == 0);
        Access { read: !write || random.below(3) > 0, write, append, synchronous: false }
    };
    let mut reads = [false; 2];
    for handle in handles {
        let access = access(&mut random);
        reads[handle.0 as usize] = access.read;
        let call = Call::Open { access, file_bytes: 300, position: 0 };
        outcomes.push(stack.drive(handle, call, &mut bottom));
    }
    for _ in 0..60 {
        let handle = handles[random.below(2) as usize];
        // Another one takes its place now and then, which may read where that one did not.
        if random.below(20) == 0 {
            outcomes.push(stack.drive(handle, Call::Close, &mut bottom));
            let access = access(&mut random);
            reads[handle.0 as usize] = access.read;
            let call = Call::Open { access, file_bytes: random.below(400), position: 7 };
            outcomes.push(stack.drive(handle, call, &mut bottom));
        }
        let call = random_call(&mut random);
        // Which no file below would allow.
        if matches!(call, Call::Read { .. }) && !reads[handle.0 as usize] {
            continue;
        }
        let passed = stack.passes(&call);
        assert!(stack.interest().hears(Interest::of(&call)) || passed, "{call:?}: nobody hears it");
        let (from, flushes_nothing) =
            (bottom.commands.len(), call == Call::Flush && !stack.holds());
        let outcome = stack.drive(handle, call, &mut bottom);
        if passed && !flushes_nothing {
            let last = &bottom.commands[from..];
            assert!(
                matches!(last, [Command::Perform { call: down, .. }, Command::Answer(told)]
                    if *down == call && *told == outcome),
                "{call:?} passes, and comes to {last:?}"
            );
        }
        outcomes.push(outcome);
    }
    for handle in handles {
        outcomes.push(stack.drive(handle, Call::Close, &mut bottom));
    }
    (outcomes, bottom.commands)
}

/// Every member, in the forms that make its corners frequent.
fn members() -> Vec<String> {
    let forms = |name: &str| match name {
        "null" => vec!["null", "null:hear=nothing", "null:hear=steps"],
        "write-back" => vec!["write-back:buffer=200,largest=90", "write-back:buffer=64,age=2us"],
        "cruel" => vec!["cruel:short=40,fail=10", "cruel:short=30,delay=1"],
        "seek-elide" => vec!["seek-elide", "seek-elide:outsiders=none"],
        "fsync-relax" => vec!["fsync-relax", "fsync-relax:every=2us", "fsync-relax:join=1ms"],
        "prefetch" => vec!["prefetch:plan=made-up,window=4k"],
        "stage" => vec!["stage:to=fast"],
        "align" => vec!["align:block=64,buffer=200"],
        "read-ahead" => {
            vec!["read-ahead", "read-ahead:via=buffer,outsiders=none,window=64,largest=50"]
        }
        "data-sieve" => vec!["data-sieve:outsiders=none,hole=90,window=400,largest=300"],
        _ => vec![],
    };
    let of_posix = Catalog::ROWS.iter().filter(|row| row.classes.layer == Layer::Posix);
    let member = |row: &iolab_policy::insitu::catalog::Row| match forms(row.name) {
        forms if forms.is_empty() => vec![row.name.to_owned()],
        forms => forms.into_iter().map(str::to_owned).collect(),
    };
    of_posix.flat_map(member).collect()
}

fn build(texts: &[&str]) -> Vec<Box<dyn Strategy>> {
    texts.iter().map(|text| StrategySpec::parse(text).expect("a good strategy").build()).collect()
}

fn attentive(texts: &[&str]) -> Vec<Box<dyn Strategy>> {
    let listens = |inner| Box::new(Attentive { inner, unneeded: None }) as Box<dyn Strategy>;
    build(texts).into_iter().map(listens).collect()
}

#[test]
fn what_a_strategy_does_not_hear_it_would_have_passed() {
    for member in members() {
        for seed in 0..1500 {
            let stack: &[&str] = &[&member];
            assert_eq!(
                decisions(build(stack), seed),
                decisions(attentive(stack), seed),
                "{member}, seed {seed}"
            );
        }
    }
}

#[test]
fn stages_that_are_gone_around_leave_the_decisions_of_the_others_alone() {
    let members = members();
    for above in &members {
        for below in &members {
            for seed in 0..60 {
                let stack: &[&str] = &[above, below];
                let scene = format!("{above} above {below}, seed {seed}");
                assert_eq!(
                    decisions(build(stack), seed),
                    decisions(attentive(stack), seed),
                    "{scene}"
                );
            }
        }
    }
}

#[test]
fn a_stack_hears_what_any_of_its_stages_does() {
    let hears = |texts: &[&str]| Stack::new(build(texts)).interest();
    assert!(!hears(&["null:hear=nothing"]).hears(Interest::EVERYTHING));
    assert!(!hears(&["seek-elide"]).hears(Interest::READ_AT.and(Interest::WRITE_AT)));
    assert!(hears(&["seek-elide"]).hears(Interest::SEEK));
    assert!(hears(&["seek-elide", "null"]).hears(Interest::WRITE_AT));
    assert!(!hears(&["write-back", "seek-elide"]).hears(Interest::READ_AT));
}

#[test]
fn readers_strategies_let_who_only_writes_go_by() {
    let readers =
        ["read-ahead", "read-ahead:via=buffer,outsiders=none", "data-sieve:outsiders=none"];
    for text in readers {
        let mut stack = Stack::new(build(&[text]));
        let mut bottom =
            Bottom { random: Random::new(Seed(1)), now: Nanos::ZERO, commands: Vec::new() };
        let mut open = |handle, read| {
            let access = Access { read, write: true, append: false, synchronous: false };
            let call = Call::Open { access, file_bytes: 0, position: 0 };
            stack.drive(handle, call, &mut bottom).ok();
            stack.interest()
        };
        assert!(!open(Handle(0), false).hears(Interest::TRANSFERS), "{text}");
        assert!(open(Handle(1), true).hears(Interest::TRANSFERS), "{text}");
        stack.drive(Handle(1), Call::Close, &mut bottom).ok();
        assert!(!stack.interest().hears(Interest::TRANSFERS), "{text}");
    }
}
