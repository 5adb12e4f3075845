//! The way back from the end of a call to its start, over what was waited for last.
//!
//! From a moment it leads to the latest of its causes, or of an end to the start of its own row if that is
//! later. What lies between two moments belongs to the part that the row one comes from is about. Moments never get
//! later, and what a cause says too much is cut off at the start of the call, so the parts add up to
//! what it took, whatever a damaged trace says: where there is no way on, the remainder is the rest.

use super::{Part, Parts};
use iolab_trace::{
    Class, Event, Function, Header, Layer, Moment, ProcessEntry, ProcessKind, Trace,
};
use iolab_vocab::Nanos;
use std::collections::{BTreeMap, BTreeSet};

/// What messages of an argument carry, see `docs/format/trace.md`.
const READ_DATA: i64 = 2;
const COMPLETION: i64 = 3;
const OF_FILE_SYSTEM: i64 = 7;

/// Finds the ways back in one trace.
pub struct Ways<'a> {
    trace: &'a Trace,
    /// By process.
    places: Vec<Place>,
    /// Nodes with a device.
    servers: Vec<&'a str>,
}

/// What a process is as far as ways back lead through it.
#[derive(Clone, Copy)]
struct Place {
    kind: ProcessKind,
    has_ranks: bool,
    /// Which server's node it is on.
    server: Option<usize>,
}

/// Somebody that a trace has no entry for.
const NOWHERE: Place = Place { kind: ProcessKind::Process, has_ranks: false, server: None };

/// Where a call's time went.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Spent {
    /// Its parts.
    pub parts: Parts,
    /// The server whose answer it waited for last, by its place in [`Ways::servers`].
    pub server: Option<usize>,
}

impl<'a> Ways<'a> {
    /// Of a trace of a simulated cluster that knows causes.
    pub fn new(trace: &'a Trace) -> Option<Ways<'a>> {
        if trace.causes.is_empty() || !Ways::may_have(&trace.header) {
            return None;
        }
        let on = |kind: ProcessKind| {
            let entries = trace.header.processes.iter();
            entries.filter(move |entry| entry.kind() == kind).map(|entry| entry.host.as_str())
        };
        let mut servers: Vec<&str> = Vec::new();
        let mut server_at: BTreeMap<&str, usize> = BTreeMap::new();
        for host in on(ProcessKind::Device) {
            server_at.entry(host).or_insert_with(|| {
                servers.push(host);
                servers.len() - 1
            });
        }
        let clients: BTreeSet<&str> = on(ProcessKind::Rank).collect();
        let place = |entry: &ProcessEntry| Place {
            kind: entry.kind(),
            has_ranks: clients.contains(entry.host.as_str()),
            server: server_at.get(entry.host.as_str()).copied(),
        };
        let places = trace.header.processes.iter().map(place).collect();
        Some(Ways { trace, places, servers })
    }

    /// Whether a trace with this header may tell where the time of calls went.
    pub fn may_have(header: &Header) -> bool {
        header.processes.iter().any(|entry| entry.kind() == ProcessKind::Device)
    }

    /// Nodes with a device, in the order of the header.
    pub fn servers(&self) -> &[&'a str] {
        &self.servers
    }

    /// Whether a row is a call of a rank: on files, messages, collective.
    pub fn is_call(&self, event: &Event) -> bool {
        self.place(event).kind == ProcessKind::Rank
            && matches!(event.function.layer(), Layer::Mpiio | Layer::Mpi)
            && event.function.class() != Class::Piece
    }

    /// Where the time of a call went. Nothing of a row that is not there.
    pub fn spent(&self, call: u32) -> Spent {
        let mut spent = Spent::default();
        let Some(event) = self.trace.events.get(call as usize) else { return spent };
        let (from, mut until) = (event.start, event.end.max(event.start));
        let mut at = Moment { row: call, is_end: true };
        let mut circle = Circle::new(at);
        while until > from {
            let before = self.before(at);
            let Some(before) = before.filter(|before| !circle.closes(*before, self.time(*before)))
            else {
                spent.parts.add(Part::Rest, until.since(from));
                break;
            };
            if spent.server.is_none() {
                spent.server = self.answering_server(before);
            }
            let since = self.time(before).clamp(from, until);
            self.split(call, (at, before), (since, until), &mut spent.parts);
            (at, until) = (before, since);
        }
        spent
    }

    fn time(&self, moment: Moment) -> Nanos {
        moment.time(&self.trace.events)
    }

    fn event(&self, moment: Moment) -> &'a Event {
        &self.trace.events[moment.row as usize]
    }

    fn place(&self, event: &Event) -> Place {
        self.places.get(event.process as usize).copied().unwrap_or(NOWHERE)
    }

    /// The moment before one: its latest cause, of equal ones the first, or the start of its own row.
    fn before(&self, moment: Moment) -> Option<Moment> {
        let time = self.time(moment);
        let causes = self.trace.causes.of(moment).iter();
        let causes = causes.filter_map(|&row| Moment::of_cause(&self.trace.events, row, time));
        let own = Some(Moment { is_end: false, ..moment });
        let own = own.filter(|start| moment.is_end && self.time(*start) <= time);
        let later = |one: Moment, other: Moment| {
            if self.time(other) > self.time(one) { other } else { one }
        };
        causes.chain(own).reduce(later)
    }

    /// The server that is met here on the way back, at its work or with its answer.
    fn answering_server(&self, moment: Moment) -> Option<usize> {
        let event = self.event(moment);
        let place = self.place(event);
        let is_at_work = match place.kind {
            ProcessKind::Server | ProcessKind::Device => true,
            ProcessKind::NicOut => self.is_answer(event, place),
            _ => false,
        };
        place.server.filter(|_| is_at_work)
    }

    /// Whether a message goes from a server to whoever asked it for something.
    fn is_answer(&self, message: &Event, from: Place) -> bool {
        match message.argument {
            READ_DATA | COMPLETION => true,
            // Of those of the file system nothing tells; managers are asked like servers.
            OF_FILE_SYSTEM => from.server.is_some() || !from.has_ranks,
            _ => false,
        }
    }

    /// Says what a stretch between two moments of the way was spent with.
    fn split(
        &self,
        call: u32,
        (at, before): (Moment, Moment),
        (since, until): (Nanos, Nanos),
        parts: &mut Parts,
    ) {
        let event = self.event(at);
        let place = self.place(event);
        if place.kind == ProcessKind::Device && at.is_end && before.row == at.row {
            return positioned(event, (since, until), parts);
        }
        let is_answer = || self.is_answer(event, place);
        let is_on_its_way = matches!(place.kind, ProcessKind::NicOut | ProcessKind::NicIn);
        let since = match is_on_its_way && at.is_end {
            true => held_back(event, (since, until), parts),
            false => since,
        };
        let part = match place.kind {
            ProcessKind::Rank if event.process == self.trace.events[call as usize].process => {
                Part::Client
            }
            ProcessKind::NicOut if at.is_end && is_answer() => Part::Answering,
            ProcessKind::NicOut if at.is_end => Part::Sending,
            // From the device's last byte on the answer is made; before, the server waits.
            ProcessKind::NicOut if is_answer() => match self.is_device(before) {
                true => Part::Answering,
                false => Part::ServerWait,
            },
            ProcessKind::NicOut => Part::Client,
            ProcessKind::NicIn => Part::Wire,
            ProcessKind::Server => Part::ServerWait,
            ProcessKind::Device if !at.is_end => Part::DeviceWait,
            ProcessKind::Rank | ProcessKind::Process | ProcessKind::Device => Part::Rest,
        };
        parts.add(part, until.since(since));
    }

    fn is_device(&self, moment: Moment) -> bool {
        let function = self.event(moment).function;
        [Function::DEVICE_READ, Function::DEVICE_WRITE].contains(&function)
    }
}

/// An access: until its first byte it gets there, if the trace says how long that took.
fn positioned(access: &Event, (since, until): (Nanos, Nanos), parts: &mut Parts) {
    let Ok(positioning) = u64::try_from(access.fd) else {
        return parts.add(Part::Rest, until.since(since));
    };
    let moving = access.start.after(Nanos(positioning)).clamp(since, until);
    parts.add(Part::Positioning, moving.since(since));
    parts.add(Part::Transferring, until.since(moving));
}

/// A message: for so long of its way its receiver took nothing, of which the trace says only how long. Returns from
/// when on the rest would have lasted had that come first.
fn held_back(message: &Event, (since, until): (Nanos, Nanos), parts: &mut Parts) -> Nanos {
    let held = Nanos(u64::try_from(message.offset).unwrap_or(0));
    let moving = since.after(held).clamp(since, until);
    parts.add(Part::Memory, moving.since(since));
    moving
}

/// Notices when a way leads in a circle, all at one moment: by looking back at a moment that lies twice as
/// far behind each time (Brent 1980).
struct Circle {
    mark: Moment,
    time: Option<Nanos>,
    steps: u32,
    limit: u32,
}

impl Circle {
    fn new(first: Moment) -> Circle {
        Circle { mark: first, time: None, steps: 0, limit: 1 }
    }

    fn closes(&mut self, moment: Moment, time: Nanos) -> bool {
        if self.time != Some(time) {
            *self = Circle { time: Some(time), ..Circle::new(moment) };
            return false;
        }
        if moment == self.mark {
            return true;
        }
        self.steps += 1;
        if self.steps == self.limit {
            (self.mark, self.steps, self.limit) = (moment, 0, self.limit.saturating_mul(2));
        }
        false
    }
}
