//! Which bytes a request is about: those of an interval of a view that lie in one subfile.
//!
//! A stripe is one range of the file, so what a proper view has of it is one range of the view: a portion
//! is a list of [`Piece`]s, one for each stripe, which is made while it is used and never stored.
//!
//! Promises: pieces come in the order of the view; client and server make the same ones. Costs: O(D log f)
//! for each piece, for views of depth D with sequences of f parts; nothing is allocated.

use crate::layout::Layout;
use iolab_pattern::{Cut, Nest};
use iolab_vocab::Extent;
use std::sync::Arc;

/// The bytes `[from, to)` of a proper view that lie in one subfile, in the order of the view.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Portion {
    /// The view.
    pub view: Arc<Nest>,
    /// How the file is partitioned.
    pub layout: Layout,
    /// The part of it that is meant.
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
    pub fn pieces(&self) -> impl Iterator<Item = Piece> + '_ {
        let mut at = self.from;
        std::iter::from_fn(move || {
            let piece = self.next_piece(at)?;
            at = piece.to;
            Some(piece)
        })
    }

    /// How many bytes it has.
    pub fn bytes(&self) -> u64 {
        self.pieces().map(|piece| piece.bytes()).sum()
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
        let file = self.layout.byte_at(self.subfile, end).unwrap_or(u64::MAX);
        let rank = self.view.rank(file).unwrap_or(self.to);
        rank.clamp(self.from, self.to)
    }

    /// The first piece at or behind byte `at` of the view.
    fn next_piece(&self, mut at: u64) -> Option<Piece> {
        let layout = self.layout;
        loop {
            if at >= self.to {
                return None;
            }
            let stripe = layout.stripe_at(self.view.at(at)?);
            let after = self.view.rank(stripe.end())?.min(self.to);
            if layout.subfile_of(stripe.offset) == self.subfile {
                let place = layout.place_of(stripe.offset);
                return Some(Piece { from: at, to: after, stripe, place });
            }
            let tile = layout.unit_bytes() * u64::from(layout.subfiles());
            let first = u64::from(self.subfile) * layout.unit_bytes();
            let here = stripe.offset / tile * tile + first;
            let next = if here > stripe.offset { here } else { here.checked_add(tile)? };
            at = self.view.rank(next)?.max(after);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn portions(view: &str, unit: u64, subfiles: u32, from: u64, to: u64) -> Vec<Portion> {
        let view = Arc::new(view.parse::<Nest>().unwrap());
        let layout = Layout::striped(unit, subfiles, 0).unwrap();
        let portion = |subfile| Portion { view: view.clone(), layout, subfile, from, to };
        (0..subfiles).map(portion).collect()
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
                        prop_assert_eq!(portion.layout.subfile_of(x), portion.subfile);
                        prop_assert!(piece.stripe.offset <= x && x < piece.stripe.end());
                        seen[(y - from) as usize] += 1;
                    }
                    let span = piece.span(&portion.view);
                    let x = portion.view.at(piece.from).unwrap();
                    prop_assert_eq!(span.offset, portion.layout.place_of(x));
                }
            }
            prop_assert!(seen.iter().all(|&count| count == 1), "{seen:?}");
        }

        #[test]
        fn data_ends_where_the_subfile_does(end in 0u64..400, from in 0u64..100) {
            for portion in portions("2 x4/4 x2/16 x4/64 every 256", 32, 3, from, from + 150) {
                let found = portion.data_end(end);
                for piece in portion.pieces() {
                    for y in piece.from..piece.to {
                        let x = portion.view.at(y).unwrap();
                        prop_assert_eq!(y < found, portion.layout.place_of(x) < end);
                    }
                }
            }
        }
    }
}
