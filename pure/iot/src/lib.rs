//! The `.iot` trace file: Parquet in, Parquet out; and the Parquet tables of Recorder, which are only read.
//!
//! A trace is an ordinary Parquet file that DuckDB, Polars and pandas open as it is; what makes it
//! a trace is its columns and the header in its metadata, both described byte by byte in
//! `docs/format/trace.md`. Millions of rows are handled one row group at a time by [`Writer`] and
//! [`Reader`]; [`write`] and [`read`] do the whole of a small trace in memory.
//!
//! Promised: what was written comes back, and whatever happened to the file in between is an
//! [`IotError`] that names the offender, never a panic. Checksums over every byte give that promise,
//! because the Parquet library does panic on some damaged files (see `seal`). A trace rewritten by
//! another tool (DuckDB, say) has no checksums; it is read, but unprotected.

mod cause_columns;
mod columns;
mod error;
mod joined;
mod reader;
mod recorder_table;
mod seal;
mod writer;

pub use columns::GROUP_ROWS;
pub use error::IotError;
pub use joined::Joined;
pub use reader::{Group, Reader};
pub use recorder_table::{is_recorder_table, read_recorder_table};
pub use writer::Writer;

use iolab_trace::{Causes, Event, Trace};
use parquet::file::reader::ChunkReader;

/// Metadata key of the header's JSON.
pub const HEADER_KEY: &str = "iolab.header";

/// Writes a whole trace. Rows are sorted by (rank, process, thread, start) and parents follow; times
/// are rounded to the header's `clock.resolution_ns`.
pub fn write<W: std::io::Write + Send>(trace: &Trace, sink: W) -> Result<(), IotError> {
    if !trace.causes.is_empty() {
        return writer::write_with_causes(trace, sink);
    }
    let mut writer = Writer::new(sink)?;
    writer.round_times(trace.header.clock.resolution_ns);
    writer.append(&trace.events)?;
    writer.finish(&trace.header).map(drop)
}

/// Reads a whole trace into memory, about 100 bytes per event. Causes that cannot be are left out, which the
/// header then says.
pub fn read<R: ChunkReader + 'static>(source: R) -> Result<Trace, IotError> {
    let mut reader = Reader::new(source)?;
    let mut trace = whole(std::iter::from_fn(|| reader.next_group()))?;
    trace.header = reader.header().clone();
    trace.keep_possible_causes();
    Ok(trace)
}

/// The rows and causes of all groups.
fn whole(groups: impl Iterator<Item = Result<Group, IotError>>) -> Result<Trace, IotError> {
    let mut events = Vec::new();
    let causes = gather(groups, |mut rows| events.append(&mut rows))?;
    Ok(Trace { events, causes, ..Trace::default() })
}

/// The causes of all groups; the rows go to `take`.
fn gather(
    groups: impl Iterator<Item = Result<Group, IotError>>,
    mut take: impl FnMut(Vec<Event>),
) -> Result<Causes, IotError> {
    let mut first = 0;
    let mut pairs = [Vec::new(), Vec::new()];
    for group in groups {
        let Group { events, causes } = group?;
        for (links, pairs) in [&causes.begun_by, &causes.ended_by].into_iter().zip(&mut pairs) {
            pairs.extend(links.pairs().map(|(place, cause)| (first + place, cause)));
        }
        first += events.len() as u32;
        take(events);
    }
    Ok(cause_columns::causes(pairs))
}
