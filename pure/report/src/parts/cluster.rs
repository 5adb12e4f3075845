//! What rules about a simulated cluster look at: what its ranks wait for in calls that move data, and what its
//! devices, servers and links do meanwhile. One pass over the rows; kept are sums, and times of calls and accesses.

use super::sums::{Phases, Sums};
use super::{PartSums, Parts, Ways};
use iolab_trace::{Event, Function, Layer, ProcessKind, Trace};
use std::collections::BTreeMap;

/// Requests below this are small: a quarter of the smallest stripes in use.
pub(crate) const SMALL_REQUEST_BYTES: u64 = 16 << 10;
/// Messages from here on tell how fast a link is; smaller ones tell its latency.
const LARGE_MESSAGE_BYTES: u64 = 64 << 10;

/// A simulated cluster at work.
#[derive(Clone, Debug)]
pub(crate) struct Cluster {
    /// Parts of all calls.
    pub(crate) sums: PartSums,
    /// Parts of calls that move data, by process.
    pub(crate) by_process: BTreeMap<u32, Parts>,
    /// Calls that move data, with their bytes.
    pub(crate) call_count: u64,
    pub(crate) call_bytes: u64,
    /// Time in which at least one such call is under way.
    pub(crate) calling_ns: u64,
    /// Calls that write, by their start.
    pub(crate) writes: Vec<Write>,
    pub(crate) devices: Vec<Device>,
    pub(crate) requests: Requests,
    /// By process.
    pub(crate) links: BTreeMap<u32, Link>,
    /// Bytes per second of the fastest large message.
    pub(crate) link_rate: f64,
}

/// A call that writes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Write {
    pub(crate) start_ns: u64,
    pub(crate) took_ns: u64,
    /// Of that for devices.
    pub(crate) device_ns: u64,
    pub(crate) bytes: u64,
    pub(crate) process: u32,
    pub(crate) row: u64,
}

/// What a device did.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Device {
    /// Accesses for which it had to seek.
    pub(crate) sought_count: u64,
    pub(crate) sought_bytes: u64,
    pub(crate) seeking_ns: u64,
    /// All accesses, which may overlap.
    pub(crate) access_ns: u64,
    /// Time in which it is busy while a rank is in a call.
    pub(crate) busy_calling_ns: u64,
    /// The row of its longest seek.
    pub(crate) row: Option<(i32, u64)>,
}

/// What servers were asked for.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Requests {
    pub(crate) count: u64,
    pub(crate) small_count: u64,
    pub(crate) bytes: u64,
    pub(crate) row: Option<u64>,
}

/// What went over one direction of a node's link.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Link {
    pub(crate) bytes: u64,
    pub(crate) message_count: u64,
    pub(crate) row: Option<u64>,
}

/// Stretches of time, in order and apart.
type Spans = Vec<(u64, u64)>;

impl Cluster {
    /// Of a trace of a simulated cluster that knows causes.
    pub(crate) fn of(trace: &Trace) -> Option<Cluster> {
        let ways = Ways::new(trace)?;
        let mut cluster = Cluster {
            sums: PartSums::default(),
            by_process: BTreeMap::new(),
            call_count: 0,
            call_bytes: 0,
            calling_ns: 0,
            writes: Vec::new(),
            devices: Vec::new(),
            requests: Requests::default(),
            links: BTreeMap::new(),
            link_rate: 0.0,
        };
        let phases = Phases::of(&trace.header);
        let mut sums = Sums::of(&trace.header, &phases);
        let mut calling: Spans = Vec::new();
        let mut busy: BTreeMap<u32, (Device, Spans)> = BTreeMap::new();
        for (entry, process) in trace.header.processes.iter().zip(0..) {
            if entry.kind() == ProcessKind::Device {
                busy.insert(process, Default::default());
            }
        }
        for (event, row) in trace.events.iter().zip(0..) {
            let span = (event.start.0, event.end.0.max(event.start.0));
            let layer = event.function.layer();
            match layer {
                Layer::Mpiio | Layer::Mpi if ways.is_call(event) => {
                    let spent = ways.spent(row);
                    sums.add(&ways, event, &spent);
                    if event.function.class().moves_data() && layer == Layer::Mpiio {
                        cluster.call(event, u64::from(row), spent.parts);
                        calling.push(span);
                    }
                }
                Layer::Device => {
                    if let Some((device, spans)) = busy.get_mut(&event.process) {
                        device.accessed(event, u64::from(row));
                        spans.push(span);
                    }
                }
                Layer::Server => cluster.requests.asked(event, u64::from(row)),
                Layer::Network => cluster.carried(event, u64::from(row)),
                _ => {}
            }
        }
        cluster.sums = sums.finish()?;
        let calling = joined(calling);
        cluster.calling_ns = calling.iter().map(|(start, end)| end - start).sum();
        let device = |(device, spans)| Device {
            busy_calling_ns: shared_ns(&joined(spans), &calling),
            ..device
        };
        cluster.devices = busy.into_values().map(device).collect();
        cluster.writes.sort_by_key(|write| (write.start_ns, write.row));
        Some(cluster)
    }

    /// All parts of calls that move data.
    pub(crate) fn parts(&self) -> Parts {
        let mut all = Parts::default();
        self.by_process.values().for_each(|parts| all.merge(parts));
        all
    }

    fn call(&mut self, event: &Event, row: u64, parts: Parts) {
        self.by_process.entry(event.process).or_default().merge(&parts);
        self.call_count += 1;
        let bytes = event.moved_bytes();
        self.call_bytes = self.call_bytes.saturating_add(bytes);
        if event.function.class() == iolab_trace::Class::Write {
            self.writes.push(Write {
                start_ns: event.start.0,
                took_ns: parts.total(),
                device_ns: parts.for_devices(),
                bytes,
                process: event.process,
                row,
            });
        }
    }

    fn carried(&mut self, event: &Event, row: u64) {
        let bytes = u64::try_from(event.length).unwrap_or(0);
        let link = self.links.entry(event.process).or_default();
        link.bytes = link.bytes.saturating_add(bytes);
        link.message_count += 1;
        link.row.get_or_insert(row);
        if event.function == Function::SEND && bytes >= LARGE_MESSAGE_BYTES {
            let rate = bytes as f64 / event.end.since(event.start).seconds().max(1e-9);
            self.link_rate = self.link_rate.max(rate);
        }
    }
}

impl Device {
    fn accessed(&mut self, event: &Event, row: u64) {
        let took = event.end.since(event.start).0;
        self.access_ns = self.access_ns.saturating_add(took);
        if event.argument < 1 {
            return;
        }
        let seeking = u64::try_from(event.fd).unwrap_or(0).min(took);
        self.sought_count += 1;
        self.sought_bytes = self.sought_bytes.saturating_add(event.moved_bytes());
        self.seeking_ns = self.seeking_ns.saturating_add(seeking);
        if self.row.is_none_or(|(longest, _)| event.fd > longest) {
            self.row = Some((event.fd, row));
        }
    }
}

impl Requests {
    fn asked(&mut self, event: &Event, row: u64) {
        let bytes = u64::try_from(event.length).unwrap_or(0);
        self.count += 1;
        self.bytes = self.bytes.saturating_add(bytes);
        if bytes < SMALL_REQUEST_BYTES {
            self.small_count += 1;
            self.row.get_or_insert(row);
        }
    }
}

/// Stretches that touch or overlap become one.
fn joined(mut spans: Spans) -> Spans {
    spans.sort_unstable();
    let mut joined: Spans = Vec::new();
    for (start, end) in spans {
        match joined.last_mut() {
            Some(last) if start <= last.1 => last.1 = last.1.max(end),
            _ => joined.push((start, end)),
        }
    }
    joined
}

/// How long both last at once.
fn shared_ns(one: &Spans, other: &Spans) -> u64 {
    let (mut at, mut sum) = (0, 0_u64);
    for &(start, end) in one {
        while at < other.len() && other[at].1 <= start {
            at += 1;
        }
        // The last one may reach into the next stretch, too.
        let reaching = other[at..].iter().take_while(|(from, _)| *from < end);
        sum += reaching.map(|(from, to)| end.min(*to) - start.max(*from)).sum::<u64>();
    }
    sum
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stretches_that_touch_become_one_and_what_they_share_counts_once() {
        let calling = joined(vec![(10, 20), (30, 40), (15, 30), (50, 60)]);
        assert_eq!(calling, [(10, 40), (50, 60)]);
        assert_eq!(shared_ns(&vec![(0, 12), (35, 55), (58, 59), (70, 80)], &calling), 13);
        assert_eq!(shared_ns(&calling, &vec![]), 0);
    }
}
