//! What the rules look at: the streams of each file, the processes and how long they ran.

use crate::analysis::Analysis;
use crate::pattern::{Part, Pattern, SharedPattern, combine};
use crate::stream::{Calls, Level, Stream, StreamKey};
use iolab_vocab::{Direction, Extent, FileId, Nanos};
use std::collections::BTreeMap;

/// Fewer small writes are nothing to hold.
const HELD_CALLS: u64 = 100;

/// All of a trace, arranged for judging.
pub(crate) struct Facts<'a> {
    pub(crate) analysis: &'a Analysis,
    pub(crate) files: Vec<FileFacts<'a>>,
    /// Time each process ran, by its number.
    pub(crate) wall_ns: Vec<u64>,
    /// From the first moment of any process to the last.
    pub(crate) run_ns: u64,
}

/// One file at the level closest to the kernel that the trace has.
pub(crate) struct FileFacts<'a> {
    pub(crate) index: usize,
    pub(crate) path: &'a str,
    pub(crate) streams: Vec<(StreamKey, &'a Stream)>,
    /// The same file as the library above saw it, if there is one.
    pub(crate) library: Vec<(StreamKey, &'a Stream)>,
    /// Streams that write to it.
    writers: usize,
    /// Whoever opened it to write asked for each write to wait for the device.
    pub(crate) is_synchronous: bool,
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
                writers: 0,
                is_synchronous: false,
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
            let writes = |(_, stream): &&(StreamKey, &Stream)| stream.writes.is_some();
            facts.writers = facts.streams.iter().filter(writes).count();
            facts.is_synchronous = facts.sum(|stream| stream.synchronous_opens).count > 0
                && facts.sum(|stream| stream.cached_opens).count == 0;
        }
        let wall_ns = (0..analysis.processes.len()).map(|index| wall_ns(analysis, index)).collect();
        let run_ns = run_ns(analysis);
        Facts { analysis, files: files.into_values().collect(), wall_ns, run_ns }
    }

    /// What `calls` takes of the run, and of what that is a share: of the time of the rank or process that is hit
    /// hardest, or of all of them. The others wait for a slow rank; for a process that is no rank nobody need
    /// wait, and what it spends is held against the whole run, of which it may have been a moment.
    pub(crate) fn share(&self, by_process: &BTreeMap<u32, u64>) -> (f64, String) {
        let of = |ns: u64, whole_ns: u64| match whole_ns {
            0 => 0.0,
            whole => (ns as f64 / whole as f64).min(1.0),
        };
        let spending = || by_process.iter().filter(|(_, ns)| **ns > 0);
        let threads =
            |process: u32| u64::from(self.analysis.processes[process as usize].threads.max(1));
        let alone = spending().map(|(&process, &ns)| {
            let wall_ns = self.wall_ns[process as usize];
            let is_most = self.is_rank(process) || wall_ns >= self.run_ns / 2;
            let whole_ns = if is_most { wall_ns } else { self.run_ns };
            (of(ns, whole_ns.saturating_mul(threads(process))), self.whole(process, is_most))
        });
        // One after the other they may take what none of them does alone.
        let (mut count, mut ns, mut walls_ns) = (0, 0_u64, 0_u64);
        for (&process, spent_ns) in spending().filter(|(process, _)| !self.is_rank(**process)) {
            let wall_ns = self.wall_ns[process as usize].saturating_mul(threads(process));
            count += 1;
            (ns, walls_ns) = (ns.saturating_add(*spent_ns), walls_ns.saturating_add(wall_ns));
        }
        let whole = match walls_ns > self.run_ns {
            true => format!("the run time of {count} processes"),
            false => "the run time".to_owned(),
        };
        let together = (count > 1).then(|| (of(ns, walls_ns.max(self.run_ns)), whole));
        let hardest = alone.chain(together);
        let hardest = hardest.reduce(|one, other| if other.0 > one.0 { other } else { one });
        hardest.unwrap_or((0.0, "the run time".to_owned()))
    }

    fn is_rank(&self, process: u32) -> bool {
        self.analysis.processes[process as usize].rank >= 0
    }

    /// What a share of a process's time is a share of: of its own run, or of all that ran while it did a part.
    fn whole(&self, process: u32, is_own: bool) -> String {
        let (states, entries) = (&self.analysis.processes, &self.analysis.header.processes);
        let threads = match states[process as usize].threads {
            0 | 1 => String::new(),
            count => format!(" on {count} threads"),
        };
        match entries.get(process as usize) {
            _ if !is_own => "the run time".to_owned(),
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

/// From the first moment of any process to the last.
fn run_ns(analysis: &Analysis) -> u64 {
    let told = analysis.header.processes.iter().filter(|entry| entry.end_ns > entry.start_ns);
    let seen = analysis.processes.iter().filter(|state| state.first_ns.is_some());
    let spans = told.map(|entry| (entry.start_ns, entry.end_ns));
    let spans = spans.chain(seen.map(|state| (state.first_ns.unwrap_or(0), state.last_ns)));
    let (first, last) =
        spans.fold((u64::MAX, 0), |(first, last), span| (first.min(span.0), last.max(span.1)));
    last.saturating_sub(first)
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

    /// Bytes from the first to the last one touched, per process, added up; and those of files of this name that
    /// went before.
    pub(crate) fn span_bytes(&self, direction: Direction) -> u64 {
        let mut spans: BTreeMap<u32, Extent> = BTreeMap::new();
        for (key, stream) in &self.streams {
            let span = stream.transfers(direction).and_then(|t| t.detector.span);
            let Some(span) = span else { continue };
            spans.entry(key.process).and_modify(|all| *all = hull(*all, span)).or_insert(span);
        }
        let before = self.streams.iter().filter_map(|(_, stream)| stream.transfers(direction));
        let before = before.map(|transfers| transfers.span_bytes_before);
        let now = spans.values().map(|span| span.length);
        now.chain(before).fold(0, u64::saturating_add)
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

    /// How many processes there are whose requests lie in one of these patterns, and between those of another one.
    pub(crate) fn taking_turns(&self, direction: Direction, test: fn(Pattern) -> bool) -> usize {
        let mut spans: BTreeMap<u32, Extent> = BTreeMap::new();
        for (key, part) in self.parts(direction) {
            if test(part.pattern) {
                let span = spans.entry(key.process).or_insert(part.span);
                *span = hull(*span, part.span);
            }
        }
        let mut spans: Vec<Extent> = spans.into_values().collect();
        spans.sort_unstable();
        let (mut count, mut end, mut is_counted) = (0, 0, true);
        for span in spans {
            let overlaps = span.offset < end;
            // The one before, too, if it is the first of them.
            count += usize::from(overlaps) + usize::from(overlaps && !is_counted);
            is_counted = overlaps;
            end = end.max(span.end());
        }
        count
    }

    /// Whether somebody else than this stream writes to it.
    pub(crate) fn is_written_beside(&self, stream: &Stream) -> bool {
        self.writers > usize::from(stream.writes.is_some())
    }

    /// Whether write-back has something to hold of it: small writes by the hundred that need not be durable at once.
    pub(crate) fn has_writes_to_hold(&self) -> bool {
        let small = self.sum(|stream| match stream.transfers(Direction::Write) {
            Some(writes) => writes.tiny_consecutive.and(writes.tiny_scattered),
            None => Calls::default(),
        });
        small.count >= HELD_CALLS && self.sum(|stream| stream.synchronous_opens).count == 0
    }

    /// Whether it was removed after it was last created.
    pub(crate) fn is_removed_after_all(&self) -> bool {
        let last = |moment: fn(&Stream) -> Option<Nanos>| {
            self.streams.iter().filter_map(|(_, stream)| moment(stream)).max()
        };
        let created = last(|stream| stream.created);
        created.is_some() && last(|stream| stream.removed) >= created
    }
}

fn hull(a: Extent, b: Extent) -> Extent {
    let offset = a.offset.min(b.offset);
    Extent::new(offset, a.end().max(b.end()) - offset)
}
