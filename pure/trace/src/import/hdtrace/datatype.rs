//! Datatypes of MPI as lists of bytes, and file views made of them.
//!
//! A type is flattened when a view first needs it; most types of a trace only describe memory and
//! are never looked at. A flat type has its pieces in the order of the type map, joined where they
//! touch; views then map (offset, size) to extents of the file in time of the pieces touched.

use super::HdtraceError;
use super::xml::Element;
use iolab_vocab::Extent;
use std::collections::BTreeMap;

/// Pieces of one type, and of one access: beyond these a trace is absurd or hostile.
const PIECES_MAX: usize = 4 << 20;
/// Types made of types.
const DEPTH_MAX: u32 = 64;

/// A datatype as the project file describes it. Other types are named by their number.
#[derive(Clone, Debug)]
enum Datatype {
    /// Of the language; its size.
    Named(u64),
    /// `count` blocks of `block` elements, starting `stride_bytes` or `stride` elements apart.
    Strided { count: u64, block: u64, stride: i64, in_bytes: bool, of: i64 },
    /// Blocks at displacements in bytes.
    Struct(Vec<(i64, u64, i64)>),
    /// Of a kind this importer does not know.
    Unknown(String),
}

/// The types of one rank.
#[derive(Clone, Debug, Default)]
pub(super) struct Datatypes {
    types: BTreeMap<i64, Datatype>,
}

/// The bytes of a type: places relative to its origin, in order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Flat {
    pieces: Vec<(i64, u64)>,
    size: u64,
    lower: i64,
    upper: i64,
}

impl Datatypes {
    /// Takes one element of the rank's list.
    pub(super) fn add(&mut self, file: &str, element: &Element) -> Result<(), HdtraceError> {
        let number = |name: &str| element.number(file, name);
        let count = |name: &str| {
            u64::try_from(number(name)?)
                .map_err(|_| element.wrong(file, format!("{name} is negative")))
        };
        let datatype = match element.name.as_str() {
            "NAMED" => {
                let name = element.attribute("name").unwrap_or("");
                size_of(name).map_or_else(|| Datatype::Unknown(name.to_owned()), Datatype::Named)
            }
            "CONTIGUOUS" => Datatype::Strided {
                count: 1,
                block: count("count")?,
                stride: 0,
                in_bytes: true,
                of: number("oldType")?,
            },
            kind @ ("VECTOR" | "HVECTOR") => Datatype::Strided {
                count: count("count")?,
                block: count("blocklength")?,
                stride: number("stride")?,
                in_bytes: kind == "HVECTOR",
                of: number("oldType")?,
            },
            "STRUCT" => Datatype::Struct(members(file, element)?),
            other => Datatype::Unknown(other.to_owned()),
        };
        self.types.insert(number("id")?, datatype);
        Ok(())
    }

    /// The bytes of the type of that number; the error says why there are none.
    pub(super) fn flat(&self, id: i64) -> Result<Flat, String> {
        self.flat_within(id, 0)
    }

    fn flat_within(&self, id: i64, depth: u32) -> Result<Flat, String> {
        if depth > DEPTH_MAX {
            return Err(format!("datatype {id} is made of itself"));
        }
        let flat = |of: i64| self.flat_within(of, depth + 1);
        match self.types.get(&id) {
            None => Err(format!("the project declares no datatype {id} for this rank")),
            Some(Datatype::Unknown(kind)) => Err(format!("datatype {id} is of kind `{kind}`")),
            Some(Datatype::Named(size)) => {
                let mut named = Flat::default();
                named.add(0, *size)?;
                Ok(named)
            }
            Some(&Datatype::Strided { count, block, stride, in_bytes, of }) => {
                if count > PIECES_MAX as u64 {
                    return Err(format!("datatype {id} has {count} blocks"));
                }
                let old = flat(of)?;
                let step = if in_bytes { 1 } else { old.extent() };
                let mut new = Flat::default();
                for index in 0..count {
                    let place = i64::try_from(index)
                        .ok()
                        .and_then(|index| index.checked_mul(stride)?.checked_mul(step));
                    new.repeat(&old, place.ok_or("a stride leaves the address range")?, block)?;
                }
                Ok(new)
            }
            Some(Datatype::Struct(members)) => {
                let mut new = Flat::default();
                for &(displacement, block, of) in members {
                    new.repeat(&flat(of)?, displacement, block)?;
                }
                Ok(new)
            }
        }
    }
}

fn members(file: &str, element: &Element) -> Result<Vec<(i64, u64, i64)>, HdtraceError> {
    let member = |member: &Element| {
        let block = member.number(file, "blocklen")?;
        let block = u64::try_from(block)
            .map_err(|_| member.wrong(file, format!("blocklen='{block}' is negative")))?;
        Ok((member.number(file, "displacement")?, block, member.number(file, "id")?))
    };
    element.named("Type").map(member).collect()
}

/// Sizes of the types of the languages, as on the machines of today; `MPI_LB` and `MPI_UB` are
/// marks without bytes.
fn size_of(name: &str) -> Option<u64> {
    Some(match name {
        "MPI_LB" | "MPI_UB" => 0,
        "MPI_BYTE" | "MPI_CHAR" | "MPI_SIGNED_CHAR" | "MPI_UNSIGNED_CHAR" | "MPI_PACKED"
        | "MPI_CHARACTER" => 1,
        "MPI_SHORT" | "MPI_UNSIGNED_SHORT" => 2,
        "MPI_INT" | "MPI_UNSIGNED" | "MPI_FLOAT" | "MPI_INTEGER" | "MPI_REAL" | "MPI_LOGICAL"
        | "MPI_WCHAR" => 4,
        "MPI_LONG"
        | "MPI_UNSIGNED_LONG"
        | "MPI_DOUBLE"
        | "MPI_LONG_LONG"
        | "MPI_LONG_LONG_INT"
        | "MPI_UNSIGNED_LONG_LONG"
        | "MPI_DOUBLE_PRECISION"
        | "MPI_COMPLEX" => 8,
        "MPI_LONG_DOUBLE" | "MPI_DOUBLE_COMPLEX" => 16,
        _ => return None,
    })
}

impl Flat {
    fn extent(&self) -> i64 {
        self.upper.saturating_sub(self.lower)
    }

    fn add(&mut self, place: i64, length: u64) -> Result<(), String> {
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
    fn repeat(&mut self, old: &Flat, place: i64, count: u64) -> Result<(), String> {
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

/// What a process sees of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct View {
    displacement: u64,
    /// Bytes of the unit in which positions are counted.
    unit_bytes: u64,
    tile: Flat,
}

impl View {
    /// The view of `filetype` from `displacement` on.
    pub(super) fn new(displacement: u64, etype: &Flat, tile: Flat) -> Result<View, String> {
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
    pub(super) fn at_position(&self, units: u64, bytes: u64) -> Result<Vec<Extent>, String> {
        let seen = units.checked_mul(self.unit_bytes).ok_or("the offset is too large")?;
        self.extents(seen, bytes)
    }

    /// The extents of `bytes` from the place `offset` of the file on.
    pub(super) fn at_offset(&self, offset: u64, bytes: u64) -> Result<Vec<Extent>, String> {
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

    fn types(rows: &[(i64, Datatype)]) -> Datatypes {
        Datatypes { types: rows.iter().cloned().collect() }
    }

    fn vector(count: u64, block: u64, stride: i64, of: i64) -> Datatype {
        Datatype::Strided { count, block, stride, in_bytes: false, of }
    }

    #[test]
    fn a_vector_of_doubles_shows_every_third_one() {
        let types = types(&[(0, Datatype::Named(8)), (1, vector(4, 1, 3, 0))]);
        let tile = types.flat(1).unwrap();
        assert_eq!(tile.pieces, [(0, 8), (24, 8), (48, 8), (72, 8)]);
        let view = View::new(100, &types.flat(0).unwrap(), tile).unwrap();
        // Position 3 is the last element of the first tile; the next tile begins after 80 bytes.
        let extents = view.at_position(3, 16).unwrap();
        assert_eq!(extents, [Extent::new(172, 16)], "the tiles touch there");
        let extents = view.at_position(1, 16).unwrap();
        assert_eq!(extents, [Extent::new(124, 8), Extent::new(148, 8)]);
        assert_eq!(view.at_offset(148, 8).unwrap(), [Extent::new(148, 8)]);
    }

    #[test]
    fn a_struct_has_its_members_where_they_are_displaced() {
        let members = vec![(4, 2, 0), (20, 1, 0)];
        let types = types(&[(0, Datatype::Named(4)), (1, Datatype::Struct(members))]);
        assert_eq!(types.flat(1).unwrap().pieces, [(4, 8), (20, 4)]);
    }

    #[test]
    fn a_view_of_a_contiguous_type_only_shifts() {
        let types = types(&[(0, Datatype::Named(4)), (1, vector(1, 10, 10, 0))]);
        let view = View::new(7, &types.flat(0).unwrap(), types.flat(1).unwrap()).unwrap();
        assert_eq!(view.at_position(5, 100).unwrap(), [Extent::new(27, 100)]);
    }

    #[test]
    fn absurd_types_are_refused() {
        let huge = vector(u64::MAX, 1, 2, 0);
        let types = types(&[(0, Datatype::Named(8)), (1, huge), (2, vector(2, 1, 2, 2))]);
        assert!(types.flat(1).unwrap_err().contains("blocks"));
        assert!(types.flat(2).unwrap_err().contains("made of itself"));
        assert!(types.flat(9).unwrap_err().contains("no datatype 9"));
    }
}
