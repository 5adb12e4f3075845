//! What a log of Darshan counts: for each module and file a record of each rank, or one of all ranks
//! together where all of them opened it.
//!
//! Every log has this, also those without single accesses. A counter that was never touched is 0 here,
//! a moment that never came is none. What cannot be (negative counts, NaN, ends before beginnings) is left
//! out and told.

use super::DarshanError;
use super::layout::{Counters, Layout};
use super::log::{Log, damaged};
use super::module::Module;
use super::places::{self, Places};
use crate::FileEntry;
use crate::import::shared::TIME_END_NS;
use iolab_vocab::{Direction, Nanos};
use std::collections::BTreeMap;

/// Records that are taken at most: what a few bytes unpack to must not fill the memory. Some 400 MiB.
const MOST_RECORDS: usize = 1 << 19;
/// No file is longer, and nothing is counted so far.
const MOST: i64 = 1 << 60;

/// Bounds of Darshan's histograms of sizes: the largest size of each bin but the last.
pub const SIZE_BOUNDS: [u64; 9] =
    [100, 1 << 10, 10 << 10, 100 << 10, 1 << 20, 4 << 20, 10 << 20, 100 << 20, 1 << 30];

/// A run, as a log counts it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Counted {
    /// Version of the log's format.
    pub format: String,
    /// Processes of the job.
    pub ranks: u32,
    /// Unix time of the start, in nanoseconds.
    pub start_unix_ns: u64,
    /// From start to end.
    pub took_ns: u64,
    /// Command line.
    pub command: Vec<String>,
    /// Files that records are about, and whatever else has a name (datasets, variables).
    pub files: Vec<FileEntry>,
    /// All records.
    pub records: Vec<Record>,
    /// Bytes over time.
    pub heat: Vec<super::Heat>,
    /// Modules that the log has records of.
    pub modules: Vec<Module>,
    /// Whether it also has single accesses.
    pub has_accesses: bool,
    /// What is lost or could not be read, a sentence each.
    pub lacks: Vec<String>,
}

/// What a module counted of a file.
#[derive(Clone, Debug, PartialEq)]
pub struct Record {
    /// Who counted.
    pub module: Module,
    /// The file, as its place in [`Counted::files`].
    pub file: usize,
    /// Of which rank; none for all ranks together.
    pub rank: Option<u32>,
    /// Reads.
    pub reads: Way,
    /// Writes.
    pub writes: Way,
    /// Calls that open it, collective ones included.
    pub opens: u64,
    /// Of these, collective ones.
    pub collective_opens: u64,
    /// Seeks.
    pub seeks: u64,
    /// Queries of its attributes.
    pub stats: u64,
    /// Mappings into memory.
    pub maps: u64,
    /// Syncs or flushes.
    pub syncs: u64,
    /// Times that a read followed a write or the other way round.
    pub switches: u64,
    /// Accesses that did not begin at a multiple of `alignment`.
    pub misaligned: u64,
    /// What offsets should be multiples of, as the file system says.
    pub alignment: u64,
    /// The most frequent sizes of accesses, reads and writes together, with how often.
    pub common: [(u64, u64); 4],
    /// The most frequent gaps between accesses, with how often.
    pub strides: [(u64, u64); 4],
    /// Time in calls that move no data.
    pub meta_ns: u64,
    /// When it was first opened.
    pub opened: Option<Nanos>,
    /// When it was last closed.
    pub closed: Option<Nanos>,
    /// Of all ranks together: the one that was done soonest, and the one that took longest.
    pub extremes: Option<[Extreme; 2]>,
    /// Of all ranks together: variance of their bytes.
    pub bytes_variance: f64,
    /// Whether the module says that accesses were collective, without counting them (H5D).
    pub is_collective: bool,
}

/// What was counted of reads or of writes.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Way {
    /// How many.
    pub calls: u64,
    /// Bytes that they moved.
    pub bytes: u64,
    /// Of these calls, collective ones.
    pub collective: u64,
    /// Of these calls, those that do not wait.
    pub nonblocking: u64,
    /// Calls by size: at most 100 bytes, 1 KiB, 10 KiB, … as [`SIZE_BOUNDS`] has them.
    pub sizes: [u64; 10],
    /// Calls that began where the last one of the rank ended.
    pub consecutive: u64,
    /// Calls that began there or behind it.
    pub sequential: u64,
    /// The byte after the highest one that was accessed, if the module looks at offsets.
    pub end: Option<u64>,
    /// Time in these calls, over all ranks.
    pub ns: u64,
    /// Time of the longest one.
    pub longest_ns: u64,
    /// When the first one began.
    pub first: Option<Nanos>,
    /// When the last one ended.
    pub last: Option<Nanos>,
}

/// A rank that stands out in a record of all ranks.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Extreme {
    /// Which.
    pub rank: u32,
    /// Bytes that it moved.
    pub bytes: u64,
    /// Time that it took for them.
    pub ns: u64,
}

impl Counted {
    /// Whether a module's calls are those that reached file systems: POSIX and streams, or MPI-IO where nothing
    /// below it was counted.
    pub fn is_lowest(&self, module: Module) -> bool {
        match module {
            Module::Posix | Module::Stdio => true,
            Module::MpiIo => !self.modules.contains(&Module::Posix),
            _ => false,
        }
    }
}

impl Way {
    /// Whether most of these calls were made by each rank for itself.
    pub fn is_independent(&self) -> bool {
        self.collective.saturating_mul(2) < self.calls
    }
}

impl Record {
    /// Reads or writes.
    pub fn way(&self, direction: Direction) -> &Way {
        match direction {
            Direction::Read => &self.reads,
            Direction::Write => &self.writes,
        }
    }

    /// Time in its calls, over all ranks.
    pub fn ns(&self) -> u64 {
        self.transfer_ns().saturating_add(self.meta_ns)
    }

    /// Time in its reads and writes, over all ranks.
    pub fn transfer_ns(&self) -> u64 {
        self.reads.ns.saturating_add(self.writes.ns)
    }

    /// How many of so many ranks moved its bytes. Of a record of all ranks the variance tells: if `k` of
    /// `n` ranks moved `n/k` times the mean each and the others nothing, it is `n/k - 1` squared means.
    pub fn movers(&self, ranks: u32) -> u32 {
        if self.rank.is_some() || self.bytes() == 0 {
            return 1;
        }
        let ranks = ranks.max(1);
        let mean = self.bytes() as f64 / f64::from(ranks);
        let movers = f64::from(ranks) / (1.0 + self.bytes_variance / (mean * mean));
        (movers.round() as u32).clamp(1, ranks)
    }

    /// Bytes moved.
    pub fn bytes(&self) -> u64 {
        self.reads.bytes.saturating_add(self.writes.bytes)
    }
}

/// What a log counts.
pub fn darshan_counted(bytes: &[u8]) -> Result<Counted, DarshanError> {
    read(&Log::open(bytes)?)
}

pub(super) fn read(log: &Log<'_>) -> Result<Counted, DarshanError> {
    let mut reader =
        Reader { log, counted: Counted::default(), ids: BTreeMap::new(), odd: 0, backwards: 0 };
    for module in Module::ALL {
        let Some(version) = log.version(module) else { continue };
        reader.counted.modules.push(module);
        if let Some(places) = places::of(module) {
            match Layout::of(module, version) {
                Some(layout) => reader.module(module, layout, &places)?,
                None => {
                    reader.lacks(format!("{module}: version {version} of its records is not known"))
                }
            }
        }
    }
    reader.counted.heat = super::heat::read(log)?;
    Ok(reader.finish())
}

struct Reader<'a> {
    log: &'a Log<'a>,
    counted: Counted,
    ids: BTreeMap<u64, usize>,
    /// Values that cannot be.
    odd: u64,
    /// Ends that come before their beginnings.
    backwards: u64,
}

impl Reader<'_> {
    fn lacks(&mut self, what: String) {
        self.counted.lacks.push(what);
    }

    fn module(
        &mut self,
        module: Module,
        layout: Layout,
        places: &Places,
    ) -> Result<(), DarshanError> {
        let mut stream = self.log.records(module)?;
        let mut mixed = 0_u64;
        while let Some(fields) = stream.take(layout.bytes())? {
            let counters = layout.read(fields);
            if counters.stream_opens() > 0 {
                mixed += 1;
                continue;
            }
            if self.counted.records.len() == MOST_RECORDS {
                return Err(DarshanError::TooLarge(MOST_RECORDS));
            }
            let record = self.record(module, &counters, places)?;
            self.counted.records.push(record);
        }
        if mixed > 0 {
            self.lacks(format!(
                "{mixed} records of {module}: this version counted calls on streams among its own"
            ));
        }
        Ok(())
    }

    fn record(
        &mut self,
        module: Module,
        counters: &Counters<'_>,
        places: &Places,
    ) -> Result<Record, DarshanError> {
        let ranks = self.log.job.processes;
        let rank = match counters.rank() {
            -1 => None,
            rank => match u32::try_from(rank).ok().filter(|rank| u64::from(*rank) < ranks) {
                Some(rank) => Some(rank),
                None => {
                    return Err(damaged(format!(
                        "a record of {module} of rank {rank}, of {ranks} processes"
                    )));
                }
            },
        };
        let number = counters.file();
        let file = *self.ids.entry(number).or_insert_with(|| {
            self.counted.files.push(self.log.file(number));
            self.counted.files.len() - 1
        });
        let reads = self.way(counters, &places.ways[0]);
        let writes = self.way(counters, &places.ways[1]);
        let [fastest, slowest] = [0, 1].map(|which| {
            let (at, time) = (places.ranks? + 2 * which, places.rank_times? + which);
            let rank = u32::try_from(counters.counter(at)).ok()?;
            let rank = Some(rank).filter(|rank| u64::from(*rank) < ranks)?;
            Some(Extreme {
                rank,
                bytes: self.count(counters, at + 1),
                ns: self.nanos(counters.time(time)),
            })
        });
        let variance = places.rank_times.map_or(-1.0, |at| counters.time(at + 3));
        let variance = if variance.is_finite() { variance.max(0.0) } else { 0.0 };
        let (opened, closed) = self.span(counters, places.opened, places.closed);
        Ok(Record {
            module,
            file,
            rank,
            reads,
            writes,
            opens: self.sum(counters, places.opens),
            collective_opens: self.sum(counters, places.collective_opens),
            seeks: self.sum(counters, places.seeks),
            stats: self.sum(counters, places.stats),
            maps: self.sum(counters, places.maps),
            syncs: self.sum(counters, places.syncs),
            switches: self.sum(counters, places.switches),
            misaligned: self.sum(counters, places.misaligned),
            alignment: self.sum(counters, places.alignment),
            common: places.common.map_or([(0, 0); 4], |at| self.pairs(counters, at)),
            strides: places.strides.map_or([(0, 0); 4], |at| self.pairs(counters, at)),
            meta_ns: places.meta.map_or(0, |at| self.nanos(counters.time(at))),
            opened,
            closed,
            extremes: fastest.zip(slowest).filter(|_| rank.is_none()).map(|(a, b)| [a, b]),
            bytes_variance: variance,
            is_collective: places.is_collective.is_some_and(|at| counters.counter(at) > 0),
        })
    }

    fn way(&mut self, counters: &Counters<'_>, places: &places::Way) -> Way {
        let calls = self.sum(counters, places.calls);
        let (first, last) = self.span(counters, places.first, places.last);
        let mut sizes = [0; 10];
        if let Some(at) = places.sizes {
            sizes = std::array::from_fn(|bin| self.count(counters, at + bin));
        }
        let bytes = self.sum(counters, places.bytes);
        // The highest byte of an access that moved nothing is told as 0.
        let end = places.end.filter(|_| calls > 0).map(|at| self.count(counters, at));
        let end = end.map(|highest| if bytes > 0 { highest.saturating_add(1) } else { 0 });
        let ns = places.time.map_or(0, |at| self.nanos(counters.time(at)));
        Way {
            calls,
            bytes,
            collective: self.sum(counters, places.collective),
            nonblocking: self.sum(counters, places.nonblocking),
            sizes,
            consecutive: self.sum(counters, places.consecutive),
            sequential: self.sum(counters, places.sequential),
            end,
            ns,
            longest_ns: places.longest.map_or(0, |at| self.nanos(counters.time(at))),
            first,
            last,
        }
    }

    /// Values and how often they came.
    fn pairs(&mut self, counters: &Counters<'_>, at: ([usize; 4], usize)) -> [(u64, u64); 4] {
        let (values, counts) = at;
        std::array::from_fn(|which| {
            let pair = (self.count(counters, values[which]), self.count(counters, counts + which));
            if pair.1 == 0 { (0, 0) } else { pair }
        })
    }

    fn sum(&mut self, counters: &Counters<'_>, places: &[usize]) -> u64 {
        places.iter().map(|at| self.count(counters, *at)).sum()
    }

    /// A counter that was never touched is −1.
    fn count(&mut self, counters: &Counters<'_>, at: usize) -> u64 {
        match counters.counter(at) {
            count @ 0..=MOST => count as u64,
            -1 => 0,
            _ => {
                self.odd += 1;
                0
            }
        }
    }

    /// Seconds as nanoseconds; −1 is none.
    fn nanos(&mut self, seconds: f64) -> u64 {
        let nanos = seconds * 1e9;
        match nanos >= 0.0 && nanos < TIME_END_NS as f64 {
            true => nanos.round() as u64,
            false => {
                self.odd += u64::from(seconds != -1.0);
                0
            }
        }
    }

    /// A first and a last moment. A moment of 0 never came.
    fn span(
        &mut self,
        counters: &Counters<'_>,
        first: Option<usize>,
        last: Option<usize>,
    ) -> (Option<Nanos>, Option<Nanos>) {
        let mut moment = |at: Option<usize>| {
            let nanos = at.map_or(0, |at| self.nanos(counters.time(at)));
            Some(Nanos(nanos)).filter(|moment| moment.0 > 0)
        };
        match (moment(first), moment(last)) {
            (Some(first), Some(last)) if last < first => {
                self.backwards += 1;
                (Some(first), Some(first))
            }
            span => span,
        }
    }

    fn finish(mut self) -> Counted {
        let (odd, backwards) = (self.odd, self.backwards);
        if odd > 0 {
            self.lacks(format!("{odd} counters or times with values that cannot be"));
        }
        if backwards > 0 {
            self.lacks(format!("the ends of {backwards} spans that end before they begin"));
        }
        for module in Module::ALL {
            if self.log.is_partial(module) {
                self.lacks(format!("a part of {module}: Darshan's memory was full"));
            }
        }
        let is_read = |module: &Module| {
            places::of(*module).is_some()
                || matches!(module, Module::DxtPosix | Module::DxtMpiIo | Module::HeatMap)
        };
        let unread: Vec<&str> =
            self.counted.modules.iter().filter(|it| !is_read(it)).map(|it| it.name()).collect();
        if !unread.is_empty() {
            let unread = unread.join(", ");
            self.lacks(format!("modules whose records are not read: {unread}"));
        }
        for number in self.log.unknown() {
            self.lacks(format!("a module with the number {number}, which is not known"));
        }
        let job = &self.log.job;
        Counted {
            format: self.log.format(),
            ranks: job.processes as u32,
            start_unix_ns: job.start_ns,
            took_ns: job.took_ns,
            command: job.command.split_whitespace().map(str::to_owned).collect(),
            has_accesses: self.counted.modules.contains(&Module::DxtPosix)
                || self.counted.modules.contains(&Module::DxtMpiIo),
            ..self.counted
        }
    }
}
