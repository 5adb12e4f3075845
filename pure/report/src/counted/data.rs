//! Rules about how data is moved: sizes, order, repetition, alignment.
//!
//! Thresholds are those of Drishti (`drishti/includes/config.py`), where it has one, so that its users
//! find what they know: small is up to 1 MiB, from a tenth of the calls on and above 1,000 of them.

use super::bin_name;
use super::sums::{FileSum, Run, Weight, paths, percent, share};
use crate::findings::{Confidence, Finding, Remedy};
use crate::stream::TINY_BYTES;
use crate::thousands::grouped;
use iolab_trace::import::counted::{Module, Record, SIZE_BOUNDS};
use iolab_vocab::{Direction, format_bytes};

pub(super) const NAMES: &[&str] = &[
    "small-writes",
    "small-reads",
    "random-writes",
    "random-reads",
    "misaligned-shared-writes",
    "misaligned-accesses",
    "rereads",
    "rewrites",
    "alternating-reads-and-writes",
];

/// Bins of sizes up to 1 MiB.
const SMALL_BINS: usize = 5;
const SMALL_SHARE: f64 = 0.1;
const RANDOM_SHARE: f64 = 0.2;
const MISALIGNED_SHARE: f64 = 0.1;
/// Fewer calls are no habit.
const HABIT_CALLS: u64 = 1_000;
/// A repetition below this is not worth a word.
const REPEATED_BYTES: u64 = 1 << 20;
/// An alignment from here on is that of stripes or blocks of a parallel file system.
const STRIPE_BYTES: u64 = 64 << 10;

pub(super) fn judge(run: &Run<'_>) -> Vec<Finding> {
    let both = [Direction::Write, Direction::Read];
    let mut findings: Vec<Finding> = both.iter().filter_map(|it| small(run, *it)).collect();
    findings.extend(both.iter().filter_map(|it| random(run, *it)));
    findings.extend([true, false].iter().filter_map(|it| misaligned(run, *it)));
    findings.extend(both.iter().filter_map(|it| repeated(run, *it)));
    findings.extend(alternating(run));
    findings
}

fn noun(direction: Direction) -> &'static str {
    match direction {
        Direction::Read => "reads",
        Direction::Write => "writes",
    }
}

fn small_calls(file: &FileSum<'_>, direction: Direction) -> u64 {
    file.way(direction).sizes[..SMALL_BINS].iter().fold(0, |sum, it| sum.saturating_add(*it))
}

fn small(run: &Run<'_>, direction: Direction) -> Option<Finding> {
    let files: Vec<&FileSum<'_>> = run
        .of_module(Module::Posix)
        .filter(|file| {
            let small = small_calls(file, direction);
            small > 0 && share(small, file.way(direction).calls) >= SMALL_SHARE
        })
        .collect();
    let mut weight = Weight::default();
    let (mut all, mut consecutive, mut bins) = (0_u64, 0_u64, [0_u64; SMALL_BINS]);
    for file in &files {
        let way = file.way(direction);
        let small = small_calls(file, direction);
        // No more than the bins allow.
        let most = way.sizes.iter().zip(SIZE_BOUNDS).take(SMALL_BINS);
        let most =
            most.map(|(count, size)| count.saturating_mul(size)).fold(0, u64::saturating_add);
        let part = share(small, way.calls).min(1.0);
        weight.add(run, file, (small, most.min(way.bytes), part), |it| it.way(direction).ns);
        all = all.saturating_add(way.calls);
        consecutive = consecutive.saturating_add(way.consecutive);
        bins.iter_mut().zip(way.sizes).for_each(|(sum, it)| *sum = sum.saturating_add(it));
    }
    if weight.calls < HABIT_CALLS {
        return None;
    }
    let fullest = (0..SMALL_BINS).max_by_key(|bin| bins[*bin])?;
    let is_in_order = consecutive.saturating_mul(2) >= all;
    let order = if is_in_order { ", most right behind the one before" } else { "" };
    let message = format!(
        "{} of {} {} are no larger than 1 MiB, most of them {}{order}",
        percent(weight.calls, all),
        grouped(all),
        noun(direction),
        bin_name(fullest),
    );
    let shared = files.iter().any(|file| file.is_shared);
    // Larger ones write-back passes on.
    let are_held = SIZE_BOUNDS[fullest] <= TINY_BYTES;
    let remedy = match (direction, shared) {
        (_, true) => {
            "on a shared file, collective calls of MPI-IO gather what the ranks have; in one rank a \
                      buffer does"
        }
        (Direction::Write, false) if are_held => {
            "gather them into large writes: a buffer in the program, or write-back around it"
        }
        (Direction::Write, false) => "gather them into large writes: a buffer in the program",
        (Direction::Read, false) => {
            "read large pieces into a buffer and take the records from there"
        }
    };
    // The page cache may make large ones of small ones in order.
    let confidence = if is_in_order { Confidence::Likely } else { Confidence::Certain };
    let rule = NAMES[usize::from(direction == Direction::Read)];
    let files = paths(&files, |file| small_calls(file, direction));
    let mut finding = weight.finding(run, (rule, confidence), message, remedy, files);
    if direction == Direction::Write && !shared && are_held {
        let strategy = Some("write-back".to_owned());
        finding.remedy = finding.remedy.map(|remedy| Remedy { strategy, ..remedy });
    }
    Some(finding)
}

fn random(run: &Run<'_>, direction: Direction) -> Option<Finding> {
    let files: Vec<&FileSum<'_>> = run
        .of_module(Module::Posix)
        .filter(|file| share(file.random(direction), file.way(direction).calls) >= RANDOM_SHARE)
        .collect();
    let part = |file: &FileSum<'_>| {
        let (way, random) = (file.way(direction), file.random(direction));
        let part = share(random, way.calls);
        (random, (way.bytes as f64 * part) as u64, part)
    };
    let weight = Weight::over(run, &files, part, |it| it.way(direction).ns);
    let all = files.iter().map(|it| it.way(direction).calls).fold(0, u64::saturating_add);
    if weight.calls < HABIT_CALLS {
        return None;
    }
    let message = format!(
        "{} of {} {} go back in the file",
        percent(weight.calls, all),
        grouped(all),
        noun(direction)
    );
    let remedy = match direction {
        Direction::Write => {
            "sort and merge them before they are written; with several ranks, write collectively"
        }
        Direction::Read => {
            "sort the requests, or read what lies between neighbouring ones along with them"
        }
    };
    let rule = NAMES[2 + usize::from(direction == Direction::Read)];
    let files = paths(&files, |file| file.random(direction));
    Some(weight.finding(run, (rule, Confidence::Certain), message, remedy, files))
}

/// Counted is what is not aligned to what the file system asks for; reads and writes together.
fn misaligned(run: &Run<'_>, shared_writes: bool) -> Option<Finding> {
    let files: Vec<&FileSum<'_>> = run
        .of_module(Module::Posix)
        .filter(|file| {
            let is_shared =
                file.is_shared && file.movers > 1 && file.writes.calls >= file.reads.calls;
            is_shared == shared_writes
                && file.alignment > 1
                && share(file.misaligned, file.calls()) >= MISALIGNED_SHARE
        })
        .collect();
    let part = |file: &FileSum<'_>| {
        let part = share(file.misaligned, file.calls()).min(1.0);
        (file.misaligned, (file.bytes() as f64 * part) as u64, part)
    };
    let weight = Weight::over(run, &files, part, Record::transfer_ns);
    let all = files.iter().map(|file| file.calls()).fold(0, u64::saturating_add);
    if weight.calls < HABIT_CALLS / 10 {
        return None;
    }
    let alignment = files.iter().max_by_key(|file| file.misaligned)?.alignment;
    let what = if shared_writes { "accesses of shared files that are written" } else { "accesses" };
    let message = format!(
        "{} of {} {what} begin between multiples of {}, which the file system names as its block",
        percent(weight.calls, all),
        grouped(all),
        format_bytes(alignment)
    );
    let remedy = match shared_writes {
        true => {
            "give each rank ranges that begin at multiples of the stripe (striping_unit of MPI-IO, \
                 H5Pset_alignment of HDF5, nc_header_align_size of PnetCDF): two ranks in one stripe wait for its lock"
        }
        false => "begin at multiples of the block: a partly written one is read first",
    };
    let confidence = match (shared_writes, alignment >= STRIPE_BYTES) {
        (true, true) => Confidence::Likely,
        _ => Confidence::Possible,
    };
    let rule = NAMES[4 + usize::from(!shared_writes)];
    let files = paths(&files, |file| file.misaligned);
    Some(weight.finding(run, (rule, confidence), message, remedy, files))
}

/// More bytes than the file is long. Shared files are read by every rank, others by one.
fn repeated(run: &Run<'_>, direction: Direction) -> Option<Finding> {
    let length = |file: &FileSum<'_>| file.way(direction).end.unwrap_or(0);
    let excess = |file: &FileSum<'_>| file.way(direction).bytes.saturating_sub(length(file));
    let files: Vec<&FileSum<'_>> = run
        .of_module(Module::Posix)
        .filter(|file| length(file) > 0 && excess(file) >= length(file).max(REPEATED_BYTES))
        .collect();
    let worst = files.iter().max_by_key(|file| excess(file))?;
    let part = |file: &FileSum<'_>| {
        let way = file.way(direction);
        let part = share(excess(file), way.bytes);
        ((way.calls as f64 * part) as u64, excess(file), part)
    };
    let weight = Weight::over(run, &files, part, |it| it.way(direction).ns);
    let times = worst.way(direction).bytes as f64 / length(worst) as f64;
    let (verb, remedy) = match direction {
        Direction::Read => (
            "read",
            "keep what was read; what all ranks need, one of them reads and broadcasts, or all read it \
             collectively",
        ),
        Direction::Write => ("written", "write the final state once, or fewer intermediate ones"),
    };
    let who = match worst.is_shared && worst.movers > 1 {
        true => format!(" by {} ranks together", worst.movers),
        false => String::new(),
    };
    let message = format!(
        "{} are {verb}{who} in a file used up to {}: {times:.1} times as much",
        format_bytes(worst.way(direction).bytes),
        format_bytes(length(worst))
    );
    let rule = NAMES[6 + usize::from(direction == Direction::Write)];
    let files = paths(&files, excess);
    Some(weight.finding(run, (rule, Confidence::Certain), message, remedy, files))
}

fn alternating(run: &Run<'_>) -> Option<Finding> {
    let files: Vec<&FileSum<'_>> = run
        .of_module(Module::Posix)
        .filter(|file| {
            file.switches >= HABIT_CALLS / 10 && share(file.switches, file.calls()) >= 0.1
        })
        .collect();
    let worst = files.iter().max_by_key(|file| file.switches)?;
    let part = |file: &FileSum<'_>| (file.switches, 0, share(file.switches, file.calls()).min(1.0));
    let weight = Weight::over(run, &files, part, Record::transfer_ns);
    let message = format!(
        "{} times a read follows a write or the other way round, in {} accesses",
        grouped(worst.switches),
        grouped(worst.calls())
    );
    let remedy =
        "read first, or write to another file: caches and locks have to change sides each time";
    let files = paths(&files, |file| file.switches);
    Some(weight.finding(run, (NAMES[8], Confidence::Possible), message, remedy, files))
}
