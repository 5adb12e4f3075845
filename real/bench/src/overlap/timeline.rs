//! A run of the overlap benchmark as a trace: computation and I/O side by side.
//!
//! Every rank is a process. Its first thread computes and makes blocking calls; what goes on beside
//! it, in a helper thread or in the library, is drawn as a second one.

use super::plan::OverlapCase;
use crate::failure::BenchError;
use iolab_backend::Direction;
use iolab_comm::Comm;
use iolab_pattern::Access;
use iolab_trace::{Clock, Event, FileEntry, Function, Header, Origin, ProcessEntry, Trace};
use iolab_vocab::{FileId, Nanos};
use serde::{Deserialize, Serialize};
use std::path::Path;

/// Where something went on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Lane {
    /// A computation.
    Compute,
    /// A blocking call.
    Call,
    /// An operation beside the computation.
    Beside,
}

/// Something that took a while.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Span {
    lane: Lane,
    start: u64,
    end: u64,
    /// Where in the file it began, and how much it moved.
    offset: u64,
    bytes: u64,
    /// Whether the end was seen; else it was over by then.
    exact: bool,
    /// Which case of the plan; filled in when the case is over.
    case: usize,
}

impl Span {
    pub(crate) fn new(lane: Lane, time: (u64, u64), access: Option<&Access>, exact: bool) -> Span {
        let first = access.and_then(|access| access.file().first());
        Span {
            lane,
            start: time.0,
            end: time.1,
            offset: first.map_or(0, |first| first.offset),
            bytes: access.map_or(0, Access::bytes),
            exact,
            case: 0,
        }
    }

    pub(crate) fn of_case(self, case: usize) -> Span {
        Span { case, ..self }
    }

    fn event(&self, rank: usize, zero: u64, cases: &[OverlapCase]) -> Event {
        let function = match self.lane {
            Lane::Compute => Function::COMPUTE,
            Lane::Call | Lane::Beside => function(&cases[self.case]),
        };
        let event = Event {
            rank: rank as i32,
            process: rank as u32,
            thread: u32::from(self.lane == Lane::Beside),
            start: Nanos(self.start - zero),
            end: Nanos(self.end - zero),
            ..Event::of(function)
        };
        match self.lane {
            Lane::Compute => event,
            Lane::Call | Lane::Beside => Event {
                file: FileId(0),
                offset: self.offset as i64,
                length: self.bytes as i64,
                result: self.bytes as i64,
                ..event
            },
        }
    }
}

/// What carries out the operations of a case.
fn function(case: &OverlapCase) -> Function {
    let (read, write) = match case.method.name {
        "vectored" => (Function::PREADV, Function::PWRITEV),
        "uring" => (Function::IO_URING_READ, Function::IO_URING_WRITE),
        "aio" => (Function::AIO_READ, Function::AIO_WRITE),
        "independent" => (Function::MPI_FILE_READ, Function::MPI_FILE_WRITE),
        "collective" | "split" => (Function::MPI_FILE_READ_ALL, Function::MPI_FILE_WRITE_ALL),
        "nonblocking" => (Function::MPI_FILE_IREAD, Function::MPI_FILE_IWRITE),
        "nonblocking-collective" => (Function::MPI_FILE_IREAD_ALL, Function::MPI_FILE_IWRITE_ALL),
        _ => (Function::PREAD, Function::PWRITE),
    };
    if case.direction == Direction::Read { read } else { write }
}

/// The trace of all ranks' spans, on every rank.
pub(crate) fn gathered(
    comm: &dyn Comm,
    own: &[Span],
    cases: &[OverlapCase],
    target: &Path,
) -> Result<Trace, BenchError> {
    let said = serde_json::to_vec(own).unwrap_or_default();
    let mut ranks: Vec<Vec<Span>> = Vec::new();
    for text in comm.gather(&said)? {
        ranks.push(serde_json::from_slice(&text).unwrap_or_default());
    }
    Ok(trace(&ranks, cases, target))
}

fn trace(ranks: &[Vec<Span>], cases: &[OverlapCase], target: &Path) -> Trace {
    let all = || ranks.iter().flatten();
    let zero = all().map(|span| span.start).min().unwrap_or(0);
    let mut events: Vec<Event> = Vec::new();
    for (rank, spans) in ranks.iter().enumerate() {
        events.extend(spans.iter().map(|span| span.event(rank, zero, cases)));
    }
    events.sort_by_key(|event| (event.rank, event.process, event.thread, event.start));
    Trace { header: header(ranks, zero, target), events }
}

fn header(ranks: &[Vec<Span>], zero: u64, target: &Path) -> Header {
    let process = |(rank, spans): (usize, &Vec<Span>)| ProcessEntry {
        name: format!("rank {rank}"),
        rank: rank as i32,
        start_ns: spans.iter().map(|span| span.start - zero).min().unwrap_or(0),
        end_ns: spans.iter().map(|span| span.end - zero).max().unwrap_or(0),
        ending: "exited".to_owned(),
        ..ProcessEntry::default()
    };
    let mut inferred = Vec::new();
    let unseen = ranks.iter().flatten().filter(|span| !span.exact).count();
    if unseen > 0 {
        inferred.push(format!("ends of {unseen} operations: over by then, when is not known"));
    }
    Header {
        format_version: iolab_trace::FORMAT_VERSION,
        origin: Origin::Recorded,
        iolab_version: env!("CARGO_PKG_VERSION").to_owned(),
        command: std::env::args().collect(),
        clock: Clock {
            source: "monotonic".to_owned(),
            zero_monotonic_ns: zero,
            zero_unix_ns: 0,
            resolution_ns: 1,
        },
        interposer: "none".to_owned(),
        files: vec![FileEntry { path: target.display().to_string(), ..FileEntry::default() }],
        processes: ranks.iter().enumerate().map(process).collect(),
        inferred,
        ..Header::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::overlap::plan::OverlapPlan;

    #[test]
    fn io_beside_computation_is_a_thread_of_its_own_and_nothing_overlaps_within_one() {
        let plan = OverlapPlan::parse("[[test]]\nmethod='aio'\nway='native'").expect("valid");
        let mut access = Access::new();
        access.set_contiguous(4096, 100);
        let spans = vec![
            Span::new(Lane::Beside, (1000, 1900), Some(&access), false),
            Span::new(Lane::Compute, (1010, 1800), None, true),
            Span::new(Lane::Call, (2000, 2500), Some(&access), true),
            Span::new(Lane::Compute, (2500, 3000), None, true),
        ];
        let trace = trace(&[spans.clone(), spans], &plan.cases, Path::new("/scratch/file"));
        assert_eq!(trace.events.len(), 8);
        let told: Vec<_> = trace.events[..4]
            .iter()
            .map(|e| (e.thread, e.function.name(), e.start.0, e.end.0, e.moved_bytes()))
            .collect();
        assert_eq!(told[0], (0, "compute", 10, 800, 0));
        assert_eq!(told[1], (0, "aio_write", 1000, 1500, 100));
        assert_eq!(told[3], (1, "aio_write", 0, 900, 100));
        assert_eq!(trace.header.processes[1].name, "rank 1");
        assert!(trace.header.inferred[0].contains("2 operations"));
    }
}
