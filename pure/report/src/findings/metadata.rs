//! Rules about calls that move no data: seeks, syncs, opening and closing, asking, locking.

use super::file_rule::{ByStrategy, FileRule, write_back};
use super::finding::{Confidence, Severity};
use crate::stream::TINY_BYTES;
use crate::thousands::grouped;
use iolab_vocab::{Direction, format_bytes};

/// Fewer calls than this are no habit.
const HABIT_CALLS: u64 = 100;
/// Opening or syncing is dear; fewer are a habit.
const DEAR_HABIT_CALLS: u64 = 20;

pub(super) const RULES: &[FileRule] = &[
    FileRule {
        name: "redundant-seeks",
        confidence: Confidence::Certain,
        calls: |_, stream| stream.redundant_seeks,
        applies: |file, calls| {
            let all = file.sum(|stream| stream.seeks);
            calls.count >= HABIT_CALLS && calls.count >= all.count.div_ceil(4)
        },
        message: |file, calls| {
            let all = grouped(file.sum(|stream| stream.seeks).count);
            format!("{} of {all} seeks lead to where the position already is", grouped(calls.count))
        },
        remedy: "leave them out; the position is known without asking",
        strategy: Some(ByStrategy { name: "seek-elide", clause: "", helps: |_| true }),
        worst: Severity::High,
    },
    FileRule {
        name: "seek-before-each-transfer",
        confidence: Confidence::Certain,
        calls: |_, stream| stream.seeks,
        applies: |file, calls| {
            let redundant = file.sum(|stream| stream.redundant_seeks).count;
            let transfers = file.all(Direction::Read).and(file.all(Direction::Write)).count;
            let needed = calls.count - redundant.min(calls.count);
            needed >= HABIT_CALLS && needed >= transfers.div_ceil(2)
        },
        message: |file, calls| {
            let transfers = file.all(Direction::Read).and(file.all(Direction::Write)).count;
            format!("{} seeks for {} reads and writes", grouped(calls.count), grouped(transfers))
        },
        remedy: "say the place in the call itself: pread and pwrite take one call instead of two",
        strategy: Some(ByStrategy { name: "seek-elide", clause: "", helps: |_| true }),
        worst: Severity::High,
    },
    FileRule {
        name: "fsync-storm",
        confidence: Confidence::Certain,
        // Whoever wrote nothing may sync what others wrote.
        calls: |file, stream| match file.is_written_beside(stream) {
            true => stream.syncs_of_little,
            false => stream.syncs_of_little.and(stream.syncs_of_nothing),
        },
        applies: |file, calls| {
            let all = file.sum(|stream| stream.syncs);
            calls.count >= DEAR_HABIT_CALLS && calls.count >= all.count.div_ceil(2)
        },
        message: |_, calls| {
            let count = grouped(calls.count);
            match calls.bytes / calls.count.max(1) {
                0 => format!("{count} syncs, with no write between them"),
                each => format!("{count} syncs, one for every {} written", format_bytes(each)),
            }
        },
        remedy: "sync once when a state is complete, not after each record",
        strategy: None,
        worst: Severity::High,
    },
    FileRule {
        name: "synchronous-writes",
        confidence: Confidence::Certain,
        calls: |file, stream| match file.is_synchronous {
            true => stream.synchronous_writes.and(stream.inherited_writes),
            false => stream.synchronous_writes,
        },
        applies: |_, calls| {
            calls.count >= DEAR_HABIT_CALLS && calls.bytes / calls.count < TINY_BYTES
        },
        message: |_, calls| {
            let each = format_bytes(calls.bytes / calls.count.max(1));
            let count = grouped(calls.count);
            format!("{count} writes of {each} wait for the device each (O_SYNC or O_DSYNC)")
        },
        remedy: "open without O_SYNC and sync once when a state is complete",
        strategy: None,
        worst: Severity::High,
    },
    FileRule {
        name: "flush-after-each-print",
        confidence: Confidence::Certain,
        calls: |_, stream| stream.flushes,
        applies: |file, calls| {
            let written = file.all(Direction::Write);
            calls.count >= HABIT_CALLS && written.bytes / calls.count < 4096
        },
        message: |file, calls| {
            let each = format_bytes(file.all(Direction::Write).bytes / calls.count.max(1));
            format!("{} flushes of a stream, one for every {each}", grouped(calls.count))
        },
        remedy: "let the stream fill its buffer; flush at the end or before a crash may come",
        strategy: write_back(""),
        worst: Severity::High,
    },
    FileRule {
        name: "open-close-churn",
        confidence: Confidence::Certain,
        calls: |_, stream| stream.opens.and(stream.closes),
        applies: |file, _| {
            let opens = file.sum(|stream| stream.opens).count;
            let transfers = file.all(Direction::Read).and(file.all(Direction::Write)).count;
            let processes = file.time_by_process(|stream| stream.opens).len() as u64;
            opens >= DEAR_HABIT_CALLS * processes.max(1) && transfers <= 4 * opens
        },
        message: |file, _| {
            let opens = file.sum(|stream| stream.opens).count;
            let transfers = file.all(Direction::Read).and(file.all(Direction::Write)).count;
            let each = transfers as f64 / opens.max(1) as f64;
            let opens = grouped(opens);
            format!("opened {opens} times for {each:.1} reads and writes each time")
        },
        remedy: "open once, keep the descriptor and close at the end",
        strategy: None,
        worst: Severity::High,
    },
    FileRule {
        name: "stat-storm",
        confidence: Confidence::Certain,
        calls: |_, stream| stream.stats,
        applies: |file, calls| {
            let opens = file.sum(|stream| stream.opens).count;
            // One status per open is what libraries do.
            calls.count >= HABIT_CALLS && calls.count >= 4 * opens
        },
        message: |_, calls| format!("asked for its status {} times", grouped(calls.count)),
        remedy: "ask once and remember; use inotify to wait for a change",
        strategy: None,
        worst: Severity::High,
    },
    FileRule {
        name: "missing-file-lookups",
        confidence: Confidence::Certain,
        calls: |_, stream| stream.missing,
        applies: |_, calls| calls.count >= HABIT_CALLS,
        message: |_, calls| format!("looked for {} times and not there", grouped(calls.count)),
        remedy: "remember that it is missing, or create it",
        strategy: None,
        worst: Severity::High,
    },
    FileRule {
        name: "lock-storm",
        confidence: Confidence::Likely,
        calls: |_, stream| stream.locks,
        applies: |_, calls| calls.count >= HABIT_CALLS,
        message: |_, calls| format!("{} locks and unlocks", grouped(calls.count)),
        remedy: "hold the lock for a batch of changes (one transaction instead of many)",
        strategy: None,
        worst: Severity::High,
    },
    FileRule {
        name: "temporary-file",
        confidence: Confidence::Possible,
        calls: |_, stream| stream.unlinks.and(stream.creates),
        applies: |file, _| {
            file.is_removed_after_all() && file.all(Direction::Write).bytes >= 1 << 20
        },
        message: |file, _| {
            let bytes = format_bytes(file.all(Direction::Write).bytes);
            format!("created, written ({bytes}) and removed in the same run")
        },
        remedy: "keep it in memory (/dev/shm) or on local storage",
        strategy: None,
        worst: Severity::Low,
    },
];
