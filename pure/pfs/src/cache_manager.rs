//! A cache manager: blocks of files in memory, between clients and I/O servers. It is the only one that has
//! these blocks, for reads and for writes, so nobody ever reads an old copy, and managers have nothing to
//! tell each other (the cooperative cache of Clusterfile, Isaila and others, ICS 2004, with writes).
//!
//! To clients it is a server whose subfile is what the cache layout gives it; to I/O servers it is a client.
//!
//! Promises: what a server promises of a stripe, this does; a request is carried out at most once in a life.
//! What was written is at the servers after a sync, and when the write policy says so ([`Settings::write_policy`]),
//! or earlier when memory is wanted. Bytes that were written are never covered by older ones from a server, and partial writes read
//! nothing: what is missing of a block is fetched when somebody reads it. Servers have room for what was written,
//! or who writes is told that they have none. When it crashes, what it had not
//! brought to the servers is lost; its clients know what they wrote and have not synced, and say so.
//!
//! Costs: O(log n) in blocks and requests for each block of a request, and O(runs) of what is written to
//! it. Memory: [`Settings::memory`] of blocks, an eighth of that at most for which of their bytes are there.

mod blocks;
mod events;
mod grants;
mod requests;
mod runs;
mod upstream;

pub use crate::serving::{Operation, Settings as ServingSettings};
pub use events::{Action, BlockNumber, Event, Place, Row};

use crate::links::{Heard, Links, Wish};
use crate::message::PAYLOAD_BYTES_MAX;
use crate::serving::{Admission, Serving, Subfile, TOO_MANY};
use crate::{
    Buffer, Code, Inode, Layout, Managers, Message, Party, PartyEvent, Peer, PeerAction, PeerEvent,
    Request, SessionId, ViewNumber,
};
use blocks::{Blocks, Key};
use iolab_policy::Machine;
use iolab_policy::placement::catalog as placement;
use iolab_policy::replacement::catalog as replacement;
use iolab_policy::write_policy::catalog as write_policy;
use iolab_vocab::Nanos;
use requests::Work;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use upstream::Errand;

/// The least memory of a manager: eight of the largest blocks.
pub const MEMORY_MIN: u64 = 8 * PAYLOAD_BYTES_MAX;

/// What a manager is built with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Settings {
    /// Its place in the map.
    pub index: u32,
    /// Cache managers of the instance.
    pub caches: u32,
    /// I/O servers of the instance.
    pub servers: u32,
    /// Bytes of blocks at most; at least eight blocks.
    pub memory: u64,
    /// A stripe is a block; of a larger one so many bytes are. At most 1 MiB.
    pub block_bytes: u64,
    /// Which manager has which blocks.
    pub placement: &'static placement::Row,
    /// Which block leaves when memory is full.
    pub replacement: &'static replacement::Row,
    /// When servers get what was written.
    pub write_policy: &'static write_policy::Row,
    /// How old data may become before that, where the write policy goes by age, and grants that are not used.
    pub age: Nanos,
    /// How long a server may be silent before what was asked of it has failed.
    pub failure_timeout: Nanos,
    /// How much room on a device is asked for beyond what is needed at once; 0 where devices are never full:
    /// then nobody is asked.
    pub grant_bytes: u64,
    /// Towards clients.
    pub serving: ServingSettings,
}

impl Settings {
    /// All there are.
    fn managers(&self) -> Managers {
        let Settings { caches, servers, placement, .. } = *self;
        Managers { count: caches, servers, placement }
    }

    /// 256 MiB in blocks of up to 1 MiB, the usual policies, 5 s until data goes to the servers, which may be
    /// silent for 8 s.
    pub fn usual(index: u32, caches: u32, servers: u32) -> Settings {
        Settings {
            index,
            caches,
            servers,
            memory: 256 << 20,
            block_bytes: PAYLOAD_BYTES_MAX,
            placement: placement::USUAL,
            replacement: replacement::USUAL,
            write_policy: write_policy::USUAL,
            age: Nanos(5_000_000_000),
            failure_timeout: Nanos(8_000_000_000),
            grant_bytes: 64 << 20,
            serving: ServingSettings::usual(),
        }
    }
}

/// What a manager has done so far, and has now.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Bytes of blocks at most.
    pub memory: u64,
    /// Bytes of blocks.
    pub used_bytes: u64,
    /// Blocks that were read.
    pub reads: u64,
    /// Those of them that a server had to be asked for.
    pub misses: u64,
    /// Questions to servers for what is missing of a block.
    pub fetches: u64,
    /// Blocks that were brought to servers.
    pub flushes: u64,
    /// Bytes of blocks that have some no server has.
    pub unsaved_bytes: u64,
    /// Bytes of devices that servers keep for it.
    pub granted_bytes: u64,
}

impl Counts {
    /// Blocks that were read and were there.
    pub fn hits(&self) -> u64 {
        self.reads.saturating_sub(self.misses)
    }
}

/// What the manager knows of a file.
#[derive(Debug)]
struct File {
    /// On its servers.
    layout: Layout,
    /// The view of all of it, as this manager numbers it, and who has stored it.
    view: ViewNumber,
    stored: BTreeSet<Party>,
    /// Questions to servers without an answer.
    in_flight: u32,
    /// Somebody changes its length: servers are asked nothing.
    is_held: bool,
    /// Who waits to cut it until the questions are answered.
    cutting: Option<Operation>,
}

/// Somebody has cut a file, and keeps others back until servers have the new length.
#[derive(Debug)]
struct Pause {
    session: SessionId,
    inode: Inode,
    operation: Operation,
    /// Nobody waits longer: who paused may not know that it did.
    until: Nanos,
}

/// The cache manager machine.
#[derive(Debug)]
pub struct CacheManager {
    settings: Settings,
    serving: Serving<Work>,
    blocks: Blocks,
    files: BTreeMap<Inode, File>,
    /// When there are so many, those that are not in use are forgotten.
    files_max: usize,
    last_view: u32,
    links: Links<Errand, Row>,
    /// Who waits for memory, in the order in which they came.
    waiting: VecDeque<Operation>,
    /// Whether there may be memory for them.
    is_room_new: bool,
    /// Who keeps others back from a file, after cutting it.
    pauses: Vec<Pause>,
    /// What syncs wait for: how many flushes of which block must be over.
    syncs: BTreeMap<Operation, BTreeMap<Key, u64>>,
    /// Flushes under way.
    flushing: usize,
    /// After a flush has failed, none begins before then.
    flush_again_at: Option<Nanos>,
    /// Whatever servers do not have is brought to them at once.
    is_ending: bool,
    counts: Counts,
    woken_at: Option<Nanos>,
}

/// Files that are known without being looked through for those that need not be.
const FILES: usize = 4096;

impl CacheManager {
    /// A manager in a new life: it has nothing.
    pub fn new(settings: Settings) -> CacheManager {
        let block_bytes = settings.block_bytes.clamp(1, PAYLOAD_BYTES_MAX);
        let memory = settings.memory.max(8 * block_bytes);
        let settings = Settings { block_bytes, memory, ..settings };
        CacheManager {
            settings,
            serving: Serving::new(settings.serving),
            blocks: Blocks::new(&settings),
            files: BTreeMap::new(),
            files_max: FILES,
            last_view: 0,
            links: Links::new(settings.failure_timeout),
            waiting: VecDeque::new(),
            is_room_new: false,
            pauses: Vec::new(),
            syncs: BTreeMap::new(),
            flushing: 0,
            flush_again_at: None,
            is_ending: false,
            counts: Counts::default(),
            woken_at: None,
        }
    }

    /// The parties that ought to have answered for a second. Where one runs all the same, [`PartyEvent::Runs`] tells.
    pub fn silent(&self, now: Nanos) -> Vec<Party> {
        self.links.silent(now)
    }

    /// What it has done so far, and has now.
    pub fn counts(&self) -> Counts {
        Counts {
            memory: self.settings.memory,
            used_bytes: self.blocks.used_bytes(),
            unsaved_bytes: self.blocks.unsaved_bytes(),
            granted_bytes: self.blocks.grants.bytes(),
            ..self.counts
        }
    }

    fn asked(
        &mut self,
        now: Nanos,
        peer: Peer,
        request: Request,
        message: Message,
        payload: Option<(Buffer, u64)>,
        out: &mut Vec<Action>,
    ) {
        let reply = |message| Action::Peer(PeerAction::reply(peer, request, message));
        let release = |out: &mut Vec<Action>| {
            out.extend(payload.map(|(buffer, _)| Action::Release { buffer }));
        };
        let id = match self.serving.admit(peer, request) {
            Admission::Taken(id) => id,
            Admission::Ignored => return release(out),
            Admission::Repeated(answer) => {
                release(out);
                return out.push(reply(answer));
            }
            Admission::TooMany => {
                release(out);
                self.serving.sessions.lost(now, peer);
                return out.push(Action::Peer(PeerAction::Drop { peer, why: TOO_MANY }));
            }
        };
        let work = self.work_of(id, message, payload, out);
        if !matches!(work, Ok(Work::Write { .. })) {
            release(out);
        }
        match work {
            Err(answer) => out.push(reply(answer)),
            Ok(work) => {
                let is_resume = matches!(work, Work::Resume { .. });
                let operation = self.serving.begin(id, request, work);
                if is_resume {
                    self.resume(id, operation, out);
                }
            }
        }
    }

    /// The file of a request, which is this manager's to serve; or what is wrong with it.
    fn know(&mut self, subfile: Subfile, layout: Layout) -> Result<(), Message> {
        let Settings { index, caches, .. } = self.settings;
        let managers = self.settings.managers();
        let is_own = managers.divide(layout).keeper_of(subfile.index, caches) == index;
        if managers.asked() == 0 || !is_own {
            return Err(Message::failed(Code::INVALID, "the part of another cache manager"));
        }
        if let Some(file) = self.files.get(&subfile.inode) {
            return match file.layout == layout {
                true => Ok(()),
                false => Err(Message::failed(Code::INVALID, "the file is partitioned otherwise")),
            };
        }
        self.forget_files();
        self.last_view += 1;
        let file = File {
            layout,
            view: ViewNumber(self.last_view),
            stored: BTreeSet::new(),
            in_flight: 0,
            is_held: false,
            cutting: None,
        };
        self.files.insert(subfile.inode, file);
        Ok(())
    }

    /// Forgets files that nothing is known of but their layout, when there are many.
    fn forget_files(&mut self) {
        if self.files.len() < self.files_max {
            return;
        }
        let CacheManager { files, blocks, serving, .. } = self;
        files.retain(|&inode, file| {
            let has_blocks = blocks.of_file(inode).next().is_some();
            has_blocks || file.in_flight > 0 || file.is_held || serving.subfiles.is_used(inode)
        });
        self.files_max = FILES.max(2 * self.files.len());
    }

    /// A file is no more, and nobody uses it.
    fn discard(&mut self, inode: Inode, out: &mut Vec<Action>) -> Message {
        let is_asked = self.files.get(&inode).is_some_and(|file| file.in_flight > 0);
        if is_asked || self.serving.subfiles.is_used(inode) {
            return Message::failed(Code::BUSY, "requests on the file are under way");
        }
        let keys: Vec<Key> = self.blocks.of_file(inode).map(|(key, _)| key).collect();
        keys.into_iter().for_each(|key| self.blocks.free(key, out));
        self.files.remove(&inode);
        self.serving.subfiles.discard(inode);
        self.is_room_new = true;
        Message::Done
    }

    /// A session is over, with its views and answers; whom it held back may go on.
    fn end_session(&mut self, id: SessionId) {
        self.serving.sessions.end(id);
        self.end_pauses(|pause| pause.session == id);
    }

    /// These pauses are over.
    fn end_pauses(&mut self, is_over: impl Fn(&Pause) -> bool) {
        let (over, others): (Vec<Pause>, Vec<Pause>) =
            std::mem::take(&mut self.pauses).into_iter().partition(is_over);
        self.pauses = others;
        over.into_iter().for_each(|pause| self.let_go(pause.inode, pause.operation));
    }

    /// Whoever was held back from a file may go on.
    fn let_go(&mut self, inode: Inode, operation: Operation) {
        if let Some(file) = self.files.get_mut(&inode) {
            file.is_held = false;
            self.blocks.keep_from_servers(inode, false);
        }
        self.serving.leave(operation);
    }

    /// Goes on with what may go on.
    fn go_on(&mut self, now: Nanos, out: &mut Vec<Action>) {
        loop {
            while let Some(operation) = self.serving.next() {
                self.act(now, operation, out);
            }
            if std::mem::take(&mut self.is_room_new) {
                for operation in std::mem::take(&mut self.waiting) {
                    self.act(now, operation, out);
                }
                continue;
            }
            let ready = self.blocks.grants.take_ready();
            if !ready.is_empty() {
                ready.into_iter().for_each(|operation| self.act(now, operation, out));
                continue;
            }
            return self.flush_due(now, out);
        }
    }

    /// Wishes to be woken when the next session is late, or data is to be flushed.
    fn wake(&mut self, now: Nanos, out: &mut Vec<Action>) {
        let flush = self.flush_again_at.filter(|_| self.blocks.may_flush());
        let flush = flush.or_else(|| self.blocks.flushes_at(now));
        let pauses = self.pauses.iter().map(|pause| pause.until);
        let grants = self.blocks.grants.wakes_at(self.settings.age);
        let times = self.serving.wakes_at().into_iter().chain(flush).chain(pauses).chain(grants);
        let Some(at) = times.min() else { return };
        if self.woken_at.is_none_or(|stands| stands <= now || stands > at) {
            self.woken_at = Some(at);
            out.push(Action::WakeAt(at));
        }
    }
}

impl From<Wish<Row>> for Action {
    fn from(wish: Wish<Row>) -> Action {
        match wish {
            Wish::Party(action) => Action::Party(action),
            Wish::WakeAt(at) => Action::WakeAt(at),
        }
    }
}

impl CacheManager {
    fn told_by_peer(&mut self, now: Nanos, event: PeerEvent, out: &mut Vec<Action>) {
        match event {
            PeerEvent::Up { peer, session } => {
                out.extend(self.serving.sessions.up(peer, session, true).map(Action::Peer));
            }
            PeerEvent::Lost { peer, ended } => {
                let id = self.serving.sessions.lost(now, peer);
                id.filter(|_| ended).into_iter().for_each(|id| self.end_session(id));
            }
            PeerEvent::Asked { peer, request, message, payload } => {
                self.asked(now, peer, request, message, payload, out);
            }
        }
    }

    fn told_by_party(&mut self, now: Nanos, event: PartyEvent, out: &mut Vec<Action>) {
        match self.links.hear(now, event, out) {
            Heard::Nothing => {}
            Heard::Connected { to, forgotten, .. } => {
                if forgotten.views {
                    self.files.values_mut().for_each(|file| {
                        file.stored.remove(&to);
                    });
                }
                self.unanswered(now, to, forgotten.lost, Code::SESSION_LOST, out);
                if let (true, Party::Server(server)) = (forgotten.views, to) {
                    self.grants_forgotten(now, server, out);
                }
            }
            Heard::Replied { from, context: errand, message, payload } => {
                self.replied(now, from, errand, (message, payload), out);
            }
            Heard::Unwanted(buffer) => out.push(Action::Release { buffer }),
        }
    }
}

impl Machine for CacheManager {
    type Event = Event;
    type Action = Action;

    fn step(&mut self, now: Nanos, event: Event, out: &mut Vec<Action>) {
        match event {
            Event::Peer(event) => self.told_by_peer(now, event, out),
            Event::Party(event) => self.told_by_party(now, event, out),
            Event::Ending => self.is_ending = true,
            Event::Woke => {
                for id in self.serving.sessions.expired(now, self.settings.serving.session_timeout)
                {
                    self.end_session(id);
                }
                self.end_pauses(|pause| pause.until <= now);
                for party in self.links.parties() {
                    let late = self.links.woke(now, party, out);
                    self.unanswered(now, party, late, Code::TIMED_OUT, out);
                }
                self.give_back(now, out);
            }
        }
        self.go_on(now, out);
        self.wake(now, out);
    }
}
