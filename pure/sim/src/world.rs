//! The world of a simulated cluster: time, nodes, their processors, the network, the devices,
//! faults, and what is noted of all that. It knows messages and places, and nothing of files.
//!
//! What runs on it are machines: they send messages, compute, rest, use devices, and ask to be woken;
//! a [`Host`] tells them what has come of it. The model is that of PIOsimHD (Kuhn 2009);
//! `docs/models/classic-hdd.md` has its facts. A [`World`] is generic over its event queue, so the
//! documented order and the published one run the same code, and over what messages mean, so that
//! sets of machines that know nothing of each other run on the same world. All state lies in slabs
//! and vectors indexed by component; the loop allocates nothing once these have grown.
//!
//! Reactions happen in the middle of an event: what they post stands, among simultaneous events, where
//! the order of a real node's work would put it. That is why a host is called and not told later.

mod build;
mod calendar;
mod causes;
mod cpu;
mod device;
mod event;
mod fault;
mod flow;
mod held_back;
mod hop;
mod message;
mod network;
mod packet;
mod part;
mod recorder;

pub use event::Event;
pub use hop::{HopTotals, LinkKind};
pub use part::Part;

pub(crate) use causes::RowId;
pub use device::DeviceTotals;
pub(crate) use message::{Available, Content, Departure};
pub(crate) use recorder::{Recorder, Rows};

use crate::queue::EventQueue;
use crate::slab::{Id, Slab, ids};
use calendar::{Calendar, END_OF_TIME};
use cpu::Cpu;
use device::{Device, Transfer};
use iolab_device::Access;
use iolab_vocab::{Direction, Nanos};
use message::Message;
use network::Network;

/// Which order decides among simultaneous events and among equals.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// Time, source, sequence; servers and processes by index.
    Documented,
    /// As the published evaluation: ties of the plain heap, sets in hash-table order.
    Published,
}

ids! {
    /// A node: its processors and where its messages enter the network.
    NodeId;
    /// Whom messages reach: the platform's clients first, then its servers.
    Target;
    /// A server of the platform, with its device.
    ServerId;
    /// Work of a machine that waits for something of the world; machines choose the numbers.
    TaskId;
    /// A message on its way.
    MessageId;
    /// What one or several messages carry.
    PayloadId;
    /// A piece of a message on its way.
    PacketId;
    /// An access of a device under way.
    TransferId;
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

/// One run's world; `C` is what messages mean to the machines.
pub(crate) struct World<Q, C: Content> {
    calendar: Calendar<Q>,
    order: Order,
    network: Network,
    messages: Slab<MessageId, Message<C>>,
    /// What messages carry beyond their meaning; whoever reads the last of it removes it.
    pub(crate) payloads: Slab<PayloadId, C::Payload>,
    nodes: Vec<Node>,
    devices: Vec<Device>,
    transfers: Slab<TransferId, Transfer>,
    /// Per target, the node it is on.
    target_node: Vec<NodeId>,
    packet_bytes: u32,
    active_faults: fault::ActiveFaults,
    /// Hop of the first cable between switches; each has two.
    first_cable_hop: u32,
    /// Node whose processor's event is being handled.
    computing: Option<NodeId>,
    event_count: u64,
    event_hash: u64,
    /// Where everything is noted, if anybody asked.
    recorder: Option<Box<Recorder>>,
}

/// What reacts to what happens: all machines of a run.
pub(crate) trait Host<Q, C: Content> {
    /// A packet of a message has left its sender.
    fn departed(&mut self, world: &mut World<Q, C>, departure: Departure<C>);

    /// A packet of a message has reached its target. Tells whether the target keeps it: then it is the
    /// target's to drop.
    fn packet_arrived(&mut self, world: &mut World<Q, C>, packet: PacketId, content: C) -> bool;

    /// All of a message has reached its target.
    fn message_arrived(&mut self, world: &mut World<Q, C>, target: Target, content: C);

    /// A processor has done a task's instructions.
    fn computed(&mut self, world: &mut World<Q, C>, task: TaskId);

    /// A task has rested. Tells whether anybody needed to know: if not, the clock does not move.
    fn rested(&mut self, world: &mut World<Q, C>, task: TaskId) -> bool;

    /// A device has carried out what was asked with this ticket.
    fn transferred(
        &mut self,
        world: &mut World<Q, C>,
        server: ServerId,
        direction: Direction,
        ticket: u32,
    );

    /// The moment has come that a server asked for. Tells whether it made use of it.
    fn woke(&mut self, world: &mut World<Q, C>, server: ServerId) -> bool;

    /// A server stalls, or no longer does.
    fn stalled(&mut self, world: &mut World<Q, C>, server: ServerId, is_stalled: bool);

    /// What runs on a node stops where it is.
    fn crashed(&mut self, world: &mut World<Q, C>, node: NodeId);
}

impl<Q: EventQueue<Event>, C: Content> World<Q, C> {
    /// Handles the next event. Tells whether there was one.
    #[inline]
    pub(crate) fn advance<H: Host<Q, C>>(&mut self, host: &mut H) -> bool {
        let Some((time, event)) = self.calendar.queue.pop() else { return false };
        if time == END_OF_TIME {
            return false;
        }
        let before = std::mem::replace(&mut self.calendar.now, time);
        self.event_count += 1;
        self.event_hash = event.append_to(self.event_hash, time);
        // A timer that nobody needs any more is as if it had never been: it moves no clock.
        if !self.handle(host, event) {
            self.calendar.now = before;
        }
        true
    }

    /// Lets the event's component react. Tells whether the event counts as one.
    #[inline]
    fn handle<H: Host<Q, C>>(&mut self, host: &mut H, event: Event) -> bool {
        match event {
            Event::Arrived(packet) => self.network.enter(&mut self.calendar, packet),
            Event::Carried(hop) => self.carried(host, hop),
            Event::Computed(node) => return self.computed(host, NodeId(node)),
            Event::Rested(task) => {
                self.task_goes_on(TaskId(task));
                return host.rested(self, TaskId(task));
            }
            Event::Transferred(transfer) => {
                if let Some(recorder) = &mut self.recorder {
                    recorder.found.access_ended(TransferId(transfer));
                }
                let transfer = self.end_transfer(TransferId(transfer));
                host.transferred(self, transfer.server, transfer.direction, transfer.ticket);
            }
            Event::Woke(server) => {
                if let Some(recorder) = &mut self.recorder {
                    recorder.found.server_goes_on(ServerId(server));
                }
                return host.woke(self, ServerId(server));
            }
            Event::FaultBegan(fault) => {
                self.because(RowId::NONE);
                self.fault_began(host, fault);
                return false;
            }
            Event::FaultEnded(fault) => {
                self.because(RowId::NONE);
                self.fault_ended(host, fault);
                return false;
            }
        }
        true
    }

    /// A node's processor has finished a job, unless all were dropped meanwhile.
    fn computed<H: Host<Q, C>>(&mut self, host: &mut H, node: NodeId) -> bool {
        let Some((task, next)) = self.nodes[node.index()].cpu.finish(self.calendar.now) else {
            return false;
        };
        if let Some(wait) = next {
            self.calendar.set_timer(wait.0, node.0, Event::Computed(node.0));
        }
        self.task_goes_on(TaskId(task));
        self.computing = Some(node);
        host.computed(self, TaskId(task));
        self.computing = None;
        true
    }

    /// Nothing more happens.
    pub(crate) fn stop(&mut self) {
        while self.calendar.queue.pop().is_some() {}
    }

    /// So many instructions of a task on a node's processors, which all its tasks share.
    pub(crate) fn compute(&mut self, on: NodeId, task: TaskId, instructions: f64) {
        self.task_waits(task);
        let node = &mut self.nodes[on.index()];
        let was_idle = node.cpu.is_idle();
        let wait = node.cpu.add(self.calendar.now, task.0, instructions).0;
        let event = Event::Computed(on.0);
        if was_idle {
            self.calendar.set_timer(wait, on.0, event);
        }
        // The original posts the timer, takes it back and posts it again; that moves others.
        let posts_twice = self.order == Order::Published && self.computing == Some(on);
        if !was_idle || posts_twice {
            self.calendar.move_timer(wait, on.0, event);
        }
    }

    /// A task does nothing for so long.
    pub(crate) fn rest(&mut self, on: NodeId, task: TaskId, nanos: Nanos) {
        self.task_waits(task);
        self.calendar.post(nanos.0, on.0, Event::Rested(task.0));
    }

    /// A server wants to be woken at that time.
    pub(crate) fn wake(&mut self, server: ServerId, at: Nanos) {
        let wait = at.since(self.calendar.now).0;
        if let Some(recorder) = &mut self.recorder {
            recorder.found.server_waits(server);
        }
        self.calendar.post(wait, self.source_of(server), Event::Woke(server.0));
    }

    /// Servers are sources of events behind hops and nodes.
    fn source_of(&self, server: ServerId) -> u32 {
        (self.network.hops.len() + self.nodes.len()) as u32 + server.0
    }

    /// The first part that would be busy until after the end of time; `node_of` a task.
    pub(crate) fn late(&self, node_of: impl Fn(TaskId) -> NodeId) -> Option<Part> {
        Some(match self.calendar.late? {
            Event::Carried(hop) => Part::Link(hop),
            Event::Arrived(packet) => Part::Link(self.network.packets.get(packet).previous),
            Event::Computed(node) => Part::Node(node),
            Event::Transferred(id) => Part::Server(self.transfers.get(TransferId(id)).server.0),
            Event::Woke(server) => Part::Server(server),
            Event::Rested(task) => Part::Node(node_of(TaskId(task)).0),
            Event::FaultBegan(fault) | Event::FaultEnded(fault) => Part::Fault(fault),
        })
    }
}

impl<Q, C: Content> World<Q, C> {
    /// The time.
    #[inline]
    pub(crate) fn now(&self) -> Nanos {
        self.calendar.now
    }

    pub(crate) fn node_count(&self) -> usize {
        self.nodes.len()
    }

    pub(crate) fn server_count(&self) -> usize {
        self.devices.len()
    }

    pub(crate) fn servers(&self) -> impl Iterator<Item = ServerId> + use<Q, C> {
        (0..self.devices.len()).map(ServerId::of)
    }

    /// Clients of the platform, whether a process runs on them or not.
    pub(crate) fn client_count(&self) -> u32 {
        (self.target_node.len() - self.devices.len()) as u32
    }

    pub(crate) fn node_of(&self, target: Target) -> NodeId {
        self.target_node[target.index()]
    }

    pub(crate) fn target_of(&self, server: ServerId) -> Target {
        Target(self.client_count() + server.0)
    }

    /// The server that a target is; clients come first.
    pub(crate) fn server_at(&self, target: Target) -> ServerId {
        ServerId(target.0 - self.client_count())
    }

    /// What each link and switch has carried so far: the switches, then per node its NIC out, its
    /// NIC in, the switch port towards it and its inside, then each cable both ways.
    pub(crate) fn link_totals(&self) -> impl Iterator<Item = (LinkKind, HopTotals)> + '_ {
        self.network.hops.iter().map(|hop| (hop.role.kind(), hop.totals))
    }

    /// A hash over all events so far, with their times: equal runs have equal hashes.
    pub(crate) fn event_hash(&self) -> u64 {
        self.event_hash
    }

    /// Events handled so far.
    pub(crate) fn event_count(&self) -> u64 {
        self.event_count
    }

    /// From now on everything is noted.
    pub(crate) fn record(&mut self, recorder: Recorder) {
        self.recorder = Some(Box::new(recorder));
    }

    /// Where everything is noted, if anybody asked.
    #[inline]
    pub(crate) fn recorder(&mut self) -> Option<&mut Recorder> {
        self.recorder.as_deref_mut()
    }

    /// The row that what happens now is a reaction to; none if nothing is noted.
    #[inline]
    pub(crate) fn cause(&self) -> RowId {
        self.recorder.as_ref().map_or(RowId::NONE, |recorder| recorder.found.current)
    }

    /// A row begins, if anything is noted, because of what has just happened.
    pub(crate) fn open_row(&mut self) -> RowId {
        self.recorder().map_or(RowId::NONE, Recorder::open)
    }

    /// What happens now is a reaction to that row.
    #[inline]
    pub(crate) fn because(&mut self, cause: RowId) {
        if let Some(recorder) = &mut self.recorder {
            recorder.found.current = cause;
        }
    }

    #[inline]
    fn task_waits(&mut self, task: TaskId) {
        if let Some(recorder) = &mut self.recorder {
            recorder.found.task_waits(task);
        }
    }

    #[inline]
    fn task_goes_on(&mut self, task: TaskId) {
        if let Some(recorder) = &mut self.recorder {
            recorder.found.task_goes_on(task);
        }
    }

    /// What was noted; nothing is from now on.
    pub(crate) fn take_recorder(&mut self) -> Option<Recorder> {
        self.recorder.take().map(|recorder| *recorder)
    }
}
