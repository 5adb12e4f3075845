//! Which bytes the calls of one data command touch: by a pattern, through a view, or by ranges.
//!
//! Any call of any rank is found by its number, so nothing is stored per call.

use iolab_pattern::{Access, Pattern, Strided};
use iolab_vocab::{Extent, Rank};
use std::sync::Arc;

/// Where the calls of a data command go.
#[derive(Clone)]
pub(super) enum Place {
    /// So many operations of a pattern per call.
    Pattern { pattern: Arc<dyn Pattern>, per_call: u64 },
    /// Consecutive stretches of what a view shows: the bytes of a pattern, in its order.
    View { pattern: Arc<dyn Pattern>, start: u64, bytes: u64, calls: u64 },
    /// One range per call, each after the one before.
    Range { bytes: u64, calls: u64, rank_step: u64 },
}

impl Place {
    /// Calls of this rank.
    pub(super) fn calls(&self, rank: u32) -> u64 {
        match self {
            Place::Pattern { pattern, per_call } => {
                pattern.operations(Rank(rank)).div_ceil(*per_call)
            }
            Place::View { calls, .. } | Place::Range { calls, .. } => *calls,
        }
    }

    /// Puts what call `call` of `rank` touches into `list`, everything `base` bytes further on.
    pub(super) fn list(
        &self,
        rank: u32,
        call: u64,
        base: u64,
        access: &mut Access,
        list: &mut Vec<Extent>,
    ) {
        match self {
            Place::Pattern { pattern, per_call } => {
                let first = call * per_call;
                let end = pattern.operations(Rank(rank)).min(first.saturating_add(*per_call));
                for index in first..end {
                    pattern.place(Rank(rank), index, access);
                    access.file_extents().for_each(|extent| push(list, extent, base));
                }
            }
            Place::View { pattern, start, bytes, .. } => {
                if let Some(set) = pattern.whole(Rank(rank)) {
                    seen(&set, start + call * bytes, *bytes, |extent| push(list, extent, base));
                }
            }
            Place::Range { bytes, rank_step, .. } => {
                let offset = u64::from(rank) * rank_step + call * bytes;
                push(list, Extent::new(offset, *bytes), base);
            }
        }
    }

    /// The byte after the last one any of `rank_count` ranks touches, if it is a number at all.
    pub(super) fn end(&self, rank_count: u32) -> Option<u64> {
        match self {
            Place::Pattern { pattern, .. } | Place::View { pattern, .. } => {
                Some(pattern.file_bytes())
            }
            Place::Range { bytes, calls, rank_step } => {
                let ranks = u64::from(rank_count - 1).checked_mul(*rank_step)?;
                bytes.checked_mul(*calls)?.checked_add(ranks)
            }
        }
    }

    /// Most pieces that a call may have, roughly.
    pub(super) fn pieces(&self, rank_count: u32) -> u64 {
        let ranks = [0, rank_count - 1];
        match self {
            Place::Pattern { pattern, per_call } => {
                let most = |rank| (*per_call).min(pattern.operations(Rank(rank)));
                ranks.map(most)[0].max(ranks.map(most)[1])
            }
            Place::View { pattern, bytes, .. } => {
                let whole = pattern.whole(Rank(0));
                whole.map_or(0, |set| bytes / set.block.max(1) + 2)
            }
            Place::Range { .. } => 1,
        }
    }
}

/// Adds an extent; one that continues the last is joined to it.
fn push(list: &mut Vec<Extent>, extent: Extent, base: u64) {
    let extent = Extent::new(extent.offset + base, extent.length);
    match list.last_mut() {
        Some(last) if last.end() == extent.offset => last.length += extent.length,
        _ if extent.is_empty() => {}
        _ => list.push(extent),
    }
}

/// The parts of a set that lie `start` to `start + bytes` within it, its end cutting them off.
fn seen(set: &Strided, start: u64, bytes: u64, mut put: impl FnMut(Extent)) {
    let end = start.saturating_add(bytes).min(set.bytes());
    let mut at = start;
    while at < end {
        let (index, within) = (at / set.block, at % set.block);
        let length = (set.block - within).min(end - at);
        put(Extent::new(set.nth(index).offset + within, length));
        at += length;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use iolab_pattern::Catalog;
    use iolab_vocab::Seed;

    fn list(place: &Place, rank: u32, call: u64) -> Vec<(u64, u64)> {
        let mut list = Vec::new();
        place.list(rank, call, 0, &mut Access::new(), &mut list);
        list.iter().map(|extent| (extent.offset, extent.length)).collect()
    }

    fn strided() -> Arc<dyn Pattern> {
        Catalog::make("strided:strip=4,stripes=4", 2, Seed(1)).unwrap().into()
    }

    #[test]
    fn a_view_shows_the_bytes_of_its_pattern_in_order() {
        let view = Place::View { pattern: strided(), start: 2, bytes: 7, calls: 2 };
        assert_eq!(list(&view, 1, 0), [(6, 2), (12, 4), (20, 1)]);
        assert_eq!(list(&view, 1, 1), [(21, 3), (28, 4)]);
    }

    #[test]
    fn operations_of_a_pattern_are_gathered_into_calls() {
        let place = Place::Pattern { pattern: strided(), per_call: 3 };
        assert_eq!(place.calls(0), 2);
        assert_eq!(list(&place, 0, 1), [(24, 4)]);
        assert_eq!(list(&place, 1, 0), [(4, 4), (12, 4), (20, 4)]);
    }

    #[test]
    fn ranges_follow_each_other_and_lie_apart_by_rank() {
        let place = Place::Range { bytes: 10, calls: 3, rank_step: 100 };
        assert_eq!(list(&place, 2, 1), [(210, 10)]);
        assert_eq!(place.end(3), Some(230));
    }
}
