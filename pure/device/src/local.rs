//! Local storage of one machine: what its system calls cost, as `iolab calibrate` measured it.
//!
//! The page cache stands between the program and the medium, so most calls cost processor time
//! and only `fsync` and cold reads wait. A write costs its table by request size (`overwrite`),
//! plus `extend_ns` when it grows the file, plus a fresh-page cost for each page no one has
//! touched before: from 4 KiB on, that first touch is most of an append. Pages first touched by
//! one large write lie in large folios, and on ext4 every later write into such a folio walks its
//! blocks: `folio` is that surcharge, five times the cost of a small write after one of 4 MiB.
//! What a file has cached and dirty is kept in [`LocalFile`]; a call costs O(log ranges) here.
//!
//! Source, range and error of every parameter: `docs/models/local.md`.

use crate::CostTable;
use iolab_vocab::{Extent, Nanos};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// What the kernel hands out at a time; a property of the platforms we calibrate, not of a disk.
pub const PAGE_BYTES: u64 = 4096;
const MIB: f64 = 1_048_576.0;

/// The measured costs of one directory's file system and of the machine around it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LocalStorage {
    /// Type of the file system that was measured (`ext4`, `tmpfs`, …).
    pub file_system: String,
    /// Processors that run program threads.
    pub cores: u32,
    /// Costs of writing.
    pub write: WriteCosts,
    /// Costs of reading.
    pub read: ReadCosts,
    /// Costs of calls that move no data.
    pub call: CallCosts,
    /// Costs of making data durable.
    pub sync: SyncCosts,
    /// Costs of carrying a strategy in the program.
    pub intercept: InterceptCosts,
}

/// Costs of writing, processor time.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WriteCosts {
    /// A write into pages that are cached, by size.
    pub overwrite: CostTable,
    /// What growing the file adds to a call (the inode is changed), nanoseconds.
    pub extend_ns: f64,
    /// What each page touched for the first time adds, by size of the request it is part of.
    pub fresh_page: CostTable,
    /// What a write into cached pages pays more, by size of the request that first touched them.
    pub folio: CostTable,
}

/// Costs of reading.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ReadCosts {
    /// A read from the page cache, by size, processor time.
    pub cached: CostTable,
    /// A sequential read of data that is not cached, by size, elapsed time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cold: Option<CostTable>,
}

/// Costs of calls that move no data, nanoseconds of processor time.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CallCosts {
    /// A system call that does next to nothing (`getppid`); stands for calls of no other kind.
    pub least_ns: f64,
    /// `lseek`.
    pub seek_ns: f64,
    /// `open` that makes the file.
    pub open_create_ns: f64,
    /// `open` of a file that exists.
    pub open_existing_ns: f64,
    /// `open` or `stat` of a path that does not exist.
    pub open_missing_ns: f64,
    /// `close`.
    pub close_ns: f64,
    /// `stat` by path and `fstat`, the mean of both.
    pub stat_ns: f64,
    /// `ftruncate`, without the pages it frees.
    pub truncate_ns: f64,
    /// Freeing the cached pages of a mebibyte, by truncation or removal.
    pub release_mib_ns: f64,
    /// `rename`.
    pub rename_ns: f64,
    /// `unlink`, without the pages it frees.
    pub unlink_ns: f64,
    /// `mkdir` and `rmdir`, the mean of both.
    pub directory_ns: f64,
}

/// Costs of making data durable, elapsed nanoseconds.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SyncCosts {
    /// `fsync` of a file without unwritten data.
    pub clean_ns: f64,
    /// `fsync` or `fdatasync` after a page of data went into blocks that exist; more data adds
    /// what it adds to `extend`.
    pub overwrite_ns: f64,
    /// `fsync` or `fdatasync` after the file grew (its metadata must go too), by unwritten bytes.
    pub extend: CostTable,
}

/// Costs of carrying a strategy in the program, nanoseconds of processor time.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct InterceptCosts {
    /// What passing through the preloaded library adds to a call.
    pub hook_ns: f64,
    /// What a call adds that comes as far as a stack and that no stage is stepped for; twice `step_ns` where a
    /// platform does not say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pass_ns: Option<f64>,
    /// One step of one strategy.
    pub step_ns: f64,
    /// A write that a strategy takes in at once, in all but the copy.
    pub absorb_ns: f64,
    /// What opening and closing a file adds when strategies are chosen for it.
    pub open_ns: f64,
    /// What opening and closing adds when none is chosen.
    pub open_passed_ns: f64,
    /// First touch of a page of a strategy's buffer.
    pub staging_page_ns: f64,
    /// Copying between the program's memory and a buffer, by size.
    pub copy: CostTable,
    /// Loading the library into a process.
    pub load_ns: f64,
    /// What the launcher takes before and after the command.
    pub launch_ns: f64,
    /// What recording adds to a call, for traces whose header does not tell.
    pub record_ns: f64,
    /// Starting and ending a process, as far as its trace cannot show it.
    pub process_ns: f64,
}

impl InterceptCosts {
    /// What a call adds that no stage of the stack it comes to is stepped for, nanoseconds.
    pub fn passed_ns(&self) -> f64 {
        // Until it had a price of its own it was measured as two steps.
        self.pass_ns.unwrap_or(2.0 * self.step_ns)
    }
}

impl LocalStorage {
    /// Names the first cost that is negative or no number. Tables check themselves.
    pub fn check(&self) -> Result<(), String> {
        let Self { write, call, sync, intercept, .. } = self;
        let costs = [
            ("write.extend_ns", write.extend_ns),
            ("call.least_ns", call.least_ns),
            ("call.seek_ns", call.seek_ns),
            ("call.open_create_ns", call.open_create_ns),
            ("call.open_existing_ns", call.open_existing_ns),
            ("call.open_missing_ns", call.open_missing_ns),
            ("call.close_ns", call.close_ns),
            ("call.stat_ns", call.stat_ns),
            ("call.truncate_ns", call.truncate_ns),
            ("call.release_mib_ns", call.release_mib_ns),
            ("call.rename_ns", call.rename_ns),
            ("call.unlink_ns", call.unlink_ns),
            ("call.directory_ns", call.directory_ns),
            ("sync.clean_ns", sync.clean_ns),
            ("sync.overwrite_ns", sync.overwrite_ns),
            ("intercept.hook_ns", intercept.hook_ns),
            ("intercept.pass_ns", intercept.passed_ns()),
            ("intercept.step_ns", intercept.step_ns),
            ("intercept.absorb_ns", intercept.absorb_ns),
            ("intercept.open_ns", intercept.open_ns),
            ("intercept.open_passed_ns", intercept.open_passed_ns),
            ("intercept.staging_page_ns", intercept.staging_page_ns),
            ("intercept.load_ns", intercept.load_ns),
            ("intercept.launch_ns", intercept.launch_ns),
            ("intercept.record_ns", intercept.record_ns),
            ("intercept.process_ns", intercept.process_ns),
        ];
        if self.cores == 0 {
            return Err("`cores` is 0; a machine has at least one".to_owned());
        }
        match costs.iter().find(|(_, cost)| !cost.is_finite() || *cost < 0.0) {
            Some((name, cost)) => Err(format!("`{name}` is {cost}; a cost is 0 or more")),
            None => Ok(()),
        }
    }

    /// A write of `extent`; the file grows and its pages become cached and dirty.
    pub fn write(&self, file: &mut LocalFile, extent: Extent) -> Nanos {
        if extent.is_empty() {
            return whole(self.call.least_ns);
        }
        let costs = &self.write;
        let mut cost = costs.overwrite.at(extent.length);
        if extent.end() > file.size_bytes {
            cost += costs.extend_ns;
            file.grew = true;
        }
        let touched = file.touch(extent);
        if touched.fresh_pages > 0 {
            cost += touched.fresh_pages as f64 * costs.fresh_page.at(extent.length);
        }
        if touched.folio_bytes > 0 {
            cost += costs.folio.at(touched.folio_bytes);
        }
        file.size_bytes = file.size_bytes.max(extent.end());
        file.dirty_bytes += extent.length;
        whole(cost)
    }

    /// A read of `extent`, of which the part inside the file moves.
    pub fn read(&self, file: &mut LocalFile, extent: Extent) -> Nanos {
        let inside = extent.intersection(Extent::new(0, file.size_bytes));
        let cached = self.read.cached.at(inside.length);
        match &self.read.cold {
            Some(cold) if file.cold && file.touch(inside).fresh_pages > 0 => {
                whole(cold.at(inside.length))
            }
            _ => whole(cached),
        }
    }

    /// Begins to fetch `extent` into the page cache: how long the medium takes for it. What was
    /// cached costs nothing.
    pub fn fetch(&self, file: &mut LocalFile, extent: Extent) -> Nanos {
        let inside = extent.intersection(Extent::new(0, file.size_bytes));
        match &self.read.cold {
            Some(cold) if file.cold && file.touch(inside).fresh_pages > 0 => {
                whole(cold.at(inside.length))
            }
            _ => Nanos::ZERO,
        }
    }

    /// `fsync` or `fdatasync`; the file is clean afterwards.
    pub fn sync(&self, file: &mut LocalFile) -> Nanos {
        // Bytes written twice go to the medium once.
        let dirty_bytes = file.dirty_bytes.min(file.cached_bytes());
        let (grew, costs) = (file.grew, &self.sync);
        (file.grew, file.dirty_bytes) = (false, 0);
        whole(match (grew, dirty_bytes) {
            (true, _) => costs.extend.at(dirty_bytes),
            (false, 0) => costs.clean_ns,
            (false, _) => {
                let more_ns = costs.extend.at(dirty_bytes) - costs.extend.at(PAGE_BYTES);
                costs.overwrite_ns + more_ns.max(0.0)
            }
        })
    }

    /// `ftruncate`, or an `open` that empties the file (then without the cost of the call).
    pub fn truncate(&self, file: &mut LocalFile, length: u64) -> Nanos {
        let released = file.shrink(length);
        file.grew |= length != file.size_bytes;
        file.size_bytes = length;
        whole(self.call.truncate_ns + self.release(released))
    }

    /// Removal of the last name of a file nobody has open.
    pub fn unlink(&self, file: &mut LocalFile) -> Nanos {
        let released = file.shrink(0);
        *file = LocalFile::default();
        whole(self.call.unlink_ns + self.release(released))
    }

    fn release(&self, bytes: u64) -> f64 {
        self.call.release_mib_ns * bytes as f64 / MIB
    }
}

/// Costs are measured in fractions of a nanosecond, time is whole.
fn whole(cost_ns: f64) -> Nanos {
    Nanos(cost_ns.round() as u64)
}

/// What the page cache knows of one file.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct LocalFile {
    /// Size of the file.
    pub size_bytes: u64,
    /// Bytes written since the last sync, rewritten ones counted again.
    pub dirty_bytes: u64,
    /// The file grew (or shrank) since the last sync.
    pub grew: bool,
    /// Nothing of it is cached at first; else what existed counts as cached.
    pub cold: bool,
    /// Cached pages by first page: disjoint; neighbours differ in their folios.
    cached: BTreeMap<u64, Run>,
}

/// Cached pages that lie together and were first touched alike.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Run {
    /// The page after the last.
    end: u64,
    /// Size of the requests that first touched them; 0 when not known.
    folio_bytes: u64,
}

/// What a request met in the cache.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Touched {
    /// Pages that were not cached.
    fresh_pages: u64,
    /// Size of the request that first touched the page the request begins in; 0 if it is fresh.
    folio_bytes: u64,
}

impl LocalFile {
    /// A file of that size that exists before the run, all of it cached unless `cold`.
    pub fn existing(size_bytes: u64, cold: bool) -> LocalFile {
        let mut file = LocalFile { size_bytes, cold, ..LocalFile::default() };
        if !cold && size_bytes > 0 {
            file.cached.insert(0, Run { end: size_bytes.div_ceil(PAGE_BYTES), folio_bytes: 0 });
        }
        file
    }

    /// Bytes of the cached pages.
    pub fn cached_bytes(&self) -> u64 {
        self.cached.iter().map(|(first, run)| (run.end - first) * PAGE_BYTES).sum()
    }

    /// Makes the pages of `extent` cached.
    fn touch(&mut self, extent: Extent) -> Touched {
        if extent.is_empty() {
            return Touched::default();
        }
        let (first, end) = (extent.offset / PAGE_BYTES, extent.end().div_ceil(PAGE_BYTES));
        let before = self.cached.range(..=first).next_back().map(|(_, run)| *run);
        let under = before.filter(|run| first < run.end);
        let folio_bytes = under.map_or(0, |run| run.folio_bytes);
        let mut at = under.map_or(first, |run| run.end);
        let mut fresh_pages = 0;
        while at < end {
            let next = self.cached.range(at..end).next().map(|(start, run)| (*start, run.end));
            let gap_end = next.map_or(end, |(start, _)| start);
            if at < gap_end {
                fresh_pages += gap_end - at;
                self.insert(at, Run { end: gap_end, folio_bytes: extent.length });
            }
            at = next.map_or(end, |(_, run_end)| run_end);
        }
        Touched { fresh_pages, folio_bytes }
    }

    /// Adds a run of pages that were not cached, joined with the one before it if alike.
    fn insert(&mut self, first: u64, run: Run) {
        if let Some((_, before)) = self.cached.range_mut(..first).next_back()
            && before.end == first
            && before.folio_bytes == run.folio_bytes
        {
            before.end = run.end;
            return;
        }
        self.cached.insert(first, run);
    }

    /// Forgets the pages from `length` on and tells how many bytes that frees.
    fn shrink(&mut self, length: u64) -> u64 {
        let keep = length.div_ceil(PAGE_BYTES);
        let beyond = self.cached.split_off(&keep);
        let mut pages: u64 = beyond.iter().map(|(first, run)| run.end - first).sum();
        if let Some((_, run)) = self.cached.iter_mut().next_back()
            && run.end > keep
        {
            pages += run.end - keep;
            run.end = keep;
        }
        pages * PAGE_BYTES
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Round numbers that can be added by hand.
    fn storage() -> LocalStorage {
        let table = |points: &[(u64, f64)]| CostTable::new(points.to_vec()).unwrap();
        LocalStorage {
            file_system: "test".to_owned(),
            cores: 2,
            write: WriteCosts {
                overwrite: table(&[(0, 100.0), (1000, 200.0)]),
                extend_ns: 7.0,
                fresh_page: CostTable::constant(1000.0),
                folio: table(&[(1 << 20, 0.0), (1 << 21, 90.0)]),
            },
            read: ReadCosts {
                cached: CostTable::constant(50.0),
                cold: Some(CostTable::constant(9000.0)),
            },
            call: CallCosts {
                least_ns: 10.0,
                seek_ns: 20.0,
                open_create_ns: 30.0,
                open_existing_ns: 31.0,
                open_missing_ns: 32.0,
                close_ns: 33.0,
                stat_ns: 34.0,
                truncate_ns: 35.0,
                release_mib_ns: 256.0,
                rename_ns: 36.0,
                unlink_ns: 37.0,
                directory_ns: 38.0,
            },
            sync: SyncCosts {
                clean_ns: 1.0,
                overwrite_ns: 500.0,
                extend: table(&[(0, 800.0), (1 << 20, 1824.0)]),
            },
            intercept: InterceptCosts {
                hook_ns: 5.0,
                pass_ns: None,
                step_ns: 5.0,
                absorb_ns: 5.0,
                open_ns: 0.0,
                open_passed_ns: 0.0,
                staging_page_ns: 0.0,
                copy: CostTable::constant(3.0),
                load_ns: 0.0,
                launch_ns: 0.0,
                record_ns: 0.0,
                process_ns: 0.0,
            },
        }
    }

    #[test]
    fn an_append_pays_for_growth_and_for_each_page_once() {
        let (storage, mut file) = (storage(), LocalFile::default());
        // 200 for the size, 7 for growing, 1000 for the first page.
        assert_eq!(storage.write(&mut file, Extent::new(0, 1000)), Nanos(1207));
        assert_eq!(storage.write(&mut file, Extent::new(1000, 1000)), Nanos(207));
        assert_eq!(storage.write(&mut file, Extent::new(500, 1000)), Nanos(200));
        // Bytes 4000 to 5000 lie in the first page and a second one.
        assert_eq!(storage.write(&mut file, Extent::new(4000, 1000)), Nanos(1207));
        assert_eq!((file.size_bytes, file.cached_bytes()), (5000, 8192));
    }

    #[test]
    fn a_write_far_behind_the_end_touches_only_its_own_pages() {
        let (storage, mut file) = (storage(), LocalFile::default());
        storage.write(&mut file, Extent::new(40 * PAGE_BYTES, 1));
        storage.write(&mut file, Extent::new(20 * PAGE_BYTES, 1));
        assert_eq!(file.cached_bytes(), 2 * PAGE_BYTES);
        // Pages 19 to 40: two of them are cached.
        let touched = file.touch(Extent::new(19 * PAGE_BYTES, 22 * PAGE_BYTES));
        assert_eq!((touched.fresh_pages, file.cached_bytes()), (20, 22 * PAGE_BYTES));
    }

    #[test]
    fn a_small_write_pays_for_the_large_one_that_made_its_pages() {
        let (storage, mut file) = (storage(), LocalFile::default());
        storage.write(&mut file, Extent::new(0, 1 << 21));
        assert_eq!(storage.write(&mut file, Extent::new(4096, 1000)), Nanos(290));
        let mut small = LocalFile::default();
        for page in 0..512 {
            storage.write(&mut small, Extent::new(page * PAGE_BYTES, PAGE_BYTES));
        }
        assert_eq!(storage.write(&mut small, Extent::new(4096, 1000)), Nanos(200));
        assert_eq!(small.cached.len(), 1);
    }

    #[test]
    fn a_sync_costs_by_what_happened_since_the_last_one() {
        let (storage, mut file) = (storage(), LocalFile::default());
        assert_eq!(storage.sync(&mut file), Nanos(1));
        storage.write(&mut file, Extent::new(0, 4096));
        // 800 for growth, 4 for 4 KiB at 1024 ns/MiB.
        assert_eq!(storage.sync(&mut file), Nanos(804));
        storage.write(&mut file, Extent::new(0, 2048));
        assert_eq!(storage.sync(&mut file), Nanos(500));
        assert_eq!(storage.sync(&mut file), Nanos(1));
    }

    #[test]
    fn truncation_frees_pages_and_a_later_write_touches_them_anew() {
        let (storage, mut file) = (storage(), LocalFile::default());
        storage.write(&mut file, Extent::new(0, 1 << 20));
        // Half a mebibyte at 256 ns, and the call.
        assert_eq!(storage.truncate(&mut file, 1 << 19), Nanos(35 + 128));
        assert_eq!(file.cached_bytes(), 1 << 19);
        let cost = storage.write(&mut file, Extent::new(1 << 19, 1000));
        assert_eq!(cost, Nanos(1207));
        assert_eq!(storage.unlink(&mut file).get(), 37 + 129);
    }

    #[test]
    fn a_cold_file_waits_for_the_medium_once() {
        let storage = storage();
        let mut file = LocalFile::existing(10_000, true);
        assert_eq!(storage.read(&mut file, Extent::new(0, 100)), Nanos(9000));
        assert_eq!(storage.read(&mut file, Extent::new(100, 100)), Nanos(50));
        let mut ahead = LocalFile::existing(10_000, true);
        assert_eq!(storage.fetch(&mut ahead, Extent::new(0, 20_000)), Nanos(9000));
        assert_eq!(storage.fetch(&mut ahead, Extent::new(0, 20_000)), Nanos::ZERO);
        assert_eq!(storage.read(&mut ahead, Extent::new(0, 100)), Nanos(50));
        let mut warm = LocalFile::existing(10_000, false);
        assert_eq!(storage.read(&mut warm, Extent::new(0, 100)), Nanos(50));
    }

    #[test]
    fn a_negative_cost_is_named() {
        let mut storage = storage();
        storage.call.seek_ns = -1.0;
        assert_eq!(storage.check().unwrap_err(), "`call.seek_ns` is -1; a cost is 0 or more");
    }
}
