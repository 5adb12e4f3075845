//! Who comes when: one total order of the calls, and the tickets that keep it where calls meet.
//!
//! Calls of different threads overlap, and the trace does not say when inside its duration a call
//! took effect. The middle is the best guess; a lock took effect at its end, and whatever a child
//! does comes after the start of the call that made it. A call draws a ticket for every resource
//! it touches: its file, the descriptor table of its process, the names of files. Since tickets
//! are drawn in one total order, waiting for them cannot deadlock.

use crate::images::Images;
use iolab_policy::insitu::guest::{StackId, Step, open_flags::APPEND};
use iolab_policy::insitu::{Guests, ProcessStep, StrategySpec};
use iolab_trace::{Class, Event, Function, Trace};
use iolab_vocab::FileId;
use std::collections::{BTreeMap, BTreeSet};

/// A resource and the turn at which a call may have it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Ticket {
    pub(crate) resource: u32,
    pub(crate) turn: u32,
}

/// What each thread does, call by call.
#[derive(Debug, Default)]
pub(crate) struct Plan {
    /// Rows of the trace to reissue, in total order.
    pub(crate) order: Vec<usize>,
    /// By (process, thread): indices into `order`.
    pub(crate) threads: BTreeMap<(u32, u32), Vec<u32>>,
    /// How many resources there are.
    pub(crate) resources: usize,
    tickets: Vec<Ticket>,
    ticket_ends: Vec<u32>,
    steps: Vec<ProcessStep>,
    step_ends: Vec<u32>,
}

impl Plan {
    pub(crate) fn new(trace: &Trace, strategies: &[StrategySpec]) -> Plan {
        let mut plan = Plan { order: total_order(trace), ..Plan::default() };
        for (place, &row) in plan.order.iter().enumerate() {
            let event = &trace.events[row];
            plan.threads.entry((event.process, event.thread)).or_default().push(place as u32);
        }
        let mut resources = Resources::new(trace);
        plan.resources = resources.turns.len();
        let alone = plan.threads.len() == 1;
        let mut staging = Staging::new(trace, strategies);
        let last_of_process: BTreeMap<u32, usize> =
            plan.order.iter().map(|&row| (trace.events[row].process, row)).collect();
        let mut wanted = Vec::new();
        for place in 0..plan.order.len() {
            let row = plan.order[place];
            let event = &trace.events[row];
            let first_step = plan.steps.len();
            staging.step(event, &mut plan.steps);
            if last_of_process.get(&event.process) == Some(&row) {
                staging.guests.finish(event.process, &mut plan.steps);
                staging.guests.ended(event.process);
            }
            plan.step_ends.push(plan.steps.len() as u32);
            if !alone {
                wanted.clear();
                resources.touched(event, &mut wanted);
                let files =
                    plan.steps[first_step..].iter().filter_map(|step| staging.file_of(step));
                wanted.extend(files.filter_map(|file| file.index()).map(|index| index as u32));
                resources.draw(&mut wanted, &mut plan.tickets);
            }
            plan.ticket_ends.push(plan.tickets.len() as u32);
        }
        plan
    }

    /// Tickets of the call at this place of the order.
    pub(crate) fn tickets(&self, place: u32) -> &[Ticket] {
        &self.tickets[range(&self.ticket_ends, place)]
    }

    /// What to do for the call at this place of the order.
    pub(crate) fn steps(&self, place: u32) -> &[ProcessStep] {
        &self.steps[range(&self.step_ends, place)]
    }
}

fn range(ends: &[u32], place: u32) -> std::ops::Range<usize> {
    let place = place as usize;
    let start = if place == 0 { 0 } else { ends[place - 1] };
    start as usize..ends[place] as usize
}

fn total_order(trace: &Trace) -> Vec<usize> {
    let mut order: Vec<usize> = (0..trace.events.len())
        .filter(|&row| trace.events[row].function.is_system_call())
        .collect();
    let opens = trace.events.iter().filter(|event| event.function.class() == Class::Open);
    let appended: BTreeSet<FileId> =
        opens.filter(|open| open.argument & APPEND != 0).map(|open| open.file).collect();
    let mut moments: Vec<(u64, bool)> =
        trace.events.iter().map(|event| (moment(event, &appended), false)).collect();
    free_before_given_again(trace, &order, &mut moments);
    order.sort_by_key(|&row| {
        let event = &trace.events[row];
        (moments[row], event.process, event.thread, row)
    });
    order
}

/// A number of a descriptor that was given again was free by then: the close by another thread took effect before,
/// however much later it returned. Sets the moments of both; who is given the number comes second (`true`).
fn free_before_given_again(trace: &Trace, order: &[usize], moments: &mut [(u64, bool)]) {
    let mut by_number: BTreeMap<(u32, i32), Vec<usize>> = BTreeMap::new();
    for &row in order {
        let event = &trace.events[row];
        let number = if gives_number(event) { event.result as i32 } else { event.fd };
        if gives_number(event) || closes_number(event) {
            by_number.entry((event.process, number)).or_default().push(row);
        }
    }
    for rows in by_number.values_mut() {
        rows.sort_by_key(|&row| (moments[row], row));
        let is_close = |place: &usize| closes_number(&trace.events[rows[*place]]);
        let mut closes: Vec<usize> = (0..rows.len()).filter(is_close).collect();
        closes.sort_by_key(|&place| trace.events[rows[place]].start);
        let mut closes = closes.into_iter().peekable();
        // Closes that have begun and not taken effect, one of a thread at most.
        let mut begun: Vec<usize> = Vec::new();
        let mut early = vec![false; rows.len()];
        let mut is_open = false;
        for place in 0..rows.len() {
            let event = &trace.events[rows[place]];
            if closes_number(event) {
                is_open &= early[place];
                continue;
            }
            let has_begun = |close: &usize| trace.events[rows[*close]].start <= event.end;
            begun.extend(std::iter::from_fn(|| closes.next_if(has_begun)));
            begun.retain(|&close| close > place && !early[close]);
            if !std::mem::replace(&mut is_open, true) {
                continue;
            }
            let others = |close: &usize| trace.events[rows[*close]].thread != event.thread;
            if let Some(close) = begun.iter().copied().filter(others).min() {
                early[close] = true;
                let at = moments[rows[place]].0.max(trace.events[rows[close]].start.0);
                moments[rows[close]] = (at, false);
                moments[rows[place]] = (at, true);
            }
        }
    }
}

/// Whether a call gives its process a number that was free.
fn gives_number(event: &Event) -> bool {
    event.result >= 0
        && match event.function.class() {
            Class::Open => event.function != Function::INHERITED,
            Class::Dup => !matches!(event.function, Function::DUP2 | Function::DUP3),
            _ => false,
        }
}

fn closes_number(event: &Event) -> bool {
    event.function == Function::CLOSE && event.result >= 0
}

/// When a call most likely took effect. Appends are put one behind the other by their starts where offsets are derived,
/// so they come in this order here as well.
fn moment(event: &Event, appended: &BTreeSet<FileId>) -> u64 {
    match event.function.class() {
        Class::Process => event.start.0,
        Class::Lock => event.end.0,
        Class::Write if appended.contains(&event.file) => event.start.0,
        _ => event.start.0 + event.duration().0 / 2,
    }
}

/// Counts turns: one resource per file, one for all names, one per process.
struct Resources {
    turns: Vec<u32>,
    files: u32,
    seen: Vec<bool>,
    images: Images,
}

impl Resources {
    fn new(trace: &Trace) -> Resources {
        let (files, processes) = (trace.header.files.len(), process_count(trace));
        Resources {
            turns: vec![0; files + 1 + processes],
            files: files as u32,
            seen: vec![false; processes],
            images: Images::new(trace),
        }
    }

    fn names(&self) -> u32 {
        self.files
    }

    fn table(&self, process: u32) -> u32 {
        self.files + 1 + process
    }

    fn touched(&mut self, event: &Event, out: &mut Vec<u32>) {
        out.extend(event.file.index().filter(|&i| i < self.files as usize).map(|i| i as u32));
        let class = event.function.class();
        let is_first = !std::mem::replace(&mut self.seen[event.process as usize], true);
        let changes_table = matches!(class, Class::Open | Class::Close | Class::Dup);
        if is_first || changes_table || class == Class::Process {
            out.push(self.table(event.process));
        }
        let names = matches!(
            class,
            Class::Open
                | Class::Rename
                | Class::Unlink
                | Class::MakeDirectory
                | Class::RemoveDirectory
                | Class::ListDirectory
                | Class::Stat
        );
        if names {
            out.push(self.names());
        }
        let second = event.second_file().index().filter(|&file| file < self.files as usize);
        out.extend(second.map(|file| file as u32));
        // What it got is what its parent had then.
        if event.function == Function::INHERITED
            && let Some(parent) = self.images.parent(event.process)
        {
            out.push(self.table(parent));
        }
        if event.function == Function::FORK {
            let children = self.images.children(event);
            out.extend(children.into_iter().map(|child| self.table(child)));
        }
    }

    fn draw(&mut self, wanted: &mut Vec<u32>, out: &mut Vec<Ticket>) {
        wanted.sort_unstable();
        wanted.dedup();
        for &resource in &*wanted {
            let turn = &mut self.turns[resource as usize];
            out.push(Ticket { resource, turn: *turn });
            *turn += 1;
        }
    }
}

/// Processes the events name; a damaged header may list fewer.
pub(crate) fn process_count(trace: &Trace) -> usize {
    let named = trace.events.iter().map(|event| event.process as usize + 1).max().unwrap_or(0);
    named.max(trace.header.processes.len())
}

/// The interpretation of the processes' calls by their strategies.
struct Staging<'a> {
    trace: &'a Trace,
    guests: Guests,
    files: BTreeMap<(u32, StackId), FileId>,
}

impl<'a> Staging<'a> {
    fn new(trace: &'a Trace, strategies: &[StrategySpec]) -> Staging<'a> {
        Staging { trace, guests: Guests::new(strategies), files: BTreeMap::new() }
    }

    fn step(&mut self, event: &Event, out: &mut Vec<ProcessStep>) {
        let file = event.file.index().and_then(|index| self.trace.header.files.get(index));
        let path = file.map_or("", |entry| entry.path.as_str());
        let first = out.len();
        self.guests.step(event, path, out);
        for it in &out[first..] {
            if let Step::Begin { stack, file } = it.step {
                self.files.insert((it.process, stack), file);
            }
        }
    }

    /// The file a step is about, so that it can be waited for.
    fn file_of(&self, step: &ProcessStep) -> Option<FileId> {
        match step.step {
            Step::Stage { stack, .. } | Step::Drained { stack } => {
                self.files.get(&(step.process, stack)).copied()
            }
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use iolab_trace::{FileEntry, ProcessEntry};
    use iolab_vocab::Nanos;

    fn call(thread: u32, file: u32, start: u64) -> Event {
        Event {
            thread,
            file: FileId(file),
            start: Nanos(start),
            end: Nanos(start + 4),
            length: 8,
            ..Event::of(Function::PWRITE)
        }
    }

    #[test]
    fn threads_take_turns_at_a_shared_file_and_only_there() {
        let mut trace = Trace::default();
        trace.header.files = vec![FileEntry::default(), FileEntry::default()];
        trace.events = vec![call(0, 0, 10), call(0, 1, 30), call(1, 0, 20)];
        let plan = Plan::new(&trace, &[]);
        assert_eq!(plan.order, [0, 2, 1]);
        let on_file = |place, file| {
            plan.tickets(place).iter().find(|ticket| ticket.resource == file).map(|t| t.turn)
        };
        assert_eq!((on_file(0, 0), on_file(1, 0), on_file(2, 0)), (Some(0), Some(1), None));
        assert_eq!(on_file(2, 1), Some(0));
    }

    #[test]
    fn who_inherits_a_descriptor_comes_before_its_parent_gives_the_number_to_another_file() {
        let mut trace = Trace::default();
        trace.header.files = vec![FileEntry::default(), FileEntry::default()];
        let process = |pid, parent_pid| ProcessEntry { pid, parent_pid, ..ProcessEntry::default() };
        trace.header.processes = vec![process(1, 0), process(2, 1)];
        let at = |start| (Nanos(start), Nanos(start + 4));
        let inherits = Event {
            process: 1,
            file: FileId(0),
            start: at(10).0,
            end: at(10).1,
            ..Event::of(Function::INHERITED)
        };
        let gives =
            Event { file: FileId(1), start: at(20).0, end: at(20).1, ..Event::of(Function::DUP2) };
        trace.events = vec![inherits, gives];
        let plan = Plan::new(&trace, &[]);
        let table = |place: u32| plan.tickets(place).iter().find(|it| it.resource == 3);
        assert_eq!(table(0).map(|it| it.turn), Some(0));
        assert_eq!(table(1).map(|it| it.turn), Some(1));
    }

    #[test]
    fn a_number_is_freed_before_it_is_given_again_however_late_the_close_returns() {
        let mut trace = Trace::default();
        trace.header.files = vec![FileEntry::default(), FileEntry::default()];
        let within = |thread, function, start, end, event: Event| Event {
            thread,
            function,
            start: Nanos(start),
            end: Nanos(end),
            ..event
        };
        let on = |file| Event { file: FileId(file), fd: 3, ..Event::of(Function::CLOSE) };
        let opens = |file| Event { file: FileId(file), result: 3, ..Event::of(Function::OPEN) };
        trace.events = vec![
            within(0, Function::OPEN, 0, 4, opens(0)),
            within(0, Function::CLOSE, 10, 1000, on(0)),
            within(1, Function::OPEN, 20, 30, opens(1)),
            within(1, Function::READ, 40, 50, on(1)),
            within(1, Function::CLOSE, 60, 70, on(1)),
            within(1, Function::OPEN, 80, 90, opens(0)),
        ];
        assert_eq!(Plan::new(&trace, &[]).order, [0, 1, 2, 3, 4, 5]);
    }

    #[test]
    fn a_single_thread_needs_no_tickets() {
        let mut trace = Trace::default();
        trace.header.files = vec![FileEntry::default()];
        trace.events = vec![call(0, 0, 10), call(0, 0, 30)];
        let plan = Plan::new(&trace, &[]);
        assert!(plan.tickets(0).is_empty() && plan.tickets(1).is_empty());
    }
}
