//! A simulation as one flat table: a line for the run, each end of its band, each application, phase,
//! server and link, in the same columns.

use super::{Banded, Simulation, seconds, share, start};
use crate::csv::{self, Plain};
use iolab_sim::band::Band;
use iolab_sim::file_system::TrafficTotals;
use iolab_sim::program::PhaseTotals;
use iolab_sim::workload::{LinkOutcome, Outcome, ServerOutcome};
use serde::Serialize;

/// A line of the table. What a part does not have stays empty.
#[derive(Default, Serialize)]
struct Row<'a> {
    part: &'a str,
    name: &'a str,
    kind: &'a str,
    count: u64,
    start_seconds: Option<Plain>,
    end_seconds: Option<Plain>,
    read_bytes: Option<u64>,
    written_bytes: Option<u64>,
    bytes: Option<u64>,
    busy_seconds: Option<Plain>,
    busy_share: Option<Plain>,
    no_seek: Option<u64>,
    near: Option<u64>,
    far: Option<u64>,
    queue_max: Option<u64>,
    found_bytes: Option<u64>,
    kept_bytes_max: Option<u64>,
}

impl<'a> Row<'a> {
    fn timed(part: &'a str, name: &'a str, count: u64, start: f64, end: f64) -> Row<'a> {
        let (start_seconds, end_seconds) = (Some(Plain(start)), Some(Plain(end)));
        Row { part, name, count, start_seconds, end_seconds, ..Row::default() }
    }

    fn phase(phase: &'a PhaseTotals, application: &'a str) -> Row<'a> {
        let (start, end) = (start(phase), phase.end.seconds());
        Row {
            kind: application,
            read_bytes: Some(phase.read_bytes),
            written_bytes: Some(phase.written_bytes),
            ..Row::timed("phase", &phase.name, phase.calls, start, end)
        }
    }

    fn server(server: &'a ServerOutcome, of: &Outcome) -> Row<'a> {
        let totals = &server.totals;
        Row {
            part: "server",
            name: &server.name,
            count: totals.device.access_count(),
            read_bytes: Some(totals.device.read_bytes),
            written_bytes: Some(totals.device.written_bytes),
            bytes: Some(totals.device.read_bytes + totals.device.written_bytes),
            busy_seconds: Some(Plain(seconds(totals.device.busy_nanos))),
            busy_share: Some(Plain(share(totals.device.busy_nanos, of))),
            no_seek: Some(totals.device.no_seek_count),
            near: Some(totals.device.near_count),
            far: Some(totals.device.far_count),
            queue_max: Some(totals.queue_max),
            found_bytes: Some(totals.memory.found_bytes),
            kept_bytes_max: Some(totals.memory.kept_bytes_max),
            ..Row::default()
        }
    }

    /// What a server or a cache manager of a file system was asked.
    fn traffic(part: &'a str, name: &'a str, totals: &TrafficTotals) -> Row<'a> {
        Row {
            part,
            name,
            count: totals.request_count,
            read_bytes: Some(totals.sent_bytes),
            written_bytes: Some(totals.received_bytes),
            bytes: Some(totals.sent_bytes + totals.received_bytes),
            queue_max: Some(totals.queue_max),
            ..Row::default()
        }
    }

    fn link(link: &'a LinkOutcome, of: &Outcome) -> Row<'a> {
        Row {
            part: "link",
            name: &link.name,
            kind: link.kind.name(),
            count: link.totals.packets,
            bytes: Some(link.totals.bytes),
            busy_seconds: Some(Plain(seconds(link.totals.busy_nanos))),
            busy_share: Some(Plain(share(link.totals.busy_nanos, of))),
            ..Row::default()
        }
    }
}

impl Simulation<'_> {
    /// Everything, as one table of comma-separated values; see [`csv()`].
    pub fn csv(&self) -> String {
        let Banded { outcome, band, .. } = self.outcome;
        let sound = self.faulted.map(|faulted| &faulted.sound.outcome);
        csv(self.subject.name, outcome, band, sound)
    }
}

/// A run of what has this name as one table of comma-separated values: a line for the run, each end of
/// its band, the same run without faults if there is one, and each application, phase, server and link.
pub fn csv(name: &str, outcome: &Outcome, band: &Band, sound: Option<&Outcome>) -> String {
    let run = |part, of: &Outcome| Row::timed(part, name, of.event_count, 0.0, of.end.seconds());
    let end_of_band = |part, end| {
        let row = Row::timed(part, name, band.count, 0.0, end);
        Row { kind: "tie-seeds", ..row }
    };
    let mut rows = vec![
        run("run", outcome),
        end_of_band("run-low", band.low),
        end_of_band("run-high", band.high),
    ];
    rows.extend(sound.map(|sound| run("run-without-faults", sound)));
    for one in &outcome.applications {
        let (ranks, end) = (u64::from(one.rank_count), one.end.seconds());
        let row = Row::timed("application", &one.name, ranks, 0.0, end);
        rows.push(Row { start_seconds: None, ..row });
        rows.extend(one.phases.iter().map(|phase| Row::phase(phase, &one.name)));
    }
    rows.extend(outcome.servers.iter().map(|server| Row::server(server, outcome)));
    if let Some(file_system) = &outcome.file_system {
        let servers = file_system.servers.iter();
        rows.extend(servers.map(|one| Row::traffic("file-server", &one.name, &one.totals)));
        let caches = file_system.caches.iter();
        rows.extend(caches.map(|one| Row::traffic("file-cache", &one.name, &one.totals.traffic)));
    }
    rows.extend(outcome.links.iter().map(|link| Row::link(link, outcome)));
    csv::rows(rows)
}
