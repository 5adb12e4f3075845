//! Sizes of accesses, so that calls and bytes come out as counted.
//!
//! Darshan keeps a histogram of ten bins per direction and the four most frequent sizes of both directions
//! together. The frequent ones are taken as they are, as far as their bins have calls; the other calls of
//! a bin get one size (or two neighbouring ones) between its bounds, all bins equally far up, so that the sum
//! is right. Where histogram and sum contradict each other all calls get the mean.

use iolab_trace::import::counted::{SIZE_BOUNDS, Way};
use iolab_vocab::Direction;

/// Calls of one size.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Group {
    pub(super) bytes: u64,
    pub(super) calls: u64,
}

/// All calls with the same size, or two neighbouring ones.
pub(super) fn even(calls: u64, bytes: u64) -> Vec<Group> {
    if calls == 0 {
        return Vec::new();
    }
    let (size, more) = (bytes / calls, bytes % calls);
    [Group { bytes: size + 1, calls: more }, Group { bytes: size, calls: calls - more }]
        .into_iter()
        .filter(|group| group.calls > 0)
        .collect()
}

/// The sizes of one direction.
pub(super) fn groups(
    way: &Way,
    other: &Way,
    common: &[(u64, u64); 4],
    direction: Direction,
) -> Vec<Group> {
    let counted = way.sizes.iter().fold(0, |sum: u64, it| sum.saturating_add(*it));
    if way.calls == 0 || counted != way.calls || way.bytes == 0 {
        return even(way.calls, way.bytes);
    }
    // Rarer ones are given up first.
    let mut frequent: Vec<Group> = frequent(way, other, common);
    loop {
        let least = [1, 0].into_iter().take(if direction == Direction::Read { 2 } else { 1 });
        let found = least.filter_map(|least| filled(way, &frequent, least)).next();
        match (found, frequent.pop()) {
            (Some(groups), _) => return groups,
            (None, None) => return even(way.calls, way.bytes),
            (None, Some(_)) => {}
        }
    }
}

fn bin(size: u64) -> usize {
    SIZE_BOUNDS.iter().position(|bound| size <= *bound).unwrap_or(SIZE_BOUNDS.len())
}

/// The frequent sizes, as far as they may be of this direction, the most frequent first.
fn frequent(way: &Way, other: &Way, common: &[(u64, u64); 4]) -> Vec<Group> {
    let mut left = way.sizes;
    let mut groups: Vec<Group> = Vec::new();
    let mut common: Vec<(u64, u64)> =
        common.iter().copied().filter(|it| it.1 > 0 && it.0 > 0).collect();
    common.sort_by_key(|(size, count)| (std::cmp::Reverse(*count), *size));
    for (size, count) in common {
        let bin = bin(size);
        let (own, others) = (way.sizes[bin], other.sizes[bin]);
        let share =
            u128::from(count) * u128::from(own) / u128::from(own.saturating_add(others).max(1));
        let calls = (share as u64).min(left[bin]);
        left[bin] -= calls;
        if calls > 0 && groups.iter().all(|group| group.bytes != size) {
            groups.push(Group { bytes: size, calls });
        }
    }
    groups
}

/// Frequent sizes and whatever is left of each bin, if the sum can come out.
fn filled(way: &Way, frequent: &[Group], least: u64) -> Option<Vec<Group>> {
    let mut left = way.sizes;
    let mut bytes = u128::from(way.bytes);
    for group in frequent {
        left[bin(group.bytes)] = left[bin(group.bytes)].checked_sub(group.calls)?;
        bytes = bytes.checked_sub(u128::from(group.bytes) * u128::from(group.calls))?;
    }
    let low = |bin: usize| bin.checked_sub(1).map_or(least, |below| SIZE_BOUNDS[below] + 1);
    let high = |bin: usize| SIZE_BOUNDS.get(bin).copied().unwrap_or(way.bytes).max(low(bin));
    let sum = |size: &dyn Fn(usize) -> u64| {
        (0..10).map(|bin| u128::from(left[bin]) * u128::from(size(bin))).sum::<u128>()
    };
    let (lowest, highest) = (sum(&low), sum(&high));
    if bytes < lowest || bytes > highest {
        return None;
    }
    let range = (highest - lowest).max(1) as f64;
    let up = (bytes - lowest) as f64 / range;
    let mut sizes: [u64; 10] = std::array::from_fn(|bin| {
        let room = (high(bin) - low(bin)) as f64;
        (low(bin) + (room * up) as u64).min(high(bin))
    });
    // Rounded down, but for what floating point numbers do to large ones.
    for bin in (0..10).rev() {
        let over = sum(&|at| sizes[at]).saturating_sub(bytes);
        let each = over.div_ceil(u128::from(left[bin].max(1)));
        if over > 0 && left[bin] > 0 {
            sizes[bin] = sizes[bin].saturating_sub(each as u64).max(low(bin));
        }
    }
    let mut rest = bytes.checked_sub(sum(&|at| sizes[at]))?;
    let mut groups = frequent.to_vec();
    for bin in (0..10).rev().filter(|bin| left[*bin] > 0) {
        let calls = u128::from(left[bin]);
        let each = (rest / calls).min(u128::from(high(bin) - sizes[bin]));
        sizes[bin] += each as u64;
        rest -= each * calls;
        let one_more = if sizes[bin] < high(bin) { rest.min(calls) as u64 } else { 0 };
        rest -= u128::from(one_more);
        groups.push(Group { bytes: sizes[bin] + 1, calls: one_more });
        groups.push(Group { bytes: sizes[bin], calls: left[bin] - one_more });
    }
    groups.retain(|group| group.calls > 0);
    (rest == 0).then_some(groups)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn way(sizes: [u64; 10], bytes: u64) -> Way {
        Way { calls: sizes.iter().sum(), bytes, sizes, ..Way::default() }
    }

    fn sums(groups: &[Group]) -> (u64, u64) {
        let calls = groups.iter().map(|group| group.calls).sum();
        (calls, groups.iter().map(|group| group.calls * group.bytes).sum())
    }

    #[test]
    fn calls_and_bytes_come_out_and_each_bin_keeps_its_calls() {
        let none = Way::default();
        for (sizes, bytes) in [
            ([3, 0, 0, 7, 0, 0, 0, 0, 0, 0], 3 * 50 + 7 * 30_001),
            ([0, 1, 0, 0, 0, 2, 0, 0, 0, 1], 1_000 + 2 * 3_000_000 + (5 << 30)),
            ([1_000_003, 0, 0, 0, 0, 0, 0, 0, 0, 0], 3_000_001),
        ] {
            let way = way(sizes, bytes);
            let groups = groups(&way, &none, &[(0, 0); 4], Direction::Write);
            assert_eq!(sums(&groups), (way.calls, bytes));
            let mut bins = [0; 10];
            groups.iter().for_each(|group| bins[bin(group.bytes)] += group.calls);
            assert_eq!(bins, sizes);
        }
    }

    #[test]
    fn frequent_sizes_are_kept_and_shared_out_between_directions() {
        let reads = way([0, 0, 30, 0, 0, 0, 0, 0, 0, 0], 30 * 4_096);
        let writes = way([0, 0, 10, 5, 0, 0, 0, 0, 0, 0], 10 * 4_096 + 5 * 65_536);
        let common = [(4_096, 40), (65_536, 5), (0, 0), (0, 0)];
        let sizes = |way, other, direction| groups(way, other, &common, direction);
        assert_eq!(sizes(&reads, &writes, Direction::Read), [Group { bytes: 4_096, calls: 30 }]);
        assert_eq!(
            sizes(&writes, &reads, Direction::Write),
            [Group { bytes: 4_096, calls: 10 }, Group { bytes: 65_536, calls: 5 }]
        );
    }

    #[test]
    fn a_histogram_that_contradicts_the_bytes_gives_way_to_the_mean() {
        let none = Way::default();
        let too_much = way([2, 0, 0, 0, 0, 0, 0, 0, 0, 0], 1_001);
        let groups =
            |way: &Way, direction| groups(way, &none, &[(7, 9), (0, 0), (0, 0), (0, 0)], direction);
        assert_eq!(
            groups(&too_much, Direction::Write),
            [Group { bytes: 501, calls: 1 }, Group { bytes: 500, calls: 1 }]
        );
        // Reads at the end of a file bring nothing.
        assert_eq!(sums(&groups(&way([9, 0, 0, 0, 0, 0, 0, 0, 0, 0], 4), Direction::Read)), (9, 4));
    }
}
