//! Local storage of one machine: what its system calls cost, as `iolab calibrate` measured it.
//!
//! The page cache stands between the program and the medium, so most calls cost processor time
//! and only `fsync` and cold reads wait. A write costs its table by request size (`overwrite`),
//! plus `extend_ns` when it grows the file, plus a fresh-page cost for each page no one has
//! touched before: from 4 KiB on, that first touch is most of an append. What a file has cached
//! and dirty is kept per file in [`LocalFile`]; a call costs O(log ranges) here.
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
    /// `fsync` or `fdatasync` after data went into blocks that exist.
    pub overwrite_ns: f64,
    /// `fsync` or `fdatasync` after the file grew (its metadata must go too).
    pub extend_ns: f64,
    /// What each mebibyte of unwritten data adds.
    pub dirty_mib_ns: f64,
}

/// Costs of carrying a strategy in the program, nanoseconds of processor time.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct InterceptCosts {
    /// A call through the preloaded library to a file that has strategies, without their steps.
    pub hook_ns: f64,
    /// One step of one strategy.
    pub step_ns: f64,
    /// Copying between the program's memory and a buffer, by size.
    pub copy: CostTable,
    /// Loading the library into a process.
    pub load_ns: f64,
    /// Starting and ending a process, as far as its trace cannot show it.
    pub process_ns: f64,
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
            ("sync.extend_ns", sync.extend_ns),
            ("sync.dirty_mib_ns", sync.dirty_mib_ns),
            ("intercept.hook_ns", intercept.hook_ns),
            ("intercept.step_ns", intercept.step_ns),
            ("intercept.load_ns", intercept.load_ns),
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
        let fresh_pages = file.touch(extent);
        if fresh_pages > 0 {
            cost += fresh_pages as f64 * costs.fresh_page.at(extent.length);
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
            Some(cold) if file.cold && file.touch(inside) > 0 => whole(cold.at(inside.length)),
            _ => whole(cached),
        }
    }

    /// `fsync` or `fdatasync`; the file is clean afterwards.
    pub fn sync(&self, file: &mut LocalFile) -> Nanos {
        let costs = &self.sync;
        let base = match (file.grew, file.dirty_bytes) {
            (true, _) => costs.extend_ns,
            (false, 0) => costs.clean_ns,
            (false, _) => costs.overwrite_ns,
        };
        // Bytes written twice go to the medium once; a page is the least that goes.
        let dirty_bytes = file.dirty_bytes.min(file.cached_bytes()) as f64;
        (file.grew, file.dirty_bytes) = (false, 0);
        whole(base + costs.dirty_mib_ns * dirty_bytes / MIB)
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

    /// A copy between the program's memory and a buffer.
    pub fn copy(&self, bytes: u64) -> Nanos {
        whole(self.intercept.copy.at(bytes))
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
    /// Cached pages: first page to page after the last, disjoint, not adjacent.
    cached: BTreeMap<u64, u64>,
}

impl LocalFile {
    /// A file of that size that exists before the run, all of it cached unless `cold`.
    pub fn existing(size_bytes: u64, cold: bool) -> LocalFile {
        let mut file = LocalFile { size_bytes, cold, ..LocalFile::default() };
        if !cold && size_bytes > 0 {
            file.cached.insert(0, size_bytes.div_ceil(PAGE_BYTES));
        }
        file
    }

    /// Bytes of the cached pages.
    pub fn cached_bytes(&self) -> u64 {
        self.cached.iter().map(|(first, end)| (end - first) * PAGE_BYTES).sum()
    }

    /// Makes the pages of `extent` cached and tells how many were not.
    fn touch(&mut self, extent: Extent) -> u64 {
        if extent.is_empty() {
            return 0;
        }
        let (first, end) = (extent.offset / PAGE_BYTES, extent.end().div_ceil(PAGE_BYTES));
        let before = self.cached.range(..=first).next_back().map(|(a, b)| (*a, *b));
        if before.is_some_and(|(_, before_end)| end <= before_end) {
            return 0;
        }
        let mut merged = (first, end);
        let mut known_pages = 0;
        let joined: Vec<(u64, u64)> = before
            .filter(|(_, before_end)| *before_end >= first)
            .into_iter()
            .chain(self.cached.range(first + 1..=end).map(|(a, b)| (*a, *b)))
            .collect();
        for (a, b) in joined {
            known_pages += b.min(end).saturating_sub(a.max(first));
            merged = (merged.0.min(a), merged.1.max(b));
            self.cached.remove(&a);
        }
        self.cached.insert(merged.0, merged.1);
        end - first - known_pages
    }

    /// Forgets the pages from `length` on and tells how many bytes that frees.
    fn shrink(&mut self, length: u64) -> u64 {
        let keep = length.div_ceil(PAGE_BYTES);
        let beyond = self.cached.split_off(&keep);
        let mut pages: u64 = beyond.iter().map(|(first, end)| end - first).sum();
        if let Some((_, end)) = self.cached.iter_mut().next_back()
            && *end > keep
        {
            pages += *end - keep;
            *end = keep;
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
                extend_ns: 800.0,
                dirty_mib_ns: 1024.0,
            },
            intercept: InterceptCosts {
                hook_ns: 5.0,
                step_ns: 5.0,
                copy: CostTable::constant(3.0),
                load_ns: 0.0,
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
        let fresh = file.touch(Extent::new(19 * PAGE_BYTES, 22 * PAGE_BYTES));
        assert_eq!((fresh, file.cached_bytes()), (20, 22 * PAGE_BYTES));
    }

    #[test]
    fn a_sync_costs_by_what_happened_since_the_last_one() {
        let (storage, mut file) = (storage(), LocalFile::default());
        assert_eq!(storage.sync(&mut file), Nanos(1));
        storage.write(&mut file, Extent::new(0, 4096));
        // 800 for growth, 4 for 4 KiB at 1024 ns/MiB.
        assert_eq!(storage.sync(&mut file), Nanos(804));
        storage.write(&mut file, Extent::new(0, 2048));
        assert_eq!(storage.sync(&mut file), Nanos(502));
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
