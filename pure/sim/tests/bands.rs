//! Answers over the cases of the evaluation: each is the median of a band, so it lies inside it.

use iolab_sim::band::{Band, TIE_SEEDS, tie_seeds};
use iolab_sim::cluster::Order;
use iolab_sim::evaluation::{Case, Conduct, Test, mean_and_deviation};
use iolab_sim::platform::Platform;
use iolab_vocab::Seed;

fn seconds(case: &Case, tie_seed: Seed) -> f64 {
    let platform = Platform::preset("classic-hdd").unwrap();
    let conduct = Conduct { order: Order::Documented, tie_seed };
    let run = |seed| case.run(&platform, conduct, seed).unwrap().seconds;
    mean_and_deviation(&case.seeds().map(run).collect::<Vec<_>>()).0
}

/// Holds the answer of every case against the band over so many orders; tells how many cases of the
/// order as it stands lie outside of that.
fn check(orders: u64, is_wanted: impl Fn(&Case) -> bool) -> usize {
    let mut outliers = 0;
    for case in Case::all().iter().filter(|case| is_wanted(case)) {
        let all = tie_seeds(Order::Documented, Some(orders), None);
        let all: Vec<f64> = all.into_iter().map(|seed| seconds(case, seed)).collect();
        let usual = tie_seeds(Order::Documented, None, None).len();
        let (answer, band) = (Band::of(&all[..usual]).unwrap(), Band::of(&all).unwrap());
        assert!(band.holds(answer.median), "{case:?}: {} outside {band:?}", answer.median);
        outliers += usize::from(!band.holds(seconds(case, Seed(0))));
    }
    outliers
}

#[test]
fn answers_lie_inside_their_bands_where_the_order_as_it_stands_does_not() {
    let outliers = check(2 * TIE_SEEDS, |case| match case.test {
        Test::Individual(1) => case.block_bytes == 524_288 && case.cache == "server-directed",
        Test::Collective(_) => case.block_bytes == 524_288 && case.cache == "none",
        _ => false,
    });
    assert!(outliers >= 1, "the published luck of server-directed reads is gone?");
}

#[test]
#[ignore = "billions of events: make test-long"]
fn every_answer_lies_inside_its_band_over_twenty_orders() {
    check(20, |_| true);
}
