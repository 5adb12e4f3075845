//! What each cache layer beyond the published four is for.

mod small_cluster;

use iolab_sim::cluster::{Cluster, Order, ServerTotals};
use iolab_sim::evaluation::{Case, Conduct, Operation, Run, Test};
use iolab_sim::platform::{Platform, Size};
use iolab_sim::program::{FileOperation, Program, What};
use iolab_sim::queue::Ordered;
use iolab_sim::workload::{Line, Script};
use iolab_vocab::{Extent, Nanos, Seed};
use small_cluster::{classic, setup};

fn run(test: Test, cache: &'static str, operation: Operation) -> Run {
    let platform = Platform::preset("classic-hdd").unwrap();
    let conduct = Conduct { order: Order::Documented, tie_seed: Seed(0) };
    Case { test, cache, block_bytes: 51_200, operation }.run(&platform, conduct, 0).unwrap()
}

fn accesses(run: &Run) -> u64 {
    run.servers.iter().map(|server| server.device.access_count()).sum()
}

fn written(run: &Run) -> u64 {
    run.servers.iter().map(|server| server.device.written_bytes).sum()
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

/// Applications on the classic cluster with so much memory in each server; when each has ended,
/// and what the servers did.
fn run_scripts(
    cache: &str,
    memory_bytes: u64,
    scripts: Vec<Vec<Vec<Line>>>,
) -> (Vec<Nanos>, Vec<ServerTotals>) {
    let mut platform = classic();
    platform.nodes[1].memory_bytes = Size(memory_bytes);
    let programs =
        scripts.into_iter().map(|ranks| Box::new(Script::new(ranks)) as Box<dyn Program>);
    let mut setup = setup(programs.collect(), 2);
    setup.cache = Some(cache.to_owned());
    let mut cluster = Cluster::build(&platform, setup, Ordered::new(Seed(0))).unwrap();
    cluster.run().unwrap();
    let ends = cluster.applications().map(|(_, end)| end).collect();
    (ends, cluster.server_totals().collect())
}

fn on_first_server(row: u64) -> u64 {
    row * 10 * 65_536
}

#[test]
fn sieving_reads_over_holes_where_a_seek_costs_more() {
    let pieces = || (0..400).map(|index| Extent::new(index * 131_072, 2048)).collect();
    let read = || vec![vec![vec![(FileOperation::Read.of(0), pieces())]]];
    let (seeking, _) = run_scripts("server-directed", 1000 << 20, read());
    let (sieving, servers) = run_scripts("data-sieving", 1000 << 20, read());
    assert!(sieving[0].get() * 3 < seeking[0].get(), "{sieving:?} {seeking:?}");
    let read_bytes: u64 = servers.iter().map(|server| server.device.read_bytes).sum();
    assert!(read_bytes > 400 * 2048, "the holes were read too");
}

#[test]
fn the_elevator_makes_scattered_writes_near_ones() {
    let piece = |index: u64| Extent::new(on_first_server(index * 911 % 1600), 65_536);
    let write = || {
        vec![vec![vec![(FileOperation::Write.of(0), (0..400).map(piece).collect()), sync_of(0)]]]
    };
    let (in_order, there) = run_scripts("write-behind", 1000 << 20, write());
    let (upward, here) = run_scripts("elevator", 1000 << 20, write());
    assert!(upward[0].get() * 3 < in_order[0].get() * 2, "{upward:?} {in_order:?}");
    assert!(
        here[0].device.far_count * 10 < there[0].device.far_count,
        "{:?} {:?}",
        here[0],
        there[0]
    );
    assert_eq!(here[0].device.written_bytes, there[0].device.written_bytes);
}

fn sync_of(file: u32) -> Line {
    (FileOperation::Sync.of(file), Vec::new())
}

/// One application keeps every server's queue filled with reads, the other writes once and wants
/// to know it safe.
#[test]
fn ageing_lets_a_write_through_a_stream_of_reads() {
    let read = |index: u64| {
        (FileOperation::Read.of(0), vec![Extent::new(on_first_server(index * 7 % 90), 65_536)])
    };
    let reader = || (0..60).map(read).collect::<Vec<Line>>();
    let writer = || {
        vec![
            (FileOperation::Write.of(1), vec![Extent::new(0, 65_536)]),
            (FileOperation::Sync.of(1), Vec::new()),
        ]
    };
    let scripts = || vec![(0..8).map(|_| reader()).collect(), vec![writer()]];
    let (starved, _) = run_scripts("server-directed", 1000 << 20, scripts());
    let (served, _) = run_scripts("server-directed-ageing", 1000 << 20, scripts());
    assert!(
        served[1].get() * 3 < starved[1].get(),
        "the writer ends at {served:?}, without at {starved:?}"
    );
    assert!(served[0].get() < starved[0].get() * 11 / 10, "the readers pay little");
}

/// Memory of 2 MiB that writers fill again as soon as anything is free; a read needs a half.
#[test]
fn ageing_lets_a_read_have_memory_that_writes_would_take() {
    let write = |rank: u64, index: u64| {
        let place = on_first_server(rank * 40 + index * 3 % 40);
        (FileOperation::Write.of(0), vec![Extent::new(place, 65_536)])
    };
    let writers = || (0..8).map(|rank| (0..40).map(|index| write(rank, index)).collect());
    let wide = (0..16).map(|row| Extent::new(on_first_server(row), 65_536)).collect::<Vec<_>>();
    let later = (What::Compute { instructions: 300_000.0 }.awaited(), Vec::new());
    let reader = || vec![vec![later.clone(), (FileOperation::Read.of(1), wide.clone())]];
    let scripts = || vec![writers().collect(), reader()];
    let memory_bytes = (1 << 20) + 200_000;
    let (starved, _) = run_scripts("server-directed", memory_bytes, scripts());
    let (served, _) = run_scripts("server-directed-ageing", memory_bytes, scripts());
    assert!(
        served[1].get() * 2 < starved[1].get(),
        "the reader ends at {served:?}, without at {starved:?}"
    );
}

#[test]
fn a_read_cache_reads_once_what_many_want() {
    let read = || vec![(FileOperation::Read.of(0), vec![Extent::new(0, 16 << 20)])];
    let turns = |rank: u64| {
        let compute =
            (What::Compute { instructions: 2e6 * rank as f64 + 1.0 }.awaited(), Vec::new());
        [vec![compute], read()].concat()
    };
    let scripts = || vec![(0..5).map(turns).collect()];
    let read_bytes = |servers: &[ServerTotals]| -> u64 {
        servers.iter().map(|server| server.device.read_bytes).sum()
    };
    let (without, all) = run_scripts("aggregation", 1000 << 20, scripts());
    let (with, once) = run_scripts("read-cache", 1000 << 20, scripts());
    assert_eq!((read_bytes(&all), read_bytes(&once)), (5 * (16 << 20), 16 << 20));
    assert!(with[0] < without[0]);
    let found = |servers: &[ServerTotals]| -> u64 {
        servers.iter().map(|server| server.memory.found_bytes).sum()
    };
    assert_eq!((found(&all), found(&once)), (0, 4 * (16 << 20)));
    let kept: u64 = once.iter().map(|server| server.memory.kept_bytes_max).sum();
    assert_eq!(kept, 16 << 20);
}

/// With memory for an eighth of the data, in circles, least recently used is always too late.
#[test]
fn a_read_cache_that_is_too_small_changes_nothing_but_its_own_memory() {
    let read = (FileOperation::Read.of(0), vec![Extent::new(0, 64 << 20)]);
    let scripts = || vec![vec![vec![read.clone(), read.clone()]]];
    let (_, servers) = run_scripts("read-cache", 2 << 20, scripts());
    let read_bytes: u64 = servers.iter().map(|server| server.device.read_bytes).sum();
    assert_eq!(read_bytes, 2 * (64 << 20));
    for server in servers {
        let (found, kept) = (server.memory.found_bytes, server.memory.kept_bytes_max);
        assert!(found == 0 && (1..=2 << 20).contains(&kept), "{found} {kept}");
    }
}

#[test]
fn the_cruel_layer_loses_nothing() {
    let cruel = run(Test::Individual(100), "cruel", Operation::Write);
    assert!(written(&cruel) >= 1000 << 20);
    let read = run(Test::Individual(100), "cruel", Operation::Read);
    assert_eq!(read.servers.iter().map(|server| server.device.read_bytes).sum::<u64>(), 1000 << 20);
}

/// Each of ten ranks writes its own tenth of the file, and a server's memory holds a part of one.
#[test]
fn turns_keep_together_in_memory_what_belongs_together() {
    let part = |rank: u64| {
        vec![(FileOperation::Write.of(0), vec![Extent::new(rank * (6 << 20), 6 << 20)])]
    };
    let scripts = || vec![(0..10).map(part).collect()];
    let memory_bytes = 1 << 20;
    let (whoever, before) = run_scripts("aggregation", memory_bytes, scripts());
    let (in_turn, after) = run_scripts("server-ordered", memory_bytes, scripts());
    let seeks = |servers: &[ServerTotals]| -> u64 {
        servers.iter().map(|server| server.device.near_count + server.device.far_count).sum()
    };
    let bytes = |servers: &[ServerTotals]| -> u64 {
        servers.iter().map(|server| server.device.written_bytes).sum()
    };
    assert_eq!((bytes(&before), bytes(&after)), (60 << 20, 60 << 20));
    assert!(seeks(&after) * 2 < seeks(&before), "{} {}", seeks(&after), seeks(&before));
    assert!(in_turn[0] < whoever[0], "{in_turn:?} {whoever:?}");
}

#[test]
fn turns_lose_nothing_of_the_evaluation() {
    for test in [Test::Individual(100), Test::Collective("two-phase"), Test::Random] {
        let ordered = run(test, "server-ordered", Operation::Write);
        assert_eq!(written(&ordered), written(&run(test, "aggregation", Operation::Write)));
    }
}
