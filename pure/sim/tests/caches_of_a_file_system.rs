//! Cache managers of the parallel file system on a simulated platform: what they keep from servers, where they
//! are, and what becomes of a run that loses one.

mod on_file_system;

use iolab_policy::placement::{Rule, catalog as placement};
use iolab_sim::file_system::{CacheTotals, TrafficTotals};
use iolab_sim::program::{FileOperation, What};
use iolab_sim::workload::{Line, Outcome, Settings};
use iolab_trace::Function;
use iolab_vocab::Seed;
use on_file_system::{SMALL, device_bytes, faulty, line, on, simulate, simulate_script, strided};

/// Stripes of 4 KiB, and these cache managers.
fn cached(caches: &str) -> Settings {
    on(&format!("{caches}\n{SMALL}"))
}

fn caches(outcome: &Outcome) -> Vec<CacheTotals> {
    outcome.file_system.as_ref().unwrap().caches.iter().map(|one| one.totals).collect()
}

fn sum(outcome: &Outcome, of: impl Fn(&CacheTotals) -> u64) -> u64 {
    caches(outcome).iter().map(of).sum()
}

fn of_servers(outcome: &Outcome, of: impl Fn(&TrafficTotals) -> u64) -> u64 {
    outcome.file_system.as_ref().unwrap().servers.iter().map(|server| of(&server.totals)).sum()
}

#[test]
fn every_byte_goes_to_a_cache_manager_and_then_to_a_server_whatever_does_not_divide() {
    for ranks in 1..=9 {
        for managers in ["count = 1", "count = 3", "count = 4", "hosts = ['client']"] {
            let settings = cached(&format!("[[caches]]\n{managers}"));
            let outcome = simulate(&strided(ranks, 37, 771), &settings).unwrap();
            let bytes = u64::from(ranks) * 37 * 771;
            let case = format!("{ranks} ranks, {managers}");
            assert_eq!(sum(&outcome, |one| one.traffic.received_bytes), bytes, "{case}");
            assert_eq!(sum(&outcome, |one| one.traffic.sent_bytes), bytes, "{case}");
            assert_eq!(sum(&outcome, |one| one.flushed_bytes), bytes, "{case}");
            assert_eq!(of_servers(&outcome, |one| one.received_bytes), bytes, "{case}");
            assert_eq!(sum(&outcome, |one| one.fetch_count + one.miss_count), 0, "{case}");
            assert_eq!(of_servers(&outcome, |one| one.sent_bytes), 0, "{case}");
        }
    }
}

#[test]
fn a_second_read_asks_no_server() {
    use FileOperation::{Close, Open, ReadAll};
    let read = |times: usize| {
        let reads = (0..times).map(|_| line(ReadAll, &[(0, 100_000)]));
        let all = std::iter::once(line(Open, &[])).chain(reads);
        let lines: Vec<Line> = all.chain([line(Close, &[])]).collect();
        let settings = cached("[[caches]]\ncount = 3");
        simulate_script(vec![lines; 4], &settings, 100_000).unwrap()
    };
    let [once, twice] = [read(1), read(2)];
    for outcome in [&once, &twice] {
        // 25 stripes, the last of them partly.
        assert_eq!(sum(outcome, |one| one.fetch_count), 25);
        assert_eq!(sum(outcome, |one| one.fetched_bytes), 100_000);
        assert_eq!(of_servers(outcome, |one| one.sent_bytes), 100_000);
        assert_eq!(device_bytes(outcome), (100_000, 0));
    }
    let hits = |outcome| sum(outcome, |one| one.hit_count);
    assert_eq!(hits(&twice) - hits(&once), 4 * 25);
    assert_eq!(sum(&twice, |one| one.traffic.sent_bytes), 8 * 100_000);
}

#[test]
fn what_is_written_with_class_device_is_on_devices_at_the_close() {
    let settings = on(&format!("[instance]\ndurability = 'device'\n[[caches]]\n{SMALL}"));
    let outcome = simulate(&strided(4, 8, 4096), &settings).unwrap();
    let (_, written) = device_bytes(&outcome);
    assert!((128 << 10..(128 << 10) + 1000).contains(&written), "{written}");
}

#[test]
fn data_that_nobody_syncs_goes_to_the_servers_after_5_seconds() {
    use FileOperation::{Open, Write};
    let program = |seconds: f64| {
        let rest = What::Compute { instructions: seconds * 1e9 }.awaited();
        vec![vec![line(Open, &[]), line(Write, &[(0, 50_000)]), (rest, vec![])]]
    };
    let flushed = |seconds| {
        let outcome = simulate_script(program(seconds), &cached("[[caches]]"), 0).unwrap();
        (sum(&outcome, |one| one.flushed_bytes), sum(&outcome, |one| one.unsaved_bytes_max))
    };
    // Of the last stripe the block is there as a whole.
    assert_eq!(flushed(4.0), (0, 53_248));
    assert_eq!(flushed(6.0), (50_000, 53_248));
}

/// Four managers, and this placement.
fn placed(placement: &str) -> Settings {
    on(&format!("[[caches]]\ncount = 4\n{SMALL}\nplacement = '{placement}'"))
}

#[test]
fn every_placement_brings_every_byte_to_a_manager_and_to_the_servers_or_to_the_servers_alone() {
    for row in placement::ROWS {
        for ranks in [1, 4, 7] {
            let outcome = simulate(&strided(ranks, 37, 771), &placed(row.name)).unwrap();
            let bytes = u64::from(ranks) * 37 * 771;
            let through = if matches!(row.rule, Rule::Nobody) { 0 } else { bytes };
            assert_eq!(sum(&outcome, |one| one.traffic.received_bytes), through, "{row:?} {ranks}");
            assert_eq!(sum(&outcome, |one| one.flushed_bytes), through, "{row:?} {ranks}");
            assert_eq!(of_servers(&outcome, |one| one.received_bytes), bytes, "{row:?} {ranks}");
            let busy = caches(&outcome).iter().filter(|one| one.traffic.received_bytes > 0).count();
            let expected = if through == 0 {
                0
            } else if row.is_cruel {
                1
            } else {
                4
            };
            assert_eq!(busy, expected, "{row:?} {ranks}");
        }
    }
}

#[test]
fn with_as_many_of_all_at_servers_brings_to_each_manager_what_modulo_does() {
    let all = |placement| {
        let outcome = simulate(&strided(4, 37, 771), &placed(placement)).unwrap();
        let traffic = |one: &CacheTotals| (one.traffic.request_count, one.flushed_bytes);
        caches(&outcome).iter().map(traffic).collect::<Vec<_>>()
    };
    assert_eq!(all("at-servers"), all("modulo"));
    assert_ne!(all("rendezvous"), all("modulo"));
}

#[test]
fn a_scan_empties_lru_and_leaves_the_rest_alone_with_two_queues() {
    use FileOperation::{Close, Open, Read};
    // 2 MiB that are wanted in each of ten rounds, and 8 MiB that are read once; memory of 8 MiB.
    let (hot, scan) = (2 << 20, 8 << 20);
    let rounds = (0..10)
        .flat_map(|round| [line(Read, &[(0, hot)]), line(Read, &[(hot + round * scan, scan)])]);
    let all = std::iter::once(line(Open, &[])).chain(rounds);
    let lines: Vec<Line> = all.chain([line(Close, &[])]).collect();
    let fetched = |replacement: &str| {
        let settings = on(&format!("[[caches]]\nmemory = '8m'\nreplacement = '{replacement}'"));
        let outcome = simulate_script(vec![lines.clone()], &settings, hot + 10 * scan).unwrap();
        sum(&outcome, |one| one.fetched_bytes)
    };
    let least = hot + 10 * scan;
    assert!(fetched("two-queue") <= least + 2 * hot, "{} of {least}", fetched("two-queue"));
    for other in ["lru", "fifo"] {
        assert!(fetched(other) >= least + 6 * hot, "{other}: {} of {least}", fetched(other));
    }
}

#[test]
fn write_policies_say_when_servers_get_what_nobody_syncs() {
    use FileOperation::{Open, Write};
    let flushed = |policy: &str, seconds: f64| {
        let rest = What::Compute { instructions: seconds * 1e9 }.awaited();
        let program = vec![vec![line(Open, &[]), line(Write, &[(0, 50_000)]), (rest, vec![])]];
        let settings = cached(&format!("[[caches]]\nwrite_policy = '{policy}'"));
        let outcome = simulate_script(program, &settings, 0).unwrap();
        sum(&outcome, |one| one.flushed_bytes)
    };
    assert_eq!([0.001, 20.0].map(|seconds| flushed("through", seconds)), [50_000; 2]);
    assert_eq!([0.001, 20.0].map(|seconds| flushed("on-sync", seconds)), [0; 2]);
    assert_eq!([4.0, 6.0].map(|seconds| flushed("delayed", seconds)), [0, 50_000]);
    assert_eq!(flushed("cruel", 20.0), 50_000);
}

#[test]
fn a_write_through_takes_the_time_of_its_servers_and_others_that_of_memory() {
    use FileOperation::{Open, Write};
    let took = |policy: &str| {
        let program = vec![vec![line(Open, &[]), line(Write, &[(0, 4 << 20)])]];
        let settings = cached(&format!("[[caches]]\nwrite_policy = '{policy}'"));
        simulate_script(program, &settings, 0).unwrap().end
    };
    assert_eq!(took("on-sync"), took("delayed"));
    assert!(took("through") > took("delayed"), "{:?} {:?}", took("through"), took("delayed"));
}

#[test]
fn little_memory_makes_managers_fetch_again_and_lose_nothing() {
    use FileOperation::{Close, Open, Read, Write};
    let all = (0, 64 << 20);
    let lines = vec![
        line(Open, &[]),
        line(Write, &[all]),
        line(Read, &[all]),
        line(Read, &[all]),
        line(Close, &[]),
    ];
    let settings = on("[[caches]]\nmemory = '8m'\n[[caches]]\nmemory = '16m'");
    let outcome = simulate_script(vec![lines], &settings, 0).unwrap();
    assert_eq!(of_servers(&outcome, |one| one.received_bytes), all.1);
    assert_eq!(sum(&outcome, |one| one.traffic.sent_bytes), 2 * all.1);
    assert!(sum(&outcome, |one| one.fetched_bytes) > all.1);
    let dirty: Vec<u64> = caches(&outcome).iter().map(|one| one.unsaved_bytes_max).collect();
    assert!(dirty[0] <= 6 << 20 && dirty[1] <= 12 << 20, "{dirty:?}");
}

#[test]
fn equal_seeds_give_equal_events_with_caches_too() {
    let hash = |seed| {
        let settings = Settings { tie_seed: Seed(seed), ..cached("[[caches]]\ncount = 3") };
        simulate(&strided(7, 40, 300), &settings).unwrap().event_hash
    };
    assert_eq!(hash(3), hash(3));
    let hashes: std::collections::BTreeSet<u64> = (0..5).map(hash).collect();
    assert!(hashes.len() > 1);
}

#[test]
fn a_manager_beside_its_server_needs_no_network_for_what_it_flushes() {
    let carried = |caches: &str| {
        let settings = cached(&format!("[[caches]]\nhosts = {caches}"));
        let outcome = simulate(&strided(4, 1024, 1024), &settings).unwrap();
        let out = outcome.links.iter().filter(|link| link.name.ends_with("nic out"));
        out.map(|link| link.totals.bytes).sum::<u64>()
    };
    let bytes = 4 << 20;
    // Files of an instance begin at the server of their inode, and so do their caches.
    let beside = carried("['io']");
    let turned = carried("['io1', 'io2', 'io3', 'io0']");
    assert!((2 * bytes..2 * bytes + bytes / 4).contains(&beside), "{beside}");
    assert!((3 * bytes..3 * bytes + bytes / 4).contains(&turned), "{turned}");
}

#[test]
fn rows_of_a_trace_tell_what_managers_served() {
    let settings = Settings { record: true, ..cached("[[caches]]\nhosts = ['client7', 'io1']") };
    let trace = simulate(&strided(2, 4096, 8), &settings).unwrap().trace.unwrap();
    let names: Vec<&str> = trace.header.processes.iter().map(|one| one.name.as_str()).collect();
    let behind = names.len() - 2;
    assert_eq!(names[behind..], ["client7 cache", "io1 cache"]);
    let bytes = |function| {
        let rows = trace.events.iter().filter(|row| row.process as usize >= behind);
        rows.filter(|row| row.function == function).map(|row| row.length).sum::<i64>()
    };
    assert_eq!((bytes(Function::SERVE_WRITE), bytes(Function::SERVE_READ)), (65_536, 65_536));
}

#[test]
fn a_manager_that_stalls_with_its_server_is_given_up_and_named() {
    let scenario = "[[faults]]\nkind = 'stalled-server'\nserver = 'io1'\nfrom = '1ms'";
    let settings = faulty(cached("[[caches]]\ncount = 4"), scenario);
    let error = simulate(&strided(4, 8, 65_536), &settings).unwrap_err();
    assert!(error.message.contains("cache manager 1: no answer in time"), "{error}");
    let passing = format!("{scenario}\nuntil = '2s'");
    let settings = faulty(cached("[[caches]]\ncount = 4"), &passing);
    let outcome = simulate(&strided(4, 8, 65_536), &settings).unwrap();
    assert_eq!(sum(&outcome, |one| one.traffic.received_bytes), 2 << 20);
    assert!(outcome.end.seconds() > 2.0);
}

#[test]
fn a_node_that_crashes_takes_its_manager_with_it() {
    let scenario = "[[faults]]\nkind = 'crashed-client'\nclient = 'client8'\nat = '1ms'";
    let settings = faulty(cached("[[caches]]\nhosts = ['io0', 'client8']"), scenario);
    let error = simulate(&strided(4, 8, 65_536), &settings).unwrap_err();
    assert!(error.message.contains("cache manager 1: no answer in time"), "{error}");
}

#[test]
fn managers_that_cannot_be_are_refused_by_name() {
    for (text, offender) in [
        ("[[caches]]\nhosts = ['io9']", "io9"),
        ("[[caches]]\nhosts = ['io1', 'io']", "`io1` twice"),
        ("[[caches]]\ncount = 5", "more [[caches]] than the file system's 4 servers"),
        ("[[caches]]\nmemory = '100g'", "100 GiB"),
    ] {
        let error = simulate(&strided(2, 8, 8), &on(text)).unwrap_err();
        assert!(error.message.contains(offender) && !error.hint.is_empty(), "{error}");
    }
}
