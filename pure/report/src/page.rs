//! One HTML file that opens on double click: a headline, tables, findings, charts, and a timeline of
//! one or more traces. Data in, bytes out.
//!
//! The file needs nothing else: no network, no second file, no server. The timeline is drawn by the
//! script of `tools/viewer`, which is built beforehand and embedded; it reads the traces from the
//! compact form of `docs/format/timeline.md` (about 4 bytes per event, a third more as base64).
//! Every number on the page is computed here or by the caller; the script only draws.
//!
//! ```
//! use iolab_report::page::{Page, Section, Table, Timeline, render};
//! use iolab_trace::{Event, Function, Trace};
//!
//! let trace = Trace { events: vec![Event::of(Function::WRITE)], ..Trace::default() };
//! let page = Page {
//!     title: "A study".into(),
//!     headline: "Write-back makes it 3.1 times faster.".into(),
//!     sections: vec![Section::Table(
//!         Table::new("Strategies", ["strategy", "measured"]).row(["null", "1.20 s"]),
//!     )],
//!     timelines: vec![Timeline::new("recorded", &trace)],
//!     ..Page::default()
//! };
//! let html = render(&page);
//! assert!(html.starts_with(b"<!doctype html>"));
//! ```

mod causes;
mod column;
mod comparison;
mod head;
mod html;
mod order;
mod overview;
mod range;
mod spent;
mod sums;
mod timeline;

use crate::chart::Chart;
use iolab_trace::Trace;

pub use crate::table::{Cell, Table, Tone};
pub use comparison::{compare, label};
pub use head::{Kind, span, zero};
pub use html::{PAGE_MAX, Rendered, render, render_within};
pub use range::{RangeTables, Sum, class_of, range};
pub use timeline::{encode, encode_in_cells};

/// A page, from top to bottom.
#[derive(Clone, Debug, Default)]
pub struct Page<'a> {
    /// Title of the window and first line.
    pub title: String,
    /// The one sentence to take home.
    pub headline: String,
    /// Small facts under the headline: `("host", "node05")`, `("command", "…")`.
    pub facts: Vec<(String, String)>,
    /// What follows. Without a `Section::Timeline` among them the timeline comes last.
    pub sections: Vec<Section>,
    /// Traces to draw above each other on one time axis.
    pub timelines: Vec<Timeline<'a>>,
}

/// A trace with the name its rows are given.
#[derive(Clone, Debug)]
pub struct Timeline<'a> {
    /// `recorded`, `simulated: write-back`, …
    pub label: String,
    /// What is drawn.
    pub trace: &'a Trace,
    /// The place in `Page::timelines` of the same run with its own times, where these are stretched: the page shows one
    /// of both, by the reader's choice.
    pub stretches: Option<usize>,
    /// Set where `trace` is a part of a larger one.
    pub part: Option<Part>,
    /// Rows of `trace` that stand as single calls, however large the page.
    pub kept: Vec<usize>,
}

/// Which part of a trace is on a page.
#[derive(Clone, Debug)]
pub struct Part {
    /// The number that each of its rows has in the whole trace.
    pub rows: Vec<u32>,
    /// How many rows of that are not in it, where some were chosen.
    pub left_out: Option<usize>,
}

impl<'a> Timeline<'a> {
    /// The whole of a trace with its own times.
    pub fn new(label: impl Into<String>, trace: &'a Trace) -> Timeline<'a> {
        Timeline { label: label.into(), trace, stretches: None, part: None, kept: Vec::new() }
    }

    /// The number that a row of it has in the whole trace.
    fn number(&self, row: u32) -> u32 {
        self.part.as_ref().map_or(row, |part| part.rows[row as usize])
    }
}

/// A part of a page.
#[derive(Clone, Debug)]
pub enum Section {
    /// A heading with paragraphs.
    Text {
        /// Heading, may be empty.
        title: String,
        /// Plain text, one paragraph each.
        paragraphs: Vec<String>,
    },
    /// A table.
    Table(Table),
    /// Findings, most important first.
    Findings(Vec<Finding>),
    /// Charts, as many beside each other as fit.
    Charts(Vec<Chart>),
    /// Where the timeline stands.
    Timeline,
}

/// Something that was found, with what supports it and what helps.
#[derive(Clone, Debug, Default)]
pub struct Finding {
    /// One line: `Tiny sequential writes to checkpoint.bin`.
    pub title: String,
    /// `Bad` for what costs most; shown as a mark beside the title.
    pub tone: Tone,
    /// What was seen, with numbers.
    pub evidence: String,
    /// What to do about it.
    pub remedy: String,
    /// What it would bring, may be empty: `predicted 3.1× faster (2.4 to 3.6)`.
    pub gain: String,
    /// Places in the timelines that show it.
    pub jumps: Vec<Jump>,
}

/// A place in a timeline.
#[derive(Clone, Debug, Default)]
pub struct Jump {
    /// What the button says: `the slowest call`, `all 12,288 writes`.
    pub label: String,
    /// Index into `Page::timelines`.
    pub timeline: usize,
    /// First moment shown, nanoseconds of the trace.
    pub start_ns: u64,
    /// Last moment shown.
    pub end_ns: u64,
    /// Row number in `Trace::events` of the event to select.
    pub row: Option<usize>,
    /// Text to put into the filter, so that only these calls stand out: a path or a function name.
    pub filter: String,
}

impl Jump {
    /// A jump to the events at these row numbers of `trace`, which is the page's timeline `timeline`;
    /// the first of them is selected. `None` when there is no such row.
    pub fn to_rows(
        label: impl Into<String>,
        timeline: usize,
        trace: &Trace,
        rows: impl IntoIterator<Item = usize>,
    ) -> Option<Jump> {
        let mut jump: Option<Jump> = None;
        for row in rows {
            let Some(event) = trace.events.get(row) else { continue };
            let jump = jump.get_or_insert_with(|| Jump {
                timeline,
                start_ns: event.start.0,
                end_ns: event.end.0,
                row: Some(row),
                ..Jump::default()
            });
            jump.start_ns = jump.start_ns.min(event.start.0);
            jump.end_ns = jump.end_ns.max(event.end.0);
        }
        jump.map(|jump| Jump { label: label.into(), ..jump })
    }

    /// What the address of a page of timelines ends in, behind `#`, to open with its row selected and with what is around
    /// it. `None` for a jump to no row.
    pub fn fragment(self) -> Option<String> {
        let Jump { timeline, start_ns, end_ns, row, .. } = self.widened();
        row.map(|row| format!("t={start_ns}..{end_ns}&call={timeline}.{row}"))
    }

    /// One call is a hairline; what is around it tells the story.
    pub(crate) fn widened(self) -> Jump {
        let span = self.end_ns.saturating_sub(self.start_ns);
        let around = span.max(1_000).saturating_mul(20);
        Jump {
            start_ns: self.start_ns.saturating_sub(around),
            end_ns: self.end_ns.saturating_add(around),
            ..self
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_jump_shows_twenty_times_what_it_points_at_on_either_side() {
        let shown = |start_ns, end_ns| {
            let jump = Jump { start_ns, end_ns, ..Jump::default() }.widened();
            (jump.start_ns, jump.end_ns)
        };
        assert_eq!(shown(1_000_000, 1_002_000), (960_000, 1_042_000));
        assert_eq!(shown(1_000_000, 1_000_010), (980_000, 1_020_010), "a call is seen");
        assert_eq!(shown(10_000, 12_000), (0, 52_000), "nothing is before the beginning");
    }
}
