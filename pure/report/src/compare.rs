//! Two runs held against each other, or several of each: which calls are the same, what differs, and how
//! sure that is.
//!
//! Nothing is matched by time. Files, processes and threads of the runs are paired (`pair`), the calls of each
//! thread aligned (`align`, `matching`). The time of all threads is divided into cells without rest
//! (`cells`): calls by class and file, waiting by function, time outside of calls by process; so differences of
//! cells add up to the difference of the runs. A difference is named (`weigh`) only where it is large
//! enough to matter and, with several runs on each side, where chance does not explain it (`evidence`).
//! Of several runs the first of each side are aligned; the others only give times.
//!
//! Costs: linear in the calls, about 100 bytes and half a microsecond for each.

mod align;
mod calls;
mod cells;
mod locate;
mod matching;
mod page;
mod pair;
mod say;
mod stretch;
mod text;
mod weigh;

use crate::evidence::{self, Block, Evidence};
use crate::statistics::{Interval, median};
use calls::{Lane, lanes, span};
use cells::{Cells, What};
use iolab_trace::{Origin, Trace};
use matching::{fates, join};

pub use matching::Fate;
use pair::Pairing;
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};

/// Of a run time, what a difference has to come to before it is named.
const NOTEWORTHY_SHARE: f64 = 0.01;

/// A run that is compared.
#[derive(Clone, Debug)]
pub struct Run<'a> {
    /// What it is called: the name of its file.
    pub name: String,
    /// Its trace.
    pub trace: &'a Trace,
}

/// What comparing two runs, or several of each, came to. Times are nanoseconds; those of calls, waiting and
/// outside of calls are sums over threads. Of several runs, values are medians.
#[derive(Clone, Debug, Serialize)]
pub struct Comparison {
    /// Name and version of this document.
    pub schema: &'static str,
    /// The runs that are the measure.
    pub a: Side,
    /// The runs held against them.
    pub b: Side,
    /// How many times as long as A B takes, with several runs on both sides: where the ratio is.
    pub run_ratio_interval: Option<Interval>,
    /// Whether chance may explain that ratio, likewise.
    pub run_ratio_is_by_chance: Option<bool>,
    /// What became of all calls of the first run of A.
    pub calls: Fate,
    /// Files of both.
    pub common_file_count: usize,
    /// Files that are one although they have two paths.
    pub renamed: Vec<Renamed>,
    /// Where the time went.
    pub shares: Vec<Share>,
    /// Differences, the one of most time first.
    pub differences: Vec<Difference>,
    /// The same of waiting for others, which mostly follows from what others do.
    pub waiting: Vec<Difference>,
    /// Differences below what is named.
    pub lesser_count: usize,
    /// Every function of the first runs, the one whose time differs most first.
    pub functions: Vec<FunctionRow>,
    /// Run times per process, the one that differs most first.
    pub processes: Vec<ProcessRow>,
    /// What else to know, a sentence each.
    pub notes: Vec<String>,
}

/// The runs of one side.
#[derive(Clone, Debug, Serialize)]
pub struct Side {
    /// Names of the runs; the first is the one whose calls are matched.
    pub runs: Vec<String>,
    /// How the first came to be.
    pub origin: Origin,
    /// Its command.
    pub command: Vec<String>,
    /// Its strategies.
    pub strategies: Vec<String>,
    /// From the first moment to the last of each run.
    pub run_ns: Vec<u64>,
    /// Calls of the first run.
    pub call_count: u64,
    /// Ranks of the first run.
    pub rank_count: usize,
}

/// A file with two names.
#[derive(Clone, Debug, Serialize)]
#[allow(missing_docs, reason = "each is what its name says")]
pub struct Renamed {
    pub a: String,
    pub b: String,
}

/// What one side has of something.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Amount {
    /// Calls.
    pub calls: u64,
    /// Bytes moved.
    pub bytes: u64,
    /// Time.
    pub time_ns: u64,
    /// Bytes per second of that time; none where no bytes are moved.
    pub bytes_per_second: Option<f64>,
    /// Names of the functions.
    pub functions: Vec<&'static str>,
}

/// Where the time of all threads went.
#[derive(Clone, Debug, Serialize)]
pub struct Share {
    /// `I/O calls`, `waiting for ranks`, `waiting for child processes`, `starting processes`, `outside of calls`.
    pub what: &'static str,
    /// Time of side A, and its share of the time of all threads.
    pub a_ns: u64,
    /// See `a_ns`.
    pub a_share: f64,
    /// Time of side B.
    pub b_ns: u64,
    /// See `b_ns`.
    pub b_share: f64,
}

/// How sure it is that the times differ.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Sureness {
    /// One run on a side, or too few: seen, and nothing is known of how it varies.
    Seen,
    /// Chance does not explain it.
    Tested,
    /// Nothing can be said about the time; only the number of calls differs.
    CallsOnly,
}

/// Something that differs.
#[derive(Clone, Debug, Serialize)]
pub struct Difference {
    /// `vanished`, `came`, `merged`, `split`, `fewer-calls`, `more-calls`, `slower`, `faster`.
    pub kind: &'static str,
    /// In one sentence.
    pub sentence: String,
    /// How much more time B takes; less where negative.
    pub difference_ns: i64,
    /// Of all differences of its list, the named and the lesser ones, without regard to their sign.
    pub share: f64,
    /// How sure the time is.
    pub time: Sureness,
    /// Whether all runs of a side agree on the number of calls, and the sides differ in it.
    pub calls_differ: bool,
    /// The file of A; of B, where A has none. Empty where it is none, or several.
    pub file: String,
    /// What A has.
    pub a: Amount,
    /// What B has.
    pub b: Amount,
    /// How many times as long B takes, with its ends where there are several runs.
    pub ratio: Option<f64>,
    /// Where the ratio is, of several runs.
    pub ratio_interval: Option<Interval>,
    /// What became of the calls.
    pub calls: Fate,
    /// Where in A most of it is, if it is not all over.
    pub stretch: Option<Stretch>,
    /// The process that most of it is of, if there are others.
    pub process: Option<String>,
    /// The row of A, and of B, that differs most.
    pub rows: [Option<usize>; 2],
}

/// A stretch of a run.
#[derive(Clone, Copy, Debug, Serialize)]
#[allow(missing_docs, reason = "each is what its name says")]
pub struct Stretch {
    pub start_ns: u64,
    pub end_ns: u64,
}

/// A function in both runs.
#[derive(Clone, Debug, Serialize)]
pub struct FunctionRow {
    /// Its name.
    pub function: &'static str,
    /// What A has.
    pub a: Amount,
    /// What B has.
    pub b: Amount,
}

/// A process in the first runs of both sides. The four parts are B less A and add up to the difference of the
/// time of its threads.
#[derive(Clone, Debug, Serialize)]
#[allow(missing_docs, reason = "each is what its name says")]
pub struct ProcessRow {
    pub name: String,
    pub rank: i32,
    pub a_ns: u64,
    pub b_ns: u64,
    pub calls_ns: i64,
    pub waiting_ns: i64,
    pub for_children_ns: i64,
    pub outside_ns: i64,
}

/// Compares the runs of `b` with those of `a`; each side needs one.
pub fn compare(a: &[Run], b: &[Run]) -> Comparison {
    let (first_a, first_b) = (&a[0], &b[0]);
    let pairings = |runs: &[Run]| -> Vec<Pairing> {
        runs.iter().map(|run| pair::pair(first_a.trace, run.trace)).collect()
    };
    let own = pair::identity(first_a.trace);
    let pairings_b = pairings(b);
    let lanes_a = lanes(first_a.trace, &own);
    let lanes_b = lanes(first_b.trace, &pairings_b[0].numbering);
    let cells_of = |runs: &[Run], first: &[Lane], pairings: &[Pairing]| -> Vec<Cells> {
        let others = runs.iter().zip(pairings).skip(1);
        let others =
            others.map(|(run, pairing)| cells::cells(&lanes(run.trace, &pairing.numbering)));
        std::iter::once(cells::cells(first)).chain(others).collect()
    };
    let sides = [cells_of(a, &lanes_a, &pairings(a)), cells_of(b, &lanes_b, &pairings_b)];
    let joined = join(&lanes_a, &lanes_b);
    let fates = fates(&joined);
    let wall = a.iter().chain(b).map(|run| length(run.trace)).max().unwrap_or(0);
    let scene = weigh::Scene {
        a: first_a.trace,
        b: first_b.trace,
        numbering: &pairings_b[0].numbering,
        joined: &joined,
        fates: &fates,
        noteworthy_ns: (wall as f64 * NOTEWORTHY_SHARE) as u64,
    };
    let weighed = Evidence::report(|evidence| weigh::weigh(&scene, &sides, evidence));
    let mut all = Fate::default();
    fates.values().for_each(|fate| all.merge(*fate));
    let pairing = &pairings_b[0];
    let path = |trace: &Trace, file: usize| trace.header.files[file].path.clone();
    let renamed = pairing.renamed.iter().map(|&(one, other)| Renamed {
        a: path(first_a.trace, one),
        b: path(first_b.trace, other),
    });
    let run_ratio = run_ratio(a, b);
    let mut comparison = Comparison {
        schema: "iolab.compare/1",
        a: side(a, &lanes_a),
        b: side(b, &lanes_b),
        run_ratio_interval: run_ratio.map(|(ends, _)| ends),
        run_ratio_is_by_chance: run_ratio.map(|(_, is_by_chance)| is_by_chance),
        calls: all,
        common_file_count: pairing.common_files,
        renamed: renamed.collect(),
        shares: shares(&sides),
        differences: weighed.differences,
        waiting: weighed.waiting,
        lesser_count: weighed.lesser,
        functions: functions(&lanes_a, &lanes_b),
        processes: processes(&scene),
        notes: Vec::new(),
    };
    comparison.notes = say::notes(&comparison, a, b, weighed.too_few);
    comparison
}

impl Comparison {
    /// Whether nothing differs: no call, and no time of any.
    pub fn is_equal(&self) -> bool {
        let Fate { matched: _, moved, changed, merged_from, split_from, vanished, came, .. } =
            self.calls;
        let same_calls = [moved, changed, merged_from, split_from, vanished, came] == [0; 6];
        let same_time = self.shares.iter().all(|share| share.a_ns == share.b_ns);
        same_calls && same_time && self.differences.is_empty() && self.a.run_ns == self.b.run_ns
    }

    /// Why B is slower or faster than A, in a sentence; none where nothing is named.
    pub fn reason(&self) -> Option<&str> {
        let more = self.b.run_time() > self.a.run_time();
        let first = self.differences.iter().find(|one| (one.difference_ns > 0) == more)?;
        Some(&first.sentence)
    }

    /// By how much longer B takes than A, as a share of A.
    pub fn slower_by(&self) -> f64 {
        self.b.run_time() as f64 / self.a.run_time().max(1) as f64 - 1.0
    }

    /// What a heading adds where there are several runs on a side and its table has the first of each: nothing in it is
    /// weighed against chance.
    fn of_first_runs(&self) -> &'static str {
        match self.a.runs.len().max(self.b.runs.len()) {
            0 | 1 => "",
            _ => ", in the first run of each side",
        }
    }

    /// Whether B is a simulation of what A really did, or the reverse.
    fn is_prediction(&self) -> bool {
        (self.a.origin == Origin::Simulated) != (self.b.origin == Origin::Simulated)
    }
}

impl Side {
    /// The median of its run times.
    fn run_time(&self) -> u64 {
        median(&self.run_ns.iter().map(|&ns| ns as f64).collect::<Vec<_>>()) as u64
    }
}

/// A fingerprint of one more number after others (the finaliser of SplitMix64).
fn mixed(before: u64, number: u64) -> u64 {
    let mut sum = (before ^ number).wrapping_add(0x9e37_79b9_7f4a_7c15);
    sum = (sum ^ (sum >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    sum = (sum ^ (sum >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    sum ^ (sum >> 31)
}

fn length(trace: &Trace) -> u64 {
    let (start, end) = span(trace);
    end.saturating_sub(start)
}

/// Where the ratio of run times is, and whether chance may explain it: by the rules for differences of calls, and where
/// there are too few runs for a test, whether those of the sides overlap.
fn run_ratio(a: &[Run], b: &[Run]) -> Option<(Interval, bool)> {
    // A run of no time would have no ratio.
    let times = |runs: &[Run]| -> Vec<f64> {
        runs.iter().map(|run| length(run.trace).max(1) as f64).collect()
    };
    if a.len() < 2 || b.len() < 2 {
        return None;
    }
    let block = Block::of_values(&times(b), &times(a));
    let ends = evidence::ratio_interval(&block);
    let difference = evidence::Difference::of(&[block])?;
    let (is_shown, is_enough) =
        Evidence::report(|evidence| (evidence.shows(&difference), evidence.enough(&difference)));
    let is_by_chance = if is_enough { !is_shown } else { ends.low <= 1.0 && ends.high >= 1.0 };
    Some((ends, is_by_chance))
}

fn side(runs: &[Run], lanes: &[Lane]) -> Side {
    let header = &runs[0].trace.header;
    let ranks = header.processes.iter().map(|entry| entry.rank);
    let ranks: BTreeSet<i32> = ranks
        .chain(runs[0].trace.events.iter().map(|event| event.rank))
        .filter(|&r| r >= 0)
        .collect();
    Side {
        runs: runs.iter().map(|run| run.name.clone()).collect(),
        origin: header.origin,
        command: header.command.clone(),
        strategies: header.strategies.clone(),
        run_ns: runs.iter().map(|run| length(run.trace)).collect(),
        call_count: lanes.iter().flat_map(|lane| &lane.calls).map(|call| call.count).sum(),
        rank_count: ranks.len(),
    }
}

/// Kinds of time that a thread's time is divided into.
const SHARES: [&str; 5] = [
    "I/O calls",
    "waiting for ranks",
    "waiting for child processes",
    "starting processes",
    "outside of calls",
];

fn share_of(what: What) -> usize {
    match what {
        What::Calls(iolab_trace::Class::Process) => 3,
        What::Calls(_) => 0,
        What::Waiting(_) => 1,
        What::ForChildren => 2,
        What::Outside => 4,
    }
}

fn shares(sides: &[Vec<Cells>; 2]) -> Vec<Share> {
    let of_run = |cells: &Cells| {
        let mut times = [0_u64; SHARES.len()];
        for (key, amount) in cells {
            let time = &mut times[share_of(key.what)];
            *time = time.saturating_add(amount.ns);
        }
        times
    };
    let medians = |runs: &Vec<Cells>| -> Vec<u64> {
        let times: Vec<_> = runs.iter().map(of_run).collect();
        let of = |at: usize| times.iter().map(|one| one[at] as f64).collect::<Vec<_>>();
        (0..SHARES.len()).map(|at| median(&of(at)) as u64).collect()
    };
    let [a, b] = [&sides[0], &sides[1]].map(medians);
    let share = |times: &[u64], at: usize| {
        times[at] as f64 / times.iter().copied().fold(0, u64::saturating_add).max(1) as f64
    };
    let row = |at: usize| Share {
        what: SHARES[at],
        a_ns: a[at],
        a_share: share(&a, at),
        b_ns: b[at],
        b_share: share(&b, at),
    };
    (0..SHARES.len()).filter(|&at| a[at] > 0 || b[at] > 0).map(row).collect()
}

fn functions(a: &[Lane], b: &[Lane]) -> Vec<FunctionRow> {
    let mut rows: BTreeMap<u16, [cells::Amount; 2]> = BTreeMap::new();
    for (side, lanes) in [a, b].into_iter().enumerate() {
        for call in lanes.iter().flat_map(|lane| &lane.calls) {
            let amount = cells::Amount {
                calls: call.count,
                bytes: call.bytes,
                ns: call.cost,
                functions: vec![call.function],
            };
            rows.entry(call.function.0).or_default()[side].merge(&amount);
        }
    }
    let row = |[a, b]: [cells::Amount; 2]| FunctionRow {
        function: a
            .functions
            .first()
            .or(b.functions.first())
            .map_or("?", |function| function.name()),
        a: Amount::of(&a),
        b: Amount::of(&b),
    };
    let mut rows: Vec<FunctionRow> = rows.into_values().map(row).collect();
    rows.sort_by_key(|row| std::cmp::Reverse(row.a.time_ns.abs_diff(row.b.time_ns)));
    rows
}

fn processes(scene: &weigh::Scene) -> Vec<ProcessRow> {
    let mut rows: BTreeMap<u32, ProcessRow> = BTreeMap::new();
    for both in scene.joined {
        let row = rows.entry(both.process).or_insert_with(|| ProcessRow {
            name: scene.process_name(both.process),
            rank: scene.rank(both.process),
            a_ns: 0,
            b_ns: 0,
            calls_ns: 0,
            waiting_ns: 0,
            for_children_ns: 0,
            outside_ns: 0,
        });
        row.a_ns = row.a_ns.saturating_add(both.a.map_or(0, Lane::time));
        row.b_ns = row.b_ns.saturating_add(both.b.map_or(0, Lane::time));
    }
    matching::steps(scene.joined, &mut |step| {
        let Some(row) = rows.get_mut(&step.process) else { return };
        let part = match share_of(step.key.what) {
            1 => &mut row.waiting_ns,
            2 => &mut row.for_children_ns,
            4 => &mut row.outside_ns,
            _ => &mut row.calls_ns,
        };
        *part = part.saturating_add(step.more_ns);
    });
    let mut rows: Vec<ProcessRow> = rows.into_values().collect();
    rows.sort_by_key(|row| std::cmp::Reverse(row.a_ns.abs_diff(row.b_ns)));
    rows
}
