//! MPI's arrays: a part of an n-D array, and the share of one rank of a distributed one.
//!
//! Both follow the standard's recursion over dimensions, the contiguous one first (MPI 4.1, 5.1.3
//! and 5.1.4). The grid of ranks of a darray is row-major in either order, as the standard has it.
//!
//! Promises: bounds are those of the whole array, so that one array follows the other.
//! Costs: O(dimensions). A ragged edge makes a second part of its dimension, so that the tree of a
//! darray that is ragged in d of its dimensions has O(2^d) nodes; they share what they repeat.

use super::datatype::{Datatype, joined, signed};
use iolab_vocab::Refusal;

/// Which dimension is contiguous.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// The last one: MPI_ORDER_C.
    C,
    /// The first one: MPI_ORDER_FORTRAN.
    Fortran,
}

impl Order {
    /// Dimensions, the contiguous one first.
    fn inward(self, dimensions: usize) -> impl Iterator<Item = usize> {
        (0..dimensions).map(move |step| match self {
            Order::C => dimensions - 1 - step,
            Order::Fortran => step,
        })
    }
}

/// How the indices of one dimension are dealt out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Distribution {
    /// One block per rank: ⌈n/p⌉ indices, or as many as given.
    Block(Option<u64>),
    /// Blocks of that many indices, round robin; 1 is MPI's default.
    Cyclic(u64),
    /// Not distributed.
    None,
}

fn wrong(dimension: usize, why: String, hint: &str) -> Refusal {
    Refusal::new(format!("dimension {dimension} of an array: {why}"), hint)
}

fn check_lengths(what: &str, dimensions: usize, others: &[usize]) -> Result<(), Refusal> {
    if dimensions > 0 && others.iter().all(|&other| other == dimensions) {
        return Ok(());
    }
    Err(Refusal::new(
        format!("{what} of {dimensions} dimensions has lists of {others:?} values"),
        "give every list one value per dimension, and at least one dimension",
    ))
}

impl Datatype {
    /// MPI_Type_create_subarray of elements of this type.
    pub fn subarray(
        &self,
        sizes: &[u64],
        subsizes: &[u64],
        starts: &[u64],
        order: Order,
    ) -> Result<Datatype, Refusal> {
        check_lengths("a subarray", sizes.len(), &[subsizes.len(), starts.len()])?;
        let mut part = self.clone();
        let mut pitch = i128::from(self.extent());
        for d in order.inward(sizes.len()) {
            let (size, subsize, start) = (sizes[d], subsizes[d], starts[d]);
            if subsize == 0 || start.checked_add(subsize).is_none_or(|end| end > size) {
                let why = format!("{subsize} indices from {start} on are no part of {size}");
                return Err(wrong(d, why, "give 1 to size - start indices"));
            }
            let first = pitch.saturating_mul(i128::from(start));
            part = part.copies(subsize, pitch)?.moved(first)?;
            pitch = whole(pitch, size)?;
        }
        Ok(part.bounded(0, signed("a subarray", pitch)?))
    }

    /// MPI_Type_create_darray: the share of `rank` of an array of elements of this type. Each
    /// dimension has a global size, a distribution and a number of ranks.
    pub fn darray(
        &self,
        rank: u64,
        sizes: &[u64],
        distributions: &[Distribution],
        grid: &[u64],
        order: Order,
    ) -> Result<Datatype, Refusal> {
        check_lengths("a darray", sizes.len(), &[distributions.len(), grid.len()])?;
        let places = grid.iter().try_fold(1_u64, |product, &ranks| product.checked_mul(ranks));
        if places.is_none_or(|places| rank >= places) {
            let message = format!("rank {rank} has no place in a grid of {grid:?} ranks");
            return Err(Refusal::new(message, "make the grid as large as the communicator"));
        }
        let mut share = self.clone();
        let mut pitch = i128::from(self.extent());
        for d in order.inward(sizes.len()) {
            // In range, and not 0, as the product of the whole grid is.
            let after: u64 = grid[d + 1..].iter().product();
            let chunk = chunk(d, sizes[d], distributions[d], grid[d])?;
            let dealt = Dealt { size: sizes[d], ranks: grid[d], chunk };
            share = dealt.share(&share, rank / after % grid[d], pitch)?;
            pitch = whole(pitch, sizes[d])?;
        }
        Ok(share.bounded(0, signed("a darray", pitch)?))
    }
}

/// The bytes from one row to the next, in the next dimension.
fn whole(pitch: i128, size: u64) -> Result<i128, Refusal> {
    signed("an array", pitch.saturating_mul(i128::from(size))).map(i128::from)
}

fn chunk(d: usize, size: u64, how: Distribution, ranks: u64) -> Result<u64, Refusal> {
    let (chunk, hint) = match how {
        _ if size == 0 => (0, "give it a size of at least 1"),
        Distribution::Block(None) => (size.div_ceil(ranks), ""),
        Distribution::Block(Some(chunk)) if chunk.checked_mul(ranks).is_some_and(|n| n < size) => {
            (0, "give blocks that hold the dimension on so many ranks")
        }
        Distribution::Block(Some(chunk)) | Distribution::Cyclic(chunk) => {
            (chunk.min(size), "give blocks of at least 1")
        }
        Distribution::None if ranks == 1 => (size, ""),
        Distribution::None => (0, "give a dimension that is not distributed 1 rank"),
    };
    match chunk {
        0 => Err(wrong(d, format!("{size} indices cannot be dealt to {ranks} as {how:?}"), hint)),
        chunk => Ok(chunk),
    }
}

/// One dimension: so many indices, dealt to ranks in chunks, round robin.
struct Dealt {
    size: u64,
    ranks: u64,
    chunk: u64,
}

impl Dealt {
    /// The full chunks of the rank at `position`, then its short one, of rows `pitch` apart.
    fn share(&self, row: &Datatype, position: u64, pitch: i128) -> Result<Datatype, Refusal> {
        let chunks = self.size / self.chunk;
        let full = chunks / self.ranks + u64::from(position < chunks % self.ranks);
        let rest = if chunks % self.ranks == position { self.size % self.chunk } else { 0 };
        // A place that is used is below the size; one that leaves the range is refused by `joined`.
        let stride = i128::from(self.ranks).saturating_mul(i128::from(self.chunk));
        let at = |round: u64| {
            let start = i128::from(position).saturating_mul(i128::from(self.chunk));
            let index = i128::from(round).saturating_mul(stride).saturating_add(start);
            index.saturating_mul(pitch)
        };
        let mut placed = Vec::with_capacity(2);
        if full > 0 {
            let one = row.copies(self.chunk, pitch)?;
            placed.push((at(0), one.copies(full, stride.saturating_mul(pitch))?));
        }
        if rest > 0 {
            placed.push((at(full), row.copies(rest, pitch)?));
        }
        joined(&placed)
    }
}
