//! Programs of a cluster under in-situ strategies: decided inside the simulation, at its clock.

use iolab_policy::insitu::StrategySpec;
use iolab_sim::platform::Platform;
use iolab_sim::program::{Command, FileOperation, Program, What};
use iolab_sim::workload::{Job, Outcome, Script, Settings, WithFiles, Workload, prepare, simulate};
use iolab_trace::{Event, Function, Layer};
use iolab_vocab::{Extent, Nanos};
use std::ops::ControlFlow;

const SECOND: u64 = 1_000_000_000;

fn settings(strategies: &[&str]) -> Settings {
    let parsed = strategies.iter().map(|text| StrategySpec::parse(text).unwrap());
    Settings { strategies: parsed.collect(), record: true, ..Settings::default() }
}

fn run_job(job: Job, strategies: &[&str]) -> Outcome {
    let platform = Platform::preset("classic-hdd").unwrap();
    simulate(job, &platform, &settings(strategies), &mut |_| ControlFlow::Continue(())).unwrap()
}

fn run(text: &str, strategies: &[&str]) -> Outcome {
    let platform = Platform::preset("classic-hdd").unwrap();
    run_job(prepare(&Workload::parse(text).unwrap(), &platform).unwrap(), strategies)
}

/// Reads and writes as rows: function, offset, length, start.
fn accesses(outcome: &Outcome) -> Vec<(Function, i64, i64, Nanos)> {
    let rows = outcome.trace.as_ref().unwrap().events.iter();
    let is_access =
        |row: &&Event| row.function.layer() == Layer::Mpiio && row.function.class().moves_data();
    rows.filter(is_access).map(|row| (row.function, row.offset, row.length, row.start)).collect()
}

fn written_bytes(outcome: &Outcome) -> u64 {
    outcome.servers.iter().map(|server| server.totals.device.written_bytes).sum()
}

/// Every rank writes 200 records into a file of its own, and reads some of them.
const OWN_FILES: &str = r#"
files = [{ name = "own", per_rank = true }]
[[applications]]
ranks = 3
[[applications.phases]]
commands = [
    { open = "own" },
    { write = "own", bytes = 100, calls = 200 },
    { read = "own", bytes = 100, calls = 3, offset = 5000 },
    { sync = "own" },
    { write = "own", bytes = "64k", offset = "1m" },
    { close = "own" },
]
"#;

#[test]
fn a_strategy_that_does_nothing_changes_nothing() {
    let samples = [
        OWN_FILES,
        include_str!("../../../samples/workloads/checkpoint.toml"),
        include_str!("../../../samples/workloads/collective.toml"),
        include_str!("../../../samples/workloads/interference.toml"),
    ];
    for text in samples {
        let (plain, under) = (run(text, &[]), run(text, &["null"]));
        assert_eq!((plain.end, plain.event_hash), (under.end, under.event_hash));
        assert_eq!(plain.applications[0].phases, under.applications[0].phases);
    }
}

#[test]
fn small_writes_are_gathered_and_all_bytes_arrive() {
    let (plain, under) = (run(OWN_FILES, &[]), run(OWN_FILES, &["write-back"]));
    assert_eq!(accesses(&plain).len(), 3 * 204);
    assert!(accesses(&under).len() < 3 * 8, "{:?}", accesses(&under));
    assert_eq!(written_bytes(&under), written_bytes(&plain));
    assert!(under.end < plain.end);
    let phase = |outcome: &Outcome| outcome.applications[0].phases[0].clone();
    let bytes = |outcome| (phase(outcome).read_bytes, phase(outcome).written_bytes);
    assert_eq!(bytes(&under), bytes(&plain));
    let notes = &under.applications[0].notes;
    assert!(notes[0].starts_with("612 accesses went through strategies, "), "{notes:?}");
}

fn write(offset: u64, length: u64) -> (Command, Vec<Extent>) {
    (FileOperation::Write.of(0), vec![Extent::new(offset, length)])
}

fn bare(command: Command) -> (Command, Vec<Extent>) {
    (command, Vec::new())
}

fn seconds(count: u64) -> (Command, Vec<Extent>) {
    bare(What::Idle { nanos: Nanos(count * SECOND) }.awaited())
}

/// Of one file, which each of the ranks opens by itself.
fn job(ranks: Vec<Vec<(Command, Vec<Extent>)>>) -> Job {
    let mut script = Script::new(ranks.clone());
    for rank in 0..ranks.len() as u32 {
        script = script.with_communicator(vec![rank]);
    }
    let program = Box::new(Alone(script)) as Box<dyn Program>;
    Job { files: vec![("file".to_owned(), 0)], applications: vec![("a".to_owned(), program)] }
}

/// Every rank opens files by itself.
struct Alone(Script);

impl Program for Alone {
    fn next(&mut self, rank: u32, list: &mut Vec<Extent>) -> Option<Command> {
        self.0.next(rank, list)
    }

    fn rank_count(&self) -> u32 {
        self.0.rank_count()
    }

    fn communicators(&self) -> Vec<Vec<u32>> {
        self.0.communicators()
    }

    fn communicator_of(&self, rank: u32, _file: u32) -> u32 {
        rank + 1
    }
}

#[test]
fn age_is_told_by_the_clock_of_the_simulation() {
    let lines = vec![
        bare(FileOperation::Open.of(0)),
        write(0, 100),
        seconds(1),
        write(100, 100),
        seconds(2),
        write(200, 100),
        seconds(1),
        bare(FileOperation::Close.of(0)),
    ];
    let outcome = run_job(job(vec![lines]), &["write-back:age=2s"]);
    let rows = accesses(&outcome);
    let places: Vec<_> = rows.iter().map(|row| (row.1, row.2)).collect();
    // What is two seconds old when the third write comes goes out then.
    assert_eq!(places.iter().map(|place| place.1).sum::<i64>(), 300, "{places:?}");
    assert!(rows[0].3.0 > 3 * SECOND && rows[0].3.0 < 3 * SECOND + SECOND / 2, "{rows:?}");
}

#[test]
fn what_is_held_goes_out_before_another_opens_the_file_and_is_not_held_after() {
    let writer = vec![
        bare(FileOperation::Open.of(0)),
        write(0, 100),
        seconds(2),
        write(100, 100),
        write(200, 100),
        bare(FileOperation::Close.of(0)),
    ];
    let reader = vec![
        seconds(1),
        bare(FileOperation::Open.of(0)),
        (FileOperation::Read.of(0), vec![Extent::new(0, 1000)]),
        seconds(3),
        bare(FileOperation::Close.of(0)),
    ];
    let outcome = run_job(job(vec![writer, reader]), &["write-back"]);
    let rows = outcome.trace.as_ref().unwrap().events.clone();
    let of = |rank: i32| -> Vec<(Function, i64, i64)> {
        let own = rows.iter().filter(move |row| {
            row.rank == rank && row.function.layer() == Layer::Mpiio && row.length >= 0
        });
        own.filter(|row| row.function.class().moves_data())
            .map(|row| (row.function, row.offset, row.result))
            .collect()
    };
    // The second one writes out what the first one held, and finds it.
    assert_eq!(of(1), [(Function::MPI_FILE_WRITE, 0, 100), (Function::MPI_FILE_READ, 0, 100)]);
    assert_eq!(of(0), [(Function::MPI_FILE_WRITE, 100, 100), (Function::MPI_FILE_WRITE, 200, 100)]);
    let notes = &outcome.applications[0].notes;
    assert_eq!(notes[1], "strategies stepped aside from `file`: several processes have it open");
}

#[test]
fn what_is_held_at_the_end_of_a_rank_goes_out() {
    let lines = vec![bare(FileOperation::Open.of(0)), write(0, 100), write(100, 50)];
    let outcome = run_job(job(vec![lines]), &["write-back"]);
    assert_eq!(accesses(&outcome).iter().map(|row| row.2).sum::<i64>(), 150);
}

#[test]
fn a_collective_or_started_access_finds_nothing_held() {
    let all = (FileOperation::WriteAll.of(0), vec![Extent::new(500, 10)]);
    let started = (FileOperation::Write.of(0).started(1), vec![Extent::new(700, 10)]);
    let wait = bare(What::Wait(1).awaited());
    let lines = vec![
        bare(FileOperation::Open.of(0)),
        write(0, 100),
        all,
        write(100, 100),
        started,
        wait,
        bare(FileOperation::Close.of(0)),
    ];
    let outcome = run_job(job(vec![lines]), &["write-back"]);
    let places: Vec<_> = accesses(&outcome).iter().map(|row| row.1).collect();
    assert_eq!(places, [0, 500, 100, 700]);
}

#[test]
fn a_file_that_is_cut_keeps_what_was_held_before_its_new_end() {
    let size = |bytes| (FileOperation::SetSize.of(0), vec![Extent::new(0, bytes)]);
    let lines = vec![
        bare(FileOperation::Open.of(0)),
        write(0, 100),
        size(60),
        (FileOperation::Read.of(0), vec![Extent::new(0, 1000)]),
        bare(FileOperation::Close.of(0)),
    ];
    let outcome = run_job(job(vec![lines]), &["write-back"]);
    let rows = accesses(&outcome);
    assert_eq!(
        rows.iter().map(|row| row.0).collect::<Vec<_>>(),
        [Function::MPI_FILE_WRITE, Function::MPI_FILE_READ]
    );
    let events = outcome.trace.unwrap().events;
    let read = events.iter().find(|event| event.function == Function::MPI_FILE_READ).unwrap();
    assert_eq!(read.result, 60);
}

#[test]
fn reads_of_several_pieces_are_counted_once() {
    let text = r#"
        files = [{ name = "f", size = "10m", per_rank = true }]
        [[applications]]
        ranks = 2
        [[applications.phases]]
        commands = [
            { open = "f" },
            { read = "f", pattern = "strided:strip=4k,stripes=8", per_call = "all" },
            { write = "f", bytes = 100 },
            { read = "f", bytes = 50 },
            { close = "f" },
        ]
    "#;
    let plain = run(text, &[]).applications[0].phases[0].read_bytes;
    for strategies in [&["null"][..], &["seek-elide"], &["write-back"], &["null", "write-back"]] {
        let under = run(text, strategies).applications[0].phases[0].read_bytes;
        assert_eq!(under, plain, "{strategies:?}");
    }
}

#[test]
fn a_file_that_a_rank_opens_again_keeps_what_was_held() {
    let lines = vec![
        bare(FileOperation::Open.of(0)),
        write(0, 100),
        bare(FileOperation::Open.of(0)),
        write(100, 50),
        bare(FileOperation::Close.of(0)),
        write(150, 10),
        bare(FileOperation::Close.of(0)),
    ];
    let outcome = run_job(job(vec![lines]), &["write-back"]);
    assert_eq!(written_bytes(&outcome), 160);
    assert_eq!(accesses(&outcome).len(), 1, "{:?}", accesses(&outcome));
}

#[test]
fn whoever_uses_a_file_while_another_writes_out_what_was_held_waits_for_it() {
    let write = |at: u64| (FileOperation::Write.of(0), vec![Extent::new(at * 4096, 4096)]);
    let read = |at: u64| (FileOperation::Read.of(0), vec![Extent::new(at * 4096, 4096)]);
    let mut owner = vec![bare(FileOperation::Open.of(0))];
    owner.extend((0..16).map(write));
    owner.push(bare(What::Idle { nanos: Nanos(SECOND / 100) }.awaited()));
    owner.extend((0..16).map(read));
    owner.push(bare(FileOperation::Close.of(0)));
    let opener = vec![
        bare(What::Idle { nanos: Nanos(SECOND / 100) }.awaited()),
        bare(FileOperation::Open.of(0)),
        bare(FileOperation::Close.of(0)),
    ];
    let outcome = run_job(job(vec![owner, opener]), &["write-back"]);
    let rows = outcome.trace.unwrap().events;
    let reads = rows.iter().filter(|row| row.function == Function::MPI_FILE_READ);
    assert_eq!(reads.map(|row| row.result).sum::<i64>(), 16 * 4096);
}

#[test]
fn a_rank_goes_on_after_a_call_that_its_strategies_answer() {
    let text = r#"
        files = [{ name = "f", per_rank = true }]
        [[applications]]
        ranks = 2
        [[applications.phases]]
        commands = [
            { open = "f" }, { write = "f", bytes = "4k" }, { sync = "f" }, { set_size = "f", bytes = 10 },
            { compute = "1s" }, { barrier = true }, { close = "f" },
        ]
    "#;
    for cruel in ["cruel:fail=100", "cruel:delay=1000", "cruel:delay=1", "cruel:fail=30,short=30"] {
        for strategies in [&["write-back", cruel][..], &[cruel, "write-back"], &[cruel]] {
            let outcome = run(text, strategies);
            assert!(outcome.end.0 > SECOND, "{strategies:?}: {}", outcome.end);
        }
    }
}

#[test]
fn a_program_put_on_other_files_tells_what_it_did_all_the_same() {
    let platform = Platform::preset("classic-hdd").unwrap();
    let own = || prepare(&Workload::parse(OWN_FILES).unwrap(), &platform).unwrap();
    let mut moved = own();
    let (name, program) = moved.applications.remove(0);
    let program = Box::new(WithFiles::new(program, vec![2, 1, 0])) as Box<dyn Program>;
    moved.applications.push((name, program));
    let (plain, moved) = (run_job(own(), &["write-back"]), run_job(moved, &["write-back"]));
    let told = |outcome: &Outcome| {
        let one = &outcome.applications[0];
        let bytes: Vec<_> = one.phases.iter().map(|it| (it.read_bytes, it.written_bytes)).collect();
        (bytes, one.notes.clone())
    };
    assert_eq!(told(&moved), told(&plain));
    assert!(told(&plain).0[0].0 > 0);
}
