//! What the run of a program has come to: its rows in time, processes, decisions, totals.

use super::setup::Setup;
use iolab_policy::insitu::Totals;
use iolab_trace::Event;
use iolab_vocab::Nanos;

/// What a run came to.
pub(super) struct Run {
    /// Rows of the trace with the times (and results) they have now.
    pub(super) events: Vec<Event>,
    /// What the stacks decided.
    pub(super) decisions: Vec<Event>,
    /// By process: when it began and ended.
    pub(super) processes: Vec<(Nanos, Nanos)>,
    pub(super) end: Nanos,
    /// When the servers of a cluster had stored everything.
    pub(super) stored: Option<Nanos>,
    pub(super) event_hash: u64,
    pub(super) staged_calls: u64,
    pub(super) performed_calls: u64,
    /// What strategies that count have counted.
    pub(super) counted: Totals,
}

impl Run {
    /// Nothing has happened yet.
    pub(super) fn empty(setup: &Setup) -> Run {
        Run {
            events: setup.trace.events.clone(),
            decisions: Vec::new(),
            processes: vec![(Nanos(u64::MAX), Nanos::ZERO); setup.trace.header.processes.len()],
            end: Nanos::ZERO,
            stored: None,
            event_hash: 0xCBF2_9CE4_8422_2325,
            staged_calls: 0,
            performed_calls: 0,
            counted: Totals::default(),
        }
    }

    /// A process was at work at that time.
    pub(super) fn seen(&mut self, process: u32, now: Nanos) {
        let (began, ended) = &mut self.processes[process as usize];
        *began = (*began).min(now);
        *ended = (*ended).max(now);
        self.end = self.end.max(now);
    }

    /// Everything has happened.
    pub(super) fn finished(mut self, setup: &Setup) -> Run {
        for &(row, call) in &setup.program.inside {
            self.place_inside(&setup.trace.events, row, call);
        }
        for (began, ended) in &mut self.processes {
            *began = (*began).min(*ended);
        }
        self.decisions.sort_by_key(|event| (event.process, event.thread, event.start));
        self
    }

    /// A row that was part of a call keeps its place in it.
    fn place_inside(&mut self, recorded: &[Event], row: usize, call: usize) {
        let (whole, now) = (&recorded[call], self.events[call]);
        let place = |time: Nanos| {
            let since = u128::from(time.min(whole.end).since(whole.start).get());
            let scaled = since * u128::from(now.duration().get())
                / u128::from(whole.duration().get().max(1));
            now.start.after(Nanos(scaled as u64))
        };
        let (start, end) = (place(recorded[row].start), place(recorded[row].end));
        (self.events[row].start, self.events[row].end) = (start, end);
    }

    /// Adds the end of a row to the hash.
    pub(super) fn hash(&mut self, now: Nanos, row: usize) {
        for word in [now.0, row as u64] {
            self.event_hash = (self.event_hash ^ word).wrapping_mul(0x100_0000_01B3);
        }
    }
}
