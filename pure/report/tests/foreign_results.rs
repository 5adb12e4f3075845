//! Results of other benchmarks beside ours.

#![allow(clippy::disallowed_methods, reason = "samples are files")]

use iolab_report::bench::{Measurement, foreign, summaries};
use std::fs;
use std::path::PathBuf;

fn sample(name: &str) -> String {
    let samples = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../samples/benchmarks");
    fs::read_to_string(samples.join(name)).unwrap()
}

fn measured(name: &str) -> Vec<Measurement> {
    foreign(&sample(name)).unwrap().unwrap().outcome.measurements
}

/// Phase, repetition, MiB/s, operations a second.
fn rows(measurements: &[Measurement]) -> Vec<(&str, u32, f64, f64)> {
    let row = |m: &'_ Measurement| (m.repetition, m.mib_per_second, m.operations_per_second);
    measurements.iter().map(|m| (m.phase.as_str(), row(m).0, row(m).1, row(m).2)).collect()
}

#[test]
fn ior_tells_each_repetition_of_reads_and_writes() {
    let read = foreign(&sample("ior.json")).unwrap().unwrap();
    let all = &read.outcome.measurements;
    let wanted = [
        ("write", 0, 640.0, 640.0),
        ("read", 0, 1280.0, 1280.0),
        ("write", 1, 512.0, 512.0),
        ("read", 1, 1024.0, 1024.0),
    ];
    assert_eq!(rows(all), wanted);
    assert!(all.iter().all(|m| m.bytes == 64 << 20 && m.ranks == 4 && m.size == Some(1 << 20)));
    assert_eq!(
        (all[0].method.as_str(), read.outcome.surroundings.host.as_str()),
        ("MPIIO collective", "node07")
    );
    assert_eq!((all[0].total_ns, all[0].open_ns, all[0].latency), (100_000_000, 1_000_000, None));
    let summary = summaries(&[read.outcome]);
    assert_eq!(summary.len(), 2);
    assert_eq!(
        (summary[0].first, summary[0].median, summary[0].unit.as_str()),
        (640.0, 512.0, "MiB/s")
    );
}

#[test]
fn mdtest_tells_rates_by_operation_and_no_times_are_taken_for_rates() {
    let old = measured("mdtest-1.9.3.txt");
    let phases: Vec<&str> = old.iter().map(|m| m.phase.as_str()).collect();
    assert_eq!(
        phases,
        ["directory creation", "directory stat", "file creation", "file read", "tree removal"]
    );
    assert_eq!((old[2].operations_per_second, old[2].ranks, old[2].bytes), (353_353.328, 2, 0));
    let new = measured("mdtest.txt");
    assert_eq!((new.len(), new[0].operations_per_second), (4, 42_770.128));
    assert_eq!(new[0].settings["statistic"], "mean of 3, 40270.1 to 45270.2");
}

#[test]
fn mdtest_tells_rates_of_iterations_where_it_has_those_of_ranks_beside() {
    let text = "mdtest-4.0.0 was launched with 2 total task(s) on 1 node(s)\n\
        2 tasks, 200 files/directories\n\n\
        SUMMARY rate (in ops/sec): (of 2 iterations)\n   \
        Operation     per Rank: Max  Min  Mean  per Iteration: Max  Min  Mean  Std Dev\n   \
        File creation   100.5 90.5 95.5      210.000 190.000 200.000 14.142\n";
    let all = foreign(text).unwrap().unwrap().outcome.measurements;
    assert_eq!(rows(&all), [("file creation", 0, 0.0, 200.0)]);
    assert_eq!(all[0].settings["statistic"], "mean of 2, 190.0 to 210.0");
}

#[test]
fn io500_tells_bandwidths_and_rates_and_what_it_calls_invalid_is() {
    let read = foreign(&sample("io500-result_summary.txt")).unwrap().unwrap();
    let all = &read.outcome.measurements;
    assert_eq!(all.len(), 5);
    assert_eq!(
        (all[4].phase.as_str(), all[4].mib_per_second, all[4].bytes),
        ("ior-easy-read", 2048.0, 20 << 30)
    );
    assert_eq!((all[3].phase.as_str(), all[3].operations_per_second), ("find", 253_160.93));
    let invalid: Vec<bool> = all.iter().map(|m| m.invalid.is_some()).collect();
    assert_eq!(invalid, [true, false, false, false, false]);
    assert_eq!(read.notes.len(), 1);
    assert!(read.notes[0].contains("TOTAL 6.51"), "{:?}", read.notes);
}

#[test]
fn elbencho_tells_what_all_threads_came_to() {
    let all = measured("elbencho.csv");
    let wanted =
        [("mkdirs", 0, 0.0, 4000.0), ("write", 0, 512.0, 512.0), ("read", 0, 1024.0, 1024.0)];
    assert_eq!(rows(&all), wanted);
    assert_eq!(
        (all[1].bytes, all[1].transfer_ns, all[1].size),
        (256 << 20, 500_000_000, Some(1 << 20))
    );
    assert_eq!((all[2].spatial.as_str(), all[2].method.as_str()), ("random", "direct"));
    assert_eq!(all[0].bytes, 0);
}

#[test]
fn what_is_no_result_is_left_to_others_and_what_is_damaged_is_told() {
    assert!(foreign("").is_none() && foreign("{}").is_none() && foreign("{\"tests\": [").is_none());
    assert!(foreign("{\"format\": \"iolab-bench\", \"tests\": []}").is_none());
    let error = |text: &str| foreign(text).unwrap().unwrap_err();
    assert!(error("{\"tests\": []}").contains("no measurement"));
    assert!(error("{\"tests\": 7}").contains("no list"));
    assert!(error("[RESULT] ior-easy-write fast GiB/s").contains("is no result"));
    assert!(error("[RESULT] ior-easy-write 1 furlongs").contains("is no result"));
    assert!(error("operation,MiB/s [last]\n").contains("no measurement"));
    assert!(error("MiB/s [first],MiB/s [last]\n1,2\n").contains("no column `operation`"));
    for name in ["ior.json", "mdtest.txt", "io500-result_summary.txt", "elbencho.csv"] {
        let whole = sample(name);
        for length in 0..whole.len() {
            if let Some(Ok(read)) = foreign(&whole[..length]) {
                assert!(!read.outcome.measurements.is_empty(), "{name} cut at {length}");
            }
        }
    }
    // Numbers that no machine reaches do not leave the range of what holds them.
    let fast = foreign("[RESULT] ior-easy-write 1e300 GiB/s : time NaN seconds").unwrap().unwrap();
    assert!(fast.outcome.measurements[0].mib_per_second.is_finite());
}

#[test]
fn labels_name_a_source_once_and_ranks_that_are_not_told_are_unknown() {
    let outcomes = ["io500-result_summary.txt", "ior.json"]
        .map(|name| foreign(&sample(name)).unwrap().unwrap().outcome);
    let labels: Vec<String> = summaries(&outcomes).into_iter().map(|it| it.label).collect();
    assert!(labels[0].ends_with("[ranks unknown, result 1, source IO500]"), "{labels:?}");
    let last = labels.last().unwrap();
    assert!(last.ends_with("[host node07, ranks 4, result 2, source IOR 4.0.0]"), "{last}");
}
