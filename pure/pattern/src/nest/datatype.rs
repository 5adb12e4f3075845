//! MPI datatypes, one constructor for each of the standard's (MPI 4.1, chapter 5).
//!
//! A datatype is a nest that has a place relative to an address, and lower and upper bound, which
//! say where the next one of several begins. Displacements may be negative here: a memory type may
//! start before its address. A *view* may not: [`Datatype::view`] refuses what lies before the
//! displacement, as MPI does.
//!
//! Promises: the order of bytes is that of the type map, so data moves in the order MPI says. Bounds
//! follow the standard's formulas without the alignment padding that a library may add to structs;
//! who knows that a library pads says so with [`Datatype::resized`]. A type without bytes still
//! counts for the bounds of what it is part of; a count or blocklength of 0 does not.
//!
//! Costs: O(1) for copies at ascending places, O(n) for n displacements. Copies at descending places
//! become one part each, which [`super::NEST_NODES`] limits.

use super::node::{LARGEST, Node, checked_nodes, too_large};
use super::{Nest, fold::Fold};
use iolab_vocab::Refusal;

/// A type map: bytes in an order, with bounds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Datatype {
    /// The bytes, from the lowest one on.
    pub(super) node: Node,
    /// Where the lowest byte is, from the address on.
    pub(super) origin: i64,
    lower: i64,
    upper: i64,
}

fn fits(value: i128) -> Option<i64> {
    i64::try_from(value).ok().filter(|value| value.unsigned_abs() <= LARGEST)
}

/// A number of bytes that may be negative, or the error that names what left the range.
pub(super) fn signed(what: &str, value: i128) -> Result<i64, Refusal> {
    fits(value).ok_or_else(|| too_large(what))
}

impl Datatype {
    const NOTHING: Datatype = Datatype { node: Node::EMPTY, origin: 0, lower: 0, upper: 0 };

    /// A predefined type of that many bytes.
    pub fn bytes(length: u64) -> Result<Datatype, Refusal> {
        let upper = length.min(LARGEST) as i64;
        Ok(Datatype { node: Node::bytes(length)?, origin: 0, lower: 0, upper })
    }

    /// How many bytes of data it has.
    pub fn size(&self) -> u64 {
        self.node.size()
    }

    /// MPI's lower bound.
    pub const fn lower_bound(&self) -> i64 {
        self.lower
    }

    /// MPI's extent: from one of several to the next.
    pub const fn extent(&self) -> i64 {
        // Constructors keep it in range.
        self.upper - self.lower
    }

    /// MPI_Type_contiguous.
    pub fn contiguous(&self, count: u64) -> Result<Datatype, Refusal> {
        self.copies(count, i128::from(self.extent()))
    }

    /// MPI_Type_vector: blocks `stride` extents apart.
    pub fn vector(&self, count: u64, block: u64, stride: i64) -> Result<Datatype, Refusal> {
        self.rows(count, block, i128::from(stride) * i128::from(self.extent()))
    }

    /// MPI_Type_create_hvector: blocks `stride` bytes apart.
    pub fn hvector(&self, count: u64, block: u64, stride: i64) -> Result<Datatype, Refusal> {
        self.rows(count, block, i128::from(stride))
    }

    /// MPI_Type_indexed: (blocklength, displacement in extents) each.
    pub fn indexed(&self, blocks: &[(u64, i64)]) -> Result<Datatype, Refusal> {
        let extent = i128::from(self.extent());
        self.blocks(blocks.iter().map(|&(length, at)| (length, i128::from(at) * extent)))
    }

    /// MPI_Type_create_hindexed: (blocklength, displacement in bytes) each.
    pub fn hindexed(&self, blocks: &[(u64, i64)]) -> Result<Datatype, Refusal> {
        self.blocks(blocks.iter().map(|&(length, at)| (length, i128::from(at))))
    }

    /// MPI_Type_create_indexed_block: displacements in extents.
    pub fn indexed_block(&self, block: u64, places: &[i64]) -> Result<Datatype, Refusal> {
        let extent = i128::from(self.extent());
        self.blocks(places.iter().map(|&at| (block, i128::from(at) * extent)))
    }

    /// MPI_Type_create_hindexed_block: displacements in bytes.
    pub fn hindexed_block(&self, block: u64, places: &[i64]) -> Result<Datatype, Refusal> {
        self.blocks(places.iter().map(|&at| (block, i128::from(at))))
    }

    /// MPI_Type_create_struct: (blocklength, displacement in bytes, type) each.
    pub fn structure(blocks: &[(u64, i64, &Datatype)]) -> Result<Datatype, Refusal> {
        let blocks = blocks.iter().filter(|(length, ..)| *length > 0);
        let placed = blocks.map(|&(length, at, of)| Ok((i128::from(at), of.contiguous(length)?)));
        joined(&placed.collect::<Result<Vec<_>, Refusal>>()?)
    }

    /// MPI_Type_dup.
    pub fn dup(&self) -> Datatype {
        self.clone()
    }

    /// MPI_Type_create_resized.
    pub fn resized(&self, lower: i64, extent: i64) -> Result<Datatype, Refusal> {
        let what = "a bound of a resized type";
        let upper = signed(what, i128::from(lower) + i128::from(extent))?;
        signed(what, i128::from(lower))?;
        signed(what, i128::from(extent))?;
        Ok(Datatype { lower, upper, ..self.clone() })
    }

    /// The view of MPI_File_set_view: this type as filetype, again and again from `displacement`
    /// on. It may be improper, then it is for reading only and has no inverse.
    pub fn view(&self, displacement: u64) -> Result<Nest, Refusal> {
        if self.node.is_empty() {
            return Ok(Nest::EMPTY);
        }
        let Some(extent) = u64::try_from(self.extent()).ok().filter(|&extent| extent > 0) else {
            return Err(Refusal::new(
                format!("a filetype of extent {} does not repeat forwards", self.extent()),
                "resize it to an extent above 0",
            ));
        };
        let Ok(origin) = u64::try_from(self.origin) else {
            return Err(Refusal::new(
                format!("a filetype begins {} bytes before its displacement", -self.origin),
                "give a filetype displacements of at least 0, as MPI demands",
            ));
        };
        let place = displacement.checked_add(origin);
        Nest::new(place.ok_or_else(|| too_large("a view"))?, extent, self.node.clone())
    }

    /// `count` of it, one after the other, as in a buffer of MPI_Send: where the lowest byte lies
    /// relative to the buffer's address, and the bytes from there on.
    pub fn buffer(&self, count: u64) -> Result<(i64, Nest), Refusal> {
        let all = self.contiguous(count)?;
        Ok((all.origin, Nest::new(0, 0, all.node)?))
    }

    /// The same bytes with other bounds.
    pub(super) fn bounded(self, lower: i64, upper: i64) -> Datatype {
        Datatype { lower, upper, ..self }
    }

    /// The same bytes elsewhere.
    pub(super) fn moved(mut self, by: i128) -> Result<Datatype, Refusal> {
        for place in [&mut self.origin, &mut self.lower, &mut self.upper] {
            *place = signed("a displacement", i128::from(*place).saturating_add(by))?;
        }
        Ok(self)
    }

    /// `count` of it, each `stride` bytes after the one before.
    pub(super) fn copies(&self, count: u64, stride: i128) -> Result<Datatype, Refusal> {
        if count == 0 {
            return Ok(Datatype::NOTHING);
        }
        let name = || format!("a type of {} bytes {count} times every {stride}", self.size());
        let error = || too_large(&name());
        let reach = stride.checked_mul(i128::from(count - 1)).ok_or_else(error)?;
        let moved = |bound: i64, by: i128| fits(i128::from(bound).saturating_add(by));
        let lower = moved(self.lower, reach.min(0)).ok_or_else(error)?;
        let upper = moved(self.upper, reach.max(0)).ok_or_else(error)?;
        fits(i128::from(upper) - i128::from(lower)).ok_or_else(error)?;
        if count == 1 || self.node.is_empty() {
            return Ok(self.clone().bounded(lower, upper));
        }
        let lowest = moved(self.origin, reach.min(0)).ok_or_else(error)?;
        let step = u64::try_from(stride.unsigned_abs()).map_err(|_| error())?;
        if stride >= 0 {
            let node = self.node.repeated(count, step)?;
            return Ok(Datatype { node, origin: lowest, lower, upper });
        }
        // Descending places have no Repeat.
        checked_nodes(count.saturating_mul(self.node.nodes()))?;
        let parts = (0..count).rev().map(|copy| (copy * step, self.node.clone()));
        let (_, node) = Node::sequence(parts)?;
        Ok(Datatype { node, origin: lowest, lower, upper })
    }

    /// `count` blocks of `block` each; no blocks or blocks of none are nothing, bounds included.
    fn rows(&self, count: u64, block: u64, stride: i128) -> Result<Datatype, Refusal> {
        let count = if block == 0 { 0 } else { count };
        self.contiguous(block)?.copies(count, stride)
    }

    fn blocks(&self, blocks: impl Iterator<Item = (u64, i128)>) -> Result<Datatype, Refusal> {
        let mut made: Option<(u64, Datatype)> = None;
        let mut placed = Vec::new();
        for (length, at) in blocks.filter(|(length, _)| *length > 0) {
            // Lengths mostly come in a row of equal ones.
            let block = match made.take().filter(|(same, _)| *same == length) {
                Some((_, block)) => block,
                None => self.contiguous(length)?,
            };
            placed.push((at, block.clone()));
            made = Some((length, block));
        }
        joined(&placed)
    }
}

/// Types at displacements, in that order.
pub(super) fn joined(placed: &[(i128, Datatype)]) -> Result<Datatype, Refusal> {
    // With every displacement in the range of a file offset, no sum below leaves an i128.
    placed.iter().try_for_each(|(at, _)| signed("a displacement", *at).map(drop))?;
    let lower = placed.iter().map(|(at, one)| at + i128::from(one.lower)).min().unwrap_or(0);
    let upper = placed.iter().map(|(at, one)| at + i128::from(one.upper)).max().unwrap_or(0);
    let data = || placed.iter().filter(|(_, one)| !one.node.is_empty());
    let origin = data().map(|(at, one)| at + i128::from(one.origin)).min().unwrap_or(0);
    let mut fold = Fold::new();
    for (at, one) in data() {
        let place = u64::try_from(at + i128::from(one.origin) - origin);
        fold.push(place.map_err(|_| too_large("a displacement"))?, &one.node)?;
    }
    let (_, node) = fold.finish()?;
    let what = "the bounds of a type of several blocks";
    signed(what, upper - lower)?;
    let (lower, upper) = (signed(what, lower)?, signed(what, upper)?);
    Ok(Datatype { node, origin: signed("a displacement", origin)?, lower, upper })
}
