//! What may go wrong, and what of it a seed lets happen when.

use crate::dice::Dice;
use std::collections::BTreeSet;
use std::str::FromStr;

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
    /// Where there are cache managers, programs cut files while others use them, and servers can neither do
    /// that nor read what is fetched.
    Cut,
    /// Devices have so little room that programs fill them, or servers may use so little.
    Full,
    /// Devices change bytes at rest, where servers keep sums.
    Rot,
}

impl Fault {
    /// All there are.
    pub const ALL: [Fault; 14] = [
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
        Fault::Cut,
        Fault::Full,
        Fault::Rot,
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
            Fault::Cut => "cut",
            Fault::Full => "full",
            Fault::Rot => "rot",
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
    /// Of answers of cache managers that write through: the manager crashes right behind them.
    pub(crate) answer: u64,
    /// Of changes of length where there are caches: a server cannot carry them out.
    pub(crate) cut: u64,
    /// Of changes of length that come to a cache manager which fetches from the file: one fetch fails, and the
    /// others take long.
    pub(crate) fetch: u64,
    /// Of sums: the device changes a byte of the subfile then.
    pub(crate) rot: u64,
    /// Bytes that the device of each server has; 0: enough.
    pub(crate) device: u64,
    /// Bytes that each server may use of it; 0: all.
    pub(crate) capacity: u64,
}

impl Rates {
    /// Whether nothing of the kind can happen.
    pub(crate) fn peaceful(&self) -> bool {
        *self == Rates::default()
    }

    /// Whether there may be too little room.
    pub(crate) fn is_small(&self) -> bool {
        self.device + self.capacity > 0
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

/// A subset of the faults, each with a rate of its own: one that is always there would hide others.
pub(super) fn faults(
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
            Fault::Cache | Fault::Cut if caches == 0 => {}
            Fault::Cut => {
                (rates.cut, rates.fetch) = (dice.magnitude(4, 64), dice.magnitude(1, 4));
            }
            Fault::Rot => rates.rot = dice.magnitude(1, 16),
            Fault::Full => {
                let bytes = dice.magnitude(128, 4096);
                (rates.device, rates.capacity) = *dice.pick(&[(bytes, 0), (0, bytes)]);
            }
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
