//! A part of a trace: a stretch of time, some ranks, some files.

use crate::failure::Failure;
use crate::trace_file;
use clap::Args;
use iolab_policy::insitu::Selection;
use iolab_report::page::Part;
use iolab_trace::{Event, Trace};
use iolab_traces::Chosen;
use iolab_vocab::parse_seconds;
use std::ops::RangeInclusive;
use std::path::Path;

/// What of the traces is to be on the page.
#[derive(Args)]
pub(crate) struct Wanted {
    /// Only calls that end later: a time from the beginning of the trace, as the axis has it (1.5s, 20ms)
    #[arg(long, value_name = "TIME", value_parser = time)]
    from: Option<u64>,
    /// Only calls that begin earlier
    #[arg(long, value_name = "TIME", value_parser = time)]
    to: Option<u64>,
    /// Only calls of these ranks (0-63,70), and what parts of a simulated cluster did
    #[arg(long, value_name = "RANKS", value_parser = ranks)]
    ranks: Option<Ranks>,
    /// Only calls on files that match (a glob; without a slash of the last name alone); may be repeated
    #[arg(long, value_name = "GLOB")]
    files: Vec<String>,
}

/// Ranks, as they are written on the command line.
#[derive(Clone)]
struct Ranks(Vec<RangeInclusive<i32>>);

fn time(text: &str) -> Result<u64, String> {
    let seconds = parse_seconds(text).filter(|seconds| (0.0..1e10).contains(seconds));
    seconds
        .map(|seconds| (seconds * 1e9).round() as u64)
        .ok_or_else(|| "give a time with its unit, as 1.5s, 20ms or 300us".to_owned())
}

fn ranks(text: &str) -> Result<Ranks, String> {
    let number = |text: &str| text.parse::<i32>().ok().filter(|&rank| rank >= 0);
    let range = |part: &str| {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        Some(number(first)?..=number(last)?).filter(|range| !range.is_empty())
    };
    let parts: Option<Vec<_>> = text.split(',').map(range).collect();
    parts.map(Ranks).ok_or_else(|| "give ranks as 3, 0-63 or 0-7,32".to_owned())
}

impl Wanted {
    fn is_all(&self) -> bool {
        let Wanted { from, to, ranks, files } = self;
        from.is_none() && to.is_none() && ranks.is_none() && files.is_empty()
    }

    /// The trace at `path`, or what is wanted of it, and then which part that is.
    ///
    /// # Errors
    /// When it cannot be read, nothing is left, or the stretch of time ends before it begins.
    pub(crate) fn load(&self, name: &str, path: &Path) -> Result<(Trace, Option<Part>), Failure> {
        if self.is_all() {
            return Ok((trace_file::load(path)?, None));
        }
        let (from, to) = (self.from.unwrap_or(0), self.to.unwrap_or(u64::MAX));
        if from >= to {
            return Err(Failure::new("the stretch of time ends before it begins")
                .hint("--from is the earlier one, --to the later one"));
        }
        let source = trace_file::source(path)?;
        let between = match (self.from, self.to) {
            (None, None) => (0, u64::MAX),
            _ => {
                let first = source.first_start()?.map(|start| start.0);
                let zero = iolab_report::page::zero(source.header(), first);
                (zero.saturating_add(from), zero.saturating_add(to))
            }
        };
        let header = source.header();
        let ranks_of: Vec<i32> = header.processes.iter().map(|entry| entry.rank).collect();
        let files = Selection { paths: self.files.clone(), exclude: Vec::new() };
        let is_chosen_file: Vec<bool> =
            header.files.iter().map(|file| files.chooses(&file.path)).collect();
        let is_of_file = |event: &Event| {
            self.files.is_empty()
                || event
                    .file
                    .index()
                    .and_then(|file| is_chosen_file.get(file))
                    .is_some_and(|&it| it)
        };
        let is_of_rank = |event: &Event| match &self.ranks {
            None => true,
            Some(_) if event.function.layer().is_component() => true,
            Some(Ranks(ranges)) => ranks_of
                .get(event.process as usize)
                .is_some_and(|rank| ranges.iter().any(|range| range.contains(rank))),
        };
        let is_chosen = |event: &Event| is_of_rank(event) && is_of_file(event);
        let Chosen { trace, rows, of } = source.into_part(between, is_chosen)?;
        if rows.is_empty() {
            return Err(Failure::new(format!("nothing of {name} is in this part"))
                .hint("iolab report tells its length, its ranks and its files"));
        }
        let left_out = Some(of - rows.len());
        Ok((trace, Some(Part { rows, left_out })))
    }
}
