//! MPI programs, in C and Fortran, under both families of MPI.

use crate::{iolab, name_of, need, trace, workshop};
use iolab_trace::{Function, Trace};
use std::path::Path;
use std::process::{Command, Output};

pub(crate) const FAMILIES: [(&str, &str); 2] = [("mpich", "mpich"), ("openmpi", "openmpi-bin")];

/// `mpiexec -n 2` of a family, bare or below `iolab record`.
fn launch(family: &str, program: &Path, work: &Path, recorded: bool) -> Output {
    let mpiexec = format!("mpiexec.{family}");
    let mut command = if recorded { iolab() } else { Command::new(&mpiexec) };
    if recorded {
        command.args(["record", "-o", "../run.iot", "--", &mpiexec]);
    }
    if family == "openmpi" {
        command.arg("--oversubscribe");
    }
    command.envs([("OMPI_ALLOW_RUN_AS_ROOT", "1"), ("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1")]);
    command.args(["-n", "2"]).arg(program).current_dir(work).output().unwrap()
}

/// Compiles a guest, runs it bare and recorded, and compares.
fn same_in_parallel(family: &str, package: &str, compiler: &str, source: &str) -> Trace {
    need(&format!("mpiexec.{family}"), package);
    need(compiler, "libmpich-dev libopenmpi-dev gfortran");
    let (directory, work) = workshop();
    let program = directory.path().join("ranks");
    let guests = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/record/guests");
    let built = Command::new(compiler).arg("-o").arg(&program).arg(guests.join(source)).status();
    assert!(built.unwrap().success(), "{source} does not compile under {family}");
    let bare = launch(family, &program, &work, false);
    let bare_files = crate::transparency::files(&work);
    std::fs::remove_dir_all(&work).unwrap();
    std::fs::create_dir(&work).unwrap();
    let recorded = launch(family, &program, &work, true);
    let said = String::from_utf8_lossy(&recorded.stderr).into_owned();
    assert!(bare.status.success() && recorded.status.success(), "{said}");
    assert_eq!(bare.stdout, recorded.stdout);
    assert!(crate::transparency::files(&work) == bare_files, "{family} {source}: files differ");
    trace(directory.path())
}

/// Bytes written to a file by a rank, in the POSIX layer.
fn written(trace: &Trace, rank: i32, file: &str) -> i64 {
    let on = |e: &&iolab_trace::Event| {
        matches!(e.function, Function::WRITE | Function::WRITEV | Function::PWRITE)
            && e.rank == rank
            && e.file.index().is_some_and(|at| name_of(&trace.header.files[at].path) == file)
    };
    trace.events.iter().filter(on).map(|event| event.result).sum()
}

#[test]
fn c_programs_under_both_families_have_their_ranks_and_bytes() {
    for (family, package) in FAMILIES {
        let trace = same_in_parallel(family, package, &format!("mpicc.{family}"), "ranks.c");
        for rank in [0, 1] {
            assert_eq!(written(&trace, rank, &format!("rank{rank}")), 640, "{family}");
        }
        assert_eq!(written(&trace, 0, "shared") + written(&trace, 1, "shared"), 128, "{family}");
    }
}

#[test]
fn fortran_programs_under_both_families_have_their_ranks_and_bytes() {
    for (family, package) in FAMILIES {
        let compiler = format!("mpif90.{family}");
        let trace = same_in_parallel(family, package, &compiler, "ranks.f90");
        for rank in [0, 1] {
            assert_eq!(written(&trace, rank, &format!("rank{rank}")), 17_000, "{family}");
            assert_eq!(written(&trace, rank, &format!("rank{rank}.bin")), 4000, "{family}");
        }
    }
}

/// `mpiexec -n 2 iolab record -o ../run.iot options -- program words`, as users of Darshan type it.
fn inside(family: &str, program: &Path, words: &[&str], work: &Path) -> Output {
    let mut command = Command::new(format!("mpiexec.{family}"));
    if family == "openmpi" {
        command.arg("--oversubscribe");
    }
    command.envs([("OMPI_ALLOW_RUN_AS_ROOT", "1"), ("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1")]);
    command.env("IOLAB_LIBRARY", crate::library());
    command.args(["-n", "2", env!("CARGO_BIN_EXE_iolab"), "record", "-o", "../run.iot", "--"]);
    command.arg(program).args(words).current_dir(work).output().unwrap()
}

fn compiled(family: &str, source: &str, directory: &Path) -> std::path::PathBuf {
    let program = directory.join(family);
    let guests = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/record/guests");
    let mut compiler = Command::new(format!("mpicc.{family}"));
    let built = compiler.arg("-o").arg(&program).arg(guests.join(source)).status();
    assert!(built.unwrap().success(), "{source} does not compile under {family}");
    program
}

/// What ranks did to the files of a folder: rank, file, function, bytes moved, in the order of rows.
fn deeds(trace: &Trace, folder: &Path) -> Vec<(i32, String, String, i64)> {
    let path = |e: &iolab_trace::Event| {
        e.file.index().map(|at| trace.header.files[at].path.clone()).unwrap_or_default()
    };
    let folder = folder.to_string_lossy().into_owned();
    trace
        .events
        .iter()
        .filter(|e| e.rank >= 0 && path(e).starts_with(&folder))
        .map(|e| (e.rank, path(e), e.function.name().to_owned(), e.result.max(0)))
        .collect()
}

#[test]
fn recorders_below_mpiexec_make_the_trace_that_one_above_it_makes() {
    for (family, _) in FAMILIES {
        let (directory, work) = workshop();
        let program = compiled(family, "ranks.c", directory.path());
        let output = inside(family, &program, &[], &work);
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.success(), "{said}");
        assert!(said.contains("iolab: ") && !said.contains("warning: not seen: rank"), "{said}");
        let own = trace(directory.path());
        assert!(!directory.path().join("run.iot.parts").exists());
        launch(family, &program, &work, true);
        let whole = trace(directory.path());
        // Descriptors and shared offsets are the same; which rank creates `shared` is its own affair.
        let sorted = |trace| {
            let mut found = deeds(trace, &work);
            found.retain(|(_, _, name, _)| name.contains("write"));
            found.sort();
            found
        };
        assert_eq!(sorted(&own), sorted(&whole), "{family}");
        assert_eq!(own.header.processes.iter().filter(|it| it.rank >= 0).count(), 2);
        assert_eq!(own.header.parts.len(), 2);
        let mut rows = own.events.windows(2);
        assert!(rows.all(|two| two[0].rank <= two[1].rank), "rows are in the order of ranks");
    }
}

#[test]
fn a_killed_rank_keeps_what_all_ranks_did_and_the_program_s_exit_code() {
    for (family, _) in FAMILIES {
        let (directory, work) = workshop();
        let program = compiled(family, "killed_rank.c", directory.path());
        for (killed, code) in [("0", None), ("1", None), ("none", Some(7))] {
            let output = inside(family, &program, &[killed], &work);
            let said = String::from_utf8_lossy(&output.stderr).into_owned();
            assert!(code.is_none_or(|code| output.status.code() == Some(code)), "{said}");
            assert!(code.is_some() || !output.status.success(), "{said}");
            // Its launcher may be gone before a killed recorder's keeper is done.
            let path = directory.path().join("run.iot");
            let mut patience = 1000;
            while !path.exists() && patience > 0 {
                std::thread::sleep(std::time::Duration::from_millis(20));
                patience -= 1;
            }
            let trace = trace(directory.path());
            for rank in [0, 1] {
                let written = written(&trace, rank, &format!("spin{rank}"));
                assert!(written >= 20 * 7, "{family} {killed}: rank {rank} wrote {written}");
            }
            std::fs::remove_file(path).unwrap();
        }
    }
}

#[test]
fn the_next_recording_waits_for_the_trace_of_one_that_lost_a_rank() {
    for (family, _) in FAMILIES {
        let (directory, work) = workshop();
        let program = compiled(family, "killed_rank.c", directory.path());
        inside(family, &program, &["1"], &work);
        let output = inside(family, &program, &["none"], &work);
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(7), "{family}: {said}");
        let trace = trace(directory.path());
        assert_eq!([0, 1].map(|rank| written(&trace, rank, &format!("spin{rank}"))), [240, 240]);
    }
}

/// Starts rank `rank` of two by variables alone.
fn by_hand(rank: &str, node: &str, work: &Path) -> Command {
    let mut command = iolab();
    command.envs([("PMI_RANK", rank), ("PMI_SIZE", "2"), ("SLURMD_NODENAME", node)]);
    command.args(["record", "-o", "../run.iot", "--", "dd", "if=/dev/zero", "bs=100", "count=7"]);
    command.arg(format!("of=out{rank}")).current_dir(work).stderr(std::process::Stdio::piped());
    command
}

#[test]
fn ranks_on_several_nodes_leave_parts_that_every_command_reads_as_one_trace() {
    let (directory, work) = workshop();
    let ranks: Vec<_> = [("0", "north"), ("1", "south")]
        .map(|(rank, node)| by_hand(rank, node, &work).spawn().unwrap())
        .into_iter()
        .map(|child| child.wait_with_output().unwrap())
        .collect();
    assert!(ranks.iter().all(|output| output.status.success()), "{ranks:?}");
    assert!(directory.path().join("run.iot").is_dir());
    let into = directory.path().join("again");
    std::fs::create_dir(&into).unwrap();
    let commands: [&[&str]; 4] = [
        &["report", "run.iot"],
        &["view", "run.iot", "-o", "page.html"],
        &["export", "run.iot", "--to", "csv"],
        &["replay", "run.iot", "--into", "again"],
    ];
    for words in commands {
        let output = iolab().args(words).current_dir(directory.path()).output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.success(), "{words:?}: {said}");
        if words[0] == "export" {
            let table = String::from_utf8_lossy(&output.stdout).into_owned();
            let writes = |file: &str| {
                table.lines().filter(|l| l.contains(",write,") && l.contains(file)).count()
            };
            assert_eq!((writes("/out0,"), writes("/out1,")), (7, 7), "{table}");
        }
    }
}

#[test]
fn ranks_that_start_late_join_what_is_there_and_a_second_job_begins_anew() {
    let (directory, work) = workshop();
    for _ in 0..2 {
        for rank in ["0", "1"] {
            let output = by_hand(rank, "north", &work).output().unwrap();
            assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        }
        let trace = trace(directory.path());
        let writes = |rank| {
            let wrote = |e: &&iolab_trace::Event| e.rank == rank && e.function == Function::WRITE;
            trace.events.iter().filter(wrote).count()
        };
        assert_eq!((writes(0), writes(1)), (7, 7));
        assert!(!trace.header.losses.unseen.iter().any(|it| it.contains("of its job")));
    }
}
