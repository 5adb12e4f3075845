//! Places the clocks of several machines on one line of time.
//!
//! Wall clocks of a cluster differ by microseconds to seconds, and run apart by up to some 50 ppm.
//! What ranks said to each other says more: a receive does not end before its send begins, a
//! collective call not before the last rank that it needs has come. Each such [`Precedence`] between two
//! machines bounds what one clock is ahead of the other from one side; where there are both sides, all
//! straight lines between them are possible, and the one in the middle of the extreme ones is taken.
//! Machines that never met keep their wall clocks.
//!
//! Promised: what is left unknown is stated for each machine ([`Placement::bound_ns`]), and no precedence
//! is broken by more than the bounds of its two machines together. Cost: a few passes over the precedences,
//! of which [`Precedences`] keeps some hundreds for each channel.

mod corridor;
mod precedence;

pub(crate) use precedence::Precedences;

use corridor::Corridor;
use std::collections::BTreeMap;

/// Something on one machine that cannot be later than something on another; times by their own clocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Precedence {
    /// Machine and time of what came first.
    pub before: (usize, i64),
    /// Machine and time of what came after it.
    pub after: (usize, i64),
}

/// What a machine's clock says of itself.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OwnClock {
    /// From and until when it was read, in nanoseconds.
    pub span_ns: (i64, i64),
    /// How far its wall clock is from the right time at most, if it knows.
    pub bound_ns: Option<u64>,
}

/// Where a clock was put: a time of its own becomes `time + offset_ns + rate × time`.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Placement {
    /// What is added to all its times.
    pub offset_ns: f64,
    /// What is added to each of its nanoseconds.
    pub rate: f64,
    /// How far its times may be from those of the machine they were placed by; `None` where nothing says it.
    pub bound_ns: Option<u64>,
    /// Whether messages or collective calls said it; else it is the wall clock.
    pub by_precedence: bool,
}

impl Placement {
    /// A time of the machine's own on the common line.
    pub fn of(&self, time: i64) -> i64 {
        let moved = self.offset_ns + self.rate * time as f64;
        time.saturating_add(moved.round() as i64)
    }

    /// This machine's placement by another one, where that one is placed itself.
    fn through(self, other: Placement) -> Placement {
        Placement {
            offset_ns: self.offset_ns + other.offset_ns + other.rate * self.offset_ns,
            rate: self.rate + other.rate + self.rate * other.rate,
            bound_ns: self.bound_ns.zip(other.bound_ns).map(|(one, two)| one + two),
            by_precedence: self.by_precedence,
        }
    }
}

/// Places all clocks; the first is the line itself.
pub fn place(clocks: &[OwnClock], precedences: &[Precedence]) -> Vec<Placement> {
    let mut pairs: BTreeMap<(usize, usize), Corridor> = BTreeMap::new();
    for precedence in precedences {
        let ((a, at_a), (b, at_b)) = (precedence.before, precedence.after);
        match a < b {
            true => pairs.entry((a, b)).or_default().at_least(at_b, at_a - at_b),
            false if a > b => pairs.entry((b, a)).or_default().at_most(at_a, at_b - at_a),
            false => {}
        }
    }
    let met: BTreeMap<(usize, usize), Placement> = (pairs.iter())
        .filter_map(|(&(a, b), corridor)| Some(((a, b), corridor.middle(clocks[b].span_ns)?)))
        .collect();
    let mut placed: Vec<Option<Placement>> = vec![None; clocks.len()];
    while let Some(root) = placed.iter().position(Option::is_none) {
        placed[root] = Some(by_wall_clock(root, clocks, &pairs));
        while let Some((next, placement)) = nearest(&met, &placed) {
            placed[next] = Some(placement);
        }
    }
    let mut placed: Vec<Placement> = placed.into_iter().flatten().collect();
    widen(&mut placed, precedences);
    placed
}

/// The machine that is not placed and can be with the least doubt.
fn nearest(
    met: &BTreeMap<(usize, usize), Placement>,
    placed: &[Option<Placement>],
) -> Option<(usize, Placement)> {
    let reached = met.iter().filter_map(|(&(a, b), &by)| match (placed[a], placed[b]) {
        (Some(of_a), None) => Some((b, by.through(of_a))),
        (None, Some(of_b)) => Some((a, inverse(by).through(of_b))),
        _ => None,
    });
    // Of those with a bound; one by the wall clock of a machine without is as far from all.
    reached.min_by_key(|(at, placement)| (placement.bound_ns.unwrap_or(u64::MAX), *at))
}

/// The first clock by the second, where that is placed by the first.
fn inverse(by: Placement) -> Placement {
    let rate = -by.rate / (1.0 + by.rate);
    Placement { offset_ns: -by.offset_ns * (1.0 + rate), rate, ..by }
}

/// A machine that has met no other both ways: its wall clock, moved as far as what is known makes it be.
fn by_wall_clock(
    machine: usize,
    clocks: &[OwnClock],
    pairs: &BTreeMap<(usize, usize), Corridor>,
) -> Placement {
    if machine == 0 {
        return Placement { bound_ns: Some(0), ..Placement::default() };
    }
    let stated = clocks[0].bound_ns.zip(clocks[machine].bound_ns).map(|(one, two)| one + two);
    let moved = pairs.get(&(0, machine)).map_or(0, Corridor::least_move);
    let is_within = |bound: &u64| moved.unsigned_abs() <= *bound;
    Placement {
        offset_ns: moved as f64,
        bound_ns: stated.filter(is_within),
        ..Placement::default()
    }
}

/// Widens bounds until no precedence is broken by more: clocks need not run straight.
fn widen(placed: &mut [Placement], precedences: &[Precedence]) {
    for precedence in precedences {
        let ((a, at_a), (b, at_b)) = (precedence.before, precedence.after);
        let broken = placed[a].of(at_a) - placed[b].of(at_b);
        let (Some(one), Some(two)) = (placed[a].bound_ns, placed[b].bound_ns) else { continue };
        let missing = u64::try_from(broken).unwrap_or(0).saturating_sub(one + two);
        let wider = if b == 0 { a } else { b };
        placed[wider].bound_ns = placed[wider].bound_ns.map(|bound| bound + missing);
    }
}

#[cfg(test)]
mod tests;
