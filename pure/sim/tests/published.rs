//! Every published value of the evaluation of PIOsimHD, held against the simulator.

use iolab_sim::cluster::{Order, ServerTotals};
use iolab_sim::evaluation::{Case, Conduct, Test, mean_and_deviation};
use iolab_sim::platform::Platform;
use iolab_vocab::Seed;

const PUBLISHED: Conduct = Conduct { order: Order::Published, tie_seed: Seed(0) };

fn seconds(case: &Case) -> (f64, Option<f64>) {
    let platform = Platform::preset("classic-hdd").unwrap();
    let run = |seed| case.run(&platform, PUBLISHED, seed).unwrap().seconds;
    mean_and_deviation(&case.seeds().map(run).collect::<Vec<_>>())
}

/// How far a row may be from the published value: to every printed digit, but where the ancestor
/// chose among files with equally many bytes waiting by the addresses of its objects.
fn tolerance(case: &Case) -> f64 {
    match (case.test, case.cache, case.operation.name()) {
        (Test::Database(1), "server-directed", "READ" | "RW") => 3e-3,
        _ => 0.5e-10,
    }
}

fn check(is_wanted: impl Fn(&Case) -> bool) {
    let mut compared = 0;
    for case in Case::all().iter().filter(|case| is_wanted(case)) {
        let Some(published) = case.published() else { continue };
        let (key, (ours, deviation)) = (case.published_key(), seconds(case));
        let off = (ours / published.seconds - 1.0).abs();
        assert!(off <= tolerance(case), "{key}: {ours} instead of {}", published.seconds);
        if let (Some(ours), Some(published)) = (deviation, published.deviation)
            && tolerance(case) < 1e-9
        {
            assert!((ours - published).abs() < 1e-9, "{key}: deviation {ours}");
        }
        compared += 1;
    }
    assert!(compared > 0, "no published row was compared");
}

fn is_slow(case: &Case) -> bool {
    matches!(case.test, Test::Random | Test::Individual(1) | Test::Database(1))
}

#[test]
fn individual_rows_of_several_blocks_equal_the_published_ones_to_every_digit() {
    check(|case| matches!(case.test, Test::Individual(_)) && !is_slow(case));
}

#[test]
fn two_phase_rows_equal_the_published_ones() {
    check(|case| matches!(case.test, Test::Collective(_)));
}

#[test]
fn database_rows_equal_the_published_ones_and_their_deviations() {
    check(|case| matches!(case.test, Test::Database(_)) && !is_slow(case));
}

#[test]
fn single_blocks_of_512_kib_equal_the_published_rows_to_every_digit() {
    check(|case| case.test == Test::Individual(1) && case.block_bytes == 524_288);
}

#[test]
fn writes_of_the_database_equal_the_published_ones_by_losing_what_the_ancestor_lost() {
    let is_meant = |case: &Case| {
        case.test == Test::Database(1)
            && case.cache == "server-directed"
            && case.operation.name() == "WRITE"
    };
    check(is_meant);
    let platform = Platform::preset("classic-hdd").unwrap();
    let case = Case::all().into_iter().find(is_meant).unwrap();
    let written = |order| {
        let conduct = Conduct { order, tie_seed: Seed(0) };
        let run = case.run(&platform, conduct, 0).unwrap();
        run.servers.iter().map(|server| server.device.written_bytes).sum::<u64>()
    };
    // Bytes written over while they wait never reach a device; beyond that only one order loses any.
    assert!(written(Order::Published) < written(Order::Documented));
}

#[test]
#[ignore = "half a billion events: make test-long"]
fn the_long_rows_equal_the_published_ones_to_every_digit() {
    check(is_slow);
}

#[test]
#[ignore = "two hundred million events: make test-long"]
fn blocks_of_512_bytes_lose_no_byte_under_any_cache_layer() {
    let platform = Platform::preset("classic-hdd").unwrap();
    let singles = |case: &Case| case.test == Test::Individual(1);
    for case in Case::with_blocks(&[512]).iter().filter(|case| singles(case)) {
        let run = case.run(&platform, PUBLISHED, 0).unwrap();
        let moved = |bytes: fn(&ServerTotals) -> u64| run.servers.iter().map(bytes).sum::<u64>();
        let bytes =
            [moved(|server| server.device.read_bytes), moved(|server| server.device.written_bytes)];
        let expected = match case.operation.name() {
            "READ" => [1000 << 20, 0],
            _ => [0, 1000 << 20],
        };
        assert_eq!(bytes, expected, "{}", case.published_key());
    }
}

#[test]
fn two_runs_of_a_seed_have_the_same_log_of_events_in_both_orders() {
    let platform = Platform::preset("classic-hdd").unwrap();
    let documented = |tie| Conduct { order: Order::Documented, tie_seed: Seed(tie) };
    let conducts = [PUBLISHED, documented(0), documented(1), documented(2)];
    let is_wanted = |case: &Case| match case.test {
        Test::Collective("interleaved-two-phase") => case.block_bytes == 524_288,
        test => test == Test::Database(10) && case.cache != "write-behind",
    };
    for case in Case::all().iter().filter(|case| is_wanted(case)) {
        let hash = |conduct| case.run(&platform, conduct, 0).unwrap().event_hash;
        let hashes = conducts.map(hash);
        assert_eq!(hashes, conducts.map(hash), "{}", case.published_key());
        for (index, hash) in hashes.iter().enumerate() {
            assert!(
                !hashes[..index].contains(hash),
                "{}: two conducts, one log",
                case.published_key()
            );
        }
    }
}

#[test]
fn the_fastest_published_reads_were_the_luck_of_one_order() {
    let platform = Platform::preset("classic-hdd").unwrap();
    let is_meant = |case: &Case| {
        case.test == Test::Individual(1)
            && (case.cache, case.block_bytes) == ("server-directed", 524_288)
            && case.operation.name() == "READ"
    };
    let case = Case::all().into_iter().find(is_meant).unwrap();
    let seconds = |tie_seed| {
        let conduct = Conduct { tie_seed: Seed(tie_seed), ..PUBLISHED };
        case.run(&platform, conduct, 0).unwrap().seconds
    };
    let mut over_ties: Vec<f64> = (1..=9).map(seconds).collect();
    over_ties.sort_by(f64::total_cmp);
    assert!(seconds(0) < 2.05 && over_ties[0] > 2.1, "{over_ties:?}");
    assert!(over_ties[4] > 4.0, "the median of {over_ties:?}");
}

#[test]
fn a_run_is_the_same_again_and_a_tie_seed_moves_it_without_losing_a_byte() {
    let platform = Platform::preset("classic-hdd").unwrap();
    let of = |case: &Case| case.cache == "aggregation" && case.block_bytes == 524_288;
    let case = Case::all().into_iter().find(|case| of(case) && !is_slow(case)).unwrap();
    let run = |tie| {
        let conduct = Conduct { order: Order::Documented, tie_seed: Seed(tie) };
        case.run(&platform, conduct, 0).unwrap()
    };
    assert_eq!(run(0), run(0));
    let shuffled = run(3);
    let bytes: u64 = shuffled.servers.iter().map(|server| server.device.read_bytes).sum();
    assert_eq!(bytes, 1000 << 20);
    assert_ne!(run(0).seconds, shuffled.seconds);
}
