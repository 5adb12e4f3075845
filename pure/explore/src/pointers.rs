//! What shared pointers may have told: moves that fit together.
//!
//! A move that was answered covers a range of units. Ranges of one setting do not overlap, one that began
//! after the answer of another lies behind it, and what none of them covers was covered by moves whose
//! answer nobody heard. Costs: O(moves²) for each setting, at the end.

use crate::shadow::Tick;
use std::collections::{BTreeMap, BTreeSet};

/// A pointer from one setting to the next: of which open, and how often it was put somewhere before.
pub(crate) type Setting = (usize, u64);

/// A move of a pointer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct MoveNumber(usize);

#[derive(Clone, Copy, Debug)]
struct Move {
    begin: Tick,
    by: u64,
    /// When it was answered, and where the pointer was before.
    answer: Option<(Tick, u64)>,
}

#[derive(Clone, Debug, Default)]
struct Pointer {
    /// Where it was put; ranks that failed to hear of a setting may mean different ones.
    put: BTreeSet<u64>,
    moves: Vec<Move>,
}

/// All pointers of a run.
#[derive(Clone, Debug, Default)]
pub(crate) struct Pointers(BTreeMap<Setting, Pointer>);

impl Pointers {
    /// Somebody moves a pointer that was put to `from`.
    pub(crate) fn begins(&mut self, setting: Setting, from: u64, by: u64, now: Tick) -> MoveNumber {
        let pointer = self.0.entry(setting).or_default();
        pointer.put.insert(from);
        pointer.moves.push(Move { begin: now, by, answer: None });
        MoveNumber(pointer.moves.len() - 1)
    }

    /// A move was answered: the pointer was there before.
    pub(crate) fn answered(&mut self, setting: Setting, number: MoveNumber, at: u64, now: Tick) {
        let pointer = self.0.get_mut(&setting).expect("it has begun");
        pointer.moves[number.0].answer = Some((now, at));
    }

    /// Whether all moves fit together.
    pub(crate) fn judge(&self) -> Result<(), String> {
        for (setting, pointer) in &self.0 {
            pointer.judge().map_err(|why| format!("shared pointer {setting:?}: {why}"))?;
        }
        Ok(())
    }
}

impl Pointer {
    fn judge(&self) -> Result<(), String> {
        let mut ranges = Vec::new();
        for one in &self.moves {
            let Some((_, at)) = one.answer else { continue };
            ranges.push((at, at + one.by));
            for other in &self.moves {
                if let Some((end, before)) = other.answer
                    && end < one.begin
                    && before + other.by > at
                {
                    let by = other.by;
                    return Err(format!("it is at {at} after it went {by} from {before}"));
                }
            }
        }
        ranges.sort_unstable();
        // Ranks that mean different places: whoever came first has decided.
        let first = ranges.first().map_or(0, |range| range.0);
        let start = if self.put.len() == 1 { self.put.first().copied() } else { None };
        let (mut at, mut missing) = (start.unwrap_or(first), 0);
        for (from, to) in ranges {
            missing += from.checked_sub(at).ok_or_else(|| format!("{from} is told twice"))?;
            at = to;
        }
        let unheard = self.moves.iter().filter(|one| one.answer.is_none());
        let unheard: u64 = unheard.map(|one| one.by).sum();
        match missing <= unheard {
            true => Ok(()),
            false => Err(format!("{missing} units were given to nobody, or to {unheard} unheard")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn moved(moves: &[Move]) -> Result<(), String> {
        Pointer { put: BTreeSet::from([5]), moves: moves.to_vec() }.judge()
    }

    fn unheard(begin: Tick, by: u64) -> Move {
        Move { begin, by, answer: None }
    }

    fn heard(begin: Tick, by: u64, end: Tick, at: u64) -> Move {
        Move { begin, by, answer: Some((end, at)) }
    }

    #[test]
    fn moves_cover_everything_once_and_in_the_order_of_time() {
        assert_eq!(moved(&[heard(1, 3, 4, 7), heard(2, 2, 3, 5), heard(5, 0, 6, 10)]), Ok(()));
        assert!(moved(&[heard(1, 3, 4, 5), heard(2, 2, 3, 7)]).is_err(), "two have unit 7");
        assert!(moved(&[heard(1, 2, 2, 8)]).is_err(), "nobody has units 5 to 7");
        assert_eq!(moved(&[heard(1, 2, 2, 8), unheard(1, 3)]), Ok(()));
        assert!(moved(&[heard(1, 2, 2, 7), heard(3, 2, 4, 5)]).is_err(), "it went back");
    }
}
