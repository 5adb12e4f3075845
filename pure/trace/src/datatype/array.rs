//! Parts of arrays: the subarray, and the share that one process has of a distributed array
//! (MPI 4.1, sections 5.1.3 and 5.1.4).
//!
//! Both are made dimension by dimension, the fastest one first: the elements of a dimension are
//! slices of the dimensions before it. Lower bound and extent are those of the full array.

use super::{Flat, OUT_OF_RANGE};

/// As in HDF5 (`H5S_MAX_RANK`); it bounds how often the pieces of one type are copied.
const DIMENSIONS_MAX: usize = 32;

/// The part of an array of `old` that `lists` (sizes, subsizes and starts of the dimensions, in
/// elements) describes; `order` is 0 if the last dimension is the fastest (C), 1 if the first is.
pub(super) fn subarray(old: Flat, lists: &[i64], order: i64) -> Result<Flat, String> {
    let count = lists.len() / 3;
    let (sizes, rest) = lists.split_at(count);
    let (subsizes, starts) = rest.split_at(count);
    fastest_first(count, order)?.into_iter().try_fold(old, |flat, dimension| {
        slice(&flat, sizes[dimension], subsizes[dimension], starts[dimension])
    })
}

fn slice(old: &Flat, size: i64, subsize: i64, start: i64) -> Result<Flat, String> {
    if subsize < 1 || start < 0 || start.checked_add(subsize).is_none_or(|end| end > size) {
        return Err(format!("{subsize} elements from {start} on are not in a dimension of {size}"));
    }
    let mut new = Flat::default();
    new.repeat(old, times(start, old.extent())?, subsize as u64, old.extent())?;
    new.resized(0, times(size, old.extent())?)
}

/// Which of the processes that share an array.
pub(super) struct Place {
    /// How many processes there are.
    pub(super) size: i64,
    /// The number of this one.
    pub(super) rank: i64,
}

/// The share of an array of `old` that a process has; `lists` are sizes, distributions (0 block, 1
/// cyclic, 2 none), arguments (-1 for the default) and processes of the dimensions.
pub(super) fn darray(old: Flat, at: Place, lists: &[i64], order: i64) -> Result<Flat, String> {
    let count = lists.len() / 4;
    let (sizes, rest) = lists.split_at(count);
    let (distributions, rest) = rest.split_at(count);
    let (arguments, shares) = rest.split_at(count);
    let places = places_in_grid(at, shares)?;
    fastest_first(count, order)?.into_iter().try_fold(old, |flat, dimension| {
        let (size, shares) = (sizes[dimension], shares[dimension]);
        let block = block_of(distributions[dimension], arguments[dimension], size, shares)?;
        cyclic(&flat, size, block, places[dimension], shares)
    })
}

/// Dimensions by how close their elements are.
fn fastest_first(count: usize, order: i64) -> Result<Vec<usize>, String> {
    if count == 0 || count > DIMENSIONS_MAX {
        return Err(format!("an array has 1 to {DIMENSIONS_MAX} dimensions, not {count}"));
    }
    match order {
        0 => Ok((0..count).rev().collect()),
        1 => Ok((0..count).collect()),
        _ => Err(format!("{order} is not an order of arrays")),
    }
}

/// Where a process is in the grid, whose last dimension is the fastest whatever the array's order.
fn places_in_grid(Place { size, rank }: Place, shares: &[i64]) -> Result<Vec<i64>, String> {
    let product = shares.iter().try_fold(1i64, |product, &share| product.checked_mul(share));
    if shares.iter().any(|&share| share < 1) || product != Some(size) {
        return Err(format!("a grid of {shares:?} has not {size} processes"));
    }
    if !(0..size).contains(&rank) {
        return Err(format!("process {rank} is not one of {size}"));
    }
    let mut rest = rank;
    let mut places = shares.to_vec();
    for place in places.iter_mut().rev() {
        (rest, *place) = (rest / *place, rest % *place);
    }
    Ok(places)
}

/// How many elements in a row a process has of a dimension.
fn block_of(distribution: i64, argument: i64, size: i64, shares: i64) -> Result<i64, String> {
    if size < 1 || (argument < 1 && argument != -1) {
        return Err(format!("a dimension of {size} has no blocks of {argument}"));
    }
    match (distribution, argument) {
        (0, -1) => Ok((size - 1) / shares + 1),
        (0, block) if block.checked_mul(shares).is_some_and(|all| all < size) => {
            Err(format!("{shares} blocks of {block} do not cover a dimension of {size}"))
        }
        (1, -1) => Ok(1),
        (0 | 1, block) => Ok(block),
        (2, _) if shares == 1 => Ok(size),
        (2, _) => Err(format!("{shares} processes share a dimension that is not distributed")),
        _ => Err(format!("{distribution} is not a distribution of arrays")),
    }
}

/// Blocks of a dimension are dealt in turn to `shares` processes: those of number `share`.
fn cyclic(old: &Flat, size: i64, block: i64, share: i64, shares: i64) -> Result<Flat, String> {
    let (block, extent) = (block.min(size), old.extent());
    let (first, period) = (times(share, block)?, times(shares, block)?);
    let whole = if size - first < block { 0 } else { (size - first - block) / period + 1 };
    let after = times(whole, period)?.checked_add(first).ok_or(OUT_OF_RANGE)?;
    let rest = size.saturating_sub(after).clamp(0, block);

    let blocks = Flat::strided(old, whole as u64, block as u64, times(period, extent)?)?;
    let mut new = Flat::default();
    new.repeat(&blocks, times(first, extent)?, 1, 0)?;
    new.repeat(old, times(after, extent)?, rest as u64, extent)?;
    new.resized(0, times(size, extent)?)
}

fn times(count: i64, bytes: i64) -> Result<i64, &'static str> {
    count.checked_mul(bytes).ok_or(OUT_OF_RANGE)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn flat(text: &str) -> Flat {
        Flat::parse(text).unwrap_or_else(|what| panic!("{text}: {what}"))
    }

    /// Of each byte of an array, how many processes have it.
    fn owners(bytes: usize, size: usize, of_rank: impl Fn(usize) -> String) -> Vec<u32> {
        let mut owners = vec![0; bytes];
        for share in (0..size).map(|rank| flat(&of_rank(rank))) {
            assert_eq!((share.lower(), share.extent()), (0, bytes as i64));
            for &(place, length) in share.pieces() {
                owners[place as usize..][..length as usize].iter_mut().for_each(|one| *one += 1);
            }
        }
        owners
    }

    #[test]
    fn a_plane_is_cut_by_rows_in_c_and_by_columns_in_fortran() {
        // 2 of 3 and 3 of 5 elements of 4 bytes from (1, 2) on.
        let rows = flat("subarray(2,3,5,2,3,1,2,0;;4)");
        assert_eq!(rows.pieces(), [(28, 12), (48, 12)]);
        let columns = flat("subarray(2,3,5,2,3,1,2,1;;4)");
        assert_eq!(columns.pieces(), [(28, 8), (40, 8), (52, 8)]);
        for plane in [rows, columns] {
            assert_eq!((plane.size(), plane.lower(), plane.extent()), (24, 0, 60));
        }
    }

    #[test]
    fn a_cuboid_is_cut_out_of_a_block() {
        // (1, 0, 1) to (2, 2, 3) of 2 by 3 by 4 bytes, and what is whole is one piece.
        let cuboid = flat("subarray(3,2,3,4,1,2,2,1,0,1,0;;1)");
        assert_eq!(cuboid.pieces(), [(13, 2), (17, 2)]);
        assert_eq!((cuboid.lower(), cuboid.extent()), (0, 24));
        let slab = flat("subarray(3,4,3,2,2,3,2,1,0,0,0;;8)");
        assert_eq!(slab.pieces(), [(48, 96)]);
    }

    #[test]
    fn elements_of_an_array_keep_their_own_gaps() {
        let row = flat("subarray(1,4,2,1,0;;resized(;0,16;8))");
        assert_eq!((row.pieces(), row.extent()), (&[(16, 8), (32, 8)][..], 64));
    }

    #[test]
    fn a_grid_of_processes_counts_its_last_dimension_first_in_either_order() {
        // Rank 1 of a 2 by 2 grid over 4 by 6 bytes has the first half of dimension 0 and the
        // second half of dimension 1.
        let c = flat("darray(4,1,2,4,6,0,0,-1,-1,2,2,0;;1)");
        assert_eq!(c.pieces(), [(3, 3), (9, 3)]);
        let fortran = flat("darray(4,1,2,4,6,0,0,-1,-1,2,2,1;;1)");
        assert_eq!(fortran.pieces(), [(12, 2), (16, 2), (20, 2)]);
    }

    #[test]
    fn the_last_block_of_a_dimension_is_as_long_as_what_is_left() {
        assert_eq!(flat("darray(3,2,1,10,0,-1,3,0;;8)").pieces(), [(64, 16)]);
        assert_eq!(flat("darray(4,3,1,5,0,-1,4,0;;8)").pieces(), [], "2, 2, 1 and none");
        assert_eq!(flat("darray(2,0,1,7,1,2,2,0;;1)").pieces(), [(0, 2), (4, 2)]);
        assert_eq!(flat("darray(2,1,1,7,1,2,2,0;;1)").pieces(), [(2, 2), (6, 1)]);
        assert_eq!(flat("darray(2,1,1,5,1,-1,2,0;;4)").pieces(), [(4, 4), (12, 4)]);
    }

    #[test]
    fn the_processes_of_a_distributed_array_have_each_byte_once() {
        for (bytes, size, lists) in [
            (5 * 7 * 4, 4, "2,5,7,0,0,-1,-1,2,2"),
            (5 * 7 * 4, 4, "2,5,7,0,1,3,2,2,2"),
            (11 * 4, 3, "1,11,1,2,3"),
            (4 * 9 * 4, 3, "2,4,9,2,1,-1,2,1,3"),
            (6 * 5 * 4 * 4, 12, "3,6,5,4,1,0,1,-1,-1,3,2,3,2"),
        ] {
            for order in [0, 1] {
                let of_rank = |rank| format!("darray({size},{rank},{lists},{order};;4)");
                assert_eq!(owners(bytes, size, of_rank), vec![1; bytes], "{lists} {order}");
            }
        }
    }

    #[test]
    fn arrays_that_no_library_makes_are_refused() {
        for (text, why) in [
            ("subarray(1,4,3,2,0;;1)", "not in a dimension of 4"),
            ("subarray(1,4,0,2,0;;1)", "not in a dimension"),
            ("subarray(1,4,1,-1,0;;1)", "not in a dimension"),
            ("subarray(1,4,9223372036854775807,1,0;;1)", "not in a dimension"),
            ("subarray(1,4,1,1,2;;1)", "2 is not an order"),
            ("subarray(0,0;;1)", "dimensions, not 0"),
            ("subarray(1,9223372036854775807,1,1,0;;8)", "address range"),
            ("darray(4,4,1,9,0,-1,4,0;;1)", "process 4 is not one of 4"),
            ("darray(4,0,1,9,0,-1,3,0;;1)", "[3] has not 4"),
            ("darray(4,0,2,9,9,0,0,-1,-1,-2,-2,0;;1)", "has not 4"),
            ("darray(2,0,1,9,0,4,2,0;;1)", "2 blocks of 4 do not cover"),
            ("darray(2,0,1,9,0,0,2,0;;1)", "no blocks of 0"),
            ("darray(2,0,1,0,0,-1,2,0;;1)", "a dimension of 0"),
            ("darray(2,0,1,9,2,-1,2,0;;1)", "not distributed"),
            ("darray(2,0,1,9,3,-1,2,0;;1)", "3 is not a distribution"),
        ] {
            let what = Flat::parse(text).unwrap_err();
            assert!(what.contains(why), "{text}: {what}");
        }
    }
}
