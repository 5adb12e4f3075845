//! Drivers of the clients: the memory of their programs' calls, and the bytes that come and go.

use super::programs::{Doing, Todo};
use super::{Happening, Node, World};
use crate::marks::Mark;
use crate::plan::{Plan, SLOTS};
use crate::shadow::{OpNumber, Scope, Tick};
use iolab_pfs::client::{
    Action, Call, CallNumber, Client, Event, FileNumber, Gather, Outcome, Settings,
};
use iolab_pfs::recording::Recorded;
use iolab_pfs::{Access, Inode, Layout, Message, Opened, Party, PartyAction, Portion};
use iolab_policy::Machine;
use iolab_vocab::Nanos;
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// A process: its program, its machine and its driver.
pub(super) struct Process {
    machine: Recorded<Client>,
    pub(super) alive: bool,
    pub(super) rank: u32,
    pub(super) size: u32,
    pub(super) todos: Vec<Todo>,
    pub(super) next: usize,
    /// It waits for its last call.
    pub(super) blocked: bool,
    pub(super) files: [Option<File>; SLOTS],
    pub(super) calls: BTreeMap<u64, Pending>,
    pub(super) buffers: BTreeMap<u64, Vec<u8>>,
    /// Reads that were asked since there was no call, to see those that are asked again.
    read: BTreeSet<(Party, u32, u64)>,
    /// What each open has written that no sync has spoken for, and when it was answered.
    pub(super) unsynced: BTreeMap<FileNumber, Vec<(OpNumber, Tick)>>,
}

/// A file that a process has open.
#[derive(Clone, Debug)]
pub(super) struct File {
    pub(super) number: FileNumber,
    pub(super) opened: Opened,
    pub(super) bulletin: usize,
    /// How many collectives this process has come to, after the first.
    pub(super) collectives: u64,
    pub(super) scope: Scope,
    /// How often the ranks have put their shared pointer somewhere, and where.
    pub(super) pointer: (u64, u64),
}

impl File {
    pub(super) fn key(&self) -> (Inode, Layout) {
        (self.opened.inode, self.opened.layout)
    }
}

/// A call under way.
#[derive(Clone, Debug)]
pub(super) struct Pending {
    pub(super) doing: Doing,
    pub(super) begun: Nanos,
    pub(super) tick: Tick,
    pub(super) collective: Option<(usize, u64)>,
    pub(super) memory: Vec<u8>,
    /// Which bytes of the memory a read has put there.
    pub(super) filled: Vec<bool>,
    moves: VecDeque<Moving>,
}

/// Bytes on their way to a program's memory: those of a buffer, or zeros.
#[derive(Clone, Debug)]
struct Moving {
    from: Option<Vec<u8>>,
    portion: Portion,
    origin: u64,
}

impl Process {
    pub(super) fn new(
        plan: &Plan,
        (_, rank, size): (usize, u32, u32),
        todos: Vec<Todo>,
        is_recorded: bool,
    ) -> Process {
        let (transfer_bytes, depth) = (plan.transfer_bytes, plan.depth);
        let settings = Settings {
            caches: plan.caches,
            placement: plan.placement,
            write_policy: plan.write_policy,
            transfer_bytes,
            depth,
            schedule: plan.schedule,
            durability: plan.durability,
            ..Settings::usual(plan.servers)
        };
        let origin = is_recorded.then_some(&settings);
        Process {
            machine: Recorded::of(Client::new(settings), origin),
            alive: true,
            rank,
            size,
            todos,
            next: 0,
            blocked: false,
            files: std::array::from_fn(|_| None),
            calls: BTreeMap::new(),
            buffers: BTreeMap::new(),
            read: BTreeSet::new(),
            unsynced: BTreeMap::new(),
        }
    }

    pub(super) fn is_over(&self) -> bool {
        !self.alive || (self.next >= self.todos.len() && self.calls.is_empty())
    }

    /// It dies. Gives the calls that were under way.
    pub(super) fn end(&mut self) -> Vec<Pending> {
        self.alive = false;
        self.buffers.clear();
        std::mem::take(&mut self.calls).into_values().collect()
    }
}

impl World {
    pub(super) fn call_with(
        &mut self,
        client: usize,
        what: Call,
        doing: Doing,
        collective: Option<(usize, u64)>,
        memory: Vec<u8>,
    ) {
        let call = self.fresh();
        let filled = vec![false; memory.len()];
        let (begun, tick, moves) = (self.now, self.tick(), VecDeque::new());
        let pending = Pending { doing, begun, tick, collective, memory, filled, moves };
        self.processes[client].calls.insert(call, pending);
        self.tell_client(client, Event::Called { call: CallNumber(call), what });
    }

    /// When the call began that is under way for longest.
    pub(super) fn oldest_call(&self) -> Option<Nanos> {
        let alive = self.processes.iter().filter(|process| process.alive);
        alive.flat_map(|process| process.calls.values()).map(|pending| pending.begun).min()
    }

    pub(super) fn tell_client(&mut self, client: usize, event: Event) {
        if !self.processes[client].alive {
            return;
        }
        self.tell(&|| format!("client {client} hears {event:?}"));
        let mut actions = Vec::new();
        let it = &mut self.processes[client];
        it.machine.step(self.now, event, &mut actions);
        let rows = it.machine.take();
        self.keep(&|| format!("client-{client}"), rows);
        for action in actions {
            self.tell(&|| format!("client {client} wants {action:?}"));
            if self.processes[client].alive {
                self.carry_out_for_client(client, action);
            }
        }
    }

    fn carry_out_for_client(&mut self, client: usize, action: Action) {
        let node = Node::Client(client);
        match action {
            Action::Party(PartyAction::Connect { to }) => self.connect(node, to),
            Action::Party(PartyAction::Disconnect { from }) => self.disconnect(node, from),
            Action::Party(PartyAction::Ask { to, request, message, payload }) => {
                if let Message::Read(access) = &message {
                    self.note_read(client, to, access);
                }
                match payload.map(|gather| self.gather(client, &gather)).transpose() {
                    Ok(payload) => self.ask(node, to, request, message, payload),
                    Err(what) => self.fail(what),
                }
            }
            Action::Move { call, from, portion, origin } => {
                match self.processes[client].buffers.remove(&from.0) {
                    Some(bytes) => self.begin_move(client, call, Some(bytes), portion, origin),
                    None => self.fail(format!("client {client} moves buffer {from} it has not")),
                }
            }
            Action::Zero { call, portion, origin } => {
                self.begin_move(client, call, None, portion, origin);
            }
            Action::Release { buffer } => {
                if self.processes[client].buffers.remove(&buffer.0).is_none() {
                    self.fail(format!("client {client} gives back buffer {buffer} it has not"));
                }
            }
            Action::Answer { call, outcome } => self.answer(client, call, outcome),
            Action::WakeAt(when) => self.wake_at(node, when),
        }
    }

    fn note_read(&mut self, client: usize, to: Party, access: &Access) {
        if !self.processes[client].read.insert((to, access.subfile, access.to)) {
            self.meet(Mark::ReadAgain);
        }
    }

    fn answer(&mut self, client: usize, call: CallNumber, outcome: Outcome) {
        let Some(pending) = self.processes[client].calls.remove(&call.0) else {
            return self.fail(format!("client {client} answers {call:?}, which is not under way"));
        };
        if !pending.moves.is_empty() {
            let count = pending.moves.len();
            return self.fail(format!("{call:?} is answered with {count} moves under way"));
        }
        if self.processes[client].calls.is_empty() {
            self.processes[client].read.clear();
        }
        self.check_failure(&pending.doing, &outcome);
        self.take_answer(client, pending, outcome);
    }

    /// The bytes of a portion out of the memory of a call.
    fn gather(&mut self, client: usize, gather: &Gather) -> Result<Vec<u8>, String> {
        let Gather { call, portion, origin, bytes } = gather;
        let Some(pending) = self.processes[client].calls.get(&call.0) else {
            return Err(format!("client {client} sends memory of {call:?}, which is answered"));
        };
        let mut packed = Vec::new();
        for y in portion.pieces().flat_map(|piece| piece.from..piece.to) {
            let at = y.wrapping_sub(*origin) as usize;
            let byte = pending.memory.get(at).copied();
            packed.push(byte.ok_or_else(|| format!("byte {at} is not in the memory of {call:?}"))?);
        }
        if packed.len() as u64 != *bytes {
            let has = packed.len();
            return Err(format!("{call:?} sends {bytes} bytes of a portion that has {has}"));
        }
        Ok(packed)
    }

    fn begin_move(
        &mut self,
        client: usize,
        call: CallNumber,
        from: Option<Vec<u8>>,
        portion: Portion,
        origin: u64,
    ) {
        let Some(pending) = self.processes[client].calls.get_mut(&call.0) else {
            return self.fail(format!("client {client} moves to {call:?}, which is answered"));
        };
        pending.moves.push_back(Moving { from, portion, origin });
        let delay = self.delay();
        self.later(delay, Happening::Moves { client, call: call.0 });
    }

    pub(super) fn moved(&mut self, client: usize, call: u64) {
        if !self.processes[client].alive {
            return;
        }
        let Some(pending) = self.processes[client].calls.get_mut(&call) else { return };
        let Some(moving) = pending.moves.pop_front() else { return };
        match pending.take(&moving) {
            Ok(()) => self.tell_client(client, Event::Moved { call: CallNumber(call) }),
            Err(what) => self.fail(what),
        }
    }
}

impl Pending {
    /// Puts bytes to the program's memory.
    fn take(&mut self, moving: &Moving) -> Result<(), String> {
        let Moving { from, portion, origin } = moving;
        let mut count = 0;
        for y in portion.pieces().flat_map(|piece| piece.from..piece.to) {
            let at = y.wrapping_sub(*origin) as usize;
            let value = match from {
                None => Some(0),
                Some(bytes) => bytes.get(count).copied(),
            };
            let Some(value) = value else {
                return Err(format!("a buffer of {count} bytes is moved to more of {portion:?}"));
            };
            if at >= self.memory.len() {
                return Err(format!("byte {at} is not in the memory of {:?}", self.doing));
            }
            self.memory[at] = value;
            self.filled[at] = true;
            count += 1;
        }
        match from {
            Some(bytes) if bytes.len() != count => {
                let has = bytes.len();
                Err(format!("a buffer of {has} bytes is moved to {count} bytes"))
            }
            _ => Ok(()),
        }
    }
}
