//! The parallel file system on a simulated platform: the machines of `iolab_pfs`, unchanged, on the world.
//!
//! Each process has a client, each chosen server of the platform an I/O server, one node the metadata
//! manager, and chosen nodes a cache manager; they meet in messages with their true sizes. What is modelled is what machines leave to their
//! drivers: the network, the time of processors and devices, and what is in memory. Payload is a size.
//! `docs/models/file-system.md` has the facts.
//!
//! Programs, faults, tie seeds and traces are those of the cluster's model; so are the processes.

mod build;
mod cache;
mod clients;
mod costs;
mod device;
mod ends;
mod manager;
mod parcel;
mod places;
mod requests;
mod server;
mod spans;
mod store;
mod thread;

pub use build::{Before, Setup};
pub use cache::CacheTotals;
pub use costs::Costs;
pub use iolab_pfs::configuration::{Configuration, Durability};
pub use requests::TrafficTotals;

use crate::cluster::{
    DeviceTotals, HopTotals, LinkKind, Progress, Recording, RunError, ServerTotals,
};
use crate::process::{Files, Processes};
use crate::program::Program;
use crate::queue::EventQueue;
use crate::scenario::Faults;
use crate::slab::Id;
use crate::world::{self, Departure, Event, Host, NodeId, PacketId, Recorder, Rows, ServerId};
use crate::world::{Target, TaskId};
use cache::Cache;
use clients::FileClients;
use iolab_pfs::{Inode, Party, Peer, cache_manager, client, io_server, metadata};
use iolab_vocab::{Direction, FileId, Nanos};
use manager::Manager;
use parcel::{Asker, Parcel, Told};
use server::{Server, Then};
use thread::{Owner, owner_of};

/// The world where messages mean what the machines of a file system say.
type World<Q> = world::World<Q, Told>;

/// As what devices know the manager's journal.
const JOURNAL: FileId = FileId(u32::MAX - 1);

/// When nothing but signs of life has happened for so long, nothing will: the machines' longest time-out
/// is 8 s.
const QUIET: Nanos = Nanos(60_000_000_000);

/// What is on its way for so long without anything else happening may be lost.
const LOST: Nanos = Nanos(3600 * 1_000_000_000);

/// One run of a file system, with programs that live for `'p`.
pub struct FileSystem<'p, Q> {
    world: World<Q>,
    machines: Machines<'p>,
}

/// All machines of a run.
struct Machines<'p> {
    processes: Processes<'p, FileClients>,
    servers: Vec<Server>,
    manager: Manager,
    caches: Vec<Cache>,
    /// By server of the platform, which of ours it is.
    at_server: Vec<Option<usize>>,
    /// Which of ours has the manager's journal on its device.
    journal_at: Option<usize>,
    /// When something last happened that was no sign of life.
    last_progress: Nanos,
    /// Nothing will happen any more but signs of life.
    is_stuck: bool,
}

impl<Q: EventQueue<Event>> FileSystem<'_, Q> {
    /// Gives every process its first command.
    pub fn start(&mut self) {
        let FileSystem { world, machines } = self;
        for place in 0..machines.processes.clients.count() {
            machines.processes.clients.tell(world, place, client::Event::Woke);
        }
        machines.servers.iter_mut().for_each(|server| server.tell(world, io_server::Event::Woke));
        machines.manager.tell(world, metadata::Event::Woke);
        machines.caches.iter_mut().for_each(|cache| cache.tell(world, cache_manager::Event::Woke));
        machines.processes.start(world);
    }

    /// Handles up to so many events. Tells whether there was that much to do.
    pub fn advance(&mut self, event_count: u64) -> bool {
        (0..event_count).all(|_| self.world.advance(&mut self.machines))
    }

    /// After the last event: its time, or why processes have not ended.
    pub fn verdict(&mut self) -> Result<Nanos, RunError> {
        let FileSystem { world, machines } = self;
        if let Some(refused) = machines.processes.take_refused() {
            return Err(RunError::Refused(refused));
        }
        if let Some(part) = world.late(|task| machines.node_of(task)) {
            return Err(RunError::Late(part));
        }
        if machines.processes.are_waiting() {
            let deadlock = machines.diagnose(world);
            return Err(RunError::Deadlock(Box::new(deadlock)));
        }
        match machines.processes.unreceived() {
            Some(unreceived) => Err(RunError::Unreceived(unreceived)),
            None => Ok(world.now()),
        }
    }

    /// Lets these faults happen. They must have been laid on the platform it is built from.
    pub fn inject(&mut self, faults: &Faults) {
        self.world.inject(faults);
    }

    /// Packets that links have lost so far; every one was sent again, or its link is cut for good.
    pub fn lost_packet_count(&self) -> u64 {
        self.world.lost_packet_count()
    }

    /// What each server of the platform has done so far; nothing, if it is none of the file system's.
    pub fn server_totals(&self) -> impl Iterator<Item = ServerTotals> + '_ {
        let servers = self.machines.at_server.iter().zip(self.world.device_totals());
        servers.map(|(ours, device): (&Option<usize>, DeviceTotals)| {
            let (traffic, memory) =
                ours.map_or_else(Default::default, |ours| self.machines.servers[ours].totals());
            ServerTotals { device, queue_max: traffic.queue_max, memory }
        })
    }

    /// What each server of the file system was asked and told: by its place among the platform's.
    pub fn traffic(&self) -> impl Iterator<Item = (usize, TrafficTotals)> + '_ {
        let servers = self.machines.servers.iter();
        servers.map(|server| (server.device.server().index(), server.totals().0))
    }

    /// What each cache manager has done, in their order: by its node, as the platform counts nodes.
    pub fn cache_totals(&self) -> impl Iterator<Item = (usize, CacheTotals)> + '_ {
        let caches = self.machines.caches.iter();
        caches.map(|cache| (cache.thread.node.index(), cache.totals()))
    }

    /// What each link and switch has carried so far, as of a cluster.
    pub fn link_totals(&self) -> impl Iterator<Item = (LinkKind, HopTotals)> + '_ {
        self.world.link_totals()
    }

    /// Each application's program, and when its last process has ended.
    pub fn applications(&self) -> impl Iterator<Item = (&(dyn Program + '_), Nanos)> {
        self.machines.processes.applications()
    }

    /// How far the run is.
    pub fn progress(&self) -> Progress {
        Progress {
            now: self.world.now(),
            event_count: self.world.event_count(),
            running_count: self.machines.processes.running_count(),
        }
    }

    /// A hash over all events so far, with their times: equal runs have equal hashes.
    pub fn event_hash(&self) -> u64 {
        self.world.event_hash()
    }

    /// Events handled so far.
    pub fn event_count(&self) -> u64 {
        self.world.event_count()
    }

    /// From now on keeps what every part does, as a cluster does; to be asked before the start.
    pub fn record(&mut self) {
        let process_count = self.machines.processes.record();
        let recorder = Recorder::new(process_count, self.world.server_count() as u32);
        let first = recorder.process_behind(self.world.node_count() as u32);
        for (cache, process) in self.machines.caches.iter_mut().zip(first..) {
            cache.row_process = process;
        }
        self.world.record(recorder);
    }

    /// What was kept, in order; nothing if nobody asked.
    pub fn take_recording(&mut self) -> Option<Recording> {
        let now = self.world.now();
        let mut recorder = self.world.take_recorder()?;
        self.machines.processes.note_unfinished(&mut recorder, now);
        let Rows { mut rows, causes, lost_count } = recorder.finish();
        // The journal, and further subfiles of a file on one server, are no files of the program.
        let file_count = self.machines.processes.clients.file_count() as u32;
        for row in rows.iter_mut().filter(|row| row.file.0 >= file_count) {
            row.file = FileId::NONE;
        }
        let communicators = self.machines.processes.communicators();
        Some(Recording { rows, causes, communicators, lost_count })
    }
}

impl Machines<'_> {
    /// What processes do from now on is no longer looked at: the run is over.
    fn is_over(&self) -> bool {
        self.is_stuck || self.processes.has_refused()
    }

    fn node_of(&self, task: TaskId) -> NodeId {
        match owner_of(task) {
            Owner::Process => self.processes.node_of(task),
            Owner::Job(place) | Owner::Clock(place) => match self.party_at(place) {
                Place::Client(client) => self.processes.clients.node(client),
                Place::Server(server) => self.servers[server].thread.node,
                Place::Metadata => self.manager.thread.node,
                Place::Cache(cache) => self.caches[cache].thread.node,
            },
        }
    }

    fn party_at(&self, place: usize) -> Place {
        let clients = self.processes.clients.count();
        match place.checked_sub(clients) {
            None => Place::Client(place),
            Some(server) if server < self.servers.len() => Place::Server(server),
            Some(behind) => match behind - self.servers.len() {
                0 => Place::Metadata,
                behind => Place::Cache(behind - 1),
            },
        }
    }

    /// What processes have waited for and now have.
    fn settle<Q: EventQueue<Event>>(&mut self, world: &mut World<Q>) {
        let servers = &mut self.servers;
        let opens = |inode: Inode, file| {
            servers.iter_mut().for_each(|server| server.store.name(inode, FileId(file)));
        };
        self.processes.settle_calls(world, opens);
    }

    fn parcel_arrived<Q: EventQueue<Event>>(&mut self, world: &mut World<Q>, parcel: Parcel) {
        if !parcel.is_sign_of_life() {
            self.last_progress = world.now();
        }
        match (parcel.is_for_party(), parcel.party) {
            (true, Party::Metadata) => self.manager.arrived(world, parcel),
            (true, Party::Server(index)) => self.servers[index as usize].arrived(world, parcel),
            (true, Party::Cache(index)) => self.caches[index as usize].arrived(world, parcel),
            (false, _) => match self.processes.clients.asker(parcel.connection) {
                Asker::Client(client) => self.processes.clients.arrived(world, client, parcel),
                Asker::Metadata => self.manager.arrived(world, parcel),
                Asker::Cache(cache) => self.caches[cache].arrived(world, parcel),
            },
        }
    }

    /// A party's thread is through with a job.
    fn work<Q: EventQueue<Event>>(&mut self, world: &mut World<Q>, place: usize) {
        match self.party_at(place) {
            Place::Client(client) => self.processes.clients.work(world, client),
            Place::Server(server) => self.servers[server].work(world),
            Place::Cache(cache) => self.caches[cache].work(world),
            Place::Metadata => {
                let Some(record) = self.manager.work(world) else { return };
                let at = self.journal_at.expect("the manager has a device");
                let device = &mut self.servers[at].device;
                let batch = device.access(world, Direction::Write, JOURNAL, &[record.extent]);
                device.then([batch], Then::Appended(record.sequence));
            }
        }
    }

    fn rings<Q: EventQueue<Event>>(&mut self, world: &mut World<Q>, place: usize) -> bool {
        let now = world.now();
        match self.party_at(place) {
            Place::Client(client) => {
                let thread = self.processes.clients.thread(client);
                let rings = thread.rings(now);
                rings.then(|| thread.add(world, 0.0, clients::Job::Wake));
                rings
            }
            Place::Server(server) => {
                let thread = &mut self.servers[server].thread;
                let rings = thread.rings(now);
                rings.then(|| thread.add(world, 0.0, server::Job::Wake));
                rings
            }
            Place::Metadata => {
                let thread = &mut self.manager.thread;
                let rings = thread.rings(now);
                rings.then(|| thread.add(world, 0.0, manager::Job::Wake));
                rings
            }
            Place::Cache(cache) => {
                let thread = &mut self.caches[cache].thread;
                let rings = thread.rings(now);
                rings.then(|| thread.add(world, 0.0, cache::Job::Wake));
                rings
            }
        }
    }

    /// Whether nothing will ever happen but signs of life: everybody waits for somebody, and has for long.
    fn is_at_a_standstill<Q: EventQueue<Event>>(&self, world: &World<Q>) -> bool {
        let is_sign = |told| match told {
            Told::Between(_) => false,
            Told::Parcel(parcel) => world.payloads.get(parcel).is_sign_of_life(),
        };
        let quiet_for = world.now().since(self.last_progress);
        // What a link has lost for good is on its way for ever.
        let nothing_comes = world.messages().all(|message| is_sign(message.content))
            || (quiet_for > LOST && !world.lasting_faults().is_empty());
        let is_quiet = quiet_for > QUIET
            && nothing_comes
            && self.processes.clients.are_quiet()
            && self.servers.iter().all(Server::is_quiet)
            && self.manager.is_quiet()
            && self.caches.iter().all(Cache::is_quiet);
        is_quiet && self.diagnose(world).waiting.iter().all(|one| !one.reasons.is_empty())
    }

    /// A party hears that a connection to it is no more.
    fn lost<Q: EventQueue<Event>>(&mut self, world: &mut World<Q>, party: Party, peer: Peer) {
        match party {
            Party::Metadata => self.manager.thread.add(world, 0.0, manager::Job::Lost(peer)),
            Party::Server(index) => {
                let thread = &mut self.servers[index as usize].thread;
                thread.add(world, 0.0, server::Job::Lost(peer));
            }
            Party::Cache(index) => {
                let thread = &mut self.caches[index as usize].thread;
                thread.add(world, 0.0, cache::Job::Lost(peer));
            }
        }
    }

    fn diagnose<Q: EventQueue<Event>>(&self, world: &World<Q>) -> crate::cluster::Deadlock {
        self.processes.diagnose(world, |reasons| self.processes.tell_of_calls(reasons))
    }
}

/// Which party a place is.
enum Place {
    Client(usize),
    Server(usize),
    Metadata,
    Cache(usize),
}

impl<Q: EventQueue<Event>> Host<Q, Told> for Machines<'_> {
    fn departed(&mut self, world: &mut World<Q>, departure: Departure<Told>) {
        if departure.is_sent
            && let Some(task) = departure.sender
        {
            self.processes.settle_one(world, task);
        }
    }

    fn packet_arrived(&mut self, _: &mut World<Q>, _: PacketId, _: Told) -> bool {
        false
    }

    fn message_arrived(&mut self, world: &mut World<Q>, target: Target, content: Told) {
        match content {
            Told::Between(message) => {
                self.last_progress = world.now();
                self.processes.message_arrived(world, target, message);
            }
            Told::Parcel(id) => {
                let parcel = world.payloads.get(id).clone();
                world.payloads.remove(id);
                self.parcel_arrived(world, parcel);
            }
        }
        self.settle(world);
    }

    fn computed(&mut self, world: &mut World<Q>, task: TaskId) {
        if self.is_over() {
            return;
        }
        match owner_of(task) {
            Owner::Process => {
                self.last_progress = world.now();
                self.processes.take_steps(world, task);
            }
            Owner::Job(place) => self.work(world, place),
            Owner::Clock(_) => unreachable!("a clock computes nothing"),
        }
        self.settle(world);
    }

    fn rested(&mut self, world: &mut World<Q>, task: TaskId) -> bool {
        if self.is_over() {
            return false;
        }
        let Owner::Clock(place) = owner_of(task) else {
            self.last_progress = world.now();
            return self.processes.rested(world, task);
        };
        // Once all processes have ended, nobody looks whether somebody is still there.
        if !self.processes.are_waiting() {
            return false;
        }
        if self.is_at_a_standstill(world) {
            self.is_stuck = true;
            world.stop();
            return false;
        }
        self.rings(world, place)
    }

    fn transferred(&mut self, world: &mut World<Q>, server: ServerId, _: Direction, ticket: u32) {
        self.last_progress = world.now();
        let ours = self.at_server[server.index()].expect("only servers of ours use devices");
        if let Some(upto) = self.servers[ours].transferred(world, ticket) {
            self.manager.thread.add(world, 0.0, manager::Job::Appended(upto));
        }
    }

    fn woke(&mut self, _: &mut World<Q>, _: ServerId) -> bool {
        false
    }

    /// A server stalls, and with it the cache manager beside it: they are threads of one process.
    fn stalled(&mut self, world: &mut World<Q>, server: ServerId, is_stalled: bool) {
        let Some(ours) = self.at_server[server.index()] else { return };
        let thread = &mut self.servers[ours].thread;
        let node = thread.node;
        thread.stall(world, is_stalled);
        let caches = self.caches.iter_mut().map(|cache| &mut cache.thread);
        caches.filter(|thread| thread.node == node).for_each(|one| one.stall(world, is_stalled));
    }

    /// Parties on the node are no more. Who had connections from there notices at once, as if the network
    /// told; who waits for an answer from there does not.
    fn crashed(&mut self, world: &mut World<Q>, node: NodeId) {
        self.processes.crash(node);
        let clients = &mut self.processes.clients;
        let mut lost = Vec::new();
        for place in
            (0..clients.count()).filter(|place| clients.node(*place) == node).collect::<Vec<_>>()
        {
            clients.thread(place).die();
            lost.extend(clients.links(place));
        }
        for cache in self.caches.iter_mut().filter(|cache| cache.thread.node == node) {
            cache.thread.die();
            lost.extend(cache.ends.links());
        }
        lost.into_iter().for_each(|(party, peer)| self.lost(world, party, peer));
        let servers = self.servers.iter_mut().map(|server| &mut server.thread);
        servers.filter(|thread| thread.node == node).for_each(|thread| thread.die());
        if self.manager.thread.node == node {
            self.manager.thread.die();
        }
    }
}
