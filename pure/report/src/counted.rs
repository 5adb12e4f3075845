//! What may be said of a run of which only counters are known, as a log of Darshan has them: totals by
//! layer and file, sizes, shares of sequential accesses, balance among ranks, bytes over time, and what
//! the counters give reason to complain of.
//!
//! Single calls are not known, so no finding points at one; where a rule needs what only calls tell, its
//! confidence says so, and [`CountedReport::unknown`] lists what nobody can tell from counters.

mod balance;
mod calls;
mod csv;
mod data;
mod page;
mod sums;
mod text;

pub use csv::files as counted_csv;
pub use page::{page as counted_page, sections as counted_sections};
pub use text::{beside as counted_beside_trace, write as counted_text};

use crate::Finding;
use crate::findings::worst_first;
use iolab_trace::import::counted::{Counted, Module, SIZE_BOUNDS};
use iolab_vocab::format_bytes;
use serde::Serialize;
use sums::{FileSum, Run};

/// What a log of counters comes to.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct CountedReport {
    /// `iolab.counted/1`.
    pub schema: &'static str,
    /// The run.
    pub summary: CountedSummary,
    /// What is wrong, the worst first.
    pub findings: Vec<Finding>,
    /// A row for each module that counts calls.
    pub modules: Vec<ModuleRow>,
    /// A row for each module and file, the one that took longest first.
    pub files: Vec<CountedFile>,
    /// Ranks, the one that took longest first; what all ranks are counted in together is not in it.
    pub ranks: Vec<RankRow>,
    /// Upper bounds of the bins of sizes, the last one open.
    pub size_bounds: Vec<u64>,
    /// Bytes over time.
    pub heat: Vec<HeatRow>,
    /// What the log lacks.
    pub lacks: Vec<String>,
    /// What cannot be known from counters.
    pub unknown: Vec<String>,
}

/// A run as counters know it.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct CountedSummary {
    /// Command line.
    pub command: Vec<String>,
    /// Version of the log's format.
    pub log_format: String,
    /// Processes.
    pub rank_count: u32,
    /// From start to end.
    pub run_ns: u64,
    /// Unix time of the start.
    pub start_unix_ns: u64,
    /// Files.
    pub file_count: usize,
    /// Bytes read by POSIX calls and from streams; by MPI-IO where the log has nothing of POSIX.
    pub read_bytes: u64,
    /// Bytes written, likewise.
    pub written_bytes: u64,
    /// Time in these calls, over all ranks.
    pub io_ns: u64,
    /// The share of it that moved no data.
    pub metadata_share: f64,
}

/// What a module counted.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[allow(missing_docs)]
pub struct ModuleRow {
    pub module: &'static str,
    pub file_count: usize,
    /// Files counted for all ranks together.
    pub shared_file_count: usize,
    pub open_count: u64,
    pub read_count: u64,
    pub read_bytes: u64,
    pub write_count: u64,
    pub written_bytes: u64,
    /// Of reads and writes, collective ones.
    pub collective_count: u64,
    pub metadata_count: u64,
    pub read_ns: u64,
    pub write_ns: u64,
    pub metadata_ns: u64,
    /// Calls by size.
    pub read_sizes: [u64; 10],
    pub write_sizes: [u64; 10],
}

/// What a module counted of a file, over all ranks.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[allow(missing_docs)]
pub struct CountedFile {
    pub path: String,
    pub file_system: String,
    pub module: &'static str,
    /// Ranks that it was counted for; all, if it is shared.
    pub rank_count: u32,
    /// Whether all ranks are counted together.
    pub shared: bool,
    /// How many ranks moved its bytes, as far as their variance tells.
    pub mover_count: u32,
    pub open_count: u64,
    pub read_count: u64,
    pub read_bytes: u64,
    pub write_count: u64,
    pub written_bytes: u64,
    pub seek_count: u64,
    pub stat_count: u64,
    pub sync_count: u64,
    /// Share of reads behind the one before, 0 to 1; none if that is not counted.
    pub sequential_read_share: Option<f64>,
    pub sequential_write_share: Option<f64>,
    /// Share of reads right behind the one before.
    pub consecutive_read_share: Option<f64>,
    pub consecutive_write_share: Option<f64>,
    /// Collective reads and writes.
    pub collective_count: u64,
    pub misaligned_count: u64,
    pub alignment_bytes: u64,
    /// Most frequent sizes with how often, reads and writes together.
    pub common_sizes: Vec<(u64, u64)>,
    pub read_ns: u64,
    pub write_ns: u64,
    pub metadata_ns: u64,
    /// Of a shared file: the rank that took longest, its bytes and its time.
    pub slowest_rank: Option<(u32, u64, u64)>,
}

/// What was counted of a rank by itself.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
#[allow(missing_docs)]
pub struct RankRow {
    pub rank: u32,
    pub read_bytes: u64,
    pub written_bytes: u64,
    pub call_count: u64,
    pub time_ns: u64,
}

/// Bytes over time.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[allow(missing_docs)]
pub struct HeatRow {
    pub module: String,
    pub bin_ns: u64,
    pub read_bytes: Vec<u64>,
    pub written_bytes: Vec<u64>,
    /// How many ranks moved any.
    pub active_rank_count: usize,
}

impl CountedFile {
    /// Time in its calls, over all ranks.
    pub(crate) fn ns(&self) -> u64 {
        self.read_ns.saturating_add(self.write_ns).saturating_add(self.metadata_ns)
    }
}

impl RankRow {
    /// Bytes moved.
    fn bytes(&self) -> u64 {
        self.read_bytes.saturating_add(self.written_bytes)
    }
}

impl CountedReport {
    /// The report of a log.
    pub fn of(counted: &Counted) -> CountedReport {
        let run = Run::of(counted);
        let mut files: Vec<CountedFile> = run.files.iter().map(|file| file.row(&run)).collect();
        files.sort_by_key(|file| std::cmp::Reverse(file.ns()));
        CountedReport {
            schema: "iolab.counted/1",
            summary: summary(&run),
            findings: findings(&run),
            modules: modules(&run),
            files,
            ranks: run.ranks(),
            size_bounds: SIZE_BOUNDS.to_vec(),
            heat: heat(counted),
            lacks: counted.lacks.clone(),
            unknown: unknown(&run),
        }
    }

    /// Findings that no trace of single accesses could have, as it lacks opens, other calls without data,
    /// alignment, and what was collective.
    pub fn beside_trace(&self) -> impl Iterator<Item = &Finding> {
        let is_beyond = |rule: &str| {
            calls::NAMES.contains(&rule)
                || rule.starts_with("misaligned")
                || rule == "alternating-reads-and-writes"
        };
        self.findings.iter().filter(move |finding| is_beyond(finding.rule))
    }
}

/// Names of all rules on counters.
pub fn counted_rule_names() -> Vec<&'static str> {
    [data::NAMES, balance::NAMES, calls::NAMES].concat()
}

fn findings(run: &Run<'_>) -> Vec<Finding> {
    let mut findings = data::judge(run);
    findings.extend(balance::judge(run));
    findings.extend(calls::judge(run));
    worst_first(findings)
}

fn summary(run: &Run<'_>) -> CountedSummary {
    let counted = run.counted;
    let below: Vec<&FileSum<'_>> = run.below().collect();
    let sum = |value: fn(&FileSum<'_>) -> u64| {
        below.iter().map(|file| value(file)).fold(0, u64::saturating_add)
    };
    let (io_ns, metadata_ns) = (sum(|file| file.ns()), sum(|file| file.meta_ns));
    let paths: std::collections::BTreeSet<usize> = below.iter().map(|file| file.file).collect();
    CountedSummary {
        command: counted.command.clone(),
        log_format: counted.format.clone(),
        rank_count: counted.ranks,
        run_ns: counted.took_ns,
        start_unix_ns: counted.start_unix_ns,
        file_count: paths.len(),
        read_bytes: sum(|file| file.reads.bytes),
        written_bytes: sum(|file| file.writes.bytes),
        io_ns,
        metadata_share: metadata_ns as f64 / io_ns.max(1) as f64,
    }
}

fn modules(run: &Run<'_>) -> Vec<ModuleRow> {
    let mut rows: Vec<ModuleRow> = Vec::new();
    for file in &run.files {
        let module = file.module.name();
        let at = rows.iter().position(|row| row.module == module).unwrap_or_else(|| {
            rows.push(ModuleRow { module, ..ModuleRow::default() });
            rows.len() - 1
        });
        let row = &mut rows[at];
        row.file_count += 1;
        row.shared_file_count += usize::from(file.is_shared);
        let mut add = |into: fn(&mut ModuleRow) -> &mut u64, more: u64| {
            let into = into(row);
            *into = into.saturating_add(more);
        };
        add(|row| &mut row.open_count, file.opens);
        add(|row| &mut row.read_count, file.reads.calls);
        add(|row| &mut row.read_bytes, file.reads.bytes);
        add(|row| &mut row.write_count, file.writes.calls);
        add(|row| &mut row.written_bytes, file.writes.bytes);
        add(|row| &mut row.collective_count, file.collective());
        add(|row| &mut row.metadata_count, file.metadata_calls());
        add(|row| &mut row.read_ns, file.reads.ns);
        add(|row| &mut row.write_ns, file.writes.ns);
        add(|row| &mut row.metadata_ns, file.meta_ns);
        for bin in 0..10 {
            row.read_sizes[bin] = row.read_sizes[bin].saturating_add(file.reads.sizes[bin]);
            row.write_sizes[bin] = row.write_sizes[bin].saturating_add(file.writes.sizes[bin]);
        }
    }
    rows
}

fn heat(counted: &Counted) -> Vec<HeatRow> {
    let row = |heat: &iolab_trace::import::counted::Heat| HeatRow {
        module: heat.module.clone(),
        bin_ns: heat.bin_ns,
        read_bytes: heat.read.clone(),
        written_bytes: heat.written.clone(),
        active_rank_count: heat.by_rank.len(),
    };
    counted.heat.iter().map(row).collect()
}

fn unknown(run: &Run<'_>) -> Vec<String> {
    let mut unknown = vec![
        "single calls: their order, offsets and times; which of them were slow".to_owned(),
        "whether accesses of different ranks overlapped in time or in the file".to_owned(),
    ];
    if run.files.iter().any(|file| file.is_shared) {
        unknown.push(
            "what each rank did to files that all ranks opened: only the fastest and the slowest are \
             named, how many took part follows from the variance"
                .to_owned(),
        );
    }
    if run.counted.heat.is_empty() {
        unknown.push(
            "bytes over time: the log has no heat map (Darshan 3.4 on writes one)".to_owned(),
        );
    }
    let has = |module: Module| run.files.iter().any(|file| file.module == module);
    if has(Module::MpiIo) && !has(Module::Posix) {
        unknown.push(
            "what MPI-IO made of its calls below: the log has no counters of POSIX".to_owned(),
        );
    }
    unknown
}

/// What a bin of sizes is called.
pub(crate) fn bin_name(bin: usize) -> String {
    match (bin.checked_sub(1).and_then(|at| SIZE_BOUNDS.get(at)), SIZE_BOUNDS.get(bin)) {
        (None, Some(below)) => format!("up to {}", format_bytes(*below)),
        (Some(from), Some(to)) => format!("{} – {}", format_bytes(*from), format_bytes(*to)),
        (from, None) => format!("above {}", format_bytes(from.copied().unwrap_or(0))),
    }
}
