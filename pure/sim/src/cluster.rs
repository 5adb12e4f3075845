//! A cluster at work: clients run programs, servers store.
//!
//! The model is that of PIOsimHD (Kuhn 2009) in full; `docs/models/classic-hdd.md` has its facts.
//! One [`Cluster`] is one run: a world (time, network, devices) and the machines on it. Each machine has
//! its own state: processes with their commands and the client that makes requests for them, and servers
//! around their cache layers. They meet in messages of the world; only a process calls its client without
//! one, as a program calls the library it is linked with.

mod build;
mod client;
mod diagnosis;
mod files;
pub(crate) mod hash_table;
mod message;
mod overrides;
mod request;
mod server;

pub use crate::process::{Deadlock, Reason, Refused, RunError, Unreceived, Waiting};
pub use crate::world::{DeviceTotals, Event, HopTotals, LinkKind, Order, Part};
pub use build::Setup;
pub use overrides::PolicyOverrides;
pub use server::{MemoryTotals, ServerTotals};

use crate::process::Processes;
use crate::program::Program;
use crate::queue::EventQueue;
use crate::scenario::Faults;
use crate::world::{self, Departure, Host, NodeId, PacketId, Recorder, Rows, ServerId};
use crate::world::{Target, TaskId};
use client::Clients;
use iolab_policy::cache::Operation;
use iolab_trace::{Causes, Event as Row};
use iolab_vocab::{Direction, Nanos};
use message::Message;
use server::Servers;

/// A file of the simulation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FileState {
    /// Its size now.
    pub bytes: u64,
}

/// The world where messages mean what the machines of a cluster say.
type World<Q> = world::World<Q, Message>;

/// One run of a cluster, with programs that live for `'p`.
pub struct Cluster<'p, Q> {
    world: World<Q>,
    machines: Machines<'p>,
}

/// All machines of a run.
struct Machines<'p> {
    processes: Processes<'p, Clients>,
    servers: Servers,
}

/// How far a run is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Progress {
    /// Simulated time.
    pub now: Nanos,
    /// Events handled.
    pub event_count: u64,
    /// Processes that have not ended.
    pub running_count: u32,
}

/// Rows of a trace and what is missing.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Recording {
    /// By process, then start; the pieces of an access follow it. Processes are numbered as
    /// [`Cluster::record`] says.
    pub rows: Vec<Row>,
    /// What caused what among them.
    pub causes: Causes,
    /// The communicators that rows name, as ranks of their application.
    pub communicators: Vec<Vec<u32>>,
    /// Rows beyond the limit.
    pub lost_count: u64,
}

impl<Q: EventQueue<Event>> Cluster<'_, Q> {
    /// Runs until nothing is left to happen. Returns the time of the last event.
    pub fn run(&mut self) -> Result<Nanos, RunError> {
        self.start();
        self.advance(u64::MAX);
        self.verdict()
    }

    /// Gives every process its first command.
    pub fn start(&mut self) {
        self.machines.processes.start(&mut self.world);
    }

    /// Handles up to so many events. Tells whether there was that much to do.
    pub fn advance(&mut self, event_count: u64) -> bool {
        (0..event_count).all(|_| self.world.advance(&mut self.machines))
    }

    /// After the last event: its time, or why processes have not ended.
    pub fn verdict(&mut self) -> Result<Nanos, RunError> {
        let Cluster { world, machines: Machines { processes, .. } } = self;
        if let Some(refused) = processes.take_refused() {
            return Err(RunError::Refused(refused));
        }
        if let Some(part) = world.late(|task| processes.node_of(task)) {
            return Err(RunError::Late(part));
        }
        if processes.are_waiting() {
            return Err(RunError::Deadlock(Box::new(self.diagnose())));
        }
        match processes.unreceived() {
            Some(unreceived) => Err(RunError::Unreceived(unreceived)),
            None => Ok(world.now()),
        }
    }

    /// Lets these faults happen. They must have been laid on the platform the cluster is built
    /// from.
    pub fn inject(&mut self, faults: &Faults) {
        self.world.inject(faults);
    }

    /// Packets that links have lost so far; every one was sent again, or its link is cut for good.
    pub fn lost_packet_count(&self) -> u64 {
        self.world.lost_packet_count()
    }

    /// What each server has done so far.
    pub fn server_totals(&self) -> impl Iterator<Item = ServerTotals> + '_ {
        self.machines.servers.totals(self.world.device_totals())
    }

    /// What each link and switch has carried so far: the switches, then per node its NIC out, its
    /// NIC in, the switch port towards it and its inside, then each cable both ways.
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

    /// How long each file is by now.
    pub fn file_bytes(&self) -> impl Iterator<Item = u64> + '_ {
        self.machines.processes.clients.files.iter().map(|file| file.bytes)
    }

    /// A hash over all events so far, with their times: equal runs have equal hashes.
    pub fn event_hash(&self) -> u64 {
        self.world.event_hash()
    }

    /// Events handled so far.
    pub fn event_count(&self) -> u64 {
        self.world.event_count()
    }

    /// From now on keeps what every part does; to be asked before the start. Rows name as their
    /// process: each client process, each server, each server's device, then for each node its
    /// NIC out and its NIC in.
    pub fn record(&mut self) {
        let process_count = self.machines.processes.record();
        self.world.record(Recorder::new(process_count, self.world.server_count() as u32));
    }

    /// What was kept, in order; nothing if nobody asked.
    pub fn take_recording(&mut self) -> Option<Recording> {
        let now = self.world.now();
        let mut recorder = self.world.take_recorder()?;
        self.machines.processes.note_unfinished(&mut recorder, now);
        let Rows { rows, causes, lost_count } = recorder.finish();
        let communicators = self.machines.processes.communicators();
        Some(Recording { rows, causes, communicators, lost_count })
    }
}

impl<Q: EventQueue<Event>> Host<Q, Message> for Machines<'_> {
    #[inline]
    fn departed(&mut self, world: &mut World<Q>, departure: Departure<Message>) {
        if let Message::ReadData { request, .. } = departure.content {
            self.servers.read_data_left(world, request, &departure);
        }
        if departure.is_sent
            && let Some(task) = departure.sender
        {
            self.processes.settle_one(world, task);
        }
    }

    #[inline]
    fn packet_arrived(&mut self, world: &mut World<Q>, packet: PacketId, content: Message) -> bool {
        let Message::WriteData { request } = content else { return false };
        self.servers.write_data_arrived(world, packet, request)
    }

    fn message_arrived(&mut self, world: &mut World<Q>, target: Target, content: Message) {
        match content {
            Message::WriteData { .. } => {}
            Message::Request { request } => {
                self.servers.request_arrived(world, request);
            }
            Message::Flush { file } => {
                self.servers.flush_arrived(world, target, file, None);
            }
            Message::Sync { file, from } => {
                self.servers.flush_arrived(world, target, file, Some(from));
            }
            Message::Resize { from } => server::answer(world, world.server_at(target), from),
            Message::Invitation { request } => self.processes.invitation_arrived(world, request),
            Message::ReadData { task, .. }
            | Message::WriteDone { task }
            | Message::Done { task } => self.processes.settle_one(world, task),
            Message::Between(message) => self.processes.message_arrived(world, target, message),
        }
    }

    fn computed(&mut self, world: &mut World<Q>, task: TaskId) {
        self.processes.take_steps(world, task);
    }

    fn rested(&mut self, world: &mut World<Q>, task: TaskId) -> bool {
        self.processes.rested(world, task)
    }

    fn transferred(
        &mut self,
        world: &mut World<Q>,
        server: ServerId,
        direction: Direction,
        ticket: u32,
    ) {
        self.servers.transferred(world, server, direction, Operation(ticket));
    }

    fn woke(&mut self, world: &mut World<Q>, server: ServerId) -> bool {
        self.servers.woke(world, server)
    }

    fn stalled(&mut self, world: &mut World<Q>, server: ServerId, is_stalled: bool) {
        self.servers.stalled(world, server, is_stalled);
    }

    fn crashed(&mut self, _world: &mut World<Q>, node: NodeId) {
        self.processes.crash(node);
    }
}
