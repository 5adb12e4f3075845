//! A comparison as a page: the differences with jumps, tables, and the timelines, also with the second run
//! stretched onto the first.

use super::stretch::stretched;
use super::text::{change, signed};
use super::{Comparison, Difference, Run, Side, Sureness};
use crate::page::{Cell, Finding, Jump, Page, Section, Table, Timeline, Tone, render};
use crate::text::duration;
use crate::thousands::grouped;
use iolab_trace::Trace;

impl Comparison {
    /// The page as the bytes of one HTML file; the runs are the first ones of both sides.
    pub fn page(&self, a: &Run, b: &Run) -> Vec<u8> {
        let laid_over = stretched(a.trace, b.trace);
        let mut timelines = vec![
            Timeline::new(format!("A: {}", a.name), a.trace),
            Timeline::new(format!("B: {}", b.name), b.trace),
        ];
        let label = "B stretched: calls stand below those of A, lengths are those of A";
        let of_b = Some(timelines.len() - 1);
        timelines.extend(
            laid_over
                .iter()
                .map(|trace| Timeline { stretches: of_b, ..Timeline::new(label, trace) }),
        );
        let found = |difference: &Difference| finding(difference, [a.trace, b.trace]);
        let findings = self.differences.iter().chain(&self.waiting).map(found).collect();
        let mut sections = vec![
            Section::Findings(findings),
            Section::Timeline,
            Section::Table(self.page_times()),
            Section::Table(self.page_functions()),
        ];
        if !self.notes.is_empty() {
            let title = "What else to know".to_owned();
            sections.push(Section::Text { title, paragraphs: self.notes.clone() });
        }
        let fact = |name: &str, side: &Side| (name.to_owned(), side.runs.join(", "));
        render(&Page {
            title: format!("{} against {}", b.name, a.name),
            headline: self.headline(),
            facts: vec![
                fact("A", &self.a),
                fact("B", &self.b),
                ("calls matched".to_owned(), grouped(self.calls.matched)),
            ],
            sections,
            timelines,
        })
    }

    fn headline(&self) -> String {
        let (a, b) = (self.a.run_time(), self.b.run_time());
        let doubt = self.run_time_doubt().unwrap_or_else(|| change(a, b));
        let times = format!("A took {}, B {}: {doubt}", duration(a), duration(b));
        match self.reason() {
            _ if self.is_equal() => "No difference.".to_owned(),
            Some(reason) => format!("{times}. The largest difference: {reason}."),
            None => format!("{times}. No difference worth a word."),
        }
    }

    fn page_times(&self) -> Table {
        let mut table = Table::new(
            "Where the time went",
            ["time of all threads", "A", "", "B", "", "difference"],
        );
        for share in &self.shares {
            table.push([
                Cell::from(share.what),
                Cell::from(duration(share.a_ns)),
                Cell::bar(format!("{:.0} %", 100.0 * share.a_share), share.a_share),
                Cell::from(duration(share.b_ns)),
                Cell::bar(format!("{:.0} %", 100.0 * share.b_share), share.b_share),
                Cell::from(signed(super::matching::less(share.b_ns, share.a_ns))),
            ]);
        }
        table
    }

    fn page_functions(&self) -> Table {
        let columns = ["function", "calls A", "calls B", "time A", "time B", "change"];
        let title = format!("By kind of call{}", self.of_first_runs());
        let mut table = Table::new(&title, columns);
        for row in &self.functions {
            table.push([
                row.function.to_owned(),
                grouped(row.a.calls),
                grouped(row.b.calls),
                duration(row.a.time_ns),
                duration(row.b.time_ns),
                change(row.a.time_ns, row.b.time_ns),
            ]);
        }
        table
    }
}

fn finding(difference: &Difference, traces: [&Trace; 2]) -> Finding {
    let sure = match difference.time {
        Sureness::Seen => "seen, not tested",
        Sureness::Tested => "tested: chance does not explain it",
        Sureness::CallsOnly => "the number of calls is sure, of the time nothing can be said",
    };
    let jumps = (0..).zip(["show in A", "show in B"]).zip(traces).zip(difference.rows);
    let jumps = jumps.filter_map(|(((timeline, label), trace), row)| {
        let jump = Jump::to_rows(label, timeline, trace, row)?;
        Some(Jump { filter: difference.file.clone(), ..jump }.widened())
    });
    Finding {
        title: difference.sentence.clone(),
        tone: match difference.difference_ns {
            1.. => Tone::Bad,
            _ => Tone::Good,
        },
        evidence: format!(
            "{} ({} → {}, {:.0} % of all differences; {sure})",
            signed(difference.difference_ns),
            duration(difference.a.time_ns),
            duration(difference.b.time_ns),
            100.0 * difference.share
        ),
        jumps: jumps.collect(),
        ..Finding::default()
    }
}
