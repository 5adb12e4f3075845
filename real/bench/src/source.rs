//! Where in the memory of a rank the buffer of each operation lies.
//!
//! Writes to contiguous ranges take a window of the content table: no filling, no copy, no limit on
//! how many. Non-contiguous writes that are to be verified get a filled buffer each, made before
//! the clock starts; without verification they share one. Reads go to a buffer of their own.

use crate::content::{Content, PERIOD};
use iolab_pattern::{Access, Pattern};
use iolab_vocab::{Rank, format_bytes};

/// Direct I/O wants buffers on its grid.
const PAGE: u64 = 4096;
/// Filled buffers may take this much memory per rank.
const FILLED_MAX: u64 = 1 << 30;

/// The layout of a rank's memory for one phase.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Source {
    kind: Kind,
    /// Where the buffers for reading start: one per operation under way.
    pub(crate) read_at: usize,
    slot: usize,
    /// All of it.
    pub(crate) bytes: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Window,
    Filled { each: usize },
    Same,
    Nothing,
}

impl Source {
    /// Plans the memory. `writes` when anything is written, `exact` when it will be verified.
    pub(crate) fn plan(
        pattern: &dyn Pattern,
        rank: Rank,
        writes: bool,
        exact: bool,
        depth: usize,
    ) -> Result<Source, String> {
        let operations = pattern.operations(rank);
        let each = pattern.memory_bytes().next_multiple_of(PAGE);
        let (kind, bytes) = match () {
            () if !writes => (Kind::Nothing, 0),
            () if is_contiguous(pattern, rank) => (Kind::Window, PERIOD + each),
            () if exact => (Kind::Filled { each: each as usize }, each.saturating_mul(operations)),
            () => (Kind::Same, each),
        };
        if bytes > FILLED_MAX.max(PERIOD + each) {
            let wanted = format_bytes(bytes);
            return Err(format!("verifying non-contiguous writes would take {wanted} per rank"));
        }
        let (read_at, slot) = (bytes as usize, each as usize);
        Ok(Source { kind, read_at, slot, bytes: read_at + slot * depth })
    }

    /// Fills what will be written. Not timed.
    pub(crate) fn fill(
        &self,
        pattern: &dyn Pattern,
        rank: Rank,
        content: Content,
        memory: &mut [u8],
    ) {
        let mut access = Access::new();
        match self.kind {
            Kind::Nothing => {}
            Kind::Window => content.fill(0, &mut memory[..self.read_at]),
            Kind::Same if pattern.operations(rank) == 0 => {}
            Kind::Same => {
                pattern.place(rank, 0, &mut access);
                content.fill_access(&access, memory);
            }
            Kind::Filled { each } => {
                for index in 0..pattern.operations(rank) {
                    pattern.place(rank, index, &mut access);
                    content.fill_access(&access, &mut memory[index as usize * each..]);
                }
            }
        }
    }

    /// Where the data of a write lies.
    #[inline]
    pub(crate) fn write_at(&self, index: u64, access: &Access) -> usize {
        match (self.kind, access.contiguous()) {
            (Kind::Window, Some(extent)) => (extent.offset % PERIOD) as usize,
            (Kind::Filled { each }, _) => index as usize * each,
            _ => 0,
        }
    }

    /// Where a read goes that uses this slot.
    #[inline]
    pub(crate) fn slot_at(&self, slot: usize) -> usize {
        self.read_at + slot * self.slot
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
