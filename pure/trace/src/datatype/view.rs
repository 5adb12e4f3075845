//! File views: which bytes of a file a process sees, in the order in which it counts them.

use super::{Flat, PIECES_MAX};
use iolab_vocab::Extent;

/// What a process sees of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct View {
    displacement: u64,
    /// Bytes of the unit in which positions are counted.
    unit_bytes: u64,
    tile: Flat,
}

impl View {
    /// The view of `filetype` from `displacement` on.
    pub fn new(displacement: u64, etype: &Flat, tile: Flat) -> Result<View, String> {
        if etype.size == 0 || tile.size == 0 {
            return Err("a view needs an etype and a filetype with bytes".to_owned());
        }
        let is_ordered = tile.pieces.windows(2).all(|two| two[0].0 + two[0].1 as i64 <= two[1].0);
        if tile.lower < 0 || !is_ordered {
            return Err("the filetype of a view goes backwards".to_owned());
        }
        Ok(View { displacement, unit_bytes: etype.size, tile })
    }

    /// The extents of `bytes` from the position `units` of the view on.
    pub fn at_position(&self, units: u64, bytes: u64) -> Result<Vec<Extent>, String> {
        let seen = units.checked_mul(self.unit_bytes).ok_or("the offset is too large")?;
        self.extents(seen, bytes)
    }

    /// The extents of `bytes` from the place `offset` of the file on.
    pub fn at_offset(&self, offset: u64, bytes: u64) -> Result<Vec<Extent>, String> {
        let tile_bytes = self.tile.extent() as u64;
        let relative = offset.saturating_sub(self.displacement);
        let (tiles, within) = (relative / tile_bytes, (relative % tile_bytes) as i64);
        let before =
            |&(place, length): &(i64, u64)| (within - place).clamp(0, length as i64) as u64;
        let seen = self.tile.pieces.iter().map(before).sum::<u64>();
        self.extents(tiles.saturating_mul(self.tile.size).saturating_add(seen), bytes)
    }

    /// The extents of `bytes` after the first `seen` bytes of the view.
    fn extents(&self, seen: u64, bytes: u64) -> Result<Vec<Extent>, String> {
        let mut extents: Vec<Extent> = Vec::new();
        let (mut tile, mut skip, mut left) = (seen / self.tile.size, seen % self.tile.size, bytes);
        if self.tile.is_contiguous() {
            let offset = self.displacement.saturating_add(seen);
            return Ok(vec![Extent::new(offset.saturating_add(self.tile.lower as u64), bytes)]);
        }
        while left > 0 {
            let tile_start = tile.saturating_mul(self.tile.extent() as u64);
            let origin = tile_start.saturating_add(self.displacement);
            for &(place, length) in &self.tile.pieces {
                let skipped = skip.min(length);
                skip -= skipped;
                let taken = (length - skipped).min(left);
                left -= taken;
                let offset = origin.saturating_add(place as u64 + skipped);
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

#[cfg(test)]
mod tests {
    use super::*;

    fn double() -> Flat {
        let mut double = Flat::default();
        double.add(0, 8).unwrap();
        double
    }

    #[test]
    fn a_view_of_every_third_double_goes_on_in_the_next_tile() {
        let mut tile = Flat::default();
        for index in 0..4 {
            tile.repeat(&double(), index * 24, 1).unwrap();
        }
        let view = View::new(100, &double(), tile).unwrap();
        // Position 3 is the last element of the first tile; the next tile begins after 80 bytes.
        let extents = view.at_position(3, 16).unwrap();
        assert_eq!(extents, [Extent::new(172, 16)], "the tiles touch there");
        let extents = view.at_position(1, 16).unwrap();
        assert_eq!(extents, [Extent::new(124, 8), Extent::new(148, 8)]);
        assert_eq!(view.at_offset(148, 8).unwrap(), [Extent::new(148, 8)]);
    }

    #[test]
    fn a_view_of_a_contiguous_type_only_shifts() {
        let mut tile = Flat::default();
        tile.repeat(&double(), 0, 10).unwrap();
        let view = View::new(7, &double(), tile).unwrap();
        assert_eq!(view.at_position(5, 100).unwrap(), [Extent::new(47, 100)]);
    }
}
