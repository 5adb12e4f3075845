//! The most frequent values of a stream in constant memory.
//!
//! Misra and Gries 1982: of `N` slots, a value that makes up more than 1/(N+1) of the stream is
//! certain to be kept, and its count is too low by at most the number of decrements. A regular
//! access pattern has one to three values, so in practice the counts are exact.

/// Up to `N` candidates with their counts.
#[derive(Clone, Debug)]
pub(crate) struct Frequent<T, const N: usize> {
    slots: [Option<(T, u64)>; N],
    total: u64,
}

impl<T: Copy + PartialEq, const N: usize> Default for Frequent<T, N> {
    fn default() -> Self {
        Frequent { slots: [None; N], total: 0 }
    }
}

impl<T: Copy + PartialEq, const N: usize> Frequent<T, N> {
    pub(crate) fn add(&mut self, value: T) {
        self.total += 1;
        let mut empty = None;
        for (index, slot) in self.slots.iter_mut().enumerate() {
            match slot {
                Some((known, count)) if *known == value => {
                    *count += 1;
                    return;
                }
                None if empty.is_none() => empty = Some(index),
                _ => {}
            }
        }
        match empty {
            Some(index) => self.slots[index] = Some((value, 1)),
            None => self.decrement(),
        }
    }

    fn decrement(&mut self) {
        for slot in &mut self.slots {
            *slot = slot.and_then(|(value, count)| (count > 1).then_some((value, count - 1)));
        }
    }

    /// The most frequent value and its share of all, if anything was added.
    pub(crate) fn top(&self) -> Option<(T, f64)> {
        let slots = self.slots.iter().flatten();
        let (value, count) = slots.max_by_key(|(_, count)| *count)?;
        Some((*value, *count as f64 / self.total as f64))
    }

    /// How many were added.
    pub(crate) fn total(&self) -> u64 {
        self.total
    }

    /// Takes over what `other` has seen.
    pub(crate) fn merge(&mut self, other: &Self) {
        for &(value, count) in other.slots.iter().flatten() {
            self.add_many(value, count);
        }
    }

    /// Adds a value so many times; in the place of rarer ones when there is no room.
    pub(crate) fn add_many(&mut self, value: T, count: u64) {
        self.total = self.total.saturating_add(count);
        let known = self.slots.iter_mut().flatten().find(|slot| slot.0 == value);
        if let Some(slot) = known {
            slot.1 = slot.1.saturating_add(count);
        } else if let Some(slot) = self.slots.iter_mut().find(|slot| slot.is_none()) {
            *slot = Some((value, count));
        } else if let Some(smallest) =
            self.slots.iter_mut().flatten().min_by_key(|slot| slot.1).filter(|s| s.1 < count)
        {
            *smallest = (value, count);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_value_of_the_majority_survives_a_crowd_of_others() {
        let mut frequent = Frequent::<u64, 3>::default();
        for index in 0..1000 {
            frequent.add(if index % 3 == 0 { index } else { 7 });
        }
        let (value, share) = frequent.top().unwrap();
        assert_eq!(value, 7);
        assert!(share > 0.3 && share <= 0.667, "{share}");
    }

    #[test]
    fn two_halves_merge_into_the_whole() {
        let mut left = Frequent::<u64, 2>::default();
        let mut right = left.clone();
        (0..10).for_each(|_| left.add(1));
        (0..30).for_each(|_| right.add(2));
        left.merge(&right);
        assert_eq!(left.top(), Some((2, 0.75)));
    }
}
