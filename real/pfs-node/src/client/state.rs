//! What the threads of a process share: the machine, its connections, and the memory of calls under way.

use crate::Memory;
use crate::buffers::Buffers;
use crate::channel::{Channel, Received};
use crate::clock::Wakes;
use crate::instance::Place;
use crate::link;
use crate::outgoing::{Part, Rows};
use crate::running::Threads;
use crate::tape::Taped;
use crate::window::Stretch;
use iolab_pfs::client::{Action, Call, CallNumber, Client, Event, Gather, Outcome, Settings};
use iolab_pfs::session::{Hello, Role, Welcome};
use iolab_pfs::{Code, Message, Party, PartyAction, PartyEvent, Portion, Request, SessionId};
use iolab_policy::Machine;
use iolab_vocab::Nanos;
use rustix::event::PollFlags;
use rustix::fd::{AsFd, AsRawFd, RawFd};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::path::Path;

/// Memory of rows shorter than this is gathered: a row costs a slice of a system call, a copy does not.
const ROW_BYTES_MIN: u64 = 2048;

/// The memory of a call.
enum Lent {
    /// The thread that called waits until it is answered.
    Borrowed(*mut dyn Memory),
    /// The call goes on by itself.
    Given(Box<dyn Memory + Send>),
}

// SAFETY: the thread that lent it waits, and the lock of the session lets one thread use it at a time.
unsafe impl Send for Lent {}

/// The memory of all calls under way.
#[derive(Default)]
struct Lending(BTreeMap<CallNumber, Lent>);

impl Lending {
    fn of(&self, call: CallNumber) -> Option<&dyn Memory> {
        self.0.get(&call).map(|lent| match lent {
            // SAFETY: it is in the list only while the thread that lent it waits in `call`.
            Lent::Borrowed(memory) => unsafe { &**memory },
            Lent::Given(memory) => &**memory as &dyn Memory,
        })
    }

    fn of_mut(&mut self, call: CallNumber) -> Option<&mut (dyn Memory + 'static)> {
        self.0.get_mut(&call).map(|lent| match lent {
            // SAFETY: as above; whoever has this list has the lock.
            Lent::Borrowed(memory) => unsafe { &mut **memory },
            Lent::Given(memory) => &mut **memory,
        })
    }
}

impl Rows for Lending {
    fn row(&self, call: CallNumber, at: u64, bytes: usize) -> Option<&[u8]> {
        self.of(call)?.row(at, bytes)
    }
}

/// Whether a call has waited for a party in vain.
pub(super) fn is_late(outcome: &Outcome) -> bool {
    matches!(outcome, Err(failure) if failure.code == Code::TIMED_OUT)
}

/// See the module.
pub(super) struct State {
    machine: Taped<Client>,
    session: SessionId,
    settings: Settings,
    place: Place,
    links: BTreeMap<Party, Channel>,
    threads: Threads,
    buffers: Buffers,
    lending: Lending,
    answers: BTreeMap<CallNumber, Outcome>,
    /// Calls whose answers nobody wants to hear.
    forgotten: BTreeSet<CallNumber>,
    wakes: Wakes,
    last: u64,
    todo: VecDeque<Event>,
    is_broken: bool,
    /// A call has waited for a party in vain, which others may wait for to hear of it.
    owes: bool,
    /// Whether a thread looks after the sockets.
    pub(super) is_watched: bool,
    /// The session ends: nobody calls any more.
    pub(super) is_over: bool,
}

impl State {
    pub(super) fn new(
        settings: Settings,
        session: SessionId,
        place: Place,
        events: Option<&Path>,
    ) -> State {
        let name = format!("client-{}", rustix::process::getpid().as_raw_nonzero());
        State {
            machine: Taped::of(Client::new(settings), &settings, events, &name),
            session,
            settings,
            place,
            links: BTreeMap::new(),
            threads: Threads::default(),
            buffers: Buffers::default(),
            lending: Lending::default(),
            answers: BTreeMap::new(),
            forgotten: BTreeSet::new(),
            wakes: Wakes::default(),
            last: 0,
            todo: VecDeque::new(),
            is_broken: false,
            owes: false,
            is_watched: false,
            is_over: false,
        }
    }

    /// Whether a defect has left it as nobody knows.
    pub(super) fn is_broken(&self) -> bool {
        self.is_broken
    }

    /// After a defect: nothing more is done, and the memory of a call is left alone.
    pub(super) fn break_off(&mut self, call: CallNumber) {
        self.is_broken = true;
        self.lending.0.remove(&call);
        self.links.clear();
    }

    /// Begins a call. Its memory is used until it is answered.
    pub(super) fn begin(&mut self, now: Nanos, call: Call, memory: &mut dyn Memory) -> CallNumber {
        let memory: *mut (dyn Memory + '_) = memory;
        // SAFETY: only the lifetime changes: the entry goes before the call returns, and with it the
        // pointer.
        let memory: *mut (dyn Memory + 'static) = unsafe { std::mem::transmute(memory) };
        self.called(now, call, Lent::Borrowed(memory))
    }

    /// Begins a call that goes on by itself, and keeps its memory.
    pub(super) fn start(
        &mut self,
        now: Nanos,
        call: Call,
        memory: Box<dyn Memory + Send>,
    ) -> CallNumber {
        self.called(now, call, Lent::Given(memory))
    }

    fn called(&mut self, now: Nanos, call: Call, memory: Lent) -> CallNumber {
        self.last += 1;
        let own = CallNumber(self.last);
        self.lending.0.insert(own, memory);
        self.todo.push_back(Event::Called { call: own, what: call });
        self.work(now);
        own
    }

    /// Whether there is something to do that no call of the program waits for: calls that go on by themselves, or what a
    /// party is still to be told that was given up.
    pub(super) fn goes_on(&mut self) -> bool {
        // Who asks nobody anything does not wish to be woken.
        self.owes &= self.wakes.next().is_some();
        self.owes || self.lending.0.values().any(|lent| matches!(lent, Lent::Given(_)))
    }

    /// Nobody wants to hear what comes of a call.
    pub(super) fn forget(&mut self, call: CallNumber) {
        if self.answers.remove(&call).is_none() && self.lending.0.contains_key(&call) {
            self.forgotten.insert(call);
        }
    }

    /// What came of a call, if it is known.
    pub(super) fn answer(&mut self, call: CallNumber) -> Option<Outcome> {
        self.answers.remove(&call)
    }

    /// The sockets, and what is waited for of each.
    pub(super) fn sockets(&self) -> Vec<(Party, RawFd, PollFlags)> {
        let socket = |(party, link): (&Party, &Channel)| {
            let sends = link.out().left() > 0;
            let flags = if sends { PollFlags::IN | PollFlags::OUT } else { PollFlags::IN };
            (*party, link.as_fd().as_raw_fd(), flags)
        };
        self.links.iter().map(socket).collect()
    }

    pub(super) fn next_wake(&self) -> Option<Nanos> {
        self.wakes.next()
    }

    /// Receives what a party has sent.
    pub(super) fn ready(&mut self, party: Party) {
        while let Some(link) = self.links.get_mut(&party) {
            match link.receive(&mut self.buffers) {
                Ok(None) => return,
                Ok(Some(Received::Welcome(welcome)))
                    if welcome.party == party && self.is_alike(&welcome) =>
                {
                    let Welcome { incarnation, known, .. } = welcome;
                    let connected = PartyEvent::Connected { to: party, incarnation, known };
                    self.todo.push_back(Event::Party(connected));
                }
                Ok(Some(Received::Message { request, message, payload })) => {
                    let payload = payload.map(|(buffer, _)| buffer);
                    let replied = PartyEvent::Replied { from: party, request, message, payload };
                    self.todo.push_back(Event::Party(replied));
                }
                Ok(Some(Received::Hello(_) | Received::Welcome(_))) | Err(_) => self.lose(party),
            }
        }
    }

    /// Whether a party shares the blocks as this client does: of other cache managers, blocks would be looked for at
    /// the wrong one, and of another write policy, their losses would not be told.
    fn is_alike(&self, welcome: &Welcome) -> bool {
        let Settings { caches, placement, write_policy, .. } = self.settings;
        (welcome.caches, welcome.placement, welcome.write_policy)
            == (caches, placement, write_policy)
    }

    fn lose(&mut self, party: Party) {
        self.links.remove(&party);
        self.todo.push_back(Event::Party(PartyEvent::Disconnected { from: party }));
    }

    /// Tells the machine what has happened, and does what it wants, until there is nothing left.
    pub(super) fn work(&mut self, now: Nanos) {
        if self.wakes.due(now) {
            // What they have said is heard before anybody is given up for silence.
            let all: Vec<Party> = self.links.keys().copied().collect();
            all.into_iter().for_each(|party| self.ready(party));
            let running = self.threads.running(self.machine.silent(now), &self.links);
            let runs = |party| Event::Party(PartyEvent::Runs { party });
            self.todo.extend(running.into_iter().map(runs));
            self.todo.push_back(Event::Woke);
        }
        let mut actions = Vec::new();
        loop {
            while let Some(event) = self.todo.pop_front() {
                self.machine.step(now, event, &mut actions);
                for action in actions.drain(..) {
                    self.perform(action);
                }
            }
            self.machine.turned();
            self.send();
            if self.todo.is_empty() {
                return;
            }
        }
    }

    fn send(&mut self) {
        let mut failed = Vec::new();
        for (party, link) in &mut self.links {
            if link.send(&self.lending, &mut self.buffers).is_err() {
                failed.push(*party);
            }
        }
        for party in failed {
            // What it has sent before it went is taken first.
            self.ready(party);
            if self.links.contains_key(&party) {
                self.lose(party);
            }
        }
    }

    fn perform(&mut self, action: Action) {
        match action {
            Action::Party(PartyAction::Connect { to }) => self.connect(to),
            Action::Party(PartyAction::Disconnect { from }) => drop(self.links.remove(&from)),
            Action::Party(PartyAction::Ask { to, request, message, payload }) => {
                self.ask(to, request, &message, payload)
            }
            Action::Move { call, from, portion, origin } => {
                let payload = self.buffers.claim(from);
                if let Some(memory) = self.lending.of_mut(call) {
                    let mut rest = payload.bytes();
                    for piece in portion.pieces() {
                        let (bytes, behind) = rest.split_at(piece.bytes() as usize);
                        memory.scatter(piece.from.wrapping_sub(origin), bytes);
                        rest = behind;
                    }
                }
                self.buffers.give_back(payload);
                self.todo.push_back(Event::Moved { call });
            }
            Action::Zero { call, portion, origin } => {
                if let Some(memory) = self.lending.of_mut(call) {
                    for piece in portion.pieces() {
                        memory.zero(piece.from.wrapping_sub(origin), piece.bytes());
                    }
                }
                self.todo.push_back(Event::Moved { call });
            }
            Action::Release { buffer } => self.buffers.release(buffer),
            Action::Answer { call, outcome } => self.finish(call, outcome),
            Action::WakeAt(time) => self.wakes.at(time),
        }
    }

    fn connect(&mut self, to: Party) {
        let name = format!("process {}", rustix::process::getpid().as_raw_nonzero());
        let hello = Hello { session: self.session, role: Role::Client, name };
        match link::connect(&self.place, to, hello) {
            Ok(link) => drop(self.links.insert(to, link)),
            Err(_) => {
                self.todo.push_back(Event::Party(PartyEvent::Disconnected { from: to }));
            }
        }
    }

    fn ask(&mut self, to: Party, request: Request, message: &Message, payload: Option<Gather>) {
        let Some(link) = self.links.get_mut(&to) else { return };
        let Some(gather) = payload else {
            return match room(link, message) {
                Some(slot) => link.push_with_slot(request, message, slot),
                None => link.push(request, message, Vec::new(), 0),
            };
        };
        let Some(memory) = self.lending.of(gather.call) else { return };
        if let Some(mut slot) = link.slot_for(gather.bytes as u32) {
            gather_to(slot.bytes_mut(), memory, &gather);
            return link.push_with_slot(request, message, slot);
        }
        let parts = rows(memory, &gather).unwrap_or_else(|| {
            let mut payload = self.buffers.take(gather.bytes as usize);
            gather_to(payload.bytes_mut(), memory, &gather);
            vec![Part::Payload(payload)]
        });
        link.push(request, message, parts, gather.bytes as u32);
    }

    /// A call is over; a connection that still needs its memory goes with it.
    fn finish(&mut self, call: CallNumber, outcome: Outcome) {
        self.owes |= is_late(&outcome);
        self.lending.0.remove(&call);
        let needing = self.links.iter().filter(|(_, link)| link.out().needs(call));
        for party in needing.map(|(party, _)| *party).collect::<Vec<_>>() {
            self.lose(party);
        }
        if !self.forgotten.remove(&call) {
            self.answers.insert(call, outcome);
        }
    }
}

/// The rows of memory that are to be sent, if they are long ones.
fn rows(memory: &dyn Memory, gather: &Gather) -> Option<Vec<Part>> {
    let call = gather.call;
    let mut parts: Vec<Part> = Vec::new();
    for (at, bytes) in stretches(&gather.portion, gather.origin) {
        if bytes < ROW_BYTES_MIN && gather.bytes >= ROW_BYTES_MIN {
            return None;
        }
        memory.row(at, bytes as usize)?;
        parts.push(Part::Row { call, at, bytes: bytes as usize });
    }
    Some(parts)
}

/// Where what a read brings may go.
fn room(link: &Channel, message: &Message) -> Option<Stretch> {
    let Message::Read(access) = message else { return None };
    link.room_for(access.to - access.from)
}

/// Puts the bytes that are to be sent one behind the other.
fn gather_to(mut rest: &mut [u8], memory: &dyn Memory, gather: &Gather) {
    for (at, bytes) in stretches(&gather.portion, gather.origin) {
        let (to, behind) = rest.split_at_mut(bytes as usize);
        memory.gather(at, to);
        rest = behind;
    }
}

/// Where in a call's memory the bytes of a portion are, neighbours together.
fn stretches(portion: &Portion, origin: u64) -> Vec<(u64, u64)> {
    let mut all: Vec<(u64, u64)> = Vec::new();
    for piece in portion.pieces() {
        let at = piece.from.wrapping_sub(origin);
        match all.last_mut() {
            Some((from, bytes)) if *from + *bytes == at => *bytes += piece.bytes(),
            _ => all.push((at, piece.bytes())),
        }
    }
    all
}
