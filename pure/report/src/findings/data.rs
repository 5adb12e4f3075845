//! Rules about how data is moved: sizes, places, order, repetition.

use super::file_rule::{FileRule, write_back};
use super::finding::{Confidence, Severity};
use crate::facts::FileFacts;
use crate::pattern::Pattern;
use crate::stream::{Calls, Stream, TINY_BYTES, Transfers};
use crate::thousands::grouped;
use iolab_vocab::{Direction, format_bytes};

/// Fewer calls than this are no habit.
const HABIT_CALLS: u64 = 100;
/// A repetition below this is not worth a word.
const REPEATED_BYTES: u64 = 1 << 20;

pub(super) const RULES: &[FileRule] = &[
    FileRule {
        name: "small-sequential-writes",
        confidence: Confidence::Certain,
        calls: |_, stream| of(stream, Direction::Write, |t| t.tiny_consecutive),
        applies: |file, calls| is_habit(file, Direction::Write, calls),
        message: |file, calls| tiny(file, Direction::Write, calls, "right after the one before"),
        remedy: "gather them into large writes: a buffer in the program",
        strategy: write_back(", or write-back around it"),
        worst: Severity::High,
    },
    FileRule {
        name: "small-random-writes",
        confidence: Confidence::Certain,
        calls: |_, stream| of(stream, Direction::Write, |t| t.tiny_scattered),
        applies: |file, calls| is_habit(file, Direction::Write, calls),
        message: |file, calls| tiny(file, Direction::Write, calls, &places(file, Direction::Write)),
        remedy: "sort and merge them before they are written; with several ranks, write collectively",
        strategy: write_back(""),
        worst: Severity::High,
    },
    FileRule {
        name: "small-sequential-reads",
        confidence: Confidence::Certain,
        calls: |_, stream| of(stream, Direction::Read, |t| t.tiny_consecutive),
        applies: |file, calls| is_habit(file, Direction::Read, calls),
        message: |file, calls| tiny(file, Direction::Read, calls, "right after the one before"),
        remedy: "read large pieces into a buffer and take the records from there",
        strategy: None,
        worst: Severity::High,
    },
    FileRule {
        name: "small-random-reads",
        confidence: Confidence::Certain,
        calls: |_, stream| of(stream, Direction::Read, |t| t.tiny_scattered),
        applies: |file, calls| is_habit(file, Direction::Read, calls),
        message: |file, calls| tiny(file, Direction::Read, calls, &places(file, Direction::Read)),
        remedy: "sort the requests, read the hull of neighbouring ones at once, or map the file",
        strategy: None,
        worst: Severity::High,
    },
    FileRule {
        name: "read-after-write",
        confidence: Confidence::Certain,
        calls: |_, stream| stream.reads_of_recent,
        applies: |file, calls| {
            calls.count >= HABIT_CALLS && calls.count >= file.all(Direction::Read).count.div_ceil(4)
        },
        message: |_, calls| {
            let count = grouped(calls.count);
            format!("{count} reads of what one of the last 64 writes had just written")
        },
        remedy: "keep the data in memory until it is complete instead of reading it back",
        strategy: write_back(""),
        worst: Severity::High,
    },
    FileRule {
        name: "rereads",
        confidence: Confidence::Certain,
        calls: |_, stream| of(stream, Direction::Read, |t| t.all),
        applies: |file, calls| is_repeated(file, Direction::Read, calls),
        message: |file, calls| repeated(file, Direction::Read, calls),
        remedy: "keep what was read, or share it among the processes",
        strategy: None,
        worst: Severity::High,
    },
    FileRule {
        name: "rewrites",
        confidence: Confidence::Certain,
        calls: |_, stream| of(stream, Direction::Write, |t| t.all),
        applies: |file, calls| is_repeated(file, Direction::Write, calls),
        message: |file, calls| repeated(file, Direction::Write, calls),
        remedy: "write the final state once",
        strategy: write_back("; write-back merges what is overwritten while it is held"),
        worst: Severity::High,
    },
    FileRule {
        name: "unaligned-writes",
        confidence: Confidence::Likely,
        calls: |_, stream| of(stream, Direction::Write, |t| t.unaligned),
        applies: |file, calls| {
            calls.count >= HABIT_CALLS
                && calls.count >= file.all(Direction::Write).count.div_ceil(2)
        },
        message: |file, calls| {
            let size = match file.usual_bytes(Direction::Write) {
                Some(usual) => format!("{} or so", format_bytes(usual)),
                None => on_average(calls),
            };
            let count = grouped(calls.count);
            format!("{count} writes of {size} begin inside a 4 KiB block, far from the one before")
        },
        remedy: "place records at multiples of the block (or stripe) size: a partly written block \
                 is read first, and on a parallel file system locked twice",
        strategy: None,
        worst: Severity::Medium,
    },
    FileRule {
        name: "interleaved-shared-file",
        confidence: Confidence::Likely,
        calls: |_, stream| patterned(stream, Direction::Write, is_strided),
        applies: |file, calls| {
            let mean_bytes = calls.bytes / calls.count.max(1);
            file.is_shared_at_once()
                && file.taking_turns(Direction::Write, is_strided) > 1
                && mean_bytes < REPEATED_BYTES
        },
        message: |file, calls| {
            let size = format_bytes(calls.bytes / calls.count.max(1));
            let count = file.taking_turns(Direction::Write, is_strided);
            format!("{count} processes write pieces of {size} in turn into one file")
        },
        remedy: "write collectively (MPI_File_write_all) or give each rank one contiguous range: \
                 neighbours share blocks and locks",
        strategy: None,
        worst: Severity::Medium,
    },
    FileRule {
        name: "backward-reads",
        confidence: Confidence::Certain,
        calls: |_, stream| patterned(stream, Direction::Read, is_backward),
        applies: |_, calls| calls.count >= HABIT_CALLS,
        message: |_, calls| {
            format!(
                "{} reads run from the end to the start, against read-ahead",
                grouped(calls.count)
            )
        },
        remedy: "read large blocks forward and walk backward in memory",
        strategy: None,
        worst: Severity::High,
    },
    FileRule {
        name: "empty-reads",
        confidence: Confidence::Certain,
        calls: |_, stream| of(stream, Direction::Read, |t| t.repeated_empty),
        applies: |file, calls| {
            calls.count >= HABIT_CALLS && calls.count >= file.all(Direction::Read).count.div_ceil(3)
        },
        message: |_, calls| {
            format!(
                "{} reads ask again at the end of the file, and get nothing",
                grouped(calls.count)
            )
        },
        remedy: "wait for the file to grow with inotify instead of asking again and again",
        strategy: None,
        worst: Severity::High,
    },
    FileRule {
        name: "failing-transfers",
        confidence: Confidence::Certain,
        calls: |_, stream| {
            let failed = |direction| of(stream, direction, |t| t.failed);
            failed(Direction::Read).and(failed(Direction::Write))
        },
        applies: |_, calls| calls.count >= 10,
        message: |_, calls| format!("{} reads or writes fail", grouped(calls.count)),
        remedy: "look at the error of the example rows; the program goes on without telling",
        strategy: None,
        worst: Severity::Medium,
    },
];

/// All of a stream's transfers, where they lie in one of these patterns.
fn patterned(stream: &Stream, direction: Direction, test: fn(Pattern) -> bool) -> Calls {
    stream.patterned(direction, test).map_or(Calls::default(), |transfers| transfers.all)
}

fn is_strided(pattern: Pattern) -> bool {
    matches!(pattern, Pattern::SimpleStrided { .. } | Pattern::NestedStrided { .. })
}

fn is_backward(pattern: Pattern) -> bool {
    match pattern {
        Pattern::Backward => true,
        Pattern::SimpleStrided { stride, .. } => stride < 0,
        _ => false,
    }
}

fn of(stream: &Stream, direction: Direction, calls: fn(&Transfers) -> Calls) -> Calls {
    stream.transfers(direction).map_or(Calls::default(), calls)
}

/// Many calls, and at least a quarter of the file's.
fn is_habit(file: &FileFacts, direction: Direction, calls: Calls) -> bool {
    calls.count >= HABIT_CALLS && calls.count >= file.all(direction).count.div_ceil(4)
}

fn verb(direction: Direction) -> &'static str {
    match direction {
        Direction::Read => "reads",
        Direction::Write => "writes",
    }
}

fn on_average(calls: Calls) -> String {
    format!("{} on average", format_bytes(calls.bytes / calls.count.max(1)))
}

fn tiny(file: &FileFacts, direction: Direction, calls: Calls, place: &str) -> String {
    let size = match file.usual_bytes(direction).filter(|&usual| usual < TINY_BYTES) {
        Some(usual) => format_bytes(usual),
        None => on_average(calls),
    };
    format!("{} {} of {size}, each {place}", grouped(calls.count), verb(direction))
}

/// Where requests go that do not continue each other.
fn places(file: &FileFacts, direction: Direction) -> String {
    let parts = file.parts(direction);
    match parts.first().map(|(_, part)| part.pattern) {
        Some(pattern @ (Pattern::SimpleStrided { .. } | Pattern::NestedStrided { .. })) => {
            format!("at other offsets ({})", pattern.describe())
        }
        Some(Pattern::Repeated) => "at the same place".to_owned(),
        _ => "at random offsets".to_owned(),
    }
}

/// More bytes than lie between the first and the last one touched, at least twice over: then
/// something was certainly moved again.
fn is_repeated(file: &FileFacts, direction: Direction, calls: Calls) -> bool {
    let span = file.span_bytes(direction);
    calls.bytes >= REPEATED_BYTES && span > 0 && calls.bytes / 2 >= span
}

fn repeated(file: &FileFacts, direction: Direction, calls: Calls) -> String {
    let span = file.span_bytes(direction);
    let times = calls.bytes as f64 / span.max(1) as f64;
    let verb = if direction == Direction::Read { "read" } else { "written" };
    format!("{} are {verb} {times:.1} times over", format_bytes(span))
}
