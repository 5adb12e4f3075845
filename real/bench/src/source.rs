//! Where in the memory of a rank the buffer of each operation lies.
//!
//! Writes to contiguous ranges take a window of the content table: no filling, no copy, no limit on
//! how many. Non-contiguous writes that are to be verified get a filled buffer each, made before
//! the clock starts; without verification a number of filled buffers take turns. Reads go to a buffer of
//! their own, or, when they are to be checked, to one each: what a timed read brought is still there
//! when the clock has stopped.

use crate::content::{Content, SECTOR, TABLE};
use iolab_pattern::{Access, Pattern};
use iolab_vocab::{Rank, format_bytes};

/// Direct I/O wants buffers on its grid.
const PAGE: u64 = 4096;
/// Filled buffers may take this much memory per rank.
const FILLED_MAX: u64 = 1 << 30;
/// Filled buffers that take turns.
const TURNS_MAX: u64 = 16 << 20;
/// Timed reads that are kept to be checked may take this much.
const KEPT_MAX: u64 = 256 << 20;

/// What a phase is to be able to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Needs {
    /// Something is written.
    pub(crate) writes: bool,
    /// The method keeps data at all.
    pub(crate) data: bool,
    /// What is written and read will be checked.
    pub(crate) exact: bool,
    /// Operations under way at once.
    pub(crate) depth: usize,
}

/// The layout of a rank's memory for one phase.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Source {
    kind: Kind,
    /// Where the buffers for reading start: one per operation under way.
    read_base: usize,
    slot: usize,
    depth: usize,
    /// Where the reads that are kept start, and how many there are.
    kept_base: usize,
    kept: u64,
    /// Of the reads, one in so many is kept.
    every: u64,
    /// Windows need stamps before they are written.
    stamps: Option<Content>,
    /// All of it.
    pub(crate) bytes: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Window,
    Filled { each: usize, count: u64 },
    Nothing,
}

impl Source {
    /// Plans the memory.
    pub(crate) fn plan(pattern: &dyn Pattern, rank: Rank, needs: Needs) -> Result<Source, String> {
        let operations = pattern.operations(rank);
        let each = pattern.memory_bytes().next_multiple_of(PAGE);
        let window = TABLE.min(pattern.file_bytes()) + each + PAGE;
        let (kind, bytes) = match () {
            () if !needs.writes || !needs.data => (Kind::Nothing, 0),
            () if is_contiguous(pattern, rank) => (Kind::Window, window),
            () => {
                let turns = (TURNS_MAX / each.max(1)).max(1);
                let count = if needs.exact { operations } else { operations.min(turns) }.max(1);
                (Kind::Filled { each: each as usize, count }, each.saturating_mul(count))
            }
        };
        if bytes > FILLED_MAX.max(window) {
            let wanted = format_bytes(bytes);
            return Err(format!("verifying non-contiguous writes would take {wanted} per rank"));
        }
        let (read_base, slot) = (bytes as usize, each as usize);
        let kept_base = read_base + slot * needs.depth;
        let all = each.saturating_mul(operations);
        let every = all.div_ceil(KEPT_MAX.max(each)).max(1);
        let kept = if needs.exact && needs.data { operations.div_ceil(every) } else { 0 };
        Ok(Source {
            kind,
            read_base,
            slot,
            depth: needs.depth,
            kept_base,
            kept,
            every,
            stamps: None,
            bytes: kept_base + slot * kept as usize,
        })
    }

    /// Fills what will be written, and puts what nobody writes where reads go. Not timed.
    pub(crate) fn fill(
        &mut self,
        pattern: &dyn Pattern,
        rank: Rank,
        content: Content,
        memory: &mut [u8],
    ) {
        let mut access = Access::new();
        self.stamps = None;
        match self.kind {
            Kind::Nothing => {}
            Kind::Window => {
                // A shorter file uses only the beginning of the table.
                let used = pattern.file_bytes().min(TABLE) as usize;
                content.fill(0, &mut memory[..used]);
                if pattern.file_bytes() > TABLE {
                    // What follows the table is its beginning, as offsets go on.
                    content.fill(TABLE, &mut memory[TABLE as usize..self.read_base]);
                    self.stamps = Some(content);
                }
            }
            Kind::Filled { each, count } => {
                for index in 0..pattern.operations(rank).min(count) {
                    pattern.place(rank, index, &mut access);
                    content.fill_access(&access, &mut memory[index as usize * each..]);
                }
            }
        }
        if self.kept > 0 {
            memory[self.read_base..].fill(0xB6);
        }
    }

    /// Where the data of a write lies.
    #[inline]
    pub(crate) fn write_at(&self, index: u64, access: &Access) -> usize {
        match (self.kind, access.contiguous()) {
            (Kind::Window, Some(extent)) => (extent.offset % TABLE) as usize,
            (Kind::Filled { each, count }, _) => (index % count) as usize * each,
            _ => 0,
        }
    }

    /// Whether a window has to be stamped before it is written.
    #[inline]
    pub(crate) fn needs_stamps(&self) -> bool {
        self.stamps.is_some()
    }

    /// Puts the stamps of its sectors into the data of a write that lies at `at`.
    pub(crate) fn stamp(&self, access: &Access, at: usize, memory: &mut [u8]) {
        let (Some(content), Some(extent)) = (self.stamps, access.contiguous()) else { return };
        if extent.length == 0 {
            return;
        }
        let skip = (extent.offset % SECTOR) as usize;
        let (first, last) = (extent.offset / SECTOR, (extent.end() - 1) / SECTOR);
        if let Some(begun) = at.checked_sub(skip) {
            for sector in first..=last {
                let place = begun + ((sector - first) * SECTOR) as usize;
                memory[place..place + 8].copy_from_slice(&content.stamp(sector));
            }
        }
    }

    /// The same for a copy that begins at `at`, with nothing before it that may be written.
    pub(crate) fn stamp_copy(&self, access: &Access, at: usize, memory: &mut [u8]) {
        let (Some(content), Some(extent)) = (self.stamps, access.contiguous()) else { return };
        let mut sector = extent.offset / SECTOR;
        while sector * SECTOR < extent.end() {
            let stamp = content.stamp(sector);
            for (place, byte) in (sector * SECTOR..).zip(stamp) {
                if place >= extent.offset && place < extent.end() {
                    memory[at + (place - extent.offset) as usize] = byte;
                }
            }
            sector += 1;
        }
    }

    /// Where a read goes: to a buffer of its own when it will be checked.
    #[inline]
    pub(crate) fn read_at(&self, index: u64, slot: usize) -> usize {
        self.kept_at(index).unwrap_or_else(|| self.slot_at(slot))
    }

    /// Where what this read brought still lies.
    #[inline]
    pub(crate) fn kept_at(&self, index: u64) -> Option<usize> {
        if self.kept == 0 || !index.is_multiple_of(self.every) {
            return None;
        }
        let place = index / self.every;
        (place < self.kept).then(|| self.kept_base + place as usize * self.slot)
    }

    /// The buffer of an operation under way.
    #[inline]
    pub(crate) fn slot_at(&self, slot: usize) -> usize {
        self.read_base + slot.min(self.depth - 1) * self.slot
    }
}

/// Whether all operations are, as far as the first and the last tell: patterns are uniform in
/// this, and a shorter last one is no less contiguous.
pub(crate) fn is_contiguous(pattern: &dyn Pattern, rank: Rank) -> bool {
    let operations = pattern.operations(rank);
    let mut access = Access::new();
    let mut contiguous = |index| {
        pattern.place(rank, index, &mut access);
        access.contiguous().is_some()
    };
    operations == 0 || (contiguous(0) && contiguous(operations - 1))
}

#[cfg(test)]
mod tests {
    use super::*;
    use iolab_pattern::Catalog;
    use iolab_vocab::Seed;

    #[test]
    fn every_window_of_a_file_longer_than_the_table_holds_what_belongs_there() {
        let spec = "random-blocks:block=10000,count=5000";
        let pattern = Catalog::make(spec, 1, Seed(1)).expect("a pattern");
        assert!(pattern.file_bytes() > 2 * TABLE);
        let needs = Needs { writes: true, data: true, exact: false, depth: 1 };
        let mut source = Source::plan(pattern.as_ref(), Rank(0), needs).expect("small");
        let mut memory = vec![0; source.bytes];
        let content = Content::new(Seed(1), 0, 7);
        source.fill(pattern.as_ref(), Rank(0), content, &mut memory);
        let mut access = Access::new();
        for index in (0..5000).step_by(7) {
            pattern.place(Rank(0), index, &mut access);
            let at = source.write_at(index, &access);
            source.stamp(&access, at, &mut memory);
            let extent = access.contiguous().expect("a block");
            let data = &memory[at..at + extent.length as usize];
            assert_eq!(crate::content::check(&[content], extent.offset, data), Ok(()), "{extent}");
        }
    }
}
