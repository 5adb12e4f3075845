//! A trace as a program: per thread a sequence of moments with the work between them, and who
//! waits for whom.
//!
//! What a program did between two calls is kept as work, less the recorder's own cost. Three kinds
//! of waiting are told from the trace, since no call shows them:
//!
//! * a process or thread **starts** after the last thing its maker did before,
//! * a gap in which a child process or a sibling thread **ends** is a wait for that end,
//! * a gap of a rank of at least [`RANK_WAIT`] in which calls of other ranks end is a wait for the
//!   last of these (bulk-synchronous programs wait for each other's I/O in barriers).
//!
//! What comes after such an end, up to the next call, is work again. Where a run had more threads
//! than cores, elapsed time is divided among them: the simulation shares cores again.

use iolab_trace::{Event, Function, Layer, Trace};
use iolab_vocab::{Nanos, Refusal};
use std::collections::BTreeMap;

/// Shorter gaps of a rank are its own work: they leave no room for waiting for a phase of I/O.
pub(super) const RANK_WAIT: Nanos = Nanos(100_000);

/// Something a sequence arrives at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum What {
    /// The thread starts.
    Start,
    /// A system call: this row of the trace.
    Call(usize),
    /// A call of a layer above begins.
    Begin(usize),
    /// … and ends.
    End(usize),
    /// The process ends.
    Exit,
}

/// A moment of a sequence: arrived at after some waiting and some work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Moment {
    /// What happens.
    pub(super) what: What,
    /// Wait for this before the work.
    pub(super) after: Option<Point>,
    /// Work since the moment before, or since the end of the waiting.
    pub(super) work: Nanos,
}

/// A place in a sequence that others can wait for: `progress` moments begun or done. Moment k has
/// begun at progress 2k + 1 and is done at 2k + 2.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Point {
    pub(super) sequence: u32,
    pub(super) progress: u32,
}

/// What one thread did.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Sequence {
    pub(super) process: u32,
    /// The first thread of its process.
    pub(super) is_main: bool,
    /// When it began and ended as it was recorded.
    pub(super) life: (Nanos, Nanos),
    pub(super) moments: Vec<Moment>,
}

/// A program.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Program {
    pub(super) sequences: Vec<Sequence>,
    /// Processor time of each row of the trace as recorded, without the recorder's share.
    pub(super) durations: Vec<Nanos>,
    /// Rows that are part of the call of another row, and that row: they go with it.
    pub(super) inside: Vec<(usize, usize)>,
    /// Recorded run time from the first moment to the last.
    pub(super) recorded: Nanos,
    /// What was inferred, for the header.
    pub(super) inferred: Vec<String>,
}

/// A moment with the times it was recorded at, while the program is being made.
#[derive(Clone, Copy, Debug)]
struct Seen {
    what: What,
    start: u64,
    end: u64,
    /// What recording did in the gap before.
    noted: Noted,
}

/// What recording does in a gap.
#[derive(Clone, Copy, Debug, Default)]
struct Noted {
    /// Calls that were recorded.
    recorded: u64,
    /// Calls that were only counted.
    counted: u64,
}

impl Noted {
    fn add(&mut self, event: &Event) {
        match event.is_counted() {
            true => self.counted += event.calls(),
            false => self.recorded += 1,
        }
    }

    fn ns(self, cost: Recording) -> f64 {
        cost.call_ns * self.recorded as f64 + cost.left_out_ns * self.counted as f64
    }
}

struct Thread {
    process: u32,
    thread: u32,
    start: u64,
    seen: Vec<Seen>,
    /// Rows that are part of the call of another row.
    inside: Vec<(usize, usize)>,
}

impl Thread {
    fn end(&self) -> u64 {
        self.seen.last().map_or(self.start, |seen| seen.end)
    }
}

fn refuse(message: String) -> Refusal {
    Refusal { message, hint: "record the program again; this trace is damaged".to_owned() }
}

/// What recording cost, for gaps to be freed of it.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Recording {
    /// A recorded call.
    pub(super) call_ns: f64,
    /// A call that was left out by rule or only counted: it passed through the library, too.
    pub(super) left_out_ns: f64,
}

/// Makes a program of a trace, for a machine of `cores`.
pub(super) fn program(trace: &Trace, cores: u32, recording: Recording) -> Result<Program, Refusal> {
    check(trace)?;
    let threads = threads(trace);
    let origin = threads.iter().map(|thread| thread.start).min().unwrap_or(0);
    let last = threads.iter().map(Thread::end).max().unwrap_or(0);
    let waits = Waits::new(trace, &threads);
    let shares = Shares::new(&threads, &waits, cores);
    let gaps: usize = threads.iter().map(|thread| thread.seen.len()).sum();
    // Nobody noted when the calls left out were made; they are taken to be spread evenly.
    let left_out: u64 = trace.header.losses.left_out_calls.values().sum();
    let every_gap_ns = left_out as f64 * recording.left_out_ns / gaps.max(1) as f64;
    let mut coupled = 0;
    let sequences = threads
        .iter()
        .enumerate()
        .map(|(index, thread)| {
            let mut from = thread.start;
            let mut moments = Vec::with_capacity(thread.seen.len());
            for (at, seen) in thread.seen.iter().enumerate() {
                let wait = match at {
                    0 => waits.start(index),
                    _ => waits.inside(index, from, seen.start),
                };
                coupled += u64::from(wait.is_some() && at > 0);
                let since = if at == 0 { origin } else { from };
                let begin = wait.map_or(since, |(_, time)| time);
                let work = shares.between(begin, seen.start);
                let recorded_ns = seen.noted.ns(recording) + every_gap_ns;
                let work = work.saturating_sub(recorded_ns.round() as u64);
                let after = wait.map(|(point, _)| point);
                moments.push(Moment { what: seen.what, after, work: Nanos(work) });
                from = seen.end;
            }
            let life = (Nanos(thread.start), Nanos(thread.end()));
            Sequence { process: thread.process, is_main: thread.thread == 0, life, moments }
        })
        .collect();
    let duration = |event: &Event| Nanos(shares.between(event.start.0, event.end.0));
    let mut inferred = Vec::new();
    if coupled > 0 {
        inferred.push(format!("{coupled} waits for children, threads or ranks, from gaps"));
    }
    let durations = trace.events.iter().map(duration).collect();
    let inside = threads.into_iter().flat_map(|thread| thread.inside).collect();
    Ok(Program { sequences, durations, inside, recorded: Nanos(last - origin), inferred })
}

/// A trace whose rows contradict its header or each other cannot be simulated.
fn check(trace: &Trace) -> Result<(), Refusal> {
    let header = &trace.header;
    if header.processes.is_empty() {
        return Err(refuse("the trace has no process".to_owned()));
    }
    for (row, event) in trace.events.iter().enumerate() {
        if event.process as usize >= header.processes.len() {
            return Err(refuse(format!(
                "row {row} is of process {}, which is not in the header",
                event.process
            )));
        }
        if event.file.index().is_some_and(|file| file >= header.files.len()) {
            return Err(refuse(format!(
                "row {row} is about file {}, which is not in the header",
                event.file
            )));
        }
        if event.end < event.start {
            return Err(refuse(format!(
                "row {row} ends at {} ns, before it starts at {} ns",
                event.end, event.start
            )));
        }
    }
    Ok(())
}

/// The threads of a trace, the main one of each process first (also of a process without calls).
fn threads(trace: &Trace) -> Vec<Thread> {
    let mut rows: BTreeMap<(u32, u32), Vec<usize>> = BTreeMap::new();
    for process in 0..trace.header.processes.len() as u32 {
        rows.insert((process, 0), Vec::new());
    }
    for (row, event) in trace.events.iter().enumerate() {
        if matches!(event.function.layer(), Layer::Posix | Layer::Stdio | Layer::Mpiio) {
            rows.entry((event.process, event.thread)).or_default().push(row);
        }
    }
    rows.into_iter()
        .map(|((process, thread), rows)| one_thread(trace, process, thread, rows))
        .collect()
}

fn one_thread(trace: &Trace, process: u32, thread: u32, mut rows: Vec<usize>) -> Thread {
    let events = &trace.events;
    // An outer call starts no later than what it is made of, and ends no earlier.
    rows.sort_by_key(|&row| (events[row].start, std::cmp::Reverse(events[row].end), row));
    let mut seen: Vec<Seen> = Vec::with_capacity(rows.len());
    let mut outer: Vec<usize> = Vec::new();
    let mut busy_until = 0;
    let mut inside = Vec::new();
    let mut call = 0;
    let mut noted = Noted::default();
    let mut push = |what, start, end, noted: &mut Noted| {
        seen.push(Seen { what, start, end, noted: std::mem::take(noted) });
    };
    for &row in &rows {
        let event = &events[row];
        while let Some(&above) = outer.last()
            && events[above].end <= event.start
        {
            outer.pop();
            push(What::End(above), events[above].end.0, events[above].end.0, &mut noted);
            noted.add(&events[above]);
        }
        // What libc does inside a system call of its own is part of that call.
        if event.start.0 < busy_until || event.function == Function::COPY_TARGET {
            inside.push((row, call));
            continue;
        }
        if event.function.layer() == Layer::Posix {
            push(What::Call(row), event.start.0, event.end.0, &mut noted);
            noted.add(event);
            busy_until = event.end.0;
            call = row;
        } else {
            push(What::Begin(row), event.start.0, event.start.0, &mut noted);
            outer.push(row);
        }
    }
    while let Some(above) = outer.pop() {
        push(What::End(above), events[above].end.0, events[above].end.0, &mut noted);
        noted.add(&events[above]);
    }
    let first = seen.first().map(|seen| seen.start);
    let entry = &trace.header.processes[process as usize];
    let start = if thread == 0 { entry.start_ns } else { first.unwrap_or(entry.start_ns) };
    let start = first.map_or(start, |first| start.min(first));
    seen.insert(0, Seen { what: What::Start, start, end: start, noted: Noted::default() });
    if thread == 0 {
        let end = seen.last().map_or(start, |seen| seen.end).max(entry.end_ns);
        seen.push(Seen { what: What::Exit, start: end, end, noted });
    }
    Thread { process, thread, start, seen, inside }
}

/// Ends of something, by time, that a gap may have been waiting for.
type Ends = Vec<(u64, Point)>;

/// Who waits for whom.
struct Waits {
    /// By thread: what its start waits for, and when that was.
    starts: Vec<Option<(Point, u64)>>,
    /// By thread: ends of child processes and sibling threads.
    relatives: Vec<Ends>,
    /// Ends of calls of all ranks; empty when there are fewer than two.
    ranks: Ends,
    /// By thread: whether it is of a rank.
    is_rank: Vec<bool>,
}

impl Waits {
    fn new(trace: &Trace, threads: &[Thread]) -> Waits {
        let entries = &trace.header.processes;
        let makers: Vec<Vec<usize>> =
            (0..threads.len()).map(|t| makers(trace, threads, t)).collect();
        let mut relatives: Vec<Ends> = vec![Vec::new(); threads.len()];
        for (index, thread) in threads.iter().enumerate() {
            let end = (thread.end(), done(index, thread.seen.len()));
            for waiter in waiters(trace, threads, index, &makers[index]) {
                relatives[waiter].push(end);
            }
        }
        relatives.iter_mut().for_each(|ends| ends.sort());
        let starts = (0..threads.len()).map(|t| start_of(threads, t, &makers[t])).collect();
        let is_rank: Vec<bool> =
            threads.iter().map(|thread| entries[thread.process as usize].rank >= 0).collect();
        let mut ranks = Vec::new();
        if entries.iter().filter(|entry| entry.rank >= 0).count() > 1 {
            for (index, thread) in threads.iter().enumerate().filter(|(index, _)| is_rank[*index]) {
                let calls = thread.seen.iter().enumerate();
                let calls = calls.filter(|(_, seen)| matches!(seen.what, What::Call(_)));
                ranks.extend(calls.map(|(at, seen)| (seen.end, done(index, at + 1))));
            }
            ranks.sort();
        }
        Waits { starts, relatives, ranks, is_rank }
    }

    fn start(&self, thread: usize) -> Option<(Point, u64)> {
        self.starts[thread]
    }

    /// What a gap of `thread` from `from` to `to` waited for last, and when that came.
    fn inside(&self, thread: usize, from: u64, to: u64) -> Option<(Point, u64)> {
        let relative = last_inside(&self.relatives[thread], thread, from, to);
        let long = to.saturating_sub(from) >= RANK_WAIT.0;
        let rank = match self.is_rank[thread] && long {
            // Two that end at one instant cannot have waited for each other.
            true => last_inside(&self.ranks, thread, from, to.saturating_sub(1)),
            false => None,
        };
        relative.into_iter().chain(rank).max_by_key(|(_, time)| *time)
    }
}

/// The point after `moments` moments of a thread.
fn done(thread: usize, moments: usize) -> Point {
    Point { sequence: thread as u32, progress: 2 * moments as u32 }
}

/// The latest of `ends` in `(from, to]` that is not of `thread` itself.
fn last_inside(ends: &Ends, thread: usize, from: u64, to: u64) -> Option<(Point, u64)> {
    let above = ends.partition_point(|(time, _)| *time <= to);
    ends[..above]
        .iter()
        .rev()
        .take_while(|(time, _)| *time > from)
        .find(|(_, point)| point.sequence as usize != thread)
        .map(|&(time, point)| (point, time))
}

/// The threads that may have made a thread: the others of its process, or for a main thread those
/// of the process it was forked from or executed in.
fn makers(trace: &Trace, threads: &[Thread], index: usize) -> Vec<usize> {
    let entries = &trace.header.processes;
    let me = &threads[index];
    let of_process = |process: usize| {
        let all = threads.iter().enumerate();
        all.filter(move |(_, other)| other.process as usize == process).map(|(at, _)| at)
    };
    if me.thread != 0 {
        return of_process(me.process as usize)
            .filter(|&other| threads[other].thread == 0)
            .collect();
    }
    let entry = &entries[me.process as usize];
    let earlier = |other: usize| entries[other].start_ns < entry.start_ns;
    let others = (0..entries.len()).filter(|&other| other != me.process as usize && earlier(other));
    // `exec` goes on under the same number: the image before is the maker.
    let by = |pid: u32| others.clone().rfind(|&other| pid != 0 && entries[other].pid == pid);
    match by(entry.pid).or_else(|| by(entry.parent_pid)) {
        Some(process) => of_process(process).collect(),
        None => Vec::new(),
    }
}

/// The threads that may wait for the end of a thread: its makers, and for a main thread those of
/// the parent process even if it was executed in another image.
fn waiters(trace: &Trace, threads: &[Thread], index: usize, makers: &[usize]) -> Vec<usize> {
    let entries = &trace.header.processes;
    let me = &threads[index];
    let parent_pid = entries[me.process as usize].parent_pid;
    let is_parent = |other: &Thread| {
        me.thread == 0 && parent_pid != 0 && entries[other.process as usize].pid == parent_pid
    };
    let parents = (0..threads.len()).filter(|&other| is_parent(&threads[other]));
    let mut waiters: Vec<usize> = makers.iter().copied().chain(parents).collect();
    waiters.sort_unstable();
    waiters.dedup();
    waiters
}

/// The last thing a maker of `thread` did before it started, and when.
fn start_of(threads: &[Thread], thread: usize, makers: &[usize]) -> Option<(Point, u64)> {
    let start = threads[thread].start;
    makers
        .iter()
        .flat_map(|&maker| {
            let seen = &threads[maker].seen;
            let begun = seen.partition_point(|seen| seen.start <= start);
            // A maker that starts later than what it made: clocks of two processes, a damaged trace.
            let last = begun.checked_sub(1)?;
            let (progress, time) = match seen[last].end <= start {
                true => (2 * last + 2, seen[last].end),
                false => (2 * last + 1, seen[last].start),
            };
            Some((Point { sequence: maker as u32, progress: progress as u32 }, time))
        })
        .max_by_key(|(_, time)| *time)
}

/// Elapsed time to processor time, where a run had more threads than cores.
struct Shares {
    /// From that time on a thread has had so much of a core, and goes on at that rate.
    steps: Vec<(u64, f64, f64)>,
}

impl Shares {
    fn new(threads: &[Thread], waits: &Waits, cores: u32) -> Shares {
        let mut changes: Vec<(u64, i64)> = Vec::new();
        if threads.len() > cores as usize {
            for (index, thread) in threads.iter().enumerate() {
                let mut from = thread.start;
                for (at, seen) in thread.seen.iter().enumerate() {
                    let wait = if at == 0 { None } else { waits.inside(index, from, seen.start) };
                    if let Some((_, time)) = wait {
                        changes.extend([(from, -1), (time, 1)]);
                    }
                    from = seen.end;
                }
                changes.extend([(thread.start, 1), (thread.end(), -1)]);
            }
        }
        changes.sort();
        let (mut running, mut had, mut rate, mut last) = (0_i64, 0.0, 1.0, 0);
        let mut steps = Vec::new();
        for (time, change) in changes {
            had += (time - last) as f64 * rate;
            running += change;
            rate = (f64::from(cores) / running.max(1) as f64).min(1.0);
            last = time;
            steps.push((time, had, rate));
        }
        Shares { steps }
    }

    fn between(&self, from: u64, to: u64) -> u64 {
        match self.steps.is_empty() {
            true => to.saturating_sub(from),
            false => (self.had(to) - self.had(from)).max(0.0).round() as u64,
        }
    }

    fn had(&self, time: u64) -> f64 {
        match self.steps.partition_point(|(start, _, _)| *start <= time) {
            0 => time as f64,
            above => {
                let (start, had, rate) = self.steps[above - 1];
                had + (time - start) as f64 * rate
            }
        }
    }
}
