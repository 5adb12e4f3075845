//! The metadata manager: names, layouts, opens, shared pointers. Its state is in memory; every change is
//! a record of a journal, written before anybody is told of it, or of anything that follows from it.
//!
//! Promises: operations take effect one after the other; each is one record, so that after a crash all of it
//! is there or nothing. Requests are carried out at most once, over crashes too: their answers are in the
//! journal. A file without name and opens is discarded at all servers and cache managers, however often that takes asking.
//!
//! The journal begins anew with the state when it has become long (`checkpoints.rs`).
//!
//! Costs: O(log n) in names for each component of a path; a removed directory or renamed one is looked
//! through.

mod answers;
mod checkpoints;
mod events;
mod names;

pub use events::{Action, Event};

use crate::change::{Change, Pointer};
use crate::journal::Record;
use crate::links::{Heard, Links, Wish};
use crate::plant::{Plant, is_planted};
use crate::sessions::Sessions;
use crate::{
    Code, Inode, Kind, Layout, Message, OpenNumber, OpenWish, Opened, Party, PartyEvent, Peer,
    PeerAction, PeerEvent, Request, SessionId,
};
use answers::{FAILED, Waiting};
use checkpoints::Checkpoints;
use iolab_policy::Machine;
use iolab_vocab::{Nanos, Refusal};
pub(crate) use names::Names;
use names::Place;
use std::cmp::Ordering;
use std::collections::{BTreeMap, VecDeque};
use std::convert::Infallible;

/// What the manager is built with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Settings {
    /// I/O servers of the instance.
    pub servers: u32,
    /// Cache managers of the instance.
    pub caches: u32,
    /// Partition of files that ask for none.
    pub layout: Layout,
    /// How long a session without a connection is kept.
    pub session_timeout: Nanos,
    /// Files and directories at most, with the root: what the manager's memory holds.
    pub inodes_max: u64,
    /// Files and directories that its user may have, without the root; with those that have no name and are open.
    pub files_quota: Option<u64>,
    /// Bytes of records after which the journal begins anew; it becomes longer where the state itself is long.
    pub journal_bytes: u64,
}

impl Settings {
    /// No caches, the usual layout over so many servers, 8 s, ten million inodes and no quota of them, a journal of 64 MiB.
    pub fn usual(servers: u32) -> Settings {
        Settings {
            servers,
            caches: 0,
            layout: Layout::usual(servers),
            session_timeout: Nanos(8_000_000_000),
            inodes_max: 10_000_000,
            files_quota: None,
            journal_bytes: 64 << 20,
        }
    }
}

/// The metadata manager machine.
#[derive(Debug)]
pub struct Metadata {
    settings: Settings,
    names: Names,
    sessions: Sessions<()>,
    /// Sessions may have been forgotten with their answers: some have expired, or a journal that began anew has left them out.
    forgets: bool,
    /// Number of the last record.
    last: u64,
    /// All records up to this one are written.
    durable: u64,
    /// The journal could not be synced.
    has_failed: bool,
    /// Answers that wait for the records that they tell of.
    waiting: VecDeque<Waiting>,
    /// To the I/O servers and cache managers, for what is discarded there.
    links: Links<Inode, Infallible>,
    /// Which record made an orphan of a file: before it is written, nothing is discarded.
    orphaned: BTreeMap<Inode, u64>,
    /// Servers that have not discarded an orphan yet.
    discarding: BTreeMap<Inode, Discarding>,
    checkpoints: Checkpoints,
    woken_at: Option<Nanos>,
}

/// A file that goes at all servers.
#[derive(Debug)]
struct Discarding {
    left: u32,
    /// Some server could not; all are asked again then.
    again_at: Option<Nanos>,
    has_failed: bool,
}

/// What a request comes to: its answer, and what changes.
type Decided = Result<(Message, Vec<Change>), Code>;

impl Metadata {
    /// A manager in a new life: with the names that the records of its journal say, in their order; those of the
    /// state that it begins with first.
    pub fn recover<'a>(
        settings: Settings,
        records: impl IntoIterator<Item = &'a [u8]>,
    ) -> Result<Metadata, Refusal> {
        let mut manager = Metadata {
            settings,
            names: Names::new(),
            sessions: Sessions::default(),
            forgets: false,
            last: 0,
            durable: 0,
            has_failed: false,
            waiting: VecDeque::new(),
            links: Links::new(settings.session_timeout),
            orphaned: BTreeMap::new(),
            discarding: BTreeMap::new(),
            checkpoints: Checkpoints::default(),
            woken_at: None,
        };
        for record in records {
            manager.checkpoints.appended(record);
            let record = Record::decode(record)?;
            record.changes.iter().for_each(|change| manager.names.apply(change));
            if let Some((session, request)) = record.asked {
                manager.sessions.recover(session).remember(request, record.answer);
            }
            (manager.last, manager.durable) = (record.sequence, record.sequence);
            if let Some(&Change::Numbers { sequence, .. }) = record.changes.last() {
                (manager.last, manager.durable) = (sequence, sequence);
                manager.forgets = true;
                manager.checkpoints.begins();
            }
        }
        // Of the others nothing is open, so nobody waits for an answer that matters.
        let open = manager.names.sessions();
        for &session in &open {
            manager.sessions.recover(session);
        }
        Ok(manager)
    }

    /// The parties that ought to have answered for a second. Where one runs all the same, [`PartyEvent::Runs`] tells.
    pub fn silent(&self, now: Nanos) -> Vec<Party> {
        self.links.silent(now)
    }

    /// The number of the next record.
    pub fn next_sequence(&self) -> u64 {
        self.last + 1
    }

    fn asked(&mut self, peer: Peer, request: Request, message: Message, out: &mut Vec<Action>) {
        let Some((id, session)) = self.sessions.of_peer_mut(peer) else { return };
        let reply = |message| Action::Peer(PeerAction::reply(peer, request, message));
        if message == Message::Ping {
            return out.push(reply(Message::Pong));
        }
        let is_pointer = matches!(message, Message::Advance { .. });
        if let Some(answer) = session.answer(request)
            && !(is_pointer && is_planted(Plant::PointerMovedTwice))
        {
            return out.push(reply(answer.clone()));
        }
        if self.has_failed {
            // What it knows may not be so after its next start.
            return out.push(reply(Message::failed(Code::IO, FAILED)));
        }
        if !session.executing.insert(request) {
            return;
        }
        let is_change = message.changes();
        let (message, changes) = match self.decide(id, message) {
            Ok(decided) => decided,
            Err(code) => (Message::failed(code, ""), Vec::new()),
        };
        self.change(Some((id, request)), &message, changes, out);
        let sequence = self.last;
        self.waiting.push_back(Waiting { sequence, session: id, request, message, is_change });
        self.answer_written(out);
    }

    /// What a request comes to. Nothing is changed yet.
    fn decide(&self, session: SessionId, message: Message) -> Decided {
        match message {
            Message::Open { path, wish } => self.open(session, &path, wish),
            Message::Close { open } => match self.names.open(open) {
                Some(its) if its.session == session => {
                    Ok((Message::Done, vec![Change::Close { open }]))
                }
                Some(_) => Err(Code::BAD_FILE),
                None if is_planted(Plant::OpensForgotten) => Err(Code::BAD_FILE),
                // It ended with a session that was out of sight for too long; nothing is lost by that.
                None => Ok((Message::Done, Vec::new())),
            },
            Message::Count => {
                let count = self.names.inode_count().saturating_sub(1);
                Ok((Message::Files { count }, Vec::new()))
            }
            Message::Advance { open, setting, from, by } => {
                self.advance(open, Pointer { setting, units: from }, by)
            }
            Message::Look { path } => {
                let attributes = self.names.attributes(self.names.find(&path)?)?;
                Ok((Message::Attributes(attributes), Vec::new()))
            }
            Message::MakeDirectory { path, mode } => {
                let place = self.new_place(&path)?;
                let kind = Kind::Directory;
                Ok((Message::Done, vec![self.create(&place, kind, mode, None)?]))
            }
            Message::Remove { path, kind } => {
                let place = self.names.place(&path)?.ok_or(Code::BUSY)?;
                self.names.check_removal(place.found.ok_or(Code::NO_ENTRY)?, kind)?;
                let (parent, name) = (place.parent, place.name.to_vec());
                Ok((Message::Done, vec![Change::Remove { parent, name }]))
            }
            Message::Rename { from, to } => self.rename(&from, &to),
            Message::List { path, after } => {
                let mut room = LIST_BYTES;
                let (entries, more) = self.names.list(self.names.find(&path)?, &after, |name| {
                    let before = room;
                    room = room.saturating_sub(name.len() + ENTRY_BYTES);
                    room > 0 && room < before
                })?;
                Ok((Message::Entries { entries, more }, Vec::new()))
            }
            _ => Err(Code::UNSUPPORTED),
        }
    }

    fn open(&self, session: SessionId, path: &[u8], wish: OpenWish) -> Decided {
        let place = self.names.place(path)?.ok_or(Code::IS_DIRECTORY)?;
        let (next_inode, open) = self.names.next_numbers();
        if let Some(inode) = place.found {
            let attributes = self.names.attributes(inode)?;
            if wish.creates && wish.exclusive {
                return Err(Code::EXISTS);
            }
            let layout = attributes.layout.ok_or(Code::IS_DIRECTORY)?;
            let opened = Opened { open, inode, layout, created: false };
            return Ok((Message::Opened(opened), vec![Change::Open { open, inode, session }]));
        }
        if !wish.creates {
            return Err(Code::NO_ENTRY);
        }
        // Files begin at different servers, so that small ones do not all lie on one.
        let start = (next_inode.0 % u64::from(self.settings.servers)) as u32;
        let layout = wish.layout.unwrap_or(self.settings.layout).starting_at(start);
        let create = self.create(&place, Kind::File, wish.mode, Some(layout))?;
        let opened = Opened { open, inode: next_inode, layout, created: true };
        let changes = vec![create, Change::Open { open, inode: next_inode, session }];
        Ok((Message::Opened(opened), changes))
    }

    /// Moves the shared pointer of an open, which the group has put to `set` last.
    fn advance(&self, open: OpenNumber, set: Pointer, by: u64) -> Decided {
        let known = self.names.open(open).ok_or(Code::BAD_FILE)?.pointer;
        let before = match known.setting.cmp(&set.setting) {
            // The first to move it since tells where it was put.
            Ordering::Less => set,
            Ordering::Equal => known,
            Ordering::Greater => return Err(Code::INVALID),
        };
        let behind = before.units.checked_add(by).filter(|&behind| behind <= UNITS_MAX);
        let pointer = Pointer { units: behind.ok_or(Code::TOO_LARGE)?, ..before };
        let change = (by > 0).then_some(Change::Pointer { open, pointer });
        Ok((Message::Position { units: before.units }, change.into_iter().collect()))
    }

    fn create(
        &self,
        place: &Place<'_>,
        kind: Kind,
        mode: u32,
        layout: Option<Layout>,
    ) -> Result<Change, Code> {
        let used = self.names.inode_count();
        if used >= self.settings.inodes_max {
            return Err(Code::NO_SPACE);
        }
        // The root is nobody's, and in the count.
        let others = if is_planted(Plant::FileBeyondQuota) { 2 } else { 1 };
        if self.settings.files_quota.is_some_and(|quota| used.saturating_sub(others) >= quota) {
            return Err(Code::QUOTA);
        }
        let (inode, _) = self.names.next_numbers();
        let (parent, name) = (place.parent, place.name.to_vec());
        Ok(Change::Create { parent, name, inode, kind, mode, layout })
    }

    fn new_place<'a>(&self, path: &'a [u8]) -> Result<Place<'a>, Code> {
        let place = self.names.place(path)?.ok_or(Code::EXISTS)?;
        match place.found {
            Some(_) => Err(Code::EXISTS),
            None => Ok(place),
        }
    }

    fn rename(&self, from: &[u8], to: &[u8]) -> Decided {
        let old = self.names.place(from)?.ok_or(Code::BUSY)?;
        let new = self.names.place(to)?.ok_or(Code::BUSY)?;
        let inode = old.found.ok_or(Code::NO_ENTRY)?;
        let kind = self.names.attributes(inode)?.kind;
        if new.found == Some(inode) {
            return Ok((Message::Done, Vec::new()));
        }
        if kind == Kind::Directory && self.names.is_within(new.parent, inode) {
            return Err(Code::INVALID);
        }
        if let Some(gone) = new.found {
            self.names.check_removal(gone, kind)?;
        }
        let change = Change::Rename {
            parent: old.parent,
            name: old.name.to_vec(),
            new_parent: new.parent,
            new_name: new.name.to_vec(),
        };
        Ok((Message::Done, vec![change]))
    }

    /// Applies changes, and puts them into the journal.
    fn change(
        &mut self,
        asked: Option<(SessionId, Request)>,
        answer: &Message,
        changes: Vec<Change>,
        out: &mut Vec<Action>,
    ) {
        if changes.is_empty() || self.has_failed {
            return;
        }
        changes.iter().for_each(|change| self.names.apply(change));
        if is_planted(Plant::RenameInTwo)
            && let [Change::Rename { parent, name, new_parent, new_name }] = changes.as_slice()
        {
            let (parent, new_parent) = (*parent, *new_parent);
            let between = b"between".to_vec();
            let away = Change::Rename {
                parent,
                name: name.clone(),
                new_parent: parent,
                new_name: between.clone(),
            };
            let there =
                Change::Rename { parent, name: between, new_parent, new_name: new_name.clone() };
            self.append(None, &Message::Done, vec![away], out);
            return self.append(asked, answer, vec![there], out);
        }
        self.append(asked, answer, changes, out);
    }

    /// Puts changes into the journal, as one record.
    fn append(
        &mut self,
        asked: Option<(SessionId, Request)>,
        answer: &Message,
        changes: Vec<Change>,
        out: &mut Vec<Action>,
    ) {
        self.last += 1;
        let (sequence, answer) = (self.last, answer.clone());
        let record = Record { sequence, asked, answer, changes }.encode(self.durable);
        self.checkpoints.appended(&record);
        out.push(Action::Append { sequence, record });
    }

    /// Asks all servers and cache managers to discard files that nobody can reach any more.
    fn discard(&mut self, now: Nanos, out: &mut Vec<Action>) {
        if self.has_failed {
            return;
        }
        let due = |discarding: &Discarding| discarding.again_at.is_some_and(|at| at <= now);
        let new = |inode: &Inode| self.discarding.get(inode).is_none_or(due);
        let (last, durable) = (self.last, self.durable);
        let mut written = |inode: &Inode| *self.orphaned.entry(*inode).or_insert(last) <= durable;
        let orphans: Vec<Inode> =
            self.names.orphans().filter(|inode| new(inode) && written(inode)).collect();
        let Settings { servers, caches, .. } = self.settings;
        for inode in orphans {
            let left = caches + servers;
            let discarding = Discarding { left, again_at: None, has_failed: false };
            self.discarding.insert(inode, discarding);
            // What a cache manager still has on its way, a server that has discarded the file refuses.
            for party in (0..caches).map(Party::Cache).chain((0..servers).map(Party::Server)) {
                self.links.to(party).ask(now, Message::Discard { inode }, None, inode, out);
            }
        }
    }

    /// A server has discarded a file, or has not.
    fn discarded(&mut self, now: Nanos, inode: Inode, is_done: bool, out: &mut Vec<Action>) {
        let Some(discarding) = self.discarding.get_mut(&inode) else { return };
        discarding.left -= 1;
        discarding.has_failed |= !is_done;
        if discarding.left > 0 {
            return;
        }
        if discarding.has_failed {
            discarding.again_at = Some(now.after(DISCARD_AGAIN));
            return;
        }
        self.discarding.remove(&inode);
        self.orphaned.remove(&inode);
        self.change(None, &Message::Done, vec![Change::Discarded { inode }], out);
    }

    fn end_session(&mut self, id: SessionId, out: &mut Vec<Action>) {
        self.sessions.end(id);
        let opens = self.names.opens_of(id).into_iter();
        let changes = opens.map(|open| Change::Close { open }).collect();
        self.change(None, &Message::Done, changes, out);
    }

    /// Wishes to be woken when the next session, file or slice of a checkpoint is due.
    fn wake(&mut self, now: Nanos, out: &mut Vec<Action>) {
        let timeout = self.settings.session_timeout;
        let lost = self.sessions.lost_first().map(|at| at.after(timeout));
        let again = self.discarding.values().filter_map(|discarding| discarding.again_at);
        let slice = self.checkpoints.next_at();
        let Some(at) = lost.into_iter().chain(again).chain(slice).min() else { return };
        if self.woken_at.is_none_or(|stands| stands <= now || stands > at) {
            self.woken_at = Some(at);
            out.push(Action::WakeAt(at));
        }
    }
}

/// As far as shared pointers go.
const UNITS_MAX: u64 = i64::MAX as u64;
/// Bytes of the names that one answer lists, about; each with what stands beside it.
const LIST_BYTES: usize = 64 << 10;
/// What stands beside a name in a list.
const ENTRY_BYTES: usize = 64;
/// How long after a server could not discard a file it is asked again.
const DISCARD_AGAIN: Nanos = Nanos(1_000_000_000);

impl From<Wish<Infallible>> for Action {
    fn from(wish: Wish<Infallible>) -> Action {
        match wish {
            Wish::Party(action) => Action::Party(action),
            Wish::WakeAt(at) => Action::WakeAt(at),
        }
    }
}

impl Metadata {
    fn told_by_peer(&mut self, now: Nanos, event: PeerEvent, out: &mut Vec<Action>) {
        match event {
            PeerEvent::Up { peer, session } => {
                out.extend(self.sessions.up(peer, session, self.forgets).map(Action::Peer));
            }
            PeerEvent::Lost { peer, ended } => {
                let id = self.sessions.lost(now, peer);
                id.filter(|_| ended).into_iter().for_each(|id| self.end_session(id, out));
            }
            PeerEvent::Asked { peer, request, message, payload } => {
                // Nothing that it is asked for carries any.
                out.extend(payload.map(|(buffer, _)| Action::Release { buffer }));
                self.asked(peer, request, message, out);
            }
        }
    }

    fn told_by_party(&mut self, now: Nanos, event: PartyEvent, out: &mut Vec<Action>) {
        match self.links.hear(now, event, out) {
            Heard::Nothing => {}
            Heard::Connected { forgotten, .. } => {
                let lost = forgotten.lost.into_iter();
                lost.for_each(|inode| self.discarded(now, inode, false, out));
            }
            Heard::Replied { context: inode, message, payload, .. } => {
                out.extend(payload.map(|buffer| Action::Release { buffer }));
                self.discarded(now, inode, message == Message::Done, out);
            }
            Heard::Unwanted(buffer) => out.push(Action::Release { buffer }),
        }
    }
}

impl Machine for Metadata {
    type Event = Event;
    type Action = Action;

    fn step(&mut self, now: Nanos, event: Event, out: &mut Vec<Action>) {
        self.sessions.told_time(now);
        match event {
            Event::Peer(event) => self.told_by_peer(now, event, out),
            Event::Party(event) => self.told_by_party(now, event, out),
            Event::Failed => self.fail(out),
            Event::Checkpointed { is_durable } => self.checkpointed(is_durable, out),
            Event::Appended { upto } => {
                self.durable = self.durable.max(upto);
                self.answer_written(out);
            }
            Event::Woke => {
                for id in self.sessions.expired(now, self.settings.session_timeout) {
                    self.forgets = true;
                    self.end_session(id, out);
                }
                for party in self.links.parties() {
                    let late = self.links.woke(now, party, out);
                    late.into_iter().for_each(|inode| self.discarded(now, inode, false, out));
                }
            }
        }
        self.discard(now, out);
        self.take_checkpoint(now, out);
        self.wake(now, out);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Buffer;

    fn is_known(manager: &mut Metadata, now: u64, session: u128) -> bool {
        let mut actions = Vec::new();
        let (peer, session) = (Peer(session as u32), SessionId(session));
        manager.step(Nanos(now), Event::Peer(PeerEvent::Up { peer, session }), &mut actions);
        let welcome = actions.iter().find_map(|action| match action {
            Action::Peer(PeerAction::Welcome { known, .. }) => Some(*known),
            _ => None,
        });
        welcome.expect("it is welcome")
    }

    #[test]
    fn a_session_is_unknown_only_where_some_may_have_been_forgotten() {
        let settings = Settings::usual(1);
        let mut manager = Metadata::recover(settings, []).unwrap();
        assert!(is_known(&mut manager, 1, 1), "nobody was ever here");
        let mut actions = Vec::new();
        let lost = Event::Peer(PeerEvent::Lost { peer: Peer(1), ended: false });
        manager.step(Nanos(2), lost, &mut actions);
        manager.step(Nanos(8_000_000_003), Event::Woke, &mut actions);
        assert!(!is_known(&mut manager, 8_000_000_004, 1), "it has expired");
        assert!(is_known(&mut manager, 8_000_000_005, 1));
        assert!(!is_known(&mut manager, 8_000_000_006, 2), "it may have expired, too");

        // A journal that begins with a state has no answers of those who had expired before.
        let numbers = Change::Numbers { inode: Inode(9), open: OpenNumber(9), sequence: 7 };
        let (asked, answer) = (None, Message::Done);
        let state = Record { sequence: 1, asked, answer, changes: vec![numbers] }.encode(0);
        let mut anew = Metadata::recover(settings, [&state[..]]).unwrap();
        assert!(!is_known(&mut anew, 1, 1));
    }

    #[test]
    fn payload_that_no_request_to_the_manager_has_is_given_back() {
        let mut manager = Metadata::recover(Settings::usual(1), []).unwrap();
        let mut tell = |event: PeerEvent| {
            let mut actions = Vec::new();
            manager.step(Nanos(1), Event::Peer(event), &mut actions);
            actions
        };
        let (peer, buffer) = (Peer(1), Buffer(7));
        tell(PeerEvent::Up { peer, session: SessionId(1) });
        let look = |number: u64, path: &[u8]| PeerEvent::Asked {
            peer,
            request: Request(number),
            message: Message::Look { path: path.to_vec() },
            payload: Some((buffer, 9)),
        };
        for (number, path) in [(1, &b"/"[..]), (2, b"/none"), (1, b"/")] {
            let actions = tell(look(number, path));
            assert_eq!(actions[0], Action::Release { buffer });
            assert_eq!(actions.len(), 2, "and answered: {actions:?}");
        }
    }
}
