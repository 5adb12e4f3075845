//! File views: which bytes of a file a process sees, in the order in which it counts them.

use super::{Flat, PIECES_MAX};
use iolab_vocab::Extent;

const TOO_FAR: &str = "an access leaves the address range";

/// What a process sees of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct View {
    displacement: u64,
    /// Bytes of the unit in which positions are counted.
    unit_bytes: u64,
    tile: Flat,
}

impl View {
    /// The view of `filetype` from the byte `displacement` of the file on, whose positions count
    /// elements of `etype`. The bytes of a file type go forwards, through all its tiles.
    pub fn new(displacement: u64, etype: &Flat, filetype: Flat) -> Result<View, String> {
        if etype.size == 0 || filetype.size == 0 {
            return Err("a view needs an etype and a filetype with bytes".to_owned());
        }
        if !goes_forwards(&filetype) {
            return Err("the filetype of a view goes backwards".to_owned());
        }
        Ok(View { displacement, unit_bytes: etype.size, tile: filetype })
    }

    /// The extents of `bytes` from the position `units` of the view on, in order.
    pub fn at_position(&self, units: u64, bytes: u64) -> Result<Vec<Extent>, String> {
        let seen = units.checked_mul(self.unit_bytes).ok_or("the offset is too large")?;
        self.extents(seen, bytes)
    }

    /// The extents of `bytes` from the place `offset` of the file on, in order.
    pub fn at_offset(&self, offset: u64, bytes: u64) -> Result<Vec<Extent>, String> {
        let first = self.first();
        let relative = offset.saturating_sub(self.displacement).saturating_sub(first);
        let (tiles, within) = (relative / self.tile_bytes(), relative % self.tile_bytes());
        let before =
            |&(place, length): &(i64, u64)| within.saturating_sub(place as u64 - first).min(length);
        let seen = self.tile.pieces.iter().map(before).sum::<u64>();
        self.extents(tiles.saturating_mul(self.tile.size).saturating_add(seen), bytes)
    }

    fn tile_bytes(&self) -> u64 {
        self.tile.extent() as u64
    }

    /// Where the first byte of a tile is.
    fn first(&self) -> u64 {
        self.tile.pieces.first().map_or(0, |first| first.0 as u64)
    }

    /// The extents of `bytes` after the first `seen` bytes of the view.
    fn extents(&self, seen: u64, bytes: u64) -> Result<Vec<Extent>, String> {
        let mut extents: Vec<Extent> = Vec::new();
        let (mut tile, mut skip, mut left) = (seen / self.tile.size, seen % self.tile.size, bytes);
        if self.tile.is_seamless() {
            let offset = self.displacement.checked_add(seen);
            let offset = offset.and_then(|offset| offset.checked_add(self.first()));
            return Ok(vec![Extent::new(offset.ok_or(TOO_FAR)?, bytes)]);
        }
        while left > 0 {
            let tile_start = tile.checked_mul(self.tile_bytes()).ok_or(TOO_FAR)?;
            let origin = tile_start.checked_add(self.displacement).ok_or(TOO_FAR)?;
            for &(place, length) in &self.tile.pieces {
                let skipped = skip.min(length);
                skip -= skipped;
                let taken = (length - skipped).min(left);
                left -= taken;
                let offset = origin.checked_add(place as u64 + skipped).ok_or(TOO_FAR)?;
                match extents.last_mut() {
                    _ if taken == 0 => {}
                    Some(last) if last.end() == offset => last.length += taken,
                    _ => extents.push(Extent::new(offset, taken)),
                }
            }
            if extents.len() > PIECES_MAX {
                return Err(format!("one access has more than {PIECES_MAX} pieces"));
            }
            tile += 1;
        }
        Ok(extents)
    }
}

/// Whether each piece begins where the one before ended or later, that of the next tile too, and
/// none before the view.
fn goes_forwards(tile: &Flat) -> bool {
    let end = |&(place, length): &(i64, u64)| place + length as i64;
    let (Some(first), Some(last)) = (tile.pieces.first(), tile.pieces.last()) else { return true };
    let next = first.0.checked_add(tile.extent());
    let is_ordered = tile.pieces.windows(2).all(|two| end(&two[0]) <= two[1].0);
    first.0 >= 0 && is_ordered && next.is_none_or(|next| end(last) <= next)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn view(displacement: u64, unit: &str, tile: &str) -> Result<View, String> {
        View::new(displacement, &Flat::parse(unit)?, Flat::parse(tile)?)
    }

    fn extents(rows: &[(u64, u64)]) -> Vec<Extent> {
        rows.iter().map(|&(offset, length)| Extent::new(offset, length)).collect()
    }

    #[test]
    fn a_view_of_every_third_double_goes_on_in_the_next_tile() {
        let view = view(100, "8", "vector(4,1,3;;8)").unwrap();
        // Position 3 is the last element of the first tile; the next tile begins after 80 bytes.
        assert_eq!(
            view.at_position(3, 16).unwrap(),
            extents(&[(172, 16)]),
            "the tiles touch there"
        );
        assert_eq!(view.at_position(1, 16).unwrap(), extents(&[(124, 8), (148, 8)]));
        assert_eq!(view.at_offset(148, 8).unwrap(), extents(&[(148, 8)]));
    }

    #[test]
    fn a_view_of_a_contiguous_type_only_shifts() {
        let view = view(7, "4", "contiguous(10;;4)").unwrap();
        assert_eq!(view.at_position(5, 100).unwrap(), extents(&[(27, 100)]));
    }

    #[test]
    fn a_view_of_a_subarray_repeats_after_the_whole_array() {
        // Rows 1 and 2, columns 2 and 3 of 4 rows of 6 words: 96 bytes are a tile.
        let view = view(1000, "4", "subarray(2,4,6,2,2,1,2,0;;4)").unwrap();
        let whole = extents(&[(1032, 8), (1056, 8), (1128, 8), (1152, 8)]);
        assert_eq!(view.at_position(0, 32).unwrap(), whole);
        assert_eq!(view.at_position(3, 12).unwrap(), extents(&[(1060, 4), (1128, 8)]));
        assert_eq!(view.at_offset(1060, 12).unwrap(), extents(&[(1060, 4), (1128, 8)]));
        assert_eq!(view.at_offset(1152, 4).unwrap(), extents(&[(1152, 4)]));
    }

    #[test]
    fn tiles_are_as_far_apart_as_bounds_that_were_set() {
        let spaced = view(0, "8", "resized(;0,16;8)").unwrap();
        assert_eq!(spaced.at_position(1, 16).unwrap(), extents(&[(16, 8), (32, 8)]));
        // The bytes of a tile need not lie between its bounds.
        let shifted = view(0, "8", "struct(1,1;24;8)").unwrap();
        assert_eq!(shifted.at_position(1, 16).unwrap(), extents(&[(32, 16)]));
        assert_eq!(shifted.at_offset(32, 16).unwrap(), extents(&[(32, 16)]));
    }

    #[test]
    fn what_goes_backwards_has_no_view() {
        for tile in [
            "hindexed_block(2,1;8,0;8)",
            "hindexed_block(2,1;0,4;8)",
            "hindexed(1,1;-8;8)",
            "resized(;0,4;8)",
            "resized(;0,0;8)",
            "resized(;0,-16;8)",
        ] {
            assert!(view(0, "8", tile).unwrap_err().contains("backwards"), "{tile}");
        }
        assert!(view(0, "0", "8").unwrap_err().contains("with bytes"));
        assert!(view(0, "8", "contiguous(0;;8)").unwrap_err().contains("with bytes"));
    }

    #[test]
    fn absurd_accesses_end() {
        let spaced = view(1, "8", "resized(;0,16;8)").unwrap();
        assert!(spaced.at_position(0, u64::MAX).unwrap_err().contains("pieces"));
        let most = PIECES_MAX as u64 * 8;
        assert_eq!(spaced.at_position(0, most).unwrap().len(), PIECES_MAX);
        assert!(spaced.at_position(0, most + 1).unwrap_err().contains("pieces"));
        assert!(spaced.at_position(u64::MAX, 8).unwrap_err().contains("too large"));
        assert!(spaced.at_position(u64::MAX / 8, u64::MAX).unwrap_err().contains("range"));
        assert!(spaced.at_offset(u64::MAX, u64::MAX).is_err());
        assert!(view(1, "1", "1").unwrap().at_position(u64::MAX, 8).unwrap_err().contains("range"));
    }
}
