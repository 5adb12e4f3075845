//! What each cache layer beyond the published four is for, shown on the evaluation's own patterns.

use iolab_sim::cluster::Order;
use iolab_sim::evaluation::{Case, Conduct, Operation, Run, Test};
use iolab_sim::platform::Platform;
use iolab_vocab::Seed;

fn run(test: Test, cache: &'static str, operation: Operation) -> Run {
    let platform = Platform::preset("classic-hdd").unwrap();
    let conduct = Conduct { order: Order::Documented, tie_seed: Seed(0) };
    Case { test, cache, block_bytes: 51_200, operation }.run(&platform, conduct, 0).unwrap()
}

fn accesses(run: &Run) -> u64 {
    run.servers.iter().map(|server| server.access_count()).sum()
}

fn written(run: &Run) -> u64 {
    run.servers.iter().map(|server| server.written_bytes).sum()
}

#[test]
fn delayed_writes_gather_into_fewer_accesses() {
    let at_once = run(Test::Individual(100), "server-directed", Operation::Write);
    let delayed = run(Test::Individual(100), "server-directed-delayed", Operation::Write);
    assert!(accesses(&delayed) < accesses(&at_once), "{delayed:?} {at_once:?}");
    assert_eq!(written(&delayed), written(&at_once));
}

#[test]
fn delayed_writes_change_nothing_for_reads() {
    let at_once = run(Test::Individual(100), "server-directed", Operation::Read);
    assert_eq!(run(Test::Individual(100), "server-directed-delayed", Operation::Read), at_once);
}
