//! Every collective command at four ranks, by the default algorithm: times to the nanosecond.

mod small_cluster;

use iolab_policy::collective::CollectiveKind;
use iolab_sim::program::{Command, Communicator, FileOperation, WORLD, What};
use iolab_sim::workload::{Script, WithFiles};
use iolab_vocab::Extent;
use small_cluster::*;

const BYTES: u64 = 1000;
/// With the header that collectives add.
const WIRE: u64 = BYTES + 20;

fn all_do(command: Command) -> u64 {
    run(vec![vec![command]; 4]).unwrap().0
}

#[test]
fn a_barrier_ends_when_the_last_has_come() {
    let mut ranks = vec![vec![barrier(), compute(3)]; 4];
    ranks[2].insert(0, compute(500));
    assert_eq!(run(ranks).unwrap().0, (500 + 1 + 3) * STEP);
}

#[test]
fn a_broadcast_goes_down_a_tree() {
    let time = all_do(collective(CollectiveKind::Broadcast, 0, BYTES));
    // The root sends to 2 and then to 1; 2 passes on to 3, which has a last step to itself.
    assert_eq!(time, 2 * (STEP + reached(WIRE)) + STEP);
}

#[test]
fn a_broadcast_from_another_root_takes_as_long() {
    let from = |root| all_do(collective(CollectiveKind::Broadcast, root, BYTES));
    assert_eq!(from(3), from(0));
}

#[test]
fn a_reduce_goes_up_the_tree() {
    let time = all_do(collective(CollectiveKind::Reduce, 0, BYTES));
    // 3 sends to 2 (and 1 to 0, which the switch carries first), then 2 sends to 0.
    assert_eq!(time, 2 * (STEP + reached(WIRE)) + switch(WIRE));
}

#[test]
fn a_large_reduce_asks_for_permission() {
    let bytes = 100 << 10;
    let (eager, large) = (bytes, bytes + 1);
    let reduce = |bytes| collective(CollectiveKind::Reduce, 0, bytes);
    let pair = |bytes| run(vec![vec![reduce(bytes)]; 2]).unwrap().0;
    // A packet, and one of the header (and the byte above the limit) behind it.
    assert_eq!(pair(eager), STEP + reached(102_400) + wire(20));
    assert_eq!(pair(large), 2 * STEP + reached(20) + reached(102_400) + wire(21));
}

#[test]
fn an_allreduce_is_a_reduce_and_a_broadcast() {
    let time = all_do(collective(CollectiveKind::Allreduce, 0, BYTES));
    assert_eq!(time, 4 * (STEP + reached(WIRE)) + switch(WIRE) + STEP);
}

/// Three messages through the root's port.
fn through_one_port() -> u64 {
    STEP + wire(WIRE) + LATENCY + switch(WIRE) + 3 * wire(WIRE) + LATENCY
}

#[test]
fn a_gather_comes_through_the_roots_port() {
    let time = all_do(collective(CollectiveKind::Gather, 0, BYTES));
    assert_eq!(time, through_one_port());
}

#[test]
fn a_scatter_leaves_through_the_roots_nic() {
    let time = all_do(collective(CollectiveKind::Scatter, 0, BYTES));
    assert_eq!(time, STEP + 2 * wire(WIRE) + reached(WIRE));
}

#[test]
fn everyone_to_everyone_ends_at_the_port_that_comes_last() {
    // All send to 0 first and to 3 last: three at once for 3 while its port is idle.
    let expected = 2 * wire(WIRE) + through_one_port();
    assert_eq!(all_do(collective(CollectiveKind::Allgather, 0, BYTES)), expected);
    assert_eq!(all_do(collective(CollectiveKind::Alltoall, 0, BYTES)), expected);
}

#[test]
fn an_alltoall_of_listed_lengths_is_one_where_they_are_equal() {
    let all = |lengths: [u64; 4]| {
        let list: Vec<_> = lengths.map(|length| Extent::new(0, length)).to_vec();
        let line = (What::Alltoallv { communicator: WORLD }.awaited(), list);
        run_program(Script::new(vec![vec![line]; 4])).map(|time| time.0)
    };
    let equal = all_do(collective(CollectiveKind::Alltoall, 0, BYTES));
    assert_eq!(all([BYTES; 4]).unwrap(), equal);
    assert!(all([BYTES, 0, 0, 0]).unwrap() < equal);
}

#[test]
fn another_algorithm_is_chosen_by_name() {
    let command = collective(CollectiveKind::Broadcast, 0, BYTES);
    let mut setup = setup(vec![Box::new(Script::of_commands(vec![vec![command]; 4]))], 0);
    setup.collectives.choose("broadcast=flat").unwrap();
    assert_eq!(build(setup).run().unwrap().0, STEP + 2 * wire(WIRE) + reached(WIRE));
}

#[test]
fn recursive_doubling_takes_half_the_rounds_of_reduce_and_broadcast() {
    let command = collective(CollectiveKind::Allreduce, 0, BYTES);
    let mut setup = setup(vec![Box::new(Script::of_commands(vec![vec![command]; 4]))], 0);
    setup.collectives.choose("allreduce=recursive-doubling").unwrap();
    let time = build(setup).run().unwrap().0;
    // Two rounds; in each, four messages share the switch.
    let round = STEP + reached(WIRE);
    assert!((2 * round..=2 * (round + 3 * switch(WIRE))).contains(&time), "{time}");
    assert!(time * 4 < all_do(command) * 3, "{time}");
}

#[test]
fn a_barrier_of_messages_is_chosen_by_name() {
    let mut setup = setup(vec![Box::new(Script::of_commands(vec![vec![barrier()]; 4]))], 0);
    setup.collectives.choose("barrier=dissemination").unwrap();
    let time = build(setup).run().unwrap().0;
    assert!(time > 2 * reached(0) && time < 3 * reached(1000), "two rounds: {time}");
}

/// Two halves of four ranks, each with a collective of its own.
fn halves(command: impl Fn(Communicator) -> Command) -> Script {
    let ranks = (0..4).map(|rank| vec![command(1 + rank % 2)]).collect();
    Script::of_commands(ranks).with_communicator(vec![2, 0]).with_communicator(vec![1, 3])
}

#[test]
fn two_communicators_do_their_collectives_side_by_side() {
    let gather = |communicator| {
        What::Collective { kind: CollectiveKind::Gather, root: 0, bytes: BYTES, communicator }
            .awaited()
    };
    let time = run_program(halves(gather)).unwrap().0;
    // One message each, through the switch one after the other.
    assert_eq!(time, STEP + reached(WIRE) + switch(WIRE));
}

#[test]
fn ranks_of_a_communicator_count_in_its_own_order() {
    let command = |rank: u32| match rank {
        // Rank 0 of communicator 1 is rank 2 of the world.
        2 => What::Send { to: 1, tag: 3, bytes: 10, communicator: 1 }.awaited(),
        0 => What::Receive { from: 0, tag: 3, communicator: 1 }.awaited(),
        _ => compute(1),
    };
    let ranks = (0..3).map(|rank| vec![command(rank)]).collect();
    run_program(Script::of_commands(ranks).with_communicator(vec![2, 0])).unwrap();
}

#[test]
fn a_file_of_a_smaller_communicator_is_opened_by_its_members_alone() {
    let part = |rank: u64| vec![Extent::new(rank << 10, 1 << 10)];
    let member = |rank| {
        vec![
            (FileOperation::Open.of(0), vec![]),
            (FileOperation::WriteAll.of(0), part(rank)),
            (FileOperation::Close.of(0), vec![]),
        ]
    };
    let ranks = vec![member(0), vec![(compute(1), vec![])], member(1)];
    let script = Script::new(ranks).with_communicator(vec![0, 2]).with_file_in(0, 1);
    let (_, servers) = totals(setup(vec![Box::new(script)], 1));
    assert_eq!(servers.iter().map(|server| server.device.written_bytes).sum::<u64>(), 2 << 10);
}

/// Opens, writes a megabyte per rank collectively, synchronises and closes.
fn checkpoint(ranks: u64) -> Box<Script> {
    let part = |rank: u64| vec![Extent::new(rank << 20, 1 << 20)];
    let lines = |rank| {
        vec![
            (FileOperation::Open.of(0), vec![]),
            (FileOperation::WriteAll.of(0), part(rank)),
            (barrier(), vec![]),
            (FileOperation::Close.of(0), vec![]),
        ]
    };
    Box::new(Script::new((0..ranks).map(lines).collect()))
}

#[test]
fn applications_keep_their_barriers_messages_and_files_apart() {
    let second = WithFiles::new(checkpoint(4), vec![1]);
    let programs = |with_second| -> Vec<Box<dyn iolab_sim::program::Program>> {
        match with_second {
            false => vec![checkpoint(3)],
            true => vec![checkpoint(3), Box::new(second)],
        }
    };
    let mut setup = setup(programs(true), 2);
    setup.files.iter_mut().for_each(|file| file.bytes = 0);
    let mut cluster = build(setup);
    cluster.run().unwrap();
    assert_eq!(cluster.file_bytes().collect::<Vec<_>>(), [3 << 20, 4 << 20]);
}

#[test]
fn an_idle_application_beside_does_not_change_a_run() {
    let alone = build(setup(vec![checkpoint(3)], 1)).run().unwrap();
    let idle = Script::of_commands(vec![vec![barrier()]; 4]);
    let beside = build(setup(vec![checkpoint(3), Box::new(idle)], 1)).run().unwrap();
    assert_eq!(alone, beside);
}
