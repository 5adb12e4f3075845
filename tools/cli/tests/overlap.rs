//! `iolab overlap` from outside: every way runs, without MPI and with both families, and what is
//! wrong is named. How long things take is not looked at: the arithmetic is held to a virtual clock
//! in `iolab-bench`.

#[path = "bench/launch.rs"]
mod launch;

use iolab_bench::{OverlapOutcome, OverlapPlan};
use iolab_trace::Layer;
use launch::{iolab, launchers, told, under};
use std::fs;
use std::path::Path;
use std::process::Command;
use tempfile::TempDir;

/// Few and small operations, one calibration try.
const BRIEF: [&str; 11] =
    ["overlap", "--count", "3", "-i", "1", "--fill", "1", "--min-tries", "1", "--max-tries", "1"];

fn found(mut command: Command, arguments: &[&str]) -> OverlapOutcome {
    let folder = TempDir::new().expect("a folder");
    command.args(BRIEF).args(arguments).args(["--json", "-o"]).arg(folder.path().join("data"));
    let output = command.output().expect("it starts");
    assert!(output.status.success(), "{command:?}: {}", told(&output));
    let left: Vec<_> = fs::read_dir(folder.path()).expect("the folder").collect();
    assert!(left.is_empty(), "{left:?} stay behind");
    serde_json::from_slice(&output.stdout).expect("a document")
}

#[test]
fn without_io_or_without_bytes_there_is_nothing_to_overlap() {
    for arguments in [["-b", "0"].as_slice(), &["--compute-only"], &["-b", "0", "--poll"]] {
        let outcome = found(iolab(), arguments);
        let point = &outcome.points[0];
        assert_eq!((point.bytes, point.theory, point.compute_over_io), (0, 1.0, None));
        assert!(point.usable && point.compute_ns.mean > 0.0);
    }
}

#[test]
fn io_alone_takes_the_time_of_the_device_in_both_phases() {
    // The device sleeps, so both phases take its time, however busy the machine is.
    let outcome = found(iolab(), &["--ratio", "0", "-b", "1m", "--throttle", "100m"]);
    let point = &outcome.points[0];
    assert_eq!(point.bytes, 3 << 20);
    assert!(point.theory > 0.99, "{}", point.theory);
    assert!(point.nonblocking_ns.min >= 30e6 && point.blocking_ns.min >= 30e6);
    assert!(point.wait_ns.mean > 0.0);
}

#[test]
fn every_way_without_mpi_moves_its_bytes_in_both_directions() {
    for (method, way) in [
        ("posix", "thread"),
        ("vectored", "thread"),
        ("uring", "thread"),
        ("uring", "native"),
        ("aio", "native"),
    ] {
        let rows = ["-p", "strided:strip=4k,stripes=4", "-p", "tiled:tile=8x8,element=8"];
        let mut arguments =
            vec!["-a", method, "--way", way, "--direction", "write,read", "-N", "2"];
        arguments.extend(rows);
        for poll in [false, true] {
            if poll {
                arguments.push("--poll");
            }
            let outcome = found(iolab(), &arguments);
            let bytes: Vec<u64> = outcome.points.iter().map(|point| point.bytes).collect();
            assert_eq!(bytes, [6 * 4096, 6 * 4096, 6 * 512, 6 * 512], "{method} {way}");
        }
    }
}

#[test]
fn every_way_of_mpi_moves_its_bytes_under_both_families() {
    let plan = "[global]\ncount=3\nrepetitions=1\nfill=1\nmin-tries=1\nmax-tries=1\n\
        [[test]]\nspatial=['strided:strip=4k,stripes=4','tiled:tile=8x8,element=8']\n\
        method=['independent','collective']\ndirection=['write','read']\n\
        [[test]]\nspatial=['strided:strip=4k,stripes=4','tiled:tile=8x8,element=8']\n\
        method=['nonblocking','nonblocking-collective']\nway=['native','thread']\npoll=[false,true]\n\
        [[test]]\nspatial='tiled:tile=8x8,element=8'\nmethod='nonblocking'\nway='native'\nview=true\n";
    let folder = TempDir::new().expect("a folder");
    let file = folder.path().join("plan.toml");
    fs::write(&file, plan).expect("written");
    for launcher in launchers() {
        let mut command = under(launcher, 2);
        command.arg("overlap").arg(&file).args(["--json", "-o"]).arg(folder.path().join("data"));
        let output = command.output().expect("it starts");
        assert!(output.status.success(), "{launcher}: {}", told(&output));
        let outcome: OverlapOutcome = serde_json::from_slice(&output.stdout).expect("a document");
        assert!(outcome.refused.is_empty(), "{launcher}: {:?}", outcome.refused);
        assert_eq!((outcome.points.len(), outcome.ranks), (8 + 16 + 1, 2));
        for point in &outcome.points {
            let case = &outcome.cases[point.case];
            let each = if case.spatial.starts_with("tiled") { 512 } else { 4096 };
            assert_eq!(point.bytes, 6 * each, "{launcher}: {} {}", case.title, case.spatial);
        }
    }
}

#[test]
fn a_rank_bound_to_one_processor_is_warned_of() {
    let folder = TempDir::new().expect("a folder");
    let mut command = Command::new("taskset");
    command.args(["-c", "0", env!("CARGO_BIN_EXE_iolab")]).args(BRIEF).args(["-b", "4k", "-o"]);
    let output = command.arg(folder.path().join("data")).output().expect("taskset starts");
    let said = told(&output);
    assert!(output.status.success() && said.contains("one processor only"), "{said}");
    assert!(said.contains("--bind-to none"), "{said}");
}

#[test]
fn what_cannot_be_measured_is_named_before_anything_is_written() {
    let cases: [(&[&str], &str); 15] = [
        (&["--ratio", "1,-2"], "a ratio outside"),
        (&["--ratio", "nan"], "a ratio outside"),
        (&["--ratio", "2,2"], "a ratio twice"),
        (&["--margin", "0"], "margin outside"),
        (&["--margin", "1"], "margin outside"),
        (&["--min-tries", "9", "--max-tries", "2"], "min-tries above max-tries"),
        (&["--count", "0"], "count outside"),
        (&["-N", "0"], "ranks outside"),
        (&["--throttle", "0"], "throttle = 0"),
        (&["-a", "iwrite"], "no method `iwrite`"),
        (&["-a", "nonblocking"], "needs a start under mpiexec"),
        (&["--way", "native"], "posix has no non-blocking form of its own"),
        (&["-p", "spiral"], "spiral"),
        (&["-p", "strided:strip=1g,stripes=1g"], "has room for"),
        (&["nowhere.toml"], "nowhere.toml"),
    ];
    let folder = TempDir::new().expect("a folder");
    for (arguments, fault) in cases {
        let mut command = iolab();
        command.arg("overlap").args(arguments).arg("-o").arg(folder.path().join("data"));
        let output = command.output().expect("it starts");
        let said = told(&output);
        assert_eq!(output.status.code(), Some(1), "{arguments:?}: {said}");
        assert!(said.starts_with("error:") && said.contains(fault), "{arguments:?}: {said}");
        assert!(said.contains("hint:"), "{arguments:?}: {said}");
    }
    assert_eq!(fs::read_dir(folder.path()).expect("the folder").count(), 0);
}

#[test]
fn a_file_that_cannot_be_written_is_named_with_its_rank() {
    for target in ["/nonexistent/folder/file", "/dev/full"] {
        let output = iolab().args(BRIEF).args(["-b", "4k", "-N", "2", "-o", target]).output();
        let output = output.expect("it starts");
        let said = told(&output);
        assert_eq!(output.status.code(), Some(1), "{said}");
        assert!(said.contains(target) && said.contains("hint:"), "{said}");
    }
    assert!(Path::new("/dev/full").exists(), "a device was removed");
}

#[test]
fn results_come_as_document_table_picture_and_trace() {
    let folder = TempDir::new().expect("a folder");
    let at = |name: &str| folder.path().join(name);
    let mut command = iolab();
    command.args(BRIEF).args(["-b", "64k", "--throttle", "50m", "--ratio", "0.5,2", "-N", "2"]);
    command.args(["-a", "posix,aio", "--csv"]);
    for (flag, name) in
        [("--output", "a.json"), ("--plot", "a.svg"), ("--trace", "a.iot"), ("-o", "data")]
    {
        command.arg(flag).arg(at(name));
    }
    let output = command.output().expect("it starts");
    assert!(output.status.success(), "{}", told(&output));
    let mut csv = csv::Reader::from_reader(&output.stdout[..]);
    let points = csv.records().collect::<Result<Vec<_>, _>>().expect("a table");
    assert_eq!(points.len(), 4, "{points:?}");
    let text = fs::read_to_string(at("a.json")).expect("a document");
    let outcome: OverlapOutcome = serde_json::from_str(&text).expect("a document");
    assert_eq!((outcome.points.len(), outcome.summaries.len()), (4, 4));
    assert!(OverlapPlan::parse(&outcome.plan).is_ok(), "the plan can be run again");
    side_by_side(&at("a.iot"));
    reported_together(folder.path());
}

/// On every rank there is I/O in a thread of its own, next to a computation.
fn side_by_side(path: &Path) {
    let trace = iolab_iot::read(fs::File::open(path).expect("a trace")).expect("readable");
    let names: Vec<_> = trace.header.processes.iter().map(|process| &process.name).collect();
    assert_eq!(names, ["rank 0", "rank 1"]);
    for process in [0, 1] {
        let of = |thread| {
            trace.events.iter().filter(move |e| (e.process, e.thread) == (process, thread))
        };
        let computing = || of(0).filter(|event| event.function.layer() == Layer::Compute);
        assert_eq!((computing().count(), of(1).count()), (2 * 12, 12));
        assert!(of(1).all(|io| io.moved_bytes() == 65536));
        // On a busy machine a helper may come too late for some, not for all.
        let beside = |event: &iolab_trace::Event| {
            of(1).any(|io| io.start < event.end && event.start < io.end)
        };
        assert!(computing().any(beside), "nothing went on side by side");
    }
}

fn reported_together(folder: &Path) {
    let (result, plot) = (folder.join("a.json"), folder.join("both.svg"));
    let mut command = iolab();
    command.args(["overlap", "report"]).args([&result, &result]).arg("--plot").arg(&plot);
    let output = command.output().expect("it starts");
    let said = told(&output);
    // Whether a point is usable is up to the machine; that it is told about is not.
    let rows = said.lines().filter(|line| line.starts_with("aio write in a thread, compute/io"));
    assert_eq!((output.status.code(), rows.count()), (Some(0), 2 * 2), "{said}");
    let picture = fs::read_to_string(&plot).expect("a picture");
    assert_eq!(picture.matches("aio write in a thread").count(), 2, "one legend entry per run");
    let broken = iolab().args(["overlap", "report"]).arg(&plot).output().expect("it starts");
    assert_eq!(broken.status.code(), Some(1));
    assert!(told(&broken).contains("both.svg"), "{}", told(&broken));
    let text = fs::read_to_string(&result).expect("a document");
    let mut wrong: serde_json::Value = serde_json::from_str(&text).expect("a document");
    wrong["points"][0]["case"] = 9.into();
    fs::write(&plot, wrong.to_string()).expect("written");
    let broken = iolab().args(["overlap", "report"]).arg(&plot).output().expect("it starts");
    assert_eq!(broken.status.code(), Some(1));
    assert!(told(&broken).contains("case 9"), "{}", told(&broken));
}

#[test]
fn the_plans_of_this_repository_are_valid() {
    let plans = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../plans/overlap");
    let mut cases = 0;
    for entry in fs::read_dir(plans).expect("plans/overlap") {
        let path = entry.expect("an entry").path();
        let text = fs::read_to_string(&path).expect("readable");
        let plan = OverlapPlan::parse(&text);
        cases += plan.unwrap_or_else(|error| panic!("{}: {error}", path.display())).cases.len();
    }
    assert!(cases > 20, "only {cases} cases");
}
