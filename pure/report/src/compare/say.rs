//! Differences and what else to know of a comparison, in sentences.

use super::cells::{Amount, FOLDED, Key, What};
use super::matching::Fate;
use super::{Comparison, Difference, Run};
use crate::text::{duration, signed_percent};
use crate::thousands::grouped;
use iolab_trace::Class;
use iolab_vocab::format_bytes;

/// The kind of a difference, in a word for programs.
pub(super) fn kind(
    what: What,
    a: &Amount,
    b: &Amount,
    fate: Fate,
    calls_differ: bool,
    difference_ns: i64,
) -> &'static str {
    let has_calls = matches!(what, What::Calls(_) | What::Waiting(_));
    match (a.calls, b.calls) {
        (_, 0) if has_calls => "vanished",
        (0, _) if has_calls => "came",
        (one, other) if has_calls && calls_differ => match () {
            () if fate.merged_from * 2 > one.saturating_sub(other) && one > other => "merged",
            () if fate.split_to * 2 > other.saturating_sub(one) && other > one => "split",
            () if one > other => "fewer-calls",
            () => "more-calls",
        },
        _ if difference_ns > 0 => "slower",
        _ => "faster",
    }
}

/// A difference in one sentence; moments are told from `zero` on.
pub(super) fn sentence(key: Key, difference: &Difference, zero: u64) -> String {
    let subject = subject(key, difference);
    let (a, b) = (&difference.a, &difference.b);
    let calls = |count: u64| match count {
        1 => "1 call".to_owned(),
        count => format!("{} calls", grouped(count)),
    };
    let mut text = match difference.kind {
        "vanished" => format!("{subject}: only in A, {}", calls(a.calls)),
        "came" => format!("{subject}: only in B, {}", calls(b.calls)),
        "merged" | "split" => {
            let word = if difference.kind == "merged" { "merged" } else { "split" };
            let size = |bytes: u64, calls: u64| format_bytes(bytes / calls.max(1));
            format!(
                "{subject}: {} {word} into {}, {} → {} each",
                calls(a.calls),
                grouped(b.calls),
                size(a.bytes, a.calls),
                size(b.bytes, b.calls)
            )
        }
        "fewer-calls" | "more-calls" => {
            format!("{subject}: {} → {} calls", grouped(a.calls), grouped(b.calls))
        }
        _ => match difference.ratio {
            Some(ratio) => {
                let ends = difference.ratio_interval.map_or_else(String::new, |ends| {
                    format!(" ({} to {}, {})", times(ends.low), times(ends.high), ends.name())
                });
                format!("{subject}: {} as long{ends}", times(ratio))
            }
            None => subject,
        },
    };
    let is_matched = matches!(difference.kind, "slower" | "faster");
    if let (Some(one), Some(other), true) = (a.bytes_per_second, b.bytes_per_second, is_matched) {
        text += &format!(", {}/s → {}/s", format_bytes(one as u64), format_bytes(other as u64));
    } else if is_matched && a.calls > 1 && b.calls > 1 {
        let each = |time: u64, calls: u64| duration(time / calls);
        text += &format!(", {} → {} each", each(a.time_ns, a.calls), each(b.time_ns, b.calls));
    }
    if a.functions != b.functions && !a.functions.is_empty() && !b.functions.is_empty() {
        text += &format!(", by {} → {}", a.functions.join(" and "), b.functions.join(" and "));
    }
    if let (Some(process), true) = (&difference.process, key.what != What::Outside) {
        text += &format!(", most of it in {process}");
    }
    if let Some(stretch) = difference.stretch {
        let at = |moment: u64| duration(moment.saturating_sub(zero));
        text += &format!(", from {} to {} of A", at(stretch.start_ns), at(stretch.end_ns));
    }
    text
}

/// A factor with the digits that mean something.
pub(super) fn times(ratio: f64) -> String {
    match ratio {
        100.0.. => format!("{ratio:.0}×"),
        10.0.. => format!("{ratio:.1}×"),
        0.1.. => format!("{ratio:.2}×"),
        _ => format!("{ratio:.4}×"),
    }
}

fn subject(key: Key, difference: &Difference) -> String {
    let is_folded = key.place == FOLDED;
    match key.what {
        What::Calls(class) => {
            let (noun, joint) = noun(class);
            match difference.file.as_str() {
                "" if is_folded => format!("{noun} {joint} other files"),
                "" => noun.to_owned(),
                path => format!("{noun} {joint} {path}"),
            }
        }
        What::Waiting(function) => format!("waiting in {}", function.name()),
        What::ForChildren => "waiting for child processes".to_owned(),
        What::Outside if is_folded => "outside of calls in other processes".to_owned(),
        What::Outside => {
            format!("outside of calls in {}", difference.process.as_deref().unwrap_or("?"))
        }
    }
}

/// Calls of a class, and how they relate to their file.
fn noun(class: Class) -> (&'static str, &'static str) {
    match class {
        Class::Open => ("opens", "of"),
        Class::Close => ("closes", "of"),
        Class::Read => ("reads", "of"),
        Class::Write => ("writes", "to"),
        Class::Seek => ("seeks", "in"),
        Class::Sync => ("syncs", "of"),
        Class::Flush => ("flushes", "of"),
        Class::Truncate => ("truncations", "of"),
        Class::Allocate => ("allocations", "in"),
        Class::Advise => ("advice", "on"),
        Class::Dup => ("duplications", "of"),
        Class::Lock => ("locks", "of"),
        Class::Control => ("controls", "of"),
        Class::Attribute => ("changes of attributes", "of"),
        Class::Map | Class::Unmap => ("mappings", "of"),
        Class::Copy => ("copies", "of"),
        Class::Stat => ("stats", "of"),
        Class::Rename => ("renames", "of"),
        Class::Unlink => ("removals", "of"),
        Class::MakeDirectory | Class::RemoveDirectory | Class::ListDirectory => {
            ("directory calls", "on")
        }
        Class::Process => ("starting processes", "from"),
        Class::Message | Class::Collective => ("messages", "on"),
        Class::Unseen | Class::Compute | Class::Piece | Class::Decision => ("other calls", "on"),
    }
}

/// What else to know.
pub(super) fn notes(found: &Comparison, a: &[Run], b: &[Run], too_few: bool) -> Vec<String> {
    let mut notes = Vec::new();
    if found.is_equal() {
        // Nothing is left to doubt.
    } else if a.len() == 1 && b.len() == 1 {
        notes.push(
            "one run on each side: numbers of calls are sure, times may differ by chance \
             (--with compares several runs of each)"
                .to_owned(),
        );
    } else if a.len() == 1 || b.len() == 1 {
        notes.push("one run on one side: times are not tested, give at least two".to_owned());
    } else if too_few {
        notes.push(format!(
            "{} against {} runs are too few to test so many differences; of those called seen, all runs of one \
             side take longer than all of the other",
            a.len(),
            b.len()
        ));
    }
    let [first_a, first_b] = [&a[0], &b[0]];
    for (side, count) in [("A", found.a.call_count), ("B", found.b.call_count)] {
        if count == 0 {
            notes.push(format!("{side} has no call"));
        }
    }
    if found.common_file_count == 0 && found.a.call_count > 0 && found.b.call_count > 0 {
        notes.push("no file is in both: these may be runs of different programs".to_owned());
    }
    if found.a.rank_count != found.b.rank_count {
        notes.push(format!(
            "A has {} ranks and B {}: ranks are matched by their number, the others have no counterpart",
            found.a.rank_count, found.b.rank_count
        ));
    }
    for (side, run) in [("A", first_a), ("B", first_b)] {
        let lost = run.trace.header.losses.lost_calls.values();
        let lost = lost.copied().fold(0, u64::saturating_add);
        if lost > 0 {
            notes.push(format!("{side} lost {} calls, which are seen as missing", grouped(lost)));
        }
    }
    if found.is_prediction() {
        notes.extend(model_error(found));
    }
    notes
}

/// Which kind of call a simulation gets most wrong, of those a run has.
fn model_error(found: &Comparison) -> Option<String> {
    let row = found.functions.iter().find(|row| row.a.calls > 0 && row.b.calls > 0)?;
    let is_b_simulated = found.b.origin == iolab_trace::Origin::Simulated;
    let (real, model) = if is_b_simulated { (&row.a, &row.b) } else { (&row.b, &row.a) };
    if real.time_ns == model.time_ns {
        return Some("the simulation has the time of every kind of call".to_owned());
    }
    let error = match real.time_ns {
        0 => String::new(),
        ns => format!(" ({})", signed_percent(model.time_ns as f64 / ns as f64 - 1.0)),
    };
    Some(format!(
        "the simulation is furthest off in {}: {} instead of {}{error}",
        row.function,
        duration(model.time_ns),
        duration(real.time_ns)
    ))
}
