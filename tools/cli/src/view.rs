//! `iolab view`: traces as a timeline, in one HTML file that opens on double click.

mod part;

use crate::failure::Failure;
use crate::output::{Kind, Output};
use clap::Args;
use iolab_report::page::{Jump, PAGE_MAX, Page, Part, Rendered, compare, render_within};
use iolab_trace::Trace;
use iolab_vocab::{format_bytes, parse_bytes};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Write a page with the timelines of one or more traces on one time axis.
///
/// The page is one file that needs no network; open it with any browser. Of a large run, a part can be chosen.
#[derive(Args)]
pub(crate) struct Arguments {
    /// Traces, drawn in this order
    #[arg(required = true, value_name = "RUN.iot")]
    traces: Vec<PathBuf>,
    /// Where the page goes; `-` is stdout. Default: beside the first trace, ending in .html
    #[arg(short, long, value_name = "PAGE.html")]
    output: Option<PathBuf>,
    /// Print a link that opens the page at this row of the first trace (`row 17` of a report)
    #[arg(long, value_name = "row=N", value_parser = Place::parse)]
    at: Option<Place>,
    #[command(flatten)]
    wanted: part::Wanted,
    /// Write no page that is larger: of traces that do not fit, calls are added up in cells of time, all but those that
    /// failed and the longest; browsers open some tens of MiB within seconds [default: 64m]
    #[arg(long, value_name = "SIZE", value_parser = size)]
    max_size: Option<u64>,
}

fn size(text: &str) -> Result<u64, String> {
    parse_bytes(text).map_err(|error| error.to_string())
}

/// Where a page is to open.
#[derive(Clone, Copy)]
struct Place {
    /// Number of the row in the trace, from 0.
    row: usize,
}

impl Place {
    fn parse(text: &str) -> Result<Place, String> {
        let row = text.strip_prefix("row=").and_then(|number| number.parse().ok());
        row.map(|row| Place { row }).ok_or_else(|| "a place is row=N, N from 0".to_owned())
    }
}

pub(crate) fn run(arguments: &Arguments) -> Result<ExitCode, Failure> {
    let first = arguments.traces.first();
    let beside = first.map_or_else(PathBuf::new, |path| path.with_extension("html"));
    let inputs: Vec<&Path> = arguments.traces.iter().map(PathBuf::as_path).collect();
    let given = arguments.output.as_deref();
    let output = Output::named_or(given, &beside, "-o PAGE.html", Kind::Page, &inputs)?;
    let names: Vec<String> = arguments.traces.iter().map(|path| name_of(path)).collect();
    let (mut traces, mut parts) = (Vec::new(), Vec::new());
    for (name, path) in names.iter().zip(&arguments.traces) {
        let (trace, part) = arguments.wanted.load(name, path)?;
        traces.push(trace);
        parts.push(part);
    }
    let at = arguments.at.map(|place| find(place, &names[0], &traces[0], parts[0].as_ref()));
    let (kept, fragment) = at.transpose()?.unzip();
    let runs: Vec<(String, &Trace)> = names.into_iter().zip(&traces).collect();
    let mut page = compare(&runs);
    for (timeline, part) in page.timelines.iter_mut().zip(parts) {
        timeline.part = part;
    }
    page.timelines[0].kept.extend(kept);
    let Rendered { html, gathered_count } = fitting(&page, arguments.max_size.unwrap_or(PAGE_MAX))?;
    if gathered_count > 0 {
        let all: usize = page.timelines.iter().map(|timeline| timeline.trace.events.len()).sum();
        note(gathered_count, all);
    }
    write(output, &html, fragment.as_deref())?;
    Ok(ExitCode::SUCCESS)
}

/// The page, small enough to be written.
fn fitting(page: &Page<'_>, max_size: u64) -> Result<Rendered, Failure> {
    render_within(page, max_size).ok_or_else(|| {
        Failure::new(format!("not even sums of calls fit a page of {}", format_bytes(max_size)))
            .hint(
                "choose a part by --from and --to, --ranks or --files, or allow more by --max-size",
            )
    })
}

/// Says what of the traces does not stand as single calls.
fn note(gathered: usize, all: usize) {
    eprintln!(
        "note: {gathered} of {all} rows are added up in cells of time, to fit the page; for single ones choose a part by \
         --from and --to, --ranks or --files, or allow more by --max-size"
    );
}

/// Where a row of the first trace is among those of the page, and what the page's address ends in to open there.
fn find(
    Place { row }: Place,
    name: &str,
    trace: &Trace,
    part: Option<&Part>,
) -> Result<(usize, String), Failure> {
    let of = trace.events.len() + part.and_then(|part| part.left_out).unwrap_or(0);
    if row >= of {
        let hint = match of {
            0 => "it has no row".to_owned(),
            _ => format!("its rows are 0 to {}", of - 1),
        };
        return Err(Failure::new(format!("{name} has no row {row}")).hint(hint));
    }
    let place = match part {
        None => row,
        Some(part) => part.rows.binary_search(&(row as u32)).map_err(|_| {
            Failure::new(format!("row {row} of {name} is not in this part"))
                .hint("choose a larger part, or another row")
        })?,
    };
    let jump = Jump::to_rows("", 0, trace, [place]);
    let fragment = jump.and_then(|jump| Jump { row: Some(row), ..jump }.fragment());
    Ok((place, fragment.expect("the row is there")))
}

fn name_of(path: &Path) -> String {
    path.file_name().unwrap_or(path.as_os_str()).to_string_lossy().into_owned()
}

fn write(output: Output, page: &[u8], fragment: Option<&str>) -> Result<(), Failure> {
    let path = output.path().to_owned();
    if fragment.is_some() && path == Path::new("-") {
        return Err(Failure::new("a page on stdout has no address to open it at")
            .hint("leave out --at, or name a file by -o"));
    }
    output.write(page)?;
    match fragment {
        Some(fragment) => say_line!("{}#{fragment}", address(&path)),
        None if path != Path::new("-") => say_line!("{}", path.display()),
        None => {}
    }
    Ok(())
}

/// The address of a file, for a browser.
fn address(path: &Path) -> String {
    let absolute = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    let mut address = "file://".to_owned();
    for &byte in absolute.as_os_str().as_bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'/' | b'-' | b'_' | b'.' | b'~' => {
                address.push(byte.into());
            }
            _ => address.push_str(&format!("%{byte:02X}")),
        }
    }
    address
}
