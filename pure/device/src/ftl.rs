//! The mapping of a solid-state drive: which flash page holds which page of a file, and what is
//! cleaned when free blocks run out (greedily, the block with fewest valid pages).
//!
//! Costs O(log n) per page written, n being the pages held.

use iolab_vocab::FileId;
use std::collections::{BTreeMap, BTreeSet};

/// A page of a file.
pub(crate) type Page = (FileId, u64);

/// Blocks that are never filled by the host, so that a cleaner can always move.
const RESERVED_BLOCKS: usize = 2;

/// What has been done so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Totals {
    /// Pages the host wrote.
    pub(crate) written: u64,
    /// Pages moved to free their block.
    pub(crate) moved: u64,
    /// Blocks erased.
    pub(crate) erased: u64,
}

#[derive(Clone, Debug)]
pub(crate) struct Ftl {
    block_pages: u32,
    /// Where each page is: block and place in it.
    map: BTreeMap<Page, (u32, u32)>,
    /// What was written into each block, in order.
    blocks: Vec<Vec<Page>>,
    valid: Vec<u32>,
    /// Full blocks by valid pages.
    by_valid: BTreeSet<(u32, u32)>,
    free: Vec<u32>,
    open: u32,
    totals: Totals,
}

impl Ftl {
    pub(crate) fn new(blocks: u32, block_pages: u32) -> Ftl {
        let mut free: Vec<u32> = (0..blocks).rev().collect();
        let open = free.pop().expect("a drive has blocks");
        Ftl {
            block_pages,
            map: BTreeMap::new(),
            blocks: vec![Vec::new(); blocks as usize],
            valid: vec![0; blocks as usize],
            by_valid: BTreeSet::new(),
            free,
            open,
            totals: Totals::default(),
        }
    }

    pub(crate) fn totals(&self) -> Totals {
        self.totals
    }

    pub(crate) fn holds(&self, page: Page) -> bool {
        self.map.contains_key(&page)
    }

    pub(crate) fn write_amplification(&self) -> f64 {
        let Totals { written, moved, .. } = self.totals;
        if written == 0 { 1.0 } else { (written + moved) as f64 / written as f64 }
    }

    /// The host writes a page.
    pub(crate) fn write(&mut self, page: Page) {
        self.totals.written += 1;
        self.put(page);
        while self.free.len() < RESERVED_BLOCKS {
            self.clean();
        }
    }

    fn put(&mut self, page: Page) {
        self.invalidate(page);
        if self.blocks[self.open as usize].len() as u32 == self.block_pages {
            self.by_valid.insert((self.valid[self.open as usize], self.open));
            self.open = self.free.pop().expect("blocks are kept in reserve");
        }
        let block = &mut self.blocks[self.open as usize];
        self.map.insert(page, (self.open, block.len() as u32));
        block.push(page);
        self.valid[self.open as usize] += 1;
    }

    fn invalidate(&mut self, page: Page) {
        let Some((block, _)) = self.map.remove(&page) else { return };
        let valid = &mut self.valid[block as usize];
        if self.by_valid.remove(&(*valid, block)) {
            self.by_valid.insert((*valid - 1, block));
        }
        *valid -= 1;
    }

    /// Moves what is valid in the emptiest block and erases it. A drive that is full of valid pages
    /// forgets that block's instead: whoever writes more than the capacity has overwritten it.
    fn clean(&mut self) {
        let (valid, block) = self.by_valid.pop_first().expect("all others are full blocks");
        let pages = std::mem::take(&mut self.blocks[block as usize]);
        for (place, page) in pages.into_iter().enumerate() {
            if self.map.get(&page) != Some(&(block, place as u32)) {
                continue;
            }
            if valid == self.block_pages {
                self.map.remove(&page);
            } else {
                self.totals.moved += 1;
                self.put(page);
            }
        }
        self.valid[block as usize] = 0;
        self.totals.erased += 1;
        self.free.push(block);
    }
}
