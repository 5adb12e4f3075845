//! Plans predicted on a platform.

use super::{iolab, launchers, told, under};
use std::fs;
use std::process::Command;
use tempfile::TempDir;

fn predict(mut command: Command, arguments: &[&str]) -> iolab_bench::Outcome {
    let folder = TempDir::new().expect("a folder");
    command.args(["bench", "--platform", "classic-hdd", "--json", "-o"]);
    let output = command.arg(folder.path().join("data")).args(arguments).output();
    let output = output.expect("it starts");
    assert!(output.status.success(), "{}", told(&output));
    assert_eq!(fs::read_dir(folder.path()).expect("a folder").count(), 0, "a file was touched");
    serde_json::from_slice(&output.stdout).expect("a document")
}

#[test]
fn a_plan_is_predicted_for_more_ranks_than_there_are_processors_without_touching_a_file() {
    let outcome = predict(iolab(), &["-N", "10", "-b", "1m", "-t", "64k"]);
    assert_eq!((outcome.ranks, outcome.measurements.len()), (10, 2));
    for m in &outcome.measurements {
        assert_eq!(m.predicted.as_deref(), Some("classic-hdd"));
        assert_eq!((m.bytes, m.operations), (10 << 20, 160));
        // Ten servers of 50 MB/s each, and no faster than the wire.
        assert!((10.0..1000.0).contains(&m.mib_per_second), "{}", m.mib_per_second);
    }
    assert!(outcome.warnings.is_empty(), "{:?}", outcome.warnings);
}

#[test]
fn prediction_and_null_run_side_by_side_and_under_mpiexec_gives_the_same() {
    let arguments = ["-N", "2", "-a", "sim,sim-collective,null", "-i", "2"];
    let outcome = predict(iolab(), &arguments);
    let predicted = |outcome: &iolab_bench::Outcome| {
        let rows = outcome.measurements.iter().filter(|m| m.predicted.is_some());
        rows.map(|m| (m.method.clone(), m.phase.clone(), m.transfer_ns)).collect::<Vec<_>>()
    };
    assert_eq!((predicted(&outcome).len(), outcome.measurements.len()), (4, 4 + 4));
    for launcher in launchers() {
        assert_eq!(predicted(&predict(under(launcher, 2), &arguments)), predicted(&outcome));
    }
}

#[test]
fn a_platform_that_is_not_there_and_a_method_without_one_are_refused() {
    for (arguments, offender) in [
        (vec!["--platform", "nowhere"], "`nowhere`"),
        (vec!["--platform", "/nowhere/p.toml"], "/nowhere/p.toml"),
        (vec!["-a", "sim"], "needs a platform"),
        (vec!["--platform", "classic-hdd", "-N", "11"], "10 clients, 11 ranks"),
        (vec!["--platform", "local-ext4"], "is no cluster"),
    ] {
        let output = iolab().arg("bench").args(&arguments).output().expect("it starts");
        let said = told(&output);
        assert_eq!(output.status.code(), Some(1), "{said}");
        assert!(said.contains(offender) && said.contains("hint:"), "{said}");
    }
}
