//! Clocks that are apart, and what is known of them afterwards.

use super::*;
use iolab_vocab::{Random, Seed};

/// What a machine's clock shows: ahead by so much, and faster by so many ppm.
fn shows(right: i64, ahead_ns: i64, ppm: f64) -> i64 {
    right + ahead_ns + (right as f64 * ppm * 1e-6) as i64
}

const SECOND: i64 = 1_000_000_000;

fn read_for(seconds: i64) -> OwnClock {
    OwnClock { span_ns: (0, seconds * SECOND), bound_ns: None }
}

/// Messages both ways that take 20 to 200 us, between a right clock and one that is 1 s ahead and runs
/// 50 ppm fast.
fn exchanged(count: i64, seconds: i64) -> Vec<Precedence> {
    let mut random = Random::new(Seed(7));
    let mut all = Vec::new();
    for number in 0..count {
        let right = number * seconds * SECOND / count;
        let arrives = right + 20_000 + (random.bits() % 180_000) as i64;
        let other = |right: i64| shows(right, SECOND, 50.0);
        all.push(Precedence { before: (0, right), after: (1, other(arrives)) });
        all.push(Precedence { before: (1, other(right)), after: (0, arrives) });
    }
    all
}

#[test]
fn a_clock_that_is_ahead_and_fast_is_found_out_within_the_stated_bound() {
    let precedences = exchanged(200, 10);
    let placed = place(&[read_for(10), read_for(11)], &precedences);
    assert_eq!(placed[0], Placement { bound_ns: Some(0), ..Placement::default() });
    let found = placed[1];
    let bound = found.bound_ns.unwrap() as i64;
    assert!(found.by_precedence && bound < 200_000, "{found:?}");
    for right in [0, SECOND, 5 * SECOND, 10 * SECOND] {
        let off = found.of(shows(right, SECOND, 50.0)) - right;
        assert!(off.abs() <= bound, "{off} ns off at {right}, stated {bound}");
    }
    for it in &precedences {
        let (before, after) =
            (placed[it.before.0].of(it.before.1), placed[it.after.0].of(it.after.1));
        assert!(before <= after + bound, "{it:?}");
    }
    assert!((found.rate * 1e6 + 50.0).abs() < 20.0, "{found:?}");
}

#[test]
fn one_meeting_tells_less_the_farther_away_it_is() {
    let other = |right: i64| shows(right, 300_000, 0.0);
    let meeting = [
        Precedence { before: (0, SECOND), after: (1, other(SECOND + 10_000)) },
        Precedence { before: (1, other(SECOND)), after: (0, SECOND + 10_000) },
    ];
    let bound =
        |seconds| place(&[read_for(seconds), read_for(seconds)], &meeting)[1].bound_ns.unwrap();
    assert!(bound(2) >= 10_000 && bound(2) < bound(3) && bound(3) < bound(20));
    let found = place(&[read_for(2), read_for(2)], &meeting)[1];
    assert!((found.of(other(SECOND)) - SECOND).unsigned_abs() <= 10_000, "{found:?}");
}

#[test]
fn machines_that_never_met_keep_their_wall_clocks() {
    let clock = |bound_ns| OwnClock { bound_ns, ..read_for(1) };
    let placed = place(&[clock(Some(5)), clock(Some(7)), clock(None)], &[]);
    assert_eq!(placed.iter().map(|it| it.of(77)).collect::<Vec<_>>(), [77; 3]);
    let bounds: Vec<_> = placed.iter().map(|it| it.bound_ns).collect();
    assert_eq!(bounds, [Some(0), Some(12), None]);
}

#[test]
fn messages_one_way_move_a_wall_clock_no_farther_than_they_must() {
    // Received 400 ns before it was sent.
    let one_way = [Precedence { before: (0, 1000), after: (1, 600) }];
    let placed = place(&[read_for(1), read_for(1)], &one_way);
    assert_eq!((placed[1].of(600), placed[1].bound_ns), (1000, None));
    let stated = OwnClock { bound_ns: Some(150), ..read_for(1) };
    assert_eq!(place(&[stated, stated], &one_way)[1].bound_ns, None, "it cannot be as it states");
    let stated = OwnClock { bound_ns: Some(250), ..read_for(1) };
    assert_eq!(place(&[stated, stated], &one_way)[1].bound_ns, Some(500));
}

#[test]
fn a_machine_is_placed_by_way_of_one_in_between() {
    let mut all = exchanged(50, 4);
    // The third machine has only met the second; its clock is 2 s behind.
    for number in 0..50 {
        let right = number * 4 * SECOND / 50;
        let second = |right| shows(right, SECOND, 50.0);
        let third = |right| shows(right, -2 * SECOND, -20.0);
        all.push(Precedence { before: (1, second(right)), after: (2, third(right + 30_000)) });
        all.push(Precedence { before: (2, third(right)), after: (1, second(right + 30_000)) });
    }
    let placed = place(&[read_for(4), read_for(5), read_for(4)], &all);
    let bounds: Vec<u64> = placed.iter().map(|it| it.bound_ns.unwrap()).collect();
    assert!(bounds[1] < bounds[2] && bounds[2] < 1_000_000, "{bounds:?}");
    for right in [0, 2 * SECOND, 4 * SECOND] {
        let off = placed[2].of(shows(right, -2 * SECOND, -20.0)) - right;
        assert!(off.unsigned_abs() <= bounds[2], "{off} at {right}, stated {bounds:?}");
    }
}

#[test]
fn clocks_that_no_straight_line_explains_widen_the_bound_until_nothing_comes_before_its_cause() {
    // The second clock was set forward by 5 ms in the middle of the run.
    let other = |right: i64| right + if right > SECOND { 5_000_000 } else { 0 };
    let mut all = Vec::new();
    for number in 0..40 {
        let right = number * SECOND / 20;
        all.push(Precedence { before: (0, right), after: (1, other(right + 20_000)) });
        all.push(Precedence { before: (1, other(right)), after: (0, right + 20_000) });
    }
    let placed = place(&[read_for(2), read_for(2)], &all);
    let bound = placed[1].bound_ns.unwrap() as i64;
    for it in &all {
        let (before, after) =
            (placed[it.before.0].of(it.before.1), placed[it.after.0].of(it.after.1));
        assert!(before <= after + bound, "{it:?}: {before} after {after}, stated {bound}");
    }
}
