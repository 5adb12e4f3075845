//! What each strategy finds to do in a trace, and which of its parameters are worth trying.

use crate::facts::FileFacts;
use crate::pattern::Pattern;
use crate::stream::{Calls, Stream, Transfers};
use crate::thousands::grouped;
use iolab_vocab::Direction;

/// Fewer calls than this are no reason for a strategy, whatever they are.
const HABIT_CALLS: u64 = 100;
/// A sync may wait for a device: a few are a reason.
const DEAR_HABIT_CALLS: u64 = 4;

/// One way to apply a strategy. What is in no row is never advised: it makes nothing faster.
pub(super) struct Rule {
    /// Name in the catalogue.
    pub(super) strategy: &'static str,
    /// Parameters worth trying, the plainest first.
    pub(super) trials: &'static [&'static str],
    /// Calls on this file that it would act on.
    pub(super) calls: fn(&FileFacts) -> u64,
    /// So many make it worth a try.
    pub(super) habit: u64,
    /// What these calls are, after their number.
    pub(super) noun: &'static str,
}

/// All of them.
pub(super) const RULES: &[Rule] = &[
    Rule {
        strategy: "seek-elide",
        trials: &[""],
        calls: |file| file.sum(|stream| stream.seeks).count,
        habit: HABIT_CALLS,
        noun: "seeks",
    },
    Rule {
        strategy: "seek-elide",
        trials: &["outsiders=none"],
        calls: |file| file.sum(|stream| stream.seeks).count,
        habit: HABIT_CALLS,
        noun: "seeks",
    },
    Rule {
        strategy: "write-back",
        trials: &["", "buffer=256k", "buffer=4m", "buffer=16m", "largest=64k,buffer=4m"],
        calls: |file| tiny(file, Direction::Write),
        habit: HABIT_CALLS,
        noun: "writes of less than 16 KiB",
    },
    Rule {
        strategy: "align",
        trials: &["", "block=64k", "block=256k", "block=4m"],
        calls: |file| of(file, Direction::Write, |all| all.unaligned),
        habit: HABIT_CALLS,
        noun: "writes that begin inside a 4 KiB block",
    },
    Rule {
        strategy: "read-ahead",
        trials: &["", "window=1m", "window=32m"],
        calls: |file| match file.any_pattern(Direction::Read, is_stream) {
            true => file.all(Direction::Read).count,
            false => 0,
        },
        habit: HABIT_CALLS,
        noun: "reads in streams",
    },
    Rule {
        strategy: "read-ahead",
        trials: &[
            "via=buffer,outsiders=none",
            "via=buffer,outsiders=none,window=1m",
            "via=buffer,outsiders=none,window=1m,largest=64k",
        ],
        calls: |file| match file.any_pattern(Direction::Read, is_contiguous) {
            true => tiny(file, Direction::Read),
            false => 0,
        },
        habit: HABIT_CALLS,
        noun: "reads of less than 16 KiB that follow each other",
    },
    Rule {
        strategy: "data-sieve",
        trials: &[
            "outsiders=none",
            "outsiders=none,window=1m",
            "outsiders=none,hole=16k,window=1m",
        ],
        calls: |file| match file.any_pattern(Direction::Read, has_holes) {
            true => tiny(file, Direction::Read),
            false => 0,
        },
        habit: HABIT_CALLS,
        noun: "reads of less than 16 KiB with holes between them",
    },
    Rule {
        strategy: "fsync-relax",
        trials: &["", "every=1s", "every=100ms"],
        calls: |file| file.sum(|stream| stream.syncs).count,
        habit: DEAR_HABIT_CALLS,
        noun: "syncs",
    },
];

fn of(file: &FileFacts, direction: Direction, calls: fn(&Transfers) -> Calls) -> u64 {
    let sum = |stream: &Stream| stream.transfers(direction).map_or(Calls::default(), calls);
    file.sum(sum).count
}

fn tiny(file: &FileFacts, direction: Direction) -> u64 {
    of(file, direction, |all| all.tiny_consecutive.and(all.tiny_scattered))
}

fn is_contiguous(pattern: Pattern) -> bool {
    matches!(pattern, Pattern::Consecutive | Pattern::Backward)
}

fn has_holes(pattern: Pattern) -> bool {
    matches!(
        pattern,
        Pattern::SimpleStrided { .. } | Pattern::NestedStrided { .. } | Pattern::Sequential
    )
}

fn is_stream(pattern: Pattern) -> bool {
    is_contiguous(pattern) || has_holes(pattern)
}

/// The files a rule has something to do in, worst first, and how many calls that are; nothing where
/// they are no reason.
pub(super) fn seen<'f, 'a>(
    rule: &Rule,
    files: &[&'f FileFacts<'a>],
) -> Option<(u64, Vec<&'f FileFacts<'a>>)> {
    // What adds little to the reason only makes the choice of files longer.
    let least = (rule.habit / 16).max(1);
    let mut hits: Vec<(u64, &FileFacts)> =
        files.iter().map(|file| ((rule.calls)(file), *file)).collect();
    hits.retain(|(calls, _)| *calls >= least);
    hits.sort_by_key(|(calls, file)| (std::cmp::Reverse(*calls), file.index));
    let all = hits.iter().map(|(calls, _)| *calls).fold(0, u64::saturating_add);
    (all >= rule.habit).then(|| (all, hits.into_iter().map(|(_, file)| file).collect()))
}

/// The reason as a phrase.
pub(super) fn words(rule: &Rule, calls: u64, files: &[&FileFacts]) -> String {
    let calls = format!("{} {}", grouped(calls), rule.noun);
    match files {
        [file] => format!("{}: {calls} of {}", rule.strategy, file.path),
        _ => format!("{}: {calls} of {} files", rule.strategy, grouped(files.len() as u64)),
    }
}
