//! Driver of the metadata manager: its journal is bytes on a disk, of which a crash leaves those that were
//! reported as written, and of the others any beginning, or any of their sectors with zeros for the rest. A
//! journal that is written beside it is lost by a crash; one that took its place before it was on the disk
//! loses its end.

use super::{Happening, Node, World};
use crate::marks::Mark;
use crate::plan::Plan;
use iolab_pfs::configuration::Durability;
use iolab_pfs::journal::{Journal, SegmentHeader};
use iolab_pfs::metadata::{Action, Event, Metadata, Settings};
use iolab_pfs::recording::Recorded;
use iolab_pfs::{PartyAction, PeerAction, SessionId};
use iolab_policy::Machine;
use std::collections::{BTreeMap, BTreeSet};

/// What a disk writes or does not.
const SECTOR_BYTES: usize = 512;

/// The manager, its driver and its journal.
pub(super) struct Manager {
    machine: Option<Recorded<Metadata>>,
    settings: Settings,
    pub(super) up: bool,
    pub(super) life: u32,
    /// The journal could not be synced in this life.
    pub(super) has_failed: bool,
    /// What is written, byte for byte.
    journal: Vec<u8>,
    /// It has taken the place of another, and is not on the disk as a whole.
    is_soft: bool,
    /// A journal that is being written beside it, and whether it is on the disk.
    beside: Option<(Vec<u8>, bool)>,
    /// All records that were wanted, by their numbers, but those that a crash lost.
    history: BTreeMap<u64, Vec<u8>>,
    /// Records that are not reported as written yet.
    underway: Vec<(u64, Vec<u8>)>,
    /// Records up to here are in a journal that has taken the place of another; the manager is still to be told.
    superseded: Option<u64>,
    /// Records up to here are reported as written.
    reported: u64,
    last: u64,
    /// Those that this life knows, or has known.
    pub(super) sessions: BTreeSet<SessionId>,
}

impl Manager {
    pub(super) fn new(plan: &Plan) -> Manager {
        let usual = Settings::usual(plan.servers);
        Manager {
            machine: None,
            settings: Settings {
                layout: plan.layout,
                caches: plan.caches,
                journal_bytes: plan.journal_bytes,
                files_quota: plan.files_quota,
                ..usual
            },
            up: false,
            life: 0,
            has_failed: false,
            journal: header(1, 0),
            is_soft: false,
            beside: None,
            history: BTreeMap::new(),
            underway: Vec::new(),
            superseded: None,
            reported: 0,
            last: 0,
            sessions: BTreeSet::new(),
        }
    }
}

/// How long after it began to tell names a manager may crash: between two of the first slices.
const TELLING_NS: u64 = 150_000;

/// What a journal begins with.
fn header(first: u64, checkpoint_bytes: u64) -> Vec<u8> {
    SegmentHeader { instance: 1, incarnation: 1, first, checkpoint_bytes }.encode()
}

impl World {
    pub(super) fn start_manager(&mut self) {
        let bytes = std::mem::take(&mut self.manager.journal);
        let journal = match Journal::read(&bytes) {
            Ok(found) => found,
            Err(refusal) => return self.fail(format!("the journal is refused: {refusal}")),
        };
        let torn = bytes.len() > journal.bytes;
        if journal.all().next().is_some() {
            self.meet(Mark::Recovered);
        }
        if !journal.checkpoint.is_empty() {
            self.meet(Mark::CheckpointRead);
        }
        // Names are a beginning of their history.
        let (first, count) = (journal.header.first, journal.records.len() as u64);
        let are_first = (first..).zip(&journal.records).all(|(sequence, record)| {
            self.manager.history.get(&sequence).is_some_and(|was| record == was)
        });
        if !are_first {
            return self.fail("the records of the journal are not the first ones".to_owned());
        }
        let last = first - 1 + count;
        if last < self.manager.reported {
            let reported = self.manager.reported;
            return self.fail(format!("the journal ends with record {last}, not {reported}"));
        }
        self.manager.history.split_off(&(last + 1));
        self.manager.last = last;
        let settings = self.manager.settings;
        let owned = || journal.all().map(<[u8]>::to_vec).collect();
        let origin = self.recordings.is_some().then(|| (settings, owned()));
        let recovered = Metadata::recover(settings, journal.all());
        self.manager.journal = bytes[..journal.bytes].to_vec();
        if torn {
            self.meet(Mark::RecordTorn);
        }
        match recovered {
            Ok(machine) => {
                self.manager.machine = Some(Recorded::of(machine, origin.as_ref()));
            }
            Err(refusal) => return self.fail(format!("the manager does not start: {refusal}")),
        }
        self.manager.up = true;
        self.manager.life += 1;
        self.manager.sessions.clear();
        self.tell_manager(Event::Woke);
    }

    pub(super) fn crash_manager(&mut self) {
        (self.manager.up, self.manager.has_failed) = (false, false);
        if self.manager.machine.take().is_some_and(|machine| machine.tells_names()) {
            self.meet(Mark::CheckpointUntold);
        }
        self.manager.superseded = None;
        if self.manager.beside.take().is_some() {
            self.meet(Mark::CheckpointLost);
        }
        if std::mem::take(&mut self.manager.is_soft) {
            let length = self.manager.journal.len() as u64;
            let kept = self.dice.below(length + 1) as usize;
            self.manager.journal.truncate(kept);
        }
        let underway = std::mem::take(&mut self.manager.underway);
        let in_records = self.dice.one_in(2);
        // Of several records, a device may keep later ones and lose earlier ones.
        let any = !self.dice.one_in(if underway.len() > 1 { 8 } else { 2 });
        let mut left: Vec<u8> = Vec::new();
        for (_, record) in underway {
            let lost = any && in_records && self.dice.one_in(2);
            left.extend(if lost { vec![0; record.len()] } else { record });
        }
        if any && !in_records {
            let (start, mut from) = (self.manager.journal.len(), 0);
            while from < left.len() {
                let to = ((start + from) / SECTOR_BYTES + 1) * SECTOR_BYTES - start;
                let to = to.min(left.len());
                if self.dice.one_in(2) {
                    left[from..to].fill(0);
                }
                from = to;
            }
        }
        let kept = if any { left.len() as u64 } else { self.dice.below(left.len() as u64 + 1) };
        self.manager.journal.extend(&left[..kept as usize]);
    }

    pub(super) fn written(&mut self, life: u32) {
        if life != self.manager.life || !self.manager.up {
            return;
        }
        let superseded = self.manager.superseded.take();
        if self.manager.underway.is_empty() && superseded.is_none() {
            return;
        }
        if self.plan.durability == Durability::Device && self.trouble(self.plan.rates.sync * 64) {
            self.meet(Mark::JournalFailed);
            self.manager.has_failed = true;
        }
        if self.manager.has_failed {
            return self.tell_manager(Event::Failed);
        }
        let records = std::mem::take(&mut self.manager.underway);
        let last = records.last().map(|&(sequence, _)| sequence);
        let upto = last.max(superseded).expect("there are some");
        self.manager.reported = upto;
        self.manager.journal.extend(records.into_iter().flat_map(|(_, record)| record));
        self.tell_manager(Event::Appended { upto });
    }

    /// A journal beside the other is on the disk, or could not be written.
    pub(super) fn checkpointed(&mut self, life: u32) {
        if life != self.manager.life || !self.manager.up {
            return;
        }
        self.manager.is_soft = false;
        let is_durable = !self.trouble(self.plan.rates.journal);
        match &mut self.manager.beside {
            Some((_, is_there)) if is_durable => *is_there = true,
            beside => {
                if beside.take().is_some() {
                    self.meet(Mark::CheckpointRefused);
                }
            }
        }
        self.tell_manager(Event::Checkpointed { is_durable });
    }

    /// A journal takes the place of the one there was.
    fn supersede(&mut self, upto: u64, records: &[u8]) {
        let Some((mut journal, is_durable)) = self.manager.beside.take() else {
            return self.fail("a journal takes the other's place that was not begun".to_owned());
        };
        self.meet(Mark::JournalBegunAnew);
        journal.extend(records);
        self.manager.journal = journal;
        self.manager.is_soft = !is_durable;
        self.manager.underway.retain(|&(sequence, _)| sequence > upto);
        self.manager.superseded = Some(upto);
        let life = self.manager.life;
        let delay = self.delay();
        self.later(delay, Happening::Written { life });
    }

    pub(super) fn tell_manager(&mut self, event: Event) {
        if !self.manager.up {
            return;
        }
        self.tell(&|| format!("manager hears {event:?}"));
        let mut actions = Vec::new();
        let machine = self.manager.machine.as_mut().expect("it is up");
        let told = machine.tells_names();
        machine.step(self.now, event, &mut actions);
        let begins_telling = !told && machine.tells_names();
        let (life, rows) = (self.manager.life, machine.take());
        self.keep(&|| format!("metadata-{life}"), rows);
        // Without a throw of the dice, so that runs in which no names are told stay as they were.
        let may_crash = self.calm_since.is_none() && self.plan.rates.journal > 0;
        if begins_telling && may_crash && self.manager.last.is_multiple_of(4) {
            self.later(TELLING_NS, Happening::Crashes { life });
        }
        for action in actions {
            self.tell(&|| format!("manager wants {action:?}"));
            self.carry_out_for_manager(action);
        }
    }

    fn carry_out_for_manager(&mut self, action: Action) {
        let node = Node::Metadata;
        match action {
            Action::Peer(PeerAction::Welcome { peer, known }) => self.welcome(node, peer, known),
            Action::Peer(PeerAction::Reply { peer, request, message, .. }) => {
                self.reply(node, peer, request, message, None);
            }
            Action::Peer(PeerAction::Drop { peer, why }) => self.drop_peer(node, peer, why),
            Action::Party(PartyAction::Connect { to }) => self.connect(node, to),
            Action::Party(PartyAction::Disconnect { from }) => self.disconnect(node, from),
            Action::Party(PartyAction::Ask { to, request, message, .. }) => {
                self.ask(node, to, request, message, None);
            }
            Action::Release { buffer } => {
                self.fail(format!("the manager gives back buffer {buffer} it has not"));
            }
            Action::Append { sequence, record } => {
                self.log_bytes(&record);
                if sequence <= self.manager.last && self.manager.last > 0 {
                    self.fail(format!("record {sequence} follows record {}", self.manager.last));
                }
                self.manager.last = sequence;
                self.manager.history.insert(sequence, record.clone());
                self.manager.underway.push((sequence, record));
                let life = self.manager.life;
                let slow = if self.plan.rates.journal > 0 { 8 } else { 1 };
                let delay = self.delay() * slow;
                self.later(delay, Happening::Written { life });
                // A crash is worth most where several records are on their way.
                let several = self.manager.underway.len() > 1;
                let rate = self.plan.rates.journal;
                if self.trouble(if several { rate.div_ceil(4) } else { rate }) {
                    let soon = if several { self.dice.magnitude(1, delay / 2) } else { delay / 2 };
                    self.later(soon, Happening::Crashes { life });
                }
            }
            Action::Checkpoint { first, records } => {
                let mut journal = header(first, records.len() as u64);
                journal.extend(records);
                self.manager.beside = Some((journal, false));
                let life = self.manager.life;
                let delay = self.delay() * 8;
                self.later(delay, Happening::Checkpointed { life });
                if self.trouble(self.plan.rates.journal) {
                    self.later(delay / 2, Happening::Crashes { life });
                }
            }
            Action::Supersede { upto, records } => self.supersede(upto, &records),
            Action::WakeAt(when) => self.wake_at(node, when),
        }
    }
}
