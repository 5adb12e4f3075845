//! What counters give reason to complain of: each rule has a run with the fault, and one just below its
//! threshold.

use iolab_report::{CountedReport, Finding, Severity, counted_rule_names};
use iolab_trace::FileEntry;
use iolab_trace::import::counted::{Counted, Extreme, Module, Record, Way};

const MIB: u64 = 1 << 20;
const MS: u64 = 1_000_000;

/// A run of one second.
fn run(ranks: u32, modules: &[Module], records: Vec<Record>) -> Counted {
    let files = records.iter().map(|record| record.file + 1).max().unwrap_or(0);
    let file = |at| FileEntry { path: format!("/data/{at}"), file_system: "lustre".to_owned() };
    Counted {
        format: "3.41".to_owned(),
        ranks,
        took_ns: 1_000 * MS,
        files: (0..files).map(file).collect(),
        records,
        modules: modules.to_vec(),
        ..Counted::default()
    }
}

/// Nothing was done to a file.
fn record(module: Module, file: usize, rank: Option<u32>) -> Record {
    Record {
        module,
        file,
        rank,
        reads: Way::default(),
        writes: Way::default(),
        opens: 1,
        collective_opens: 0,
        seeks: 0,
        stats: 0,
        maps: 0,
        syncs: 0,
        switches: 0,
        misaligned: 0,
        alignment: 0,
        common: [(0, 0); 4],
        strides: [(0, 0); 4],
        meta_ns: 0,
        opened: None,
        closed: None,
        extremes: None,
        bytes_variance: 0.0,
        is_collective: false,
    }
}

/// So many calls of one size, each behind the one before.
fn way(calls: u64, size: u64, ns: u64) -> Way {
    let bins = iolab_trace::import::counted::SIZE_BOUNDS;
    let mut sizes = [0; 10];
    sizes[bins.iter().position(|bound| size <= *bound).unwrap_or(9)] = calls;
    Way {
        calls,
        bytes: calls * size,
        sizes,
        consecutive: calls.saturating_sub(1),
        sequential: calls.saturating_sub(1),
        end: Some(calls * size),
        ns,
        ..Way::default()
    }
}

fn posix(writes: Way) -> Record {
    Record { writes, ..record(Module::Posix, 0, Some(0)) }
}

fn shared(module: Module, writes: Way) -> Record {
    Record { writes, ..record(module, 0, None) }
}

/// A run of one rank that POSIX counted.
fn alone(record: Record) -> Counted {
    run(1, &[Module::Posix], vec![record])
}

fn findings(counted: &Counted) -> Vec<Finding> {
    CountedReport::of(counted).findings
}

/// The rule finds the one, and not the other; what it says of the one.
fn tells(rule: &str, fault: &Counted, near_miss: &Counted) -> Finding {
    assert!(counted_rule_names().contains(&rule));
    let names = |counted| findings(counted).iter().map(|it| it.rule).collect::<Vec<_>>();
    assert!(!names(near_miss).contains(&rule), "{rule} in a near miss");
    let found = findings(fault).into_iter().find(|finding| finding.rule == rule);
    found.unwrap_or_else(|| panic!("{rule} is not among {:?}", names(fault)))
}

#[test]
fn a_run_that_does_little_wrong_gives_no_reason_to_complain() {
    let steady = |module, file, rank| Record {
        reads: way(64, 4 * MIB, 20 * MS),
        writes: way(64, 4 * MIB, 20 * MS),
        seeks: 3,
        stats: 2,
        syncs: 1,
        switches: 1,
        misaligned: 5,
        alignment: MIB,
        meta_ns: MS,
        ..record(module, file, rank)
    };
    let own = (0..4).map(|rank| steady(Module::Posix, rank as usize, Some(rank)));
    let mut all: Vec<Record> = own.collect();
    let even = [1, 2].map(|rank| Extreme { rank, bytes: 128 * MIB, ns: 11 * MS });
    let together = |module, file| Record { extremes: Some(even), ..steady(module, file, None) };
    all.push(together(Module::Posix, 4));
    let collective = |way: Way| Way { collective: way.calls, ns: 10 * MS, ..way };
    let above = together(Module::MpiIo, 4);
    all.push(Record { reads: collective(above.reads), writes: collective(above.writes), ..above });
    // What every program writes.
    all.push(Record { writes: way(900, 80, MS), ..record(Module::Stdio, 5, Some(0)) });
    let counted = run(4, &[Module::Posix, Module::MpiIo, Module::Stdio], all);
    let rules: Vec<_> = findings(&counted).iter().map(|it| it.rule).collect();
    assert!(rules.is_empty(), "{rules:?}");
    assert!(findings(&run(4, &[], Vec::new())).is_empty());
}

#[test]
fn small_accesses_are_a_thousand_and_a_tenth_of_all() {
    let writes = |small, large| {
        let mut way = way(small, 1000, 30 * MS);
        way.sizes[6] = large;
        Way { calls: small + large, bytes: way.bytes + large * 8 * MIB, ..way }
    };
    let small = |small, large| alone(posix(writes(small, large)));
    let found = tells("small-writes", &small(1000, 9000), &small(999, 0));
    assert!(found.message.starts_with("10 % of 10,000 writes"), "{}", found.message);
    assert_eq!((found.evidence.calls, found.evidence.bytes), (1000, 1000 * 1024));
    tells("small-writes", &small(1000, 9000), &small(1000, 9001));
    // Nearly all are not all.
    let found = tells("small-writes", &small(1000, 1), &small(999, 0));
    assert!(found.message.starts_with("more than 99 % of 1,001 writes"), "{}", found.message);
    let reads =
        |calls, size| alone(Record { reads: way(calls, size, MS), ..posix(Way::default()) });
    tells("small-reads", &reads(1000, MIB), &reads(1000, MIB + 1));
    tells("small-reads", &reads(1000, MIB), &reads(999, MIB));
}

#[test]
fn going_back_is_a_fifth_of_all_and_a_thousand_times() {
    // The first one goes nowhere.
    let back = |calls, back| Way { sequential: calls - 1 - back, ..way(calls, 8 * MIB, 50 * MS) };
    let writes = |way| alone(posix(way));
    let found = tells("random-writes", &writes(back(5000, 1000)), &writes(back(4000, 999)));
    assert_eq!(found.message, "20 % of 5,000 writes go back in the file");
    assert_eq!(found.evidence.time_ns, 10 * MS);
    tells("random-writes", &writes(back(5000, 1000)), &writes(back(5001, 1000)));
    let reads = |way| alone(Record { reads: way, ..posix(Way::default()) });
    tells("random-reads", &reads(back(5000, 1000)), &reads(back(4000, 999)));
    tells("random-reads", &reads(back(5000, 1000)), &reads(back(5001, 1000)));
}

#[test]
fn misaligned_is_a_tenth_of_all_and_a_hundred() {
    let of = |misaligned, calls, rank| {
        let writes = way(calls, 4 * MIB, 10 * MS);
        let base = Record { writes, ..record(Module::Posix, 0, rank) };
        run(4, &[Module::Posix], vec![Record { misaligned, alignment: MIB, ..base }])
    };
    let found = tells("misaligned-shared-writes", &of(100, 1000, None), &of(100, 1001, None));
    assert!(found.message.starts_with("10 % of 1,000 accesses"), "{}", found.message);
    assert!(found.message.contains("1 MiB"), "{}", found.message);
    tells("misaligned-shared-writes", &of(100, 100, None), &of(99, 99, None));
    tells("misaligned-accesses", &of(100, 1000, Some(0)), &of(100, 1001, Some(0)));
    tells("misaligned-accesses", &of(100, 1000, Some(0)), &of(100, 1000, None));
}

#[test]
fn doing_it_again_is_twice_the_file() {
    let twice = |end| Way { end: Some(end), ..way(16, MIB, 10 * MS) };
    let reads = |end| alone(Record { reads: twice(end), ..posix(Way::default()) });
    let found = tells("rereads", &reads(8 * MIB), &reads(8 * MIB + 1));
    assert_eq!(found.message, "16 MiB are read in a file used up to 8 MiB: 2.0 times as much");
    assert_eq!((found.evidence.calls, found.evidence.bytes), (8, 8 * MIB));
    let writes = |end| alone(posix(twice(end)));
    tells("rewrites", &writes(8 * MIB), &writes(8 * MIB + 1));
    // Little is not worth a word.
    let little = |calls| Way { end: Some(1024), ..way(calls, 1024, MS) };
    tells("rewrites", &alone(posix(little(1025))), &alone(posix(little(1024))));
}

#[test]
fn alternating_is_a_tenth_of_all_and_a_hundred_times() {
    let of = |switches, calls| alone(Record { switches, ..posix(way(calls, 4 * MIB, MS)) });
    let rule = "alternating-reads-and-writes";
    let found = tells(rule, &of(100, 1000), &of(99, 990));
    assert!(found.message.starts_with("100 times"), "{}", found.message);
    tells(rule, &of(100, 1000), &of(100, 1001));
}

/// A file of four ranks with one that stands out.
fn standing_out(bytes: u64, ns: u64, all_ns: u64) -> Counted {
    let slowest = Extreme { rank: 3, bytes, ns };
    let extremes = Some([Extreme { rank: 1, bytes: 4 * MIB, ns: 0 }, slowest]);
    let base = shared(Module::Posix, way(4, 4 * MIB, all_ns));
    run(4, &[Module::Posix], vec![Record { extremes, ..base }])
}

#[test]
fn one_rank_is_slow_at_twice_the_mean_for_the_same_work() {
    let fault = standing_out(4 * MIB, 40 * MS, 80 * MS);
    let found = tells("one-slow-rank", &fault, &standing_out(4 * MIB, 40 * MS - 1, 80 * MS));
    assert!(found.message.contains("2.0 times as long"), "{}", found.message);
    assert!(found.message.contains("(40.0 ms against 20.0 ms)"), "{}", found.message);
    assert!(found.message.ends_with("moves 4 MiB, the mean being 4 MiB"), "{}", found.message);
    assert_eq!((found.evidence.time_ns, found.evidence.ranks), (20 * MS, vec![3]));
    // More work, or too short to matter.
    tells("one-slow-rank", &fault, &standing_out(6 * MIB + 1, 40 * MS, 80 * MS));
    tells("one-slow-rank", &fault, &standing_out(4 * MIB, 10 * MS - 1, 4));
}

fn own(bytes: &[u64]) -> Vec<Record> {
    let of = |(rank, bytes): (usize, &u64)| Record {
        writes: way(1, *bytes, MS),
        ..record(Module::Posix, rank, Some(rank as u32))
    };
    bytes.iter().enumerate().map(of).collect()
}

#[test]
fn bytes_are_uneven_at_twice_the_mean() {
    let of = |bytes: &[u64]| run(4, &[Module::Posix], own(bytes));
    let fault = of(&[6 * MIB, 2 * MIB, 2 * MIB, 2 * MIB]);
    let found = tells("rank-imbalance", &fault, &of(&[6 * MIB - 4, 2 * MIB, 2 * MIB, 2 * MIB + 4]));
    assert!(found.message.starts_with("rank 0 moves 6 MiB"), "{}", found.message);
    assert!(found.message.ends_with("is 3 MiB"), "{}", found.message);
    tells("rank-imbalance", &fault, &of(&[MIB - 1, 1000, 1000, 1000]));
    let with = |more: Record, modules: &[Module]| {
        let mut records = own(&[6 * MIB, 2 * MIB, 2 * MIB, 2 * MIB]);
        records.push(Record { file: 9, ..more });
        run(4, modules, records)
    };
    // Little beside what all do together.
    let extremes = Some([1, 2].map(|rank| Extreme { rank, bytes: 100 * MIB, ns: MS }));
    let even = Record { extremes, ..shared(Module::Posix, way(100, 4 * MIB, 4 * MS)) };
    tells("rank-imbalance", &fault, &with(even, &[Module::Posix]));
    // MPI-IO gave the bytes of all to few; what is done beside it stays.
    let gathered = Way { collective: 4, ..way(4, 3 * MIB, 4 * MS) };
    let gathered = shared(Module::MpiIo, gathered);
    let both = [Module::Posix, Module::MpiIo];
    let above =
        |file| run(4, &both, [own(&[6 * MIB]), vec![Record { file, ..gathered.clone() }]].concat());
    tells("rank-imbalance", &above(9), &above(0));
}

#[test]
fn a_shared_file_is_uneven_if_its_slowest_rank_moves_twice_the_mean() {
    // 63 ranks of 4 MiB each, one of so much.
    let of = |bytes: u64| {
        let all = 63.0 * 4.0 + bytes as f64 / MIB as f64;
        let mean = all / 64.0;
        let apart = [(63.0, 4.0), (1.0, bytes as f64 / MIB as f64)];
        let variance: f64 = apart.iter().map(|(n, mib)| n * (mib - mean) * (mib - mean)).sum();
        let slowest = Extreme { rank: 5, bytes, ns: 4 * MS };
        let extremes = Some([Extreme { rank: 1, bytes: 4 * MIB, ns: MS }, slowest]);
        let writes = Way { bytes: 63 * 4 * MIB + bytes, ..way(64, 4 * MIB, 67 * MS) };
        let base = shared(Module::Posix, writes);
        let bytes_variance = variance / 64.0 * (MIB * MIB) as f64;
        run(64, &[Module::Posix], vec![Record { extremes, bytes_variance, ..base }])
    };
    let found = tells("rank-imbalance", &of(16 * MIB), &of(8 * MIB));
    assert!(found.message.starts_with("rank 5, the slowest, moves 16 MiB"), "{}", found.message);
}

#[test]
fn one_rank_does_the_io_if_it_moves_nine_tenths() {
    let of = |bytes: &[u64]| run(4, &[Module::Posix], own(bytes));
    let fault = of(&[0, 9 * MIB, MIB, 0]);
    let found = tells("single-rank-io", &fault, &of(&[0, 9 * MIB - 1, MIB, 0]));
    assert_eq!(found.message, "rank 1 moves 90 % of all bytes (9 MiB of 10 MiB) for 4 ranks");
    tells("single-rank-io", &fault, &of(&[0, MIB - 1, 0, 0]));
    tells("single-rank-io", &fault, &run(1, &[Module::Posix], own(&[9 * MIB])));
}

#[test]
fn metadata_is_heavy_at_three_tenths_and_a_hundred_calls() {
    let of = |opens, meta_ns| {
        alone(Record { opens, meta_ns, seeks: 50, ..posix(way(9, 4 * MIB, 70 * MS)) })
    };
    let found = tells("metadata-heavy", &of(50, 30 * MS), &of(50, 30 * MS - 1000));
    assert!(
        found.message.starts_with("30 % of the time in I/O goes to 100 calls"),
        "{}",
        found.message
    );
    assert_eq!(found.evidence.time_ns, 30 * MS);
    tells("metadata-heavy", &of(50, 30 * MS), &of(49, 30 * MS));
    // Half a minute in each rank is much, whatever the share.
    let long = |meta_ns| {
        let base = posix(way(9, 4 * MIB, 900_000 * MS));
        alone(Record { meta_ns, ..base })
    };
    tells("metadata-heavy", &long(30_000 * MS), &long(30_000 * MS - 1));
}

#[test]
fn opens_queries_and_syncs_are_habits_from_a_thousand_on_and_not_once_a_rank() {
    let base = || posix(way(1000, 4 * MIB, MS));
    let opens = |opens| alone(Record { opens, meta_ns: MS, ..base() });
    let found = tells("open-close-churn", &opens(1000), &opens(999));
    assert_eq!(found.message, "1,000 opens of 1 file");
    let stats = |stats| alone(Record { stats, ..base() });
    tells("stat-storm", &stats(1000), &stats(999));
    let syncs = |syncs, writes| alone(Record { syncs, ..posix(way(writes, 4 * MIB, MS)) });
    tells("fsync-storm", &syncs(1000, 10_000), &syncs(999, 9000));
    tells("fsync-storm", &syncs(1000, 10_000), &syncs(1000, 10_001));
    // Of 1,000 ranks: opens are many from ten each on, others from more than one each on.
    let of = |change: fn(&mut Record, u64), count| {
        let mut record = shared(Module::Posix, way(1000, 4 * MIB, MS));
        change(&mut record, count);
        run(1000, &[Module::Posix], vec![record])
    };
    let opens: fn(&mut Record, u64) = |record, count| record.opens = count;
    tells("open-close-churn", &of(opens, 10_000), &of(opens, 9_999));
    let stats: fn(&mut Record, u64) = |record, count| record.stats = count;
    tells("stat-storm", &of(stats, 1001), &of(stats, 1000));
    let syncs: fn(&mut Record, u64) = |record, count| record.syncs = count;
    tells("fsync-storm", &of(syncs, 1001), &of(syncs, 1000));
}

#[test]
fn many_small_files_are_a_hundred_in_one_directory_that_are_short() {
    let of = |count, bytes, end| {
        let writes = Way { end: Some(end), ..way(1, bytes, MS) };
        let file = |at| Record { file: at, ..posix(writes) };
        run(1, &[Module::Posix], (0..count).map(file).collect())
    };
    let small = 65_535;
    let found = tells("many-small-files", &of(100, small, small), &of(99, small, small));
    assert!(found.message.starts_with("100 files of which"), "{}", found.message);
    assert_eq!(found.evidence.bytes, 100 * small);
    tells("many-small-files", &of(100, small, small), &of(100, 65_536, 65_536));
    // Little is read of each large file.
    tells("many-small-files", &of(100, small, small), &of(100, small, 65_536));
}

#[test]
fn independent_calls_on_shared_files_are_a_thousand_and_most_of_all() {
    let of = |calls, collective| {
        let writes = Way { collective, ..way(calls, MIB, MS) };
        run(4, &[Module::MpiIo], vec![shared(Module::MpiIo, writes)])
    };
    let found = tells("no-collective-calls", &of(1000, 0), &of(999, 0));
    assert!(
        found.message.starts_with("1,000 independent calls of MPI-IO, 1 MiB each"),
        "{}",
        found.message
    );
    let found = tells("no-collective-calls", &of(2001, 1000), &of(2000, 1000));
    assert_eq!(found.evidence.calls, 1001);
    let wanted = "1,001 independent and 1,000 collective calls of MPI-IO, 1 MiB on average of both";
    assert!(found.message.starts_with(wanted), "{}", found.message);
    // Bytes of the direction that is collective are not theirs.
    let mut both = of(1000, 0);
    both.records[0].reads = Way { collective: 10, ..way(10, 100 * MIB, MS) };
    let found = tells("no-collective-calls", &both, &of(999, 0));
    assert_eq!(found.evidence.bytes, 1000 * MIB);
}

#[test]
fn nothing_overlaps_if_all_calls_are_waited_for_in_a_tenth_of_the_run() {
    let of = |ns, nonblocking| {
        let writes = Way { nonblocking, ..way(10, 4 * MIB, ns) };
        run(4, &[Module::MpiIo], vec![Record { rank: Some(1), ..shared(Module::MpiIo, writes) }])
    };
    let found = tells("no-overlap", &of(100 * MS, 0), &of(100 * MS - 1, 0));
    assert_eq!(found.message, "all 10 reads and writes of MPI-IO (40 MiB) are waited for");
    assert_eq!(found.severity, Severity::Low, "a possibility does not come before a fault");
    tells("no-overlap", &of(100 * MS, 0), &of(100 * MS, 1));
}

#[test]
fn a_shared_file_without_mpi_io_has_a_mebibyte_and_several_movers() {
    let of = |bytes, ranks, modules: &[Module]| {
        run(ranks, modules, vec![shared(Module::Posix, way(1, bytes, MS))])
    };
    let fault = of(MIB, 2, &[Module::Posix]);
    let rule = "shared-file-without-mpi-io";
    let found = tells(rule, &fault, &of(MIB - 1, 2, &[Module::Posix]));
    assert!(found.message.starts_with("1 MiB of 1 MiB go to files"), "{}", found.message);
    tells(rule, &fault, &of(MIB, 2, &[Module::Posix, Module::MpiIo]));
    tells(rule, &fault, &of(MIB, 1, &[Module::Posix]));
}

#[test]
fn streams_carry_bulk_from_a_mebibyte_and_a_tenth_of_all_bytes_on() {
    let of = |bytes, others| {
        let stream = Record { writes: way(1, bytes, MS), ..record(Module::Stdio, 1, Some(0)) };
        run(1, &[Module::Posix, Module::Stdio], vec![posix(way(1, others, MS)), stream])
    };
    let fault = of(MIB, 9 * MIB);
    let found = tells("streams-for-bulk-data", &fault, &of(MIB, 9 * MIB + 1));
    assert!(found.message.starts_with("10 % of the bytes (1 MiB)"), "{}", found.message);
    tells("streams-for-bulk-data", &fault, &of(MIB - 1, 0));
}

#[test]
fn independent_accesses_to_datasets_are_a_thousand_and_most_of_all() {
    let rule = "independent-dataset-accesses";
    let of = |module, calls, collective, is_collective| {
        let writes = Way { collective, ..way(calls, MIB, MS) };
        run(4, &[module], vec![Record { is_collective, ..shared(module, writes) }])
    };
    let datasets = |calls, is| of(Module::H5Dataset, calls, 0, is);
    let found = tells(rule, &datasets(1000, false), &datasets(999, false));
    assert!(found.message.starts_with("1,000 accesses to 1 "), "{}", found.message);
    tells(rule, &datasets(1000, false), &datasets(1000, true));
    let variables = |calls, collective| of(Module::PnetcdfVariable, calls, collective, false);
    tells(rule, &variables(2001, 1000), &variables(2000, 1000));
}

#[test]
fn every_rule_is_tried_here() {
    let here = include_str!("counted_rules.rs");
    for rule in counted_rule_names() {
        assert!(here.contains(&format!("\"{rule}\"")), "{rule}");
    }
}

/// A file for each rank, and one of them lies on a slow server.
#[test]
fn a_rank_is_slow_in_files_of_its_own_as_well() {
    let run_of = |times_ms: [u64; 4], last_bytes: u64| {
        let of = |(rank, ms): (usize, &u64)| {
            let bytes = if rank == 3 { last_bytes } else { 4 * MIB };
            let writes = way(64, bytes, ms * MS);
            Record { writes, ..record(Module::Posix, rank, Some(rank as u32)) }
        };
        run(4, &[Module::Posix], times_ms.iter().enumerate().map(of).collect())
    };
    let fault = run_of([20, 20, 20, 140], 4 * MIB);
    let found = tells("one-slow-rank", &fault, &run_of([20, 20, 20, 50], 4 * MIB));
    assert!(
        found.message.starts_with(
            "rank 3 takes 2.8 times as long in files of its own as the mean of 4 ranks"
        )
    );
    assert!(found.message.contains("(140 ms against 50.0 ms)"), "{}", found.message);
    assert_eq!((found.evidence.time_ns, found.evidence.ranks), (90 * MS, vec![3]));
    tells("one-slow-rank", &fault, &run_of([20, 20, 20, 140], 40 * MIB));
}

#[test]
fn write_back_is_named_for_writes_that_it_holds() {
    let writes = |bytes| alone(posix(way(2000, bytes, 30 * MS)));
    let strategy = |bytes| {
        let found = findings(&writes(bytes));
        let found = found.into_iter().find(|it| it.rule == "small-writes").expect("it is told");
        let remedy = found.remedy.expect("there is one");
        assert_eq!(remedy.sentence.contains("write-back"), remedy.strategy.is_some());
        remedy.strategy
    };
    assert_eq!(strategy(1000).as_deref(), Some("write-back"));
    assert_eq!(strategy(100_000), None);
}
