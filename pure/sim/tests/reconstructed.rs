//! Workloads reconstructed from logs of Darshan: reads, writes and bytes are those that were counted.

#![allow(clippy::disallowed_methods, reason = "samples are files")]

use iolab_sim::platform::Platform;
use iolab_sim::program::{FileOperation, What};
use iolab_sim::workload::{Settings, Workload, reconstruct, run};
use iolab_trace::import::counted::{Counted, Module, Record};
use iolab_trace::import::darshan_counted;
use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;

fn logs() -> BTreeMap<String, Counted> {
    let samples = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../samples/darshan");
    let paths = fs::read_dir(samples).unwrap().map(|entry| entry.unwrap().path());
    let logs = paths.filter(|path| path.extension().is_some_and(|end| end == "darshan"));
    logs.map(|path| {
        let name = path.file_name().unwrap().to_str().unwrap().to_owned();
        (name, darshan_counted(&fs::read(&path).unwrap()).unwrap())
    })
    .collect()
}

/// Reads, writes, bytes read, bytes written: of POSIX and streams, or of MPI-IO without POSIX.
fn counted_sums(counted: &Counted) -> [u64; 4] {
    let has_posix = counted.modules.contains(&Module::Posix);
    let is_chosen = |record: &&Record| match record.module {
        Module::Posix | Module::Stdio => true,
        Module::MpiIo => !has_posix,
        _ => false,
    };
    let records: Vec<&Record> = counted.records.iter().filter(is_chosen).collect();
    let sum = |value: fn(&Record) -> u64| records.iter().map(|record| value(record)).sum();
    [
        sum(|it| it.reads.calls),
        sum(|it| it.writes.calls),
        sum(|it| it.reads.bytes),
        sum(|it| it.writes.bytes),
    ]
}

/// The same of all commands of a workload. Reads behind the end bring nothing.
fn commanded_sums(workload: &Workload) -> [u64; 4] {
    let mut sums = [0; 4];
    for application in &workload.applications {
        let mut program = application.program(vec![1e9; application.rank_count as usize]);
        let mut list = Vec::new();
        for rank in 0..application.rank_count {
            while let Some(command) = program.next(rank, &mut list) {
                let What::File { operation, .. } = command.what else {
                    list.clear();
                    continue;
                };
                let way = match operation {
                    FileOperation::Read => Some(0),
                    FileOperation::Write => Some(1),
                    _ => None,
                };
                if let Some(way) = way {
                    sums[way] += 1;
                    let found = list.drain(..).filter(|extent| extent.offset < 1 << 59);
                    sums[2 + way] += found.map(|extent| extent.length).sum::<u64>();
                }
                list.clear();
            }
        }
    }
    sums
}

#[test]
fn a_reconstructed_workload_makes_the_calls_and_moves_the_bytes_of_its_log() {
    let logs = logs();
    assert!(logs.len() >= 50);
    for (name, counted) in &logs {
        let text = reconstruct(counted, name).unwrap();
        let workload = Workload::parse(&text)
            .unwrap_or_else(|error| panic!("{name}: {} ({})", error.message, error.hint));
        assert_eq!(workload.rank_count(), u64::from(counted.ranks), "{name}");
        assert_eq!(commanded_sums(&workload), counted_sums(counted), "{name}");
        assert!(text.starts_with("# Reconstructed from the counters"), "{name}");
        assert!(text.contains("# Inferred:\n# - sizes"), "{name}");
    }
}

#[test]
fn a_simulated_run_of_a_log_tells_the_calls_and_bytes_of_the_log() {
    let mut simulated = 0;
    for (name, counted) in &logs() {
        let wanted = counted_sums(counted);
        if counted.ranks > 64 || wanted[0] + wanted[1] > 20_000 || wanted[2] + wanted[3] > 4 << 30 {
            continue;
        }
        let text = reconstruct(counted, name).unwrap();
        let mut platform = Platform::preset("classic-ssd").unwrap();
        for group in platform.nodes.iter_mut().filter(|group| group.clients > 0) {
            group.clients = 7;
        }
        let outcome = run(&Workload::parse(&text).unwrap(), &platform, &Settings::default());
        let outcome = outcome.unwrap_or_else(|error| panic!("{name}: {}", error.message));
        let phases = || outcome.applications.iter().flat_map(|application| &application.phases);
        let calls: u64 = phases().map(|phase| phase.calls).sum();
        let read: u64 = phases().map(|phase| phase.read_bytes).sum();
        let written: u64 = phases().map(|phase| phase.written_bytes).sum();
        assert_eq!([calls, read, written], [wanted[0] + wanted[1], wanted[2], wanted[3]], "{name}");
        simulated += 1;
    }
    assert!(simulated >= 40, "{simulated} logs");
}

#[test]
fn a_log_that_counts_more_calls_than_any_run_makes_is_refused_by_its_number() {
    let mut counted = logs().remove("mpi-io-test.darshan").unwrap();
    let posix = counted.records.iter_mut().find(|record| record.module == Module::Posix).unwrap();
    // Of four ranks, once beside the accesses.
    posix.opens = 69_269_232_549_888;
    let refusal = reconstruct(&counted, "damaged").unwrap_err();
    assert!(refusal.message.contains("repeat = 17317308137471"), "{refusal}");
}
