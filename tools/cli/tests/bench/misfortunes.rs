//! Targets, disks, alignments and MPI installations that do not do: each is named, with a way out.

use super::{iolab, launchers, told, under};
use std::fs;
use std::process::Command;
use tempfile::TempDir;

#[test]
fn what_cannot_be_written_to_is_named_and_nothing_stays_behind() {
    let cases = [
        ("/proc/iolab-test", "/proc/iolab-test"),
        ("/nonexistent/folder/file", "/nonexistent/folder/file"),
        ("/dev/full", "No space left"),
    ];
    for (target, offender) in cases {
        for ranks in ["1", "2"] {
            let mut command = iolab();
            command.args(["bench", "-b", "64k", "-i", "1", "-N", ranks, "-k", "-o", target]);
            let output = command.output().expect("it starts");
            let said = told(&output);
            assert_eq!(output.status.code(), Some(1), "{target}: {said}");
            assert!(said.contains(offender) && said.contains("hint:"), "{target}: {said}");
        }
    }
}

#[test]
fn a_drawing_of_too_many_pieces_is_refused_at_once() {
    // Few operations of many pieces, and many operations of one.
    for spec in ["nested:counts=3000x3000", "sequential:count=1g"] {
        let output = iolab().args(["bench", "--draw", spec]).output().expect("it starts");
        let said = told(&output);
        assert_eq!(output.status.code(), Some(1), "{said}");
        assert!(said.contains("too many to draw") && said.contains("hint:"), "{said}");
    }
}

#[test]
fn a_pattern_larger_than_the_disk_is_refused_before_the_first_byte() {
    let folder = TempDir::new().expect("a folder");
    let file = folder.path().join("data");
    let mut command = iolab();
    command.args(["bench", "-p", "strided:strip=1g,stripes=1g", "-i", "1", "-o"]).arg(&file);
    let output = command.output().expect("it starts");
    let said = told(&output);
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(said.contains("has room for") && said.contains("hint:"), "{said}");
    assert!(!file.exists());
}

#[test]
fn a_disk_that_fills_while_it_is_written_is_named_by_every_method() {
    let full = ["bench", "-b", "64k", "-t", "4k", "-i", "1", "-k", "-o", "/dev/full"];
    let refused = |command: &mut Command, method: &str| {
        let output = command.args(full).args(["--temporal", "write", "-a", method]).output();
        let said = told(&output.expect("it starts"));
        assert!(said.to_lowercase().contains("no space"), "{method}: {said}");
        assert!(said.contains("/dev/full") && said.contains("hint:"), "{method}: {said}");
    };
    for method in ["posix", "vectored", "uring", "aio"] {
        refused(&mut iolab(), method);
    }
    for launcher in launchers() {
        refused(&mut under(launcher, 2), "posix");
    }
}

#[test]
fn direct_transfers_off_the_grid_are_refused_with_their_place() {
    let folder = TempDir::new().expect("a folder");
    let file = folder.path().join("data");
    for method in ["posix", "vectored", "uring", "aio"] {
        let mut command = iolab();
        command.args(["bench", "-p", "strided:strip=1000,stripes=4", "--cache", "direct", "-a"]);
        let output =
            command.args([method, "-i", "1", "-o"]).arg(&file).output().expect("it starts");
        let said = told(&output);
        assert_eq!(output.status.code(), Some(1), "{said}");
        assert!(said.contains("1000 bytes at 0") && said.contains("hint:"), "{said}");
        assert!(!file.exists(), "the file stays behind");
    }
}

#[test]
fn ranks_with_different_plans_stop_before_they_write() {
    let folder = TempDir::new().expect("a folder");
    let file = folder.path().join("data");
    for launcher in launchers() {
        let mut command = Command::new(launcher);
        command.env("OMPI_ALLOW_RUN_AS_ROOT", "1").env("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1");
        let one = |command: &mut Command, strip: &str| {
            let shape = format!("strided:strip={strip}");
            command.args(["-n", "1", env!("CARGO_BIN_EXE_iolab"), "bench", "-p", &shape, "-o"]);
            command.arg(&file);
        };
        one(&mut command, "4k");
        command.arg(":");
        one(&mut command, "8k");
        let output = command.output().expect("it starts");
        let said = told(&output);
        assert!(!output.status.success(), "{said}");
        assert!(said.contains("rank 1: has another plan"), "{launcher}: {said}");
        assert!(!file.exists());
    }
}

#[test]
fn a_launcher_of_the_other_family_is_refused_with_both_names() {
    let found = launchers();
    if found.len() < 2 {
        return eprintln!("SKIPPED: needs both MPI families");
    }
    for (launcher, compiler) in
        [("mpiexec.mpich", "mpicc.openmpi"), ("mpiexec.openmpi", "mpicc.mpich")]
    {
        let mut command = under(launcher, 2);
        let output = command.arg("bench").env("IOLAB_MPICC", compiler).output().expect("it starts");
        let said = told(&output);
        assert!(!output.status.success(), "{said}");
        assert!(said.contains("started 2 ranks") && said.contains(compiler), "{said}");
    }
}

#[test]
fn a_job_of_an_mpi_without_a_compiler_here_is_told_what_was_looked_for() {
    let folder = TempDir::new().expect("a folder");
    let broken = folder.path().join("mpicc");
    fs::write(&broken, "#!/bin/sh\necho this compiler is broken >&2\nexit 1\n").expect("written");
    fs::set_permissions(&broken, std::os::unix::fs::PermissionsExt::from_mode(0o755)).expect("set");
    let broken = broken.to_str().expect("plain");
    let rank = [("PMI_SIZE", "2"), ("PMI_RANK", "0")];
    let cases = [
        (("PATH", "/nonexistent"), "no mpicc of MPICH found"),
        (("IOLAB_MPICC", "/nowhere/mpicc"), "/nowhere/mpicc, not found"),
        (("IOLAB_MPICC", broken), "this compiler is broken"),
    ];
    for (setting, offender) in cases {
        let mut command = iolab();
        command.arg("bench").envs(rank).env("IOLAB_CACHE", folder.path());
        let output = command.env(setting.0, setting.1).output().expect("it starts");
        let said = told(&output);
        assert_eq!(output.status.code(), Some(1), "{said}");
        assert!(said.contains(offender) && said.contains("hint:"), "{said}");
    }
}

#[test]
fn a_colon_in_a_name_leads_no_mpi_library_to_another_file() {
    let folder = TempDir::new().expect("a folder");
    let other = folder.path().join("t");
    fs::write(&other, "mine").expect("written");
    for launcher in launchers() {
        let mut command = under(launcher, 2);
        command.args(["bench", "-a", "independent", "-w", "-b", "64k", "-i", "1", "-o", "ufs:t"]);
        let output = command.current_dir(folder.path()).output().expect("it starts");
        assert!(!output.status.success() && told(&output).contains("colon"), "{}", told(&output));
        assert_eq!(fs::read(&other).expect("there"), b"mine");
        assert_eq!(fs::read_dir(folder.path()).expect("a folder").count(), 1);
    }
}

#[test]
fn hints_take_effect_on_a_file_that_mpi_io_makes_and_that_goes_with_the_run() {
    let folder = TempDir::new().expect("a folder");
    for launcher in launchers() {
        for place in ["-e", "-F"] {
            let mut command = under(launcher, 2);
            command.args(["bench", "-a", "independent", "-w", "-b", "64k", "-i", "2", "-R", place]);
            command.args(["--hint", "striping_factor=2", "-o", "t"]).current_dir(folder.path());
            let output = command.output().expect("it starts");
            assert!(output.status.success(), "{launcher}: {}", told(&output));
            assert!(told(&output).contains("verified"), "{}", told(&output));
            assert_eq!(fs::read_dir(folder.path()).expect("a folder").count(), 0);
        }
    }
}
