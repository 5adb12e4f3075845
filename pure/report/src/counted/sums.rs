//! Records of a log, summed by module and file, and what share of a run something takes.

use super::{CountedFile, RankRow};
use crate::findings::{Confidence, Evidence, Finding, Remedy, Severity};
use iolab_trace::import::counted::{Counted, Module, Record, Way};
use iolab_vocab::Direction;
use std::collections::BTreeMap;

/// A log with its sums.
pub(super) struct Run<'a> {
    pub(super) counted: &'a Counted,
    /// By module and file.
    pub(super) files: Vec<FileSum<'a>>,
}

/// What a module counted of a file, over all ranks.
pub(super) struct FileSum<'a> {
    pub(super) module: Module,
    /// Its place in the log.
    pub(super) file: usize,
    pub(super) path: &'a str,
    pub(super) records: Vec<&'a Record>,
    /// Whether there is a record of all ranks together.
    pub(super) is_shared: bool,
    pub(super) reads: Way,
    pub(super) writes: Way,
    /// Ranks that moved its bytes.
    pub(super) movers: u32,
    pub(super) opens: u64,
    pub(super) seeks: u64,
    pub(super) stats: u64,
    pub(super) syncs: u64,
    pub(super) switches: u64,
    pub(super) misaligned: u64,
    pub(super) alignment: u64,
    pub(super) meta_ns: u64,
}

impl<'a> Run<'a> {
    pub(super) fn of(counted: &'a Counted) -> Run<'a> {
        let mut places: BTreeMap<(Module, usize), Vec<&Record>> = BTreeMap::new();
        for record in &counted.records {
            places.entry((record.module, record.file)).or_default().push(record);
        }
        let files = places.into_iter().map(|((module, file), records)| {
            FileSum::of(module, file, &counted.files[file].path, records, counted.ranks)
        });
        Run { counted, files: files.collect() }
    }

    /// What reached the file systems.
    pub(super) fn below(&self) -> impl Iterator<Item = &FileSum<'a>> {
        self.files.iter().filter(|file| self.counted.is_lowest(file.module))
    }

    pub(super) fn of_module(&self, module: Module) -> impl Iterator<Item = &FileSum<'a>> {
        self.files.iter().filter(move |file| file.module == module)
    }

    /// Every rank that something was counted for alone, the one that took longest first.
    pub(super) fn ranks(&self) -> Vec<RankRow> {
        self.ranks_in(|_| true)
    }

    /// The same, of some files.
    pub(super) fn ranks_in(&self, is_meant: impl Fn(&FileSum<'_>) -> bool) -> Vec<RankRow> {
        let mut rows: BTreeMap<u32, RankRow> = BTreeMap::new();
        let files = self.below().filter(|file| is_meant(file));
        for record in files.flat_map(|file| &file.records) {
            let Some(rank) = record.rank else { continue };
            let row = rows.entry(rank).or_insert(RankRow { rank, ..RankRow::default() });
            row.read_bytes = row.read_bytes.saturating_add(record.reads.bytes);
            row.written_bytes = row.written_bytes.saturating_add(record.writes.bytes);
            row.call_count = row
                .call_count
                .saturating_add(record.reads.calls)
                .saturating_add(record.writes.calls);
            row.time_ns = row.time_ns.saturating_add(record.ns());
        }
        let mut rows: Vec<RankRow> = rows.into_values().collect();
        rows.sort_by_key(|row| std::cmp::Reverse(row.time_ns));
        rows
    }
}

impl<'a> FileSum<'a> {
    fn of(
        module: Module,
        file: usize,
        path: &'a str,
        records: Vec<&'a Record>,
        ranks: u32,
    ) -> FileSum<'a> {
        let sum = |value: fn(&Record) -> u64| {
            records.iter().map(|record| value(record)).fold(0, u64::saturating_add)
        };
        let way = |direction| {
            let ways = records.iter().map(|record| record.way(direction));
            ways.fold(Way::default(), |sum, way| merged(&sum, way))
        };
        let movers = records.iter().filter(|record| record.bytes() > 0);
        let movers = movers.map(|record| record.movers(ranks)).fold(0, u32::saturating_add);
        FileSum {
            module,
            file,
            path,
            is_shared: records.iter().any(|record| record.rank.is_none()),
            reads: way(Direction::Read),
            writes: way(Direction::Write),
            movers: movers.min(ranks),
            opens: sum(|record| record.opens),
            seeks: sum(|record| record.seeks),
            stats: sum(|record| record.stats),
            syncs: sum(|record| record.syncs),
            switches: sum(|record| record.switches),
            misaligned: sum(|record| record.misaligned),
            alignment: records.iter().map(|record| record.alignment).max().unwrap_or(0),
            meta_ns: sum(|record| record.meta_ns),
            records,
        }
    }

    pub(super) fn way(&self, direction: Direction) -> &Way {
        match direction {
            Direction::Read => &self.reads,
            Direction::Write => &self.writes,
        }
    }

    pub(super) fn calls(&self) -> u64 {
        self.reads.calls.saturating_add(self.writes.calls)
    }

    pub(super) fn bytes(&self) -> u64 {
        self.reads.bytes.saturating_add(self.writes.bytes)
    }

    /// Of its reads and writes, collective ones.
    pub(super) fn collective(&self) -> u64 {
        self.reads.collective.saturating_add(self.writes.collective)
    }

    pub(super) fn ns(&self) -> u64 {
        self.reads.ns.saturating_add(self.writes.ns).saturating_add(self.meta_ns)
    }

    /// Ranks that it was counted for.
    pub(super) fn ranks(&self, run: &Run<'_>) -> u64 {
        match self.is_shared {
            true => run.counted.ranks.into(),
            false => self.records.len() as u64,
        }
    }

    /// Calls that move no data.
    pub(super) fn metadata_calls(&self) -> u64 {
        [self.opens, self.seeks, self.stats, self.syncs].into_iter().fold(0, u64::saturating_add)
    }

    /// Accesses that went back in the file. The first one of a rank goes nowhere: Darshan counts it as
    /// neither, as long as it begins at 0.
    pub(super) fn random(&self, direction: Direction) -> u64 {
        let way = self.way(direction);
        let firsts = u64::from(self.movers.max(1));
        way.calls.saturating_sub(way.sequential).saturating_sub(firsts)
    }

    /// The most frequent sizes, over all records.
    pub(super) fn common_sizes(&self) -> Vec<(u64, u64)> {
        let mut sizes: BTreeMap<u64, u64> = BTreeMap::new();
        for (size, count) in self.records.iter().flat_map(|record| record.common) {
            if count > 0 {
                let sum = sizes.entry(size).or_default();
                *sum = sum.saturating_add(count);
            }
        }
        let mut sizes: Vec<_> = sizes.into_iter().collect();
        sizes.sort_by_key(|(size, count)| (std::cmp::Reverse(*count), *size));
        sizes.truncate(4);
        sizes
    }

    pub(super) fn row(&self, run: &Run<'_>) -> CountedFile {
        let share = |way: &Way, part: u64| {
            let others = way.calls.saturating_sub(u64::from(self.movers.max(1)));
            let is_counted = way.end.is_some() && self.module == Module::Posix && others > 0;
            is_counted.then(|| (part as f64 / others as f64).min(1.0))
        };
        let slowest = self.records.iter().filter_map(|record| record.extremes);
        let slowest = slowest.map(|[_, slowest]| slowest).max_by_key(|extreme| extreme.ns);
        let file = &run.counted.files[self.file];
        CountedFile {
            path: file.path.clone(),
            file_system: file.file_system.clone(),
            module: self.module.name(),
            rank_count: if self.is_shared { run.counted.ranks } else { self.records.len() as u32 },
            shared: self.is_shared,
            mover_count: self.movers,
            open_count: self.opens,
            read_count: self.reads.calls,
            read_bytes: self.reads.bytes,
            write_count: self.writes.calls,
            written_bytes: self.writes.bytes,
            seek_count: self.seeks,
            stat_count: self.stats,
            sync_count: self.syncs,
            sequential_read_share: share(&self.reads, self.reads.sequential),
            sequential_write_share: share(&self.writes, self.writes.sequential),
            consecutive_read_share: share(&self.reads, self.reads.consecutive),
            consecutive_write_share: share(&self.writes, self.writes.consecutive),
            collective_count: self.collective(),
            misaligned_count: self.misaligned,
            alignment_bytes: self.alignment,
            common_sizes: self.common_sizes(),
            read_ns: self.reads.ns,
            write_ns: self.writes.ns,
            metadata_ns: self.meta_ns,
            slowest_rank: slowest.map(|it| (it.rank, it.bytes, it.ns)),
        }
    }
}

fn merged(a: &Way, b: &Way) -> Way {
    let first = [a.first, b.first].into_iter().flatten().min();
    Way {
        calls: a.calls.saturating_add(b.calls),
        bytes: a.bytes.saturating_add(b.bytes),
        collective: a.collective.saturating_add(b.collective),
        nonblocking: a.nonblocking.saturating_add(b.nonblocking),
        sizes: std::array::from_fn(|bin| a.sizes[bin].saturating_add(b.sizes[bin])),
        consecutive: a.consecutive.saturating_add(b.consecutive),
        sequential: a.sequential.saturating_add(b.sequential),
        end: a.end.max(b.end),
        ns: a.ns.saturating_add(b.ns),
        longest_ns: a.longest_ns.max(b.longest_ns),
        first,
        last: a.last.max(b.last),
    }
}

/// What a finding weighs: calls, bytes, and time by rank.
#[derive(Default)]
pub(super) struct Weight {
    pub(super) calls: u64,
    pub(super) bytes: u64,
    ns: u64,
    /// By rank, as far as ranks are known.
    own_ns: BTreeMap<u32, u64>,
    /// What each rank that took part spent, of records of all of them.
    shared_ns: u64,
}

impl Weight {
    /// So many calls and bytes, without time.
    pub(super) fn of(calls: u64, bytes: u64) -> Weight {
        Weight { calls, bytes, ..Weight::default() }
    }

    /// What all of these files weigh together: of each so many calls and bytes, and a share of the time that `ns`
    /// tells of its records.
    pub(super) fn over(
        run: &Run<'_>,
        files: &[&FileSum<'_>],
        part: impl Fn(&FileSum<'_>) -> (u64, u64, f64),
        ns: impl Fn(&Record) -> u64,
    ) -> Weight {
        let mut weight = Weight::default();
        files.iter().for_each(|file| weight.add(run, file, part(file), &ns));
        weight
    }

    /// Adds so many calls and bytes of a file and a share of the time that `ns` tells of its records.
    pub(super) fn add(
        &mut self,
        run: &Run<'_>,
        file: &FileSum<'_>,
        (calls, bytes, share): (u64, u64, f64),
        ns: impl Fn(&Record) -> u64,
    ) {
        self.calls = self.calls.saturating_add(calls);
        self.bytes = self.bytes.saturating_add(bytes);
        for record in &file.records {
            let ns = (ns(record) as f64 * share) as u64;
            self.ns = self.ns.saturating_add(ns);
            match record.rank {
                Some(rank) => {
                    let own = self.own_ns.entry(rank).or_default();
                    *own = own.saturating_add(ns);
                }
                None => {
                    let each = ns / u64::from(record.movers(run.counted.ranks).max(1));
                    self.shared_ns = self.shared_ns.saturating_add(each);
                }
            }
        }
    }

    /// The finding that weighs so much.
    pub(super) fn finding(
        self,
        run: &Run<'_>,
        (rule, confidence): (&'static str, Confidence),
        message: String,
        remedy: &str,
        files: Vec<String>,
    ) -> Finding {
        let longest = self.own_ns.iter().max_by_key(|(_, ns)| **ns);
        let ns = longest.map_or(0, |(_, ns)| *ns).saturating_add(self.shared_ns);
        let share = (ns as f64 / run.counted.took_ns.max(1) as f64).min(1.0);
        let share_of = match longest {
            Some((rank, own)) if *own >= self.shared_ns => format!("rank {rank}'s run time"),
            _ => "the run time of a rank that takes part".to_owned(),
        };
        Finding {
            rule,
            severity: Severity::of(share),
            confidence,
            message,
            evidence: Evidence {
                calls: self.calls,
                bytes: self.bytes,
                time_ns: self.ns,
                share_of_run: share,
                share_of,
                ..Evidence::default()
            },
            remedy: Some(Remedy { sentence: remedy.to_owned(), strategy: None }),
            file: None,
            files,
        }
    }
}

/// A part as a share of a whole, of calls or of bytes.
pub(super) fn share(part: u64, whole: u64) -> f64 {
    part as f64 / whole.max(1) as f64
}

/// The same in percent, 100 only for the whole.
pub(super) fn percent(part: u64, whole: u64) -> String {
    match 100.0 * share(part, whole) {
        most if part < whole && most >= 99.5 => "more than 99 %".to_owned(),
        percent => format!("{percent:.0} %"),
    }
}

/// Paths of files, the worst first.
pub(super) fn paths(files: &[&FileSum<'_>], weight: impl Fn(&FileSum<'_>) -> u64) -> Vec<String> {
    let mut files: Vec<&&FileSum<'_>> = files.iter().collect();
    files.sort_by_key(|file| std::cmp::Reverse(weight(file)));
    files.into_iter().map(|file| file.path.to_owned()).collect()
}
