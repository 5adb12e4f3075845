//! Datatypes of MPI as lists of bytes, and file views made of them.
//!
//! A flat type has its pieces in the order of the type map, joined where they touch, and the bounds
//! that MPI gives it: the least and the greatest of what it is made of, where bounds that were set
//! (of a resized type, of an array) outrank those that follow from bytes (MPI 4.1, section 5.1.6).
//! The padding that MPI adds for alignment is unknown here; whoever describes a type sets its
//! bounds. Memory is 16 bytes for each piece; a run of equal elements without gaps is one piece,
//! however long it is.

mod array;
mod text;
mod view;

pub use view::View;

/// Pieces of one type, and of one access: beyond these a trace is absurd or hostile.
pub const PIECES_MAX: usize = 4 << 20;
/// Types made of types.
pub const DEPTH_MAX: u32 = 64;

const OUT_OF_RANGE: &str = "a datatype leaves the address range";

/// The bytes of a type: places relative to its origin, in order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Flat {
    pieces: Vec<(i64, u64)>,
    size: u64,
    /// None of a type without entries, as zero elements of another one.
    bounds: Option<Bounds>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Bounds {
    lower: i64,
    upper: i64,
    /// Whether someone set them, so that the bytes no longer matter.
    are_set: bool,
}

impl Flat {
    /// A type of the language of that many bytes; of none, a mark that only counts for the bounds.
    pub fn named(bytes: u64) -> Result<Flat, String> {
        let upper = i64::try_from(bytes).map_err(|_| OUT_OF_RANGE)?;
        let mut named = Flat::default();
        named.cover(Bounds { lower: 0, upper, are_set: false })?;
        named.add(0, bytes)?;
        Ok(named)
    }

    /// `count` blocks of `block` elements of `old` each, starting `stride` bytes apart.
    pub fn strided(old: &Flat, count: u64, block: u64, stride: i64) -> Result<Flat, String> {
        let mut strided = Flat::default();
        if count > 0 {
            let mut one = Flat::default();
            one.repeat(old, 0, block, old.extent())?;
            strided.repeat(&one, 0, count, stride)?;
        }
        Ok(strided)
    }

    /// Adds `count` of `old`, each `step` bytes after the one before, from `place` on. Each of them
    /// takes a piece at least unless all of them are one, so that the time has a bound.
    pub fn repeat(&mut self, old: &Flat, place: i64, count: u64, step: i64) -> Result<(), String> {
        let (Some(bounds), true) = (old.bounds, count > 0) else { return Ok(()) };
        let last_index = i64::try_from(count - 1).map_err(|_| OUT_OF_RANGE)?;
        let last = place_of(place, last_index, step).ok_or(OUT_OF_RANGE)?;
        let lower = place.min(last).checked_add(bounds.lower).ok_or(OUT_OF_RANGE)?;
        let upper = place.max(last).checked_add(bounds.upper).ok_or(OUT_OF_RANGE)?;
        self.cover(Bounds { lower, upper, ..bounds })?;
        match old.pieces[..] {
            [] => Ok(()),
            [(piece, length)] if length as i64 == step => {
                let bytes = length.checked_mul(count).ok_or(OUT_OF_RANGE)?;
                self.add(place.checked_add(piece).ok_or(OUT_OF_RANGE)?, bytes)
            }
            _ => (0..=last_index).try_for_each(|index| {
                let origin = place_of(place, index, step).ok_or(OUT_OF_RANGE)?;
                self.add_pieces(old, origin)
            }),
        }
    }

    /// The same bytes with other bounds: from `lower` on, `extent` bytes.
    pub fn resized(mut self, lower: i64, extent: i64) -> Result<Flat, String> {
        let upper = lower.checked_add(extent).ok_or(OUT_OF_RANGE)?;
        self.bounds = Some(Bounds { lower, upper, are_set: true });
        Ok(self)
    }

    /// Where its bytes are, relative to its origin: (place, bytes), in the order of the type map.
    pub fn pieces(&self) -> &[(i64, u64)] {
        &self.pieces
    }

    /// Bytes in it, those that occur twice counted twice.
    pub fn size(&self) -> u64 {
        self.size
    }

    /// The lower bound in bytes from the origin.
    pub fn lower(&self) -> i64 {
        self.bounds.map_or(0, |bounds| bounds.lower)
    }

    /// Bytes from the lower bound to the upper one: how far apart its elements are in a row.
    pub fn extent(&self) -> i64 {
        self.bounds.map_or(0, |bounds| bounds.upper - bounds.lower)
    }

    /// Whether any number of them in a row is one piece.
    fn is_seamless(&self) -> bool {
        matches!(self.pieces[..], [(_, length)] if length as i64 == self.extent())
    }

    /// Widens the bounds. Their difference stays a number, see `extent`.
    fn cover(&mut self, new: Bounds) -> Result<(), String> {
        let bounds = match self.bounds {
            Some(old) if old.are_set == new.are_set => {
                Bounds { lower: old.lower.min(new.lower), upper: old.upper.max(new.upper), ..old }
            }
            Some(old) if old.are_set => old,
            _ => new,
        };
        bounds.upper.checked_sub(bounds.lower).ok_or(OUT_OF_RANGE)?;
        self.bounds = Some(bounds);
        Ok(())
    }

    fn add_pieces(&mut self, old: &Flat, origin: i64) -> Result<(), String> {
        old.pieces.iter().try_for_each(|&(place, length)| {
            self.add(origin.checked_add(place).ok_or(OUT_OF_RANGE)?, length)
        })
    }

    /// Adds bytes; the end of each piece is a place.
    fn add(&mut self, place: i64, length: u64) -> Result<(), String> {
        let end = i64::try_from(length).ok().and_then(|length| place.checked_add(length));
        end.ok_or(OUT_OF_RANGE)?;
        self.size = self.size.checked_add(length).ok_or("a datatype is too large")?;
        let count = self.pieces.len();
        match self.pieces.last_mut() {
            _ if length == 0 => {}
            Some(last) if last.0 + last.1 as i64 == place => last.1 += length,
            _ if count == PIECES_MAX => {
                return Err(format!("a datatype has more than {PIECES_MAX} pieces"));
            }
            _ => self.pieces.push((place, length)),
        }
        Ok(())
    }
}

/// `index` steps after `place`.
fn place_of(place: i64, index: i64, step: i64) -> Option<i64> {
    index.checked_mul(step)?.checked_add(place)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bounds(flat: &Flat) -> (i64, i64) {
        (flat.lower(), flat.extent())
    }

    #[test]
    fn pieces_that_touch_are_one() {
        let (word, mut pair) = (Flat::named(4).unwrap(), Flat::default());
        pair.repeat(&word, 4, 2, 4).unwrap();
        pair.repeat(&word, 20, 1, 4).unwrap();
        assert_eq!(pair.pieces(), [(4, 8), (20, 4)]);
        assert_eq!((pair.size(), pair.lower(), pair.extent()), (12, 4, 20));
    }

    #[test]
    fn nothing_has_no_bounds_and_a_mark_has() {
        let (word, mut sum) = (Flat::named(4).unwrap(), Flat::default());
        sum.repeat(&word, 100, 0, 4).unwrap();
        assert_eq!(sum, Flat::default());
        sum.repeat(&Flat::named(0).unwrap(), -8, 1, 0).unwrap();
        sum.repeat(&word, 0, 1, 4).unwrap();
        assert_eq!((sum.pieces(), bounds(&sum)), (&[(0, 4)][..], (-8, 12)));
    }

    #[test]
    fn bounds_that_were_set_outrank_bytes() {
        let word = Flat::named(4).unwrap();
        let wide = word.clone().resized(0, 16).unwrap();
        let mut sum = Flat::default();
        sum.repeat(&word, 100, 1, 4).unwrap();
        sum.repeat(&wide, 8, 2, 16).unwrap();
        sum.repeat(&word, 200, 1, 4).unwrap();
        assert_eq!(sum.pieces(), [(100, 4), (8, 4), (24, 4), (200, 4)]);
        assert_eq!(bounds(&sum), (8, 32));
    }

    #[test]
    fn a_long_row_is_one_piece_wherever_its_elements_have_their_bounds() {
        let shifted = Flat::named(4).unwrap().resized(-4, 4).unwrap();
        let row = Flat::strided(&shifted, 1 << 40, 2, 8).unwrap();
        assert_eq!((row.pieces(), bounds(&row)), (&[(0, 8 << 40)][..], (-4, 8 << 40)));
        let gaps = Flat::strided(&shifted, 1 << 40, 1, 8);
        assert!(gaps.unwrap_err().contains("pieces"));
    }
}
