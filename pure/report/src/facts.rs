//! What the rules look at: the streams of each file, the processes and how long they ran.

use crate::analysis::Analysis;
use crate::pattern::{Part, Pattern, SharedPattern, combine};
use crate::stream::{Calls, Level, Stream, StreamKey};
use iolab_vocab::{Direction, Extent, FileId, Nanos};
use std::collections::BTreeMap;

/// All of a trace, arranged for judging.
pub(crate) struct Facts<'a> {
    pub(crate) analysis: &'a Analysis,
    pub(crate) files: Vec<FileFacts<'a>>,
    /// Time each process ran, by its number.
    pub(crate) wall_ns: Vec<u64>,
}

/// One file at the level closest to the kernel that the trace has.
pub(crate) struct FileFacts<'a> {
    pub(crate) index: usize,
    pub(crate) path: &'a str,
    pub(crate) streams: Vec<(StreamKey, &'a Stream)>,
    /// The same file as the library above saw it, if there is one.
    pub(crate) library: Vec<(StreamKey, &'a Stream)>,
}

impl<'a> Facts<'a> {
    pub(crate) fn of(analysis: &'a Analysis) -> Facts<'a> {
        let mut files: BTreeMap<u32, FileFacts<'a>> = BTreeMap::new();
        for (&key, &index) in &analysis.streams {
            let Some(file) = FileId(key.file).index() else { continue };
            let path = analysis.header.files.get(file).map_or("?", |entry| entry.path.as_str());
            let facts = files.entry(key.file).or_insert_with(|| FileFacts {
                index: file,
                path,
                streams: Vec::new(),
                library: Vec::new(),
            });
            let stream = (key, &analysis.stream_states[index]);
            match key.level {
                Level::System => facts.streams.push(stream),
                Level::Library => facts.library.push(stream),
            }
        }
        for (&file, facts) in &mut files {
            if !analysis.once.is_reached(FileId(file)) {
                // The trace has nothing below the library.
                facts.streams.append(&mut facts.library);
            }
        }
        let wall_ns = (0..analysis.processes.len()).map(|index| wall_ns(analysis, index)).collect();
        Facts { analysis, files: files.into_values().collect(), wall_ns }
    }

    /// What `calls` takes of the run of the process that is hit hardest, and of what that is a share.
    pub(crate) fn share(&self, by_process: &BTreeMap<u32, u64>) -> (f64, String) {
        let share = |(&process, &ns): (&u32, &u64)| {
            let state = &self.analysis.processes[process as usize];
            let wall = self.wall_ns[process as usize].saturating_mul(state.threads.max(1).into());
            let share = if wall == 0 { 0.0 } else { ns as f64 / wall as f64 };
            (share.min(1.0), process)
        };
        let hardest = by_process.iter().map(share);
        let hardest = hardest.reduce(|one, other| if other.0 > one.0 { other } else { one });
        hardest.map_or((0.0, "the run time".to_owned()), |(share, process)| {
            (share, self.whole(process))
        })
    }

    /// What a share of a process's time is a share of.
    fn whole(&self, process: u32) -> String {
        let (states, entries) = (&self.analysis.processes, &self.analysis.header.processes);
        let threads = match states[process as usize].threads {
            0 | 1 => String::new(),
            count => format!(" on {count} threads"),
        };
        match entries.get(process as usize) {
            Some(entry) if entry.rank >= 0 => format!("rank {}'s run time{threads}", entry.rank),
            Some(entry) if states.len() > 1 => format!("the run time of {}{threads}", entry.name),
            _ => format!("the run time{threads}"),
        }
    }
}

/// How long a process ran: as the recorder says, or from its first call to its last.
fn wall_ns(analysis: &Analysis, index: usize) -> u64 {
    let state = &analysis.processes[index];
    let seen = state.last_ns.saturating_sub(state.first_ns.unwrap_or(state.last_ns));
    let entry = analysis.header.processes.get(index);
    let told = entry.map_or(0, |entry| entry.end_ns.saturating_sub(entry.start_ns));
    told.max(seen)
}

impl FileFacts<'_> {
    /// Sums some calls over all streams.
    pub(crate) fn sum(&self, calls: impl Fn(&Stream) -> Calls) -> Calls {
        self.streams.iter().fold(Calls::default(), |sum, (_, stream)| sum.and(calls(stream)))
    }

    /// The same for the level of the library above.
    pub(crate) fn library_sum(&self, calls: impl Fn(&Stream) -> Calls) -> Calls {
        self.library.iter().fold(Calls::default(), |sum, (_, stream)| sum.and(calls(stream)))
    }

    pub(crate) fn time_by_process(&self, calls: impl Fn(&Stream) -> Calls) -> BTreeMap<u32, u64> {
        let mut times = BTreeMap::new();
        for (key, stream) in &self.streams {
            let time = times.entry(key.process).or_default();
            *time = u64::saturating_add(*time, calls(stream).ns);
        }
        times
    }

    pub(crate) fn all(&self, direction: Direction) -> Calls {
        self.sum(|stream| stream.transfers(direction).map_or(Calls::default(), |t| t.all))
    }

    /// The request size that at least half of the requests have, if there is one.
    pub(crate) fn usual_bytes(&self, direction: Direction) -> Option<u64> {
        let mut transfers = self.streams.iter().filter_map(|(_, s)| s.transfers(direction));
        let mut requests = transfers.next()?.requests.clone();
        transfers.for_each(|more| requests.merge(&more.requests));
        requests.top().filter(|top| top.1 >= 0.5).map(|top| top.0)
    }

    /// Bytes from the first to the last one touched, per process, added up.
    pub(crate) fn span_bytes(&self, direction: Direction) -> u64 {
        let mut spans: BTreeMap<u32, Extent> = BTreeMap::new();
        for (key, stream) in &self.streams {
            let span = stream.transfers(direction).and_then(|t| t.detector.span);
            let Some(span) = span else { continue };
            spans.entry(key.process).and_modify(|all| *all = hull(*all, span)).or_insert(span);
        }
        spans.values().map(|span| span.length).fold(0, u64::saturating_add)
    }

    /// Patterns of its ranks, processes or threads in one direction.
    pub(crate) fn parts(&self, direction: Direction) -> Vec<(StreamKey, Part)> {
        let part = |(key, stream): &(StreamKey, &Stream)| {
            let detector = &stream.transfers(direction)?.detector;
            let span = detector.span?;
            Some((*key, Part { pattern: detector.pattern(), span }))
        };
        self.streams.iter().filter_map(part).collect()
    }

    pub(crate) fn shared_pattern(
        &self,
        direction: Direction,
        facts: &Facts,
    ) -> Option<SharedPattern> {
        let parts = self.parts(direction);
        let processes = self.process_count(direction);
        let ranked = |key: &StreamKey| facts.analysis.processes[key.process as usize].rank >= 0;
        let noun = match parts.iter().all(|(key, _)| ranked(key)) {
            _ if processes < parts.len() => "threads",
            true => "ranks",
            false => "processes",
        };
        combine(&parts.iter().map(|(_, part)| *part).collect::<Vec<_>>(), noun)
    }

    pub(crate) fn process_count(&self, direction: Direction) -> usize {
        let mut processes: Vec<u32> =
            self.parts(direction).iter().map(|(key, _)| key.process).collect();
        processes.dedup();
        processes.len()
    }

    /// Whether several processes use it at the same time: from its first call on the file to its last,
    /// another one has begun with it. Nothing of such a file is held back for any of them.
    pub(crate) fn is_shared_at_once(&self) -> bool {
        let mut used: BTreeMap<u32, (Nanos, Nanos)> = BTreeMap::new();
        let streams = self.streams.iter().chain(&self.library);
        for (process, (first, last)) in streams.filter_map(|(key, s)| Some((key.process, s.used?)))
        {
            let whole = used.entry(process).or_insert((first, last));
            *whole = (whole.0.min(first), whole.1.max(last));
        }
        let mut used: Vec<(Nanos, Nanos)> = used.into_values().collect();
        used.sort_unstable();
        used.windows(2).any(|pair| pair[1].0 < pair[0].1)
    }

    /// Whether somebody's requests lie scattered in one of these patterns.
    pub(crate) fn any_pattern(&self, direction: Direction, test: fn(Pattern) -> bool) -> bool {
        self.parts(direction).iter().any(|(_, part)| test(part.pattern))
    }
}

fn hull(a: Extent, b: Extent) -> Extent {
    let offset = a.offset.min(b.offset);
    Extent::new(offset, a.end().max(b.end()) - offset)
}
