//! The promises of the file system: each program of `examples/semantics` finds its own kept, under both
//! families, and the page that states them names them all.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn programs() -> BTreeSet<String> {
    let entries = fs::read_dir(root().join("examples/semantics")).unwrap();
    let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    names.filter(|name| name.ends_with(".c")).collect()
}

#[test]
fn the_page_of_promises_names_every_program_and_no_other() {
    let page = fs::read_to_string(root().join("docs/models/file-system-semantics.md")).unwrap();
    let links = page.split("](../../examples/semantics/").skip(1);
    let linked = links.map(|rest| rest.split(')').next().unwrap().to_owned()).collect();
    assert_eq!(programs(), linked);
}

/// What is only promised where servers alone have the data.
const WITHOUT_CACHES: &str = "killed_servers.c";
/// What there is only something to see of where there is little room.
const WITH_LITTLE_ROOM: &str = "no_room.c";

/// Compiles a program, and runs it in a file system of several servers, without caches and with some.
fn keeps(family: &str, program: &str) {
    let home = tempfile::tempdir().unwrap();
    let binary = home.path().join("program");
    let compiler = format!("mpicc.{family}");
    let built = Command::new(&compiler)
        .args(["-Wall", "-Wno-unused-function", "-Wno-stringop-overflow", "-Werror", "-O1", "-o"])
        .arg(&binary)
        .arg(root().join("examples/semantics").join(program))
        .output()
        .unwrap_or_else(|error| panic!("{compiler}: {error}; apt-get install lib{family}-dev"));
    assert!(built.status.success(), "{}", String::from_utf8_lossy(&built.stderr));
    for caches in if program == WITHOUT_CACHES { 0..1 } else { 0..3 }.step_by(2) {
        if program != WITH_LITTLE_ROOM {
            runs_well(family, program, &binary, caches, None);
            continue;
        }
        for limit in ["capacity", "quota"] {
            runs_well(family, program, &binary, caches, Some(limit));
        }
    }
}

fn runs_well(family: &str, program: &str, binary: &Path, caches: u32, limit: Option<&str>) {
    let directory = tempfile::tempdir().unwrap();
    let mut run = Command::new(env!("CARGO_BIN_EXE_iolab"));
    run.args(["fs", "run", "--servers", "3", "--layout", "stripe:unit=64k"]);
    run.args(limit.iter().flat_map(|limit| [format!("--{limit}"), "12m".to_owned()]));
    run.args(["--caches", &caches.to_string(), "--"]).arg(format!("mpiexec.{family}"));
    run.args((family == "openmpi").then_some("--oversubscribe")).args(["-n", "2"]).arg(binary);
    run.args(limit);
    run.env("OMPI_ALLOW_RUN_AS_ROOT", "1").env("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1");
    let output = run.current_dir(directory.path()).output().unwrap();
    let told = String::from_utf8_lossy(&output.stderr);
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(
        output.status.success() && said.ends_with("kept\n"),
        "{program}, {caches} caches: {said}{told}"
    );
    if limit.is_some() {
        let count =
            |line: &str| line.strip_suffix(" pieces of 256 KiB for each rank")?.parse().ok();
        let pieces: Option<u32> = told.lines().find_map(count);
        assert!(pieces.is_some_and(|pieces| (12..=24).contains(&pieces)), "{told}");
    }
}

#[test]
fn every_promise_is_kept_under_mpich() {
    programs().iter().for_each(|program| keeps("mpich", program));
}

#[test]
fn every_promise_is_kept_under_open_mpi() {
    programs().iter().for_each(|program| keeps("openmpi", program));
}
