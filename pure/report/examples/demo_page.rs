//! Writes a page of made-up traces: `cargo run -p iolab-report --example demo_page -- EVENTS OUT.html`.
//!
//! The browser test of `tools/viewer` and its screenshots are made from it, so it shows everything a
//! page can hold. The numbers are invented but consistent: the same seed gives the same page.

#![allow(clippy::disallowed_methods, clippy::disallowed_macros, reason = "an example is a program")]

use iolab_report::chart::{Axis, Chart, Mark, Series, Unit};
use iolab_report::page::{Cell, Finding, Jump, Page, Section, Table, Timeline, Tone, render};
use iolab_trace::{Event, FileEntry, Function, Header, Origin, ProcessEntry, Trace};
use iolab_vocab::{FileId, Nanos, Random, Seed};

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let number = |at: usize, otherwise: &str| -> Option<usize> {
        arguments.get(at).map_or(otherwise, String::as_str).parse().ok()
    };
    let (Some(events), Some(output), Some(ranks)) =
        (number(0, ""), arguments.get(1), number(2, "4"))
    else {
        eprintln!("usage: demo_page EVENTS OUT.html [RANKS]");
        std::process::exit(2);
    };
    let (events, ranks) = (events.max(ranks * 100), ranks.max(2) as u32);
    let recorded = checkpoints(events, ranks, 1, Origin::Recorded);
    let null = checkpoints(events, ranks, 2, Origin::Simulated);
    let write_back = checkpoints(events / 12, ranks, 3, Origin::Simulated);
    let bytes = render(&page(&recorded, &null, &write_back));
    std::fs::write(output, &bytes).expect("OUT.html can be written");
    let total = recorded.events.len() + null.events.len() + write_back.events.len();
    let summary = serde_json::json!({
        "events": total, "bytes": bytes.len(), "events_recorded": recorded.events.len(),
        "probe": probe(&recorded),
    });
    println!("{summary}");
}

/// Row number of the call whose details the browser test compares: a write in the middle of rank 1.
fn probe_row(trace: &Trace) -> usize {
    let is_wanted =
        |event: &Event| event.process == 1 && event.function == Function::WRITE && event.parent < 0;
    let rows: Vec<usize> =
        (0..trace.events.len()).filter(|&row| is_wanted(&trace.events[row])).collect();
    rows[rows.len() / 2]
}

fn probe(trace: &Trace) -> serde_json::Value {
    let row = probe_row(trace);
    let event = &trace.events[row];
    serde_json::json!({
        "row": row, "function": event.function.name(), "offset": event.offset, "length": event.length,
        "result": event.result, "fd": event.fd, "start_ns": event.start.0, "end_ns": event.end.0,
        "file": trace.header.files[event.file.0 as usize].path,
    })
}

/// Ranks that compute, then write a checkpoint in small records through stdio or POSIX.
fn checkpoints(count: usize, ranks: u32, seed: u64, origin: Origin) -> Trace {
    let mut random = Random::new(Seed(seed));
    let mut events = Vec::with_capacity(count);
    let each = count / ranks as usize;
    for rank in 0..ranks {
        write_rank(&mut events, &mut random, rank, FileId(ranks), each);
    }
    let ends: Vec<u64> = (0..ranks)
        .map(|rank| events.iter().filter(|e: &&Event| e.process == rank).map(|e| e.end.0).max())
        .map(|end| end.unwrap_or(0) + 1_000_000)
        .collect();
    Trace { header: header(origin, &ends), events, ..Trace::default() }
}

fn header(origin: Origin, ends: &[u64]) -> Header {
    let process = |(rank, &end_ns): (usize, &u64)| ProcessEntry {
        name: "jacobi".to_owned(),
        pid: 4100 + rank as u32,
        rank: rank as i32,
        command: ["./jacobi", "--size", "2048"].map(str::to_owned).to_vec(),
        host: "node05".to_owned(),
        end_ns,
        ending: "exited".to_owned(),
        ..ProcessEntry::default()
    };
    let file = |path: String| FileEntry { path, file_system: "ext4".to_owned() };
    let checkpoints =
        (0..ends.len()).map(|rank| file(format!("/scratch/run/checkpoint.{rank}.bin")));
    Header {
        origin,
        host: "node05".to_owned(),
        files: checkpoints.chain([file("/scratch/run/log <all>.txt".to_owned())]).collect(),
        processes: ends.iter().enumerate().map(process).collect(),
        ..Header::default()
    }
}

struct Writer<'a> {
    events: &'a mut Vec<Event>,
    random: &'a mut Random,
    rank: u32,
    log_file: FileId,
    now: u64,
    offset: i64,
}

impl Writer<'_> {
    fn call(&mut self, event: Event, duration: u64) {
        let start = self.now + 40 + self.random.below(60);
        self.now = start + duration;
        let (start, end) = (Nanos(start), Nanos(self.now));
        let (rank, process) = (self.rank as i32, self.rank);
        self.events.push(Event { rank, process, start, end, ..event });
    }

    fn write(&mut self) {
        let slow = self.random.below(2000) == 0;
        let duration = 380 + self.random.below(220) + if slow { 40_000 } else { 0 };
        let (offset, length) = (self.offset, 64);
        let file = FileId(self.rank);
        let write =
            Event { file, fd: 3, offset, length, result: length, ..Event::of(Function::WRITE) };
        self.call(write, duration);
        self.offset += length;
    }

    /// A buffered log line and, every so often, the `write` stdio makes inside it.
    fn log(&mut self) {
        let file = self.log_file;
        let length = 30 + self.random.below(40) as i64;
        let outer = self.events.len();
        let print = Event { file, fd: 4, length, result: length, ..Event::of(Function::FPRINTF) };
        let begin = self.now;
        self.call(print, 2600);
        let after = self.now;
        self.now = begin + 500;
        let inner = Event { length: 4096, result: 4096, offset: 0, parent: outer as i64, ..print };
        self.call(Event { function: Function::WRITE, ..inner }, 1500);
        self.now = after;
    }
}

fn write_rank(
    events: &mut Vec<Event>,
    random: &mut Random,
    rank: u32,
    log_file: FileId,
    count: usize,
) {
    let limit = events.len() + count;
    let mut writer = Writer { events, random, rank, log_file, now: 500_000, offset: 0 };
    let file = FileId(rank);
    let open = Event { file, length: 0, argument: 0o1101, result: 3, ..Event::of(Function::OPEN) };
    writer.call(open, 21_000);
    let period = (count / 12).clamp(40, 100_000);
    while writer.events.len() + 4 < limit {
        let step = writer.events.len() % period;
        match step {
            0..=3 => {
                writer.now += 200 * period as u64 + writer.random.below(50 * period as u64);
                writer.log();
            }
            _ if step + 4 > period => {
                let sync = Event { file, fd: 3, ..Event::of(Function::FSYNC) };
                let slower = if rank == 2 { 3 } else { 1 };
                writer.call(sync, slower * 30 * period as u64);
            }
            _ if step.is_multiple_of(97) => {
                let offset = writer.offset;
                let seek = Event {
                    file,
                    fd: 3,
                    offset,
                    argument: 0,
                    result: offset,
                    ..Event::of(Function::LSEEK)
                };
                writer.call(seek, 90);
            }
            _ => writer.write(),
        }
    }
    writer.call(Event { file, fd: 3, ..Event::of(Function::CLOSE) }, 3_000);
}

fn page<'a>(recorded: &'a Trace, null: &'a Trace, write_back: &'a Trace) -> Page<'a> {
    Page {
        title: "Study of jacobi".to_owned(),
        headline: "Write-back with a buffer of 1 MiB makes jacobi 3.1 times faster; its output stays the same, byte for byte.".to_owned(),
        facts: [
            ("command", "mpiexec -n 4 ./jacobi --size 2048"),
            ("host", "node05"),
            ("runs", "5 per strategy"),
            ("made by", "iolab 0.1.0"),
        ]
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .to_vec(),
        sections: vec![
            Section::Table(strategies()),
            Section::Findings(findings(recorded)),
            Section::Timeline,
            Section::Charts(charts()),
            Section::Table(files()),
        ],
        timelines: vec![
            Timeline::new("recorded", recorded),
            Timeline::new("simulated: null", null),
            Timeline::new("simulated: write-back", write_back),
        ],
    }
}

fn strategies() -> Table {
    Table::new(
        "What each strategy brings",
        ["strategy", "predicted", "measured", "interval", "error", "verdict"],
    )
    .row([
        Cell::from("none"),
        Cell::from("1.22 s"),
        Cell::from("1.18 s"),
        Cell::from("1.15 – 1.21 s"),
        Cell::from("+3.4 %"),
        Cell::toned("baseline", Tone::Quiet),
    ])
    .row([
        Cell::from("null"),
        Cell::from("1.23 s"),
        Cell::from("1.20 s"),
        Cell::from("1.16 – 1.23 s"),
        Cell::from("+2.5 %"),
        Cell::toned("same, as it must be", Tone::Quiet),
    ])
    .row([
        Cell::from("seek-elide"),
        Cell::from("1.17 s"),
        Cell::from("1.16 s"),
        Cell::from("1.13 – 1.19 s"),
        Cell::from("+0.9 %"),
        Cell::toned("no difference", Tone::Doubtful),
    ])
    .row([
        Cell::from("write-back:buffer=1m"),
        Cell::from("0.41 s"),
        Cell::from("0.38 s"),
        Cell::from("0.37 – 0.40 s"),
        Cell::from("+7.9 %"),
        Cell::toned("3.1× faster, output identical", Tone::Good),
    ])
    .row([
        Cell::from("broken-for-show"),
        Cell::from("0.20 s"),
        Cell::from("0.19 s"),
        Cell::from("0.18 – 0.21 s"),
        Cell::from("+5.3 %"),
        Cell::toned("output differs: wrong", Tone::Bad),
    ])
    .caption("Interval: 95 %, five runs each, in turn. Error: predicted against measured.")
}

fn findings(recorded: &Trace) -> Vec<Finding> {
    let rows_of = |function: Function| {
        recorded
            .events
            .iter()
            .enumerate()
            .filter(move |(_, e)| e.function == function)
            .map(|(row, _)| row)
    };
    let slowest = rows_of(Function::FSYNC).max_by_key(|&row| recorded.events[row].duration());
    let writes =
        Jump::to_rows("first thousand writes", 0, recorded, rows_of(Function::WRITE).take(1000));
    let one = Jump::to_rows("one of them", 0, recorded, [probe_row(recorded)]);
    let sync = Jump::to_rows("the slowest fsync", 0, recorded, slowest);
    vec![
        Finding {
            title: "Tiny sequential writes to checkpoint.*.bin".to_owned(),
            tone: Tone::Bad,
            evidence: format!(
                "{} writes of 64 B, each at the end of the one before, take 71 % of the time in I/O.",
                rows_of(Function::WRITE).count()
            ),
            remedy: "Collect them: iolab run --apply write-back:buffer=1m".to_owned(),
            gain: "predicted 3.0× faster (simulated on this machine's storage)".to_owned(),
            jumps: writes
                .map(|jump| Jump { filter: "write".to_owned(), ..jump })
                .into_iter()
                .chain(one)
                .collect(),
        },
        Finding {
            title: "Rank 2 is slow".to_owned(),
            tone: Tone::Doubtful,
            evidence: "Its fsync calls take three times as long as those of the other ranks."
                .to_owned(),
            remedy: "Look at what shares the disk of its node.".to_owned(),
            jumps: sync
                .map(|jump| Jump { filter: "fsync".to_owned(), ..jump })
                .into_iter()
                .collect(),
            ..Finding::default()
        },
    ]
}

fn charts() -> Vec<Chart> {
    let bandwidth =
        (0..60).map(|at| (f64::from(at) * 0.02, 9e7 * (1.0 + (f64::from(at) * 0.7).sin())));
    let sizes = ["64 B", "512 B", "4 KiB", "64 KiB", "1 MiB"];
    vec![
        Chart::new(
            "Bandwidth over time",
            Axis::linear("time", Unit::Seconds),
            Axis::linear("written", Unit::BytesPerSecond),
        )
        .with(Series::new("written", Mark::Area, bandwidth)),
        Chart::new(
            "Request sizes",
            Axis::categories("bytes asked for", sizes),
            Axis::log10("calls", Unit::Plain),
        )
        .with(Series::new("read", Mark::Bars, [(0.0, 3.0), (2.0, 40.0)]))
        .with(Series::new(
            "write",
            Mark::Bars,
            [(0.0, 91_000.0), (1.0, 1200.0), (3.0, 12.0)],
        )),
        Chart::new(
            "Prediction and measurement",
            Axis::log2("request size", Unit::Bytes),
            Axis::log10("time per call", Unit::Seconds),
        )
        .with(Series::new(
            "predicted",
            Mark::Line,
            (6..=20).map(|power| (2f64.powi(power), 4e-7 + 2f64.powi(power) / 4e9)),
        ))
        .with((6..=20).step_by(2).fold(
            Series::new("measured", Mark::Points, []),
            |series, power| {
                let time = 4.4e-7 + 2f64.powi(power) / 3.6e9;
                series.point_with_error(2f64.powi(power), time, time * 0.9, time * 1.15)
            },
        )),
    ]
}

fn files() -> Table {
    Table::new("Files", ["file", "calls", "bytes", "share of time in I/O"])
        .row([
            Cell::from("/scratch/run/checkpoint.0.bin"),
            Cell::from("22,911"),
            Cell::from("1.4 MiB"),
            Cell::bar("24 %", 0.24),
        ])
        .row([
            Cell::from("/scratch/run/checkpoint.2.bin"),
            Cell::from("22,908"),
            Cell::from("1.4 MiB"),
            Cell::bar("58 %", 0.58),
        ])
        .row([
            Cell::from("/scratch/run/log <all>.txt"),
            Cell::from("384"),
            Cell::from("17 KiB"),
            Cell::bar("1 %", 0.01),
        ])
}
