//! Any rows that a trace file can hold: whoever reads them explains, exports and simulates them.

use crate::table::Numbers;
use crate::words::refused;
use crate::{Target, kept};
use iolab_policy::insitu::StrategySpec;
use iolab_report::{Analysis, csv, report_page, text};
use iolab_sim::guest::{self, predict};
use iolab_sim::platform::Platform;
use iolab_sim::workload::recorded::{PosixCalls, Recording};
use iolab_sim::workload::{Settings, simulate};
use iolab_trace::function::TABLE;
use iolab_trace::{Event, FileEntry, Function, Header, ProcessEntry, Trace, export};
use iolab_vocab::{FileId, Nanos};
use std::ops::ControlFlow;
use std::sync::LazyLock;

const FILES: u32 = 3;
const PROCESSES: u32 = 3;
const ROWS: usize = 60;
/// What is run again ends before this, and moves at most so much at once.
const LONGEST: Nanos = Nanos(1_000_000_000);
const BYTES_MAX: i64 = 1 << 24;

pub(crate) const EVENTS: Target = Target {
    name: "events",
    seeds: || {
        let rows = |codes: &[u8]| -> Vec<u8> {
            codes.iter().zip(0..).flat_map(|(&code, at)| row(code, at)).collect()
        };
        let every: Vec<u8> = (0..TABLE.len() as u8).collect();
        every.chunks(12).map(rows).collect()
    },
    bytes_max: 1_200,
    run: |bytes| {
        let trace = any_trace(bytes);
        // The writer refuses parents that are their own.
        if iolab_iot::write(&trace, Vec::new()).is_ok() {
            kept::keeps(&trace);
        }
        explain(&trace);
        join(&[trace.header.clone(), trace.header]);
    },
};

/// The same rows as a program of the simulator.
pub(crate) const PROGRAM_OF_EVENTS: Target = Target {
    name: "recorded-program",
    seeds: || (EVENTS.seeds)(),
    bytes_max: 1_200,
    run: |bytes| run_again(&any_trace(bytes)),
};

/// The bytes of a row as `any_trace` takes them.
fn row(code: u8, at: u8) -> Vec<u8> {
    let number = |value: u8| value + 8;
    let place = [at % 3, 0, at % 2, number(3)];
    let values = [number(at * 4), number(16), number(0), number(at * 2), number(1), number(16)];
    [&[code][..], &place, &values, &[number(0)]].concat()
}

fn any_trace(bytes: &[u8]) -> Trace {
    let mut numbers = Numbers(bytes);
    let mut events = Vec::new();
    while !numbers.is_empty() && events.len() < ROWS {
        events.push(any_event(&mut numbers));
    }
    // As the reader of trace files has it.
    let rows = events.len() as i64;
    events.iter_mut().for_each(|event| event.parent = event.parent.clamp(-1, rows - 1));
    let file = |name: &str| FileEntry { path: format!("/data/{name}"), ..FileEntry::default() };
    let process = |rank: i32| ProcessEntry {
        rank,
        pid: 100 + rank.unsigned_abs(),
        end_ns: 1_000,
        ..ProcessEntry::default()
    };
    let header = Header {
        format_version: 1,
        files: ["a", "b", "c"].map(file).into(),
        processes: [0, 1, -1].map(process).into(),
        communicators: vec![vec![0, 1], vec![1]],
        ..Header::default()
    };
    Trace { header, events, ..Trace::default() }
}

fn any_event(numbers: &mut Numbers) -> Event {
    let function = match numbers.byte() {
        known if usize::from(known) < TABLE.len() => TABLE[usize::from(known)].function,
        other => Function(u16::from(other)),
    };
    let process = u32::from(numbers.byte()) % PROCESSES;
    let thread = u32::from(numbers.byte() % 3);
    let file = match u32::from(numbers.byte()) {
        file @ 0..FILES => FileId(file),
        _ => FileId::NONE,
    };
    let fd = numbers.number() as i32;
    let [offset, length, argument] = std::array::from_fn(|_| numbers.number());
    let start = numbers.number() as u64;
    let end = start.saturating_add(numbers.number() as u64);
    Event {
        rank: [0, 1, -1][process as usize],
        process,
        thread,
        file,
        fd,
        offset,
        length,
        argument,
        start: Nanos(start),
        end: Nanos(end),
        result: numbers.number(),
        parent: numbers.number(),
        ..Event::of(function)
    }
}

/// Everything that says something about a trace.
pub(crate) fn explain(trace: &Trace) {
    let mut analysis = Analysis::new(trace.header.clone());
    trace.events.iter().for_each(|event| analysis.observe(event));
    let report = analysis.finish();
    serde_json::to_string(&report).expect("JSON");
    let _ = (
        csv::files(&report),
        text::write(&report, text::Style { colour: true, view: Some("iolab view run.iot") }),
    );
    assert!(!report_page(&report, trace).is_empty());
    let mut out = Vec::new();
    export::csv(&trace.header, trace.events.iter().copied(), &mut out).expect("memory");
    export::dxt(trace, &mut out).expect("memory");
    out.clear();
    let rows = || trace.events.iter().copied();
    export::chrome(&trace.header, &trace.causes, rows, &mut out).expect("memory");
    serde_json::from_slice::<serde_json::Value>(&out).expect("JSON");
}

/// Headers as parts of one job, each with one row.
pub(crate) fn join(parts: &[Header]) {
    let (header, seats) = iolab_trace::join::headers(parts);
    let mut first_row = 0;
    for (seat, part) in seats.iter().zip(parts) {
        if !part.processes.is_empty() {
            let event = Event { file: FileId(0), ..Event::of(Function::MPI_FILE_OPEN) };
            let carried = seat.carry(&event, first_row);
            assert!((carried.process as usize) < header.processes.len());
            first_row += 1;
        }
    }
}

static CLUSTER: LazyLock<Platform> =
    LazyLock::new(|| Platform::preset("classic-hdd").expect("a preset"));
static LOCAL: LazyLock<Platform> =
    LazyLock::new(|| Platform::preset("local-tmpfs").expect("a preset"));
static STRATEGIES: LazyLock<Vec<StrategySpec>> = LazyLock::new(|| {
    StrategySpec::parse_all("fsync-relax:every=1ms + write-back").expect("strategies")
});

/// The trace as a program of the simulator, on a cluster and on one machine.
fn run_again(trace: &Trace) {
    // A transfer is split into packets and a run into slices of the processors before anybody looks:
    // absurd ones take as long as they say.
    let is_short = |event: &Event| {
        event.start.max(event.end) <= LONGEST && event.length.max(event.result) <= BYTES_MAX
    };
    if !trace.events.iter().all(is_short) {
        return;
    }
    for posix in [PosixCalls::Compute, PosixCalls::Commands] {
        match Recording::with(trace, posix) {
            Err(refusal) => refused(&refusal),
            Ok(recording) => {
                let watch = &mut |_| ControlFlow::Break(());
                let run = simulate(recording.job(), &CLUSTER, &Settings::default(), watch);
                if let Err(refusal) = run {
                    refused(&refusal);
                }
            }
        }
    }
    match predict(trace, &LOCAL, &STRATEGIES, &guest::Settings::default()) {
        Err(refusal) => refused(&refusal),
        Ok(prediction) => drop(prediction),
    }
}
