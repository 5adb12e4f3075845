//! Driver of the metadata manager: its journal is bytes on a disk, of which a crash leaves those that were
//! reported as written, and of the others any beginning, or any of their sectors with zeros for the rest.

use super::{Happening, Node, World};
use crate::marks::Mark;
use crate::plan::Plan;
use iolab_pfs::SessionId;
use iolab_pfs::configuration::Durability;
use iolab_pfs::journal;
use iolab_pfs::metadata::{Action, Event, Metadata, Settings};
use iolab_pfs::recording::Recorded;
use iolab_policy::Machine;
use std::collections::BTreeSet;

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
    /// Records that are written, byte for byte.
    journal: Vec<u8>,
    /// All records that were wanted, but those that a crash lost.
    history: Vec<Vec<u8>>,
    /// Records that are not reported as written yet.
    underway: Vec<(u64, Vec<u8>)>,
    last: u64,
    /// Those that this life knows, or has known.
    sessions: BTreeSet<SessionId>,
}

impl Manager {
    pub(super) fn new(plan: &Plan) -> Manager {
        let usual = Settings::usual(plan.servers);
        Manager {
            machine: None,
            settings: Settings { layout: plan.layout, caches: plan.caches, ..usual },
            up: false,
            life: 0,
            has_failed: false,
            journal: Vec::new(),
            history: Vec::new(),
            underway: Vec::new(),
            last: 0,
            sessions: BTreeSet::new(),
        }
    }
}

impl World {
    pub(super) fn start_manager(&mut self) {
        if !self.manager.journal.is_empty() {
            self.meet(Mark::Recovered);
        }
        let (records, intact) = match journal::records(&self.manager.journal, 1) {
            Ok(found) => found,
            Err(refusal) => return self.fail(format!("the journal is refused: {refusal}")),
        };
        let torn = self.manager.journal.len() > intact;
        // Names are a beginning of their history.
        if records.iter().zip(&self.manager.history).any(|(record, was)| record != was) {
            return self.fail("the records of the journal are not the first ones".to_owned());
        }
        self.manager.sessions.clear();
        self.manager.history.truncate(records.len());
        self.manager.last = records.len() as u64;
        let settings = self.manager.settings;
        let owned = |records: &[&[u8]]| records.iter().map(|record| record.to_vec()).collect();
        let origin = self.recordings.is_some().then(|| (settings, owned(&records)));
        let recovered = Metadata::recover(settings, records);
        self.manager.journal.truncate(intact);
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
        self.manager.machine = None;
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
        if life != self.manager.life || !self.manager.up || self.manager.underway.is_empty() {
            return;
        }
        if self.plan.durability == Durability::Device && self.trouble(self.plan.rates.sync * 64) {
            self.meet(Mark::JournalFailed);
            self.manager.has_failed = true;
        }
        if self.manager.has_failed {
            return self.tell_manager(Event::Failed);
        }
        let upto = self.manager.underway.last().expect("there are some").0;
        let records = std::mem::take(&mut self.manager.underway);
        self.manager.journal.extend(records.into_iter().flat_map(|(_, record)| record));
        self.tell_manager(Event::Appended { upto });
    }

    pub(super) fn tell_manager(&mut self, event: Event) {
        if !self.manager.up {
            return;
        }
        self.tell(&|| format!("manager hears {event:?}"));
        let mut actions = Vec::new();
        let machine = self.manager.machine.as_mut().expect("it is up");
        machine.step(self.now, event, &mut actions);
        let (life, rows) = (self.manager.life, machine.take());
        self.keep(&|| format!("metadata-{life}"), rows);
        for action in actions {
            self.tell(&|| format!("manager wants {action:?}"));
            self.carry_out_for_manager(action);
        }
    }

    fn carry_out_for_manager(&mut self, action: Action) {
        let node = Node::Metadata;
        match action {
            Action::Welcome { peer, known } => {
                let incarnation = (1 << 60) + u64::from(self.manager.life);
                let session = self.session_of(self.connections[peer.0 as usize].asker);
                if !self.manager.sessions.insert(session) && !known {
                    self.meet(Mark::SessionExpired);
                }
                self.welcome(node, peer, incarnation, known);
            }
            Action::Reply { peer, request, message } => {
                self.reply(node, peer, request, message, None);
            }
            Action::Drop { peer, why } => self.drop_peer(node, peer, why),
            Action::Connect { to } => self.connect(node, to),
            Action::Disconnect { from } => self.disconnect(node, from),
            Action::Ask { to, request, message } => self.ask(node, to, request, message, None),
            Action::Append { sequence, record } => {
                self.log_bytes(&record);
                if sequence <= self.manager.last && self.manager.last > 0 {
                    self.fail(format!("record {sequence} follows record {}", self.manager.last));
                }
                self.manager.last = sequence;
                self.manager.history.push(record.clone());
                self.manager.underway.push((sequence, record));
                let life = self.manager.life;
                let slow = if self.plan.rates.journal > 0 { 8 } else { 1 };
                let delay = self.delay() * slow;
                self.later(delay, Happening::Written { life });
                if self.trouble(self.plan.rates.journal) {
                    self.later(delay / 2, Happening::Crashes { life });
                }
            }
            Action::WakeAt(when) => self.wake_at(node, when),
        }
    }
}
