//! The alignment of two sequences of calls: which call of one run is which of the other.
//!
//! What is equal at both ends goes first. In what is left, calls that each side has once are anchors,
//! as far as they stand in the same order (patience diff); then windows of calls that each side has
//! once. What lies between anchors is aligned in the same way, and where it is short, by Myers'
//! algorithm. Sequences without anything of this are cut into pieces side by side, which may miss
//! pairs but invents none. Memory is linear in the calls; so is time, but for sorting.

use similar::{Algorithm, DiffOp, capture_diff_slices};

/// Up to this many pairs of calls Myers' algorithm is asked.
const EXACT_PAIRS: usize = 1 << 18;
/// Calls of a window that serves as an anchor where no single call does.
const WINDOW: usize = 8;
/// Calls of a piece where there are no anchors.
const PIECE: usize = 512;
/// How often what lies between anchors is searched for anchors.
const DEPTH_MAX: usize = 24;

/// The pairs of positions with equal keys, ascending on both sides.
pub(super) fn align(a: &[u64], b: &[u64]) -> Vec<(usize, usize)> {
    let mut pairs = Vec::with_capacity(a.len().min(b.len()));
    region(a, b, (0, 0), 0, &mut pairs);
    pairs
}

/// Aligns a part of both sides that begins at `at`.
fn region(a: &[u64], b: &[u64], at: (usize, usize), depth: usize, pairs: &mut Vec<(usize, usize)>) {
    let prefix = a.iter().zip(b).take_while(|(a, b)| a == b).count();
    pairs.extend((0..prefix).map(|step| (at.0 + step, at.1 + step)));
    let (a, b, at) = (&a[prefix..], &b[prefix..], (at.0 + prefix, at.1 + prefix));
    let suffix = a.iter().rev().zip(b.iter().rev()).take_while(|(a, b)| a == b).count();
    let (end_a, end_b) = (a.len() - suffix, b.len() - suffix);
    middle(&a[..end_a], &b[..end_b], at, depth, pairs);
    pairs.extend((0..suffix).map(|step| (at.0 + end_a + step, at.1 + end_b + step)));
}

fn middle(a: &[u64], b: &[u64], at: (usize, usize), depth: usize, pairs: &mut Vec<(usize, usize)>) {
    if a.is_empty() || b.is_empty() {
        return;
    }
    if a.len().saturating_mul(b.len()) <= EXACT_PAIRS {
        return exact(a, b, at, pairs);
    }
    let anchors = if depth < DEPTH_MAX { anchors(a, b) } else { Vec::new() };
    if anchors.is_empty() {
        return by_pieces(a, b, at, pairs);
    }
    let mut done = (0, 0);
    for (one, other) in anchors.into_iter().chain([(a.len(), b.len())]) {
        let (from_a, from_b) = (&a[done.0..one], &b[done.1..other]);
        region(from_a, from_b, (at.0 + done.0, at.1 + done.1), depth + 1, pairs);
        done = (one, other);
        if one < a.len() && other < b.len() && a[one] == b[other] {
            pairs.push((at.0 + one, at.1 + other));
            done = (one + 1, other + 1);
        }
    }
}

fn exact(a: &[u64], b: &[u64], at: (usize, usize), pairs: &mut Vec<(usize, usize)>) {
    for operation in capture_diff_slices(Algorithm::Myers, a, b) {
        if let DiffOp::Equal { old_index, new_index, len } = operation {
            pairs.extend((0..len).map(|step| (at.0 + old_index + step, at.1 + new_index + step)));
        }
    }
}

fn by_pieces(a: &[u64], b: &[u64], at: (usize, usize), pairs: &mut Vec<(usize, usize)>) {
    let count = a.len().max(b.len()).div_ceil(PIECE);
    let bound =
        |length: usize, piece: usize| (length as u128 * piece as u128 / count as u128) as usize;
    for piece in 0..count {
        let (from_a, from_b) = (bound(a.len(), piece), bound(b.len(), piece));
        let (to_a, to_b) = (bound(a.len(), piece + 1), bound(b.len(), piece + 1));
        exact(&a[from_a..to_a], &b[from_b..to_b], (at.0 + from_a, at.1 + from_b), pairs);
    }
}

/// What each side has once, as far as it stands in the same order: single calls, else windows.
fn anchors(a: &[u64], b: &[u64]) -> Vec<(usize, usize)> {
    let single = ascending(&common(&once(a), &once(b)));
    if !single.is_empty() || a.len() < WINDOW || b.len() < WINDOW {
        return single;
    }
    let windows = |keys: &[u64]| -> Vec<u64> {
        let mixed = |window: &[u64]| window.iter().fold(0, |sum, &key| super::mixed(sum, key));
        keys.windows(WINDOW).map(mixed).collect()
    };
    ascending(&common(&once(&windows(a)), &once(&windows(b))))
}

/// The keys that stand there once, ascending, each with its position.
fn once(keys: &[u64]) -> Vec<(u64, usize)> {
    let mut sorted: Vec<(u64, usize)> = keys.iter().copied().zip(0..).collect();
    sorted.sort_unstable();
    let runs = sorted.chunk_by(|one, other| one.0 == other.0);
    runs.filter(|run| run.len() == 1).map(|run| run[0]).collect()
}

/// The positions of the keys both have, in the order of the first.
fn common(a: &[(u64, usize)], b: &[(u64, usize)]) -> Vec<(usize, usize)> {
    let mut pairs = Vec::new();
    let mut others = b.iter().peekable();
    for &(key, one) in a {
        while others.next_if(|other| other.0 < key).is_some() {}
        if let Some(&(_, other)) = others.next_if(|other| other.0 == key) {
            pairs.push((one, other));
        }
    }
    pairs.sort_unstable();
    pairs
}

/// The longest part in which the second positions ascend, too (patience sorting).
fn ascending(pairs: &[(usize, usize)]) -> Vec<(usize, usize)> {
    let mut tops: Vec<usize> = Vec::new();
    let mut before: Vec<Option<usize>> = Vec::with_capacity(pairs.len());
    for (index, pair) in pairs.iter().enumerate() {
        let pile = tops.partition_point(|&top| pairs[top].1 < pair.1);
        before.push(pile.checked_sub(1).map(|left| tops[left]));
        match tops.get_mut(pile) {
            Some(top) => *top = index,
            None => tops.push(index),
        }
    }
    let mut chain: Vec<_> = std::iter::successors(tops.last().copied(), |&index| before[index])
        .map(|index| pairs[index])
        .collect();
    chain.reverse();
    chain
}

#[cfg(test)]
mod tests {
    use super::*;
    use iolab_vocab::{Random, Seed};

    fn check(a: &[u64], b: &[u64]) -> usize {
        let pairs = align(a, b);
        assert!(pairs.windows(2).all(|two| two[0].0 < two[1].0 && two[0].1 < two[1].1));
        assert!(pairs.iter().all(|&(one, other)| a[one] == b[other]));
        pairs.len()
    }

    #[test]
    fn what_was_taken_out_or_put_in_is_all_that_stays_alone() {
        let a: Vec<u64> = (0..100_000).collect();
        let mut b = a.clone();
        b.drain(40_000..41_000);
        b.splice(70_000..70_000, 1_000_000..1_000_500);
        assert_eq!(check(&a, &b), 99_000);
        assert_eq!(check(&a, &a), a.len());
        assert_eq!(check(&a, &[]) + check(&[], &a), 0);
    }

    #[test]
    fn sequences_without_a_unique_call_are_aligned_by_their_windows() {
        let mut random = Random::new(Seed(3));
        let a: Vec<u64> = (0..50_000).map(|_| random.below(40)).collect();
        let mut b = a.clone();
        b.drain(20_000..20_100);
        b.insert(5, 99);
        assert!(check(&a, &b) > 49_800, "{}", check(&a, &b));
    }

    #[test]
    fn sequences_with_nothing_to_hold_on_to_end_soon() {
        let a: Vec<u64> = (0..200_000).map(|at| at % 2).collect();
        let b: Vec<u64> = (0..150_000).map(|at| at % 3).collect();
        assert!(check(&a, &b) > 50_000);
        let other: Vec<u64> = (1_000_000..1_200_000).collect();
        assert_eq!(check(&a, &other), 0);
    }
}
