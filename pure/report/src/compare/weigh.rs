//! Which differences are named.
//!
//! A cell stands alone where some run spends a noteworthy time in it; the others are folded by what they are.
//! Its difference is named where it is noteworthy and, with several runs on both sides, where chance does not
//! explain it (`evidence`); with too few runs for that, where every run of one side takes longer than every run
//! of the other, and it says that this was only seen. Numbers of calls vary by nothing but the program: where the runs
//! of each side agree on a number and the sides differ by a noteworthy share of all calls, that is named, too.

use super::calls::{Numbering, span};
use super::cells::{Amount, Cells, FOLDED, Key, NOWHERE, What};
use super::locate::{Place, locate};
use super::matching::{Both, Fate, less};
use super::{Difference, Sureness, say};
use crate::evidence::{self, Block, Evidence};
use crate::statistics::{Interval, median};
use iolab_trace::Trace;
use std::collections::{BTreeMap, BTreeSet};

/// Of all calls, what a difference in their number has to come to before it is named.
const NOTEWORTHY_CALLS: f64 = 0.01;
/// With too few runs to test, how far the sides have to be apart.
const NOTEWORTHY_RATIO: f64 = 1.03;

/// What all differences are looked for in.
pub(super) struct Scene<'a> {
    pub(super) a: &'a Trace,
    pub(super) b: &'a Trace,
    /// Of `b`, in terms of `a`.
    pub(super) numbering: &'a Numbering,
    pub(super) joined: &'a [Both<'a>],
    pub(super) fates: &'a BTreeMap<Key, Fate>,
    pub(super) noteworthy_ns: u64,
}

/// What was found.
pub(super) struct Weighed {
    pub(super) differences: Vec<Difference>,
    pub(super) waiting: Vec<Difference>,
    pub(super) lesser: usize,
    /// There are several runs, but too few of them to test some difference.
    pub(super) too_few: bool,
}

impl Scene<'_> {
    /// What to call a process.
    pub(super) fn process_name(&self, process: u32) -> String {
        let name = self.entry(process).map(|entry| match entry.rank {
            rank @ 0.. => format!("rank {rank}"),
            _ if entry.name.is_empty() => format!("process {process}"),
            _ => entry.name.clone(),
        });
        name.unwrap_or_else(|| format!("process {process}"))
    }

    /// Its rank, -1 for none.
    pub(super) fn rank(&self, process: u32) -> i32 {
        self.entry(process).map_or(-1, |entry| entry.rank)
    }

    fn entry(&self, process: u32) -> Option<&iolab_trace::ProcessEntry> {
        let place = |numbers: &[u32]| numbers.iter().position(|&number| number == process);
        match self.a.header.processes.get(process as usize) {
            Some(entry) => Some(entry),
            None => self.b.header.processes.get(place(&self.numbering.processes)?),
        }
    }

    /// The processes whose time outside of calls is one: those of one program that are no ranks. Each has
    /// the number of their first.
    fn groups(&self) -> BTreeMap<u32, u32> {
        let mut first: BTreeMap<String, u32> = BTreeMap::new();
        let processes = self.joined.iter().map(|both| both.process);
        let named = processes.filter(|&process| self.rank(process) < 0);
        let group =
            |process| (process, *first.entry(self.process_name(process)).or_insert(process));
        named.map(group).collect()
    }

    /// All ranks as one, where their time outside of calls differs alike: to the same side, and none more than
    /// twice as much as another.
    fn ranks_alike(&self, sides: &[Vec<Cells>; 2]) -> BTreeMap<u32, u32> {
        let processes = self.joined.iter().map(|both| both.process);
        let ranks: BTreeSet<u32> = processes.filter(|&process| self.rank(process) >= 0).collect();
        let outside = |side: usize, process: u32| {
            let key = Key { what: What::Outside, place: process };
            sides[side][0].get(&key).map_or(0, |amount| amount.ns)
        };
        let differences: Vec<i64> =
            ranks.iter().map(|&rank| less(outside(1, rank), outside(0, rank))).collect();
        let sizes = differences.iter().map(|one| one.unsigned_abs());
        let (least, most) = (sizes.clone().min().unwrap_or(0), sizes.max().unwrap_or(0));
        let one_sided = differences.windows(2).all(|two| two[0].signum() == two[1].signum());
        let first = ranks.first().copied().unwrap_or(0);
        match ranks.len() > 2 && one_sided && most / 2 <= least {
            true => ranks.into_iter().map(|rank| (rank, first)).collect(),
            false => BTreeMap::new(),
        }
    }

    /// What to call a process, or all that are one with it.
    fn group_name(&self, process: u32, groups: &BTreeMap<u32, u32>) -> String {
        let name = self.process_name(process);
        match groups.values().filter(|&&first| first == process).count() {
            0 | 1 => name,
            count if self.rank(process) >= 0 => format!("{count} ranks"),
            count => format!("{name} ({count} processes)"),
        }
    }

    /// The path of a file, that of A where both have it.
    pub(super) fn path(&self, file: u32) -> &str {
        let place = |numbers: &[u32]| numbers.iter().position(|&number| number == file);
        let entry = match self.a.header.files.get(file as usize) {
            Some(entry) => Some(entry),
            None => place(&self.numbering.files).and_then(|at| self.b.header.files.get(at)),
        };
        entry.map_or("", |entry| entry.path.as_str())
    }
}

/// A cell in all runs of both sides.
struct Column {
    key: Key,
    sides: [Vec<Amount>; 2],
}

impl Column {
    fn times(&self, side: usize) -> Vec<f64> {
        self.sides[side].iter().map(|amount| amount.ns as f64).collect()
    }

    fn difference_ns(&self) -> i64 {
        let [a, b] = [0, 1].map(|side| median(&self.times(side)) as u64);
        less(b, a)
    }

    /// The number of calls that all runs of a side agree on.
    fn agreed(&self, side: usize) -> Option<u64> {
        let calls: Vec<u64> = self.sides[side].iter().map(|amount| amount.calls).collect();
        calls.windows(2).all(|two| two[0] == two[1]).then(|| calls[0])
    }

    fn block(&self) -> Block {
        // A time of nothing would have no ratio.
        let times = |side: usize| -> Vec<f64> {
            self.times(side).into_iter().map(|ns| ns.max(1.0)).collect()
        };
        Block::of_values(&times(1), &times(0))
    }
}

/// Looks at every cell; asks `evidence` for each that stands alone.
pub(super) fn weigh(scene: &Scene, sides: &[Vec<Cells>; 2], evidence: &Evidence) -> Weighed {
    let mut groups = scene.groups();
    groups.extend(scene.ranks_alike(sides));
    let grouped = |key: Key| match key.what {
        What::Outside => Key { place: groups.get(&key.place).copied().unwrap_or(key.place), ..key },
        _ => key,
    };
    let columns = columns(sides, scene.noteworthy_ns, grouped);
    let calls_of =
        |side: usize| columns.iter().map(|column| column.sides[side][0].calls).sum::<u64>();
    let calls_noteworthy = calls_of(0).max(calls_of(1)) as f64 * NOTEWORTHY_CALLS;
    let (mut named, mut lesser, mut too_few) = (Vec::new(), 0, false);
    for column in &columns {
        let (time, enough) = time(column, scene.noteworthy_ns, evidence);
        too_few |= !enough;
        let agreed = column.agreed(0).zip(column.agreed(1)).filter(|(a, b)| a != b);
        let calls = agreed.is_some_and(|(a, b)| a.abs_diff(b) as f64 >= calls_noteworthy);
        match time {
            Some(time) => named.push((column, time, agreed.is_some())),
            None if calls => named.push((column, Sureness::CallsOnly, true)),
            None => lesser += usize::from(column.difference_ns() != 0 || agreed.is_some()),
        }
    }
    named.sort_by_key(|(column, ..)| std::cmp::Reverse(column.difference_ns().unsigned_abs()));
    let keys: Vec<Key> = named.iter().map(|(column, ..)| column.key).collect();
    let stands = |key: Key| columns.binary_search_by_key(&key, |column| column.key).is_ok();
    let cell = |key: Key| {
        let key = grouped(key);
        let key = if stands(key) { key } else { Key { place: FOLDED, ..key } };
        keys.contains(&key).then_some(key)
    };
    let places = locate(scene.joined, span(scene.a), cell);
    let sum = |is_waiting: bool| {
        let list = columns.iter().filter(|column| waits(column.key) == is_waiting);
        list.map(|column| column.difference_ns().unsigned_abs()).fold(0, u64::saturating_add)
    };
    let totals = [sum(false), sum(true)];
    let mut fates: BTreeMap<Key, Fate> = BTreeMap::new();
    for (&key, fate) in scene.fates {
        let key = if stands(key) { key } else { Key { place: FOLDED, ..key } };
        fates.entry(key).or_default().merge(*fate);
    }
    let shown = |&(column, time, calls_differ): &(&Column, Sureness, bool)| {
        let fate = fates.get(&column.key).copied().unwrap_or_default();
        let total = totals[usize::from(waits(column.key))];
        difference(
            scene,
            &groups,
            column,
            fate,
            places.get(&column.key),
            (time, calls_differ),
            total,
        )
    };
    let (waiting, others): (Vec<_>, Vec<_>) =
        named.iter().partition(|(column, ..)| waits(column.key));
    Weighed {
        differences: others.into_iter().map(shown).collect(),
        waiting: waiting.into_iter().map(shown).collect(),
        lesser,
        too_few,
    }
}

fn waits(key: Key) -> bool {
    matches!(key.what, What::Waiting(_) | What::ForChildren)
}

/// The cells of all runs, those too small to stand alone folded; sorted by key.
fn columns(
    sides: &[Vec<Cells>; 2],
    noteworthy_ns: u64,
    grouped: impl Fn(Key) -> Key,
) -> Vec<Column> {
    let mut stands: BTreeMap<Key, bool> = BTreeMap::new();
    for cells in sides.iter().flatten() {
        let mut times: BTreeMap<Key, u64> = BTreeMap::new();
        for (key, amount) in cells {
            let time = times.entry(grouped(*key)).or_default();
            *time = time.saturating_add(amount.ns);
        }
        for (key, ns) in times {
            *stands.entry(key).or_default() |= ns >= noteworthy_ns || key.place == NOWHERE;
        }
    }
    let mut columns: BTreeMap<Key, [Vec<Amount>; 2]> = BTreeMap::new();
    for (side, all) in sides.iter().enumerate() {
        for (run, cells) in all.iter().enumerate() {
            for (key, amount) in cells {
                let key = grouped(*key);
                let key = if stands[&key] { key } else { Key { place: FOLDED, ..key } };
                let column = columns.entry(key).or_insert_with(|| {
                    [0, 1].map(|side: usize| vec![Amount::default(); sides[side].len()])
                });
                column[side][run].merge(amount);
            }
        }
    }
    columns.into_iter().map(|(key, sides)| Column { key, sides }).collect()
}

/// How sure the time of a cell differs, if it is to be named, and whether there are enough runs to tell.
fn time(column: &Column, noteworthy_ns: u64, evidence: &Evidence) -> (Option<Sureness>, bool) {
    let is_noteworthy = column.difference_ns().unsigned_abs() >= noteworthy_ns.max(1);
    let runs = [column.sides[0].len(), column.sides[1].len()];
    if runs[0] < 2 || runs[1] < 2 {
        return (apart(column, &runs).filter(|_| is_noteworthy), true);
    }
    let longest = column.sides.iter().flatten().map(|amount| amount.ns).max().unwrap_or(0);
    if longest < noteworthy_ns.max(1) {
        return (None, true);
    }
    let Some(difference) = evidence::Difference::of(&[column.block()]) else { return (None, true) };
    if evidence.shows(&difference) {
        return (is_noteworthy.then_some(Sureness::Tested), true);
    }
    match evidence.enough(&difference) {
        true => (None, true),
        false => (apart(column, &runs).filter(|_| is_noteworthy), false),
    }
}

/// Seen where all runs of one side take longer than those of the other; of one run on each side that says nothing
/// that the difference does not.
fn apart(column: &Column, runs: &[usize; 2]) -> Option<Sureness> {
    let [a, b] = [0, 1].map(|side| Interval::range(&column.times(side)));
    let is_apart = a.high * NOTEWORTHY_RATIO < b.low || b.high * NOTEWORTHY_RATIO < a.low;
    (is_apart || runs.iter().all(|&count| count == 1)).then_some(Sureness::Seen)
}

fn difference(
    scene: &Scene,
    groups: &BTreeMap<u32, u32>,
    column: &Column,
    calls: Fate,
    place: Option<&Place>,
    (time, calls_differ): (Sureness, bool),
    total: u64,
) -> Difference {
    let [a, b] = [0, 1].map(|side| middle(&column.sides[side]));
    let difference_ns = column.difference_ns();
    let ratio = (a.ns > 0 && b.ns > 0).then(|| b.ns as f64 / a.ns as f64);
    let several = column.sides.iter().all(|side| side.len() > 1);
    let Key { what, place: at } = column.key;
    let file = match what {
        What::Calls(_) if at < FOLDED => scene.path(at).to_owned(),
        _ => String::new(),
    };
    let process = match what {
        What::Outside if at < FOLDED => Some(scene.group_name(at, groups)),
        _ => place.and_then(Place::process).map(|process| scene.process_name(process)),
    };
    let mut difference = Difference {
        kind: say::kind(what, &a, &b, calls, calls_differ, difference_ns),
        sentence: String::new(),
        difference_ns,
        share: difference_ns.unsigned_abs() as f64 / total.max(1) as f64,
        time,
        calls_differ,
        file,
        a: super::Amount::of(&a),
        b: super::Amount::of(&b),
        ratio,
        ratio_interval: several.then(|| evidence::ratio_interval(&column.block())),
        calls,
        stretch: place.and_then(|place| place.stretch(span(scene.a))),
        process,
        rows: place.map_or([None, None], |place| place.rows),
    };
    difference.sentence = say::sentence(column.key, &difference, span(scene.a).0);
    difference
}

/// The medians of what several runs have.
fn middle(runs: &[Amount]) -> Amount {
    let of = |value: fn(&Amount) -> u64| {
        median(&runs.iter().map(|amount| value(amount) as f64).collect::<Vec<_>>()) as u64
    };
    let mut amount = Amount::default();
    runs.iter().for_each(|run| amount.merge(run));
    Amount {
        calls: of(|one| one.calls),
        bytes: of(|one| one.bytes),
        ns: of(|one| one.ns),
        ..amount
    }
}

impl super::Amount {
    pub(super) fn of(amount: &Amount) -> super::Amount {
        let rate = amount.bytes as f64 / (amount.ns as f64 / 1e9);
        super::Amount {
            calls: amount.calls,
            bytes: amount.bytes,
            time_ns: amount.ns,
            bytes_per_second: (amount.bytes > 0 && amount.ns > 0).then_some(rate),
            functions: amount.functions.iter().map(|function| function.name()).collect(),
        }
    }
}
