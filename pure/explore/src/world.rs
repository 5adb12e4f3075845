//! All machines of an instance in one thread: virtual time, a network and disks that do what a seed says.
//!
//! Nothing happens at once: what a machine wants is put into one queue of happenings, ordered by time, and
//! anything may come in between. A defect ends the run.

mod answers;
mod caches;
mod clients;
mod collectives;
mod devices;
mod manager;
mod network;
mod programs;
mod servers;
mod space;
mod sums;
mod troubles;

use crate::dice::Dice;
use crate::marks::{Mark, Marks};
use crate::names::Names;
use crate::plan::Plan;
use crate::pointers::Pointers;
use crate::shadow::{Shadow, Tick};
use caches::Cache;
use clients::Process;
use collectives::{Collective, Verdicts};
use iolab_pfs::{Inode, Party};
use iolab_vocab::Nanos;
use manager::Manager;
use network::{Connection, Frame};
use programs::Bulletin;
use servers::Server;
use std::collections::{BTreeMap, BTreeSet};

/// After so many steps, or so much time, nothing goes wrong any more.
const STEPS_OF_TROUBLE: u64 = 20_000;
const TIME_OF_TROUBLE: u64 = 150_000_000_000;
/// A call may take so long once nothing goes wrong any more: what a failure takes to be noticed, several times.
const CALM_CALL_NS: u64 = 60_000_000_000;
/// What is left over goes within this time after the last call.
const SETTLING_NS: u64 = 30_000_000_000;
/// The most steps of a run.
const STEPS_MAX: u64 = 400_000;

/// A machine and its driver.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Node {
    Client(usize),
    Server(u32),
    Cache(u32),
    Metadata,
}

impl Node {
    fn of(party: Party) -> Node {
        match party {
            Party::Metadata => Node::Metadata,
            Party::Server(server) => Node::Server(server),
            Party::Cache(cache) => Node::Cache(cache),
        }
    }
}

/// What is in the queue.
#[derive(Clone, Debug)]
enum Happening {
    /// A program goes on.
    Goes { client: usize },
    /// Somebody wants a connection.
    Knock { connection: usize },
    /// Nobody has welcomed it.
    Unwelcome { connection: usize },
    /// A frame comes to its end of a connection.
    Arrives { connection: usize, to_party: bool, frame: Frame },
    /// The end of a connection is noticed.
    Noticed { connection: usize, at_party: bool },
    /// A machine wanted to be woken.
    Wakes { node: Node, life: u32 },
    /// Bytes of a read come to the program's memory.
    Moves { client: usize, call: u64 },
    /// A device has done a part of an operation, or all.
    Works { server: u32, life: u32, operation: u64 },
    /// Records are in the journal.
    Written { life: u32 },
    /// The manager crashes while it writes.
    Crashes { life: u32 },
    /// A journal beside the other is on the disk.
    Checkpointed { life: u32 },
    /// The power goes.
    PowerCut,
    /// A server crashes that has just told what a collective came to.
    Falls { server: u32, life: u32 },
    /// A cache manager ends that was told so before.
    Ends { cache: u32 },
    /// A crashed party starts.
    Starts { node: Node },
}

/// An instance under attack.
pub(crate) struct World {
    plan: Plan,
    dice: Dice,
    now: Nanos,
    /// Happenings by time and the order in which they were wanted.
    queue: BTreeMap<(u64, u64), Happening>,
    wanted: u64,
    steps: u64,
    ticks: Tick,
    hash: u64,
    marks: Marks,
    defect: Option<String>,
    /// Everything that machines hear and want, in words, if that is asked for.
    story: Option<Vec<String>>,
    /// The recordings of all machines by party and life, if they are asked for.
    recordings: Option<Recordings>,
    /// Since when nothing goes wrong.
    calm_since: Option<Nanos>,
    events_done: usize,
    /// How often the power may still go after a sync.
    power_cuts_left: u32,
    /// Nothing happens at a party until then.
    paused: BTreeMap<Node, u64>,
    /// Nothing gets through from one to the other until then.
    cut: BTreeMap<(Node, Node), u64>,
    processes: Vec<Process>,
    servers: Vec<Server>,
    caches: Vec<Cache>,
    manager: Manager,
    connections: Vec<Connection>,
    bulletins: Vec<Bulletin>,
    collectives: BTreeMap<(usize, u64), Collective>,
    verdicts: Verdicts,
    shadow: Shadow,
    names: Names,
    pointers: Pointers,
    /// Whether it is looked at what is left, and the files that were found.
    auditing: bool,
    found: BTreeSet<Inode>,
}

/// What machines were told and what they wanted, as `iolab_pfs::recording` has it, by party and life.
pub type Recordings = BTreeMap<String, Vec<u8>>;

/// What is kept of a run beside its outcome.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Keeps {
    /// A story in words.
    pub(crate) story: bool,
    /// The events of all machines.
    pub(crate) events: bool,
}

/// What came of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outcome {
    /// How many steps it took.
    pub steps: u64,
    /// Of all that happened, in order.
    pub hash: u64,
    /// Rare branches that were met.
    pub marks: Marks,
    /// What is wrong, if anything is.
    pub defect: Option<String>,
}

impl World {
    pub(crate) fn new(plan: Plan, seed: u64, keeps: Keeps) -> World {
        let servers = (0..plan.servers).map(|_| Server::new(&plan)).collect();
        let caches = (0..plan.caches).map(|cache| Cache::new(&plan, cache)).collect();
        let mut world = World {
            dice: Dice::new(seed, 4),
            now: Nanos(1_000_000),
            queue: BTreeMap::new(),
            wanted: 0,
            steps: 0,
            ticks: 1,
            hash: 0xCBF2_9CE4_8422_2325,
            marks: Marks::default(),
            defect: None,
            story: keeps.story.then(Vec::new),
            recordings: keeps.events.then(Recordings::new),
            calm_since: None,
            events_done: 0,
            power_cuts_left: 5,
            paused: BTreeMap::new(),
            cut: BTreeMap::new(),
            processes: Vec::new(),
            servers,
            caches,
            manager: Manager::new(&plan),
            connections: Vec::new(),
            bulletins: Vec::new(),
            collectives: BTreeMap::new(),
            verdicts: Verdicts::default(),
            shadow: Shadow::new(plan.managers(), plan.outlives_caches(), plan.transfer_bytes),
            names: Names::new(plan.files_quota),
            pointers: Pointers::default(),
            auditing: false,
            found: BTreeSet::new(),
            plan,
        };
        world.enrol();
        (0..world.plan.servers).for_each(|server| world.start(Node::Server(server)));
        (0..world.plan.caches).for_each(|cache| world.start(Node::Cache(cache)));
        world.start(Node::Metadata);
        world
    }

    /// Runs until all is over, or something is wrong.
    pub(crate) fn run(mut self) -> (Outcome, Vec<String>, Recordings) {
        self.until(World::programs_are_over);
        self.calm_down();
        self.audit();
        self.until(World::programs_are_over);
        self.end_caches();
        let end = self.now.after(Nanos(SETTLING_NS));
        self.until(|world| world.now >= end || world.queue.is_empty());
        if self.defect.is_none() {
            self.judge();
        }
        if self.names.undecided() {
            self.meet(Mark::NamesUndecided);
        }
        let World { steps, hash, marks, defect, story, recordings, .. } = self;
        let outcome = Outcome { steps, hash, marks, defect };
        (outcome, story.unwrap_or_default(), recordings.unwrap_or_default())
    }

    /// Goes on until `over`, or until something is wrong.
    fn until(&mut self, over: impl Fn(&World) -> bool) {
        while self.defect.is_none() && !over(self) {
            self.make_trouble();
            let Some(((at, number), happening)) = self.queue.pop_first() else {
                self.fail(format!("nothing happens any more, but {}", self.waiting()));
                return;
            };
            if let Some(until) = self.paused_until(&happening).filter(|&until| until > at) {
                self.queue.insert((until, number), happening);
                continue;
            }
            self.now = Nanos(at.max(self.now.0));
            self.steps += 1;
            self.log(&[self.now.0, number]);
            self.happen(happening);
            self.check_bounds();
        }
    }

    fn check_bounds(&mut self) {
        if self.steps > STEPS_OF_TROUBLE || self.now.0 > TIME_OF_TROUBLE {
            self.calm_down();
        }
        if self.steps > STEPS_MAX {
            self.fail(format!("{STEPS_MAX} steps were not enough, and {}", self.waiting()));
        }
        if let Some(calm) = self.calm_since {
            let now = self.now;
            let late = |begun: Nanos| now.since(begun.max(calm)).0 > CALM_CALL_NS;
            if self.steps.is_multiple_of(64) && self.oldest_call().is_some_and(late) {
                self.fail(format!("without any trouble a call does not end: {}", self.waiting()));
            }
        }
    }

    fn happen(&mut self, happening: Happening) {
        match happening {
            Happening::Goes { client } => self.go_on(client),
            Happening::Knock { connection } => self.knock(connection),
            Happening::Unwelcome { connection } => self.unwelcome(connection),
            Happening::Arrives { connection, to_party, frame } => {
                self.arrive(connection, to_party, frame);
            }
            Happening::Noticed { connection, at_party } => self.notice(connection, at_party),
            Happening::Wakes { node, life } => self.wake(node, life),
            Happening::Moves { client, call } => self.moved(client, call),
            Happening::Works { server, life, operation } => self.work(server, life, operation),
            Happening::Written { life } => self.written(life),
            Happening::Checkpointed { life } => self.checkpointed(life),
            Happening::Crashes { life } => {
                if self.manager.life == life {
                    self.crash_metadata(self.now.0 + 100_000_000);
                }
            }
            Happening::PowerCut => self.cut_power_if_on(),
            Happening::Falls { server, life } => {
                if self.servers[server as usize].life == life {
                    self.crash_server(server, self.now.0 + 100_000_000);
                }
            }
            Happening::Ends { cache } => self.crash_cache(cache, self.now.0 + 1_000_000),
            Happening::Starts { node } => self.start(node),
        }
    }

    /// Where it happens.
    fn place_of(&self, happening: &Happening) -> Option<Node> {
        let end = |connection: &usize, at_party: bool| {
            let connection = &self.connections[*connection];
            if at_party { Node::of(connection.party) } else { connection.asker }
        };
        match happening {
            Happening::Goes { client } | Happening::Moves { client, .. } => {
                Some(Node::Client(*client))
            }
            Happening::Knock { connection } => Some(end(connection, true)),
            Happening::Unwelcome { connection } => Some(end(connection, false)),
            Happening::Arrives { connection, to_party, .. } => Some(end(connection, *to_party)),
            Happening::Noticed { connection, at_party } => Some(end(connection, *at_party)),
            Happening::Wakes { node, .. } => Some(*node),
            Happening::Works { server, .. } | Happening::Falls { server, .. } => {
                Some(Node::Server(*server))
            }
            Happening::Written { .. }
            | Happening::Crashes { .. }
            | Happening::Checkpointed { .. } => Some(Node::Metadata),
            Happening::PowerCut | Happening::Ends { .. } | Happening::Starts { .. } => None,
        }
    }

    fn paused_until(&self, happening: &Happening) -> Option<u64> {
        if self.paused.is_empty() {
            return None;
        }
        self.paused.get(&self.place_of(happening)?).copied()
    }

    /// Puts something into the queue, so much later.
    fn later(&mut self, delay_ns: u64, happening: Happening) {
        self.at(self.now.0 + delay_ns, happening);
    }

    fn at(&mut self, at: u64, happening: Happening) {
        self.wanted += 1;
        self.queue.insert((at, self.wanted), happening);
    }

    /// How long something ordinary takes.
    fn delay(&mut self) -> u64 {
        let pace = self.dice.magnitude(1_000, self.plan.pace_ns);
        if self.trouble(self.plan.rates.delay) {
            return pace + self.dice.magnitude(1_000_000, 5_000_000_000);
        }
        pace
    }

    /// Whether something that happens at that rate happens now.
    fn trouble(&mut self, rate: u64) -> bool {
        self.calm_since.is_none() && self.dice.one_in(rate)
    }

    fn tick(&mut self) -> Tick {
        self.ticks += 1;
        self.ticks
    }

    fn meet(&mut self, mark: Mark) {
        self.marks.meet(mark);
    }

    /// Adds to the story.
    fn tell(&mut self, what: &dyn Fn() -> String) {
        if let Some(story) = &mut self.story {
            story.push(format!(
                "{:>14.6} ms, {:>5}: {}",
                self.now.0 as f64 / 1e6,
                self.ticks,
                what()
            ));
        }
    }

    /// Adds to the recording of that name.
    fn keep(&mut self, name: &dyn Fn() -> String, rows: Vec<u8>) {
        if let Some(recordings) = &mut self.recordings {
            recordings.entry(name()).or_default().extend(rows);
        }
    }

    /// Something is wrong; the first defect counts.
    fn fail(&mut self, what: String) {
        self.defect.get_or_insert(what);
    }

    fn check(&mut self, result: Result<(), String>) {
        if let Err(what) = result {
            self.fail(what);
        }
    }

    /// Mixes what happened into the hash of the run (FNV-1a over words).
    fn log(&mut self, words: &[u64]) {
        for word in words {
            self.hash = (self.hash ^ word).wrapping_mul(0x0100_0000_01B3);
        }
    }

    fn log_bytes(&mut self, bytes: &[u8]) {
        for chunk in bytes.chunks(8) {
            let mut word = [0; 8];
            word[..chunk.len()].copy_from_slice(chunk);
            self.log(&[u64::from_le_bytes(word)]);
        }
    }

    fn wake(&mut self, node: Node, life: u32) {
        match node {
            Node::Client(client) => {
                if client % 2 == 1 {
                    self.tell_who_runs(client);
                }
                self.tell_client(client, iolab_pfs::client::Event::Woke);
            }
            Node::Server(server) => {
                if self.servers[server as usize].life == life {
                    self.tell_server(server, iolab_pfs::io_server::Event::Woke);
                }
            }
            Node::Cache(cache) => {
                if self.caches[cache as usize].life == life {
                    self.tell_cache(cache, iolab_pfs::cache_manager::Event::Woke);
                }
            }
            Node::Metadata => {
                if self.manager.life == life {
                    self.tell_manager(iolab_pfs::metadata::Event::Woke);
                }
            }
        }
    }

    /// Some clients share their host with the servers, whose kernel says which of them run.
    fn tell_who_runs(&mut self, client: usize) {
        for server in 0..self.servers.len() {
            if self.servers[server].up {
                let party = iolab_pfs::Party::Server(server as u32);
                let runs = iolab_pfs::PartyEvent::Runs { party };
                self.tell_of_party(Node::Client(client), runs);
            }
        }
    }

    /// What is left when all is over.
    fn judge(&mut self) {
        let (bytes, pointers) = (self.shadow.judge(), self.pointers.judge());
        let checks = [bytes, pointers, self.left_over(), self.disks_are_right()];
        checks.into_iter().for_each(|result| self.check(result));
    }
}
