//! How much of each block is held: which are full is known without looking at their pieces, of which a block
//! of small records has thousands.

use crate::insitu::held::Held;
use iolab_vocab::Extent;
use std::collections::BTreeMap;

/// Held bytes by block. A write costs O(log blocks) for each block it touches.
#[derive(Clone, Debug)]
pub(super) struct Filling {
    block_bytes: u64,
    /// By number; none that is empty.
    held: BTreeMap<u64, u64>,
}

impl Filling {
    /// Of blocks of this length.
    pub(super) fn of_blocks(block_bytes: u64) -> Filling {
        Filling { block_bytes, held: BTreeMap::new() }
    }

    /// The last edge up to there.
    pub(super) fn edge_before(&self, end: u64) -> u64 {
        end - end % self.block_bytes
    }

    /// The parts of an extent by block.
    pub(super) fn cut(&self, extent: Extent) -> Vec<Extent> {
        let part = |number| Extent::new(number * self.block_bytes, self.block_bytes);
        self.numbers(extent).map(|number| extent.intersection(part(number))).collect()
    }

    /// So many more bytes are held of the block that has this part.
    pub(super) fn add(&mut self, part: Extent, bytes: u64) {
        *self.held.entry(part.offset / self.block_bytes).or_default() += bytes;
    }

    /// What was held of an extent is not any more.
    pub(super) fn recount(&mut self, extent: Extent, held: &Held) {
        for number in self.numbers(extent) {
            let block = Extent::new(number * self.block_bytes, self.block_bytes);
            match held.pieces_in(block).map(|piece| piece.extent.length).sum() {
                0 => _ = self.held.remove(&number),
                bytes => _ = self.held.insert(number, bytes),
            }
        }
    }

    /// Nothing is held any more.
    pub(super) fn clear(&mut self) {
        self.held.clear();
    }

    /// The full blocks that an extent touches, if there are any. Those between its first and its last one it
    /// has filled itself, so they follow each other.
    pub(super) fn full(&self, extent: Extent) -> Option<Extent> {
        let is_full = |number: &u64| self.held.get(number) == Some(&self.block_bytes);
        let (first, last) =
            (self.numbers(extent).find(is_full)?, self.numbers(extent).rfind(is_full)?);
        let offset = first * self.block_bytes;
        Some(Extent::new(offset, (last + 1) * self.block_bytes - offset))
    }

    /// The numbers of the blocks that an extent touches.
    fn numbers(&self, extent: Extent) -> std::ops::Range<u64> {
        extent.offset / self.block_bytes..extent.end().div_ceil(self.block_bytes)
    }
}
