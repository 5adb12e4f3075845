//! What every cache layer does alike; the layers differ in how they keep what waits ([`Queues`]).
//!
//! Reads go before writes. With ageing that order is not absolute: writes that have waited
//! longer go first, and a read for which memory has been short as long lets no further write in,
//! so neither starves the other. With a delay, writes are held back until a timer, an amount or a
//! flush lets them go, so that there is more to choose from.

use super::ageing::Ageing;
use super::in_flight::InFlight;
use super::write_delay::WriteDelay;
use super::{Action, Cache, Event, FlushId, Job, Operation, Settings};
use crate::machine::Machine;
use iolab_vocab::{FileId, Nanos};

/// How one cache layer keeps jobs, and which it takes next.
pub(super) trait Queues: Send {
    /// Whether another write may come in, memory permitting.
    fn admits(&mut self) -> bool {
        true
    }

    /// Keeps a read.
    fn push_read(&mut self, job: Job);

    /// Keeps a write. Returns how many bytes of older writes it replaces.
    fn push_write(&mut self, job: Job) -> u64;

    /// Starts the read it likes best, if there is one and memory for it.
    fn start_read(&mut self, in_flight: &mut InFlight, out: &mut Vec<Action>) -> bool;

    /// Starts the write it likes best, if there is one.
    fn start_write(&mut self, in_flight: &mut InFlight, out: &mut Vec<Action>) -> bool;

    /// Whether a read waits.
    fn has_reads(&self) -> bool;

    /// Whether a write of the file waits; of any file when none is named.
    fn has_writes(&self, file: Option<FileId>) -> bool;

    /// Stretches that wait for the device.
    fn queued_count(&self) -> usize;
}

/// One device's cache layer.
#[derive(Debug)]
pub(super) struct Layer<Q> {
    in_flight: InFlight,
    write_delay: WriteDelay,
    ageing: Ageing,
    queues: Q,
    /// A packet was refused and is still outside.
    has_refused: bool,
    /// Who wants to know when a file is on the device.
    flushes: Vec<(FlushId, FileId)>,
}

impl<Q: Queues> Layer<Q> {
    pub(super) fn new(settings: Settings, queues: Q) -> Layer<Q> {
        Layer {
            in_flight: InFlight::new(settings),
            write_delay: WriteDelay::new(settings.delay),
            ageing: Ageing::new(settings.ageing),
            queues,
            has_refused: false,
            flushes: Vec::new(),
        }
    }

    fn offered(&mut self, now: Nanos, bytes: u64, out: &mut Vec<Action>) {
        let has_room = self.in_flight.has_more_than(bytes);
        self.has_refused = !self.queues.admits() || !has_room || self.ageing.is_read_overdue(now);
        if self.has_refused {
            self.ageing.refused(now);
            out.push(Action::Refuse);
            if self.write_delay.open() {
                self.start(now, out);
            }
            return;
        }
        self.ageing.admitted();
        self.in_flight.take(bytes);
        out.push(Action::Admit);
    }

    fn write_arrived(&mut self, now: Nanos, job: Job, out: &mut Vec<Action>) {
        self.ageing.write_waits(now);
        let replaced = self.queues.push_write(job);
        self.in_flight.give_back(replaced);
        self.write_delay.queued(now, job.extent.length - replaced.min(job.extent.length), out);
    }

    /// Fills the device.
    fn start(&mut self, now: Nanos, out: &mut Vec<Action>) {
        while self.in_flight.is_free() {
            let is_started = match self.ageing.is_write_first(now) {
                true => self.start_write(now, out) || self.start_read(now, out),
                false => self.start_read(now, out) || self.start_write(now, out),
            };
            if !is_started {
                return;
            }
        }
    }

    fn start_read(&mut self, now: Nanos, out: &mut Vec<Action>) -> bool {
        if self.ageing.is_refusal_overdue(now) || !self.queues.start_read(&mut self.in_flight, out)
        {
            return false;
        }
        self.ageing.read_started(now, self.queues.has_reads());
        true
    }

    fn start_write(&mut self, now: Nanos, out: &mut Vec<Action>) -> bool {
        if !self.write_delay.is_open() || !self.queues.start_write(&mut self.in_flight, out) {
            return false;
        }
        let more_wait = self.queues.has_writes(None);
        self.ageing.write_started(now, more_wait);
        if !more_wait {
            self.write_delay.drained();
        }
        true
    }

    /// Without a write under way, whoever was refused would wait for a completion that never comes.
    fn retry_refused(&mut self, now: Nanos, out: &mut Vec<Action>) {
        let is_stuck = || !self.in_flight.has_stores() && !self.queues.has_writes(None);
        if self.has_refused && (is_stuck() || self.ageing.is_refusal_overdue(now)) {
            out.push(Action::RetryRefused);
        }
    }

    fn completed(&mut self, operation: Operation, out: &mut Vec<Action>) {
        self.in_flight.complete(operation, out);
        if !self.flushes.is_empty() {
            self.answer_flushes(out);
        }
    }

    fn answer_flushes(&mut self, out: &mut Vec<Action>) {
        let (queues, in_flight) = (&self.queues, &self.in_flight);
        self.flushes.retain(|&(flush, file)| {
            let is_waiting = queues.has_writes(Some(file)) || in_flight.is_writing(file);
            out.extend((!is_waiting).then_some(Action::Flushed { flush }));
            is_waiting
        });
    }
}

impl<Q: Queues> Machine for Layer<Q> {
    type Event = Event;
    type Action = Action;

    /// Every event but an offer and a completion may be the one after which a refused packet has
    /// to be asked for; these two the driver follows up by itself.
    fn step(&mut self, now: Nanos, event: Event, out: &mut Vec<Action>) {
        match event {
            Event::WriteOffered { bytes } => return self.offered(now, bytes, out),
            Event::Completed { operation } => return self.completed(operation, out),
            Event::ReadArrived { tag, file, extent } => {
                self.ageing.read_waits(now);
                self.queues.push_read(Job { tag, file, extent });
            }
            Event::WriteArrived { tag, file, extent } => {
                self.write_arrived(now, Job { tag, file, extent }, out);
            }
            Event::Released { bytes } => self.in_flight.give_back(bytes),
            Event::DeviceReady => self.in_flight.ready(out),
            Event::FlushArrived { flush, file } => {
                self.flushes.push((flush, file));
                self.write_delay.open();
            }
            Event::Woke => self.write_delay.woke(now, out),
            Event::WriteAnnounced { .. } => return,
        }
        self.start(now, out);
        if let Event::FlushArrived { .. } = event {
            self.answer_flushes(out);
        }
        self.retry_refused(now, out);
    }
}

impl<Q: Queues> Cache for Layer<Q> {
    fn held_bytes(&self) -> u64 {
        self.in_flight.held_bytes()
    }

    fn queued_count(&self) -> usize {
        self.queues.queued_count()
    }
}
