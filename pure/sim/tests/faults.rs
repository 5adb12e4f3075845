//! Faults: what each one costs a run, to the nanosecond where chance is not in it.

mod small_cluster;

use iolab_sim::cluster::{Cluster, Event, Reason, RunError};
use iolab_sim::platform::Platform;
use iolab_sim::program::{FileOperation, Program, WORLD, What};
use iolab_sim::queue::Ordered;
use iolab_sim::scenario::Scenario;
use iolab_sim::workload::Script;
use iolab_vocab::{Extent, Nanos, Seed};
use small_cluster::*;

const SECOND: u64 = 1_000_000_000;

/// A cluster with these programs on one file, and these faults.
fn ill(programs: Vec<Box<dyn Program>>, faults: &str) -> Cluster<'static, Ordered<Event>> {
    let mut cluster = build(setup(programs, 1));
    cluster.inject(&Scenario::parse(faults).unwrap().resolve(&classic()).unwrap());
    cluster
}

fn run_ill(script: &Script, faults: &str) -> Result<Nanos, RunError> {
    ill(vec![Box::new(script.clone())], faults).run()
}

fn fault(kind: &str, keys: &str) -> String {
    format!("[[faults]]\nkind = '{kind}'\n{keys}\n")
}

/// One rank reads here and there on server 0, one block at a time.
fn scattered_reads() -> Script {
    let place = |index: u64| (index * 37 % 90) * 10 * (64 << 10);
    let read = |index| (FileOperation::Read.of(0), vec![Extent::new(place(index), 4096)]);
    Script::new(vec![(0..50).map(read).collect()])
}

/// One rank reads the first bytes of the file.
fn one_read() -> Script {
    Script::new(vec![vec![(FileOperation::Read.of(0), vec![Extent::new(0, 4096)])]])
}

/// Four ranks write and read all over the servers.
fn busy_ranks() -> Script {
    let part = |rank: u64, at: u64| vec![Extent::new((4 * at + rank) << 20, 1 << 20)];
    let rank = |rank| {
        let write = |at| (FileOperation::Write.of(0), part(rank, at));
        let read = |at| (FileOperation::Read.of(0), part(rank, at));
        (0..4).map(write).chain((0..4).map(read)).collect()
    };
    Script::new((0..4).map(rank).collect())
}

#[test]
fn a_device_slow_by_two_takes_twice_its_time() {
    let mut sound = ill(vec![Box::new(scattered_reads())], "");
    let time = sound.run().unwrap();
    let busy = sound.server_totals().next().unwrap().device.busy_nanos;
    assert!(busy > time.0 * 4 / 5, "the run is bound by the device");
    let slow = fault("slow-device", "server = 'server0'\nfactor = 2");
    assert_eq!(run_ill(&scattered_reads(), &slow).unwrap().0, time.0 + busy);
}

#[test]
fn a_device_is_slow_only_while_the_fault_lasts() {
    let whole = fault("slow-device", "server = 'server0'\nfactor = 2");
    let half = fault("slow-device", "server = 'server0'\nfactor = 2\nuntil = '500ms'");
    let times = [String::new(), half, whole].map(|one| run_ill(&scattered_reads(), &one).unwrap());
    assert!(times[0] < times[1] && times[1] < times[2], "{times:?}");
    // Half a second at half the speed is a quarter of a second lost, give or take a transfer.
    let lost = times[1].0 - times[0].0;
    assert!(lost.abs_diff(SECOND / 4) < 30_000_000, "{lost}");
}

#[test]
fn two_slow_faults_multiply_and_leave_no_trace() {
    let keys = |factor: u64| format!("server = 'server0'\nfactor = {factor}\nuntil = '1ms'");
    let both = fault("slow-device", &keys(2)) + &fault("slow-device", &keys(3));
    let sixfold = fault("slow-device", &keys(6));
    let time = |faults: &str| run_ill(&scattered_reads(), faults).unwrap();
    assert_eq!(time(&both), time(&sixfold));
    assert!(time(&both) > time(""));
}

#[test]
fn a_stalled_server_answers_when_the_stall_is_over() {
    let sound = run_ill(&one_read(), "").unwrap().0;
    let stall = fault("stalled-server", "server = 'server0'\nuntil = '1s'");
    // The request arrives while it is stalled, and is looked at when it is over.
    let arrival = STEP + reached(28);
    assert_eq!(run_ill(&one_read(), &stall).unwrap().0, SECOND + sound - arrival);
}

#[test]
fn a_stall_in_the_middle_delays_a_run_by_the_stall() {
    let sound = run_ill(&scattered_reads(), "").unwrap().0;
    let stall = fault("stalled-server", "server = 'server0'\nfrom = '0.3s'\nuntil = '0.7s'");
    let delay = run_ill(&scattered_reads(), &stall).unwrap().0 - sound;
    // What the device had under way goes on for at most one far seek and a bit.
    assert!(delay <= 4 * SECOND / 10 && delay > 4 * SECOND / 10 - 20_000_000, "{delay}");
}

#[test]
fn a_stall_loses_no_byte_of_any_cache_layer() {
    for cache in ["none", "write-behind", "aggregation", "server-directed"] {
        let mut setup = setup(vec![Box::new(busy_ranks())], 1);
        setup.cache = Some(cache.to_owned());
        let stall = fault("stalled-server", "server = 'server3'\nfrom = '10ms'\nuntil = '2s'");
        let mut cluster = build(setup);
        cluster.inject(&Scenario::parse(&stall).unwrap().resolve(&classic()).unwrap());
        let time = cluster.run().unwrap_or_else(|error| panic!("{cache}: {error}"));
        assert!(time.0 > 2 * SECOND, "{cache}: {time:?}");
        let written: u64 = cluster.server_totals().map(|server| server.device.written_bytes).sum();
        assert_eq!(written, 16 << 20, "{cache}");
    }
}

#[test]
fn a_server_stalled_for_good_is_named() {
    let stall = fault("stalled-server", "server = 'server0'");
    let error = run_ill(&one_read(), &stall).unwrap_err();
    let text = error.message();
    assert!(text.contains("rank 0 waits for an answer of server 0 [read of file 0]"), "{text}");
    assert!(text.ends_with("faults that last: server `server0` stalled from 0 s on"), "{text}");
    assert!(error.hint().contains("without the faults"));
}

fn one_message() -> Script {
    Script::of_commands(vec![vec![send(1, 7, 1000)], vec![receive(0, 7)]])
}

#[test]
fn a_packet_over_a_cut_link_comes_with_the_first_try_after_the_cut() {
    let cut = fault("cut-link", "link = 'client0'\nuntil = '0.9s'\ntimeout = '200ms'");
    let mut cluster = ill(vec![Box::new(one_message())], &cut);
    // Lost at the first try and four more, 200 ms apart; the link carries it twice.
    let time = STEP + wire(1000) + SECOND + reached(1000);
    assert_eq!(cluster.run().unwrap().0, time);
    assert_eq!(cluster.lost_packet_count(), 5);
}

#[test]
fn a_cut_link_at_the_receiver_has_the_same_effect() {
    let cut = |node| fault("cut-link", &format!("link = '{node}'\nuntil = '0.9s'"));
    assert_eq!(run_ill(&one_message(), &cut("client0")), run_ill(&one_message(), &cut("client1")));
}

#[test]
fn a_run_ends_after_the_cut_whatever_it_does() {
    let cut = fault("cut-link", "link = 'server2'\nfrom = '20ms'\nuntil = '1.5s'");
    let mut cluster = ill(vec![Box::new(busy_ranks())], &cut);
    assert!(cluster.run().unwrap().0 > 3 * SECOND / 2);
    let bytes =
        cluster.server_totals().map(|one| (one.device.written_bytes, one.device.read_bytes));
    assert_eq!(bytes.reduce(|a, b| (a.0 + b.0, a.1 + b.1)), Some((16 << 20, 16 << 20)));
}

#[test]
fn a_link_cut_for_good_is_named() {
    let error = run_ill(&one_message(), &fault("cut-link", "link = 'client1'")).unwrap_err();
    assert_eq!(
        error.message(),
        "deadlock at 0.000221025 s: 1 process waits\n  \
         rank 1 waits for a message of rank 0 (tag 7) [receive from rank 0 (tag 7)]\n\
         faults that last: link `client1` cut from 0 s on"
    );
}

#[test]
fn an_exchange_is_diagnosed_wherever_its_link_is_cut() {
    // Above the eager limit the send goes to the background, which may be over before the data is there.
    let bytes = 250_000;
    let exchange = |with| {
        let (send_tag, receive_tag, communicator) = (0, 0, WORLD);
        let what =
            What::SendReceive { to: with, send_tag, bytes, from: with, receive_tag, communicator };
        vec![(what.awaited(), vec![])]
    };
    let script = Script::new(vec![exchange(1), exchange(0)]);
    let end = run_ill(&script, "").expect("nothing is cut").0;
    let mut missing_data = 0;
    for at in (0..end).step_by(end as usize / 400) {
        let cut = fault("cut-link", &format!("link = 'client1'\nfrom = '{at}ns'"));
        match run_ill(&script, &cut) {
            Ok(time) => assert_eq!(time.0, end, "cut at {at} ns"),
            Err(RunError::Deadlock(deadlock)) => {
                let reasons = deadlock.waiting.iter().flat_map(|one| &one.reasons);
                let data =
                    |reason: &&Reason| matches!(reason, Reason::Message { from: Some(_), .. });
                missing_data +=
                    usize::from(deadlock.waiting.len() == 1 && reasons.filter(data).count() == 1);
            }
            Err(error) => panic!("cut at {at} ns: {error}"),
        }
    }
    assert!(missing_data > 0, "one rank has sent and the other waits for the data");
}

fn lossy(seed: u64) -> String {
    let keys = "link = 'server1'\nshare = 0.1";
    format!("seed = {seed}\n{}", fault("lossy-link", keys))
}

#[test]
fn a_lossy_link_costs_time_but_no_bytes_and_the_seed_decides() {
    let run = |faults: &str| {
        let mut cluster = ill(vec![Box::new(busy_ranks())], faults);
        let time = cluster.run().unwrap();
        let bytes: u64 = cluster
            .server_totals()
            .map(|one| one.device.written_bytes + one.device.read_bytes)
            .sum();
        assert_eq!(bytes, 32 << 20);
        (time, cluster.lost_packet_count())
    };
    assert_eq!(run(&lossy(1)), run(&lossy(1)));
    assert_ne!(run(&lossy(1)), run(&lossy(2)));
    assert!(run(&lossy(1)).0 > run("").0 && run(&lossy(1)).1 > 0);
    assert_eq!(run("").1, 0);
}

#[test]
fn losses_occur_as_often_as_said() {
    let messages = 2000;
    let script =
        Script::of_commands(vec![vec![send(1, 1, 100); messages], vec![receive(0, 1); messages]]);
    let keys = "link = 'client0'\nshare = 0.25\ntimeout = '1ms'";
    let mut cluster = ill(vec![Box::new(script)], &fault("lossy-link", keys));
    cluster.run().unwrap();
    // A quarter of all tries: a third of the messages' number.
    let lost = cluster.lost_packet_count() as f64 / messages as f64;
    assert!((lost - 1.0 / 3.0).abs() < 0.04, "{lost}");
}

#[test]
fn a_link_that_was_lossy_is_as_before() {
    let rests = What::Idle { nanos: Nanos(SECOND) }.awaited();
    let script = Script::of_commands(vec![
        vec![send(1, 1, 1000), rests, send(1, 1, 1000)],
        vec![receive(0, 1), receive(0, 1)],
    ]);
    let cut = fault("cut-link", "link = 'client0'\nuntil = '0.5s'\ntimeout = '100ms'");
    let sound = run_ill(&script, "").unwrap().0;
    // The first message is late, but the second one decides, and its link is whole again.
    assert_eq!(run_ill(&script, &cut).unwrap().0, sound);
}

#[test]
fn what_waits_for_a_crashed_client_is_told_so() {
    let rank = vec![compute(1000), barrier()];
    let mut longer = rank.clone();
    longer.insert(0, compute(50_000));
    let script = Script::of_commands(vec![rank.clone(), longer, rank]);
    let crash = fault("crashed-client", "client = 'client1'\nat = '20ms'");
    let error = run_ill(&script, &crash).unwrap_err();
    assert_eq!(
        error.message(),
        "deadlock at 0.001001000 s: 2 processes wait\n  \
         rank 0 waits for rank 1 to come to the barrier [barrier]\n  \
         rank 2 waits for rank 1 to come to the barrier [barrier]\n\
         crashed: rank 1\n\
         faults that last: client `client1` crashed at 0.02 s"
    );
}

#[test]
fn a_client_that_crashes_in_a_barrier_is_missed_there() {
    let script = Script::of_commands(vec![vec![barrier()], vec![compute(50_000), barrier()]]);
    let crash = fault("crashed-client", "client = 'client0'\nat = '20ms'");
    let text = run_ill(&script, &crash).unwrap_err().message();
    assert!(text.contains("rank 1 waits for rank 0 to come to the barrier"), "{text}");
}

#[test]
fn a_crash_nobody_notices_leaves_the_others_alone() {
    let script = Script::of_commands(vec![
        vec![send(1, 1, 10), compute(100_000)],
        vec![receive(0, 1), compute(60_000)],
    ]);
    let crash = fault("crashed-client", "client = 'client0'\nat = '20ms'");
    assert_eq!(run_ill(&script, &crash).unwrap().0, STEP + reached(10) + 60_000 * STEP);
}

#[test]
fn a_client_can_crash_in_the_middle_of_anything() {
    let sound = run_ill(&busy_ranks(), "").unwrap().0;
    for step in 0..100 {
        let at = sound * step / 100;
        let crash = fault("crashed-client", &format!("client = 'client2'\nat = '{at}ns'"));
        let time = run_ill(&busy_ranks(), &crash).unwrap_or_else(|error| panic!("{at}: {error}"));
        assert!(time.0 <= sound, "{at}");
    }
}

#[test]
fn a_fault_after_the_end_changes_nothing() {
    let late = fault("slow-device", "server = 'server0'\nfactor = 9\nfrom = '500s'")
        + &fault("stalled-server", "server = 'server0'\nfrom = '500s'\nuntil = '600s'")
        + &fault("cut-link", "link = 'client0'\nfrom = '500s'\nuntil = '600s'")
        + &fault("crashed-client", "client = 'client0'\nat = '500s'");
    assert_eq!(run_ill(&busy_ranks(), &late), run_ill(&busy_ranks(), ""));
}

#[test]
fn a_cable_between_switches_can_be_cut() {
    let platform = Platform::parse(
        "switches = [{ name = 'left' }, { name = 'right' }]
         links = [{ from = 'left', to = 'right' }]
         nodes = [{ name = 'a', clients = 1, switch = 'left' },
                  { name = 'b', clients = 1, switch = 'right' }]",
    )
    .unwrap();
    let run = |faults: &str| {
        let setup = setup(vec![Box::new(one_message())], 0);
        let mut cluster = Cluster::build(&platform, setup, Ordered::new(Seed(0))).unwrap();
        cluster.inject(&Scenario::parse(faults).unwrap().resolve(&platform).unwrap());
        cluster.run().unwrap().0
    };
    let cut = fault("cut-link", "link = 'left - right'\nuntil = '0.3s'");
    assert_eq!(run(&cut), run("") + 400_000_000 + wire(1000));
}
