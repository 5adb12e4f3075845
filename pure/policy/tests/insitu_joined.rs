//! Joined syncs under random callers: some ask for a sync, wait by themselves and come back late or never,
//! while others write, close and settle. Who is told that bytes are safe had them made durable after asking;
//! a sync that fails is told to all who waited for it; and nobody syncs twice for one round.

use iolab_policy::insitu::{
    Access, At, Call, Command, Driver, Errno, Handle, Outcome, Slot, Stack, StrategySpec, Ticket,
};
use iolab_vocab::{Nanos, Random, Seed};

const CALLERS: usize = 5;
const EIO: Errno = Errno(5);
/// Each caller writes to a place of its own.
const LENGTH: u64 = 8;

/// A file that forgets in a crash what was not synced.
struct Disk {
    random: Random,
    now: Nanos,
    staging: Vec<Vec<u8>>,
    /// Of the call that arrived: the version it writes.
    version: u64,
    written: [u64; CALLERS],
    durable: [u64; CALLERS],
    syncs: u64,
    /// By caller: a sync has failed since it asked.
    failed: [bool; CALLERS],
    awaits: [bool; CALLERS],
}

impl Disk {
    fn bytes(&mut self, slot: Slot, length: u64) -> Vec<u8> {
        match slot {
            Slot::Program(_) => self.version.to_le_bytes()[..length as usize].to_vec(),
            Slot::Staging { stage, offset } => {
                self.staging[stage as usize][offset as usize..][..length as usize].to_vec()
            }
            Slot::Nowhere => Vec::new(),
        }
    }
}

impl Driver for Disk {
    fn now(&mut self) -> Nanos {
        self.now
    }

    fn copy(&mut self, from: Slot, to: Slot, length: u64) {
        let bytes = self.bytes(from, length);
        if let Slot::Staging { stage, offset } = to {
            self.staging[stage as usize][offset as usize..][..bytes.len()].copy_from_slice(&bytes);
        }
    }

    fn perform(&mut self, _handle: Handle, call: Call, memory: Slot) -> Outcome {
        match call {
            Call::Write { at: At::Offset(offset), length } => {
                let bytes = self.bytes(memory, length);
                for (place, version) in bytes.chunks(LENGTH as usize).enumerate() {
                    let version = u64::from_le_bytes(version.try_into().expect("whole pieces"));
                    self.written[(offset / LENGTH) as usize + place] = version;
                }
                Ok(length)
            }
            Call::Sync { .. } => {
                self.syncs += 1;
                if self.random.below(4) == 0 {
                    for (failed, awaits) in self.failed.iter_mut().zip(self.awaits) {
                        *failed |= awaits;
                    }
                    return Err(EIO);
                }
                self.durable = self.written;
                Ok(0)
            }
            _ => Ok(0),
        }
    }

    fn wait_until(&mut self, _time: Nanos) {
        panic!("nobody waits inside");
    }

    fn ended(&mut self, _command: &Command) {}
}

#[derive(Clone, Copy)]
struct Waiting {
    ticket: Ticket,
    /// What it had written when it asked.
    version: u64,
}

struct Scene {
    stack: Stack,
    disk: Disk,
    waiting: [Option<Waiting>; CALLERS],
    asked: u64,
    label: String,
}

impl Scene {
    fn new(text: &str, seed: u64) -> Scene {
        let specs = StrategySpec::parse_all(text).expect("a good stack");
        let stack = Stack::new(specs.iter().map(StrategySpec::build).collect());
        let disk = Disk {
            random: Random::new(Seed(seed ^ 0xd15c)),
            now: Nanos::ZERO,
            staging: stack.staging_bytes().map(|bytes| vec![0; bytes as usize]).collect(),
            version: 0,
            written: [0; CALLERS],
            durable: [0; CALLERS],
            syncs: 0,
            failed: [false; CALLERS],
            awaits: [false; CALLERS],
        };
        let waiting = [None; CALLERS];
        let label = format!("{text}, seed {seed}");
        let mut scene = Scene { stack, disk, waiting, asked: 0, label };
        (0..CALLERS).for_each(|caller| scene.open(caller));
        scene
    }

    fn drive(&mut self, caller: usize, call: Call) -> Outcome {
        self.stack.drive(Handle(caller as u32), call, &mut self.disk)
    }

    fn open(&mut self, caller: usize) {
        let access = Access { read: true, write: true, ..Access::default() };
        let file_bytes = CALLERS as u64 * LENGTH;
        assert_eq!(self.drive(caller, Call::Open { access, file_bytes, position: 0 }), Ok(0));
    }

    fn write(&mut self, caller: usize) -> u64 {
        self.disk.version += 1;
        let version = self.disk.version;
        let at = At::Offset(caller as u64 * LENGTH);
        assert_eq!(self.drive(caller, Call::Write { at, length: LENGTH }), Ok(LENGTH));
        version
    }

    fn ask(&mut self, caller: usize, version: u64) {
        let call = Call::Sync { data_only: self.disk.random.below(2) == 0 };
        let ticket = self.stack.join(self.disk.now, &call).expect("all syncs are joined");
        assert!(ticket.until <= self.disk.now.after(Nanos(10)), "{}", self.label);
        self.waiting[caller] = Some(Waiting { ticket, version });
        (self.disk.failed[caller], self.disk.awaits[caller]) = (false, true);
        self.asked += 1;
    }

    /// The caller is back from its wait.
    fn come_back(&mut self, caller: usize) {
        let Some(waiting) = self.waiting[caller].take() else { return };
        let call = Call::Sync { data_only: true };
        let outcome = match self.stack.joined(&call, waiting.ticket) {
            Some(outcome) => outcome,
            None => self.drive(caller, call),
        };
        self.disk.awaits[caller] = false;
        let (failed, durable) = (self.disk.failed[caller], self.disk.durable[caller]);
        match outcome {
            Ok(_) => {
                assert!(durable >= waiting.version, "{}: lost after a sync", self.label);
                assert!(!failed, "{}: a failure was not told", self.label);
            }
            Err(errno) => assert!(failed && errno == EIO, "{}: a failure of nobody", self.label),
        }
    }
}

fn run(text: &str, seed: u64) -> (u64, u64) {
    let mut scene = Scene::new(text, seed);
    let mut random = Random::new(Seed(seed));
    for _ in 0..120 {
        let caller = random.below(CALLERS as u64) as usize;
        scene.disk.now = scene.disk.now.after(Nanos(random.below(4)));
        match (scene.waiting[caller], random.below(12)) {
            // It never comes back: a handler has jumped out of its wait.
            (Some(_), 0) => {
                scene.waiting[caller] = None;
                scene.disk.awaits[caller] = false;
            }
            (Some(waiting), _) if waiting.ticket.until <= scene.disk.now => scene.come_back(caller),
            (Some(_), _) => {}
            (None, 0) => {
                assert_eq!(scene.drive(caller, Call::Close), Ok(0));
                scene.open(caller);
            }
            (None, 1) => assert_eq!(scene.drive(caller, Call::Settle), Ok(0)),
            (None, _) => {
                let version = scene.write(caller);
                scene.ask(caller, version);
            }
        }
    }
    (0..CALLERS).for_each(|caller| scene.come_back(caller));
    (scene.asked, scene.disk.syncs)
}

#[test]
fn who_is_told_that_bytes_are_safe_has_them_on_disk_and_failures_are_told_to_all_who_waited() {
    let (mut asked, mut syncs) = (0, 0);
    for text in ["fsync-relax:join=10ns", "fsync-relax:join=10ns + write-back:buffer=64,paths=**"] {
        for seed in 0..2000 {
            let (more_asked, more_syncs) = run(text, seed);
            assert!(more_syncs <= more_asked, "{text}, seed {seed}");
            (asked, syncs) = (asked + more_asked, syncs + more_syncs);
        }
    }
    assert!(2 * syncs < asked, "{syncs} syncs for {asked} that were asked for");
}
