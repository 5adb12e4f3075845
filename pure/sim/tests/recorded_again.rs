//! A recorded program is simulated, and what the simulator records of it has the same calls: what
//! the importer takes a function for, the recorder calls by that function again.

use iolab_sim::cluster::Order;
use iolab_sim::platform::Platform;
use iolab_sim::scenario::Scenario;
use iolab_sim::workload::recorded::{self, PosixCalls, Recording};
use iolab_sim::workload::{Job, Outcome, Settings, TEMPLATE, Workload, prepare, simulate};
use iolab_trace::{Event, FileEntry, Function, Header, ProcessEntry, Trace};
use iolab_vocab::{FileId, Nanos, Refusal};
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
        (Function::MPI_FILE_SET_SIZE, -1, 2 * BYTES, -1),
        (Function::MPI_FILE_READ, at, BYTES, -1),
        (Function::MPI_FILE_READ_ALL, at, BYTES, -1),
        (Function::MPI_FILE_IREAD, at, BYTES, 2),
        (Function::MPI_WAIT, -1, -1, 2),
        (Function::MPI_FILE_CLOSE, -1, -1, -1),
    ]
}

fn collective_calls() -> Vec<Call> {
    vec![
        (Function::MPI_BARRIER, -1, -1, -1),
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
    Trace { header, events: rows(0).chain(rows(1)).collect(), ..Trace::default() }
}

#[test]
fn every_call_that_has_a_command_comes_out_as_the_function_it_was() {
    let recording = Recording::of(&trace()).unwrap();
    let settings = Settings { record: true, ..Settings::default() };
    let platform = Platform::preset("classic-hdd").unwrap();
    let done = simulate(recording.job(), &platform, &settings, &mut |_| ControlFlow::Continue(()));
    let simulated = done.unwrap().trace.unwrap();
    assert_eq!(simulated.header.host, platform.name, "the host of a simulation is its platform");
    for rank in 0..2_i64 {
        let of_rank = simulated.events.iter().filter(|event| i64::from(event.rank) == rank);
        let found: Vec<Call> = of_rank
            .filter(|event| event.function != Function::COMPUTE)
            .map(|event| (event.function, event.offset, event.length, event.argument))
            .collect();
        // The simulator has no modes.
        let modeless = |call: Call| match call.0 {
            Function::MPI_FILE_OPEN => (call.0, call.1, call.2, -1),
            _ => call,
        };
        let expected: Vec<Call> = calls(rank).into_iter().map(modeless).collect();
        assert_eq!(found, expected, "rank {rank}");
    }
}

fn watchless(job: Job, platform: &Platform, settings: &Settings) -> Result<Outcome, Refusal> {
    simulate(job, platform, settings, &mut |_| ControlFlow::Continue(()))
}

/// Simulates, and simulates again what the trace of that says: nothing may differ.
fn same_again(make: &dyn Fn() -> Job, settings: &Settings, seen: &str) {
    let platform = Platform::preset("classic-hdd").unwrap();
    let settings = Settings { record: true, ..settings.clone() };
    let first = watchless(make(), &platform, &settings).unwrap();
    let trace = first.trace.clone().unwrap();
    let mut job = Recording::of(&trace).unwrap().job();
    // A trace knows the size of a file from its opening only.
    let sizes = make().files;
    let opened = trace.events.iter().filter(|event| event.function == Function::MPI_FILE_OPEN);
    let opened: Vec<_> = opened.filter_map(|event| event.file.index()).collect();
    for (index, file) in job.files.iter_mut().enumerate() {
        assert!(!opened.contains(&index) || *file == sizes[index], "{seen}: {file:?}");
        file.1 = sizes[index].1;
    }
    let again = watchless(job, &platform, &settings).unwrap();
    assert_eq!((again.end, again.event_hash), (first.end, first.event_hash), "{seen}");
    let trace_again = again.trace.unwrap();
    assert_eq!(trace_again.events.len(), trace.events.len(), "{seen}");
    let rows = named(&trace).into_iter().zip(named(&trace_again));
    for (index, (row, again)) in rows.enumerate() {
        assert_eq!(row, again, "{seen}: row {index}");
    }
}

/// The rows, with the members of their communicators: numbers are given in the order of first use.
fn named(trace: &Trace) -> Vec<(Event, Option<&Vec<u32>>)> {
    let name = |event: &Event| {
        let (at, rest) = match event.function {
            Function::MPI_FILE_OPEN => (event.offset, Event { offset: -1, ..*event }),
            _ => (event.fd.into(), Event { fd: -1, ..*event }),
        };
        (rest, usize::try_from(at).ok().and_then(|at| trace.header.communicators.get(at)))
    };
    trace.events.iter().map(name).collect()
}

const EVERYTHING: &str = r#"
files = [{ name = "shared", size = "2m" }, { name = "own", per_rank = true }]
[[applications]]
ranks = 4
start = "3ms"
communicators = [{ name = "turned", ranks = [2, 0] }, { name = "odd", ranks = "odd" }]
[[applications.phases]]
commands = [
    { compute = 1500 },
    { open = "own" },
    { open = "shared" },
    { write = "own", bytes = "100k", start = "data" },
    { read_all = "shared", pattern = "strided:strip=1k,stripes=30", per_call = "all" },
    { write_all = "shared", pattern = "strided:strip=1k,stripes=30", per_call = "all", start = "all" },
    { compute = "2ms" },
    { wait = "all" },
    { wait = "data" },
    { send_to = "+1", receive_from = "-1", bytes = "300k", tag = 4 },
    { receive_from = "any", start = "message", only = "first" },
    { send_to = 0, bytes = 10, only = [3] },
    { wait = "message", only = "first" },
    { send_to = 1, bytes = 20, within = "turned", only = [2] },
    { receive_from = 0, within = "turned", only = [0] },
    { broadcast = "1m", root = 1, within = "turned" },
    { barrier = true, within = "odd" },
    { reduce = 8, root = 2 },
    { allreduce = 8 },
    { gather = "4k", root = 1 },
    { scatter = "4k" },
    { allgather = 64 },
    { alltoall = 128 },
    { barrier = true },
    { sync = "shared" },
    { set_size = "shared", bytes = "5100k" },
    { read = "shared", bytes = "64k", offset = "5m" },
    { close = "shared" },
    { close = "own" },
    { open = "shared" },
    { read = "shared", pattern = "random-strided:rounds=12" },
    { close = "shared" },
]
"#;

#[test]
fn a_simulated_trace_simulated_again_is_the_same_run() {
    let platform = Platform::preset("classic-hdd").unwrap();
    let texts = [
        EVERYTHING,
        TEMPLATE,
        include_str!("../../../samples/workloads/checkpoint.toml"),
        include_str!("../../../samples/workloads/collective.toml"),
    ];
    let mut settings = Settings::default();
    settings.collectives.choose("barrier=dissemination").unwrap();
    for text in texts {
        let workload = Workload::parse(text).unwrap();
        let make = || prepare(&workload, &platform).unwrap();
        same_again(&make, &Settings::default(), &workload.name);
        let published = Settings { order: Order::Published, ..Settings::default() };
        same_again(&make, &published, &workload.name);
        same_again(&make, &settings, &workload.name);
    }
}

#[test]
fn accesses_without_an_offset_are_counted_and_go_to_byte_0() {
    let noted = |trace: &Trace| {
        let notes = Recording::of(trace).unwrap().notes().to_vec();
        notes.into_iter().filter(|note| note.contains("no offset")).collect::<Vec<_>>()
    };
    let mut trace = trace();
    assert_eq!(noted(&trace), [""; 0]);
    let notes = Recording::of(&trace).unwrap().notes().join("\n");
    assert!(!notes.contains("past MPI-IO"), "there are none: {notes}");
    for event in trace.events.iter_mut().filter(|it| it.function == Function::MPI_FILE_WRITE) {
        event.offset = -1;
    }
    assert_eq!(noted(&trace), ["2 accesses have no offset in the trace and go to byte 0"]);
}

/// Rank 0 uses a file past MPI-IO, beside its barrier.
fn past_mpi(opened_bytes: i64) -> Trace {
    let calls = [
        (Function::OPEN, -1, opened_bytes, 0, 3),
        (Function::PWRITE, 0, 3000, -1, 3000),
        (Function::PREAD, 1000, 500, -1, 500),
        (Function::PREAD, 9000, 500, -1, 0),
        (Function::FSYNC, -1, -1, -1, 0),
        (Function::CLOSE, -1, -1, -1, 0),
    ];
    let mut trace = trace();
    trace.events.retain(|event| event.function == Function::MPI_BARRIER);
    trace
        .events
        .iter_mut()
        .for_each(|event| (event.start, event.end) = (Nanos(90_000), Nanos(91_000)));
    let rows =
        calls.into_iter().enumerate().map(|(at, (function, offset, length, argument, result))| {
            Event {
                rank: 0,
                file: FileId(0),
                fd: 3,
                offset,
                length,
                argument,
                result,
                start: Nanos(at as u64 * 1000),
                end: Nanos(at as u64 * 1000 + 500),
                ..Event::of(function)
            }
        });
    trace.events.splice(0..0, rows);
    trace
}

#[test]
fn calls_past_mpi_go_to_the_servers_where_that_is_asked_for() {
    let moved = |trace: &Trace, posix| {
        let job = Recording::with(trace, posix).unwrap().job();
        let platform = Platform::preset("classic-hdd").unwrap();
        let outcome = watchless(job, &platform, &Settings::default()).unwrap();
        let totals = outcome.servers.iter().map(|server| server.totals);
        totals.fold((0, 0), |sum, one| {
            (sum.0 + one.device.read_bytes, sum.1 + one.device.written_bytes)
        })
    };
    assert_eq!(moved(&past_mpi(4000), PosixCalls::Commands), (500, 3000));
    assert_eq!(moved(&past_mpi(4000), PosixCalls::Compute), (0, 0));
    // A pipe or a terminal has no size, and no server.
    assert_eq!(moved(&past_mpi(-1), PosixCalls::Commands), (0, 0));
}

#[test]
fn a_simulated_trace_that_lacks_rows_or_has_several_programs_is_refused() {
    let platform = Platform::preset("classic-hdd").unwrap();
    let settings = Settings { record: true, ..Settings::default() };
    let workload = Workload::parse(EVERYTHING).unwrap();
    let job = prepare(&workload, &platform).unwrap();
    let whole = watchless(job, &platform, &settings).unwrap().trace.unwrap();
    let mut cut = whole.clone();
    cut.header.losses.lost_calls.insert("row limit".to_owned(), 7);
    let mut two = whole;
    two.header.command.push("another".to_owned());
    let message = |trace| Recording::of(trace).unwrap_err().message;
    assert_eq!(message(&cut), "7 rows of this simulated trace were not kept");
    assert_eq!(message(&two), "2 applications were simulated together in this trace");
}

/// Again on the platform named, from rows in the order a trace file has them, and in that of files of
/// before, which put the longer one of two that begin at once first.
fn same_from_file(text: &str, platform: &str, faults: Option<&str>) {
    let platform = Platform::preset(platform).unwrap();
    let faults = faults.map(|text| Scenario::parse(text).unwrap());
    let settings = Settings { record: true, faults, ..Settings::default() };
    let workload = Workload::parse(text).unwrap();
    let first = watchless(prepare(&workload, &platform).unwrap(), &platform, &settings).unwrap();
    let mut trace = first.trace.unwrap();
    assert!(recorded::has_mpi(&trace), "{text}");
    let mut old = trace.clone();
    old.events.sort_by_key(|row| (row.process, row.start, std::cmp::Reverse(row.end)));
    iolab_trace::sort(&mut trace.events);
    for trace in [trace, old] {
        let again = watchless(Recording::of(&trace).unwrap().job(), &platform, &settings).unwrap();
        assert_eq!((again.end, again.event_hash), (first.end, first.event_hash), "{text}");
    }
}

fn ranks(count: u32, commands: &str) -> String {
    format!("[[applications]]\nranks = {count}\n[[applications.phases]]\ncommands = [{commands}]")
}

#[test]
fn commands_that_begin_in_the_same_nanosecond_keep_their_order() {
    let commands = "{ compute = '1ms', only = [1] }, { barrier = true }, { allreduce = 8 }";
    same_from_file(&ranks(2, commands), "nvme", None);
}

#[test]
fn parts_of_an_instruction_are_kept() {
    for work in ["1.23456", "'1.2345678ms'", "'502us'", "'4068us'", "0.1", "1e15", "'0.3ns'"] {
        let commands =
            format!("{{ barrier = true }}, {{ compute = {work} }}, {{ barrier = true }}");
        same_from_file(&ranks(1, &commands), "classic-hdd", None);
        same_from_file(&ranks(2, &commands), "nvme", None);
    }
}

#[test]
fn a_program_that_only_computes_is_one() {
    same_from_file(&ranks(3, "{ compute = '5ms' }"), "classic-hdd", None);
}

#[test]
fn what_a_crashed_client_was_at_is_there() {
    let files = "files = [{ name = 'f', per_rank = true }]\n";
    let commands = "{ open = 'f' }, { write = 'f', bytes = '4m', calls = 4 }, { close = 'f' }";
    let crash = "[[faults]]\nkind = 'crashed-client'\nclient = 'client1'\nat = 0.01";
    same_from_file(&(files.to_owned() + &ranks(2, commands)), "classic-hdd", Some(crash));
}

#[test]
fn rows_of_ranks_that_are_not_there_are_refused() {
    let mut trace = trace();
    trace.events[0] = Event { rank: 9, ..Event::of(Function::COMPUTE) };
    let error = Recording::of(&trace).unwrap_err();
    assert_eq!(error.message, "rank 9 computes and is no process of the trace");
}
