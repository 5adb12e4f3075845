//! The parts of all calls of a run, added up by function, phase, file and server.

use super::{Parts, Spent, Ways};
use iolab_trace::{Event, Header, PhaseEntry, Trace};
use serde::Serialize;
use std::collections::BTreeMap;

/// What calls that have something in common spent their time with.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct PartRow {
    /// What they have in common.
    pub name: String,
    /// How many calls.
    pub call_count: u64,
    /// What they took: the sum of their parts.
    pub time_ns: u64,
    /// The parts.
    pub parts: Parts,
}

impl PartRow {
    fn add(&mut self, parts: &Parts) {
        self.call_count += 1;
        self.time_ns = self.time_ns.saturating_add(parts.total());
        self.parts.merge(parts);
    }
}

/// Where the time of the calls of all ranks went. In each list what took longest comes first.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct PartSums {
    /// All calls.
    pub total: PartRow,
    /// By function.
    pub functions: Vec<PartRow>,
    /// By the phase in which calls began; where phases of an application overlap, by all of them.
    pub phases: Vec<PartRow>,
    /// By file, of calls that are about one.
    pub files: Vec<PartRow>,
    /// By the server whose answer calls waited for last.
    pub servers: Vec<PartRow>,
}

impl PartSums {
    /// Of a trace of a simulated cluster that knows causes.
    pub fn of(trace: &Trace) -> Option<PartSums> {
        let ways = Ways::new(trace)?;
        let phases = Phases::of(&trace.header);
        let mut sums = Sums::of(&trace.header, &phases);
        for (event, row) in trace.events.iter().zip(0..).filter(|(event, _)| ways.is_call(event)) {
            sums.add(&ways, event, &ways.spent(row));
        }
        sums.finish()
    }
}

/// The sums so far.
pub(super) struct Sums<'a> {
    header: &'a Header,
    in_phases: &'a Phases<'a>,
    total: PartRow,
    functions: Group<'a>,
    phases: Group<'a>,
    files: Group<'a>,
    servers: Group<'a>,
}

impl<'a> Sums<'a> {
    /// Of no call.
    pub(super) fn of(header: &'a Header, in_phases: &'a Phases<'a>) -> Sums<'a> {
        let total = PartRow { name: "all".to_owned(), ..PartRow::default() };
        let [functions, phases, files, servers] = [const { Group::new() }; 4];
        Sums { header, in_phases, total, functions, phases, files, servers }
    }

    /// Takes in where the time of a call went.
    pub(super) fn add(&mut self, ways: &Ways<'a>, event: &Event, spent: &Spent) {
        let parts = &spent.parts;
        self.total.add(parts);
        self.functions.add(event.function.name(), parts);
        let file = event.file.index().and_then(|index| self.header.files.get(index));
        if let Some(file) = file {
            self.files.add(&file.path, parts);
        }
        if let Some(server) = spent.server {
            self.servers.add(ways.servers()[server], parts);
        }
        if let Some(phase) = self.in_phases.of_call(self.header, event) {
            self.phases.add(phase, parts);
        }
    }

    /// What came of it; nothing of no call.
    pub(super) fn finish(self) -> Option<PartSums> {
        let Sums { total, functions, phases, files, servers, .. } = self;
        let [functions, phases, files, servers] =
            [functions, phases, files, servers].map(Group::rows);
        (total.call_count > 0).then_some(PartSums { total, functions, phases, files, servers })
    }
}

/// Rows by name.
struct Group<'a>(BTreeMap<&'a str, PartRow>);

impl<'a> Group<'a> {
    const fn new() -> Group<'a> {
        Group(BTreeMap::new())
    }

    fn add(&mut self, name: &'a str, parts: &Parts) {
        self.0.entry(name).or_default().add(parts);
    }

    /// The longest first, equal ones by name.
    fn rows(self) -> Vec<PartRow> {
        let named = |(name, row): (&str, PartRow)| PartRow { name: name.to_owned(), ..row };
        let mut rows: Vec<PartRow> = self.0.into_iter().map(named).collect();
        rows.sort_by_key(|row| std::cmp::Reverse(row.time_ns));
        rows
    }
}

/// Which phases applications were in.
pub(super) struct Phases<'a> {
    /// By application: from when on it was in what.
    applications: BTreeMap<&'a str, Vec<(u64, String)>>,
}

impl<'a> Phases<'a> {
    pub(super) fn of(header: &'a Header) -> Phases<'a> {
        let mut applications: BTreeMap<&str, Vec<&PhaseEntry>> = BTreeMap::new();
        for phase in &header.phases {
            applications.entry(&phase.application).or_default().push(phase);
        }
        let is_one = applications.len() < 2;
        let applications = applications.into_iter().map(|(application, phases)| {
            let prefix = if is_one { String::new() } else { format!("{application}: ") };
            (application, changes(&phases, &prefix))
        });
        Phases { applications: applications.collect() }
    }

    /// That in which a call began.
    fn of_call(&self, header: &Header, event: &Event) -> Option<&str> {
        let process = header.processes.get(event.process as usize)?;
        let changes = self.applications.get(process.application.as_str())?;
        let before = changes.partition_point(|(since, _)| *since <= event.start.0);
        let (_, name) = changes.get(before.checked_sub(1)?)?;
        (!name.is_empty()).then_some(name)
    }
}

/// From when on which phases were under way, by name. What begins when the last phase ends belongs to it.
fn changes(phases: &[&PhaseEntry], prefix: &str) -> Vec<(u64, String)> {
    let last = phases.iter().map(|phase| phase.end_ns).max().unwrap_or(0);
    let end = |phase: &PhaseEntry| phase.end_ns.saturating_add(u64::from(phase.end_ns == last));
    // What takes no time begins before it ends.
    let begins = phases.iter().map(|phase| (phase.start_ns, true, phase.name.as_str()));
    let ends = phases.iter().map(|phase| {
        (end(phase).max(phase.start_ns.saturating_add(1)), false, phase.name.as_str())
    });
    let mut moments: Vec<_> = begins.chain(ends).collect();
    moments.sort_unstable();
    let mut under_way: BTreeMap<&str, u64> = BTreeMap::new();
    let mut changes: Vec<(u64, String)> = Vec::new();
    for (time, is_begin, name) in moments {
        let count = under_way.entry(name).or_default();
        *count = if is_begin { *count + 1 } else { *count - 1 };
        if *count == 0 {
            under_way.remove(name);
        }
        let now = named(under_way.keys().copied().collect(), prefix);
        match changes.last_mut() {
            Some(last) if last.0 == time => last.1 = now,
            _ => changes.push((time, now)),
        }
    }
    changes
}

fn named(under_way: Vec<&str>, prefix: &str) -> String {
    match under_way.as_slice() {
        [] => String::new(),
        [one] => format!("{prefix}{one}"),
        [one, other] => format!("{prefix}{one} + {other}"),
        _ => format!("{prefix}several at once"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn phases_at(phases: &[(&str, u64, u64)], times: &[u64]) -> Vec<String> {
        let phase = |&(name, start_ns, end_ns): &(&str, u64, u64)| PhaseEntry {
            name: name.to_owned(),
            application: "a".to_owned(),
            start_ns,
            end_ns,
        };
        let process = iolab_trace::ProcessEntry {
            application: "a".to_owned(),
            ..iolab_trace::ProcessEntry::default()
        };
        let header = Header {
            processes: vec![process],
            phases: phases.iter().map(phase).collect(),
            ..Header::default()
        };
        let at = |time: &u64| {
            let start = iolab_vocab::Nanos(*time);
            let event = Event { start, ..Event::of(iolab_trace::Function::MPI_BARRIER) };
            Phases::of(&header).of_call(&header, &event).unwrap_or("–").to_owned()
        };
        times.iter().map(at).collect()
    }

    #[test]
    fn a_call_belongs_to_the_phase_in_which_it_begins() {
        let phases = [("read", 10, 20), ("write", 20, 30), ("read", 40, 50)];
        let found = phases_at(&phases, &[9, 10, 19, 20, 30, 40, 50, 51]);
        assert_eq!(found, ["–", "read", "read", "write", "–", "read", "read", "–"]);
    }

    #[test]
    fn where_phases_overlap_all_are_named() {
        let phases = [("b", 0, 20), ("a", 10, 30), ("b", 15, 15), ("c", 16, 17)];
        assert_eq!(
            phases_at(&phases, &[5, 10, 15, 16, 20]),
            ["b", "a + b", "a + b", "several at once", "a"]
        );
    }
}
