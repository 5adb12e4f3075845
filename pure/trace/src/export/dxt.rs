//! Text as `darshan-dxt-parser` prints it, for Drishti, DXT Explorer and scripts written for them.
//!
//! It knows reads and writes only, in seconds with four decimals (as the parser prints), grouped by
//! file and rank. Nested calls are left out where the call around them stands in the same module.

use crate::{Class, Event, Header, Layer, Trace};
use std::collections::BTreeMap;
use std::io::{self, Write};

/// Calls of one rank on one file, writes before reads as the parser has them.
#[derive(Default)]
struct Segments<'a> {
    writes: Vec<&'a Event>,
    reads: Vec<&'a Event>,
}

/// Writes the whole text. A group needs its counts first, so the trace must be in memory.
pub fn dxt(trace: &Trace, mut sink: impl Write) -> io::Result<()> {
    heading(trace, &mut sink)?;
    let mut groups: BTreeMap<(u32, i32), Segments> = BTreeMap::new();
    let posix = trace.events.iter().filter(|event| event.function.layer() == Layer::Posix);
    for event in posix.filter(|event| event.result > 0 && event.file.index().is_some()) {
        // A program without ranks is one of rank 0, as Darshan has it.
        let group = groups.entry((event.file.0, event.rank.max(0))).or_default();
        match event.function.class() {
            Class::Write => group.writes.push(event),
            Class::Read => group.reads.push(event),
            _ => {}
        }
    }
    for ((file, rank), group) in &groups {
        if !group.writes.is_empty() || !group.reads.is_empty() {
            segments(&trace.header, *file as usize, *rank, group, &mut sink)?;
        }
    }
    Ok(())
}

fn heading(trace: &Trace, sink: &mut impl Write) -> io::Result<()> {
    let header = &trace.header;
    let ranks: Vec<i32> = header.processes.iter().map(|process| process.rank).collect();
    let rank_count = ranks.iter().max().map_or(1, |&rank| i64::from(rank.max(0)) + 1);
    let start_s = header.clock.zero_unix_ns / 1_000_000_000;
    let run_ns = trace.events.iter().map(|event| event.end.0).max().unwrap_or(0);
    writeln!(sink, "# darshan log version: 3.41")?;
    writeln!(sink, "# exe: {}", header.command.join(" "))?;
    writeln!(sink, "# nprocs: {rank_count}")?;
    writeln!(sink, "# start_time: {start_s}")?;
    writeln!(sink, "# end_time: {}", start_s + run_ns.div_ceil(1_000_000_000))?;
    writeln!(sink, "# run time: {:.4}", run_ns as f64 / 1e9)?;
    writeln!(
        sink,
        "# written by: iolab {} (times are exact to 1 ns in the .iot trace)",
        header.iolab_version
    )?;
    writeln!(sink, "\n# ***************************************************")?;
    writeln!(sink, "# DXT_POSIX module data")?;
    writeln!(sink, "# ***************************************************")
}

fn segments(
    header: &Header,
    file: usize,
    rank: i32,
    group: &Segments,
    sink: &mut impl Write,
) -> io::Result<()> {
    let entry = header.files.get(file);
    let path = entry.map_or("", |entry| entry.path.as_str());
    let file_system = entry.map_or("", |entry| entry.file_system.as_str());
    let mounts = header.mounts.keys().filter(|mount| path.starts_with(mount.as_str()));
    let mount = mounts.max_by_key(|mount| mount.len()).map_or("/", String::as_str);
    writeln!(sink, "\n# DXT, file_id: {file}, file_name: {path}")?;
    writeln!(sink, "# DXT, rank: {rank}, hostname: {}", header.host)?;
    let (writes, reads) = (group.writes.len(), group.reads.len());
    writeln!(sink, "# DXT, write_count: {writes}, read_count: {reads}")?;
    writeln!(sink, "# DXT, mnt_pt: {mount}, fs_type: {file_system}")?;
    writeln!(
        sink,
        "# Module    Rank  Wt/Rd  Segment          Offset       Length    Start(s)      End(s)"
    )?;
    for (verb, events) in [("write", &group.writes), ("read", &group.reads)] {
        for (number, event) in events.iter().enumerate() {
            writeln!(
                sink,
                " X_POSIX  {rank:>6} {verb:>6} {number:>8} {:>15} {:>12} {:>11.4} {:>11.4}",
                event.offset.max(0),
                event.result,
                event.start.seconds(),
                event.end.seconds()
            )?;
        }
    }
    Ok(())
}
