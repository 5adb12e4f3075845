//! A recorded run as a trace: names for the processes and files its rows speak of.

use super::outcome::ApplicationOutcome;
use crate::cluster::Recording;
use crate::platform::Platform;
use crate::program::PhaseTotals;
use iolab_trace::{
    Clock, FORMAT_VERSION, FileEntry, Header, Losses, Origin, PhaseEntry, ProcessEntry,
    ProcessKind, Trace,
};
use iolab_vocab::Nanos;

/// What a run took place with.
pub(super) struct RecordedRun<'a> {
    pub(super) applications: &'a [ApplicationOutcome],
    pub(super) files: &'a [String],
    pub(super) platform: &'a Platform,
    /// The nodes of cache managers.
    pub(super) caches: Vec<&'a str>,
}

impl RecordedRun<'_> {
    /// The trace of a recording of a run that took until `end`.
    pub(super) fn trace(&self, recording: Recording, end: Nanos) -> Trace {
        let mut losses = Losses::default();
        if recording.lost_count > 0 {
            losses.lost_calls.insert("row limit".to_owned(), recording.lost_count);
        }
        let file = |name: &String| FileEntry { path: name.clone(), ..FileEntry::default() };
        let header = Header {
            format_version: FORMAT_VERSION,
            origin: Origin::Simulated,
            iolab_version: env!("CARGO_PKG_VERSION").to_owned(),
            host: self.platform.name.clone(),
            command: self.applications.iter().map(|one| one.name.clone()).collect(),
            clock: Clock { source: "virtual".to_owned(), resolution_ns: 1, ..Clock::default() },
            files: self.files.iter().map(file).collect(),
            processes: self.processes(end),
            phases: self.phases(),
            communicators: recording.communicators,
            losses,
            ..Header::default()
        };
        Trace { header, events: recording.rows, causes: recording.causes }
    }

    /// Those that some rank came to, each as often as ranks did.
    fn phases(&self) -> Vec<PhaseEntry> {
        let of_all = self.applications.iter();
        let phases = of_all.flat_map(|one| one.phases.iter().map(move |phase| (&one.name, phase)));
        let entries = |(application, phase): (&String, &PhaseTotals)| {
            let entry = |&(start, end): &(Nanos, Nanos)| PhaseEntry {
                name: phase.name.clone(),
                application: application.clone(),
                start_ns: start.0,
                end_ns: end.0,
            };
            phase.visits.iter().map(entry).collect::<Vec<_>>()
        };
        phases.flat_map(entries).collect()
    }

    /// In the order that `Cluster::record` promises.
    fn processes(&self, end: Nanos) -> Vec<ProcessEntry> {
        let mut entries = Vec::new();
        let mut nodes = self.platform.client_names().into_iter();
        for application in self.applications {
            for rank in 0..application.rank_count {
                let name = match self.applications.len() {
                    1 => format!("rank {rank}"),
                    _ => format!("{} rank {rank}", application.name),
                };
                let host = nodes.next().unwrap_or_default();
                let entry = part(ProcessKind::Rank, name, host, application.end);
                entries.push(ProcessEntry {
                    rank: rank as i32,
                    command: vec![application.name.clone()],
                    application: application.name.clone(),
                    ..entry
                });
            }
        }
        let servers = self.platform.server_names();
        let named = |kind, what: &'static str| {
            servers.iter().map(move |node| part(kind, format!("{node} {what}"), node.clone(), end))
        };
        entries.extend(named(ProcessKind::Server, "requests"));
        entries.extend(named(ProcessKind::Device, "device"));
        for node in self.platform.node_names() {
            let ways = [(ProcessKind::NicOut, "sent"), (ProcessKind::NicIn, "received")];
            let way = |(kind, way)| part(kind, format!("{node} {way}"), node.clone(), end);
            entries.extend(ways.map(way));
        }
        let cache = |node: &&str| {
            part(ProcessKind::Server, format!("{node} cache"), (*node).to_owned(), end)
        };
        entries.extend(self.caches.iter().map(cache));
        entries
    }
}

fn part(kind: ProcessKind, name: String, host: String, end: Nanos) -> ProcessEntry {
    ProcessEntry {
        name,
        kind,
        rank: -1,
        host,
        end_ns: end.0,
        ending: "exited".to_owned(),
        ..ProcessEntry::default()
    }
}
