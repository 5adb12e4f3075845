//! A recorded program is simulated, and what the simulator records of it has the same calls: what
//! the importer takes a function for, the recorder calls by that function again.

use iolab_sim::platform::Platform;
use iolab_sim::workload::recorded::Recording;
use iolab_sim::workload::{Settings, simulate};
use iolab_trace::{Event, FileEntry, Function, Header, ProcessEntry, Trace};
use iolab_vocab::{FileId, Nanos};
use std::ops::ControlFlow;

const BYTES: i64 = 3000;

/// A partner and a tag in one field.
fn partner(rank: i64, tag: i64) -> i64 {
    rank << 32 | tag
}

/// Of both ranks: function, offset, length, argument.
type Call = (Function, i64, i64, i64);

fn file_calls(rank: i64) -> Vec<Call> {
    let at = rank * BYTES;
    vec![
        (Function::MPI_FILE_OPEN, 0, 0, 9),
        (Function::MPI_FILE_WRITE, at, BYTES, -1),
        (Function::MPI_FILE_WRITE_ALL, at, BYTES, -1),
        (Function::MPI_FILE_IWRITE, at, BYTES, 1),
        (Function::MPI_WAIT, -1, -1, 1),
        (Function::MPI_FILE_SYNC, -1, -1, -1),
        (Function::MPI_FILE_READ, at, BYTES, -1),
        (Function::MPI_FILE_READ_ALL, at, BYTES, -1),
        (Function::MPI_FILE_IREAD, at, BYTES, 2),
        (Function::MPI_WAIT, -1, -1, 2),
        (Function::MPI_FILE_CLOSE, -1, -1, -1),
    ]
}

fn collective_calls() -> Vec<Call> {
    vec![
        (Function::MPI_BARRIER, -1, 0, -1),
        (Function::MPI_BCAST, -1, BYTES, 1),
        (Function::MPI_REDUCE, -1, BYTES, 0),
        (Function::MPI_ALLREDUCE, -1, BYTES, -1),
        (Function::MPI_GATHER, -1, BYTES, 0),
        (Function::MPI_SCATTER, -1, BYTES, 1),
        (Function::MPI_ALLGATHER, -1, BYTES, -1),
        (Function::MPI_ALLTOALL, -1, BYTES, -1),
    ]
}

/// Rank 0 sends where rank 1 receives.
fn messages(rank: i64) -> Vec<Call> {
    let (other, tag) = (1 - rank, 7);
    let (to, from) = (partner(other, tag), partner(other, tag));
    let both = (Function::MPI_SENDRECV, from, BYTES, to);
    match rank {
        0 => vec![
            (Function::MPI_SEND, -1, BYTES, to),
            (Function::MPI_ISEND, 3, BYTES, to),
            (Function::MPI_WAIT, -1, -1, 3),
            both,
        ],
        _ => vec![
            (Function::MPI_RECV, from, -1, -1),
            (Function::MPI_IRECV, from, -1, 3),
            (Function::MPI_WAIT, -1, -1, 3),
            both,
        ],
    }
}

fn calls(rank: i64) -> Vec<Call> {
    [file_calls(rank), collective_calls(), messages(rank)].concat()
}

fn trace() -> Trace {
    let entry =
        |rank: i32| ProcessEntry { name: format!("rank {rank}"), rank, ..Default::default() };
    let header = Header {
        processes: vec![entry(0), entry(1)],
        files: vec![FileEntry { path: "/data".to_owned(), ..Default::default() }],
        communicators: vec![vec![0, 1]],
        ..Default::default()
    };
    let row = |rank: i64, index: usize, (function, offset, length, argument): Call| {
        let is_wait = function == Function::MPI_WAIT;
        let on_file = function.name().starts_with("MPI_File");
        Event {
            rank: rank as i32,
            process: rank as u32,
            file: if on_file { FileId(0) } else { FileId::NONE },
            fd: if on_file || is_wait { -1 } else { 0 },
            offset,
            length,
            argument,
            start: Nanos(index as u64 * 1000),
            end: Nanos(index as u64 * 1000 + 1000),
            ..Event::of(function)
        }
    };
    let rows = |rank| calls(rank).into_iter().enumerate().map(move |(i, call)| row(rank, i, call));
    Trace { header, events: rows(0).chain(rows(1)).collect() }
}

#[test]
fn every_call_that_has_a_command_comes_out_as_the_function_it_was() {
    let recording = Recording::of(&trace()).unwrap();
    let settings = Settings { record: true, ..Settings::default() };
    let platform = Platform::preset("classic-hdd").unwrap();
    let done = simulate(recording.job(), &platform, &settings, &mut |_| ControlFlow::Continue(()));
    let simulated = done.unwrap().trace.unwrap();
    for rank in 0..2_i64 {
        let of_rank = simulated.events.iter().filter(|event| i64::from(event.rank) == rank);
        let found: Vec<_> = of_rank
            .filter(|event| event.function != Function::COMPUTE)
            .map(|event| (event.function.name(), event.length))
            .collect();
        // A file begins empty and closes with no length; a wait and a barrier have none.
        let expected: Vec<_> = calls(rank)
            .iter()
            .map(|&(function, _, length, _)| {
                (function.name(), if length > 0 { length } else { -1 })
            })
            .collect();
        assert_eq!(found, expected, "rank {rank}");
    }
}
