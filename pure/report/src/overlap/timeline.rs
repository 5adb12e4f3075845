//! A run of the overlap benchmark as a trace: computation and I/O side by side.
//!
//! Every rank is a process. Its first thread computes and makes blocking calls; what goes on beside
//! it, in a helper thread or in the library, is drawn as a second one.

use iolab_trace::{Clock, Event, FileEntry, Function, Header, Origin, ProcessEntry, Trace};
use iolab_vocab::{Direction, FileId, Nanos};
use serde::{Deserialize, Serialize};
use std::path::Path;

/// Where something went on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Lane {
    /// A computation.
    Compute,
    /// A blocking call.
    Call,
    /// An operation beside the computation.
    Beside,
}

/// Something that took a while.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Span {
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
    /// From one stamp to another. `place` is where in the file an operation began, and how much it moved;
    /// `exact` says that its end was seen.
    pub fn new(
        lane: Lane,
        (start, end): (u64, u64),
        place: Option<(u64, u64)>,
        exact: bool,
    ) -> Span {
        let (offset, bytes) = place.unwrap_or_default();
        Span { lane, start, end, offset, bytes, exact, case: 0 }
    }

    /// The same, of this case of the plan.
    pub fn of_case(self, case: usize) -> Span {
        Span { case, ..self }
    }

    fn event(&self, rank: usize, zero: u64, functions: &[Function]) -> Event {
        let function = match self.lane {
            Lane::Compute => Function::COMPUTE,
            Lane::Call | Lane::Beside => functions[self.case],
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

/// What carries out the operations of an access method.
pub fn function_of(method: &str, direction: Direction) -> Function {
    let (read, write) = match method {
        "vectored" => (Function::PREADV, Function::PWRITEV),
        "uring" => (Function::IO_URING_READ, Function::IO_URING_WRITE),
        "aio" => (Function::AIO_READ, Function::AIO_WRITE),
        "independent" => (Function::MPI_FILE_READ, Function::MPI_FILE_WRITE),
        "collective" | "split" => (Function::MPI_FILE_READ_ALL, Function::MPI_FILE_WRITE_ALL),
        "nonblocking" => (Function::MPI_FILE_IREAD, Function::MPI_FILE_IWRITE),
        "nonblocking-collective" => (Function::MPI_FILE_IREAD_ALL, Function::MPI_FILE_IWRITE_ALL),
        _ => (Function::PREAD, Function::PWRITE),
    };
    if direction == Direction::Read { read } else { write }
}

/// What went on on every rank, as a trace. `functions` has what carried out the operations of each case of the
/// plan, `target` is their file, `command` the benchmark's.
pub fn timeline(
    ranks: &[Vec<Span>],
    functions: &[Function],
    target: &Path,
    command: Vec<String>,
) -> Trace {
    let all = || ranks.iter().flatten();
    let zero = all().map(|span| span.start).min().unwrap_or(0);
    let mut events: Vec<Event> = Vec::new();
    for (rank, spans) in ranks.iter().enumerate() {
        events.extend(spans.iter().map(|span| span.event(rank, zero, functions)));
    }
    events.sort_by_key(|event| (event.rank, event.process, event.thread, event.start));
    Trace { header: Header { command, ..header(ranks, zero, target) }, events, ..Trace::default() }
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
        clock: Clock {
            source: "monotonic".to_owned(),
            zero_monotonic_ns: zero,
            resolution_ns: 1,
            ..Clock::default()
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

    #[test]
    fn io_beside_computation_is_a_thread_of_its_own_and_nothing_overlaps_within_one() {
        let place = Some((4096, 100));
        let functions = [function_of("aio", Direction::Write)];
        let spans = vec![
            Span::new(Lane::Beside, (1000, 1900), place, false),
            Span::new(Lane::Compute, (1010, 1800), None, true),
            Span::new(Lane::Call, (2000, 2500), place, true),
            Span::new(Lane::Compute, (2500, 3000), None, true),
        ];
        let trace =
            timeline(&[spans.clone(), spans], &functions, Path::new("/scratch/file"), Vec::new());
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
