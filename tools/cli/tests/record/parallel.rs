//! MPI programs, in C and Fortran, under both families of MPI.

use crate::{iolab, name_of, need, trace, workshop};
use iolab_trace::{Function, Trace};
use std::path::Path;
use std::process::{Command, Output};

const FAMILIES: [(&str, &str); 2] = [("mpich", "mpich"), ("openmpi", "openmpi-bin")];

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
