//! The parallel file system on a simulated platform: its machines, unchanged, under workloads and faults.

mod on_file_system;

use iolab_sim::file_system::Durability;
use iolab_sim::program::{Command, FileOperation, What};
use iolab_sim::workload::recorded::Recording;
use iolab_sim::workload::{Outcome, Settings};
use iolab_trace::Function;
use iolab_vocab::{FileId, Seed};
use on_file_system::{
    SMALL, device_bytes, faulty, line, on, simulate, simulate_program, simulate_script, strided,
};

#[test]
fn a_strided_collective_moves_each_byte_once_and_over_all_servers() {
    // 4 ranks, 8 bytes each in turn, 4096 times: 128 KiB, 8 stripes of 4 KiB on each of 4 servers.
    let outcome = simulate(&strided(4, 8, 4096), &on(SMALL)).unwrap();
    let servers = &outcome.file_system.as_ref().unwrap().servers;
    assert_eq!(servers.len(), 4);
    for server in servers {
        assert_eq!((server.totals.received_bytes, server.totals.sent_bytes), (32 << 10, 32 << 10));
    }
    let phases = &outcome.applications[0].phases;
    assert_eq!((phases[0].written_bytes, phases[1].read_bytes), (128 << 10, 128 << 10));
    let device: u64 = outcome.servers.iter().map(|one| one.totals.device.access_count()).sum();
    assert_eq!(device, 0, "class process leaves what was written in memory");
}

/// Bytes that all servers were sent, and have sent.
fn traffic(outcome: &Outcome) -> (u64, u64) {
    let servers = &outcome.file_system.as_ref().unwrap().servers;
    let sum = |bytes: fn(&iolab_sim::file_system::TrafficTotals) -> u64| {
        servers.iter().map(|server| bytes(&server.totals)).sum()
    };
    (sum(|totals| totals.received_bytes), sum(|totals| totals.sent_bytes))
}

#[test]
fn any_number_of_ranks_moves_what_it_should_whatever_does_not_divide() {
    for ranks in 1..=9 {
        let outcome = simulate(&strided(ranks, 13, 771), &on(SMALL)).unwrap();
        let bytes = u64::from(ranks) * 13 * 771;
        assert_eq!(traffic(&outcome), (bytes, bytes), "{ranks} ranks");
    }
}

#[test]
fn ranks_without_bytes_take_part() {
    use FileOperation::{Close, Open, ReadAll, WriteAll};
    let lines = |extents: &[(u64, u64)]| {
        vec![line(Open, &[]), line(WriteAll, extents), line(ReadAll, extents), line(Close, &[])]
    };
    let ranks = vec![lines(&[]), lines(&[(5, 0)]), lines(&[(0, 7), (9000, 3)])];
    assert_eq!(traffic(&simulate_script(ranks, &on(SMALL), 0).unwrap()), (10, 10));
}

#[test]
fn reads_end_with_the_file_and_holes_come_from_nowhere() {
    use FileOperation::{Open, Read, SetSize, Write};
    let program = vec![vec![
        line(Open, &[]),
        line(Write, &[(20_000, 100)]),
        line(Read, &[(0, 30_000)]),
        line(SetSize, &[(0, 10)]),
        line(Read, &[(0, 30_000)]),
    ]];
    let settings = Settings { record: true, ..on(SMALL) };
    let outcome = simulate_script(program, &settings, 0).unwrap();
    let rows = outcome.trace.unwrap().events;
    let reads = rows.iter().filter(|row| row.function == Function::MPI_FILE_READ);
    assert_eq!(reads.map(|row| row.result).collect::<Vec<_>>(), [20_100, 10]);
}

#[test]
fn class_device_puts_each_byte_on_a_device_once_it_is_synced() {
    use FileOperation::{Close, Open, Sync, Write};
    let program = |last: FileOperation| {
        vec![vec![line(Open, &[]), line(Write, &[(0, 50_000)]), line(last, &[])]]
    };
    let device = format!("[instance]\ndurability = 'device'\n{SMALL}");
    for last in [Sync, Close] {
        let synced = simulate_script(program(last), &on(&device), 0).unwrap();
        let (read, written) = device_bytes(&synced);
        // The journal has its record of the new file, too.
        assert!(read == 0 && (50_000..51_000).contains(&written), "{written}");
        let kept = simulate_script(program(last), &on(SMALL), 0).unwrap();
        assert_eq!(device_bytes(&kept), (0, 0));
        assert!(kept.end < synced.end);
    }
}

#[test]
fn what_was_there_before_the_run_comes_from_the_device_once() {
    use FileOperation::{Open, Read};
    let program = vec![vec![
        line(Open, &[]),
        line(Read, &[(0, 1 << 20)]),
        line(Read, &[(0, 1 << 20)]),
        line(Read, &[(1 << 20, 1 << 20)]),
    ]];
    let outcome = simulate_script(program, &on(SMALL), 1_500_000).unwrap();
    assert_eq!(device_bytes(&outcome), (1_500_000, 0));
    assert_eq!(traffic(&outcome), (0, (1 << 20) + 1_500_000));
    let found: u64 = outcome.servers.iter().map(|one| one.totals.memory.found_bytes).sum();
    assert_eq!(found, 1 << 20);
}

#[test]
fn equal_seeds_give_equal_events_and_other_seeds_the_same_bytes() {
    let hash = |seed| {
        let settings = Settings { tie_seed: Seed(seed), ..on(SMALL) };
        let outcome = simulate(&strided(7, 40, 300), &settings).unwrap();
        assert_eq!(traffic(&outcome), (84_000, 84_000));
        outcome.event_hash
    };
    assert_eq!(hash(3), hash(3));
    let hashes: std::collections::BTreeSet<u64> = (0..5).map(hash).collect();
    assert!(hashes.len() > 1);
}

#[test]
fn a_server_that_stalls_for_good_is_given_up_and_named() {
    let scenario = "[[faults]]\nkind = 'stalled-server'\nserver = 'io2'\nfrom = '1ms'";
    let error = simulate(&strided(4, 8, 65_536), &faulty(on(SMALL), scenario)).unwrap_err();
    assert!(error.message.contains("I/O server 2: no answer in time"), "{error}");
    assert!(error.hint.contains("8 s"), "{error}");
}

#[test]
fn a_stall_that_passes_only_costs_time() {
    let scenario =
        "[[faults]]\nkind = 'stalled-server'\nserver = 'io2'\nfrom = '1ms'\nuntil = '2s'";
    let sound = simulate(&strided(4, 8, 65_536), &on(SMALL)).unwrap();
    let stalled = simulate(&strided(4, 8, 65_536), &faulty(on(SMALL), scenario)).unwrap();
    assert!(sound.end.seconds() < 1.0 && stalled.end.seconds() > 2.0);
    assert_eq!(traffic(&sound), traffic(&stalled));
}

#[test]
fn a_link_that_is_cut_for_good_ends_the_run_with_the_party_behind_it() {
    let scenario = "[[faults]]\nkind = 'cut-link'\nlink = 'io1'\nfrom = '1ms'";
    let error = simulate(&strided(4, 8, 65_536), &faulty(on(SMALL), scenario)).unwrap_err();
    assert!(error.message.contains("I/O server 1"), "{error}");
}

#[test]
fn a_rank_that_crashes_fails_what_all_do_together() {
    let scenario = "[[faults]]\nkind = 'crashed-client'\nclient = 'client3'\nat = '1ms'";
    let error = simulate(&strided(4, 8, 65_536), &faulty(on(SMALL), scenario)).unwrap_err();
    assert!(error.message.contains("rank 3") || error.message.contains("another rank"), "{error}");
}

#[test]
fn a_slow_device_slows_what_it_is_needed_for() {
    let scenario = "[[faults]]\nkind = 'slow-device'\nserver = 'io0'\nfactor = 50";
    let device = format!("[instance]\ndurability = 'device'\n{SMALL}");
    let sound = simulate(&strided(4, 64, 4096), &on(&device)).unwrap();
    let slow = simulate(&strided(4, 64, 4096), &faulty(on(&device), scenario)).unwrap();
    assert!(slow.end.0 > 2 * sound.end.0, "{} and {}", sound.end, slow.end);
}

#[test]
fn ranks_that_do_not_all_come_are_told_who_is_missing() {
    use FileOperation::{Open, WriteAll};
    let mut ranks = vec![vec![line(Open, &[]), line(WriteAll, &[(0, 10)])]; 3];
    ranks[1].pop();
    let error = simulate_script(ranks, &on(SMALL), 0).unwrap_err();
    assert!(error.message.contains("deadlock"), "{error}");
    assert!(error.message.contains("rank 1 to come to the write-all of file 0"), "{error}");
}

#[test]
fn a_rank_that_waits_for_a_message_ends_in_a_deadlock_too() {
    use FileOperation::{Open, Write};
    let receive = What::Receive { from: 1, tag: 0, communicator: 0 }.awaited();
    let ranks = vec![
        vec![line(Open, &[]), (receive, vec![])],
        vec![line(Open, &[]), line(Write, &[(0, 100)])],
    ];
    let error = simulate_script(ranks, &on(SMALL), 0).unwrap_err();
    assert!(error.message.contains("a message of rank 1"), "{error}");
}

#[test]
fn what_was_not_opened_is_refused_with_the_command() {
    let error = simulate_script(vec![vec![line(FileOperation::Read, &[(0, 1)])]], &on(SMALL), 10);
    let error = error.unwrap_err();
    assert!(error.message.contains("read of file 0: the rank has not opened it"), "{error}");
}

#[test]
fn messages_computation_and_background_accesses_go_on_beside_files() {
    use FileOperation::{Close, Open, Write};
    let message = |rank: u32| What::SendReceive {
        to: 1 - rank,
        send_tag: 0,
        bytes: 1 << 20,
        from: 1 - rank,
        receive_tag: 0,
        communicator: 0,
    };
    let others = |rank| -> Vec<Command> {
        vec![
            message(rank).awaited(),
            What::Compute { instructions: 1e6 }.awaited(),
            What::barrier(0).awaited(),
            What::Wait(7).awaited(),
        ]
    };
    let lines = |rank: u32| {
        let (write, list) = line(Write, &[(u64::from(rank) << 20, 1 << 20)]);
        let mut lines = vec![line(Open, &[]), (write.started(7), list)];
        lines.extend(others(rank).into_iter().map(|command| (command, vec![])));
        lines.push(line(Close, &[]));
        lines
    };
    let outcome = simulate_script(vec![lines(0), lines(1)], &on(SMALL), 0).unwrap();
    assert_eq!(traffic(&outcome), (2 << 20, 0));
}

#[test]
fn servers_are_those_that_the_configuration_names() {
    let text = format!("[metadata]\nhost = 'client'\n[[servers]]\nhosts = ['io3', 'io1']\n{SMALL}");
    let outcome = simulate(&strided(2, 4096, 4), &on(&text)).unwrap();
    let file_system = outcome.file_system.unwrap();
    let names: Vec<_> = file_system.servers.iter().map(|server| server.name.as_str()).collect();
    assert_eq!(names, ["io3", "io1"]);
    assert_eq!(file_system.durability, Durability::Process);
    let group = simulate(&strided(2, 4096, 4), &on("[[servers]]\nhosts = ['io']")).unwrap();
    assert_eq!(group.file_system.unwrap().servers.len(), 4);
}

#[test]
fn a_platform_that_does_not_have_what_is_named_is_refused() {
    for (text, offender) in [
        ("[[servers]]\nhosts = ['io9']", "io9"),
        ("[[servers]]\nhosts = ['io1', 'io']", "`io1` twice"),
        ("[[servers]]\n[[servers]]\n[[servers]]\n[[servers]]\n[[servers]]", "more [[servers]]"),
        ("[metadata]\nhost = 'nowhere'", "nowhere"),
    ] {
        let error = simulate(&strided(2, 8, 8), &on(text)).unwrap_err();
        assert!(error.message.contains(offender) && !error.hint.is_empty(), "{error}");
    }
    let cached = Settings { cache: Some("aggregation".to_owned()), ..on("") };
    let error = simulate(&strided(2, 8, 8), &cached).unwrap_err();
    assert!(error.message.contains("a cache layer does nothing"), "{error}");
}

#[test]
fn what_was_recorded_is_that_run_again() {
    let settings = Settings { record: true, ..on(SMALL) };
    let first = simulate(&strided(3, 100, 50), &settings).unwrap();
    let recording = Recording::of(&first.trace.unwrap()).unwrap();
    let again = simulate_program(Box::new(recording.program()), &settings, 0).unwrap();
    assert_eq!((again.end, again.event_hash), (first.end, first.event_hash));
}

/// When the first of these calls ended, and when the last access of a device did.
fn ends(outcome: &Outcome, call: Function, device: Function) -> (u64, u64) {
    let rows = || outcome.trace.as_ref().unwrap().events.iter();
    let ends = |function| rows().filter(move |row| row.function == function).map(|row| row.end.0);
    (ends(call).min().unwrap(), ends(device).max().unwrap())
}

#[test]
fn ranks_that_read_the_same_wait_for_the_device_that_reads_it_once() {
    use FileOperation::{Open, Read};
    let ranks = vec![vec![line(Open, &[]), line(Read, &[(0, 100_000)])]; 6];
    let settings = Settings { record: true, ..on("") };
    let outcome = simulate_script(ranks, &settings, 100_000).unwrap();
    assert_eq!(device_bytes(&outcome), (100_000, 0));
    let (first, device) = ends(&outcome, Function::MPI_FILE_READ, Function::DEVICE_READ);
    assert!(first > device, "{first} and {device}");
}

#[test]
fn a_sync_waits_for_what_another_one_writes() {
    use FileOperation::{Open, Sync, Write};
    let barrier = (What::barrier(0).awaited(), vec![]);
    let write = line(Write, &[(0, 100_000)]);
    let ranks = vec![vec![line(Open, &[]), write, barrier, line(Sync, &[])]; 6];
    let settings = Settings { record: true, ..on("[instance]\ndurability = 'device'") };
    let outcome = simulate_script(ranks, &settings, 0).unwrap();
    let (first, device) = ends(&outcome, Function::MPI_FILE_SYNC, Function::DEVICE_WRITE);
    assert!(first > device, "{first} and {device}");
    let rows = outcome.trace.unwrap().events;
    assert!(rows.iter().all(|row| row.file.0 == 0 || row.file == FileId::NONE));
}
