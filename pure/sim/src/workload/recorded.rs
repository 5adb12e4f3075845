//! A recorded parallel program: the calls of MPI in a trace, as commands.
//!
//! Outermost calls of the layers `mpi` and `mpiio` become commands; what a call did inside is the
//! simulated algorithm's business. The time between two calls of a process becomes computation,
//! an instruction for each microsecond, so that a platform with faster processors runs the
//! program faster; a trace that was itself simulated says how many instructions there were. Views were
//! turned into pieces by who made the trace. Calls without a command here (`MPI_Init`, seeks, views)
//! are skipped with the time they took, and counted.

use super::run::Job;
use crate::program::{
    ANY_SOURCE, ANY_TAG, Command, Communicator, File, FileOperation, Program, Shape, Ticket, WORLD,
    What, of_function,
};
use iolab_policy::insitu::runtimes::owner_of;
use iolab_trace::spool::LeftOut;
use iolab_trace::{CallView, Class, Event, Function, Layer, Origin, Partner, Trace};
use iolab_vocab::{Extent, Nanos, Refusal};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// How much computing an instruction stands for.
const INSTRUCTION_NANOS: f64 = 1000.0;

/// One command with its extents' place in the list of all.
#[derive(Clone, Copy, Debug)]
struct Step {
    command: Command,
    extents: (usize, usize),
    /// For an open: the communicator that opens.
    communicator: Communicator,
}

/// What was recorded, ready to be run any number of times.
#[derive(Clone, Debug)]
pub struct Recording {
    lanes: Arc<Vec<Vec<Step>>>,
    extents: Arc<Vec<Extent>>,
    communicators: Vec<Vec<u32>>,
    name: String,
    files: Vec<(String, u64)>,
    notes: Vec<String>,
}

/// One run of a recording.
#[derive(Clone, Debug)]
pub struct Recorded {
    recording: Recording,
    next: Vec<usize>,
    /// By rank and file: which communicator opened it.
    opened_by: BTreeMap<(u32, File), Communicator>,
}

/// What becomes of calls on files past MPI-IO.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PosixCalls {
    /// The time they took is computation.
    Compute,
    /// They go to the servers: reads, writes and syncs of ranks, outside of MPI-IO.
    Commands,
}

/// Whether a trace has calls of MPI that a cluster could carry out, or is what one has carried out.
pub fn has_mpi(trace: &Trace) -> bool {
    let is_command = |event: &Event| is_mpi(event) || event.function == Function::COMPUTE;
    trace.events.iter().any(|event| {
        event.is_outermost_but_for_objects(&trace.events) && event.rank >= 0 && is_command(event)
    })
}

fn is_mpi(event: &Event) -> bool {
    matches!(event.function.layer(), Layer::Mpi | Layer::Mpiio)
}

fn refuse<T>(message: String) -> Result<T, Refusal> {
    let hint = "the trace must hold every process of the program, each from start to end";
    Err(Refusal { message, hint: hint.to_owned() })
}

impl Recording {
    /// Takes the calls of MPI out of a trace.
    ///
    /// # Errors
    /// What the trace lacks, or what in it makes no sense, by rank and call.
    pub fn of(trace: &Trace) -> Result<Recording, Refusal> {
        Recording::with(trace, PosixCalls::Compute)
    }

    /// The same, and calls of POSIX as `posix` says.
    ///
    /// # Errors
    /// As for [`Recording::of`].
    pub fn with(trace: &Trace, posix: PosixCalls) -> Result<Recording, Refusal> {
        check_simulated(trace)?;
        let rank_count = check_ranks(trace)?;
        let mut reader = Reader {
            trace,
            pieces: pieces(trace),
            lanes: vec![Vec::new(); rank_count],
            ends: vec![None; rank_count],
            extents: Vec::new(),
            communicators: Communicators::of(trace, rank_count),
            file_bytes: vec![(Nanos(u64::MAX), 0); trace.header.files.len()],
            skipped: BTreeMap::new(),
            blocking: cancelled(trace),
            beside: 0,
            posix,
            open: BTreeMap::new(),
        };
        // What HDF5 and NetCDF are called for shows in what they call.
        let is_wanted = |&row: &usize| match posix {
            _ if trace.events[row].function.layer().names_objects() => false,
            PosixCalls::Compute => trace.events[row].is_outermost_but_for_objects(&trace.events),
            PosixCalls::Commands => is_past_mpi(trace, row),
        };
        let mut rows: Vec<usize> = (0..trace.events.len()).filter(is_wanted).collect();
        // Threads of a process take turns in one lane.
        rows.sort_by_key(|&row| {
            let event = &trace.events[row];
            (event.rank, event.start, event.end)
        });
        for row in rows {
            reader.take(row)?;
        }
        let notes = notes(trace, &reader);
        let names = trace.header.files.iter().map(|file| file.path.clone());
        Ok(Recording {
            lanes: Arc::new(reader.lanes),
            extents: Arc::new(reader.extents),
            communicators: reader.communicators.declared,
            name: trace.header.command.join(" "),
            files: names.zip(reader.file_bytes.iter().map(|known| known.1)).collect(),
            notes,
        })
    }

    /// The program, from its beginning.
    pub fn program(&self) -> Recorded {
        let next = vec![0; self.lanes.len()];
        Recorded { recording: self.clone(), next, opened_by: BTreeMap::new() }
    }

    /// The program with its files, as one application.
    pub fn job(&self) -> Job {
        let application = (self.name.clone(), Box::new(self.program()) as Box<dyn Program>);
        Job { files: self.files.clone(), applications: vec![application] }
    }

    /// What was run.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Its files, each with its size at the start.
    pub fn files(&self) -> &[(String, u64)] {
        &self.files
    }

    /// Processes it has.
    pub fn rank_count(&self) -> u32 {
        self.lanes.len() as u32
    }

    /// What of the recorded program is otherwise here, or may be: a sentence each.
    pub fn notes(&self) -> &[String] {
        &self.notes
    }
}

/// A trace that was simulated has the commands themselves, if it has all of them and of one program.
fn check_simulated(trace: &Trace) -> Result<(), Refusal> {
    if trace.header.origin != Origin::Simulated {
        return Ok(());
    }
    let lost: u64 = trace.header.losses.lost_calls.values().sum();
    let again = "simulate the trace or workload that it was made from";
    let refuse = |message| Err(Refusal { message, hint: again.to_owned() });
    if lost > 0 {
        return refuse(format!("{lost} rows of this simulated trace were not kept"));
    }
    match trace.header.command.len() {
        0 | 1 => Ok(()),
        several => refuse(format!("{several} applications were simulated together in this trace")),
    }
}

/// What a reader of the results should know of the trace.
fn notes(trace: &Trace, reader: &Reader<'_>) -> Vec<String> {
    let mut notes = Vec::new();
    if !reader.skipped.is_empty() {
        let names = reader.skipped.iter().map(|(name, count)| format!("{count} {name}"));
        notes.push(format!("without a command: {}", names.collect::<Vec<_>>().join(", ")));
    }
    let left_out = &trace.header.losses.left_out_calls;
    let reasons = [LeftOut::Exotic, LeftOut::FailedMpi].map(LeftOut::text);
    let lost: u64 = reasons.iter().filter_map(|reason| left_out.get(*reason)).sum();
    if lost > 0 {
        notes.push(format!(
            "{lost} calls of MPI are not in the trace; others may wait for them here"
        ));
    }
    let calls = || {
        let events = &trace.events;
        events.iter().filter(|event| is_mpi(event) && event.is_outermost_but_for_objects(events))
    };
    let data = calls().filter(|call| call.function.class().moves_data());
    let unplaced = data.filter(|call| call.offset < 0 && call.length > 0).count();
    if unplaced > 0 {
        notes.push(format!("{unplaced} accesses have no offset in the trace and go to byte 0"));
    }
    let mut threads: BTreeMap<i32, BTreeSet<u32>> = BTreeMap::new();
    for call in calls() {
        threads.entry(call.rank).or_default().insert(call.thread);
    }
    let most = threads.into_iter().max_by_key(|(_, threads)| threads.len());
    if let Some((rank, threads)) = most.filter(|(_, threads)| threads.len() > 1) {
        notes.push(format!(
            "rank {rank} calls MPI in {} threads; here they take turns, and may wait for each other",
            threads.len()
        ));
    }
    if reader.beside > 0 {
        notes.push(format!(
            "{} calls on files past MPI-IO count as computation; `--apply null` or local storage \
             looks at those instead",
            reader.beside
        ));
    }
    notes
}

/// Whether a row is a call of MPI, or one that none of MPI is around.
fn is_past_mpi(trace: &Trace, row: usize) -> bool {
    let mut above = trace.events[row].parent;
    // A damaged trace may say anything; nobody calls this deep.
    for _ in 0..64 {
        let Ok(parent) = usize::try_from(above) else { return true };
        match trace.events.get(parent) {
            Some(event) if !is_mpi(event) => above = event.parent,
            _ => return false,
        }
    }
    false
}

/// Requests by rank that were cancelled: neither begun nor waited for here.
fn cancelled(trace: &Trace) -> BTreeSet<(i32, i64)> {
    let waits = trace.events.iter().filter(|event| event.function == Function::MPI_WAIT);
    waits.filter(|wait| wait.result < 0).map(|wait| (wait.rank, wait.argument)).collect()
}

/// Ranks must be 0 to n - 1, and one process of each may call MPI: the shell that started a rank has its
/// number, too. What has no rank is a part of a simulated cluster.
fn check_ranks(trace: &Trace) -> Result<usize, Refusal> {
    let ranks: BTreeSet<i32> = trace.header.processes.iter().map(|process| process.rank).collect();
    let ranks: Vec<i32> = ranks.into_iter().filter(|rank| *rank >= 0).collect();
    if ranks.is_empty() {
        return refuse("no process of the trace has a rank".to_owned());
    }
    if let Some((_, wanted)) = ranks.iter().zip(0..).find(|(rank, wanted)| **rank != *wanted) {
        return refuse(format!("there is no rank {wanted}"));
    }
    let calls = trace.events.iter().filter(|event| is_mpi(event) && event.rank >= 0);
    let processes: BTreeSet<(i32, u32)> = calls.map(|event| (event.rank, event.process)).collect();
    if let Some((rank, _)) = processes.last().filter(|last| last.0 >= ranks.len() as i32) {
        return refuse(format!("rank {rank} calls MPI and is no process of the trace"));
    }
    let mut twice = processes.iter().zip(processes.iter().skip(1));
    match twice.find(|(one, other)| one.0 == other.0) {
        Some(((rank, _), _)) => refuse(format!("rank {rank} is there twice")),
        None => Ok(ranks.len()),
    }
}

/// Rows of pieces by the row of their access.
fn pieces(trace: &Trace) -> BTreeMap<i64, Vec<Extent>> {
    let mut pieces: BTreeMap<i64, Vec<Extent>> = BTreeMap::new();
    for event in trace.events.iter().filter(|event| event.function == Function::VIEW_PIECE) {
        pieces.entry(event.parent).or_default().push(event.extent());
    }
    pieces
}

/// The trace's communicators as the simulation numbers them: the first that is all ranks in order
/// is [`WORLD`], others are declared when first used.
struct Communicators<'a> {
    listed: &'a [Vec<u32>],
    world: Option<usize>,
    numbers: BTreeMap<usize, Communicator>,
    declared: Vec<Vec<u32>>,
}

impl Communicators<'_> {
    fn of(trace: &Trace, rank_count: usize) -> Communicators<'_> {
        let listed = &trace.header.communicators;
        let is_world = |members: &Vec<u32>| members.iter().copied().eq(0..rank_count as u32);
        let (numbers, declared) = (BTreeMap::new(), Vec::new());
        Communicators { listed, world: listed.iter().position(is_world), numbers, declared }
    }

    /// The communicator of one rank by itself.
    fn alone(&mut self, rank: u32) -> Communicator {
        let own = |ranks: &Vec<u32>| *ranks == [rank];
        let place = self.declared.iter().position(own).unwrap_or_else(|| {
            self.declared.push(vec![rank]);
            self.declared.len() - 1
        });
        place as Communicator + 1
    }

    /// Number of a communicator by its index in the trace.
    fn number(&mut self, index: i64) -> Option<Communicator> {
        let index = usize::try_from(index).ok()?;
        let members = self.listed.get(index)?;
        if self.world == Some(index) {
            return Some(WORLD);
        }
        let declared = &mut self.declared;
        let number = *self.numbers.entry(index).or_insert_with(|| {
            declared.push(members.clone());
            declared.len() as Communicator
        });
        Some(number)
    }
}

/// A partner's rank within the communicator, and the tag; none for the null process.
type Place = Option<(u32, u32)>;

struct Reader<'a> {
    trace: &'a Trace,
    pieces: BTreeMap<i64, Vec<Extent>>,
    lanes: Vec<Vec<Step>>,
    /// By rank: when its last call ended.
    ends: Vec<Option<Nanos>>,
    extents: Vec<Extent>,
    communicators: Communicators<'a>,
    /// By file: its size at the start, and by whose opening that is known.
    file_bytes: Vec<(Nanos, u64)>,
    skipped: BTreeMap<&'static str, u64>,
    /// Requests by rank that nobody waits for here: they ended where they began, or were cancelled.
    blocking: BTreeSet<(i32, i64)>,
    beside: u64,
    posix: PosixCalls,
    /// By rank and file: how often it is open past MPI-IO.
    open: BTreeMap<(i32, File), u32>,
}

impl Reader<'_> {
    fn take(&mut self, row: usize) -> Result<(), Refusal> {
        let event = &self.trace.events[row];
        if event.function == Function::COMPUTE && event.rank >= 0 {
            if event.rank as usize >= self.lanes.len() {
                return refuse(format!(
                    "rank {} computes and is no process of the trace",
                    event.rank
                ));
            }
            self.compute(event);
            return Ok(());
        }
        if self.posix == PosixCalls::Commands && event.function.is_system_call() {
            return self.posix_call(&event.clone());
        }
        if !is_mpi(event) || event.rank < 0 {
            let on_file = matches!(event.function.layer(), Layer::Posix | Layer::Stdio);
            let moves = on_file && event.function.class().moves_data() && event.rank >= 0;
            let is_left = moves && self.posix == PosixCalls::Compute;
            self.beside += if is_left { event.calls() } else { 0 };
            return Ok(());
        }
        let Some(mut step) = self.step(row)? else {
            *self.skipped.entry(event.function.name()).or_default() += 1;
            return Ok(());
        };
        let event = *event;
        self.pass_gap(&event);
        if event.function.class().moves_data() {
            step.extents = self.extents_of(row);
        } else if let Some(CallView::SetSize { bytes }) = CallView::of(&event) {
            step.extents = (self.extents.len(), self.extents.len() + 1);
            self.extents.push(Extent::new(0, bytes));
        }
        self.lanes[event.rank as usize].push(step);
        Ok(())
    }

    /// The time since the last call of its rank is computation.
    fn pass_gap(&mut self, event: &Event) {
        let rank = event.rank as usize;
        let Some(end) = self.ends[rank].replace(event.end) else { return };
        let gap = event.start.since(end);
        if gap > Nanos::ZERO {
            let instructions = gap.0 as f64 / INSTRUCTION_NANOS;
            let command = What::Compute { instructions }.awaited();
            self.lanes[rank].push(Step { command, extents: (0, 0), communicator: WORLD });
        }
    }

    /// A call on a file past MPI-IO. The file is opened by the first opening of a rank, closed by the
    /// last closing; what is no file of a program's own, and calls that move nothing, are computation.
    fn posix_call(&mut self, event: &Event) -> Result<(), Refusal> {
        let lane = usize::try_from(event.rank).ok().filter(|rank| *rank < self.lanes.len());
        let Some((_, file)) = lane.zip(event.file.index()) else { return Ok(()) };
        let path = self.trace.header.files.get(file).map_or("", |file| &file.path);
        if event.result < 0 || owner_of(path).is_some() {
            return Ok(());
        }
        let file = self.file(event)?;
        let class = event.function.class();
        let count = self.open.entry((event.rank, file)).or_default();
        let operation = match class {
            // What is no regular file has no size.
            Class::Open if event.length >= 0 => {
                *count += 1;
                (*count == 1).then_some(FileOperation::Open)
            }
            Class::Close if *count > 0 => {
                *count -= 1;
                (*count == 0).then_some(FileOperation::Close)
            }
            Class::Sync if *count > 0 => Some(FileOperation::Sync),
            Class::Read if *count > 0 && event.result > 0 => Some(FileOperation::Read),
            Class::Write if *count > 0 && event.result > 0 => Some(FileOperation::Write),
            _ => None,
        };
        let Some(operation) = operation else { return Ok(()) };
        self.pass_gap(event);
        let communicator = self.communicators.alone(event.rank as u32);
        let start = self.extents.len();
        match operation {
            FileOperation::Open => self.opened(file, event, event.length),
            FileOperation::Read | FileOperation::Write => {
                self.extents.push(Extent::new(event.offset.max(0) as u64, event.moved_bytes()));
            }
            _ => {}
        }
        let (command, extents) = (operation.of(file), (start, self.extents.len()));
        self.lanes[event.rank as usize].push(Step { command, extents, communicator });
        Ok(())
    }

    /// Work that a simulator noted, or time in which it did nothing.
    fn compute(&mut self, event: &Event) {
        let what = match CallView::of(event) {
            Some(CallView::Compute { instructions, fraction }) => {
                let instructions = instructions as f64 + fraction as f64 / CallView::FRACTIONS;
                What::Compute { instructions }
            }
            Some(CallView::Idle { nanos }) => What::Idle { nanos },
            _ => return,
        };
        let command = what.awaited();
        self.lanes[event.rank as usize].push(Step {
            command,
            extents: (0, 0),
            communicator: WORLD,
        });
        self.ends[event.rank as usize] = Some(event.end);
    }

    fn extents_of(&mut self, row: usize) -> (usize, usize) {
        let start = self.extents.len();
        match self.pieces.remove(&(row as i64)) {
            Some(pieces) => self.extents.extend(pieces),
            None => {
                let extent = self.trace.events[row].extent();
                self.extents.extend(Some(extent).filter(|extent| !extent.is_empty()));
            }
        }
        (start, self.extents.len())
    }

    /// The command of a row, none if there is none for it.
    fn step(&mut self, row: usize) -> Result<Option<Step>, Refusal> {
        let event = self.trace.events[row];
        let Some((shape, begins)) = of_function(event.function) else { return Ok(None) };
        let mut communicator = WORLD;
        let command = match (shape, CallView::of(&event)) {
            (
                Shape::File(operation),
                Some(CallView::Open { communicator: opener, size_bytes, .. }),
            ) => {
                communicator = self.group(&event, opener)?;
                let file = self.file(&event)?;
                self.opened(file, &event, size_bytes);
                Some(operation.of(file))
            }
            (Shape::File(operation), Some(CallView::Data { request, .. })) => {
                Some(self.transfer(&event, operation, begins, request)?)
            }
            (Shape::File(operation), _) => Some(operation.of(self.file(&event)?)),
            (_, Some(CallView::Wait { request }))
                if self.blocking.remove(&(event.rank, request)) =>
            {
                None
            }
            (_, Some(CallView::Wait { request })) => {
                ticket(request).map(|ticket| What::Wait(ticket).awaited())
            }
            (Shape::Collective(kind), Some(CallView::Collective { root, bytes, communicator })) => {
                let communicator = self.group(&event, communicator)?;
                let root = match kind.has_root() {
                    true => self.local(&event, root, communicator)?,
                    false => 0,
                };
                let bytes = bytes.unwrap_or(0);
                Some(What::Collective { kind, root, bytes, communicator }.awaited())
            }
            (_, Some(CallView::Message { to, bytes, from, communicator, request })) => {
                let communicator = self.group(&event, communicator)?;
                let to = self.partner(&event, to, communicator)?;
                let from = self.partner(&event, from, communicator)?;
                let request = request.and_then(ticket);
                self.message(&event, (to, bytes, from, communicator), request)
            }
            _ => None,
        };
        Ok(command.map(|command| Step { command, extents: (0, 0), communicator }))
    }

    /// The size of a file at the start is that at its first opening. Files of recorded programs also
    /// grow by calls that are no commands here; so of theirs it is the largest at any opening.
    fn opened(&mut self, file: File, event: &Event, size_bytes: i64) {
        let size_bytes = size_bytes.max(0) as u64;
        let (since, known) = &mut self.file_bytes[file as usize];
        if self.trace.header.origin != Origin::Simulated {
            *known = size_bytes.max(*known);
        } else if event.start < *since {
            (*since, *known) = (event.start, size_bytes);
        }
    }

    fn transfer(
        &mut self,
        event: &Event,
        operation: FileOperation,
        begins: bool,
        request: Option<i64>,
    ) -> Result<Command, Refusal> {
        let command = operation.of(self.file(event)?);
        match request.and_then(ticket) {
            _ if !begins => Ok(command),
            Some(ticket) => Ok(command.started(ticket)),
            None => refuse(format!("{} names no request", self.call(event))),
        }
    }

    /// A message; one with the null process is nothing.
    fn message(
        &mut self,
        event: &Event,
        parts: (Place, u64, Place, Communicator),
        request: Option<Ticket>,
    ) -> Option<Command> {
        let (to, bytes, from, communicator) = parts;
        if let Some(ticket) = request {
            let key = (event.rank, i64::from(ticket));
            if self.blocking.contains(&key) {
                return None;
            }
            if (to, from) == (None, None) {
                self.blocking.insert(key);
            }
        }
        let what = match (to, from) {
            (None, None) => return None,
            (Some((to, tag)), None) => What::Send { to, tag, bytes, communicator },
            (None, Some((from, tag))) => What::Receive { from, tag, communicator },
            (Some((to, send_tag)), Some((from, receive_tag))) => {
                What::SendReceive { to, send_tag, bytes, from, receive_tag, communicator }
            }
        };
        Some(Command { what, ticket: request })
    }

    /// The rank within the communicator and the tag of a partner, none for the null process.
    fn partner(
        &self,
        event: &Event,
        partner: Option<Partner>,
        communicator: Communicator,
    ) -> Result<Place, Refusal> {
        let Some(Partner { rank, tag }) = partner else { return Ok(None) };
        let rank = match rank {
            None => ANY_SOURCE,
            rank => self.local(event, rank, communicator)?,
        };
        Ok(Some((rank, tag.unwrap_or(ANY_TAG))))
    }

    /// A rank of the program as its communicator counts it.
    fn local(
        &self,
        event: &Event,
        rank: Option<u32>,
        communicator: Communicator,
    ) -> Result<u32, Refusal> {
        let Some(rank) = rank else {
            return refuse(format!("{} does not name its root", self.call(event)));
        };
        let place = match communicator {
            WORLD => Some(rank as usize).filter(|rank| *rank < self.lanes.len()),
            other => self.communicators.declared[other as usize - 1]
                .iter()
                .position(|member| *member == rank),
        };
        match place {
            Some(place) => Ok(place as u32),
            None => refuse(format!("{} names rank {rank}, who is not there", self.call(event))),
        }
    }

    fn group(&mut self, event: &Event, index: i64) -> Result<Communicator, Refusal> {
        match self.communicators.number(index) {
            Some(number) => Ok(number),
            None => refuse(format!("{} names no communicator of the trace", self.call(event))),
        }
    }

    fn file(&self, event: &Event) -> Result<File, Refusal> {
        match event.file.index().filter(|file| *file < self.file_bytes.len()) {
            Some(file) => Ok(file as File),
            None => refuse(format!("{} names no file", self.call(event))),
        }
    }

    fn call(&self, event: &Event) -> String {
        let (rank, name) = (event.rank, event.function.name());
        format!("rank {rank}: {name} at {:.6} s", event.start.seconds())
    }
}

fn ticket(request: i64) -> Option<Ticket> {
    Ticket::try_from(request).ok()
}

impl Program for Recorded {
    fn next(&mut self, rank: u32, list: &mut Vec<Extent>) -> Option<Command> {
        let at = &mut self.next[rank as usize];
        let step = *self.recording.lanes[rank as usize].get(*at)?;
        *at += 1;
        list.extend_from_slice(&self.recording.extents[step.extents.0..step.extents.1]);
        if let What::File { file, operation: FileOperation::Open } = step.command.what {
            self.opened_by.insert((rank, file), step.communicator);
        }
        Some(step.command)
    }

    fn rank_count(&self) -> u32 {
        self.recording.rank_count()
    }

    fn communicators(&self) -> Vec<Vec<u32>> {
        self.recording.communicators.clone()
    }

    fn communicator_of(&self, rank: u32, file: File) -> Communicator {
        self.opened_by.get(&(rank, file)).copied().unwrap_or(WORLD)
    }
}
