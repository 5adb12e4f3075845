//! Programs that are wrong: the run ends with an error that names rank, command and offender.

mod small_cluster;

use iolab_policy::collective::CollectiveKind;
use iolab_sim::cluster::{Cluster, Reason, RunError};
use iolab_sim::platform::Platform;
use iolab_sim::program::{Command, FileOperation, WORLD, What};
use iolab_sim::queue::Ordered;
use iolab_sim::workload::Script;
use iolab_vocab::{Extent, Seed};
use small_cluster::*;

fn message(ranks: Vec<Vec<Command>>) -> String {
    run(ranks).unwrap_err().message()
}

#[test]
fn a_cycle_of_receives_is_shown_as_one() {
    let ranks = vec![vec![receive(1, 7), send(1, 8, 10)], vec![receive(0, 8), send(0, 7, 10)]];
    assert_eq!(
        message(ranks),
        "deadlock at 0.000001000 s: 2 processes wait\n  \
         rank 0 waits for a message of rank 1 (tag 7) [receive from rank 1 (tag 7)]\n  \
         rank 1 waits for a message of rank 0 (tag 8) [receive from rank 0 (tag 8)]\n\
         cycle: rank 0 -> rank 1 -> rank 0"
    );
}

#[test]
fn large_sends_to_each_other_are_a_cycle() {
    let ranks =
        (0..3).map(|rank| vec![send((rank + 1) % 3, 1, 1 << 20), receive((rank + 2) % 3, 1)]);
    let text = message(ranks.collect());
    let line = "rank 0 waits for rank 1 to receive its message (tag 1) \
                [send 1048576 B to rank 1 (tag 1)]";
    assert!(text.contains(line), "{text}");
    assert!(text.ends_with("cycle: rank 0 -> rank 1 -> rank 2 -> rank 0"), "{text}");
}

#[test]
fn a_barrier_that_somebody_misses_names_who() {
    let ranks = vec![vec![barrier()], vec![compute(1)], vec![barrier()], vec![]];
    assert_eq!(
        message(ranks),
        "deadlock at 0.000001000 s: 2 processes wait\n  \
         rank 0 waits for ranks 1, 3 to come to the barrier [barrier]\n  \
         rank 2 waits for ranks 1, 3 to come to the barrier [barrier]"
    );
}

#[test]
fn different_collective_commands_do_not_meet() {
    let ranks = vec![
        vec![FileOperation::Open.of(0), barrier()],
        vec![barrier(), FileOperation::Open.of(0)],
    ];
    let error = run(ranks).unwrap_err();
    let text = error.message();
    assert!(text.contains("rank 0 waits for rank 1 to come to the opening of file 0"), "{text}");
    assert!(text.contains("rank 1 waits for rank 0 to come to the barrier"), "{text}");
    let RunError::Deadlock(deadlock) = error else { panic!("{text}") };
    assert_eq!(deadlock.cycle, [0, 1]);
    let purpose = "barrier".to_owned();
    assert_eq!(deadlock.waiting[1].reasons, [Reason::Meeting { purpose, missing: vec![0] }]);
}

#[test]
fn a_collective_without_one_of_its_ranks_names_whose_part_is_missing() {
    let gather = collective(CollectiveKind::Gather, 0, 10);
    let text = message(vec![vec![gather], vec![], vec![gather]]);
    assert!(
        text.contains("rank 0 waits for rank 1 to send its part [gather 10 B, root 0]"),
        "{text}"
    );
}

#[test]
fn what_a_background_command_waits_for_is_told_of_its_rank() {
    let begin = What::Receive { from: 1, tag: 3, communicator: WORLD }.started(5);
    let text = message(vec![vec![begin, What::Wait(5).awaited()], vec![compute(1)]]);
    assert!(
        text.contains("rank 0 waits for a message of rank 1 (tag 3) [wait for ticket 5]"),
        "{text}"
    );
}

#[test]
fn a_background_command_nobody_waits_for_must_end_all_the_same() {
    let begin = What::Receive { from: 1, tag: 3, communicator: WORLD }.started(5);
    let text = message(vec![vec![begin], vec![compute(1)]]);
    assert!(text.contains("rank 0 waits for a message of rank 1 (tag 3) [receive from"), "{text}");
}

#[test]
fn a_message_that_nobody_receives_is_an_error() {
    let text = message(vec![vec![send(1, 4, 10), send(1, 5, 10)], vec![receive(0, 5)]]);
    assert_eq!(
        text,
        "application 0, rank 1: ended without receiving a message of rank 0 (tag 4); 1 in all were \
         not received"
    );
}

/// Rank 1 of two does this.
fn refused(command: Command) -> String {
    let ranks = vec![vec![], vec![command]];
    match run(ranks).unwrap_err() {
        error @ RunError::Refused(_) => error.to_string(),
        other => panic!("{other}"),
    }
}

#[test]
fn what_does_not_exist_is_named_with_rank_and_command() {
    let cases = [
        (send(2, 7, 10), "send 10 B to rank 2 (tag 7): communicator 0 has no rank 2, only 2 ranks"),
        (receive(9, 7), "receive from rank 9 (tag 7): communicator 0 has no rank 9"),
        (FileOperation::Read.of(3), "read of file 3: there is no file 3 among 1"),
        (What::Wait(8).awaited(), "wait for ticket 8: nothing was begun with ticket 8"),
        (What::barrier(1).awaited(), "there is no communicator 1 among 1"),
        (collective(CollectiveKind::File, 0, 1), "it names no file"),
        (barrier().started(1), "start-barrier, ticket 1: it cannot go on in the background"),
        (FileOperation::Sync.of(0).started(1), "it cannot go on in the background"),
        (collective(CollectiveKind::Reduce, 4, 1), "has no rank 4"),
        (What::Compute { instructions: -1.0 }.awaited(), "-1 is no number of instructions"),
        (What::Compute { instructions: f64::NAN }.awaited(), "NaN is no number of instructions"),
    ];
    for (command, expected) in cases {
        let text = refused(command);
        assert!(text.starts_with("application 0, rank 1: "), "{text}");
        assert!(text.contains(expected) && text.contains("\nhint: "), "{text}");
    }
}

#[test]
fn a_ticket_in_use_is_refused() {
    let begin = (FileOperation::Read.of(0).started(3), vec![Extent::new(0, 10)]);
    let text = run_lines(vec![begin.clone(), begin]).unwrap_err().to_string();
    assert!(text.contains("ticket 3 is in use"), "{text}");
}

#[test]
fn an_alltoall_with_too_few_lengths_is_refused() {
    let line = (What::Alltoallv { communicator: WORLD }.awaited(), vec![]);
    let text = run_lines(vec![line]).unwrap_err().to_string();
    assert!(text.contains("rank 0: alltoallv: 0 lengths for 1 ranks"), "{text}");
}

#[test]
fn bytes_of_a_file_without_a_server_are_refused() {
    let text = "switches = [{ name = 's' }]\nnodes = [{ name = 'c', clients = 1 }]";
    let script = Script::new(vec![vec![(FileOperation::Read.of(0), vec![Extent::new(0, 1)])]]);
    let setup = setup(vec![Box::new(script)], 1);
    let queue = Ordered::new(Seed(0));
    let mut cluster = Cluster::build(&Platform::parse(text).unwrap(), setup, queue).unwrap();
    let text = cluster.run().unwrap_err().to_string();
    assert!(text.contains("rank 0: read of file 0: the platform has no server"), "{text}");
}

#[test]
fn an_extent_beyond_all_offsets_is_refused() {
    let text = run_lines(vec![(FileOperation::Write.of(0), vec![Extent::new(u64::MAX - 5, 10)])]);
    assert!(text.unwrap_err().to_string().contains("end beyond any file"));
}

#[test]
fn who_is_no_member_cannot_take_part() {
    let ranks = vec![vec![], vec![What::barrier(1).awaited()]];
    let script = Script::of_commands(ranks).with_communicator(vec![0]);
    let text = run_program(script).unwrap_err().to_string();
    assert!(text.contains("rank 1: barrier in communicator 1: the rank is no member"), "{text}");
}

/// A write of an exbibyte would be cut into stripes for hours before anything happened.
#[test]
fn an_access_that_is_cut_into_too_many_stripes_is_refused() {
    let access = |operation: FileOperation| {
        run_lines(vec![(operation.of(0), vec![Extent::new(0, 1 << 60)])])
    };
    let text = access(FileOperation::Write).unwrap_err().to_string();
    assert!(text.contains("over 17592186044416 stripes at once, of 268435456"), "{text}");
    // A read to the end of a short file is none.
    access(FileOperation::Read).unwrap();
}

#[test]
fn a_communicator_of_unknown_or_doubled_ranks_is_refused() {
    for (ranks, expected) in [
        (vec![0, 2], "communicator 1 has rank 2, which the application does not have"),
        (vec![1, 1], "communicator 1 has rank 1, twice"),
    ] {
        let script = Script::of_commands(vec![vec![], vec![]]).with_communicator(ranks);
        let setup = setup(vec![Box::new(script)], 0);
        let queue = iolab_sim::queue::Ordered::new(iolab_vocab::Seed(0));
        let error = iolab_sim::cluster::Cluster::build(&classic(), setup, queue).err().unwrap();
        assert!(error.message.contains(expected), "{error}");
    }
}

#[test]
fn an_error_ends_the_run_for_all() {
    let endless = vec![compute(1); 1_000_000];
    let mut cluster = build(setup(
        vec![Box::new(Script::of_commands(vec![endless, vec![What::Wait(1).awaited()]]))],
        0,
    ));
    cluster.run().unwrap_err();
    assert!(cluster.event_count() < 10);
}

#[test]
fn a_deadlock_of_ten_thousand_ranks_is_told_in_a_few_lines() {
    let platform = Platform::parse(
        "switches = [{ name = 'switch' }]
         nodes = [{ name = 'client', count = 100, clients = 100 }]",
    )
    .unwrap();
    let mut ranks = vec![vec![barrier()]; 10_000];
    ranks[77] = vec![receive(78, 1)];
    ranks[78].insert(0, receive(77, 2));
    let setup = setup(vec![Box::new(Script::of_commands(ranks))], 0);
    let mut cluster = Cluster::build(&platform, setup, Ordered::new(Seed(0))).unwrap();
    let RunError::Deadlock(deadlock) = cluster.run().unwrap_err() else { panic!() };
    assert_eq!((deadlock.waiting.len(), &deadlock.cycle[..]), (10_000, &[77, 78][..]));
    let text = deadlock.to_string();
    assert!(text.contains("rank 0 waits for ranks 77, 78 to come to the barrier"), "{text}");
    assert!(text.contains("and 9984 more\ncycle: rank 77 -> rank 78 -> rank 77"), "{text}");
    assert_eq!(text.lines().count(), 19);
}
