//! Answers over the cases of the evaluation: each is the median of a small band, and has to lie
//! inside a band of orders that it was not made of.

use iolab_sim::band::{Band, tie_seeds};
use iolab_sim::cluster::Order;
use iolab_sim::evaluation::{Case, Conduct, Test, mean_and_deviation};
use iolab_sim::platform::Platform;
use iolab_vocab::Seed;
use std::sync::atomic::{AtomicUsize, Ordering};

/// The first tie seed of the bands that answers are held against: far from those an answer uses.
const FIRST_OF_OTHERS: u64 = 1001;

/// Cases of which two kinds of answers lie outside of a band of other orders.
#[derive(Default)]
struct Outside {
    /// The usual answer.
    usual: Vec<String>,
    /// One run in the order as it stands.
    single: Vec<String>,
}

fn band(case: &Case, seeds: &[Seed]) -> Band {
    let platform = Platform::preset("classic-hdd").unwrap();
    let seconds = |&tie_seed: &Seed| {
        let conduct = Conduct { order: Order::Documented, tie_seed };
        let run = |seed| case.run(&platform, conduct, seed).unwrap().seconds;
        mean_and_deviation(&case.seeds().map(run).collect::<Vec<_>>()).0
    };
    Band::of(&seeds.iter().map(seconds).collect::<Vec<_>>()).unwrap()
}

/// Holds answers against bands over so many orders that none of them has seen, on all processors.
fn held_against(orders: u64, is_wanted: impl Fn(&Case) -> bool) -> Outside {
    let others: Vec<Seed> = (FIRST_OF_OTHERS..).take(orders as usize).map(Seed).collect();
    let usual = tie_seeds(Order::Documented, None, None);
    assert!(usual.iter().all(|seed| !others.contains(seed)), "a band of its own seeds holds any");
    let cases: Vec<Case> = Case::all().into_iter().filter(is_wanted).collect();
    let next = AtomicUsize::new(0);
    let work_off = || {
        let mut outside = Outside::default();
        while let Some(case) = cases.get(next.fetch_add(1, Ordering::Relaxed)) {
            let band = band(case, &others);
            for (seeds, list) in
                [(&usual[..], &mut outside.usual), (&[Seed(0)], &mut outside.single)]
            {
                let answer = self::band(case, seeds).median;
                if !band.holds(answer) {
                    list.push(format!("{case:?}: {answer} outside {band:?}"));
                }
            }
        }
        outside
    };
    let mut all = Outside::default();
    std::thread::scope(|scope| {
        let count = std::thread::available_parallelism().map_or(1, usize::from);
        let threads: Vec<_> = (0..count).map(|_| scope.spawn(work_off)).collect();
        for thread in threads {
            let outside = thread.join().unwrap();
            all.usual.extend(outside.usual);
            all.single.extend(outside.single);
        }
    });
    all
}

#[test]
fn answers_lie_inside_bands_of_other_orders_and_single_runs_do_not() {
    let outside = held_against(10, |case| match case.test {
        Test::Individual(1) => case.block_bytes == 524_288 && case.cache == "server-directed",
        Test::Collective(_) => case.block_bytes == 524_288 && case.cache == "none",
        _ => false,
    });
    assert!(outside.usual.is_empty(), "{:#?}", outside.usual);
    assert!(!outside.single.is_empty(), "the luck of the order as it stands is gone?");
}

#[test]
#[ignore = "billions of events: make test-long runs it optimised"]
fn every_answer_lies_inside_its_band_of_twenty_other_orders() {
    let outside = held_against(20, |_| true);
    assert!(outside.usual.is_empty(), "{:#?}", outside.usual);
    assert!(!outside.single.is_empty(), "the luck of the order as it stands is gone?");
}
