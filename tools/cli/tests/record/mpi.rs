//! Calls of MPI as rows: in every family and language the same ones, and a program for the simulator.

use crate::parallel::FAMILIES;
use crate::{iolab, need, trace, workshop};
use iolab_trace::{Event, Function, Layer, Partner, Trace};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// As Linux has it.
const ECANCELED: i64 = 125;
const LAYERS: [&str; 2] = ["--layer", "posix,stdio,mpi"];

/// Compiles a guest with a wrapper of MPI.
fn compiled(compiler: &str, options: &[&str], source: &str, folder: &Path) -> PathBuf {
    need(compiler, "libmpich-dev libopenmpi-dev gfortran");
    let program = folder.join("program");
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/record/guests").join(source);
    let built =
        Command::new(compiler).args(options).arg("-o").arg(&program).arg(source).output().unwrap();
    assert!(built.status.success(), "{}", String::from_utf8_lossy(&built.stderr));
    program
}

fn succeeds(mut command: Command, work: &Path) -> Output {
    command.envs([("OMPI_ALLOW_RUN_AS_ROOT", "1"), ("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1")]);
    let output = command.current_dir(work).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{command:?}: {said}");
    output
}

fn launcher(family: &str) -> Vec<String> {
    let mut words = vec![format!("mpiexec.{family}")];
    words.extend((family == "openmpi").then(|| "--oversubscribe".to_owned()));
    words.extend(["-n".to_owned(), "2".to_owned()]);
    words
}

/// Runs on two ranks, bare and recorded; the trace, if nobody noticed.
fn recorded(family: &str, program: &Path, folder: &Path) -> Trace {
    let [bare, work] = ["bare", "recorded"].map(|name| folder.join(name));
    let words = launcher(family);
    let run = |work: &Path, is_recorded: bool| {
        fs::create_dir(work).unwrap();
        let mut command = if is_recorded { iolab() } else { Command::new(&words[0]) };
        match is_recorded {
            true => {
                command.args(["record", "-o", "../run.iot"]).args(LAYERS).arg("--").args(&words)
            }
            false => command.args(&words[1..]),
        };
        command.arg(program);
        succeeds(command, work).stdout
    };
    let told = [run(&bare, false), run(&work, true)].map(|it| String::from_utf8(it).unwrap());
    assert_eq!(told[0], told[1], "{family}");
    let files = [&bare, &work].map(|folder| crate::transparency::files(folder));
    assert!(files[0] == files[1], "{family}: files differ");
    trace(folder)
}

/// A row of MPI without what differs between runs: rank, name, file, offset, length, argument, result.
type Row = (i32, &'static str, String, i64, i64, i64, i64);

fn rows(trace: &Trace) -> Vec<Row> {
    let is_mpi = |event: &&Event| matches!(event.function.layer(), Layer::Mpi | Layer::Mpiio);
    let mut rows: Vec<(i32, Row)> = Vec::new();
    for event in trace.events.iter().filter(is_mpi) {
        let file = event.file.index().map(|at| crate::name_of(&trace.header.files[at].path));
        let result = if event.function == Function::MPI_FILE_OPEN { 0 } else { event.result };
        let name = file.map(str::to_owned).unwrap_or_default();
        let row = (event.rank, event.function.name(), name, event.offset, event.length);
        rows.push((event.rank, (row.0, row.1, row.2, row.3, row.4, event.argument, result)));
    }
    rows.sort_by_key(|(rank, _)| *rank);
    rows.into_iter().map(|(_, row)| row).collect()
}

fn message(rank: u32, tag: i64) -> i64 {
    Partner::to_field(Some(Partner { rank: Some(rank), tag: Some(tag as u32) }))
}

#[test]
fn both_families_have_the_same_rows_of_the_same_calls() {
    let mut all = Vec::new();
    for (family, package) in FAMILIES {
        need(&format!("mpiexec.{family}"), package);
        let (directory, _) = workshop();
        let program =
            compiled(&format!("mpicc.{family}"), &["-w"], "mpi_calls.c", directory.path());
        let trace = recorded(family, &program, directory.path());
        let listed: std::collections::BTreeSet<_> = trace.header.communicators.iter().collect();
        let known = [vec![0], vec![0, 1], vec![1], vec![1, 0]];
        assert_eq!(listed, known.iter().collect(), "{family}");
        let left_out = &trace.header.losses.left_out_calls;
        assert_eq!(left_out.get("MPI: calls that failed"), Some(&4), "{left_out:?}");
        all.push(rows(&trace));
    }
    assert_eq!(all[0], all[1]);
    let own: Vec<_> = all[0].iter().filter(|row| row.0 == 0).cloned().collect();
    let at = |name: &str, file: &str| -> Vec<(i64, i64, i64, i64)> {
        let found = own.iter().filter(|row| row.1 == name && row.2 == file);
        found.map(|row| (row.3, row.4, row.5, row.6)).collect()
    };
    // Through a view of four ints of every eight, from byte 100 on.
    assert_eq!(at("MPI_File_write_all", "strided"), [(100, 64, -1, 64), (228, 64, -1, 64)]);
    let strided = [100, 132, 164, 196, 228, 260, 292, 324].map(|offset| (offset, 16, -1, 0));
    assert_eq!(at("piece", "strided"), strided);
    assert_eq!(at("MPI_File_write", "strided"), [(132, 8, -1, 8)], "at unit 4 of the view");
    assert_eq!(at("MPI_File_read", "strided"), [(100, 16, -1, 16)]);
    let matrix: Vec<_> = (0..8).map(|row| (row * 128, 64, -1, 0)).collect();
    assert_eq!(at("piece", "matrix"), matrix);
    assert_eq!(at("MPI_File_iwrite", "plain"), [(0, 256, 1, 256)]);
    assert_eq!(at("MPI_File_iwrite_all", "plain"), [(1024, 256, 2, 256)], "split");
    assert_eq!(at("MPI_File_read", "plain"), [(1496, 256, -1, 40)], "the file ends there");
    assert_eq!(at("MPI_File_set_size", "plain"), [(-1, 1024, -1, 0)]);
    let anybody = Partner::to_field(Some(Partner { rank: None, tag: None }));
    assert_eq!(at("MPI_Sendrecv", ""), [(message(1, 7), 4, message(1, 7), 0)]);
    assert_eq!(at("MPI_Irecv", ""), [(anybody, -1, 3, 0), (message(1, 99), -1, 11, 0)]);
    let again = |number: i64| (number, 12, message(1, 4), 0);
    let small = |at: i64| (7 + at, 4, message(1, 20 + at), 0);
    let null = (10, 0, -1, 0);
    let sends = [(4, 8, message(1, 9), 0), again(5), again(6), small(0), small(1), small(2), null];
    assert_eq!(at("MPI_Isend", ""), sends);
    let cancelled = |number: i64| if number == 11 { -ECANCELED } else { 0 };
    let waits: Vec<_> = (1..=11).map(|number| (-1, -1, number, cancelled(number))).collect();
    assert_eq!(at("MPI_Wait", ""), waits, "one for each request, however it was waited for");
    let sent = [(-1, 400, message(1, 3), 0), (-1, 0, -1, 0), (-1, 20, message(1, 30), 0)];
    assert_eq!(at("MPI_Send", ""), sent);
    let probed = all[0].iter().any(|row| (row.0, row.1, row.3) == (1, "MPI_Recv", message(0, 30)));
    assert!(probed, "what a matching probe found is received");
    let (alone, after_a_jump) = ((-1, 8, 0, 0), (-1, 4, 0, 0));
    let broadcasts = [(-1, 256, 1, 0), (-1, 12, 0, 0), alone, alone, alone, after_a_jump];
    assert_eq!(at("MPI_Bcast", ""), broadcasts);
    let alone = all[0].iter().filter(|row| (row.0, row.1, row.4) == (1, "MPI_Bcast", 8));
    assert_eq!(alone.map(|row| row.5).collect::<Vec<_>>(), [1; 3], "by itself, rank 1 is the root");
    let from_nobody = all[0].iter().filter(|row| (row.0, row.1) == (0, "MPI_Recv"));
    assert_eq!(from_nobody.filter(|row| row.3 == -1).count(), 1);
    assert_eq!(at("MPI_Reduce", ""), [(-1, 12, 1, 0)]);
    assert_eq!(at("MPI_Gather", ""), [(-1, 16, 0, 0); 2], "in place, and parts of other lengths");
    assert_eq!(at("MPI_Scatter", ""), [(-1, 16, 1, 0)]);
    assert_eq!(at("MPI_Allgather", ""), [(-1, 20, -1, 0), (-1, 16, -1, 0)]);
}

#[test]
fn fortran_has_the_same_rows_by_each_of_its_ways() {
    let mut all = Vec::new();
    for (family, package) in FAMILIES {
        need(&format!("mpiexec.{family}"), package);
        for options in [&["-w"][..], &["-w", "-DF08"]] {
            let (directory, _) = workshop();
            let compiler = format!("mpif90.{family}");
            let program = compiled(&compiler, options, "mpi_calls.F90", directory.path());
            all.push(rows(&recorded(family, &program, directory.path())));
        }
    }
    assert!(all.iter().all(|rows| *rows == all[0]), "{all:#?}");
    let names: Vec<_> = all[0].iter().filter(|row| row.0 == 1).map(|row| (row.1, row.3)).collect();
    let expected = [
        ("MPI_Init", -1),
        ("MPI_File_open", 0),
        ("MPI_File_set_view", 800),
        ("MPI_File_write_all", 800),
        ("MPI_File_close", -1),
        ("MPI_Recv", 5),
        ("MPI_Allreduce", -1),
        ("MPI_Finalize", -1),
    ];
    assert_eq!(names, expected);
}

#[test]
fn ranks_that_record_themselves_leave_the_same_rows() {
    for (family, _) in FAMILIES {
        let (directory, work) = workshop();
        let program =
            compiled(&format!("mpicc.{family}"), &["-w"], "mpi_calls.c", directory.path());
        let outside = recorded(family, &program, directory.path());
        let words = launcher(family);
        let mut command = Command::new(&words[0]);
        command.env("IOLAB_LIBRARY", crate::library()).args(&words[1..]);
        command.args([env!("CARGO_BIN_EXE_iolab"), "record", "-o", "../run.iot"]);
        command.args(LAYERS).arg("--").arg(&program);
        succeeds(command, &work);
        let inside = trace(directory.path());
        assert_eq!(rows(&inside), rows(&outside), "{family}");
    }
}

#[test]
fn a_recorded_program_is_simulated_with_another_collective_algorithm() {
    let (directory, _) = workshop();
    let program = compiled("mpicc.mpich", &["-w"], "mpi_calls.c", directory.path());
    recorded("mpich", &program, directory.path());
    let simulated = |arguments: &[&str]| -> serde_json::Value {
        let mut command = iolab();
        command.args(["simulate", "--trace", "run.iot", "--platform", "classic-hdd", "--json"]);
        command.args(arguments);
        serde_json::from_slice(&succeeds(command, directory.path()).stdout).unwrap()
    };
    let (usual, other) = (simulated(&[]), simulated(&["--collective", "direct"]));
    assert_ne!(usual["event_hash"], other["event_hash"]);
    assert_ne!(usual["end_ns"], other["end_ns"], "{usual:#}");
    // Strategies take what ranks do to files of their own, past MPI-IO, too.
    let staged = simulated(&["--apply", "write-back"]);
    assert_eq!(staged["choices"]["chosen"][0], "--apply write-back", "{staged:#}");
    assert!(staged["applications"][0]["notes"][0].as_str().unwrap().contains("strategies"));
    // The same trace, by its calls of POSIX.
    let mut staged = iolab();
    staged.args(["simulate", "--trace", "run.iot", "--platform", "local-ext4"]);
    staged.args(["--apply", "write-back"]);
    succeeds(staged, directory.path());
}

#[test]
fn a_program_without_mpi_does_not_notice_and_a_library_that_is_missing_is_named() {
    let (directory, _) = workshop();
    let script = "import ctypes; print(hasattr(ctypes.CDLL('libc.so.6'), 'MPI_Init'))";
    let output = crate::record(directory.path(), &LAYERS, &["python3", "-c", script]);
    assert_eq!(String::from_utf8_lossy(&output.stdout), "False\n");
    assert!(trace(directory.path()).events.iter().all(|it| it.function.layer() != Layer::Mpi));
    let alone = directory.path().join("libiolab_intercept.so");
    fs::copy(crate::library(), &alone).unwrap();
    let mut command = iolab();
    command.env("IOLAB_LIBRARY", &alone).args(["record", "-o", "x.iot"]).args(LAYERS);
    let output = command.args(["--", "true"]).current_dir(directory.path()).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success() && said.contains("libiolab_mpi.so"), "{said}");
}
