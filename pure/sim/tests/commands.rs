//! Messages between processes, commands in the background, sync: times to the nanosecond.

mod small_cluster;

use iolab_sim::program::{ANY_SOURCE, ANY_TAG, Command, FileOperation, WORLD, What};
use iolab_sim::workload::Script;
use iolab_vocab::Extent;
use small_cluster::*;

/// One byte more than is sent unasked.
const LARGE: u64 = 102_401;

/// A large message's data: a full packet, and a byte that follows it through every hop.
fn large_data() -> u64 {
    reached(102_400) + wire(1)
}

fn both(to: u32, bytes: u64, from: u32) -> Command {
    What::SendReceive { to, send_tag: 1, bytes, from, receive_tag: 1, communicator: WORLD }
        .awaited()
}

#[test]
fn an_eager_message_travels_at_once() {
    let time = run(vec![vec![send(1, 7, 50_000)], vec![receive(0, 7)]]).unwrap();
    assert_eq!(time.0, STEP + reached(50_000));
}

#[test]
fn a_message_above_the_eager_limit_is_offered_first() {
    let time = run(vec![vec![send(1, 7, LARGE)], vec![receive(0, 7)]]).unwrap();
    assert_eq!(time.0, 3 * STEP + 2 * reached(100) + large_data());
}

#[test]
fn an_offer_waits_for_its_receive() {
    let late = 10_000;
    let time = run(vec![vec![send(1, 7, LARGE)], vec![compute(late), receive(0, 7)]]).unwrap();
    // Compute, the receive's first step finds the offer and replies at once.
    assert_eq!(time.0, late * STEP + 2 * STEP + reached(100) + large_data());
}

#[test]
fn an_early_message_is_kept_until_somebody_asks() {
    let late = 10_000;
    let time = run(vec![vec![send(1, 7, 10)], vec![compute(late), receive(0, 7)]]).unwrap();
    assert_eq!(time.0, late * STEP + STEP);
}

#[test]
fn receives_match_on_tag_and_sender_not_on_arrival() {
    let ranks = vec![
        vec![send(2, 1, 10), send(2, 2, 10)],
        vec![send(2, 1, 10)],
        vec![receive(0, 2), receive(1, 1), receive(0, 1)],
    ];
    run(ranks).unwrap();
}

#[test]
fn a_receive_from_anyone_takes_what_comes_first() {
    let any = What::Receive { from: ANY_SOURCE, tag: ANY_TAG, communicator: WORLD }.awaited();
    let time =
        run(vec![vec![any, any], vec![compute(5_000), send(0, 3, 10)], vec![send(0, 9, 10)]]);
    assert_eq!(time.unwrap().0, 5_000 * STEP + STEP + reached(10));
}

#[test]
fn messages_of_different_communicators_are_not_mixed_up() {
    let to = |communicator| What::Send { to: 1, tag: 0, bytes: 10, communicator }.awaited();
    let from = |communicator| What::Receive { from: 0, tag: 0, communicator }.awaited();
    // Communicator 1 turns the ranks round: its rank 1 is rank 0 of the world.
    let ranks = vec![
        vec![to(0), What::Receive { from: 0, tag: 0, communicator: 1 }.awaited()],
        vec![to(1), compute(5_000), from(0)],
    ];
    run_program(Script::of_commands(ranks).with_communicator(vec![1, 0])).unwrap();
}

#[test]
fn a_ring_of_eager_exchanges_takes_one_message() {
    let ranks = (0..4).map(|rank| vec![both((rank + 1) % 4, 1000, (rank + 3) % 4)]).collect();
    // The switch takes the four packets one after the other.
    assert_eq!(run(ranks).unwrap().0, STEP + reached(1000) + 3 * switch(1000));
}

#[test]
fn a_ring_of_large_exchanges_does_not_lock_up() {
    let ranks = (0..4).map(|rank| vec![both((rank + 1) % 4, LARGE, (rank + 3) % 4)]).collect();
    let time = run(ranks).unwrap().0;
    assert!(time > 2 * reached(100) + large_data() && time < 4 * large_data(), "{time}");
}

#[test]
fn a_large_exchange_goes_on_though_its_message_comes_later() {
    let ranks = vec![
        vec![both(1, LARGE, 2)],
        vec![receive(0, 1), send(2, 5, 10)],
        vec![receive(1, 5), send(0, 1, 10)],
    ];
    run(ranks).unwrap();
}

#[test]
fn a_process_can_send_to_itself() {
    let time = run(vec![vec![send(0, 1, 1000), receive(0, 1)]]).unwrap();
    assert_eq!(time.0, 2 * STEP + switch(1000));
}

#[test]
fn an_empty_message_takes_the_latency() {
    let time = run(vec![vec![send(1, 1, 0)], vec![receive(0, 1)]]).unwrap();
    assert_eq!(time.0, STEP + 2 * LATENCY);
}

#[test]
fn a_send_in_the_background_meets_another_one() {
    let begin = |to| What::Send { to, tag: 1, bytes: LARGE, communicator: WORLD }.started(4);
    let rank = |other| vec![begin(other), receive(other, 1), What::Wait(4).awaited()];
    run(vec![rank(1), rank(0)]).unwrap();
}

#[test]
fn a_receive_in_the_background_takes_its_message() {
    let begin = What::Receive { from: 1, tag: 1, communicator: WORLD }.started(9);
    let time =
        run(vec![vec![begin, compute(2_000), What::Wait(9).awaited()], vec![send(0, 1, 10)]])
            .unwrap();
    // The receive's own step is the fourth beside begin, compute and wait.
    assert_eq!(time.0, 2_003 * STEP);
}

fn megabytes(count: u64) -> Vec<Extent> {
    vec![Extent::new(0, count << 20)]
}

#[test]
fn a_write_in_the_background_overlaps_with_computing() {
    let alone = run_lines(vec![(FileOperation::Write.of(0), megabytes(4))]).unwrap().0;
    let overlapped = |microseconds| {
        let lines = vec![
            (FileOperation::Write.of(0).started(1), megabytes(4)),
            (compute(microseconds), vec![]),
            (What::Wait(1).awaited(), vec![]),
        ];
        run_lines(lines).unwrap().0
    };
    // Longer than the write: begin, computing, the write's three steps, and the wait.
    let long = 2 * alone / STEP;
    assert_eq!(overlapped(long), (long + 5) * STEP);
    // Shorter: the write decides. Beside it are the begin, and its first two steps, which share
    // the processor with the computing.
    assert_eq!(overlapped(20_000), alone + 3 * STEP);
}

#[test]
fn background_reads_of_two_files_share_the_servers() {
    let read = |ticket| (FileOperation::Read.of(0).started(ticket), megabytes(8));
    let waits = [What::Wait(1).awaited(), What::Wait(0).awaited()].map(|wait| (wait, vec![]));
    let two = run_lines([vec![read(0), read(1)], waits.to_vec()].concat()).unwrap().0;
    let one = run_lines(vec![(FileOperation::Read.of(0), megabytes(8))]).unwrap().0;
    assert!(two > one && two < 2 * one, "{two} against {one}");
}

#[test]
fn collective_writes_in_the_background_meet_in_the_order_they_were_begun() {
    let rank = |rank: u64| {
        let part = |call: u64| vec![Extent::new((2 * call + rank) << 20, 1 << 20)];
        vec![
            (FileOperation::WriteAll.of(0).started(1), part(0)),
            (FileOperation::WriteAll.of(0).started(2), part(1)),
            (compute(1 + 9_000 * rank), vec![]),
            (What::Wait(2).awaited(), vec![]),
            (What::Wait(1).awaited(), vec![]),
        ]
    };
    let setup = setup(vec![Box::new(Script::new(vec![rank(0), rank(1)]))], 1);
    let (_, servers) = totals(setup);
    assert_eq!(servers.iter().map(|server| server.device.written_bytes).sum::<u64>(), 4 << 20);
}

#[test]
fn a_sync_waits_until_the_data_is_on_the_devices() {
    let write = (FileOperation::Write.of(0), megabytes(40));
    let after = (compute(1), vec![]);
    let run = |lines: Vec<_>| {
        let mut setup = setup(vec![Box::new(Script::new(vec![lines]))], 1);
        setup.cache = Some("write-behind".to_owned());
        build(setup).run().unwrap().0
    };
    let written = run(vec![write.clone(), after.clone()]);
    let synced = run(vec![write, (FileOperation::Sync.of(0), vec![]), after]);
    // Without it the last thing is the last write on a device; with it the answer comes after
    // that, and then the last step.
    assert_eq!(synced, written + reached(15) + STEP);
}

#[test]
fn a_sync_of_nothing_takes_a_flush_and_an_answer() {
    let time = run(vec![vec![FileOperation::Sync.of(0)]]).unwrap().0;
    // Ten flushes leave one after the other, ten answers come back through one port.
    assert_eq!(time, STEP + 9 * wire(20) + reached(20) + reached(15));
}

fn set_size(bytes: u64) -> (Command, Vec<Extent>) {
    (FileOperation::SetSize.of(0), vec![Extent::new(0, bytes)])
}

#[test]
fn another_size_takes_a_request_to_each_server_and_its_answer() {
    let time = run_lines(vec![set_size(1000)]).unwrap().0;
    // The command, its meeting and what comes after that, the answers, and a broadcast to nobody.
    assert_eq!(time, 5 * STEP + 9 * wire(20) + reached(20) + reached(15));
}

#[test]
fn a_file_that_was_cut_has_no_bytes_behind_its_end_and_one_that_was_extended_has() {
    let read = || (FileOperation::Read.of(0), vec![Extent::new(0, 1 << 20)]);
    let moved = |bytes| {
        let lines = vec![set_size(bytes), read()];
        let (_, servers) = totals(setup(vec![Box::new(Script::new(vec![lines]))], 1));
        servers.iter().map(|server| server.device.read_bytes).sum::<u64>()
    };
    assert_eq!(moved(0), 0);
    assert_eq!(moved(70_000), 70_000);
    assert_eq!(moved(1 << 30), 1 << 20);
}

#[test]
fn a_size_is_one_extent_from_the_beginning() {
    let wrong = [vec![], vec![Extent::new(1, 5)], vec![Extent::new(0, 1), Extent::new(1, 1)]];
    for list in wrong {
        let text = run_lines(vec![(FileOperation::SetSize.of(0), list)]).unwrap_err().message();
        assert!(text.contains("set-size of file 0: ") && text.contains("say no size"), "{text}");
    }
}
