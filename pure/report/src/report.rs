//! The finished report: numbers, patterns and findings, ready to be written in any form.

use crate::analysis::{Analysis, ProcessState};
use crate::facts::{Facts, FileFacts};
use crate::findings::{Finding, judge};
use crate::objects::ObjectRow;
use crate::parts::{PartSums, cluster::Cluster};
use crate::pattern::{Pattern, SharedPattern};
use crate::sizes::Sizes;
use crate::stream::{Stream, StreamKey};
use crate::timeline::Timeline;
use crate::totals::Totals;
use iolab_trace::{Losses, Origin, Trace};
use iolab_vocab::Direction;
use serde::Serialize;

/// Everything `iolab report` knows about a run. Times are nanoseconds, sums over threads unless
/// said otherwise; calls inside other calls are counted once, in the outer one.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Report {
    /// The run in one line.
    pub summary: Summary,
    /// What is wrong, worst first.
    pub findings: Vec<Finding>,
    /// Totals per layer.
    pub layers: Vec<LayerRow>,
    /// Totals and patterns per file, the one that took longest first.
    pub files: Vec<FileRow>,
    /// What calls of HDF5 and NetCDF come to, by dataset and the rest of each file; empty without such calls.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub datasets: Vec<ObjectRow>,
    /// Where the time of calls on a simulated cluster went, if the trace says what caused what.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub parts: Option<PartSums>,
    /// I/O and the rest per process that did I/O.
    pub processes: Vec<ProcessRow>,
    /// How evenly the ranks share the work; none with fewer than two.
    pub balance: Option<Balance>,
    /// Sizes of reads that reach the system.
    pub read_sizes: Sizes,
    /// Sizes of writes that reach the system.
    pub write_sizes: Sizes,
    /// Bandwidth over time.
    pub timeline: Timeline,
    /// What the trace does not show.
    pub lacks: Lacks,
}

/// The run in one line.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[allow(missing_docs, reason = "each is what its name says")]
pub struct Summary {
    pub origin: Origin,
    pub command: Vec<String>,
    pub host: String,
    pub strategies: Vec<String>,
    /// What of the files' semantics they give up.
    pub given_up: Vec<String>,
    pub process_count: usize,
    pub rank_count: usize,
    pub file_count: usize,
    /// Rows of the trace.
    pub row_count: u64,
    /// Calls of the program, without those made inside others.
    pub call_count: u64,
    pub failed_count: u64,
    /// From the first moment seen to the last.
    pub run_ns: u64,
    pub io_ns: u64,
    pub read_ns: u64,
    pub write_ns: u64,
    pub metadata_ns: u64,
    pub read_bytes: u64,
    pub written_bytes: u64,
    /// Share of the I/O time in calls that move no data, 0 to 1.
    pub metadata_share: f64,
}

/// Totals of one layer; here inner calls do count, `nested_count` says how many there are.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[allow(missing_docs, reason = "each is what its name says")]
pub struct LayerRow {
    pub layer: &'static str,
    pub call_count: u64,
    pub nested_count: u64,
    pub failed_count: u64,
    pub read_bytes: u64,
    pub written_bytes: u64,
    pub time_ns: u64,
}

/// Totals and patterns of one file.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[allow(missing_docs, reason = "each is what its name says")]
pub struct FileRow {
    pub path: String,
    pub file_system: String,
    pub open_count: u64,
    pub read_count: u64,
    pub read_bytes: u64,
    pub write_count: u64,
    pub written_bytes: u64,
    pub metadata_count: u64,
    pub time_ns: u64,
    pub metadata_ns: u64,
    /// Calls that reached the system, also those inside library calls.
    pub system_read_count: u64,
    pub system_write_count: u64,
    pub process_count: usize,
    pub read_pattern: Option<SharedPattern>,
    pub write_pattern: Option<SharedPattern>,
    pub parts: Vec<PartRow>,
}

/// What one thread of one rank did to a file in one direction.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[allow(missing_docs, reason = "each is what its name says")]
pub struct PartRow {
    pub rank: i32,
    pub process: u32,
    pub thread: u32,
    /// `read` or `write`.
    pub direction: &'static str,
    pub count: u64,
    pub bytes: u64,
    pub time_ns: u64,
    /// Most frequent request size.
    pub request_bytes: u64,
    /// Share of requests that continue the one before, 0 to 1.
    pub consecutive_share: f64,
    pub first_offset: u64,
    pub end_offset: u64,
    pub pattern: Pattern,
}

/// I/O and the rest of one process.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[allow(missing_docs, reason = "each is what its name says")]
pub struct ProcessRow {
    pub name: String,
    pub rank: i32,
    pub pid: u32,
    pub threads: u32,
    /// How long it ran.
    pub run_ns: u64,
    /// Time in I/O calls, over its threads.
    pub io_ns: u64,
    pub metadata_ns: u64,
    /// Share of its run (times threads) in I/O, 0 to 1.
    pub io_share: f64,
    pub call_count: u64,
    pub read_bytes: u64,
    pub written_bytes: u64,
}

/// How evenly ranks share the work.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[allow(missing_docs, reason = "each is what its name says")]
pub struct Balance {
    pub io_ns_min: u64,
    pub io_ns_median: u64,
    pub io_ns_max: u64,
    pub slowest_rank: i32,
    pub bytes_min: u64,
    pub bytes_median: u64,
    pub bytes_max: u64,
}

/// What the trace does not show.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Lacks {
    /// Calls that were lost or left out, and what could not be seen.
    #[serde(flatten)]
    pub losses: Losses,
    /// Calls on streams that were only counted: their time is in no sum.
    pub counted_call_count: u64,
    /// Facts that were inferred.
    pub inferred: Vec<String>,
    /// Processes that ended without telling.
    pub cut_processes: Vec<String>,
}

impl Analysis {
    /// The report of a whole trace in memory.
    pub fn of(trace: &Trace) -> Report {
        Analysis::seen(trace).finish()
    }

    /// All of a trace has gone by.
    pub(crate) fn seen(trace: &Trace) -> Analysis {
        let mut analysis = Analysis::new(trace.header.clone());
        trace.events.iter().for_each(|event| analysis.observe(event));
        analysis.cluster = Cluster::of(trace);
        analysis
    }

    /// Draws the conclusions.
    pub fn finish(self) -> Report {
        Report::of(self)
    }
}

impl Report {
    fn of(analysis: Analysis) -> Report {
        let facts = Facts::of(&analysis);
        let mut files: Vec<FileRow> =
            facts.files.iter().map(|file| file_row(file, &facts)).collect();
        files.sort_by(|a, b| (b.time_ns, &a.path).cmp(&(a.time_ns, &b.path)));
        let processes = process_rows(&facts);
        Report {
            summary: summary(&facts, &processes),
            findings: judge(&facts),
            layers: layer_rows(&analysis),
            files,
            datasets: analysis.objects.rows(&analysis.header),
            parts: analysis.cluster.as_ref().map(|cluster| cluster.sums.clone()),
            balance: balance(&processes),
            processes,
            read_sizes: analysis.read_sizes.clone(),
            write_sizes: analysis.write_sizes.clone(),
            timeline: analysis.timeline.clone(),
            lacks: lacks(&analysis),
        }
    }
}

fn summary(facts: &Facts, processes: &[ProcessRow]) -> Summary {
    let analysis = facts.analysis;
    let mut total = Totals::default();
    for state in &analysis.processes {
        total.calls = total.calls.saturating_add(state.totals.calls);
        total.failed += state.totals.failed;
        total.reads.merge(state.totals.reads);
        total.writes.merge(state.totals.writes);
        total.metadata.merge(state.totals.metadata);
    }
    let mut ranks: Vec<i32> = processes.iter().map(|p| p.rank).filter(|&rank| rank >= 0).collect();
    ranks.sort_unstable();
    ranks.dedup();
    Summary {
        origin: analysis.header.origin,
        command: analysis.header.command.clone(),
        host: analysis.header.host.clone(),
        strategies: analysis.header.strategies.clone(),
        given_up: analysis.header.given_up.clone(),
        process_count: processes.len(),
        rank_count: ranks.len(),
        file_count: facts.files.len(),
        row_count: analysis.rows,
        call_count: total.calls,
        failed_count: total.failed,
        run_ns: facts.run_ns,
        io_ns: total.io_ns(),
        read_ns: total.reads.ns,
        write_ns: total.writes.ns,
        metadata_ns: total.metadata.ns,
        read_bytes: total.reads.bytes,
        written_bytes: total.writes.bytes,
        metadata_share: total.metadata.ns as f64 / total.io_ns().max(1) as f64,
    }
}

fn layer_rows(analysis: &Analysis) -> Vec<LayerRow> {
    let row = |(layer, totals): (&iolab_trace::Layer, &Totals)| LayerRow {
        layer: layer.name(),
        call_count: totals.calls,
        nested_count: totals.nested,
        failed_count: totals.failed,
        read_bytes: totals.reads.bytes,
        written_bytes: totals.writes.bytes,
        time_ns: totals.io_ns(),
    };
    analysis.layers.iter().map(row).collect()
}

fn file_row(file: &FileFacts, facts: &Facts) -> FileRow {
    let analysis = facts.analysis;
    let totals = analysis.files.get(file.index).copied().unwrap_or_default();
    let entry = analysis.header.files.get(file.index);
    let (reads, writes) = (file.all(Direction::Read), file.all(Direction::Write));
    let opens = match file.sum(|stream| stream.opens) {
        none if none.count == 0 => file.library_sum(|stream| stream.opens),
        some => some,
    };
    FileRow {
        path: file.path.to_owned(),
        file_system: entry.map(|entry| entry.file_system.clone()).unwrap_or_default(),
        open_count: opens.count,
        read_count: totals.reads.count,
        read_bytes: totals.reads.bytes,
        write_count: totals.writes.count,
        written_bytes: totals.writes.bytes,
        metadata_count: totals.metadata.count,
        time_ns: totals.io_ns(),
        metadata_ns: totals.metadata.ns,
        system_read_count: reads.count,
        system_write_count: writes.count,
        process_count: file.time_by_process(|stream| stream.opens).len(),
        read_pattern: file.shared_pattern(Direction::Read, facts),
        write_pattern: file.shared_pattern(Direction::Write, facts),
        parts: [Direction::Read, Direction::Write]
            .into_iter()
            .flat_map(|direction| part_rows(file, facts, direction))
            .collect(),
    }
}

fn part_rows(file: &FileFacts, facts: &Facts, direction: Direction) -> Vec<PartRow> {
    let row = |(key, stream): &(StreamKey, &Stream)| {
        let transfers = stream.transfers(direction)?;
        let span = transfers.detector.span?;
        Some(PartRow {
            rank: facts.analysis.processes[key.process as usize].rank,
            process: key.process,
            thread: key.thread,
            direction: if direction == Direction::Read { "read" } else { "write" },
            count: transfers.detector.count(),
            bytes: transfers.all.bytes,
            time_ns: transfers.all.ns,
            request_bytes: transfers.requests.top().map_or(0, |top| top.0),
            consecutive_share: transfers.detector.consecutive_share(),
            first_offset: span.offset,
            end_offset: span.end(),
            pattern: transfers.detector.pattern(),
        })
    };
    file.streams.iter().filter_map(row).collect()
}

fn process_rows(facts: &Facts) -> Vec<ProcessRow> {
    let states = facts.analysis.processes.iter().zip(&facts.wall_ns).enumerate();
    let row = |(index, (state, &run_ns)): (usize, (&ProcessState, &u64))| {
        let entry = facts.analysis.header.processes.get(index);
        let span = run_ns.saturating_mul(state.threads.max(1).into());
        ProcessRow {
            name: entry.map(|entry| entry.name.clone()).unwrap_or_default(),
            rank: state.rank,
            pid: entry.map_or(0, |entry| entry.pid),
            threads: state.threads,
            run_ns,
            io_ns: state.totals.io_ns(),
            metadata_ns: state.totals.metadata.ns,
            io_share: (state.totals.io_ns() as f64 / span.max(1) as f64).min(1.0),
            call_count: state.totals.calls,
            read_bytes: state.totals.reads.bytes,
            written_bytes: state.totals.writes.bytes,
        }
    };
    // Calls may take less than the clock shows, or nothing that was kept.
    states.filter(|(_, (state, _))| state.totals.calls > 0).map(row).collect()
}

fn balance(processes: &[ProcessRow]) -> Option<Balance> {
    let mut ranked: Vec<&ProcessRow> = processes.iter().filter(|p| p.rank >= 0).collect();
    if ranked.len() < 2 {
        return None;
    }
    let middle = (ranked.len() - 1) / 2;
    let bytes = |process: &ProcessRow| process.read_bytes.saturating_add(process.written_bytes);
    ranked.sort_by_key(|process| bytes(process));
    let (bytes_min, bytes_median, bytes_max) =
        (bytes(ranked[0]), bytes(ranked[middle]), bytes(ranked[ranked.len() - 1]));
    ranked.sort_by_key(|process| process.io_ns);
    let slowest = ranked[ranked.len() - 1];
    Some(Balance {
        io_ns_min: ranked[0].io_ns,
        io_ns_median: ranked[middle].io_ns,
        io_ns_max: slowest.io_ns,
        slowest_rank: slowest.rank,
        bytes_min,
        bytes_median,
        bytes_max,
    })
}

fn lacks(analysis: &Analysis) -> Lacks {
    let processes = analysis.header.processes.iter().zip(&analysis.processes);
    let cut = processes.filter(|(entry, state)| entry.ending == "cut" && !state.replaced);
    Lacks {
        losses: analysis.header.losses.clone(),
        counted_call_count: analysis.counted,
        inferred: analysis.header.inferred.clone(),
        cut_processes: cut.map(|(entry, _)| entry.name.clone()).collect(),
    }
}
