//! Counting: which calls, and how many bytes, come by a place of a stack. Nothing is changed, so two of
//! them, above and below a strategy, say what it makes of a program's calls.
//!
//! A call is counted when it comes by, with the bytes it asks for: what becomes of it is no matter. So a
//! stack need not step it ([`Strategy::note`]), and calls may be under way at a time. Whoever feeds the
//! stack asks for the counts at its end.

use super::null::memory_of;
use super::parameter::{Parameters, unknown};
use super::{Action, Call, Event, Interest, Stack, Strategy, StrategySpec};
use crate::machine::Machine;
use iolab_vocab::{Nanos, Refusal, format_bytes, printable};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

/// Name of the row in the catalogue.
pub(super) const NAME: &str = "count";
/// The longest name of a place: a segment of the run has room for so much.
pub const PLACE_BYTES: usize = 31;
/// Files of a place that lines are about.
const FILES_SHOWN: usize = 10;

/// Calls by kind, and bytes asked for; see [`Counts::KINDS`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts(pub [u64; Counts::KINDS.len()]);

impl Counts {
    /// What each number counts.
    pub const KINDS: [&str; 8] =
        ["opens", "reads", "bytes to read", "writes", "bytes to write", "seeks", "syncs", "others"];

    #[inline]
    fn add(&mut self, call: &Call) {
        let kind = match *call {
            Call::Open { .. } => 0,
            Call::Read { length, .. } => {
                self.0[2] = self.0[2].saturating_add(length);
                1
            }
            Call::Write { length, .. } => {
                self.0[4] = self.0[4].saturating_add(length);
                3
            }
            Call::Seek { .. } => 5,
            Call::Sync { .. } => 6,
            Call::Truncate { .. } | Call::Allocate { .. } | Call::Advise { .. } => 7,
            // The library's own, and what each open has one of.
            Call::Flush | Call::Settle | Call::Close => return,
        };
        self.0[kind] += 1;
    }

    /// What has been added since `before`.
    pub fn since(&self, before: &Counts) -> Counts {
        Counts(std::array::from_fn(|kind| self.0[kind].saturating_sub(before.0[kind])))
    }

    fn take(&mut self, more: &Counts) {
        self.0.iter_mut().zip(more.0).for_each(|(sum, more)| *sum = sum.saturating_add(more));
    }

    /// Calls of all kinds.
    pub fn calls(&self) -> u64 {
        [0, 1, 3, 5, 6, 7].into_iter().map(|kind| self.0[kind]).fold(0, u64::saturating_add)
    }
}

impl fmt::Display for Counts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [opens, reads, read_bytes, writes, written_bytes, seeks, syncs, others] = self.0;
        let calls = |count: u64, one: &str| match count {
            0 => None,
            1 => Some(format!("1 {one}")),
            count => Some(format!("{count} {one}s")),
        };
        let of = |bytes| format!(" of {}", format_bytes(bytes));
        let parts = [
            calls(opens, "open"),
            calls(reads, "read").map(|text| text + &of(read_bytes)),
            calls(writes, "write").map(|text| text + &of(written_bytes)),
            calls(seeks, "seek"),
            calls(syncs, "sync"),
            calls(others, "other call"),
        ];
        let parts: Vec<String> = parts.into_iter().flatten().collect();
        f.write_str(if parts.is_empty() { "no call" } else { "" })?;
        f.write_str(&parts.join(", "))
    }
}

/// What was counted, by place and file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Totals(BTreeMap<(String, String), Counts>);

impl Totals {
    /// Adds counts of a file at a place.
    pub fn add(&mut self, place: &str, file: &str, counts: &Counts) {
        self.0.entry((place.to_owned(), file.to_owned())).or_default().take(counts);
    }

    /// Adds what a stack that served this file has counted.
    pub fn take(&mut self, stack: &Stack, file: &str) {
        for (_, place, counts) in stack.counts() {
            self.add(place, file, counts);
        }
    }

    /// Adds what others counted.
    pub fn merge(&mut self, others: &Totals) {
        for ((place, file), counts) in &others.0 {
            self.add(place, file, counts);
        }
    }

    /// Whether nobody counts, or no file came by.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// For people: a line for each place, and of its files one for each of those with most calls.
    pub fn lines(&self) -> Vec<String> {
        let mut lines = Vec::new();
        let places: BTreeSet<&str> = self.rows().map(|row| row.0).collect();
        for place in places {
            let mut files: Vec<_> = self.rows().filter(|row| row.0 == place).collect();
            files.sort_by_key(|row| Reverse(row.2.calls()));
            let mut all = Counts::default();
            files.iter().for_each(|row| all.take(row.2));
            if files.len() > 1 {
                lines.push(format!("count {place}: {} files: {all}", files.len()));
            }
            let shown = files.iter().take(FILES_SHOWN);
            lines.extend(shown.map(|(_, file, counts)| match *file {
                "" => format!("count {place}: further files: {counts}"),
                file => format!("count {place}: {}: {counts}", printable(file)),
            }));
            if let Some(more) = files.len().checked_sub(FILES_SHOWN).filter(|&more| more > 0) {
                lines.push(format!("count {place}: {more} more files, with fewer calls each"));
            }
        }
        lines
    }

    /// Place, file and counts, by place and file.
    pub fn rows(&self) -> impl Iterator<Item = (&str, &str, &Counts)> {
        self.0.iter().map(|((place, file), counts)| (place.as_str(), file.as_str(), counts))
    }
}

/// See the module.
#[derive(Clone, Debug)]
pub struct Count {
    place: String,
    counts: Counts,
}

impl Count {
    /// Reads `name=WORD`.
    pub fn parse(parameters: &Parameters) -> Result<Count, Refusal> {
        let mut place = NAME.to_owned();
        for (key, value) in parameters {
            match key.as_str() {
                "name" => place = word(value)?,
                _ => return Err(unknown(key, "name, paths, exclude")),
            }
        }
        Ok(Count { place, counts: Counts::default() })
    }
}

fn word(value: &str) -> Result<String, Refusal> {
    let fits = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
    match !value.is_empty() && value.len() <= PLACE_BYTES && value.chars().all(fits) {
        true => Ok(value.to_owned()),
        false => Err(Refusal {
            message: format!("name: `{value}` is no name for a place"),
            hint: format!("write up to {PLACE_BYTES} letters, digits, `-`, `_` and `.`"),
        }),
    }
}

/// Names each place that has no name yet by what stands beside it; `stack` is top first.
pub(super) fn named(mut stack: Vec<StrategySpec>) -> Vec<StrategySpec> {
    for at in 0..stack.len() {
        let has_name = stack[at].parameters.iter().any(|(key, _)| key == "name");
        if stack[at].name != NAME || has_name {
            continue;
        }
        let works = |spec: &&StrategySpec| spec.name != NAME;
        let (above, below) =
            (stack[..at].iter().rev().find(works), stack[at + 1..].iter().find(works));
        let place = match (above, below) {
            (_, Some(below)) => format!("above-{}", below.name),
            (Some(above), None) => format!("below-{}", above.name),
            (None, None) => "program".to_owned(),
        };
        let is_taken = |name: &String| {
            stack
                .iter()
                .any(|spec| spec.parameters.iter().any(|it| it.0 == "name" && it.1 == *name))
        };
        let mut names = std::iter::once(place.clone()).chain((2..).map(|n| format!("{place}-{n}")));
        let name = names.find(|name| !is_taken(name)).expect("there is no end of numbers");
        stack[at] = stack[at].with_parameter("name", name);
    }
    stack
}

impl Machine for Count {
    type Event = Event;
    type Action = Action;

    fn step(&mut self, _now: Nanos, event: Event, out: &mut Vec<Action>) {
        match event {
            Event::Arrived { handle, call } => {
                self.note(&call);
                out.push(Action::Perform { handle, call, memory: memory_of(call) });
            }
            Event::Performed(outcome) => out.push(Action::Answer(outcome)),
            Event::Woke | Event::Ended(_) => unreachable!("who counts never asks to be woken"),
        }
    }
}

impl Strategy for Count {
    fn passes(&self) -> Interest {
        Interest::EVERYTHING
    }

    #[inline]
    fn note(&mut self, call: &Call) {
        self.counts.add(call);
    }

    fn counts(&self) -> Option<(&str, &Counts)> {
        Some((&self.place, &self.counts))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::insitu::{At, Handle};

    #[test]
    fn a_place_is_named_by_what_stands_beside_it() {
        let names = |text: &str| {
            let stack = StrategySpec::parse_all(text).unwrap();
            let texts = stack.iter().filter(|spec| spec.name == NAME).map(|spec| spec.text.clone());
            texts.collect::<Vec<_>>().join(" ")
        };
        assert_eq!(names("count"), "count:name=program");
        assert_eq!(
            names("count + write-back + count:paths=*.x"),
            "count:name=above-write-back count:name=below-write-back,paths=*.x"
        );
        assert_eq!(names("count + count"), "count:name=program count:name=program-2");
        assert_eq!(names("count:name=a + null"), "count:name=a");
        let once = StrategySpec::parse_all("count + null").unwrap();
        let again = StrategySpec::parse_all(&StrategySpec::join(&once)).unwrap();
        assert_eq!(again, once, "who gets the text has the same names");
    }

    #[test]
    fn a_name_that_could_not_be_told_is_refused() {
        for name in ["", "a b", "a/b", "é", &"x".repeat(32)] {
            let refused = StrategySpec::parse(&format!("count:name={name}")).unwrap_err();
            assert!(refused.message.contains("name: "), "{refused}");
        }
        assert!(StrategySpec::parse("count:place=1").is_err());
    }

    #[test]
    fn calls_and_bytes_asked_for_are_counted_by_kind() {
        let mut count = Count::parse(&[]).unwrap();
        let at = At::Offset(7);
        let calls = [
            Call::Read { at, length: 10 },
            Call::Write { at, length: 5 },
            Call::Write { at: At::Position, length: u64::MAX },
            Call::Sync { data_only: true },
            Call::Truncate { length: 3 },
            Call::Settle,
            Call::Close,
        ];
        for call in calls {
            let mut out = Vec::new();
            count.step(Nanos::ZERO, Event::Arrived { handle: Handle(0), call }, &mut out);
            assert_eq!(out.len(), 1);
        }
        let counts = *count.counts().unwrap().1;
        assert_eq!(counts.0, [0, 1, 10, 2, u64::MAX, 0, 1, 1]);
        assert_eq!(counts.calls(), 5);
        let mut totals = Totals::default();
        totals.add("a", "f", &counts);
        totals.add("a", "f", &counts.since(&Counts::default()));
        assert_eq!(totals.rows().next().unwrap().2.0[1], 2);
    }

    #[test]
    fn lines_show_the_sum_of_a_place_and_the_files_with_most_calls() {
        let mut totals = Totals::default();
        let writes = |count| Counts([1, 0, 0, count, count * 64, 0, 1, 0]);
        totals.add("below", "/a", &Counts::default());
        totals.add("above", "/a", &writes(1));
        assert_eq!(
            totals.lines(),
            ["count above: /a: 1 open, 1 write of 64 B, 1 sync", "count below: /a: no call"]
        );
        (0..20).for_each(|number| totals.add("above", &format!("/{number}"), &writes(number)));
        let lines = totals.lines();
        assert!(lines[0].starts_with("count above: 21 files: 21 opens, 191 writes"), "{lines:?}");
        assert!(lines[1].starts_with("count above: /19: 1 open, 19 writes"), "{lines:?}");
        assert_eq!(lines[11], "count above: 11 more files, with fewer calls each");
        assert_eq!(lines.len(), 13);
        let mut named = Totals::default();
        named.add("above", "/a\nb", &writes(1));
        assert_eq!(named.lines(), ["count above: /a\\nb: 1 open, 1 write of 64 B, 1 sync"]);
    }
}
