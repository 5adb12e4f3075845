//! Parallel programs under both families.

use super::bench::{WAYS, need, same_everywhere};
use std::path::Path;

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
