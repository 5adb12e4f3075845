//! Datatypes of MPI as lists of bytes, and file views made of them.
//!
//! A flat type has its pieces in the order of the type map, joined where they touch; views map
//! (offset, size) to extents of the file in time of the pieces touched. Memory is 16 bytes for
//! each piece.

mod view;

pub use view::View;

/// Pieces of one type, and of one access: beyond these a trace is absurd or hostile.
pub const PIECES_MAX: usize = 4 << 20;
/// Types made of types.
pub const DEPTH_MAX: u32 = 64;

/// The bytes of a type: places relative to its origin, in order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Flat {
    pieces: Vec<(i64, u64)>,
    size: u64,
    lower: i64,
    upper: i64,
}

impl Flat {
    /// Bytes from the lower bound to the upper one.
    pub(crate) fn extent(&self) -> i64 {
        self.upper.saturating_sub(self.lower)
    }

    /// Adds `length` bytes at `place`.
    pub(crate) fn add(&mut self, place: i64, length: u64) -> Result<(), String> {
        let end = i64::try_from(length).ok().and_then(|length| place.checked_add(length));
        let end = end.ok_or("a datatype leaves the address range")?;
        if self.size == 0 {
            (self.lower, self.upper) = (place, end);
        }
        (self.lower, self.upper) = (self.lower.min(place), self.upper.max(end));
        self.size = self.size.checked_add(length).ok_or("a datatype is too large")?;
        let count = self.pieces.len();
        match self.pieces.last_mut() {
            Some(last) if last.0 + last.1 as i64 == place => last.1 += length,
            _ if length == 0 => {}
            _ if count == PIECES_MAX => {
                return Err(format!("a datatype has more than {PIECES_MAX} pieces"));
            }
            _ => self.pieces.push((place, length)),
        }
        Ok(())
    }

    /// Adds `count` of `old`, one extent after another, from `place` on.
    pub(crate) fn repeat(&mut self, old: &Flat, place: i64, count: u64) -> Result<(), String> {
        if old.is_contiguous() {
            let bytes = old.size.checked_mul(count).ok_or("a datatype is too large")?;
            let start = place.checked_add(old.lower).ok_or("a datatype leaves the range")?;
            return self.add(start, bytes);
        }
        for index in 0..if old.size == 0 { 0 } else { count } {
            let origin = i64::try_from(index)
                .ok()
                .and_then(|index| index.checked_mul(old.extent())?.checked_add(place));
            let origin = origin.ok_or("a datatype leaves the address range")?;
            for &(piece, length) in &old.pieces {
                let start = origin.checked_add(piece).ok_or("a datatype leaves the range")?;
                self.add(start, length)?;
            }
        }
        Ok(())
    }

    fn is_contiguous(&self) -> bool {
        self.pieces.len() <= 1 && self.size as i64 == self.extent()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_that_touch_are_one() {
        let (mut word, mut pair) = (Flat::default(), Flat::default());
        word.add(0, 4).unwrap();
        pair.repeat(&word, 4, 2).unwrap();
        pair.repeat(&word, 20, 1).unwrap();
        assert_eq!(pair.pieces, [(4, 8), (20, 4)]);
        assert_eq!((pair.size, pair.extent()), (12, 20));
    }
}
