//! Which bytes a request is about: those of an interval of a view that lie in one subfile.
//!
//! A stripe is one range of the file, so what a proper view has of it is one range of the view: a portion
//! is a list of [`Piece`]s, one for each stripe, which is made while it is used and never stored.
//!
//! Promises: pieces come in the order of the view; client and server make the same ones. Costs: O(D log f)
//! for each piece, for views of depth D with sequences of f parts; nothing is allocated.

use crate::division::Division;
use crate::plant::{Plant, is_planted};
use iolab_pattern::{Cut, Nest};
use iolab_vocab::Extent;
use std::sync::Arc;

/// How many stripes a server looks at for one request; clients ask for no more.
const STEPS_MAX: u32 = 1 << 16;

/// The bytes `[from, to)` of a proper view that lie in one subfile, in the order of the view.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Portion {
    /// The view.
    pub view: Arc<Nest>,
    /// Who has what of the file.
    pub division: Division,
    /// The part of it that is meant: a subfile, or what a cache manager has.
    pub subfile: u32,
    /// First byte, as the view counts.
    pub from: u64,
    /// The byte after the last one.
    pub to: u64,
}

/// What a portion has of one stripe.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Piece {
    /// First byte, as the view counts.
    pub from: u64,
    /// The byte after the last one.
    pub to: u64,
    /// The stripe, in the file.
    pub stripe: Extent,
    /// Where the stripe begins in the subfile.
    pub place: u64,
}

impl Piece {
    /// How many bytes it has.
    pub fn bytes(&self) -> u64 {
        self.to - self.from
    }

    /// Its bytes as a set in the file: what to scatter to, or gather from, memory that holds the stripe.
    pub fn cut(&self, view: &Nest) -> Cut {
        view.cut(self.from, self.to)
    }

    /// The range of the subfile from its first byte to its last.
    pub fn span(&self, view: &Nest) -> Extent {
        let at =
            |y| view.at(y).expect("a piece lies in its view") - self.stripe.offset + self.place;
        Extent::new(at(self.from), at(self.to - 1) + 1 - at(self.from))
    }
}

impl Portion {
    /// Its pieces, in the order of the view.
    pub fn pieces(&self) -> Pieces<'_> {
        Pieces { portion: self, at: self.from, steps: 0 }
    }

    /// What it touches of each stripe of its subfile, from first byte to last: ascending, apart from each other.
    pub fn extents(&self) -> Vec<Extent> {
        let mut extents: Vec<Extent> = Vec::new();
        for piece in self.pieces() {
            let span = piece.span(&self.view);
            match extents.last_mut() {
                Some(last) if last.end() == span.offset => last.length += span.length,
                _ => extents.push(span),
            }
        }
        extents
    }

    /// How many bytes it has.
    pub fn bytes(&self) -> u64 {
        self.pieces().map(|piece| piece.bytes()).sum()
    }

    /// The same for one that comes from somebody else: `None` if there are more bytes than `limit`, or if
    /// more than [`STEPS_MAX`] stripes must be looked at to tell.
    pub fn bytes_within(&self, limit: u64) -> Option<u64> {
        let mut pieces = self.pieces();
        let mut bytes = 0u64;
        while bytes <= limit {
            match pieces.next_within(STEPS_MAX) {
                Step::Piece(piece) => bytes += piece.bytes(),
                Step::End => return Some(bytes),
                Step::Tired => return None,
            }
        }
        None
    }

    /// The first part of it with at most `transfer_bytes`, or none if it has no bytes: whole pieces, as
    /// many as fit. One that is larger is cut, always where a multiple of `transfer_bytes` lies in its
    /// stripe: what lies between two such places travels together, so that nobody sees half of it.
    pub fn first_transfer(&self, transfer_bytes: u64) -> Option<(Portion, u64)> {
        let mut pieces = self.pieces();
        let first = pieces.next()?;
        if first.bytes() > transfer_bytes && !is_planted(Plant::BlocksSplit) {
            let to = self.cut_in(&first, transfer_bytes)?;
            return Some((Portion { from: first.from, to, ..self.clone() }, to - first.from));
        }
        let (mut to, mut bytes) = (first.to, first.bytes());
        pieces.steps = 0;
        while bytes < transfer_bytes
            && let Step::Piece(piece) = pieces.next_within(STEPS_MAX - 1)
            && (bytes + piece.bytes() <= transfer_bytes || is_planted(Plant::BlocksSplit))
        {
            to = piece.to;
            bytes += piece.bytes();
        }
        // Nothing, but for a planted defect.
        let over = bytes.saturating_sub(transfer_bytes);
        Some((Portion { from: first.from, to: to - over, ..self.clone() }, bytes - over))
    }

    /// The last place at which a piece is cut that has more than `transfer_bytes`.
    fn cut_in(&self, piece: &Piece, transfer_bytes: u64) -> Option<u64> {
        let behind = self.view.at(piece.from + transfer_bytes)?;
        // At least one place lies before: so many bytes of the view are as many of the file, or more.
        let within = behind - piece.stripe.offset;
        self.view.rank(piece.stripe.offset + within / transfer_bytes * transfer_bytes)
    }

    /// The same with all that transfers of so many bytes do not cut from its first byte, from byte `from`
    /// of the view on.
    pub(crate) fn with_its_block(self, transfer_bytes: u64, from: u64) -> Portion {
        if is_planted(Plant::BlockReadTwice) {
            return self;
        }
        let Some(first) = self.pieces().next() else { return self };
        let start = self.view.at(first.from).and_then(|x| {
            let within = (x - first.stripe.offset) / transfer_bytes * transfer_bytes;
            self.view.rank(first.stripe.offset + within)
        });
        let start = start.unwrap_or(self.from).max(from);
        Portion { from: start.min(self.from), ..self }
    }

    /// The range of the subfile from its first byte to its last, if it has any.
    pub fn span(&self) -> Option<Extent> {
        let mut pieces = self.pieces();
        let first = pieces.next()?;
        let last = pieces.last().unwrap_or(first);
        let (from, to) = (first.span(&self.view).offset, last.span(&self.view).end());
        Some(Extent::new(from, to - from))
    }

    /// The same from byte `from` of the view on.
    pub fn behind(&self, from: u64) -> Portion {
        Portion { from: from.clamp(self.from, self.to), ..self.clone() }
    }

    /// The same up to byte `to` of the view.
    pub fn before(&self, to: u64) -> Portion {
        Portion { to: to.clamp(self.from, self.to), ..self.clone() }
    }

    /// The first byte of the view that lies at or behind byte `end` of the subfile: where data ends if
    /// the subfile has so many bytes.
    pub fn data_end(&self, end: u64) -> u64 {
        let file = self.division.byte_at(self.subfile, end).unwrap_or(u64::MAX);
        let rank = self.view.rank(file).unwrap_or(self.to);
        rank.clamp(self.from, self.to)
    }
}

/// The pieces of a portion; see [`Portion::pieces`].
#[derive(Clone, Debug)]
pub struct Pieces<'a> {
    portion: &'a Portion,
    at: u64,
    steps: u32,
}

/// What looking for the next piece came to.
enum Step {
    Piece(Piece),
    End,
    /// More stripes would have to be looked at than allowed.
    Tired,
}

impl Pieces<'_> {
    /// The next piece, if not more than so many stripes have been looked at until then.
    fn next_within(&mut self, steps_max: u32) -> Step {
        let Portion { view, division, subfile, to, .. } = self.portion;
        while self.at < *to && self.steps < steps_max {
            self.steps = self.steps.saturating_add(1);
            let Some(stripe) = view.at(self.at).map(|x| division.stripe_at(x)) else {
                break;
            };
            let from = self.at;
            let rank = |x| view.rank(x).map_or(*to, |y| y.min(*to));
            self.at = rank(stripe.end());
            if division.part_of(stripe.offset) == *subfile {
                let place = division.place_of(stripe.offset);
                return Step::Piece(Piece { from, to: self.at, stripe, place });
            }
            // The next stripe of this subfile, unless the view has bytes of others only until then.
            self.at = self.at.max(rank(division.next_of(*subfile, stripe)));
        }
        match self.at < *to && self.steps >= steps_max {
            true => Step::Tired,
            false => Step::End,
        }
    }
}

impl Iterator for Pieces<'_> {
    type Item = Piece;

    fn next(&mut self) -> Option<Piece> {
        loop {
            match self.next_within(u32::MAX) {
                Step::Piece(piece) => return Some(piece),
                Step::End => return None,
                Step::Tired => self.steps = 0,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Layout;
    use proptest::prelude::*;

    fn portions(view: &str, unit: u64, subfiles: u32, from: u64, to: u64) -> Vec<Portion> {
        let view = Arc::new(view.parse::<Nest>().unwrap());
        let division = Division::from(Layout::striped(unit, subfiles, 0).unwrap());
        let portion = |subfile| Portion { view: view.clone(), division, subfile, from, to };
        (0..subfiles).map(portion).collect()
    }

    #[test]
    fn a_search_that_finds_nothing_ends() {
        // The second subfile has no byte of this view, however long one looks.
        let endless = &portions("8 every 32", 16, 2, 0, 1 << 50)[1];
        assert_eq!(endless.bytes_within(100), None);
        let few = &portions("8 every 32", 16, 2, 0, 8 * 1000)[1];
        assert_eq!((few.bytes_within(100), few.first_transfer(100)), (Some(0), None));
    }

    #[test]
    fn the_worked_example_of_the_data_model_lies_where_it_says() {
        // 16 x 16 bytes, CYCLIC(2) in both directions, two subfiles with stripes of 32.
        let all = portions("2 x4/4 x2/16 x4/64 every 256", 32, 2, 10, 30);
        let places: Vec<_> =
            all[0].pieces().map(|piece| (piece.from, piece.to, piece.place)).collect();
        assert_eq!(places, [(10, 16, 0), (16, 30, 32)]);
        assert_eq!((all[0].bytes(), all[1].bytes()), (20, 0));
        assert_eq!(all[0].span(), Some(Extent::new(20, 38)));
    }

    #[test]
    fn transfers_are_cut_at_the_same_places_of_a_stripe_wherever_they_begin() {
        let places = |from: u64, transfer_bytes: u64| {
            let mut rest = portions("1 every 1", 100, 1, from, 400).remove(0);
            let mut cuts = Vec::new();
            while let Some((transfer, _)) = rest.first_transfer(transfer_bytes) {
                cuts.push(transfer.to);
                rest = rest.behind(transfer.to);
            }
            cuts
        };
        // Stripes that fit travel whole, or with others.
        assert_eq!(places(30, 150), [100, 200, 300, 400]);
        assert_eq!(places(30, 250), [200, 400]);
        // Larger ones have blocks of 40, 40 and 20 bytes.
        assert_eq!(places(30, 40), [40, 80, 100, 140, 180, 200, 240, 280, 300, 340, 380, 400]);
        assert_eq!(places(170, 40), [200, 240, 280, 300, 340, 380, 400]);
    }

    proptest! {
        #[test]
        fn the_portions_of_all_subfiles_are_the_interval(
            view in proptest::sample::select(vec![
                "1 every 1", "2 x4/4 x2/16 x4/64 every 256", "7 x3/11 every 40 from 5",
                "[0: 4, 10: 2 x3/4, 60: 33] every 101 from 3", "100 every 1000", "3 x200/9",
            ]),
            unit in 16u64..90, subfiles in 1u32..6, from in 0u64..500, length in 0u64..700,
        ) {
            let all = portions(view, unit, subfiles, from, from + length);
            let end = (from + length).min(all[0].view.size());
            let mut seen = vec![0u8; end.saturating_sub(from) as usize];
            for portion in &all {
                for piece in portion.pieces() {
                    prop_assert!(piece.from < piece.to);
                    for y in piece.from..piece.to {
                        let x = portion.view.at(y).unwrap();
                        prop_assert_eq!(portion.division.part_of(x), portion.subfile);
                        prop_assert!(piece.stripe.offset <= x && x < piece.stripe.end());
                        seen[(y - from) as usize] += 1;
                    }
                    let span = piece.span(&portion.view);
                    let x = portion.view.at(piece.from).unwrap();
                    prop_assert_eq!(span.offset, portion.division.place_of(x));
                }
            }
            prop_assert!(seen.iter().all(|&count| count == 1), "{seen:?}");
        }

        #[test]
        fn transfers_are_the_portion_one_after_the_other(
            unit in 16u64..90, subfiles in 1u32..4, from in 0u64..200, length in 0u64..700,
            transfer_bytes in 1u64..300,
        ) {
            for portion in portions("7 x3/11 every 40 from 5", unit, subfiles, from, from + length) {
                let mut rest = portion.clone();
                let mut bytes = 0;
                while let Some((transfer, its)) = rest.first_transfer(transfer_bytes) {
                    prop_assert!(its <= transfer_bytes && its > 0);
                    prop_assert_eq!(transfer.bytes_within(its), Some(its));
                    prop_assert_eq!(transfer.bytes_within(its - 1), None);
                    bytes += its;
                    rest = rest.behind(transfer.to);
                }
                prop_assert_eq!(bytes, portion.bytes());
            }
        }

        #[test]
        fn data_ends_where_the_subfile_does(end in 0u64..400, from in 0u64..100) {
            for portion in portions("2 x4/4 x2/16 x4/64 every 256", 32, 3, from, from + 150) {
                let found = portion.data_end(end);
                for piece in portion.pieces() {
                    for y in piece.from..piece.to {
                        let x = portion.view.at(y).unwrap();
                        prop_assert_eq!(y < found, portion.division.place_of(x) < end);
                    }
                }
            }
        }
    }
}
