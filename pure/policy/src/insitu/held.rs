//! Bytes held back: which extents of the file, and where each lies in the staging memory.
//!
//! Staging memory fills from the front; an overwrite of held bytes goes in place. The piece that
//! was touched last stands apart from the map, so that appending to it (the common case: small
//! records one after the other) is arithmetic on a few words. A random insert costs O(log pieces).

use super::{Action, Place};
use iolab_vocab::Extent;
use std::collections::BTreeMap;

/// Wherever something may be held.
pub(super) const ALL: Extent = Extent { offset: 0, length: u64::MAX };

/// A contiguous extent of the file that lies contiguously in staging memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Piece {
    pub(super) extent: Extent,
    /// Where its first byte lies.
    pub(super) at: u64,
}

impl Piece {
    fn at_end(&self) -> u64 {
        self.at + self.extent.length
    }

    /// The part of the piece that lies in `extent`.
    fn part(&self, extent: Extent) -> Piece {
        let part = self.extent.intersection(extent);
        Piece { extent: part, at: self.at + part.offset.saturating_sub(self.extent.offset) }
    }
}

/// The held bytes of one file.
#[derive(Clone, Debug)]
pub(super) struct Held {
    /// The piece touched last; empty when there is none.
    tail: Piece,
    /// First byte after `tail` that another piece holds.
    limit: u64,
    /// All other pieces, by offset; no two overlap.
    others: BTreeMap<u64, Piece>,
    /// Staging memory used so far.
    fill: u64,
    held_bytes: u64,
    /// How often pieces went away or `fill` started anew.
    rearranged: u64,
}

impl Held {
    pub(super) fn new() -> Held {
        Held {
            tail: Piece::default(),
            limit: u64::MAX,
            others: BTreeMap::new(),
            fill: 0,
            held_bytes: 0,
            rearranged: 0,
        }
    }

    pub(super) fn bytes(&self) -> u64 {
        self.held_bytes
    }

    pub(super) fn is_empty(&self) -> bool {
        self.held_bytes == 0
    }

    /// Staging memory used, garbage of overwritten pieces included.
    pub(super) fn fill(&self) -> u64 {
        self.fill
    }

    /// See [`super::Holding::rearranged`].
    pub(super) fn rearranged(&self) -> u64 {
        self.rearranged
    }

    /// How many pieces there are.
    pub(super) fn piece_count(&self) -> usize {
        self.others.len() + usize::from(!self.tail.extent.is_empty())
    }

    /// Every piece, by offset.
    pub(super) fn pieces(&self) -> impl Iterator<Item = Piece> + '_ {
        let tail = Some(self.tail).filter(|tail| !tail.extent.is_empty());
        merge(self.others.values().copied(), tail)
    }

    /// Byte after the last one held, 0 when nothing is.
    pub(super) fn end(&self) -> u64 {
        let others = self.others.last_key_value().map_or(0, |(_, piece)| piece.extent.end());
        others.max(if self.tail.extent.is_empty() { 0 } else { self.tail.extent.end() })
    }

    /// Whether holding `extent` takes no new staging memory.
    pub(super) fn holds_all(&self, extent: Extent) -> bool {
        self.tail.extent.contains(extent)
            || self.piece_at(extent.offset).is_some_and(|piece| piece.extent.contains(extent))
    }

    /// Whether every byte of `extent` is held.
    pub(super) fn covers(&self, extent: Extent) -> bool {
        self.tail.extent.contains(extent)
            || self.pieces_in(extent).map(|piece| piece.extent.length).sum::<u64>() == extent.length
    }

    /// Whether any byte of `extent` is held.
    pub(super) fn overlaps(&self, extent: Extent) -> bool {
        self.pieces_in(extent).next().is_some()
    }

    /// Holds `extent` if it lies in the piece touched last or extends it within `capacity` bytes of
    /// staging memory; says where its bytes go.
    #[inline]
    pub(super) fn absorb(&mut self, extent: Extent, capacity: u64) -> Option<u64> {
        if self.extends_tail(extent) && self.fill + extent.length <= capacity {
            let at = self.fill;
            self.tail.extent.length += extent.length;
            self.fill += extent.length;
            self.held_bytes += extent.length;
            return Some(at);
        }
        let inside = self.tail.extent.contains(extent);
        inside.then(|| self.tail.at + (extent.offset - self.tail.extent.offset))
    }

    /// End of the piece touched last.
    pub(super) fn tail_end(&self) -> u64 {
        self.tail.extent.end()
    }

    /// Holds `extent`, whose bytes lie in the caller's memory from `from`.
    pub(super) fn hold(&mut self, extent: Extent, from: u64, out: &mut Vec<Action>) {
        if !self.extends_tail(extent) && !self.tail.extent.contains(extent) {
            self.make_tail(extent);
        }
        let at = self.absorb(extent, u64::MAX).expect("the piece touched last takes the extent");
        out.push(Action::Copy {
            from: Place::Caller(from),
            to: Place::Staging(at),
            length: extent.length,
        });
    }

    fn extends_tail(&self, extent: Extent) -> bool {
        extent.offset == self.tail.extent.end()
            && self.tail.at_end() == self.fill
            && extent.end() <= self.limit
            && !self.tail.extent.is_empty()
    }

    /// Chooses or makes the piece that `extent` can be put into, as `tail`.
    fn make_tail(&mut self, extent: Extent) {
        self.retire_tail();
        let holder = self.piece_at(extent.offset).filter(|piece| piece.extent.contains(extent));
        if let Some(holder) = holder {
            return self.promote(holder);
        }
        // Newer bytes take the place of these; `fill` goes on, so that whoever follows the pieces
        // from outside (`Holding`) sees the older ones overwritten and not gone.
        self.cut(extent);
        let before = self.others.range(..extent.offset).next_back().map(|(_, &piece)| piece);
        match before {
            Some(before)
                if before.extent.end() == extent.offset && before.at_end() == self.fill =>
            {
                self.promote(before);
            }
            _ => {
                self.tail = Piece { extent, at: self.fill };
                self.fill += extent.length;
                self.held_bytes += extent.length;
                self.limit = self.next_start(extent.offset);
            }
        }
    }

    fn promote(&mut self, piece: Piece) {
        self.others.remove(&piece.extent.offset);
        self.tail = piece;
        self.limit = self.next_start(piece.extent.offset);
    }

    fn next_start(&self, offset: u64) -> u64 {
        self.others.range(offset..).next().map_or(u64::MAX, |(&start, _)| start)
    }

    fn retire_tail(&mut self) {
        if !self.tail.extent.is_empty() {
            self.others.insert(self.tail.extent.offset, self.tail);
        }
        self.tail = Piece::default();
        self.limit = u64::MAX;
    }

    /// The piece of `others` that holds the byte at `offset`.
    fn piece_at(&self, offset: u64) -> Option<Piece> {
        let (_, piece) = self.others.range(..=offset).next_back()?;
        (piece.extent.end() > offset).then_some(*piece)
    }

    /// The held parts of `extent`, by offset.
    pub(super) fn pieces_in(&self, extent: Extent) -> impl Iterator<Item = Piece> + '_ {
        let first = self.piece_at(extent.offset).map_or(extent.offset, |piece| piece.extent.offset);
        let others = self.others.range(first..extent.end().max(first)).map(|(_, &piece)| piece);
        let tail = Some(self.tail).filter(|tail| tail.extent.overlaps(extent));
        merge(others, tail)
            .filter(move |piece| piece.extent.overlaps(extent))
            .map(move |piece| piece.part(extent))
    }

    /// The first pieces within an extent that follow each other in the file, at most `most_bytes` together,
    /// up to the first multiple of `edge_bytes`.
    pub(super) fn first_run(
        &self,
        within: Extent,
        most_bytes: u64,
        edge_bytes: Option<u64>,
    ) -> Vec<Piece> {
        let mut run: Vec<Piece> = Vec::new();
        let mut bytes = 0;
        let first = self.pieces_in(within).next().map_or(0, |piece| piece.extent.offset);
        let to_edge = edge_bytes.map_or(u64::MAX, |edge| edge - first % edge);
        let block = Extent::new(first, to_edge.min(u64::MAX - first));
        let inside = self.pieces_in(within).map(|piece| piece.part(block));
        for piece in inside.take_while(|piece| !piece.extent.is_empty()) {
            let follows = run.last().is_none_or(|last| last.extent.end() == piece.extent.offset);
            let fits = run.is_empty() || bytes + piece.extent.length <= most_bytes;
            if !(follows && fits) {
                break;
            }
            bytes += piece.extent.length;
            run.push(piece);
        }
        run
    }

    /// Forgets the held bytes of `extent`; what is left and right of it stays held.
    pub(super) fn discard(&mut self, extent: Extent) {
        self.cut(extent);
        self.rearranged += 1;
        if self.held_bytes == 0 {
            self.fill = 0;
        }
    }

    fn cut(&mut self, extent: Extent) {
        self.retire_tail();
        let cut: Vec<Piece> = self.pieces_in(extent).collect();
        for part in cut {
            let whole = self.piece_at(part.extent.offset).expect("a part has a piece");
            self.others.remove(&whole.extent.offset);
            self.held_bytes -= part.extent.length;
            let left = Extent::new(whole.extent.offset, part.extent.offset - whole.extent.offset);
            let right = Extent::new(part.extent.end(), whole.extent.end() - part.extent.end());
            for rest in [left, right].into_iter().filter(|rest| !rest.is_empty()) {
                self.others.insert(rest.offset, whole.part(rest));
            }
        }
    }

    /// Forgets everything.
    pub(super) fn clear(&mut self) {
        *self = Held { rearranged: self.rearranged + 1, ..Held::new() };
    }
}

/// The pieces of a sorted sequence with one more put in its place.
fn merge(
    others: impl Iterator<Item = Piece>,
    mut extra: Option<Piece>,
) -> impl Iterator<Item = Piece> {
    let mut others = others.peekable();
    std::iter::from_fn(move || {
        let extra_first = match (&extra, others.peek()) {
            (Some(extra), Some(other)) => extra.extent.offset < other.extent.offset,
            (Some(_), None) => true,
            (None, _) => false,
        };
        if extra_first { extra.take() } else { others.next() }
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use iolab_vocab::{Random, Seed};

    fn hold(held: &mut Held, offset: u64, length: u64) -> u64 {
        let mut out = Vec::new();
        held.hold(Extent::new(offset, length), 0, &mut out);
        match out[..] {
            [Action::Copy { to: Place::Staging(at), .. }] => at,
            _ => panic!("one copy into staging, not {out:?}"),
        }
    }

    #[test]
    fn appends_fill_the_staging_memory_without_gaps() {
        let mut held = Held::new();
        let places: Vec<_> = (0..4).map(|i| hold(&mut held, 100 + i * 10, 10)).collect();
        assert_eq!(places, [0, 10, 20, 30]);
        let run = held.first_run(ALL, 1 << 20, None);
        assert_eq!(run, [Piece { extent: Extent::new(100, 40), at: 0 }]);
    }

    #[test]
    fn an_overwrite_of_held_bytes_goes_in_place() {
        let mut held = Held::new();
        hold(&mut held, 0, 100);
        hold(&mut held, 500, 100);
        assert_eq!(hold(&mut held, 20, 10), 20);
        assert_eq!(hold(&mut held, 550, 10), 150);
        assert_eq!((held.bytes(), held.fill()), (200, 200));
    }

    /// Against the plainest model there is: which byte of the file lies where in staging.
    #[test]
    fn after_any_sequence_every_held_byte_lies_where_it_was_put_last() {
        const FILE_BYTES: usize = 300;
        let mut random = Random::new(Seed(7));
        for _ in 0..200 {
            let mut held = Held::new();
            let mut model = [None; FILE_BYTES];
            for _ in 0..40 {
                let offset = random.below(FILE_BYTES as u64 - 40);
                let length = 1 + random.below(40);
                let extent = Extent::new(offset, length);
                if random.below(5) == 0 {
                    held.discard(extent);
                    model[offset as usize..extent.end() as usize].fill(None);
                } else {
                    let at = hold(&mut held, offset, length);
                    for i in 0..length {
                        model[(offset + i) as usize] = Some(at + i);
                    }
                }
                let mut found = [None; FILE_BYTES];
                for piece in held.pieces_in(Extent::new(0, FILE_BYTES as u64)) {
                    for i in 0..piece.extent.length {
                        found[(piece.extent.offset + i) as usize] = Some(piece.at + i);
                    }
                }
                assert_eq!(found, model);
                assert_eq!(held.bytes(), model.iter().flatten().count() as u64);
                let end = model.iter().rposition(Option::is_some).map_or(0, |last| last + 1);
                assert_eq!(held.end(), end as u64);
            }
        }
    }
}
