//! Sums that a server keeps on its disk, as if they were perfect: of each page that has one, what it was summed
//! of. A power cut leaves of each sum either state; a device may change bytes at rest, which a read must tell.

use super::devices::{Disk, SECTOR_BYTES};
use crate::dice::Dice;
use iolab_pfs::Inode;
use iolab_pfs::io_server::{Outcome, Subfile};
use iolab_vocab::Extent;
use std::collections::{BTreeMap, BTreeSet};

/// A page of a subfile.
type Page = (Subfile, u64);

/// See the module.
#[derive(Clone, Debug, Default)]
pub(super) struct Sums {
    pub(super) page_bytes: u64,
    /// As the kernel has them.
    kernel: BTreeMap<Page, Vec<u8>>,
    /// As the disk has them, where they were synced.
    synced: BTreeMap<Page, Vec<u8>>,
    /// Subfiles of which this life of the server has synced the sums.
    known: BTreeSet<Subfile>,
    /// Bytes that the device has changed, and what they were.
    rotten: BTreeMap<(Subfile, usize), u8>,
}

impl Disk {
    /// What a page has, and zeros behind.
    fn page(&self, (subfile, page): Page) -> Vec<u8> {
        let bytes = self.subfiles.get(&subfile).map_or(&[][..], Vec::as_slice);
        let page_bytes = self.sums.page_bytes as usize;
        let from = (page as usize).saturating_mul(page_bytes).min(bytes.len());
        let mut content = bytes[from..bytes.len().min(from + page_bytes)].to_vec();
        content.resize(page_bytes, 0);
        content
    }

    fn is_intact(&self, page: Page) -> bool {
        self.sums.kernel.get(&page).is_none_or(|sum| *sum == self.page(page))
    }

    fn damaged(&self, (_, page): Page) -> Outcome {
        let page_bytes = self.sums.page_bytes;
        Outcome::Damaged { from: page * page_bytes, to: (page + 1) * page_bytes }
    }

    /// Pages of an extent up to the end of the subfile, or of the last sum.
    fn pages_of(&self, subfile: Subfile, extent: Extent) -> std::ops::Range<u64> {
        let page_bytes = self.sums.page_bytes;
        let bytes = self.subfiles.get(&subfile).map_or(0, |bytes| bytes.len() as u64);
        let last = self.sums.kernel.range((subfile, 0)..=(subfile, u64::MAX)).next_back();
        let last = last.map_or(0, |((_, page), _)| page + 1).max(bytes.div_ceil(page_bytes));
        extent.offset / page_bytes..extent.end().div_ceil(page_bytes).min(last)
    }

    /// Whether a page does not have its sum that keeps some of its bytes.
    pub(super) fn check_kept(
        &self,
        subfile: Subfile,
        extents: &[Extent],
        is_whole: bool,
    ) -> Option<Outcome> {
        let page_bytes = self.sums.page_bytes;
        extents.iter().find_map(|&extent| {
            let mut pages = self.pages_of(subfile, extent);
            let bad = pages.find(|&page| {
                let own = Extent::new(page * page_bytes, page_bytes);
                let keeps = !is_whole || extent.intersection(own) != own;
                keeps && !self.is_intact((subfile, page))
            })?;
            Some(self.damaged((subfile, bad)))
        })
    }

    /// Strikes sums out, in the kernel. Tells whether they have to be synced.
    pub(super) fn strike(&mut self, subfile: Subfile, extents: &[Extent]) -> bool {
        let mut any = !self.sums.known.contains(&subfile);
        for &extent in extents {
            for page in self.pages_of(subfile, extent) {
                any |= self.sums.kernel.remove(&(subfile, page)).is_some();
            }
        }
        self.heal_untold();
        any
    }

    /// The sums of a subfile are synced.
    pub(super) fn sync_sums(&mut self, subfile: Subfile) {
        let Sums { kernel, synced, known, .. } = &mut self.sums;
        synced.retain(|page, _| page.0 != subfile);
        let own = kernel.range((subfile, 0)..=(subfile, u64::MAX));
        synced.extend(own.map(|(&page, sum)| (page, sum.clone())));
        known.insert(subfile);
    }

    /// Pages without sums get some.
    pub(super) fn sum(&mut self, subfile: Subfile, pages: Extent) {
        let bytes = self.subfiles.get(&subfile).map_or(0, |bytes| bytes.len() as u64);
        let last = bytes.div_ceil(self.sums.page_bytes);
        for page in self.pages_of(subfile, pages).take_while(|&page| page < last) {
            let content = self.page((subfile, page));
            self.sums.kernel.entry((subfile, page)).or_insert(content);
        }
    }

    /// What a read of these places comes to: nothing special, pages without sums, or one without its own.
    pub(super) fn look_at_sums(&self, subfile: Subfile, places: &[u64], buffer: u64) -> Outcome {
        let page_bytes = self.sums.page_bytes;
        let buffer = iolab_pfs::Buffer(buffer);
        if page_bytes == 0 {
            return Outcome::Bytes(buffer);
        }
        let pages: BTreeSet<u64> = places.iter().map(|place| place / page_bytes).collect();
        if let Some(&page) = pages.iter().find(|&&page| !self.is_intact((subfile, page))) {
            return self.damaged((subfile, page));
        }
        let is_bare = |page: &&u64| {
            let page = (subfile, **page);
            !self.sums.kernel.contains_key(&page) && self.page(page).iter().any(|&byte| byte != 0)
        };
        let bare: Vec<u64> = pages.iter().filter(is_bare).copied().collect();
        match (bare.first(), bare.last()) {
            (Some(&first), Some(&last)) => {
                let (from, to) = (first * page_bytes, (last + 1) * page_bytes);
                Outcome::Unsummed { buffer, from, to }
            }
            _ => Outcome::Bytes(buffer),
        }
    }

    /// The device changes a byte at rest of a page that has its sum; of sectors that are `busy` it does not. Gives
    /// which, if it could.
    pub(super) fn rot(
        &mut self,
        subfile: Subfile,
        busy: &BTreeSet<usize>,
        dice: &mut Dice,
    ) -> Option<usize> {
        let own = self.sums.kernel.range((subfile, 0)..=(subfile, u64::MAX));
        let pages: Vec<u64> = own.map(|((_, page), _)| *page).collect();
        let length = self.subfiles.get(&subfile).map_or(0, Vec::len);
        let page = pages.get(dice.below(pages.len().max(1) as u64) as usize)?;
        let at = (page * self.sums.page_bytes + dice.below(self.sums.page_bytes)) as usize;
        let is_busy = busy.contains(&(at / SECTOR_BYTES)) || !self.is_at_rest(subfile, at);
        if at >= length || is_busy || self.sums.rotten.contains_key(&(subfile, at)) {
            return None;
        }
        let was = self.put_byte(subfile, at, |byte| byte ^ 0x80);
        self.sums.rotten.insert((subfile, at), was);
        Some(at)
    }

    /// Whether the device has changed something in a range of a subfile.
    pub(super) fn is_rotten(&self, subfile: Subfile, from: u64, to: u64) -> bool {
        let range = (subfile, from as usize)..(subfile, to as usize);
        self.sums.rotten.range(range).next().is_some()
    }

    /// A byte is written anew: nobody could tell any more what the device has made of what it had.
    pub(super) fn overwritten(&mut self, subfile: Subfile, at: usize) {
        if let Some(was) = self.sums.rotten.remove(&(subfile, at)) {
            self.put_stored(subfile, at, was);
        }
    }

    /// A subfile ends earlier.
    pub(super) fn rot_is_cut(&mut self, subfile: Subfile, bytes: usize) {
        let cut = self.sums.rotten.range((subfile, bytes)..=(subfile, usize::MAX));
        let cut: Vec<usize> = cut.map(|(&(_, at), _)| at).collect();
        cut.into_iter().for_each(|at| self.overwritten(subfile, at));
    }

    /// Somebody brings back what the device has changed.
    pub(super) fn heal(&mut self) {
        self.heal_where(|_| true);
    }

    /// The same where no sum would tell: a page that has lost its sum when the power went, or because all of it was
    /// to be written.
    pub(super) fn heal_untold(&mut self) {
        let Sums { page_bytes, kernel, rotten, .. } = &self.sums;
        let untold = rotten.keys().filter(|(subfile, at)| {
            !kernel.contains_key(&(*subfile, *at as u64 / (*page_bytes).max(1)))
        });
        let untold: BTreeSet<_> = untold.copied().collect();
        self.heal_where(|at| untold.contains(at));
    }

    fn heal_where(&mut self, is_meant: impl Fn(&(Subfile, usize)) -> bool) {
        let rotten = std::mem::take(&mut self.sums.rotten);
        let (healed, left) = rotten.into_iter().partition(|(at, _)| is_meant(at));
        self.sums.rotten = left;
        let healed: BTreeMap<(Subfile, usize), u8> = healed;
        for ((subfile, at), was) in healed {
            self.put_byte(subfile, at, |_| was);
        }
    }

    /// The subfiles of a file go.
    pub(super) fn discard_sums(&mut self, inode: Inode) {
        let Sums { kernel, synced, rotten, .. } = &mut self.sums;
        kernel.retain(|(subfile, _), _| subfile.inode != inode);
        synced.retain(|(subfile, _), _| subfile.inode != inode);
        rotten.retain(|(subfile, _), _| subfile.inode != inode);
    }
}

impl Sums {
    /// A server begins a new life: it does not know which sums its last one has not synced.
    pub(super) fn begin_life(&mut self) {
        self.known.clear();
    }

    /// The power goes.
    pub(super) fn cut(&mut self, dice: &mut Dice) {
        let pages: BTreeSet<Page> = self.kernel.keys().chain(self.synced.keys()).copied().collect();
        for page in pages {
            if self.kernel.get(&page) == self.synced.get(&page) {
                continue;
            }
            let (from, to) = match dice.one_in(2) {
                true => (&self.kernel, &mut self.synced),
                false => (&self.synced, &mut self.kernel),
            };
            match from.get(&page).cloned() {
                Some(sum) => drop(to.insert(page, sum)),
                None => drop(to.remove(&page)),
            }
        }
    }
}
