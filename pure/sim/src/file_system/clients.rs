//! The clients of all processes: each is the machine that a process is linked with, and what carries out
//! what it wants.
//!
//! A process calls its machine at once, as a program calls a library; what the machine sends costs the
//! processor of the process's node, and so does what it receives.

mod operations;

use super::World;
use super::costs::Costs;
use super::ends::{Dispatch, Ends, Heard};
use super::parcel::{Addresses, Asker, ConnectionId, Parcel};
use super::thread::Thread;
use crate::process::{GroupId, ProcessId};
use crate::program::File;
use crate::queue::EventQueue;
use crate::world::{Event, NodeId, TaskId};
use iolab_pfs::client::{self, Action, Call, CallNumber, Client as Machine, FileNumber, Outcome};
use iolab_pfs::configuration::Durability;
use iolab_pfs::{Opened, Party, PartyAction, Peer};
use iolab_policy::Machine as _;
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

/// What a client's thread has to do.
pub(super) enum Job {
    /// Look at what has arrived.
    Parcel(Parcel),
    /// Send a request whose payload is gathered.
    Send(Dispatch),
    /// Tell the machine that bytes are where the program wants them.
    Moved(CallNumber),
    /// Wake it.
    Wake,
}

/// The client of a process.
struct Client {
    machine: Machine,
    thread: Thread<Job>,
    ends: Ends,
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
    addresses: Arc<Addresses>,
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
        addresses: Arc<Addresses>,
        (costs, durability): (Costs, Durability),
    ) -> FileClients {
        let client = |thread: Thread<Job>| Client {
            machine: Machine::new(settings),
            ends: Ends::new(thread.node, addresses.clone()),
            thread,
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
        for parcel in client.ends.take(parcel) {
            client.thread.add(world, 0.0, Job::Parcel(parcel));
        }
    }

    /// A client's thread is through with a job.
    pub(super) fn work<Q: EventQueue<Event>>(&mut self, world: &mut World<Q>, place: usize) {
        let client = &mut self.clients[place];
        let Some(job) = client.thread.take_done(world) else { return };
        let event = match job {
            Job::Parcel(parcel) => match client.ends.hear(parcel) {
                Some(Heard::Party(event)) => client::Event::Party(event),
                // Nobody asks it.
                Some(Heard::Peer(_)) | None => return,
            },
            Job::Send(question) => return client.ends.send(world, question),
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
            Action::Party(action) => {
                // The bytes that a request carries are gathered first.
                let seconds = match &action {
                    PartyAction::Ask { payload: Some(gather), .. } => {
                        costs.of_program(&gather.portion)
                    }
                    _ => 0.0,
                };
                let asker = Asker::Client(place);
                if let Some(question) = client.ends.ask(asker, action, |gather| gather.bytes) {
                    client.thread.add(world, seconds, Job::Send(question));
                }
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
            Job::Send(question) => question.what.is_sign_of_life(),
            Job::Wake => true,
            Job::Moved(_) => false,
        };
        self.clients.iter().all(|client| client.thread.jobs().all(is_quiet))
    }

    /// The connections that a client has made and not ended, as the parties call them.
    pub(super) fn links(&self, place: usize) -> impl Iterator<Item = (Party, Peer)> + '_ {
        self.clients[place].ends.links()
    }
}

/// Where a file of a workload is.
pub(super) fn path_of(name: &str) -> Vec<u8> {
    let parts = name.split('/').filter(|part| !matches!(*part, "" | "." | ".."));
    let parts: Vec<&str> = parts.collect();
    format!("/{}", parts.join("_")).into_bytes()
}
