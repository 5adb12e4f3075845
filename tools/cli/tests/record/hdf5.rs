//! Calls of HDF5 as rows: what they cause below, and that the guest does not notice.

use crate::{iolab, need, record, trace, workshop};
use iolab_report::{Analysis, Report};
use iolab_trace::{Event, Layer, Trace};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

fn guests() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/record/guests")
}

/// The system's HDF5.
fn c_library() -> PathBuf {
    PathBuf::from("/usr/lib/x86_64-linux-gnu/hdf5/serial/libhdf5.so")
}

fn c_program(directory: &Path) -> Vec<PathBuf> {
    need("gcc", "gcc");
    let headers = Path::new("/usr/include/hdf5/serial");
    assert!(headers.exists(), "HDF5's headers are not installed: apt-get install libhdf5-dev");
    let program = directory.join("hdf5_calls");
    let built = Command::new("gcc")
        .args(["-O1", "-o"])
        .arg(&program)
        .arg(guests().join("hdf5_calls.c"))
        .arg("-I")
        .arg(headers)
        .arg(c_library())
        .status();
    assert!(built.unwrap().success(), "hdf5_calls.c does not compile");
    vec![program]
}

/// Python with the HDF5 that its package brings.
fn python_program() -> Vec<PathBuf> {
    let python = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../build/venv/bin/python");
    let has_it = Command::new(&python).args(["-c", "import h5py"]).output();
    assert!(
        has_it.is_ok_and(|output| output.status.success()),
        "no h5py in build/venv: tools/setup/install test"
    );
    vec![python, guests().join("hdf5_calls.py")]
}

fn run(words: &[PathBuf], directory: &Path) -> Output {
    Command::new(&words[0]).args(&words[1..]).current_dir(directory).output().unwrap()
}

/// Runs bare and recorded; the trace, if nobody noticed.
fn recorded(words: &[PathBuf], directory: &Path, work: &Path) -> Trace {
    let bare = run(words, work);
    let file = fs::read(work.join("out.h5")).unwrap();
    let seen = record(directory, &["--layer", "posix,stdio,hdf5"], words);
    assert_eq!(seen.status.code(), bare.status.code());
    assert_eq!(String::from_utf8_lossy(&seen.stdout), String::from_utf8_lossy(&bare.stdout));
    let errors = String::from_utf8_lossy(&seen.stderr).into_owned();
    assert!(errors.starts_with(&*String::from_utf8_lossy(&bare.stderr)), "{errors}");
    assert!(fs::read(directory.join("out.h5")).unwrap() == file, "the file differs");
    trace(directory)
}

/// Calls of HDF5 of that name on that object, with the bytes they asked for.
fn calls(trace: &Trace, function: &str, object: &str) -> (usize, i64) {
    let is_it = |event: &&Event| {
        let on = usize::try_from(event.argument).ok().and_then(|at| trace.header.objects.get(at));
        event.function.layer() == Layer::Hdf5
            && event.function.name() == function
            && on.is_some_and(|on| on.path == object)
    };
    let found: Vec<_> = trace.events.iter().filter(is_it).collect();
    (found.len(), found.iter().map(|event| event.length).sum())
}

/// Every byte that went to the file has one cause among the rows of the report.
fn assert_complete(trace: &Trace, report: &Report) {
    let is_file = |path: &str| path.ends_with("/out.h5");
    let written = |event: &&Event| {
        let path = event.file.index().map_or("", |at| trace.header.files[at].path.as_str());
        event.function.layer() == Layer::Posix
            && event.function.class() == iolab_trace::Class::Write
            && is_file(path)
    };
    let below: u64 = trace.events.iter().filter(written).map(Event::moved_bytes).sum();
    let rows = report.datasets.iter().filter(|row| is_file(&row.file));
    let of_rows = rows.filter_map(|row| row.level(Layer::Posix)).map(|it| it.written_bytes);
    assert!(below > 2 * 64 * 256 * 8);
    assert_eq!(of_rows.sum::<u64>(), below);
}

fn assert_datasets(report: &Report) {
    for (name, chunk) in [("/group/plain", vec![]), ("/in chunks", vec![16, 32])] {
        let row = report.datasets.iter().find(|row| row.dataset.as_deref() == Some(name));
        let row = row.unwrap_or_else(|| panic!("no {name} in {:?}", report.datasets));
        let below = row.level(Layer::Posix).unwrap();
        assert_eq!((below.written_bytes, row.element_bytes), (64 * 256 * 8, 8), "{name}");
        assert_eq!((&row.chunk, row.write_amplification), (&chunk, Some(1.0)), "{name}");
    }
}

#[test]
fn a_c_program_s_datasets_have_their_calls_and_all_that_was_written() {
    let (directory, work) = workshop();
    let trace = recorded(&c_program(directory.path()), directory.path(), &work);
    assert_eq!(calls(&trace, "H5Dwrite", "/group/plain"), (1, 64 * 256 * 8));
    assert_eq!(calls(&trace, "H5Dwrite", "/in chunks"), (64, 64 * 256 * 8));
    assert_eq!(calls(&trace, "H5Dread", "/group/plain"), (1, 256 * 4));
    assert_eq!(calls(&trace, "H5Awrite", "/in chunks@unit"), (1, 4));
    let failed =
        trace.events.iter().filter(|it| it.function.layer() == Layer::Hdf5 && it.result < 0);
    let failed: Vec<_> = failed.map(|event| event.function.name()).collect();
    assert_eq!(failed, ["H5Dwrite", "H5Dopen"]);
    let report = Analysis::of(&trace);
    assert_datasets(&report);
    assert_complete(&trace, &report);
}

#[test]
fn a_python_program_s_datasets_have_theirs_of_the_package_s_own_hdf5() {
    let (directory, work) = workshop();
    let trace = recorded(&python_program(), directory.path(), &work);
    assert_eq!(calls(&trace, "H5Dwrite", "/in chunks"), (64, 64 * 256 * 8));
    assert_eq!(calls(&trace, "H5Dwrite", "/group/plain"), (1, 64 * 256 * 8));
    let report = Analysis::of(&trace);
    assert_datasets(&report);
    assert_complete(&trace, &report);
}

#[test]
fn the_library_is_loaded_where_hdf5_can_be_and_on_request() {
    let (directory, work) = workshop();
    let loads = |options: &[&str], words: &[&str]| {
        let output = record(directory.path(), options, words);
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8_lossy(&output.stdout).contains("libiolab_hdf5.so")
    };
    assert!(!loads(&[], &["sh", "-c", "echo $LD_PRELOAD"]));
    assert!(loads(&["--layer", "posix,hdf5"], &["sh", "-c", "echo $LD_PRELOAD"]));
    let python = "import os; print(os.environ['LD_PRELOAD'])";
    assert!(loads(&[], &["python3", "-c", python]));
    assert!(!loads(&["--layer", "posix"], &["python3", "-c", python]));
    // The default of a program that lists it, also in the report.
    let program = c_program(directory.path());
    let output = record(&work, &[], &program);
    assert_eq!(output.status.code(), Some(3));
    let told = |options: &[&str]| {
        let output =
            iolab().arg("report").args(options).arg(work.join("run.iot")).output().unwrap();
        String::from_utf8(output.stdout).unwrap() + &String::from_utf8_lossy(&output.stderr)
    };
    let tree = told(&["--by", "dataset"]);
    assert!(tree.contains("out.h5:/in chunks in chunks of 16 × 32") && tree.contains("  posix"));
    assert!(told(&[]).contains("Datasets of HDF5") && told(&["--json"]).contains("\"datasets\""));
    loads(&[], &["true"]);
    fs::rename(directory.path().join("run.iot"), work.join("run.iot")).unwrap();
    let refusal = told(&["--by", "dataset"]);
    assert!(
        refusal.contains("has no calls of HDF5 or NetCDF") && refusal.contains("hint:"),
        "{refusal}"
    );
}

#[test]
fn names_looked_up_at_run_time_are_those_that_are_there() {
    let (directory, work) = workshop();
    let program = directory.path().join("names");
    let module = directory.path().join("names_module.so");
    let hdf5 = c_library();
    let compiled = |to: &Path, from: &str, options: &[&str]| {
        need("gcc", "gcc");
        let mut gcc = Command::new("gcc");
        gcc.arg("-O1").arg("-o").arg(to).arg(guests().join(from)).args(options);
        assert!(gcc.arg("-ldl").status().unwrap().success(), "{from} does not compile");
    };
    compiled(&program, "names.c", &[]);
    compiled(&module, "names_module.c", &["-shared", "-fPIC", hdf5.to_str().unwrap()]);
    let words = [program, hdf5, module];
    let bare = String::from_utf8(run(&words, &work).stdout).unwrap();
    assert!(bare.contains("created: 1\nclosed: 0\n"), "{bare}");
    for layers in ["posix,hdf5", "posix,mpi", "posix,mpi,hdf5"] {
        let seen = record(directory.path(), &["--layer", layers], &words);
        assert_eq!(String::from_utf8_lossy(&seen.stdout), bare, "with {layers}");
        // What it found and called is seen.
        let rows = trace(directory.path());
        let opened = rows.events.iter().filter(|it| it.function.name() == "H5Fcreate").count();
        assert_eq!(opened, usize::from(layers.contains("hdf5")), "with {layers}");
    }
}
