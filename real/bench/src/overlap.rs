//! What does non-blocking I/O gain? The overlap benchmark, after Büttner (2007).
//!
//! Two phases with the same operations and the same computation: N starts the I/O, computes, waits;
//! B does the I/O, then computes. The computation is calibrated, while I/O runs beside it, to a
//! chosen multiple of the time of one I/O. Ideal at equality is a ratio N/B of 0.5; 1 is no gain;
//! above 1 is a loss. In theory max(c, io) / (c + io).
//!
//! `plan` says what to measure, `actor` is one rank at work, `calibration` fits the computation,
//! `timeline` gathers what went on; the result, its arithmetic, its trace and its faces are
//! `iolab_report::overlap`.

mod actor;
mod calibration;
mod plan;
mod timeline;
#[cfg(test)]
mod virtual_world;

use crate::case_setup::{share, write_range};
use crate::cell::Abilities;
use crate::content::Content;
use crate::failure::{BenchError, Told, agree, told};
use crate::files::{Cleaning, TestFiles, Uses};
use crate::kernel::Kernel;
use crate::names::Name;
use crate::run::{ranks_agree, share_a_clock, warnings};
use crate::source::{Needs as SourceNeeds, Source, is_contiguous};
use crate::surroundings::{enough_room, surroundings};
use actor::{Actor, Tools};
use iolab_backend::{Arena, Direction, Needs, Opening, Paced, Threaded};
use iolab_comm::{Comm, gather_numbers, largest};
use iolab_host::tick::monotonic;
use iolab_report::bench::{Incomplete, Refused};
use iolab_report::overlap::{
    AsyncMode, CaseEntry, Load, OverlapOutcome, OverlapPoint, Place, RankSample, Reference,
    overlap_summaries, point,
};
use iolab_trace::Trace;
use std::path::Path;
use timeline::gathered;

pub use plan::{OverlapCase, OverlapPlan, SWEEP, overlap_template};

/// What is told of a run, on rank 0.
#[derive(Clone, Copy)]
pub enum OverlapProgress<'a> {
    /// It begins: the outcome with everything but points.
    Begun(&'a OverlapOutcome),
    /// A point was measured.
    Measured(&'a OverlapCase, &'a OverlapPoint),
}

/// Runs the plan on every rank. `observe` is told on rank 0 how it goes. With `draw` there is a trace
/// of the measured phases beside the outcome. A run that fails after something was measured has an
/// outcome on rank 0, which says so.
///
/// # Errors
/// The first error of any rank, on every rank.
pub fn overlap(
    plan: &OverlapPlan,
    comm: &dyn Comm,
    abilities: &Abilities,
    files: &TestFiles,
    draw: bool,
    observe: &dyn Fn(OverlapProgress),
) -> Result<(OverlapOutcome, Option<Trace>), BenchError> {
    let traces: Vec<_> = plan.cases.iter().map(|case| case.spatial.fingerprint()).collect();
    ranks_agree(&format!("{}\n{traces:?}", plan.text), comm)?;
    let _cleaning = Cleaning(Some(files).filter(|_| comm.rank().0 == 0));
    let touches = |case: &OverlapCase| case.method.keeps_data && refusal(case, abilities).is_none();
    let shared = plan.cases.iter().any(touches);
    files.make(comm, Uses { shared, ..Uses::default() })?;
    let first = comm.rank().0 == 0;
    let mut outcome = begun(plan, comm, abilities)?;
    if first {
        observe(OverlapProgress::Begun(&outcome));
    }
    let run = Run { plan, comm, files, draw, observe };
    let measured = run.all_cases(abilities, &mut outcome.points);
    match measured {
        Ok(trace) => {
            outcome.summaries = overlap_summaries(&outcome.points);
            Ok((outcome, trace))
        }
        Err(error) if !first || outcome.points.is_empty() => Err(error),
        Err(error) => {
            overlap_end_early(&mut outcome, plan, &error.to_string());
            Ok((outcome, None))
        }
    }
}

/// What a run needs everywhere.
struct Run<'a> {
    plan: &'a OverlapPlan,
    comm: &'a dyn Comm,
    files: &'a TestFiles,
    draw: bool,
    observe: &'a dyn Fn(OverlapProgress),
}

impl Run<'_> {
    fn all_cases(
        &self,
        abilities: &Abilities,
        points: &mut Vec<OverlapPoint>,
    ) -> Result<Option<Trace>, BenchError> {
        let (plan, comm) = (self.plan, self.comm);
        let mut spans = Vec::new();
        for (index, case) in plan.cases.iter().enumerate() {
            if refusal(case, abilities).is_some() {
                continue;
            }
            let mut actor = staged(plan, case, comm, self.files)?;
            actor.spans = self.draw.then(Vec::new);
            measured(&mut actor, index, points, self.observe)?;
            let drawn = actor.spans.take().unwrap_or_default();
            spans.extend(drawn.into_iter().map(|span| span.of_case(index)));
        }
        self.draw.then(|| gathered(comm, &spans, &plan.cases, &plan.target)).transpose()
    }
}

/// Why a case cannot be run here, if it cannot.
fn refusal(case: &OverlapCase, abilities: &Abilities) -> Option<String> {
    let method = case.method.name;
    match case.method.needs {
        Needs::Mpi if !abilities.mpi => Some(format!("{method} needs a start under mpiexec")),
        Needs::Uring if !abilities.uring => {
            Some(format!("{method} needs a kernel that allows io_uring"))
        }
        Needs::FileSystem => Some(format!("{method} has no non-blocking form to overlap with")),
        Needs::Platform => Some(format!("{method} is predicted, and takes no time to overlap")),
        _ if case.way == AsyncMode::Native && !case.method.queues => {
            Some(format!("{method} has no non-blocking form of its own; take --way thread"))
        }
        _ if case.direct && !case.method.direct => {
            Some(format!("{method} cannot go around the page cache"))
        }
        _ => None,
    }
}

fn refused_case(case: &OverlapCase, reason: String) -> Refused {
    Refused {
        test: case.test.clone(),
        spatial: case.spatial.text(),
        temporal: case.direction_name().to_owned(),
        method: case.method.name.to_owned(),
        reason,
    }
}

/// Everything of a case that is not timed: memory, back end, an open and filled file.
fn staged<'a>(
    plan: &'a OverlapPlan,
    case: &'a OverlapCase,
    comm: &'a dyn Comm,
    files: &TestFiles,
) -> Result<Actor<'a>, BenchError> {
    let tools = tools(plan, case, comm, files);
    agree(comm, tools.as_ref().map(drop).map_err(Clone::clone))?;
    let Ok(mut tools) = tools else { unreachable!("agreed on by all ranks") };
    let content = Content::new(plan.seed, 0, 0);
    let rank = comm.rank();
    let Tools { source, pattern, backend, .. } = &mut tools;
    source.fill(pattern.as_ref(), rank, content, backend.arena());
    let scattered = !is_contiguous(tools.pattern.as_ref(), rank);
    let noncontiguous = largest(comm, scattered.into())? > 0;
    let reads = case.direction == Direction::Read && case.method.keeps_data;
    if reads && !files.existing() {
        agree(comm, prepared(plan, comm, files, content, tools.pattern.file_bytes()))?;
    }
    comm.barrier()?;
    let writes = case.direction == Direction::Write;
    let opening = Opening {
        path: plan.target.clone(),
        write: writes,
        truncate: writes && !files.existing(),
        create: false,
        exclusive: false,
        identity: files.identity(Name::Shared),
        held: None,
        direct: case.direct,
        base: 0,
        hints: case.hints.clone(),
        shared: true,
        view: case.view.then(|| tools.pattern.whole(rank)).flatten(),
        noncontiguous,
    };
    let opened = tools.backend.open(&opening, comm).map_err(|error| told(&error));
    agree(comm, opened)?;
    let views = case.method.needs == Needs::Mpi && noncontiguous;
    let mut actor = Actor::new(plan, case, comm, tools, case.method.collective || views);
    agree(comm, actor.fill())?;
    Ok(actor)
}

fn tools(
    plan: &OverlapPlan,
    case: &OverlapCase,
    comm: &dyn Comm,
    files: &TestFiles,
) -> Result<Tools, Told> {
    let pattern =
        case.spatial.make(comm.size(), plan.seed).map_err(|error| (error.message, error.hint))?;
    if case.method.keeps_data && case.load == Load::Pattern && files.existing() {
        files.hold_enough(Name::Shared, pattern.file_bytes())?;
    } else if case.method.keeps_data && case.load == Load::Pattern {
        enough_room(&plan.target, &case.spatial.text(), pattern.file_bytes())?;
    }
    if pattern.operations(comm.rank()) == 0 {
        let hint = "make the pattern larger".to_owned();
        return Err(("the pattern gives this rank no operation".to_owned(), hint));
    }
    let writes = case.direction == Direction::Write;
    let source = Source::plan(
        pattern.as_ref(),
        comm.rank(),
        SourceNeeds { writes, data: case.method.keeps_data, exact: false, depth: 1 },
    )
    .map_err(|why| (why, "make the pattern smaller".to_owned()))?;
    let arena = Arena::new(source.bytes);
    let mut backend = (case.method.make)(arena, 1).map_err(|error| told(&error))?;
    if let Some(rate) = case.throttle {
        backend = Box::new(Paced::new(backend, rate, case.method.queues));
    }
    if case.way == AsyncMode::Thread {
        backend = Box::new(Threaded::new(backend));
    }
    let (computation, clock) = (Box::new(Kernel::default()), Box::new(monotonic));
    Ok(Tools { pattern, backend, source, computation, clock })
}

/// Writes what will be read, every rank its share.
fn prepared(
    plan: &OverlapPlan,
    comm: &dyn Comm,
    files: &TestFiles,
    content: Content,
    bytes: u64,
) -> Result<(), Told> {
    let range = share(bytes, u64::from(comm.rank().0), u64::from(comm.size()));
    write_range(&plan.target, files.identity(Name::Shared), content, 0, range).map_err(|error| {
        let message = format!("cannot prepare {}: {error}", plan.target.display());
        (message, "choose a target that you may write to, with enough room".to_owned())
    })
}

/// All points of a case.
fn measured(
    actor: &mut Actor,
    index: usize,
    points: &mut Vec<OverlapPoint>,
    observe: &dyn Fn(OverlapProgress),
) -> Result<(), BenchError> {
    let (plan, case) = (actor.plan, actor.case);
    let one_clock = share_a_clock(actor.comm)?;
    for &wanted in &case.ratios {
        for repetition in 0..plan.repetitions {
            let own = actor.sample(wanted)?;
            let ranks = exchanged(actor.comm, &own)?;
            let has_io = case.load == Load::Pattern;
            let (operations, sees_ends) = (plan.count, case.sees_ends());
            let place =
                Place { case: index, wanted, repetition, operations, has_io, sees_ends, one_clock };
            let point = point(place, &ranks);
            if actor.comm.rank().0 == 0 {
                observe(OverlapProgress::Measured(case, &point));
            }
            points.push(point);
        }
    }
    let closed = actor.tools.backend.close().map_err(|error| told(&error));
    agree(actor.comm, closed)
}

/// What every rank measured, on every rank; the first error of any is everyone's.
fn exchanged(comm: &dyn Comm, own: &RankSample) -> Result<Vec<RankSample>, BenchError> {
    let said = serde_json::to_vec(own).unwrap_or_default();
    let mut ranks = Vec::new();
    for (rank, text) in comm.gather(&said)?.iter().enumerate() {
        let sample: RankSample = serde_json::from_slice(text).unwrap_or_default();
        if let Some((message, hint)) = sample.error {
            return Err(BenchError::OnRank { rank: rank as u32, message, hint });
        }
        ranks.push(sample);
    }
    Ok(ranks)
}

fn case_entry(plan: &OverlapPlan, case: &OverlapCase) -> CaseEntry {
    CaseEntry {
        test: case.test.clone(),
        spatial: case.spatial.text(),
        direction: case.direction_name().to_owned(),
        method: case.method.name.to_owned(),
        way: case.way,
        poll: case.poll,
        throttle: case.throttle,
        direct: case.direct,
        load: case.load,
        title: plan.title_of(case),
    }
}

/// The outcome without points.
fn begun(
    plan: &OverlapPlan,
    comm: &dyn Comm,
    abilities: &Abilities,
) -> Result<OverlapOutcome, BenchError> {
    let refused = plan.cases.iter().filter_map(|case| {
        let reason = refusal(case, abilities)?;
        Some(refused_case(case, reason))
    });
    let mut warnings = warnings(comm);
    warnings.extend(binding_warning(plan, comm)?);
    Ok(OverlapOutcome {
        format: "iolab-overlap".to_owned(),
        format_version: 2,
        version: env!("CARGO_PKG_VERSION").to_owned(),
        command: std::env::args_os().map(|word| word.to_string_lossy().into_owned()).collect(),
        plan: plan.text.clone(),
        ranks: comm.size(),
        communication: comm.kind().to_owned(),
        surroundings: surroundings(Path::new(&plan.target)),
        reference: Reference::published(),
        warnings,
        cases: plan.cases.iter().map(|case| case_entry(plan, case)).collect(),
        summaries: Vec::new(),
        points: Vec::new(),
        refused: refused.collect(),
        incomplete: None,
    })
}

/// The run has ended before its plan: says why and which points are missing, and sums up the rest.
pub fn overlap_end_early(outcome: &mut OverlapOutcome, plan: &OverlapPlan, reason: &str) {
    let mut missing = Vec::new();
    for (index, case) in plan.cases.iter().enumerate() {
        let refused = |one: &Refused| {
            one.test == case.test
                && one.spatial == case.spatial.text()
                && one.temporal == case.direction_name()
                && one.method == case.method.name
        };
        let wanted = case.ratios.len() * plan.repetitions as usize;
        let measured = outcome.points.iter().filter(|point| point.case == index).count();
        if measured < wanted && !outcome.refused.iter().any(refused) {
            let rest = wanted - measured;
            missing.push(format!("{}: {rest} of {wanted} points", case.title()));
        }
    }
    outcome.incomplete = Some(Incomplete { reason: reason.to_owned(), missing });
    outcome.summaries = overlap_summaries(&outcome.points);
}

/// A launcher that binds a rank to one processor leaves none for what is to go on beside it.
fn binding_warning(plan: &OverlapPlan, comm: &dyn Comm) -> Result<Option<String>, BenchError> {
    let own = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    let all = gather_numbers(comm, own as u64)?;
    let bound = all.iter().position(|&processors| processors < 2);
    let helped = plan.cases.iter().any(OverlapCase::has_helper);
    Ok(bound.filter(|_| helped).map(|rank| {
        format!(
            "rank {rank} may use one processor only: its computation and the thread that does its \
             I/O take turns there (Open MPI: mpiexec --bind-to none)"
        )
    }))
}
