//! Which call of one run is which of the other, and what became of those that have no other.
//!
//! The calls of each thread are aligned. What is left over of a process is paired where a call of the other
//! run is the same in another place (moved). Of what is left then on one file, reads, and writes, of which both
//! runs have as many are changed ones; of which one has fewer that reach over the same bytes, merged or split
//! ones. The rest vanished, or came.

use super::align::align;
use super::calls::{Between, Call, Lane};
use super::cells::{Key, What, of, of_between};
use iolab_trace::Class;
use std::collections::BTreeMap;

/// Calls of a cell by what became of them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize)]
pub struct Fate {
    /// The same call at the same place of the sequence.
    pub matched: u64,
    /// The same call elsewhere.
    pub moved: u64,
    /// A call of other place or size instead.
    pub changed: u64,
    /// Calls of A of which B makes fewer.
    pub merged_from: u64,
    /// What they became.
    pub merged_to: u64,
    /// Calls of A of which B makes more.
    pub split_from: u64,
    /// What they became.
    pub split_to: u64,
    /// Only in A.
    pub vanished: u64,
    /// Only in B.
    pub came: u64,
}

impl Fate {
    pub(super) fn merge(&mut self, other: Fate) {
        self.matched += other.matched;
        self.moved += other.moved;
        self.changed += other.changed;
        self.merged_from += other.merged_from;
        self.merged_to += other.merged_to;
        self.split_from += other.split_from;
        self.split_to += other.split_to;
        self.vanished += other.vanished;
        self.came += other.came;
    }
}

/// The same thread in both runs, as far as both have it, with the pairs of its calls in order.
pub(super) struct Both<'a> {
    pub(super) process: u32,
    pub(super) a: Option<&'a Lane>,
    pub(super) b: Option<&'a Lane>,
    pub(super) pairs: Vec<(usize, usize)>,
}

impl<'a> Both<'a> {
    fn calls(lane: Option<&'a Lane>) -> &'a [Call] {
        lane.map_or(&[], |lane| &lane.calls)
    }
}

/// Joins the threads of two runs and aligns their calls.
pub(super) fn join<'a>(a: &'a [Lane], b: &'a [Lane]) -> Vec<Both<'a>> {
    let mut joined: BTreeMap<(u32, u32), [Option<&Lane>; 2]> = BTreeMap::new();
    for (side, lanes) in [a, b].into_iter().enumerate() {
        for lane in lanes {
            joined.entry((lane.process, lane.thread)).or_default()[side] = Some(lane);
        }
    }
    let keys = |lane: Option<&Lane>| -> Vec<u64> {
        Both::calls(lane).iter().map(|call| call.key).collect()
    };
    let both = |((process, _), [a, b]): ((u32, u32), [Option<&'a Lane>; 2])| Both {
        process,
        a,
        b,
        pairs: align(&keys(a), &keys(b)),
    };
    joined.into_iter().map(both).collect()
}

/// What became of the calls of each cell.
pub(super) fn fates(joined: &[Both]) -> BTreeMap<Key, Fate> {
    let mut fates: BTreeMap<Key, Fate> = BTreeMap::new();
    for process in joined.chunk_by(|one, other| one.process == other.process) {
        let mut left: [Vec<&Call>; 2] = [Vec::new(), Vec::new()];
        for both in process {
            let (a, b) = (Both::calls(both.a), Both::calls(both.b));
            for &(one, _) in &both.pairs {
                fates.entry(of(&a[one])).or_default().matched += a[one].count;
            }
            left[0].extend(unpaired(a, both.pairs.iter().map(|pair| pair.0)));
            left[1].extend(unpaired(b, both.pairs.iter().map(|pair| pair.1)));
        }
        if left.iter().any(|side| !side.is_empty()) {
            judge(left, &mut fates);
        }
    }
    fates
}

fn unpaired(calls: &[Call], paired: impl Iterator<Item = usize>) -> Vec<&Call> {
    let mut paired = paired.peekable();
    let alone = |&at: &usize| paired.next_if_eq(&at).is_none();
    (0..calls.len()).filter(alone).map(|at| &calls[at]).collect()
}

fn judge([mut a, mut b]: [Vec<&Call>; 2], fates: &mut BTreeMap<Key, Fate>) {
    a.sort_by_key(|call| call.key);
    b.sort_by_key(|call| call.key);
    let mut groups: BTreeMap<Key, [Vec<&Call>; 2]> = BTreeMap::new();
    let mut others = b.into_iter().peekable();
    for call in a {
        while let Some(other) = others.next_if(|other| other.key < call.key) {
            groups.entry(of(other)).or_default()[1].push(other);
        }
        match others.next_if(|other| other.key == call.key) {
            Some(_) => fates.entry(of(call)).or_default().moved += call.count,
            None => groups.entry(of(call)).or_default()[0].push(call),
        }
    }
    for other in others {
        groups.entry(of(other)).or_default()[1].push(other);
    }
    for (key, [a, b]) in groups {
        let fate = fates.entry(key).or_default();
        let [from, to] = [&a, &b].map(|calls| calls.iter().map(|call| call.count).sum::<u64>());
        let moves_data = matches!(key.what, What::Calls(Class::Read | Class::Write));
        if from == to {
            fate.changed += from;
        } else if moves_data && from > 0 && to > 0 && reach_alike(&a, &b) {
            match from > to {
                true => {
                    (fate.merged_from, fate.merged_to) =
                        (fate.merged_from + from, fate.merged_to + to)
                }
                false => {
                    (fate.split_from, fate.split_to) = (fate.split_from + from, fate.split_to + to)
                }
            }
        } else {
            (fate.vanished, fate.came) = (fate.vanished + from, fate.came + to);
        }
    }
}

/// Whether these calls and those are about the same bytes: half of what the smaller side reaches over.
fn reach_alike(a: &[&Call], b: &[&Call]) -> bool {
    let (a, b) = (reach(a), reach(b));
    let sizes = [&a, &b].map(|side| side.iter().map(|part| part.1 - part.0).sum::<i64>());
    let mut common = 0;
    let (mut one, mut other) = (0, 0);
    while one < a.len() && other < b.len() {
        common += (a[one].1.min(b[other].1) - a[one].0.max(b[other].0)).max(0);
        match a[one].1 < b[other].1 {
            true => one += 1,
            false => other += 1,
        }
    }
    common > 0 && common >= sizes[0].min(sizes[1]) / 2
}

/// The bytes the calls reach over, as stretches that do not touch. Calls without an offset follow each other.
fn reach(calls: &[&Call]) -> Vec<(i64, i64)> {
    let mut next = 0_i64;
    let mut parts: Vec<(i64, i64)> = Vec::with_capacity(calls.len());
    for call in calls.iter().filter(|call| call.bytes > 0) {
        let begin = if call.offset >= 0 { call.offset } else { next };
        let end = begin.saturating_add(i64::try_from(call.bytes).unwrap_or(i64::MAX));
        next = end;
        parts.push((begin, end));
    }
    parts.sort_unstable();
    let mut merged: Vec<(i64, i64)> = Vec::new();
    for part in parts {
        match merged.last_mut() {
            Some(last) if part.0 <= last.1 => last.1 = last.1.max(part.1),
            _ => merged.push(part),
        }
    }
    merged
}

/// A piece of the difference of two runs: so much more time in B, and where.
pub(super) struct Step {
    pub(super) key: Key,
    pub(super) process: u32,
    /// When in A.
    pub(super) at: u64,
    pub(super) more_ns: i64,
    pub(super) rows: [Option<usize>; 2],
}

/// Hands out the difference of two runs piece by piece. The pieces of a cell add up to its difference.
pub(super) fn steps(joined: &[Both], take: &mut impl FnMut(Step)) {
    for both in joined {
        let process = both.process;
        let (a, b) = (Both::calls(both.a), Both::calls(both.b));
        let (mut next_a, mut next_b, mut at) = (0, 0, a.first().map_or(0, |call| call.start));
        let pairs = both.pairs.iter().map(|&(one, other)| (one, other, true));
        for (one, other, is_pair) in pairs.chain([(a.len(), b.len(), false)]) {
            for call in &a[next_a..one] {
                at = call.start;
                step(process, at, [Some(call), None], take);
            }
            for call in &b[next_b..other] {
                step(process, at, [None, Some(call)], take);
            }
            if is_pair {
                at = a[one].start;
                step(process, at, [Some(&a[one]), Some(&b[other])], take);
            }
            (next_a, next_b) = (one + 1, other + 1);
        }
        let after = |lane: Option<&Lane>| lane.map_or(Between::default(), |lane| lane.after);
        between(process, at, [after(both.a), after(both.b)], [None, None], take);
    }
}

/// A call, or a pair of calls, with the time before it.
fn step(process: u32, at: u64, calls: [Option<&Call>; 2], take: &mut impl FnMut(Step)) {
    let rows = calls.map(|call| call.map(|call| call.row));
    let [one, other] = calls.map(|call| call.map_or(0, |call| call.cost));
    if let Some(call) = calls[0].or(calls[1]) {
        take(Step { key: of(call), process, at, more_ns: less(other, one), rows });
    }
    let before = calls.map(|call| call.map_or(Between::default(), |call| call.before));
    between(process, at, before, rows, take);
}

fn between(
    process: u32,
    at: u64,
    [one, other]: [Between; 2],
    rows: [Option<usize>; 2],
    take: &mut impl FnMut(Step),
) {
    let both = of_between(process, one).into_iter().zip(of_between(process, other));
    for ((key, one), (_, other)) in both {
        take(Step { key, process, at, more_ns: less(other, one), rows });
    }
}

/// The first less the second.
pub(super) fn less(one: u64, other: u64) -> i64 {
    let difference = i128::from(one) - i128::from(other);
    difference.clamp(i64::MIN.into(), i64::MAX.into()) as i64
}
