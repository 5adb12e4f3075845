//! The simulator's driver of in-situ strategies: the same stacks as in a live program, with costs
//! in place of bytes.
//!
//! [`Guest`] turns a recorded event into calls on stacks; each command of a stack is charged: a
//! copy by its length, a performed call by the storage model, a step and the hook by what
//! calibration found. A performed call that is the program's own, unchanged, keeps its recorded
//! duration unless the model was asked for.

use super::Durations;
use super::kernel::{Cost, DescriptionId, Kernel, Kind};
use super::program::What;
use super::run::Run;
use super::setup::{Setup, native, recorded};
use iolab_device::local::PAGE_BYTES;
use iolab_policy::insitu::guest::{StackId, Step};
use iolab_policy::insitu::{
    Call, Command, Driver, Errno, Guest, Guests, Handle, Interest, Outcome, ProcessStep, Short,
    Slot, Stack, Totals, decided_by, decision,
};
use iolab_trace::{Class, Event};
use iolab_vocab::{FileId, Nanos};
use std::collections::BTreeMap;

/// A stack at work on one file of one process.
struct Live {
    stack: Stack,
    bottom: Bottom,
    round: Option<Round>,
}

/// A sync that threads of a process wait for together. It is charged to the first who asks, at once, as what
/// it costs when the time to ask is over.
#[derive(Clone, Copy)]
struct Round {
    /// Who asks before then shares it.
    until: Nanos,
    /// When it has been made.
    end: Nanos,
    outcome: Outcome,
}

/// What a stack's commands are charged to.
struct Bottom {
    file: FileId,
    handles: BTreeMap<Handle, DescriptionId>,
    /// Bytes of each stage's staging memory that have been touched.
    touched: Vec<u64>,
}

/// The strategies of all processes.
pub(super) struct Staging<'a> {
    setup: &'a Setup<'a>,
    guests: Guests,
    live: BTreeMap<(u32, StackId), Live>,
    /// By process: staging memory of stacks that ended, for the next ones.
    spare: Vec<Vec<Vec<u64>>>,
    steps: Vec<ProcessStep>,
    /// By process: how many calls it has still to make.
    calls_left: Vec<u64>,
    /// By process: whether it has threads that could ask for the same.
    has_threads: Vec<bool>,
}

/// What came of a program's call.
struct Staged {
    cost: Cost,
    /// What the stack answered, if it was asked.
    result: Option<i64>,
}

/// A call on its way through a stack.
#[derive(Clone, Copy)]
struct Passage {
    row: usize,
    /// Whose stack it is.
    process: u32,
    now: Nanos,
    call: Call,
    handle: Handle,
    own: bool,
}

impl<'a> Staging<'a> {
    pub(super) fn new(setup: &'a Setup<'a>, processes: usize) -> Staging<'a> {
        Staging {
            setup,
            guests: Guests::new(setup.apply),
            live: BTreeMap::new(),
            spare: vec![Vec::new(); processes],
            steps: Vec::new(),
            calls_left: calls(setup, processes),
            has_threads: has_threads(setup, processes),
        }
    }

    /// What the stacks that are left have counted.
    pub(super) fn end(&self, run: &mut Run) {
        self.live.values().for_each(|live| live.count(self.setup, &mut run.counted));
    }

    /// A process has ended.
    pub(super) fn ended(&mut self, process: u32) {
        self.guests.ended(process);
    }

    /// Carries out one recorded event, as the strategies make of it if there are any.
    pub(super) fn carry_out(
        &mut self,
        now: Nanos,
        row: usize,
        kernel: &mut Kernel,
        run: &mut Run,
    ) -> Cost {
        if self.setup.apply.is_empty() {
            return native(self.setup, kernel, row);
        }
        let staged = self.call(now, row, kernel, run);
        if let Some(result) = staged.result {
            run.events[row].result = result;
        }
        staged.cost
    }

    fn call(&mut self, now: Nanos, row: usize, kernel: &mut Kernel, run: &mut Run) -> Staged {
        let event = &self.setup.trace.events[row];
        let path = self.setup.path(event.file);
        let mut steps = std::mem::take(&mut self.steps);
        steps.clear();
        self.guests.step(event, path, &mut steps);
        let left = &mut self.calls_left[event.process as usize];
        *left -= 1;
        if *left == 0 {
            self.guests.finish(event.process, &mut steps);
        }
        let mut staged = Staged { cost: Cost::default(), result: None };
        let mut passed_ns = self.passing_ns(event, &steps);
        for &ProcessStep { process, step } in &steps {
            let at = now.after(staged.cost.total());
            staged.cost = staged.cost.plus(match step {
                Step::Begin { stack, file } => self.build(process, stack, file),
                Step::Drained { stack } => {
                    if let Some(live) = self.live.get_mut(&(process, stack))
                        && let Some(&description) = live.bottom.handles.values().next()
                    {
                        live.stack.drained(kernel.file_bytes(description));
                    }
                    Cost::default()
                }
                Step::Native => native(self.setup, kernel, row),
                Step::Stage { stack, handle, call, own } => {
                    let passage = Passage { row, process, now: at, call, handle, own };
                    let (outcome, cost, absorbed) = self.pass(stack, passage, kernel, run);
                    if own {
                        staged.result = Some(number(outcome));
                    }
                    if absorbed {
                        passed_ns = 0.0;
                    }
                    cost
                }
                Step::End { stack } => {
                    if let Some(ended) = self.live.remove(&(process, stack)) {
                        ended.count(self.setup, &mut run.counted);
                        self.spare[process as usize].push(ended.bottom.touched);
                    }
                    Cost::default()
                }
            });
        }
        staged.cost = staged.cost.plus(cost_of(self.setup, passed_ns));
        self.steps = steps;
        staged
    }

    /// What the library adds to a call that it does not take in.
    fn passing_ns(&self, event: &Event, steps: &[ProcessStep]) -> f64 {
        let intercept = &self.setup.storage.intercept;
        let is_own = |step: &ProcessStep| step.process == event.process;
        let is_staged = steps.iter().any(|it| is_own(it) && matches!(it.step, Step::Stage { .. }));
        match event.function.class() {
            Class::Open if is_staged => intercept.open_ns,
            Class::Open if event.length >= 0 && event.result >= 0 => intercept.open_passed_ns,
            _ => intercept.hook_ns,
        }
    }

    fn build(&mut self, process: u32, stack: StackId, file: FileId) -> Cost {
        let path = self.setup.path(file);
        let strategies: Vec<_> =
            Guest::chosen(self.setup.apply, path).map(|spec| spec.build_for(path)).collect();
        let stages = strategies.len();
        let mut touched = self.spare[process as usize].pop().unwrap_or_default();
        touched.resize(stages, 0);
        let bottom = Bottom { file, touched, handles: BTreeMap::new() };
        let live = Live { stack: Stack::new(strategies), bottom, round: None };
        self.live.insert((process, stack), live);
        Cost::default()
    }

    /// What a call comes to, what that costs, and whether it was taken in, so that nothing is left for the hook.
    fn pass(
        &mut self,
        stack_id: StackId,
        passage: Passage,
        kernel: &mut Kernel,
        run: &mut Run,
    ) -> (Outcome, Cost, bool) {
        let event = &self.setup.trace.events[passage.row];
        let process = passage.process;
        let Some(mut live) = self.live.remove(&(process, stack_id)) else {
            return (Ok(0), Cost::default(), false);
        };
        if let Call::Open { .. } = passage.call
            && let Some(description) = kernel.description(process, event.result as i32)
        {
            live.bottom.handles.insert(passage.handle, description);
        }
        run.staged_calls += u64::from(passage.own);
        let waits = self.has_threads[process as usize];
        let Live { stack, bottom, round } = &mut live;
        let stepped = stack.stepped(&passage.call).max(1);
        let mut under_way = UnderWay {
            setup: self.setup,
            passage,
            bottom,
            kernel,
            run,
            step_ns: self.setup.storage.intercept.step_ns * stepped as f64,
            cost: Cost::default(),
            command_began: passage.now,
        };
        let (outcome, is_taken) = match under_way.short(stack) {
            Some(over) => over,
            None => (under_way.stepped(stack, waits, round), false),
        };
        let cost = under_way.cost;
        self.live.insert((process, stack_id), live);
        (outcome, cost, is_taken)
    }
}

impl Live {
    fn count(&self, setup: &Setup, totals: &mut Totals) {
        totals.take(&self.stack, setup.path(self.bottom.file));
    }
}

/// A call on its way through a stack, and what it has cost so far.
struct UnderWay<'a, 'k> {
    setup: &'a Setup<'a>,
    passage: Passage,
    bottom: &'a mut Bottom,
    kernel: &'a mut Kernel<'k>,
    run: &'a mut Run,
    /// What a step costs of all stages that have to be stepped for the call.
    step_ns: f64,
    cost: Cost,
    command_began: Nanos,
}

impl Driver for UnderWay<'_, '_> {
    fn now(&mut self) -> Nanos {
        self.passage.now.after(self.cost.total())
    }

    fn copy(&mut self, _from: Slot, to: Slot, length: u64) {
        let touch_ns = touch(self.setup, self.bottom, to, length);
        let copied = cost_of(self.setup, self.setup.storage.intercept.copy.at(length));
        self.cost = self.cost.plus(copied).plus(cost_of(self.setup, touch_ns));
    }

    fn perform(&mut self, handle: Handle, call: Call, memory: Slot) -> Outcome {
        let (outcome, cost) = self.performed(handle, call, memory);
        self.run.performed_calls += u64::from(moves(call));
        self.cost = self.cost.plus(cost);
        outcome
    }

    fn wait_until(&mut self, time: Nanos) {
        self.cost.wait = self.cost.wait.after(time.since(self.command_began));
    }

    fn decided(&mut self, _stack: &Stack, _copies: &[Command]) {
        self.charge(self.step_ns);
    }

    fn began(&mut self, _command: &Command) {
        self.command_began = self.now();
    }

    fn ended(&mut self, command: &Command) {
        if !self.setup.settings.keep_decisions {
            return;
        }
        let event = &self.setup.trace.events[self.passage.row];
        let (start, end) = (self.command_began, self.now());
        let process = self.passage.process;
        let (rank, thread) = decided_by(event, process, &self.setup.trace.header);
        self.run.decisions.push(Event {
            rank,
            process,
            thread,
            file: self.bottom.file,
            start,
            end,
            ..decision(command)
        });
    }
}

impl UnderWay<'_, '_> {
    /// The short ways of the library, where nobody wants to see decisions: of a call that no stage is stepped
    /// for, and of one that the first to hear it decides at once.
    fn short(&mut self, stack: &mut Stack) -> Option<(Outcome, bool)> {
        let Passage { call, handle, .. } = self.passage;
        if self.setup.settings.keep_decisions || call == Call::Flush && !stack.holds() {
            return None;
        }
        let intercept = &self.setup.storage.intercept;
        if stack.passes(&call) {
            if stack.interest().hears(Interest::of(&call)) {
                stack.passed(&call);
                self.charge(intercept.passed_ns());
            }
            return Some((self.perform(handle, call, Slot::of(&call)), false));
        }
        let taken = match call {
            Call::Write { at, length } => stack.absorb(handle, at, length),
            Call::Read { at, length } => stack.serve(handle, at, length),
            _ => None,
        };
        if let Some(slot) = taken {
            let length = call.transfer_bytes();
            let touch_ns = touch(self.setup, self.bottom, slot, length);
            self.charge(intercept.absorb_ns + intercept.copy.at(length) + touch_ns);
            return Some((Ok(length), true));
        }
        let (stage, short) = stack.short(handle, &call);
        if short != Short::Ask {
            self.charge(intercept.passed_ns());
        }
        match short {
            Short::Ask => None,
            Short::Answer(value) => Some((Ok(value), false)),
            Short::At(offset) => {
                let call = call.placed(offset);
                let outcome = self.perform(handle, call, Slot::of(&call));
                if let Ok(bytes) = outcome {
                    stack.moved(stage, handle, bytes);
                }
                Some((outcome, false))
            }
        }
    }

    /// Everything else: step by step. A sync that another thread makes for this one, too, only waits.
    fn stepped(&mut self, stack: &mut Stack, waits: bool, round: &mut Option<Round>) -> Outcome {
        let Passage { now, call, handle, .. } = self.passage;
        if let Call::Sync { .. } = call
            && let Some(round) = round.filter(|round| now < round.until)
        {
            stack.passed_on(&call);
            self.cost.wait = round.end.since(now);
            return round.outcome;
        }
        let ticket = if waits { stack.join(now, &call) } else { None };
        self.cost.wait = ticket.map_or(Nanos::ZERO, |ticket| ticket.until.since(now));
        let outcome = stack.drive(handle, call, self);
        if let Some(ticket) = ticket {
            *round = Some(Round { until: ticket.until, end: self.now(), outcome });
        }
        outcome
    }

    fn charge(&mut self, work_ns: f64) {
        self.cost = self.cost.plus(cost_of(self.setup, work_ns));
    }

    fn performed(&mut self, handle: Handle, call: Call, memory: Slot) -> (Outcome, Cost) {
        let (setup, passage, now) = (self.setup, self.passage, self.now());
        let Some(&description) = self.bottom.handles.get(&handle) else {
            return (Ok(0), Cost::default());
        };
        let event = &setup.trace.events[passage.row];
        let unchanged = passage.own && same(passage.call, call) && is_programs(memory);
        if unchanged && event.result < 0 {
            return (Err(Errno(-event.result as i32)), recorded(setup, passage.row));
        }
        let (outcome, cost) = self.kernel.perform(now, description, call);
        match setup.settings.durations {
            _ if self.kernel.is_served() => (outcome, Cost::default()),
            Durations::Model => (outcome, cost),
            Durations::Recorded if unchanged => (outcome, recorded(setup, passage.row)),
            Durations::Recorded => (outcome, setup.scale.apply(kind_of(call), cost)),
        }
    }
}

fn calls(setup: &Setup, processes: usize) -> Vec<u64> {
    let mut calls = vec![0; processes];
    for sequence in &setup.program.sequences {
        let made = sequence.moments.iter().filter(|it| matches!(it.what, What::Call(_)));
        calls[sequence.process as usize] += made.count() as u64;
    }
    calls
}

fn has_threads(setup: &Setup, processes: usize) -> Vec<bool> {
    let mut first: Vec<Option<u32>> = vec![None; processes];
    let mut several = vec![false; processes];
    for event in &setup.trace.events {
        let process = event.process as usize;
        let known = *first[process].get_or_insert(event.thread);
        several[process] |= known != event.thread;
    }
    several
}

fn cost_of(setup: &Setup, work_ns: f64) -> Cost {
    Cost::work(Nanos(setup.scale.stretched(work_ns).round() as u64))
}

/// What bytes cost that come to staging memory nobody has used before.
fn touch(setup: &Setup, bottom: &mut Bottom, slot: Slot, length: u64) -> f64 {
    let Slot::Staging { stage, offset } = slot else { return 0.0 };
    let touched = &mut bottom.touched[stage as usize];
    let pages = |bytes: u64| bytes.div_ceil(PAGE_BYTES);
    let fresh = pages(offset + length).saturating_sub(pages(*touched));
    *touched = (*touched).max(offset + length);
    fresh as f64 * setup.storage.intercept.staging_page_ns
}

/// Whether a stack sent the program's call on as it was; where the position comes from is no
/// difference to its cost.
fn same(own: Call, performed: Call) -> bool {
    match (own, performed) {
        (Call::Read { length: a, .. }, Call::Read { length: b, .. })
        | (Call::Write { length: a, .. }, Call::Write { length: b, .. }) => a == b,
        _ => own == performed,
    }
}

fn is_programs(memory: Slot) -> bool {
    matches!(memory, Slot::Program(0) | Slot::Nowhere)
}

/// Whether a call costs anything below.
fn moves(call: Call) -> bool {
    !matches!(call, Call::Open { .. } | Call::Flush | Call::Settle | Call::Close)
}

fn kind_of(call: Call) -> Kind {
    match call {
        Call::Read { length, .. } => Kind::of(Class::Read, length),
        Call::Write { length, .. } => Kind::of(Class::Write, length),
        Call::Sync { .. } => Kind::Sync,
        Call::Truncate { .. } => Kind::of(Class::Truncate, 0),
        _ => Kind::Other,
    }
}

fn number(outcome: Outcome) -> i64 {
    outcome.map_or_else(|errno| -i64::from(errno.0), |value| value as i64)
}
