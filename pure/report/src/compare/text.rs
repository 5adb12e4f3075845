//! A comparison for people at a terminal, at most 100 columns wide.

use super::matching::Fate;
use super::{Amount, Comparison, Difference, Side, Sureness};
use crate::text::{duration, shortened, table, wrapped};
use crate::thousands::{grouped, of_calls};
use iolab_vocab::{format_bytes, printable};
use std::fmt::Write;

/// Lines of a list before it is cut.
const LISTED: usize = 10;
/// Columns of a sentence.
const SENTENCE_COLUMNS: usize = 70;

impl Comparison {
    /// The comparison on a terminal.
    pub fn text(&self) -> String {
        let mut text = side("A", &self.a) + &side("B", &self.b);
        text.push('\n');
        text.push_str(&self.time_table());
        let _ = writeln!(text, "\n{}", calls(&self.calls));
        if self.is_equal() {
            text.push_str("\nNo difference.\n");
        } else {
            text.push_str(&self.lists());
        }
        text.push_str(&self.functions_table());
        text.push_str(&self.process_table());
        text.push_str(&self.files());
        if !self.notes.is_empty() {
            text.push('\n');
        }
        for note in &self.notes {
            text.push_str(&hanging("note: ", note, 94));
        }
        text
    }

    fn lists(&self) -> String {
        let mut text = String::new();
        if self.differences.is_empty() {
            text.push_str("\nNo difference worth a word.\n");
        } else {
            text.push_str("\nDifferences, B less A, largest first\n");
            text.push_str(&list(&self.differences));
        }
        if !self.waiting.is_empty() {
            text.push_str("\nWaiting, which mostly follows from the above\n");
            text.push_str(&list(&self.waiting));
        }
        match self.lesser_count {
            0 => {}
            1 => text.push_str("  1 lesser difference is not named\n"),
            count => {
                _ = writeln!(text, "  {} lesser differences are not named", grouped(count as u64))
            }
        }
        text
    }

    fn time_table(&self) -> String {
        let of_side = |side: &Side| {
            let (least, most) = (side.run_ns.iter().min(), side.run_ns.iter().max());
            match (least, most) {
                (Some(&least), Some(&most)) if least != most => {
                    format!(
                        "{} ({} to {})",
                        duration(side.run_time()),
                        duration(least),
                        duration(most)
                    )
                }
                _ => duration(side.run_time()),
            }
        };
        let mut rows = vec![["A", "", "B", "", "difference", ""].map(str::to_owned)];
        let (a, b) = (self.a.run_time(), self.b.run_time());
        rows.push([
            of_side(&self.a),
            String::new(),
            of_side(&self.b),
            String::new(),
            change(a, b),
            "run time".to_owned(),
        ]);
        for share in &self.shares {
            rows.push([
                duration(share.a_ns),
                format!("{:.0} %", 100.0 * share.a_share),
                duration(share.b_ns),
                format!("{:.0} %", 100.0 * share.b_share),
                signed(super::matching::less(share.b_ns, share.a_ns)),
                format!("{}, all threads", share.what),
            ]);
        }
        let doubt =
            self.run_time_doubt().map_or_else(String::new, |doubt| format!("run time: {doubt}\n"));
        table(&rows, 5) + &doubt
    }

    /// How far the ratio of run times can be trusted, with several runs on both sides.
    pub(super) fn run_time_doubt(&self) -> Option<String> {
        let ends = self.run_ratio_interval?;
        let explained = match self.run_ratio_is_by_chance {
            Some(true) => ", which chance may explain",
            _ => "",
        };
        let factor = |value: f64| super::say::times(value);
        Some(format!(
            "{} as long ({} to {}, {}){explained}",
            factor(1.0 + self.slower_by()),
            factor(ends.low),
            factor(ends.high),
            ends.name()
        ))
    }

    fn functions_table(&self) -> String {
        let differs = |row: &&super::FunctionRow| {
            row.a.calls != row.b.calls || row.a.time_ns != row.b.time_ns
        };
        let shown: Vec<_> = self.functions.iter().filter(differs).collect();
        if shown.is_empty() {
            return String::new();
        }
        let titles = ["calls A", "calls B", "bytes A", "bytes B", "time A", "time B", "change", ""];
        let mut rows = vec![titles.map(str::to_owned)];
        for row in shown.iter().take(LISTED) {
            let bytes = |amount: &Amount| match amount.bytes {
                0 => "–".to_owned(),
                bytes => format_bytes(bytes),
            };
            rows.push([
                grouped(row.a.calls),
                grouped(row.b.calls),
                bytes(&row.a),
                bytes(&row.b),
                duration(row.a.time_ns),
                duration(row.b.time_ns),
                change(row.a.time_ns, row.b.time_ns),
                row.function.to_owned(),
            ]);
        }
        let title = match self.is_prediction() {
            true => "By kind of call: the change is the error of the simulation",
            false => "By kind of call",
        };
        let which = self.of_first_runs();
        format!("\n{title}{which}\n{}{}", table(&rows, 7), more(shown.len()))
    }

    fn process_table(&self) -> String {
        if self.processes.len() < 2 {
            return String::new();
        }
        let differs = |row: &&super::ProcessRow| {
            [row.calls_ns, row.waiting_ns, row.for_children_ns, row.outside_ns] != [0; 4]
        };
        let shown: Vec<_> = self.processes.iter().filter(differs).collect();
        if shown.is_empty() {
            return String::new();
        }
        let titles = ["A", "B", "calls", "waiting", "children", "outside", ""];
        let mut rows = vec![titles.map(str::to_owned)];
        for row in shown.iter().take(LISTED) {
            rows.push([
                duration(row.a_ns),
                duration(row.b_ns),
                signed(row.calls_ns),
                signed(row.waiting_ns),
                signed(row.for_children_ns),
                signed(row.outside_ns),
                match row.rank {
                    0.. => format!("rank {}", row.rank),
                    _ => shortened(&row.name, 30),
                },
            ]);
        }
        format!(
            "\nTime of threads by process, and what its difference is made of{}\n{}{}",
            self.of_first_runs(),
            table(&rows, 6),
            more(shown.len())
        )
    }

    fn files(&self) -> String {
        let mut text = String::new();
        for (at, pair) in self.renamed.iter().take(LISTED).enumerate() {
            if at == 0 {
                text.push_str("\nTaken for the same file\n");
            }
            text.push_str(&hanging("  ", &format!("{} = {}", pair.a, pair.b), 96));
        }
        text + &more(self.renamed.len())
    }
}

fn side(name: &str, side: &Side) -> String {
    let origin = format!("{:?}", side.origin).to_lowercase();
    let runs = match side.runs.as_slice() {
        [one] => one.clone(),
        all => format!("{} and {} more", all[0], all.len() - 1),
    };
    let strategies = match side.strategies.is_empty() {
        true => String::new(),
        false => format!(" · {}", side.strategies.join(" ")),
    };
    let text = format!(
        "{name}  {runs} · {origin}{strategies} · {} · {}",
        of_calls(side.call_count),
        side.command.join(" ")
    );
    shortened(&printable(text.trim_end_matches(" · ")), 100) + "\n"
}

fn calls(fate: &Fate) -> String {
    let mut parts = vec![format!("{} calls matched", grouped(fate.matched))];
    let mut add = |count: u64, words: &str| {
        if count > 0 {
            parts.push(format!("{} {words}", grouped(count)));
        }
    };
    add(fate.moved, "in another order");
    add(fate.changed, "of another size or place");
    add(fate.merged_from, &format!("merged into {}", grouped(fate.merged_to)));
    add(fate.split_from, &format!("split into {}", grouped(fate.split_to)));
    add(fate.vanished, "only in A");
    add(fate.came, "only in B");
    parts.join(", ")
}

/// The largest differences, and of the others those in the number of calls, which is sure.
fn list(differences: &[Difference]) -> String {
    let mut text = String::new();
    let sure = differences.iter().skip(LISTED).filter(|one| one.calls_differ).take(LISTED);
    let shown: Vec<&Difference> = differences.iter().take(LISTED).chain(sure).collect();
    for difference in &shown {
        let sure = match difference.time {
            Sureness::Seen => "seen",
            Sureness::Tested => "tested",
            Sureness::CallsOnly => "calls",
        };
        let head = format!(
            "  {:>10}  {:>4.0} %  {sure:<6}  ",
            signed(difference.difference_ns),
            100.0 * difference.share
        );
        text.push_str(&hanging(&head, &difference.sentence, SENTENCE_COLUMNS));
    }
    match differences.len() - shown.len() {
        0 => text,
        more => text + &format!("  … and {} more (--json lists all)\n", grouped(more as u64)),
    }
}

fn more(count: usize) -> String {
    match count.checked_sub(LISTED).filter(|&more| more > 0) {
        Some(more) => format!("  … and {} more (--json lists all)\n", grouped(more as u64)),
        None => String::new(),
    }
}

/// Lines that begin below the first one's text. A word longer than a line is cut at the front, as paths are.
fn hanging(head: &str, text: &str, columns: usize) -> String {
    let mut out = String::new();
    for (at, line) in wrapped(text, columns).iter().enumerate() {
        let indent = head.chars().count();
        let line = crate::text::shortened_path(line, columns);
        match at {
            0 => _ = writeln!(out, "{head}{line}"),
            _ => _ = writeln!(out, "{:indent$}{line}", ""),
        }
    }
    out
}

/// A difference of times with its sign.
pub(super) fn signed(ns: i64) -> String {
    match ns {
        0 => "–".to_owned(),
        1.. => format!("+{}", duration(ns.unsigned_abs())),
        _ => format!("-{}", duration(ns.unsigned_abs())),
    }
}

/// A relative change.
pub(super) fn change(a: u64, b: u64) -> String {
    match (a, b) {
        (one, other) if one == other => "–".to_owned(),
        (0, _) => "new".to_owned(),
        _ => format!("{:+.1} %", 100.0 * (b as f64 / a as f64 - 1.0)),
    }
}
