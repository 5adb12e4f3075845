//! A cluster at work: clients run programs, messages travel packet by packet, servers store.
//!
//! The model is that of PIOsimHD (Kuhn 2009) in full; `docs/models/classic-hdd.md` has its facts.
//! One [`Cluster`] is one run. It is generic over its event queue, so the documented order and
//! the published one run the same code. All state lies in slabs and vectors indexed by component;
//! the loop allocates nothing once these have grown.

mod build;
mod cpu;
mod deadlock;
mod direct;
mod error;
mod event;
mod fault;
mod flow;
mod group;
mod hash_table;
mod hop;
mod network;
mod overrides;
mod packet;
mod recorder;
mod run;
mod server;
mod task;
mod transfer;

pub use build::Setup;
pub use deadlock::{Deadlock, Reason, Waiting};
pub use error::{Part, Refused, RunError, Unreceived};
pub use event::Event;
pub use hop::{HopTotals, LinkKind};
pub use overrides::PolicyOverrides;
pub use recorder::Recording;
pub use run::Progress;
pub use server::ServerTotals;

use crate::program::Program;
use crate::queue::{EventQueue, Source};
use cpu::Cpu;
use iolab_vocab::Nanos;
use network::Network;
use packet::{Message, NONE, Slab};
use server::{Request, Server, Transfer};
use task::{Process, Task};

/// Which order decides among simultaneous events and among equals.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// Time, source, sequence; servers and processes by index.
    Documented,
    /// As the published evaluation: ties of the plain heap, sets in hash-table order.
    Published,
}

/// A file of the simulation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FileState {
    /// Its size now.
    pub bytes: u64,
}

/// The clock and what is to come.
#[derive(Debug)]
pub(crate) struct Calendar<Q> {
    now: Nanos,
    queue: Q,
    /// The first event that would come after the end of time.
    late: Option<Event>,
}

/// Simulated time ends here, after 584 years.
const END_OF_TIME: Nanos = Nanos(u64::MAX);

impl<Q: EventQueue<Event>> Calendar<Q> {
    #[inline]
    fn post(&mut self, after_nanos: u64, source: u32, event: Event) {
        let time = self.time_of(after_nanos, event);
        self.queue.push(time, Source(source), event);
    }

    #[inline]
    fn time_of(&mut self, after_nanos: u64, event: Event) -> Nanos {
        let time = self.now.after(Nanos(after_nanos));
        if time == END_OF_TIME && self.late.is_none() {
            self.late = Some(event);
        }
        time
    }

    /// Posts the end of a node's next job; a node has one at most.
    #[inline]
    fn set_timer(&mut self, after_nanos: u64, node: u32, event: Event) {
        let time = self.time_of(after_nanos, event);
        self.queue.set_timer(node, time, Source(node), event);
    }

    /// Another job of the node ends next, or at another time.
    #[inline]
    fn move_timer(&mut self, after_nanos: u64, node: u32, event: Event) {
        let time = self.time_of(after_nanos, event);
        self.queue.move_timer(node, time, Source(node), event);
    }
}

/// A node: its processors and where its messages enter the network.
#[derive(Debug)]
struct Node {
    cpu: Cpu,
    departure: u32,
    arrival: u32,
    internal: u32,
    port: u32,
    switch: u32,
}

/// Where an application's communicators stand among all groups.
#[derive(Debug)]
struct Application {
    first_group: u32,
    group_count: u32,
    /// When its last process has ended so far.
    end: Nanos,
}

/// One run of a cluster.
pub struct Cluster<Q> {
    calendar: Calendar<Q>,
    order: Order,
    network: Network,
    messages: Slab<Message>,
    requests: Slab<Request>,
    transfers: Slab<Transfer>,
    nodes: Vec<Node>,
    processes: Vec<Process>,
    tasks: Slab<Task>,
    servers: Vec<Server>,
    /// Per target, the node it is on: processes first, then servers.
    target_node: Vec<u32>,
    /// Place of each server in the order in which a request's servers are addressed, as far as that
    /// is the same for all requests.
    server_place: Vec<u32>,
    files: Vec<FileState>,
    programs: Vec<Box<dyn Program>>,
    applications: Vec<Application>,
    /// Communicators of all applications.
    groups: Vec<group::Group>,
    /// Large messages between processes, from offer to arrival.
    offers: Slab<task::Offer>,
    collectives: iolab_policy::collective::CollectiveSelection,
    own: Box<dyn PolicyOverrides>,
    eager_bytes: u64,
    /// What collective accesses may know of the platform.
    costs: Option<iolab_policy::collective::Costs>,
    stripe_bytes: u64,
    packet_bytes: u32,
    event_count: u64,
    event_hash: u64,
    /// Processes that have not ended.
    running_count: u32,
    active_faults: fault::ActiveFaults,
    /// Hop of the first cable between switches; each has two.
    first_cable_hop: u32,
    /// The command that ended the run.
    refused: Option<Refused>,
    /// Where everything is noted, if anybody asked.
    recorder: Option<Box<recorder::Recorder>>,
    /// Node whose processor's event is being handled.
    computing: u32,
    actions: Vec<iolab_policy::cache::Action>,
    moves: Vec<iolab_policy::collective::Action>,
    touched: Vec<u32>,
    request_of: Vec<u32>,
}
