//! Which pages of subfiles have no sum on the device, as far as this life of the server knows.
//!
//! A page that is about to be written has its sum struck out first, and gets one again when its subfile has been
//! left alone for a while, or has waited for [`WAITS`] times that. So a sum that is there is that of what was written
//! last, whatever crashes; what is written again and again is summed once; and no write waits for a sum but one to
//! pages that are being summed. Pages without sums that somebody reads get one, too: a server that was killed, or one
//! that had none, has left them.
//!
//! Costs: an entry for each run of pages that was written lately; a subfile with more than [`RUNS_MAX`] is due at
//! once. Memory beyond that is none: sums themselves stay on the device.

use super::{Action, IoServer, Operation, Outcome, Subfile, Work};
use crate::plant::{Plant, is_planted};
use crate::{Code, Inode, Message};
use iolab_vocab::{Extent, Nanos};
use std::collections::{BTreeMap, BTreeSet};

/// Bytes that one sum is of, on real devices: what they read, or do not, as a whole.
pub const PAGE_BYTES: u64 = 4096;
/// After how many times the pause of others pages of a subfile are summed that is written all the time.
const WAITS: u64 = 15;
/// Pages that are summed at a time: writes to them wait for that.
const PAGES_MAX: u64 = 4096;
/// Runs of pages of a subfile that are remembered before they are summed.
const RUNS_MAX: usize = 4096;
/// Damaged pages that are remembered, for who asks how many there are.
const DAMAGED_MAX: usize = 65_536;

/// What a server keeps sums of, and when.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Summing {
    /// Bytes that each sum is of.
    pub page_bytes: u64,
    /// How long a subfile is left alone before its pages are summed.
    pub settle: Nanos,
}

impl Summing {
    /// Of pages as devices have them, 2 s after they were written last.
    pub fn usual() -> Summing {
        Summing { page_bytes: PAGE_BYTES, settle: Nanos(2_000_000_000) }
    }
}

/// Pages of one subfile, `[from, to)`.
type Run = (u64, u64);

/// What is known of a subfile.
#[derive(Debug)]
struct Bare {
    /// Pages without sums: runs that neither overlap nor touch, by their first pages.
    runs: BTreeMap<u64, u64>,
    /// Among these pages are some without sums.
    seen: Option<Run>,
    /// When the first of them lost its sum, or was seen.
    since: Nanos,
    /// When they are summed.
    due: Nanos,
    is_summed: bool,
}

/// See the module.
#[derive(Debug, Default)]
pub(super) struct Sums {
    /// None if there are no sums.
    summing: Option<Summing>,
    bare: BTreeMap<Subfile, Bare>,
    /// Pages that were found to be other than what was written.
    damaged: BTreeSet<(Subfile, u64)>,
}

impl Sums {
    /// With sums, or without any.
    pub(super) fn of(summing: Option<Summing>) -> Sums {
        Sums { summing, bare: BTreeMap::new(), damaged: BTreeSet::new() }
    }

    fn page_bytes(&self) -> u64 {
        self.summing.map_or(PAGE_BYTES, |summing| summing.page_bytes)
    }

    fn settle(&self) -> Nanos {
        self.summing.map_or(Nanos::ZERO, |summing| summing.settle)
    }

    /// The pages that an extent touches.
    fn pages(&self, extent: Extent) -> Run {
        let bytes = self.page_bytes();
        (extent.offset / bytes, extent.end().div_ceil(bytes))
    }

    /// The bytes of some pages.
    fn extent(&self, (from, to): Run) -> Extent {
        let bytes = self.page_bytes();
        Extent::new(from * bytes, (to - from).saturating_mul(bytes))
    }

    /// What is left of the page in which a subfile is cut, if it is cut within one.
    fn split_page(&self, bytes: u64) -> Option<Extent> {
        let within = bytes % self.summing?.page_bytes;
        (within > 0).then(|| Extent::new(bytes - within, within))
    }

    /// Whether some page of these extents may have a sum.
    fn may_have(&self, subfile: Subfile, extents: &[Extent]) -> bool {
        if self.summing.is_none() || is_planted(Plant::SumOutlivesWrite) {
            return false;
        }
        let Some(bare) = self.bare.get(&subfile) else { return true };
        extents.iter().any(|&extent| {
            let (from, to) = self.pages(extent);
            let run = bare.runs.range(..=from).next_back();
            from < to && run.is_none_or(|(_, &end)| end < to)
        })
    }

    fn entry(&mut self, now: Nanos, subfile: Subfile) -> &mut Bare {
        let due = now.after(self.settle());
        let new = || Bare { runs: BTreeMap::new(), seen: None, since: now, due, is_summed: false };
        self.bare.entry(subfile).or_insert_with(new)
    }

    /// The pages of these extents have no sums now.
    fn struck(&mut self, now: Nanos, subfile: Subfile, extents: &[Extent]) {
        let runs = extents.iter().map(|&extent| self.pages(extent));
        let runs: Vec<Run> = runs.filter(|(from, to)| from < to).collect();
        if runs.is_empty() {
            return;
        }
        let settle = self.settle();
        let bare = self.entry(now, subfile);
        for (mut from, mut to) in runs {
            while let Some((&low, &high)) = bare.runs.range(..=to).next_back()
                && high >= from
            {
                (from, to) = (from.min(low), to.max(high));
                bare.runs.remove(&low);
            }
            bare.runs.insert(from, to);
        }
        bare.touch(now, settle);
    }

    /// Some pages among these were read that have no sums.
    fn seen(&mut self, now: Nanos, subfile: Subfile, (from, to): (u64, u64)) {
        let (from, to) = self.pages(Extent::new(from, to.saturating_sub(from)));
        if from >= to {
            return;
        }
        let bare = self.entry(now, subfile);
        let (low, high) = bare.seen.unwrap_or((from, to));
        bare.seen = Some((low.min(from), high.max(to)));
    }

    /// A subfile was written to.
    pub(super) fn touched(&mut self, now: Nanos, subfile: Subfile) {
        let settle = self.settle();
        if let Some(bare) = self.bare.get_mut(&subfile) {
            bare.touch(now, settle);
        }
    }

    /// The pages of each subfile that are to be summed next, where that is due; they are taken for summed.
    fn take_due(&mut self, now: Nanos) -> Vec<(Subfile, Run)> {
        let due = self.bare.iter_mut().filter(|(_, bare)| !bare.is_summed && bare.due <= now);
        due.filter_map(|(&subfile, bare)| {
            let run = bare.first()?;
            bare.is_summed = true;
            Some((subfile, run))
        })
        .collect()
    }

    /// Some pages have sums now, or nobody could give them some.
    fn summed(&mut self, subfile: Subfile, (from, to): Run) {
        let Some(bare) = self.bare.get_mut(&subfile) else { return };
        bare.is_summed = false;
        let within = |(&low, &high): (&u64, &u64)| (low < to && from < high).then_some((low, high));
        let cut: Vec<Run> = bare.runs.iter().filter_map(within).collect();
        for (low, high) in cut {
            bare.runs.remove(&low);
            let rests = [(low, high.min(from)), (low.max(to), high)];
            bare.runs.extend(rests.into_iter().filter(|(low, high)| low < high));
        }
        bare.seen =
            bare.seen.map(|(low, high)| (low.max(to), high)).filter(|(low, high)| low < high);
        if bare.first().is_none() {
            self.bare.remove(&subfile);
        }
    }

    /// A file is no more.
    pub(super) fn forget(&mut self, inode: Inode) {
        self.bare.retain(|subfile, _| subfile.inode != inode);
        self.damaged.retain(|(subfile, _)| subfile.inode != inode);
    }

    /// Bytes of a subfile are not as they were written.
    pub(super) fn found_damaged(&mut self, subfile: Subfile, from: u64, to: u64) {
        let (low, high) = self.pages(Extent::new(from, to.saturating_sub(from)));
        let room = DAMAGED_MAX.saturating_sub(self.damaged.len());
        self.damaged.extend((low..high).take(room).map(|page| (subfile, page)));
    }

    /// Nobody will read again what was in these bytes: who keeps a part of a damaged page is refused.
    fn written_anew(&mut self, subfile: Subfile, extents: &[Extent]) {
        for &extent in extents {
            let (low, high) = self.pages(extent);
            let pages = self.damaged.range((subfile, low)..(subfile, high));
            let mended: Vec<_> = pages.copied().collect();
            mended.iter().for_each(|page| {
                self.damaged.remove(page);
            });
        }
    }

    /// Pages that were found damaged, as far as they are remembered.
    pub(super) fn damaged_pages(&self) -> u64 {
        self.damaged.len() as u64
    }

    /// When the next pages are due.
    pub(super) fn wakes_at(&self) -> Option<Nanos> {
        self.bare.values().filter(|bare| !bare.is_summed).map(|bare| bare.due).min()
    }
}

impl Bare {
    fn touch(&mut self, now: Nanos, settle: Nanos) {
        self.due = match self.runs.len() > RUNS_MAX {
            true => now,
            false => now.after(settle).min(self.since.after(Nanos(settle.0 * WAITS))),
        };
    }

    /// The first pages that have no sums, or may have none, and what follows them closely.
    fn first(&self) -> Option<Run> {
        let struck = self.runs.first_key_value().map(|(&from, _)| from);
        let from = struck.into_iter().chain(self.seen.map(|(from, _)| from)).min()?;
        let struck = self.runs.last_key_value().map(|(_, &to)| to);
        let to = struck.into_iter().chain(self.seen.map(|(_, to)| to)).max()?;
        Some((from, to.min(from + PAGES_MAX)))
    }
}

impl IoServer {
    /// Whether a change has to wait until sums are struck out; has that done, if so.
    pub(super) fn strikes(&mut self, operation: Operation, out: &mut Vec<Action>) -> bool {
        let (subfile, extents, is_whole) = match self.serving.job(operation) {
            Some(Work::Write { subfile, portion, .. }) => {
                let extents = portion.extents();
                let bytes: u64 = extents.iter().map(|extent| extent.length).sum();
                (*subfile, extents, bytes == portion.bytes())
            }
            Some(&mut Work::Resize { subfile, bytes, .. }) => {
                // Nothing is there beyond.
                let behind = Extent::new(bytes, u64::MAX - bytes);
                let extents = if is_planted(Plant::SumOutlivesCut) { vec![] } else { vec![behind] };
                (subfile, extents, true)
            }
            _ => return false,
        };
        if !self.sums.may_have(subfile, &extents) {
            return false;
        }
        if let Some(Work::Write { strikes, .. } | Work::Resize { strikes, .. }) =
            self.serving.job(operation)
        {
            *strikes = true;
        }
        out.push(Action::Strike { operation, subfile, extents, is_whole });
        true
    }

    /// Sums are struck out, or that has failed: then nobody knows which are on the device.
    pub(super) fn struck(
        &mut self,
        now: Nanos,
        operation: Operation,
        result: Result<Outcome, Code>,
        out: &mut Vec<Action>,
    ) {
        let (subfile, extents, behind): (_, Vec<Extent>, _) = match self.serving.job(operation) {
            Some(Work::Write { subfile, portion, strikes, .. }) => {
                *strikes = false;
                (*subfile, portion.extents(), None)
            }
            Some(Work::Resize { subfile, bytes, strikes, .. }) => {
                *strikes = false;
                // Of the pages behind there is nothing to sum.
                let behind = Extent::new(*bytes, u64::MAX - *bytes);
                (*subfile, self.sums.split_page(*bytes).into_iter().collect(), Some(behind))
            }
            _ => return,
        };
        match result {
            Ok(Outcome::Damaged { from, to }) => {
                self.sums.found_damaged(subfile, from, to);
                let message = damaged(subfile, from, to);
                self.refuse_with(operation, message, out);
            }
            Ok(_) => {
                self.sums.struck(now, subfile, &extents);
                let replaced = behind.as_ref().map_or(&extents[..], std::slice::from_ref);
                self.sums.written_anew(subfile, replaced);
                self.begin_change(operation, out);
            }
            Err(code) => {
                self.failed.get_or_insert(code);
                let message = Message::failed(code, super::commits::FAILED);
                self.refuse_with(operation, message, out);
            }
        }
    }

    /// Bytes were read, some of them from pages without sums.
    pub(super) fn unsummed_seen(&mut self, now: Nanos, operation: Operation, pages: (u64, u64)) {
        let subfile = self.serving.job(operation).and_then(|work| work.subfile());
        if let Some(subfile) = subfile {
            self.sums.seen(now, subfile, pages);
        }
    }

    /// Begins to sum what is due.
    pub(super) fn sum_due(&mut self, now: Nanos) {
        if self.failed.is_some() {
            return;
        }
        for (subfile, run) in self.sums.take_due(now) {
            let pages = self.sums.extent(run);
            self.serving.begin_own(Work::Sum { subfile, pages });
        }
    }

    /// Has the device sum pages, unless that is not to be any more or has to wait for a sync.
    pub(super) fn sum(&mut self, operation: Operation, subfile: Subfile, out: &mut Vec<Action>) {
        if self.failed.is_some() {
            return self.do_not_sum(operation);
        }
        if self.commits.ask_for_sum(subfile, operation) {
            self.begin_commit(operation, out);
        }
    }

    /// What the device may not have is not summed: it would seem to have changed it.
    pub(super) fn do_not_sum(&mut self, operation: Operation) {
        if let Some(&mut Work::Sum { subfile, pages }) = self.serving.job(operation) {
            self.sums.summed(subfile, self.sums.pages(pages));
        }
        self.serving.leave(operation);
    }

    /// Pages were summed, or that has failed: as a sync that does, since it is one, too.
    pub(super) fn summed(
        &mut self,
        operation: Operation,
        (subfile, pages): (Subfile, Extent),
        result: Result<Outcome, Code>,
        out: &mut Vec<Action>,
    ) {
        self.sums.summed(subfile, self.sums.pages(pages));
        self.serving.leave(operation);
        if !is_planted(Plant::SummedBesideSync) {
            self.commit_over(subfile, result.map(|_| ()), out);
        }
    }
}

/// What is told of bytes that the device has changed.
pub(super) fn damaged(subfile: Subfile, from: u64, to: u64) -> Message {
    let Subfile { inode, index } = subfile;
    let text = format!(
        "the device has changed what was written to it: bytes {from} to {to} of subfile {index} of file {inode} do \
         not have their sum; there is no other copy"
    );
    Message::failed(Code::IO, text)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SUBFILE: Subfile = Subfile { inode: Inode(7), index: 0 };

    const SUMMING: Option<Summing> = Some(Summing { page_bytes: 10, settle: SETTLE });
    const SETTLE: Nanos = Nanos(100);

    fn bytes(from: u64, length: u64) -> Vec<Extent> {
        vec![Extent::new(from, length)]
    }

    #[test]
    fn a_page_is_struck_out_once_until_it_is_summed_again() {
        let mut sums = Sums::of(SUMMING);
        assert!(sums.may_have(SUBFILE, &bytes(5, 10)));
        sums.struck(Nanos(0), SUBFILE, &bytes(5, 10));
        assert!(!sums.may_have(SUBFILE, &bytes(0, 20)) && sums.may_have(SUBFILE, &bytes(19, 2)));
        sums.struck(Nanos(0), SUBFILE, &bytes(40, 1));
        sums.struck(Nanos(0), SUBFILE, &bytes(20, 20));
        assert!(!sums.may_have(SUBFILE, &bytes(0, 50)), "{sums:?}");
        assert_eq!(sums.take_due(Nanos(1)), []);
        assert_eq!(sums.wakes_at(), Some(SETTLE));
        assert_eq!(sums.take_due(SETTLE), [(SUBFILE, (0, 5))]);
        assert_eq!((sums.take_due(SETTLE), sums.wakes_at()), (vec![], None));
        sums.summed(SUBFILE, (1, 3));
        assert!(sums.may_have(SUBFILE, &bytes(10, 1)) && !sums.may_have(SUBFILE, &bytes(30, 20)));
        sums.summed(SUBFILE, (0, 5));
        assert!(sums.bare.is_empty());
    }

    #[test]
    fn what_was_seen_without_sums_may_have_some_and_is_summed() {
        let mut sums = Sums::of(SUMMING);
        sums.seen(Nanos(5), SUBFILE, (30, 90));
        assert!(sums.may_have(SUBFILE, &bytes(40, 1)));
        assert_eq!(sums.take_due(SETTLE.after(Nanos(5))), [(SUBFILE, (3, 9))]);
        sums.summed(SUBFILE, (3, 9));
        assert!(sums.bare.is_empty());
    }

    #[test]
    fn what_is_written_all_the_time_is_due_after_a_while() {
        let mut sums = Sums::of(SUMMING);
        sums.struck(Nanos(0), SUBFILE, &bytes(0, 1));
        (1..40).for_each(|second| sums.touched(Nanos(second * 50), SUBFILE));
        assert_eq!(sums.wakes_at(), Some(Nanos(WAITS * SETTLE.0)));
        sums.forget(SUBFILE.inode);
        assert_eq!(sums.wakes_at(), None);
    }

    #[test]
    fn without_sums_nothing_is_struck_out() {
        assert!(!Sums::of(None).may_have(SUBFILE, &bytes(0, 1)));
    }
}
