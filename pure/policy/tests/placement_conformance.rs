//! The family's conformance suite: every placement of the catalogue gives each stripe to one manager that
//! exists, and to the same whenever it is asked. A new member is enrolled by its row.

use iolab_policy::placement::catalog::ROWS;
use iolab_policy::placement::{Place, Rule, find};
use iolab_vocab::{Random, Seed};

const MODULO: &str = "modulo";

fn manager(name: &str, place: Place, stripe: u64) -> Option<u32> {
    find(name).unwrap().rule.manager(&place, stripe)
}

fn places() -> impl Iterator<Item = (Place, u64)> {
    let mut random = Random::new(Seed(7));
    let mut draw = move |limit| random.below(limit) as u32;
    (0..2_000).map(move |_| {
        let [managers, servers, subfiles] = [9, 7, 9].map(|limit| 1 + draw(limit));
        let place = Place { managers, servers, subfiles, start: draw(20) };
        (place, u64::from(draw(u64::from(u32::MAX))) << draw(32))
    })
}

#[test]
fn every_stripe_has_one_manager_that_exists_or_none_has_any() {
    for row in ROWS {
        for (place, stripe) in places() {
            let found = row.rule.manager(&place, stripe);
            assert_eq!(found, row.rule.manager(&place, stripe), "{row:?} {place:?} {stripe}");
            let is_nobody = matches!(row.rule, Rule::Nobody);
            assert_eq!(found.is_none(), is_nobody, "{row:?} {place:?} {stripe}");
            assert!(found.is_none_or(|manager| manager < place.managers), "{row:?} {place:?}");
        }
    }
}

#[test]
fn honest_placements_leave_no_manager_idle_and_none_with_half_as_much_again() {
    let honest = ROWS.iter().filter(|row| !row.is_cruel && !matches!(row.rule, Rule::Nobody));
    let place = Place { managers: 8, servers: 8, subfiles: 8, start: 3 };
    for row in honest {
        let mut counts = [0; 8];
        (0..8_000).for_each(|at| counts[row.rule.manager(&place, at).unwrap() as usize] += 1);
        assert!(counts.iter().all(|count| (800..1_500).contains(count)), "{row:?}: {counts:?}");
    }
}

#[test]
fn modulo_is_the_formula_of_the_paper_and_at_servers_the_same_where_all_are_as_many() {
    for (place, stripe) in places() {
        let expected = (u64::from(place.start) + stripe) % u64::from(place.managers);
        assert_eq!(manager(MODULO, place, stripe), Some(expected as u32), "{place:?} {stripe}");
        let count = place.managers;
        let alike = Place { servers: count, subfiles: count, ..place };
        assert_eq!(manager("at-servers", alike, stripe), manager(MODULO, alike, stripe));
    }
}

#[test]
fn at_servers_a_stripe_is_at_the_neighbour_of_its_server_however_many_there_are() {
    // Stripe 4 of 3 subfiles is in subfile 1, which is on server 3 + 1 of 6; of two managers that is the first.
    let place = Place { managers: 2, servers: 6, subfiles: 3, start: 3 };
    assert_eq!(
        [0, 1, 2, 3, 4].map(|at| manager("at-servers", place, at).unwrap()),
        [1, 0, 1, 1, 0]
    );
}

#[test]
fn one_more_manager_takes_its_share_and_moves_nothing_else() {
    let moved = |name: &str| {
        let of = |managers, stripe| {
            manager(name, Place { managers, servers: 4, subfiles: 4, start: 1 }, stripe).unwrap()
        };
        let moved: Vec<u64> = (0..6_000).filter(|&at| of(5, at) != of(6, at)).collect();
        let to_others = moved.iter().filter(|&&at| of(6, at) != 5).count();
        (moved.len(), to_others)
    };
    let (count, to_others) = moved("rendezvous");
    assert!((800..1_200).contains(&count) && to_others == 0, "{count} of 6000, {to_others}");
    assert!(moved(MODULO).0 > 4_000, "that is what it is for");
}

#[test]
fn strides_that_modulo_brings_to_one_manager_are_spread_by_rendezvous() {
    let place = Place { managers: 4, servers: 4, subfiles: 4, start: 0 };
    let busy = |name| {
        let mut busy: Vec<_> = (0..64).map(|at| manager(name, place, 4 * at)).collect();
        busy.sort_unstable();
        busy.dedup();
        busy.len()
    };
    assert_eq!((busy(MODULO), busy("rendezvous")), (1, 4));
}

#[test]
fn an_unknown_placement_is_named_with_a_way_out() {
    let refusal = find("nearby").unwrap_err();
    assert!(refusal.message.contains("nearby") && refusal.hint.contains(MODULO), "{refusal}");
}
