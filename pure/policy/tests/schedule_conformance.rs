//! The family's conformance suite: every schedule of the catalogue, offered partners in any order, begins
//! each transfer exactly once and leaves none waiting. A new member is enrolled by its row.

use iolab_policy::Machine;
use iolab_policy::schedule::catalog::ROWS;
use iolab_policy::schedule::{Action, Event, Place, checked, find, steps};
use iolab_vocab::{Nanos, Random, Seed};

/// Drives one access to its end: windows of partners open and close at random. Gives who was served.
fn served(name: &str, place: Place, transfers: u32, random: &mut Random) -> Vec<u32> {
    let mut schedule = checked(place, find(name).unwrap().make(place));
    let mut left = vec![transfers; place.partners as usize];
    let mut in_flight = Vec::new();
    let mut out = Vec::new();
    let mut served = Vec::new();
    for partner in 0..place.partners {
        schedule.step(Nanos::ZERO, Event::Offered { partner }, &mut out);
    }
    loop {
        if random.below(2) == 0 || in_flight.is_empty() {
            schedule.step(Nanos::ZERO, Event::Turn, &mut out);
            if let Some(Action::Begin { partner }) = out.pop() {
                left[partner as usize] -= 1;
                served.push(partner);
                in_flight.push(partner);
            } else if in_flight.is_empty() {
                assert!(left.iter().all(|left| *left == 0), "{name}: {left:?}");
                return served;
            }
        } else {
            let at = random.below(in_flight.len() as u64) as usize;
            let partner = in_flight.swap_remove(at);
            if left[partner as usize] > 0 {
                schedule.step(Nanos::ZERO, Event::Offered { partner }, &mut out);
            }
        }
    }
}

#[test]
fn every_schedule_begins_each_transfer_once_whenever_windows_open() {
    for row in ROWS {
        for seed in 0..300 {
            let mut random = Random::new(Seed(seed));
            let partners = 1 + random.below(7) as u32;
            let place = Place { own: random.below(20) as u32, partners, seed: Seed(seed) };
            let mut all = served(row.name, place, 3, &mut random);
            all.sort_unstable();
            let expected: Vec<u32> = (0..partners).flat_map(|one| [one; 3]).collect();
            assert_eq!(all, expected, "{} {place:?}", row.name);
        }
    }
}

#[test]
fn the_published_example_takes_three_steps_in_order_and_two_rotated() {
    let length = |name| steps(find(name).unwrap(), 2, 2, 1);
    assert_eq!((length("in-order"), length("rotate")), (3, 2));
}

#[test]
fn no_schedule_takes_fewer_steps_than_the_rotated_one() {
    for (processes, partners) in [(2, 2), (4, 4), (16, 4), (16, 8), (16, 16), (5, 3)] {
        for transfers in [1, 3] {
            let length = |name| steps(find(name).unwrap(), processes, partners, transfers);
            let least = (processes * transfers).max(partners * transfers);
            assert!(length("rotate") >= least, "no partner carries out two at once");
            for row in ROWS {
                let (own, rotated) = (length(row.name), length("rotate"));
                assert!(own >= rotated, "{}: {own}, rotated {rotated}", row.name);
            }
        }
    }
}

#[test]
fn random_orders_differ_among_processes_and_repeat_with_their_seed() {
    let order = |own, seed| {
        let place = Place { own, partners: 12, seed: Seed(seed) };
        served("random", place, 1, &mut Random::new(Seed(0)))
    };
    assert_eq!(order(1, 7), order(1, 7));
    assert_ne!(order(1, 7), order(2, 7));
    assert_ne!(order(1, 7), order(1, 8));
}

#[test]
fn an_unknown_schedule_is_named_with_a_way_out() {
    let refusal = find("diagonal").unwrap_err();
    assert!(refusal.message.contains("diagonal") && refusal.hint.contains("rotate"), "{refusal}");
}
