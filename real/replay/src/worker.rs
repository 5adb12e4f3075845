//! The threads of a replay and their referee.

use crate::content::first_stranger;
use crate::descriptors::{Descriptor, Entry, Tables};
use crate::grown;
use crate::native::{Done, Native, is_asynchronous};
use crate::order::{Plan, process_count};
use crate::paths::Paths;
use crate::room::is_lacking;
use crate::scratch::Scratch;
use crate::staged::{Feeder, Stacks};
use crate::turns::Turns;
use crate::unseen::{self, Change};
use crate::{Difference, Pace, ReplayError, Settings, Summary};
use iolab_policy::insitu::guest::{StackId, Step};
use iolab_policy::insitu::{Call, Handle, Outcome, ProcessStep, decided_by};
use iolab_trace::{Class, Event, Function, Trace};
use iolab_vocab::{FileId, Nanos};
use rustix::fs::OFlags;
use rustix::io::Errno;
use std::collections::BTreeMap;
use std::sync::{Arc, PoisonError};
use std::time::{Duration, Instant};

/// Runs every thread of the plan to its end, or until a call differs.
pub(crate) fn run(
    trace: &Trace,
    plan: &Plan,
    scratch: &Scratch,
    settings: &Settings,
) -> Result<Summary, ReplayError> {
    let processes = process_count(trace);
    let stage = ReplayContext {
        trace,
        plan,
        settings,
        native: Native { scratch, tables: Tables::new(trace, processes) },
        stacks: Stacks::default(),
        turns: Turns::new(plan.resources),
        strange: files_with_strange_content(trace),
        unseen: unseen::changes(trace, &plan.order),
        // What strategies hold is not in the files below, whose size says nothing then.
        sizes: match settings.strategies.is_empty() {
            true => grown::sizes(trace, &plan.order),
            false => BTreeMap::new(),
        },
        began: Instant::now(),
        first_start: plan.order.first().map_or(Nanos::ZERO, |&row| trace.events[row].start),
    };
    let threads: Vec<ReplayThread> = std::thread::scope(|scope| {
        let threads: Vec<_> = plan
            .threads
            .values()
            .map(|places| scope.spawn(|| ReplayThread::new(&stage).run(places)))
            .collect();
        threads.into_iter().map(|thread| thread.join().expect("actors do not panic")).collect()
    });
    let elapsed = Nanos(stage.began.elapsed().as_nanos() as u64);
    let summary = conclude(threads, processes, elapsed)?;
    Ok(Summary { counted: stage.stacks.totals(), ..summary })
}

fn conclude(
    threads: Vec<ReplayThread>,
    processes: usize,
    elapsed: Nanos,
) -> Result<Summary, ReplayError> {
    let mut summary = Summary {
        processes: processes as u64,
        threads: threads.len() as u64,
        elapsed,
        ..Summary::default()
    };
    let mut decisions: Vec<(u32, Event)> = Vec::new();
    let mut first: Option<(u32, Difference)> = None;
    let (mut unseen, mut resized) = (0, 0);
    for thread in threads {
        summary.calls += thread.calls;
        summary.read_bytes += thread.read_bytes;
        summary.written_bytes += thread.written_bytes;
        unseen += thread.unseen;
        resized += thread.resized;
        for (reason, count) in thread.skipped {
            *summary.skipped.entry(reason).or_default() += count;
        }
        decisions.extend(thread.decisions);
        let earlier = |place: u32| first.as_ref().is_none_or(|(known, _)| place < *known);
        first = match thread.difference {
            Some((place, difference)) if earlier(place) => Some((place, difference)),
            _ => first,
        };
    }
    if let Some((_, difference)) = first {
        return Err(ReplayError::Different(Box::new(difference)));
    }
    let others = [
        (
            unseen,
            ["name", "names"],
            "came or went by calls that the trace does not have (`bind`, `mkfifo`, programs that were not recorded): \
             made or removed where the trace shows it",
        ),
        (
            resized,
            ["file", "files"],
            "had another size than the calls in the trace had left (programs that were not recorded, stores through \
             mappings): given that size where an open shows it",
        ),
    ];
    for (count, [one, several], text) in others.into_iter().filter(|&(count, ..)| count > 0) {
        let noun = if count == 1 { one } else { several };
        summary.notes.push(format!("{count} {noun} {text}"));
    }
    decisions.sort_by_key(|(place, _)| *place);
    summary.decisions = decisions.into_iter().map(|(_, row)| row).collect();
    Ok(summary)
}

/// `FALLOC_FL_COLLAPSE_RANGE` and `FALLOC_FL_INSERT_RANGE`: what lies behind moves.
const SHIFTS_RANGES: i64 = 0x08 | 0x20;

/// Files whose bytes may have come from elsewhere: by a copy, a mapping or another name, their own or their directory's,
/// or because a range was taken out of them or put in.
fn files_with_strange_content(trace: &Trace) -> Vec<bool> {
    let files = &trace.header.files;
    let mut strange = vec![false; files.len()];
    let paths = Paths::new(trace);
    for event in &trace.events {
        let class = event.function.class();
        let both = [event.file, event.second_file()].into_iter().filter_map(FileId::index);
        for file in both.filter(|&file| file < files.len()) {
            let shifts = class == Class::Allocate && event.argument & SHIFTS_RANGES != 0;
            if shifts || matches!(class, Class::Rename | Class::Copy | Class::Map) {
                strange[file] = true;
            }
            if class == Class::Rename {
                paths.below(&files[file].path).for_each(|below| strange[below] = true);
            }
        }
    }
    strange
}

/// What all threads share.
struct ReplayContext<'a> {
    trace: &'a Trace,
    plan: &'a Plan,
    settings: &'a Settings,
    native: Native<'a>,
    stacks: Stacks,
    turns: Turns,
    strange: Vec<bool>,
    unseen: BTreeMap<usize, Change>,
    sizes: BTreeMap<usize, u64>,
    began: Instant,
    first_start: Nanos,
}

/// One thread of the trace.
struct ReplayThread<'a> {
    context: &'a ReplayContext<'a>,
    memory: Vec<u8>,
    decided: Vec<Event>,
    calls: u64,
    read_bytes: u64,
    written_bytes: u64,
    skipped: BTreeMap<&'static str, u64>,
    unseen: u64,
    resized: u64,
    decisions: Vec<(u32, Event)>,
    /// There was no room for what its last call had to write.
    lacks_room: bool,
    difference: Option<(u32, Difference)>,
}

impl<'a> ReplayThread<'a> {
    fn new(context: &'a ReplayContext<'a>) -> ReplayThread<'a> {
        ReplayThread {
            context,
            memory: Vec::new(),
            decided: Vec::new(),
            calls: 0,
            read_bytes: 0,
            written_bytes: 0,
            skipped: BTreeMap::new(),
            unseen: 0,
            resized: 0,
            decisions: Vec::new(),
            lacks_room: false,
            difference: None,
        }
    }

    fn run(mut self, places: &[u32]) -> ReplayThread<'a> {
        let context = self.context;
        for &place in places {
            let row = context.plan.order[place as usize];
            let event = &context.trace.events[row];
            self.wait_for_time(event);
            let tickets = context.plan.tickets(place);
            if !context.turns.wait(tickets) {
                return self;
            }
            self.let_others_act(row, event);
            if let Err((what, recorded, replayed)) = self.perform(place, row) {
                context.turns.stop();
                let (row, call) = (row as u64, describe(context.trace, event));
                let lacks_room = self.lacks_room;
                let difference = Difference { row, call, what, recorded, replayed, lacks_room };
                self.difference = Some((place, difference));
                return self;
            }
            context.turns.pass_on(tickets);
        }
        self
    }

    /// Makes, removes or changes what somebody did whose calls are not in the trace. Where that fails, the call will tell.
    fn let_others_act(&mut self, row: usize, event: &Event) {
        let change = self.context.unseen.get(&row).zip(event.file.index());
        let done = change.map(|(&change, file)| self.context.native.scratch.change(file, change));
        self.unseen += u64::from(matches!(done, Some(Ok(true))));
        let size = self.context.sizes.get(&row).zip(event.file.index());
        let done = size.map(|(&bytes, file)| self.context.native.scratch.resize(file, bytes));
        self.resized += u64::from(matches!(done, Some(Ok(true))));
    }

    fn wait_for_time(&self, event: &Event) {
        if self.context.settings.pace == Pace::Timed {
            let due = Duration::from_nanos(event.start.since(self.context.first_start).0);
            std::thread::sleep(due.saturating_sub(self.context.began.elapsed()));
        }
    }

    fn perform(&mut self, place: u32, row: usize) -> Result<(), Mismatch> {
        let trace = self.context.trace;
        let event = &trace.events[row];
        let mut done = Done::Skipped("that have no effect on files");
        for &ProcessStep { process, step } in self.context.plan.steps(place) {
            match step {
                Step::Native => {
                    self.check_position_before_close(event)?;
                    let to = trace.copy_target(row);
                    done = self.context.native.carry_out(event, to, &mut self.memory);
                }
                Step::Begin { stack, file } => self.begin(process, stack, file),
                Step::Drained { stack } => {
                    if let Some(staged) = self.context.stacks.get(process, stack) {
                        staged.lock().unwrap_or_else(PoisonError::into_inner).drained();
                    }
                }
                Step::End { stack } => self.context.stacks.end(process, stack),
                Step::Stage { stack, handle, call, own } => {
                    let outcome = self.stage(place, event, (process, stack), handle, call);
                    if own {
                        let outcome = outcome.map_err(|errno| Errno::from_raw_os_error(errno.0));
                        done = Done::Result(outcome);
                    }
                }
            }
        }
        self.judge(event, done)
    }

    fn begin(&self, process: u32, stack: StackId, file: FileId) {
        let entry = file.index().and_then(|index| self.context.trace.header.files.get(index));
        let path = entry.map_or("", |entry| entry.path.as_str());
        let strategies = &self.context.settings.strategies;
        self.context.stacks.begin(process, stack, strategies, (file, path));
    }

    fn stage(
        &mut self,
        place: u32,
        event: &Event,
        (process, stack): (u32, StackId),
        handle: Handle,
        call: Call,
    ) -> Outcome {
        const EBADF: iolab_policy::insitu::Errno = iolab_policy::insitu::Errno(9);
        let context = self.context;
        let staged = context.stacks.get(process, stack).ok_or(EBADF)?;
        let mut staged = staged.lock().unwrap_or_else(PoisonError::into_inner);
        if matches!(call, Call::Open { .. })
            && let Some(Entry::Real(descriptor)) =
                context.native.tables.get_fd(process, event.result as i32)
        {
            staged.adopt(handle, descriptor);
        }
        context.native.load(event, &mut self.memory);
        let (memory, decisions) = (&mut self.memory, &mut self.decided);
        let outcome =
            staged.feed(handle, call, &mut Feeder { memory, began: context.began, decisions });
        let (rank, thread) = decided_by(event, process, &context.trace.header);
        let file = staged.file;
        let rows = self.decided.drain(..);
        self.decisions
            .extend(rows.map(|row| (place, Event { file, process, thread, rank, ..row })));
        outcome
    }

    /// Compares what came out with what was recorded.
    fn judge(&mut self, event: &Event, done: Done) -> Result<(), Mismatch> {
        let outcome = match done {
            Done::Skipped(reason) => {
                *self.skipped.entry(reason).or_default() += 1;
                return Ok(());
            }
            Done::Result(outcome) => outcome,
        };
        self.calls += 1;
        let result = match outcome {
            Ok(value) => value as i64,
            Err(errno) => -i64::from(errno.raw_os_error()),
        };
        self.lacks_room = outcome.is_err_and(|errno| is_lacking(errno.raw_os_error()));
        let counts = event.function.class().moves_data() || event.function.class() == Class::Seek;
        // Asynchronous transfers return before they are done; a descriptor's number is free.
        let exact = event.result < 0 || (counts && !is_asynchronous(event));
        if if exact { result != event.result } else { result < 0 } {
            return Err(("result", shown(event.result), shown(result)));
        }
        self.follow_position(event, result)?;
        self.check_data(event, result)
    }

    /// Holds the file position the trace implies against the one the replay has.
    fn follow_position(&mut self, event: &Event, result: i64) -> Result<(), Mismatch> {
        let class = event.function.class();
        if result > 0 {
            match class {
                Class::Read => self.read_bytes += result as u64,
                Class::Write => self.written_bytes += result as u64,
                Class::Copy => {
                    self.read_bytes += result as u64;
                    self.written_bytes += result as u64;
                }
                _ => {}
            }
        }
        let moves = matches!(class, Class::Read | Class::Write | Class::Seek);
        if result < 0 || !moves || event.function.is_positioned() || is_asynchronous(event) {
            return Ok(());
        }
        let Some(Entry::Real(descriptor)) = self.context.native.tables.get(event) else {
            return Ok(());
        };
        let description = &descriptor.description;
        if class == Class::Seek {
            description.move_to(result);
            return Ok(());
        }
        let appends = event.appends(description.append());
        let position = description.position();
        let known = event.offset >= 0;
        if known && !appends && !description.shared() && event.offset != position {
            return Err(("offset", shown(event.offset), shown(position)));
        }
        let from = if known && (appends || description.shared()) { event.offset } else { position };
        description.move_to(from + result);
        Ok(())
    }

    fn check_data(&self, event: &Event, result: i64) -> Result<(), Mismatch> {
        if event.function.class() != Class::Read || result <= 0 || event.offset < 0 {
            return Ok(());
        }
        let Some(file) = event.file.index().filter(|&file| !self.context.strange[file]) else {
            return Ok(());
        };
        let seed = self.context.native.scratch.seed(file);
        let bytes = &self.memory[..(result as usize).min(self.memory.len())];
        match first_stranger(seed, event.offset as u64, bytes) {
            None => Ok(()),
            Some(at) => Err((
                "data",
                "the bytes of that place in that file".to_owned(),
                format!("something else at byte {at}"),
            )),
        }
    }

    /// Before the last descriptor goes, the real file position must be where the referee has it.
    fn check_position_before_close(&self, event: &Event) -> Result<(), Mismatch> {
        if event.function.class() != Class::Close || event.function == Function::CLOSE_RANGE {
            return Ok(());
        }
        let Some(Entry::Real(descriptor)) = self.context.native.tables.get(event) else {
            return Ok(());
        };
        let description = &descriptor.description;
        // Strategies keep positions of their own, other processes move shared ones.
        if !self.context.settings.strategies.is_empty() || description.shared() {
            return Ok(());
        }
        // What was opened for its name alone has none.
        if rustix::fs::fcntl_getfl(&descriptor.fd).is_ok_and(|how| how.contains(OFlags::PATH)) {
            return Ok(());
        }
        let (expected, real) = (description.position(), position(&descriptor));
        match real == Some(expected) {
            true => Ok(()),
            false => Err((
                "position at close",
                shown(expected),
                real.map_or("unknown".to_owned(), shown),
            )),
        }
    }
}

/// What was compared, the recorded and the replayed value.
type Mismatch = (&'static str, String, String);

fn position(descriptor: &Arc<Descriptor>) -> Option<i64> {
    let position = rustix::fs::seek(&descriptor.fd, rustix::fs::SeekFrom::Current(0));
    position.ok().map(|position| position as i64)
}

/// A result for people: errors by their text.
fn shown(result: i64) -> String {
    match i32::try_from(result) {
        Ok(errno) if errno < 0 => std::io::Error::from_raw_os_error(-errno).to_string(),
        _ => result.to_string(),
    }
}

fn describe(trace: &Trace, event: &Event) -> String {
    let file = event.file.index().and_then(|index| trace.header.files.get(index));
    let path = file.map_or("no file", |entry| entry.path.as_str());
    let (process, thread) = (event.process, event.thread);
    format!(
        "{} of {} bytes at {} on fd {} ({path}) by process {process} thread {thread}",
        event.function.name(),
        event.length,
        event.offset,
        event.fd,
    )
}
