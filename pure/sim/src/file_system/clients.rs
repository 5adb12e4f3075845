//! The clients of all processes: each is the machine that a process is linked with, and what carries out
//! what it wants.
//!
//! A process calls its machine at once, as a program calls a library; what the machine sends costs the
//! processor of the process's node, and so does what it receives.

mod operations;

use super::World;
use super::costs::Costs;
use super::parcel::{Addresses, Asker, Carried, ConnectionId, INCARNATION, Parcel, Wires};
use super::thread::Thread;
use crate::process::{GroupId, ProcessId};
use crate::program::File;
use crate::queue::EventQueue;
use crate::world::{Event, NodeId, TaskId};
use iolab_pfs::client::{
    self, Action, Call, CallNumber, Client as Machine, FileNumber, Gather, Outcome,
};
use iolab_pfs::configuration::Durability;
use iolab_pfs::{Buffer, Message, Opened, Party, Request};
use iolab_policy::Machine as _;
use std::collections::{BTreeMap, VecDeque};

/// What a client's thread has to do.
pub(super) enum Job {
    /// Look at what has arrived.
    Parcel(Parcel),
    /// Send a request whose payload is gathered.
    Send { to: Party, connection: ConnectionId, what: Carried },
    /// Tell the machine that bytes are where the program wants them.
    Moved(CallNumber),
    /// Wake it.
    Wake,
}

/// The client of a process.
struct Client {
    machine: Machine,
    thread: Thread<Job>,
    wires: Wires,
    links: BTreeMap<Party, ConnectionId>,
    connection_count: u32,
    last_buffer: u64,
}

/// A file of the program.
struct Named {
    path: Vec<u8>,
    /// How long it is, as far as this program has made it.
    bytes: u64,
}

/// The clients of all processes.
pub(super) struct FileClients {
    clients: Vec<Client>,
    addresses: Addresses,
    costs: Costs,
    durability: Durability,
    files: Vec<Named>,
    /// What groups have opened, open after open.
    opened: BTreeMap<(GroupId, File), Vec<Opened>>,
    /// How many of these opens a process has adopted.
    adopted: BTreeMap<(ProcessId, File), usize>,
    /// What a process has open, the latest open of a file at the end.
    numbers: BTreeMap<(ProcessId, File), Vec<FileNumber>>,
    /// Tasks that wait for an answer.
    calls: BTreeMap<CallNumber, TaskId>,
    last_call: u64,
    answered: VecDeque<(TaskId, Outcome)>,
    /// Collective operations that a process has come to, of each file.
    come: BTreeMap<(ProcessId, File), u64>,
    actions: Vec<Action>,
}

impl FileClients {
    /// Clients on these threads.
    pub(super) fn new(
        (threads, settings): (Vec<Thread<Job>>, client::Settings),
        files: &[(String, u64)],
        addresses: Addresses,
        (costs, durability): (Costs, Durability),
    ) -> FileClients {
        let client = |thread| Client {
            machine: Machine::new(settings),
            thread,
            wires: Wires::default(),
            links: BTreeMap::new(),
            connection_count: 0,
            last_buffer: 0,
        };
        let named = |(name, bytes): &(String, u64)| Named { path: path_of(name), bytes: *bytes };
        FileClients {
            clients: threads.into_iter().map(client).collect(),
            addresses,
            costs,
            durability,
            files: files.iter().map(named).collect(),
            opened: BTreeMap::new(),
            adopted: BTreeMap::new(),
            numbers: BTreeMap::new(),
            calls: BTreeMap::new(),
            last_call: 0,
            answered: VecDeque::new(),
            come: BTreeMap::new(),
            actions: Vec::new(),
        }
    }

    /// Something has reached the node of a client.
    pub(super) fn arrived<Q: EventQueue<Event>>(
        &mut self,
        world: &mut World<Q>,
        client: usize,
        parcel: Parcel,
    ) {
        let client = &mut self.clients[client];
        if client.thread.is_dead() {
            return;
        }
        for parcel in client.wires.take(parcel) {
            client.thread.add(world, 0.0, Job::Parcel(parcel));
        }
    }

    /// A client's thread is through with a job.
    pub(super) fn work<Q: EventQueue<Event>>(&mut self, world: &mut World<Q>, place: usize) {
        let client = &mut self.clients[place];
        let Some(job) = client.thread.take_done(world) else { return };
        let event = match job {
            Job::Parcel(parcel) => match client.event_of(parcel) {
                Some(event) => event,
                None => return,
            },
            Job::Send { to, connection, what } => {
                let ends = (client.thread.node, self.addresses.of_party(to));
                return client.wires.send(world, ends, (connection, to), what);
            }
            Job::Moved(call) => client::Event::Moved { call },
            Job::Wake => client::Event::Woke,
        };
        self.tell(world, place, event);
    }

    /// A process calls its client; the task waits for the answer.
    fn call<Q: EventQueue<Event>>(
        &mut self,
        world: &mut World<Q>,
        place: usize,
        task: TaskId,
        what: Call,
    ) {
        self.last_call += 1;
        let call = CallNumber(self.last_call);
        self.calls.insert(call, task);
        self.tell(world, place, client::Event::Called { call, what });
    }

    /// A machine is told something, and gets what it wants.
    pub(super) fn tell<Q: EventQueue<Event>>(
        &mut self,
        world: &mut World<Q>,
        place: usize,
        event: client::Event,
    ) {
        let mut actions = std::mem::take(&mut self.actions);
        self.clients[place].machine.step(world.now(), event, &mut actions);
        for action in actions.drain(..) {
            self.carry_out(world, place, action);
        }
        self.actions = actions;
    }

    fn carry_out<Q: EventQueue<Event>>(
        &mut self,
        world: &mut World<Q>,
        place: usize,
        action: Action,
    ) {
        let (costs, client) = (self.costs, &mut self.clients[place]);
        match action {
            Action::Connect { to } => {
                let asker = Asker::Client(place);
                let connection = self.addresses.connection(asker, client.connection_count);
                client.connection_count += 1;
                client.links.insert(to, connection);
                client.ask(world, to, 0.0, Carried::Hello);
            }
            Action::Disconnect { from } => {
                client.ask(world, from, 0.0, Carried::Bye);
                client.links.remove(&from);
            }
            Action::Ask { to, request, message, payload } => {
                client.ask_gathered(world, to, (request, message), payload, &costs);
            }
            Action::Move { call, portion, .. } | Action::Zero { call, portion, .. } => {
                client.thread.add(world, costs.of_program(&portion), Job::Moved(call));
            }
            Action::Release { .. } => {}
            Action::Answer { call, outcome } => {
                let task = self.calls.remove(&call).expect("a call has one answer");
                self.answered.push_back((task, outcome));
            }
            Action::WakeAt(at) => client.thread.wake_at(world, at),
        }
    }

    /// The thread of a client.
    pub(super) fn thread(&mut self, place: usize) -> &mut Thread<Job> {
        &mut self.clients[place].thread
    }

    /// The node of a client.
    pub(super) fn node(&self, place: usize) -> NodeId {
        self.clients[place].thread.node
    }

    /// Who has made a connection.
    pub(super) fn asker(&self, connection: ConnectionId) -> Asker {
        self.addresses.asker(connection)
    }

    /// How many there are.
    pub(super) fn count(&self) -> usize {
        self.clients.len()
    }

    /// Whether all that clients have to do is to hear that somebody is there.
    pub(super) fn are_quiet(&self) -> bool {
        let is_quiet = |job: &Job| match job {
            Job::Parcel(parcel) => parcel.is_sign_of_life(),
            Job::Send { what: Carried::Asked { message, .. }, .. } => *message == Message::Ping,
            Job::Wake => true,
            Job::Send { .. } | Job::Moved(_) => false,
        };
        self.clients.iter().all(|client| client.thread.jobs().all(is_quiet))
    }

    /// The connections that a client has made and not ended.
    pub(super) fn links(&self, place: usize) -> impl Iterator<Item = (Party, ConnectionId)> + '_ {
        self.clients[place].links.iter().map(|(party, connection)| (*party, *connection))
    }
}

impl Client {
    fn event_of(&self, parcel: Parcel) -> Option<client::Event> {
        let Parcel { connection, party, what, .. } = parcel;
        if self.links.get(&party) != Some(&connection) {
            return None;
        }
        match what {
            Carried::Welcome { known } => {
                Some(client::Event::Connected { to: party, incarnation: INCARNATION, known })
            }
            Carried::Ended => Some(client::Event::Disconnected { from: party }),
            Carried::Replied { request, message, payload } => {
                let payload = payload.map(|(buffer, _)| buffer);
                Some(client::Event::Replied { from: party, request, message, payload })
            }
            Carried::Hello | Carried::Bye | Carried::Asked { .. } => None,
        }
    }

    fn ask<Q: EventQueue<Event>>(
        &mut self,
        world: &mut World<Q>,
        to: Party,
        seconds: f64,
        what: Carried,
    ) {
        if let Some(&connection) = self.links.get(&to) {
            self.thread.add(world, seconds, Job::Send { to, connection, what });
        }
    }

    /// The bytes that a request carries are gathered first.
    fn ask_gathered<Q: EventQueue<Event>>(
        &mut self,
        world: &mut World<Q>,
        to: Party,
        (request, message): (Request, Message),
        payload: Option<Gather>,
        costs: &Costs,
    ) {
        let seconds = payload.as_ref().map_or(0.0, |gather| costs.of_program(&gather.portion));
        let payload = payload.map(|gather| {
            self.last_buffer += 1;
            (Buffer(self.last_buffer), gather.bytes)
        });
        self.ask(world, to, seconds, Carried::Asked { request, message, payload });
    }
}

/// Where a file of a workload is.
pub(super) fn path_of(name: &str) -> Vec<u8> {
    let parts = name.split('/').filter(|part| !matches!(*part, "" | "." | ".."));
    let parts: Vec<&str> = parts.collect();
    format!("/{}", parts.join("_")).into_bytes()
}
