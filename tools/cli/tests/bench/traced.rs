//! Patterns and weights from a recorded trace.

use super::{iolab, told};
use std::fs;
use std::path::Path;
use std::process::Command;
use tempfile::TempDir;

/// A trace of a program that reads 320 KiB in strips of 16 KiB and writes them.
fn record(folder: &Path) -> String {
    let input = folder.join("input");
    fs::write(&input, vec![7; 320 << 10]).expect("written");
    let trace = folder.join("run.iot");
    let mut command = iolab();
    command.args(["record", "-o"]).arg(&trace).args(["--", "dd", "bs=16k"]);
    let from = format!("if={}", input.display());
    let to = format!("of={}", folder.join("output").display());
    let output = command.args([from, to]).output().expect("it starts");
    assert!(output.status.success(), "{}", told(&output));
    trace.to_str().expect("a plain path").to_owned()
}

fn bench(folder: &Path) -> Command {
    let mut command = iolab();
    command.args(["bench", "-i", "1", "-o"]).arg(folder.join("data"));
    command
}

#[test]
fn the_accesses_of_a_trace_run_as_a_pattern_from_a_flag_and_from_a_plan() {
    let folder = TempDir::new().expect("a folder");
    let trace = record(folder.path());
    let plan = folder.path().join("plan.toml");
    let text = format!(
        "[global]\nverify = true\n[[test]]\ntemporal = ['write', 're-read']\n\
         spatial = {{ trace = '{trace}', file = 'output', calls = 'writes' }}\n"
    );
    fs::write(&plan, text).expect("written");
    let flag = format!("trace:{trace},file=output,calls=writes");
    let mut by_flag = bench(folder.path());
    by_flag.args(["-R", "--temporal", "write,re-read", "-p", &flag]);
    let mut by_plan = bench(folder.path());
    by_plan.arg(&plan);
    for mut command in [by_flag, by_plan] {
        let output = command.arg("--json").output().expect("it starts");
        assert!(output.status.success(), "{}", told(&output));
        let outcome: iolab_bench::Outcome =
            serde_json::from_slice(&output.stdout).expect("a document");
        assert_eq!(outcome.measurements.len(), 3);
        for m in &outcome.measurements {
            // Timed reads are checked as they are, and once more past the method.
            let checks = if m.temporal.contains("read") { 1..=2 } else { 1..=1 };
            assert!(checks.map(|times| Some(times * 327_680)).any(|it| it == m.verified), "{m:?}");
            assert_eq!((m.operations, m.bytes), (20, 327_680));
            assert_eq!(m.spatial, flag);
        }
    }
}

#[test]
fn a_trace_of_other_ranks_or_without_such_a_file_is_refused_with_its_name() {
    let folder = TempDir::new().expect("a folder");
    let trace = record(folder.path());
    for (arguments, offender) in [
        (vec!["-N", "2", "-p", "trace:TRACE"], "recorded on 1 ranks, not 2"),
        (vec!["-p", "trace:TRACE,file=elsewhere"], "`elsewhere`"),
        (vec!["-p", "trace:TRACE", "--sizes", "4k"], "sizes that were recorded"),
        (vec!["-p", "trace:/nowhere/run.iot"], "/nowhere/run.iot"),
    ] {
        let mut command = bench(folder.path());
        command.args(arguments.iter().map(|argument| argument.replace("TRACE", &trace)));
        let output = command.output().expect("it starts");
        let said = told(&output);
        assert_eq!(output.status.code(), Some(1), "{said}");
        assert!(said.contains(offender) && said.contains("hint:"), "{said}");
    }
}

#[test]
fn a_trace_gives_the_weights_of_its_own_mix_with_their_provenance() {
    let folder = TempDir::new().expect("a folder");
    let trace = record(folder.path());
    let result = folder.path().join("result.json");
    let mut command = bench(folder.path());
    command.args(["-p", "segmented:count=20", "--sizes", "8k,16k,1m", "--no-sync", "--output"]);
    let output = command.arg(&result).output().expect("it starts");
    assert!(output.status.success(), "{}", told(&output));
    let weigh = |weights: &str| {
        let mut command = iolab();
        command.args(["bench", "report", "--weights", weights]).arg(&result);
        command.output().expect("it starts")
    };
    let said = told(&weigh(&trace));
    for part in ["weighted by bytes", "640 KiB in 2 files", "consecutive"] {
        assert!(said.contains(part), "`{part}` is not in: {said}");
    }
    for share in ["50.0 %  read of segmented at 16 KiB", "50.0 %  write of segmented at 16 KiB"] {
        let line = said.lines().find(|line| line.contains(share));
        let line = line.unwrap_or_else(|| panic!("`{share}` is not in: {said}"));
        assert!(line.contains("MiB/s") && !line.contains("measured at"), "{line}");
    }
    assert!(told(&weigh("plan")).contains("the weights of the plan's tests"));
    for (weights, offender) in [("/nowhere/run.iot", "/nowhere/run.iot"), ("diet", "`diet`")] {
        let output = weigh(weights);
        let said = told(&output);
        assert_eq!(output.status.code(), Some(1), "{said}");
        assert!(said.contains(offender) && said.contains("hint:"), "{said}");
    }
}
