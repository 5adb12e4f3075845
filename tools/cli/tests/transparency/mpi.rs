//! Parallel programs under both families.

use super::bench::{WAYS, need, same_everywhere};
use std::path::Path;
use std::process::{Command, Output};

fn check(family: &str, compiler: &str, source: &str) {
    let package = match family {
        "mpich" => "libmpich-dev mpich gfortran",
        _ => "libopenmpi-dev openmpi-bin gfortran",
    };
    let (compiler, launcher) = (format!("{compiler}.{family}"), format!("mpiexec.{family}"));
    need(&compiler, package);
    need(&launcher, package);
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/guests").join(source);
    let script = format!(
        "env -u LD_PRELOAD {compiler} -w -o program {} && {launcher} -n 2 ./program 40 && rm program && ls",
        source.display()
    );
    same_everywhere(&script, None, WAYS);
}

#[test]
fn a_c_program_under_mpich() {
    check("mpich", "mpicc", "parallel.c");
}

#[test]
fn a_c_program_under_open_mpi() {
    check("openmpi", "mpicc", "parallel.c");
}

#[test]
fn ranks_see_behind_a_barrier_what_another_one_wrote() {
    check("openmpi", "mpicc", "barrier.c");
    check("mpich", "mpicc", "barrier.c");
}

#[test]
fn a_fortran_program_under_mpich() {
    check("mpich", "mpifort", "parallel.f90");
}

#[test]
fn a_fortran_program_under_open_mpi() {
    check("openmpi", "mpifort", "parallel.f90");
}

#[test]
fn ranks_see_what_another_one_wrote_whoever_starts_the_runs() {
    let run = format!("{} run --apply write-back --", env!("CARGO_BIN_EXE_iolab"));
    let barrier = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/guests/barrier.c");
    for family in ["mpich", "openmpi"] {
        let home = tempfile::tempdir().unwrap();
        let compiled =
            shell(&format!("mpicc.{family} -w -o program {}", barrier.display()), home.path());
        assert!(compiled.status.success(), "{compiled:?}");
        let launcher = format!("mpiexec.{family} -n 2");
        for (command, warnings) in [
            (format!("{launcher} {run} ./program 40"), 1),
            (format!("{run} {launcher} {run} ./program 40"), 0),
            (format!("{run} sh -c '{launcher} ./program 40'"), 0),
        ] {
            let output = shell(&command, home.path());
            let said = String::from_utf8_lossy(&output.stderr);
            assert_eq!(String::from_utf8_lossy(&output.stdout), "0 bad rounds\n", "{said}");
            let told = said.matches("every rank has an `iolab run` of its own").count();
            assert_eq!(told, warnings, "{command}: {said}");
        }
    }
}

fn shell(script: &str, folder: &Path) -> Output {
    let mut command = Command::new("bash");
    command.args(["-c", script]).current_dir(folder);
    command.env("OMPI_ALLOW_RUN_AS_ROOT", "1").env("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1");
    command.output().unwrap()
}
