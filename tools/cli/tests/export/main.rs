//! `iolab export` from the outside: what other viewers are given is what they can draw.

mod document;
mod otf2;

use document::Document;
use iolab_trace::{Causes, Event, FileEntry, Function, Header, Links, ProcessEntry, Trace};
use iolab_vocab::{FileId, Nanos};
use std::collections::BTreeSet;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../");

fn iolab(directory: &Path, words: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_iolab")).current_dir(directory).args(words).output().unwrap()
}

fn stdout_of(directory: &Path, words: &[&str]) -> Vec<u8> {
    let output = iolab(directory, words);
    let told = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{words:?}: {told}");
    output.stdout
}

/// Exports a trace and holds the document against it.
fn checked(directory: &Path, trace: &str) -> (Document, Trace, usize) {
    let document = Document::parse(&stdout_of(directory, &["export", trace, "--to", "chrome"]));
    let of = iolab_traces::Source::open(&directory.join(trace)).unwrap();
    let events: Vec<Event> = of.events().unwrap().map(Result::unwrap).collect();
    let trace =
        Trace { events, causes: of.causes().unwrap().into_owned(), header: of.header().clone() };
    let flows = document.check(&trace.events, &trace.causes);
    (document, trace, flows)
}

fn save(path: PathBuf, trace: &Trace) {
    iolab_iot::write(trace, File::create(path).unwrap()).unwrap();
}

#[test]
fn a_simulated_cluster_is_drawn_with_lanes_causes_and_what_is_under_way() {
    let directory = tempfile::tempdir().unwrap();
    let directory = directory.path();
    for name in ["checkpoint", "collective", "interference"] {
        let workload = format!("{ROOT}samples/workloads/{name}.toml");
        let trace = format!("{name}.iot");
        let platform = ["--platform", "classic-hdd", "--seeds", "1", "-o", &trace];
        stdout_of(directory, &[&["simulate", "--workload", &workload][..], &platform].concat());
        let (document, trace, flows) = checked(directory, &trace);
        assert!(flows > 1000, "{flows} flows in {name}");
        let processes = &trace.header.processes;
        let is_server = |it: &&ProcessEntry| it.name.starts_with("server");
        assert!(processes.iter().any(|it| is_server(&it)));
        // Some servers have more than one request at once, on lanes below each other.
        let lanes =
            |pid: &u64| document.tracks.keys().filter(|track| track.0 == *pid).count() as i64;
        let mut most = 0;
        for (pid, values) in &document.counters {
            assert!(is_server(&&processes[*pid as usize - 1]), "{}", document.processes[pid]);
            assert!(values.is_sorted_by(|one, two| one.0 < two.0), "one value at a time");
            assert_eq!(values.last().map(|it| (it.1, it.2)), Some((0, 0)));
            let peak = values.iter().map(|it| it.1).max().unwrap();
            assert!((1..=lanes(pid)).contains(&peak), "{peak} at once on {} lanes", lanes(pid));
            most = most.max(peak);
        }
        assert!(most > 1 && document.counters.len() >= 2);
        let names: BTreeSet<&String> = document.processes.values().collect();
        assert_eq!(names.len(), processes.len(), "no two are called the same");
    }
}

#[test]
fn what_another_tool_recorded_is_exported_as_it_is() {
    let directory = tempfile::tempdir().unwrap();
    let directory = directory.path();
    let strace = format!("{ROOT}samples/traces/strace/fork_and_thread.txt");
    stdout_of(directory, &["import", &strace, "--from", "strace", "-o", "strace.iot"]);
    fs::create_dir(directory.join("pfw")).unwrap();
    for process in ["3537780", "3537781"] {
        let name = format!("cm1-2024-{process}.pfw.gz");
        fs::copy(format!("{ROOT}samples/dftracer/{name}"), directory.join("pfw").join(&name))
            .unwrap();
    }
    let foreign = [
        "samples/darshan/mpi-io-test-x86_64-3.1.3.darshan",
        "samples/darshan/hdf5_diagonal_write_1_byte_dxt.darshan",
        "samples/dftracer/unet3d-2023.pfw.gz",
        "samples/traces/hdtrace/partdiff-2009/partdiff-par.proj",
    ];
    let paths = foreign.map(|path| format!("{ROOT}{path}"));
    for trace in paths.iter().map(String::as_str).chain(["strace.iot", "pfw"]) {
        let (_, read, _) = checked(directory, trace);
        assert!(!read.events.is_empty());
        let csv = stdout_of(directory, &["export", trace, "--to", "csv"]);
        let lines = csv.iter().filter(|&&byte| byte == b'\n').count();
        assert_eq!(lines, 1 + read.events.len(), "{trace}");
        stdout_of(directory, &["export", trace, "--to", "dxt"]);
    }
    let counts = format!("{ROOT}samples/darshan/mpi-io-test-x86_64-3.0.0.darshan");
    let refused = iolab(directory, &["export", &counts, "--to", "chrome", "-o", "new.json"]);
    let told = String::from_utf8_lossy(&refused.stderr);
    assert!(refused.status.code() == Some(1) && told.contains("hint: "), "{told}");
    assert!(told.contains("3.0.0.darshan: it counts") && !told.contains("new.json"), "{told}");
    assert!(!directory.join("new.json").exists());
    for name in ["/dev/full", "full.gz"] {
        let _ = std::os::unix::fs::symlink("/dev/full", directory.join("full.gz"));
        let full = iolab(directory, &["export", "pfw", "--to", "perfetto", "-o", name]);
        let told = String::from_utf8_lossy(&full.stderr);
        assert!(told.contains(&format!("cannot write {name}: ")), "{told}");
        assert_eq!(full.status.code(), Some(1));
    }
}

#[test]
fn a_name_that_ends_in_gz_is_compressed_and_holds_the_same() {
    let directory = tempfile::tempdir().unwrap();
    let directory = directory.path();
    let trace = &format!("{ROOT}samples/darshan/mpi-io-test-x86_64-3.1.3.darshan");
    for format in ["chrome", "perfetto", "csv", "dxt"] {
        let plain = stdout_of(directory, &["export", trace, "--to", format]);
        stdout_of(directory, &["export", trace, "--to", format, "-o", "run.gz"]);
        let packed = File::open(directory.join("run.gz")).unwrap();
        let mut unpacked = Vec::new();
        std::io::Read::read_to_end(&mut flate2::read::GzDecoder::new(packed), &mut unpacked)
            .unwrap();
        assert!(unpacked == plain, "{format}");
    }
    let chrome = stdout_of(directory, &["export", trace, "--to", "chrome"]);
    assert!(chrome == stdout_of(directory, &["export", trace, "--to", "perfetto"]));
}

/// A row of thread 0 of a process.
fn row(process: u32, start: u64, end: u64, parent: i64) -> Event {
    let (start, end) = (Nanos(start), Nanos(end));
    let rank = process as i32;
    Event { rank, process, start, end, parent, file: FileId(0), ..Event::of(Function::PWRITE) }
}

#[test]
fn parts_of_a_job_are_exported_as_one_trace() {
    let directory = tempfile::tempdir().unwrap();
    let directory = directory.path();
    fs::create_dir(directory.join("run.iot")).unwrap();
    for rank in 0..2 {
        let process = ProcessEntry { name: format!("rank {rank}"), rank, ..Default::default() };
        let header = Header {
            processes: vec![process],
            files: vec![FileEntry { path: "/data/a \"b\"".to_owned(), ..Default::default() }],
            ..Header::default()
        };
        let mut events = vec![row(0, 5, 90, -1), row(0, 10, 20, 0), row(0, 95, 1_234_567_891, -1)];
        events.iter_mut().for_each(|event| event.rank = rank);
        let causes = Causes {
            begun_by: Links::from_pairs(vec![(2, 0)]),
            ended_by: Links::from_pairs(Vec::new()),
        };
        save(directory.join(format!("run.iot/rank-{rank}.iot")), &Trace { header, events, causes });
    }
    let (document, trace, flows) = checked(directory, "run.iot");
    assert_eq!((trace.events.len(), flows), (6, 2));
    assert_eq!(document.processes.into_values().collect::<Vec<_>>(), ["rank 0", "rank 1"]);
    let text = String::from_utf8(stdout_of(directory, &["export", "run.iot", "--to", "chrome"]));
    let text = text.unwrap();
    assert!(text.contains("\"ts\":0.095,\"dur\":1234567.796,"), "{text}");
    assert!(text.contains(r#""file":"/data/a \"b\"""#), "{text}");
}

#[test]
fn causes_at_the_borders_of_rows_lead_to_the_right_rows() {
    let directory = tempfile::tempdir().unwrap();
    let directory = directory.path();
    let process = |rank| ProcessEntry { rank, ..Default::default() };
    let header = Header {
        processes: vec![process(0), process(1)],
        files: vec![FileEntry::default()],
        ..Header::default()
    };
    let events = vec![
        // One after the other without a gap, one of no length between them, one that is inside.
        row(0, 0, 10, -1),
        row(0, 10, 10, -1),
        row(0, 10, 20, -1),
        row(0, 10, 20, 2),
        row(0, 20, 30, -1),
        row(1, 0, 10, -1),
        row(1, 10, 30, -1),
        row(1, 30, 30, -1),
        // One ends when a message of no length comes, and the next one begins at once.
        row(1, 30, 40, -1),
        row(1, 40, 50, -1),
        Event { thread: 1, ..row(1, 40, 40, -1) },
    ];
    let causes = Causes {
        begun_by: Links::from_pairs(vec![(6, 0), (4, 2), (2, 1), (1, 0), (7, 1), (9, 10)]),
        ended_by: Links::from_pairs(vec![(2, 6), (6, 4), (5, 0), (0, 5), (8, 10)]),
    };
    save(directory.join("run.iot"), &Trace { header, events, causes });
    let (_, trace, flows) = checked(directory, "run.iot");
    assert_eq!((trace.events.len(), flows), (11, 11));
}

/// What a call is, without what DFTracer does not keep.
fn calls_of(path: &Path, resolution_ns: u64) -> Vec<String> {
    let source = iolab_traces::Source::open(path).unwrap();
    let header = source.header().clone();
    let rounded = |time: Nanos| time.0 / resolution_ns;
    let call = |event: Event| {
        let file = event.file.index().map(|file| header.files[file].path.clone());
        let times = (rounded(event.start), rounded(event.end));
        let sizes = (event.offset, event.length, event.result);
        format!("{:?}", (event.rank, event.thread, event.function, file, sizes, times))
    };
    source.events().unwrap().map(|event| call(event.unwrap())).collect()
}

#[test]
fn what_goes_out_to_dftracer_comes_back_with_the_same_calls_sizes_and_times() {
    let directory = tempfile::tempdir().unwrap();
    let directory = directory.path();
    for name in ["unet3d-2023.pfw.gz", "cm1-2024-3537780.pfw.gz"] {
        let trace = format!("{ROOT}samples/dftracer/{name}");
        stdout_of(directory, &["export", &trace, "--to", "dftracer", "-o", "again.pfw.gz"]);
        let (before, after) =
            (calls_of(Path::new(&trace), 1), calls_of(&directory.join("again.pfw.gz"), 1));
        assert!(before.len() > 1000 && before == after, "{name}: {} rows", after.len());
    }

    let process = |rank: i32| ProcessEntry {
        name: format!("rank {rank}"),
        rank,
        pid: 7,
        host: format!("n{rank}"),
        command: vec!["./solver".to_owned(), "in.nml".to_owned()],
        ..Default::default()
    };
    let header = Header {
        processes: vec![process(0), process(1)],
        files: vec![FileEntry { path: "/data/a".to_owned(), ..Default::default() }],
        ..Header::default()
    };
    let call = |rank, function, at: u64, more: Event| {
        let (process, rank) = (rank as u32, rank);
        let (start, end) = (Nanos(at * 1_000), Nanos(at * 1_000 + 7_300));
        Event { rank, process, function, start, end, file: FileId(0), ..more }
    };
    let of = |fd, offset, length, result| {
        let event = Event::of(Function::READ);
        Event { fd, offset, length, result, ..event }
    };
    let mut events = Vec::new();
    for rank in 0..2 {
        let open = Event { argument: 0o1102, ..of(3, -1, -1, 3) };
        events.extend([
            call(rank, Function::OPEN, 0, open),
            call(rank, Function::WRITE, 10, of(3, 0, 4096, 4096)),
            call(rank, Function::LSEEK, 20, Event { argument: 0, ..of(3, 100, -1, 100) }),
            call(rank, Function::READ, 30, of(3, 100, 5000, 3996)),
            call(rank, Function::PWRITE, 40, of(3, 1 << 40, 1, 1)),
            call(rank, Function::FSYNC, 50, of(3, -1, -1, 0)),
            call(rank, Function::CLOSE, 60, of(3, -1, -1, 0)),
            call(rank, Function::MPI_BARRIER, 70, Event { ..of(-1, -1, 0, 0) }),
        ]);
    }
    let trace = Trace { header, events, ..Trace::default() };
    save(directory.join("run.iot"), &trace);
    let output = iolab(directory, &["export", "run.iot", "--to", "dftracer", "-o", "run.pfw"]);
    let told = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && told.contains("left out: 2 rows"), "{told}");
    let mut before = calls_of(&directory.join("run.iot"), 1_000);
    before.retain(|call| !call.contains("MPI_Barrier"));
    assert_eq!(calls_of(&directory.join("run.pfw"), 1_000), before);
    let text = String::from_utf8(stdout_of(directory, &["report", "run.pfw"])).unwrap();
    assert!(text.contains("2 ranks"), "{text}");
}
