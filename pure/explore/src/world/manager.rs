//! Driver of the metadata manager: its journal is a list of records, of which a crash leaves those that
//! were reported as written and any beginning of the others.

use super::network::Frame;
use super::{Happening, Node, World};
use crate::marks::Mark;
use crate::plan::Plan;
use iolab_pfs::metadata::{Action, Event, Metadata, Settings};
use iolab_policy::Machine;

/// The manager, its driver and its journal.
pub(super) struct Manager {
    machine: Option<Metadata>,
    settings: Settings,
    pub(super) up: bool,
    pub(super) life: u32,
    /// Records that are written.
    pub(super) journal: Vec<(u64, Vec<u8>)>,
    /// Records that are not reported as written yet.
    underway: Vec<(u64, Vec<u8>)>,
    last: u64,
}

impl Manager {
    pub(super) fn new(plan: &Plan) -> Manager {
        let usual = Settings::usual(plan.servers);
        Manager {
            machine: None,
            settings: Settings { layout: plan.layout, ..usual },
            up: false,
            life: 0,
            journal: Vec::new(),
            underway: Vec::new(),
            last: 0,
        }
    }
}

impl World {
    pub(super) fn start_manager(&mut self) {
        if !self.manager.journal.is_empty() {
            self.meet(Mark::Recovered);
        }
        let records = self.manager.journal.iter().map(|(_, record)| record.as_slice());
        match Metadata::recover(self.manager.settings, records) {
            Ok(machine) => self.manager.machine = Some(machine),
            Err(refusal) => return self.fail(format!("the manager does not start: {refusal}")),
        }
        self.manager.up = true;
        self.manager.life += 1;
        self.tell_manager(Event::Woke);
    }

    pub(super) fn crash_manager(&mut self) {
        self.manager.up = false;
        self.manager.machine = None;
        let underway = std::mem::take(&mut self.manager.underway);
        let kept = self.dice.below(underway.len() as u64 + 1) as usize;
        if kept < underway.len() {
            self.meet(Mark::RecordTorn);
        }
        self.manager.journal.extend(underway.into_iter().take(kept));
        self.manager.last = self.manager.journal.last().map_or(0, |(sequence, _)| *sequence);
    }

    pub(super) fn written(&mut self, life: u32) {
        if life != self.manager.life || !self.manager.up || self.manager.underway.is_empty() {
            return;
        }
        let upto = self.manager.underway.last().expect("there are some").0;
        let records = std::mem::take(&mut self.manager.underway);
        self.manager.journal.extend(records);
        self.tell_manager(Event::Appended { upto });
    }

    pub(super) fn manager_hears(&mut self, from: iolab_pfs::Party, frame: Frame) {
        self.tell_manager(match frame {
            Frame::Welcome { incarnation, known } => {
                Event::Connected { to: from, incarnation, known }
            }
            Frame::Message { request, message, .. } => Event::Replied { from, request, message },
        });
    }

    pub(super) fn tell_manager(&mut self, event: Event) {
        if !self.manager.up {
            return;
        }
        self.tell(&|| format!("manager hears {event:?}"));
        let mut actions = Vec::new();
        let machine = self.manager.machine.as_mut().expect("it is up");
        machine.step(self.now, event, &mut actions);
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
                self.manager.underway.push((sequence, record));
                let life = self.manager.life;
                let delay = self.delay();
                self.later(delay, Happening::Written { life });
            }
            Action::WakeAt(when) => self.wake_at(node, when),
        }
    }
}
