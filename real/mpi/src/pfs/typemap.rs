//! MPI's datatypes as sets of bytes.
//!
//! A datatype is taken apart by what MPI tells of it and made again of the same constructors, so that
//! a regular one of any size costs the same. What was made of a derived datatype is kept with it as an
//! attribute, and goes when the datatype goes.

use super::group::Group;
use super::numbers::Class;
use super::trouble::Trouble;
use super::{external, numbers};
use crate::datatypes::{Contents, bounds, contents, envelope, give_back, size};
use crate::family::{Family, Kind, OPAQUE};
use crate::profiling;
use iolab_pattern::Datatype;
use iolab_pattern::nest::{Distribution, Order};
use std::sync::{Arc, OnceLock};

/// Types made of types: as deep as a set may be.
const DEPTH_MAX: u32 = 64;

/// The set of bytes of a datatype.
pub(crate) fn of(datatype: usize) -> Result<Arc<Datatype>, Trouble> {
    let family = Family::here();
    check_null(datatype)?;
    if is_named(datatype) {
        return Ok(Arc::new(made(family, datatype, Sizes::InMemory, 0)?));
    }
    if let Some(kept) = kept(datatype) {
        return Ok(kept);
    }
    check_committed(datatype)?;
    let made = Arc::new(made(family, datatype, Sizes::InMemory, 0)?);
    keep(datatype, &made);
    Ok(made)
}

/// Whether a call may name a datatype, though it moves nothing of it.
pub(crate) fn check(datatype: usize) -> Result<(), Trouble> {
    check_null(datatype)?;
    // What is kept of a datatype was found of one that was committed, and it stays so.
    match is_named(datatype) || kept(datatype).is_some() {
        true => Ok(()),
        false => check_committed(datatype),
    }
}

fn check_null(datatype: usize) -> Result<(), Trouble> {
    match datatype == numbers::Numbers::here().no_datatype {
        true => Err(Trouble::new(Class::Type, "the datatype is MPI_DATATYPE_NULL")),
        false => Ok(()),
    }
}

/// Whether a derived datatype was committed, which MPI tells by refusing to pack nothing of one that was not.
fn check_committed(datatype: usize) -> Result<(), Trouble> {
    let (mut place, mut position) = (0u64, 0i32);
    let (bytes, at) = (size_of_val(&place), &raw mut position as usize);
    let place = &raw mut place as usize;
    let packed = Group::with_any(|communicator| {
        // SAFETY: nothing is packed, and there is room for it.
        unsafe { profiling::pack(place, 0, datatype, place, bytes, at, communicator) }
    });
    match packed {
        None | Some(0) => Ok(()),
        Some(_) => Err(Trouble::new(Class::Type, "the datatype was not committed")),
    }
}

/// The set of bytes of a datatype in a file of data representation external32: distances in elements are
/// those of elements there, distances in bytes stay.
pub(super) fn of_file(datatype: usize) -> Result<Datatype, Trouble> {
    check(datatype)?;
    made(Family::here(), datatype, Sizes::External, 0)
}

/// Bytes in the file of a type of MPI's own.
fn in_file(datatype: usize) -> Result<i64, Trouble> {
    let none = || {
        let text = "the MPI library converts no pairs of numbers and wide letters to external32";
        Trouble::new(Class::Conversion, text)
    };
    match size(datatype) {
        // Marks of bounds have no bytes anywhere, and are not packed.
        Some(0) => return Ok(0),
        _ if ends_the_program(Family::here().kind, datatype) => return Err(none()),
        _ => {}
    }
    external::size_of(datatype).ok_or_else(none)
}

/// Whether converting a type of MPI's own ends the program: in MPICH pairs do, of which those of unlike numbers are not
/// among the handles of its basic types, and wide letters.
fn ends_the_program(kind: Kind, datatype: usize) -> bool {
    /// The lowest byte of the handles of `MPI_WCHAR`, `MPI_2INT`, and what Fortran has in pairs: integers, reals,
    /// complex numbers, and those of double precision.
    const NOT_CONVERTED: [usize; 7] = [0x0e, 0x16, 0x20, 0x21, 0x23, 0x24, 0x25];
    let is_basic = datatype >> 24 == 0x4c;
    kind == Kind::Mpich && (!is_basic || NOT_CONVERTED.contains(&(datatype & 0xff)))
}

/// A row of numbers of one type of MPI's own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Numbers {
    pub(super) datatype: usize,
    pub(super) count: u64,
    /// Bytes of each.
    pub(super) in_memory: u64,
    /// In memory, from one to the next: in pairs there may be bytes that are not theirs.
    pub(super) extent: u64,
    pub(super) in_file: u64,
}

impl Numbers {
    /// Whether they have no gaps in memory.
    pub(super) fn is_dense(&self) -> bool {
        self.extent == self.in_memory
    }
}

/// Rows of numbers that a datatype may be made of.
const ROWS_MAX: usize = 1 << 20;

/// Of which numbers a datatype is made, in its order.
pub(super) fn numbers(datatype: usize) -> Result<Vec<Numbers>, Trouble> {
    let mut rows = Vec::new();
    add_numbers(Family::here(), datatype, 0, &mut rows)?;
    Ok(rows)
}

fn add_numbers(
    family: &Family,
    datatype: usize,
    depth: u32,
    rows: &mut Vec<Numbers>,
) -> Result<(), Trouble> {
    let opaque = || Trouble::new(Class::Type, "MPI does not tell what the datatype is made of");
    let made_of = envelope(datatype).ok_or_else(opaque)?;
    let name = family.combiner(made_of.combiner).ok_or_else(opaque)?;
    let bytes = size(datatype).ok_or_else(opaque)? as u64;
    if name.is_empty() {
        let in_file = in_file(datatype)? as u64;
        let (_, extent) = bounds(datatype).ok_or_else(opaque)?;
        let extent = extent as u64;
        add(rows, Numbers { datatype, count: 1, in_memory: bytes, extent, in_file });
        return Ok(());
    }
    if name == OPAQUE || depth == DEPTH_MAX {
        return Err(opaque());
    }
    let contents = contents(family, datatype, name, &made_of).ok_or_else(opaque)?;
    let added = if name == "struct" {
        let mut integers = Integers(&contents.integers);
        let lengths = integers.count().and_then(|count| integers.counts(count));
        lengths.and_then(|lengths| {
            let parts = lengths.into_iter().zip(&contents.types);
            parts
                .into_iter()
                .try_for_each(|(length, &part)| repeat_numbers(family, part, depth, length, rows))
        })
    } else {
        let part = contents.types.first().copied().ok_or_else(cut_short);
        part.and_then(|part| {
            let each = size(part).ok_or_else(opaque)? as u64;
            let times = bytes.checked_div(each).unwrap_or(0);
            repeat_numbers(family, part, depth, times, rows)
        })
    };
    give_back(family, &contents);
    added
}

/// Adds the numbers of a part so many times.
fn repeat_numbers(
    family: &Family,
    part: usize,
    depth: u32,
    times: u64,
    rows: &mut Vec<Numbers>,
) -> Result<(), Trouble> {
    let mut once = Vec::new();
    add_numbers(family, part, depth + 1, &mut once)?;
    if let [row] = once[..] {
        add(rows, Numbers { count: row.count.saturating_mul(times), ..row });
        return Ok(());
    }
    let all = (once.len() as u64).saturating_mul(times).saturating_add(rows.len() as u64);
    if all > ROWS_MAX as u64 {
        let text = format!("a datatype of {all} rows of numbers is too much for external32");
        return Err(Trouble::new(Class::Conversion, text));
    }
    (0..times).for_each(|_| once.iter().for_each(|row| add(rows, *row)));
    Ok(())
}

fn add(rows: &mut Vec<Numbers>, row: Numbers) {
    match rows.last_mut() {
        _ if row.count == 0 || row.in_memory == 0 => {}
        Some(last) if last.datatype == row.datatype => last.count += row.count,
        _ => rows.push(row),
    }
}

/// How large MPI's own types are.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Sizes {
    InMemory,
    External,
}

/// Whether a datatype is one of MPI's own, which are never given back.
pub(crate) fn is_named(datatype: usize) -> bool {
    let combiner = envelope(datatype).and_then(|it| Family::here().combiner(it.combiner));
    combiner.is_none_or(str::is_empty)
}

fn made(family: &Family, datatype: usize, sizes: Sizes, depth: u32) -> Result<Datatype, Trouble> {
    let opaque = || Trouble::new(Class::Type, "MPI does not tell what the datatype is made of");
    let made_of = envelope(datatype).ok_or_else(opaque)?;
    let name = family.combiner(made_of.combiner).ok_or_else(opaque)?;
    let (lower, extent) = bounds(datatype).ok_or_else(opaque)?;
    let (lower, extent) = (lower as i64, extent as i64);
    if name.is_empty() && sizes == Sizes::External {
        let size = in_file(datatype)?;
        return basic(size, 0, size);
    }
    if name.is_empty() {
        return basic(size(datatype).ok_or_else(opaque)?, lower, extent);
    }
    if name == OPAQUE || depth == DEPTH_MAX {
        return Err(opaque());
    }
    let contents = contents(family, datatype, name, &made_of).ok_or_else(opaque)?;
    let parts: Result<Vec<Datatype>, Trouble> =
        contents.types.iter().map(|&part| made(family, part, sizes, depth + 1)).collect();
    give_back(family, &contents);
    let made = derived(family, name, &contents, &parts?)?;
    // MPI may pad what it makes, and knows best: in memory.
    Ok(if sizes == Sizes::External || (made.lower_bound(), made.extent()) == (lower, extent) {
        made
    } else {
        made.resized(lower, extent)?
    })
}

/// A type of MPI's own. Pairs of a number and an index are the only ones with bytes that are not theirs.
fn basic(size: i64, lower: i64, extent: i64) -> Result<Datatype, Trouble> {
    let bytes = |size: i64| Datatype::bytes(size.max(0) as u64);
    if (size, lower, extent) == (6, 0, 8) {
        // `MPI_SHORT_INT`: the index is aligned.
        let (short, int) = (bytes(2)?, bytes(4)?);
        return Ok(Datatype::structure(&[(1, 0, &short), (1, 4, &int)])?.resized(0, 8)?);
    }
    let made = bytes(size)?;
    Ok(if (lower, extent) == (0, size) { made } else { made.resized(lower, extent)? })
}

/// Integers of a type's contents, one after the other.
struct Integers<'a>(&'a [i64]);

impl Integers<'_> {
    fn next(&mut self) -> Result<i64, Trouble> {
        let (&first, rest) = self.0.split_first().ok_or_else(cut_short)?;
        self.0 = rest;
        Ok(first)
    }

    fn count(&mut self) -> Result<u64, Trouble> {
        u64::try_from(self.next()?).map_err(|_| cut_short())
    }

    fn list(&mut self, length: u64) -> Result<&[i64], Trouble> {
        let length = usize::try_from(length).map_err(|_| cut_short())?;
        let (list, rest) = self.0.split_at_checked(length).ok_or_else(cut_short)?;
        self.0 = rest;
        Ok(list)
    }

    fn counts(&mut self, length: u64) -> Result<Vec<u64>, Trouble> {
        let counts = self.list(length)?.iter().map(|&count| u64::try_from(count));
        counts.collect::<Result<_, _>>().map_err(|_| cut_short())
    }
}

fn cut_short() -> Trouble {
    Trouble::new(Class::Type, "the datatype's contents are not what its constructor takes")
}

/// A type of its constructor's arguments, in the order of `MPI_Type_get_contents`.
fn derived(
    family: &Family,
    name: &str,
    contents: &Contents,
    parts: &[Datatype],
) -> Result<Datatype, Trouble> {
    let mut integers = Integers(&contents.integers);
    let mut addresses = Integers(&contents.addresses);
    if name == "struct" {
        let count = integers.count()?;
        let lengths = integers.counts(count)?;
        let blocks = lengths.iter().zip(addresses.list(count)?).zip(parts);
        let blocks: Vec<_> = blocks.map(|((&length, &at), part)| (length, at, part)).collect();
        return Ok(Datatype::structure(&blocks)?);
    }
    let part = parts.first().ok_or_else(cut_short)?;
    Ok(match name {
        "dup" => part.dup(),
        "contiguous" => part.contiguous(integers.count()?)?,
        "vector" => part.vector(integers.count()?, integers.count()?, integers.next()?)?,
        "hvector" => part.hvector(integers.count()?, integers.count()?, addresses.next()?)?,
        "indexed" => {
            let count = integers.count()?;
            let lengths = integers.counts(count)?;
            part.indexed(&blocks(&lengths, integers.list(count)?))?
        }
        "hindexed" => {
            let count = integers.count()?;
            let lengths = integers.counts(count)?;
            part.hindexed(&blocks(&lengths, addresses.list(count)?))?
        }
        "indexed_block" => {
            let (count, length) = (integers.count()?, integers.count()?);
            part.indexed_block(length, integers.list(count)?)?
        }
        "hindexed_block" => {
            let (count, length) = (integers.count()?, integers.count()?);
            part.hindexed_block(length, addresses.list(count)?)?
        }
        "resized" => part.resized(addresses.next()?, addresses.next()?)?,
        "subarray" => {
            let dimensions = integers.count()?;
            let [sizes, subsizes, starts] = [
                integers.counts(dimensions)?,
                integers.counts(dimensions)?,
                integers.counts(dimensions)?,
            ];
            part.subarray(&sizes, &subsizes, &starts, order(family, integers.next()?))?
        }
        "darray" => darray(family, integers, part)?,
        _ => return Err(Trouble::new(Class::Type, format!("a datatype made by {name}"))),
    })
}

fn blocks(lengths: &[u64], places: &[i64]) -> Vec<(u64, i64)> {
    lengths.iter().copied().zip(places.iter().copied()).collect()
}

fn order(family: &Family, number: i64) -> Order {
    if number == i64::from(family.order_c) { Order::C } else { Order::Fortran }
}

fn darray(
    family: &Family,
    mut integers: Integers<'_>,
    part: &Datatype,
) -> Result<Datatype, Trouble> {
    let (_ranks, rank, dimensions) = (integers.next()?, integers.count()?, integers.count()?);
    let sizes = integers.counts(dimensions)?;
    let dealt = integers.list(dimensions)?.to_vec();
    let arguments = integers.list(dimensions)?.to_vec();
    let grid = integers.counts(dimensions)?;
    let order = order(family, integers.next()?);
    let distributions: Vec<Distribution> =
        dealt.iter().zip(arguments).map(|(&how, given)| distribution(family, how, given)).collect();
    Ok(part.darray(rank, &sizes, &distributions, &grid, order)?)
}

fn distribution(family: &Family, how: i64, argument: i64) -> Distribution {
    let given = u64::try_from(argument).ok();
    let given = given.filter(|_| argument != i64::from(family.default_argument));
    match how {
        block if block == i64::from(family.distribute_block) => Distribution::Block(given),
        cyclic if cyclic == i64::from(family.distribute_cyclic) => {
            Distribution::Cyclic(given.unwrap_or(1))
        }
        _ => Distribution::None,
    }
}

/// The key of our attribute of datatypes, if MPI gives one.
fn key() -> Option<usize> {
    static KEY: OnceLock<Option<i32>> = OnceLock::new();
    let key = KEY.get_or_init(|| {
        let mut key = 0i32;
        let (copied, deleted) = (not_copied as *const () as usize, deleted as *const () as usize);
        // SAFETY: functions of the types that MPI has for them, and room for the key.
        let answer =
            unsafe { profiling::type_create_keyval(copied, deleted, &raw mut key as usize, 0) };
        (answer == 0).then_some(key)
    });
    key.map(|key| key as usize)
}

/// A duplicate of a datatype begins without.
unsafe extern "C" fn not_copied(
    _datatype: usize,
    _key: i32,
    _extra: usize,
    _value: usize,
    _copy: usize,
    flag: *mut i32,
) -> i32 {
    // SAFETY: MPI's room for the answer.
    unsafe { *flag = 0 };
    0
}

unsafe extern "C" fn deleted(_datatype: usize, _key: i32, value: usize, _extra: usize) -> i32 {
    // SAFETY: a value of ours, which nobody will ask for again.
    drop(unsafe { Arc::from_raw(value as *const Datatype) });
    0
}

fn kept(datatype: usize) -> Option<Arc<Datatype>> {
    let (mut value, mut is_there) = (0usize, 0i32);
    let (value_at, flag_at) = (&raw mut value as usize, &raw mut is_there as usize);
    // SAFETY: a valid datatype and key, and room for both answers.
    let answer = unsafe { profiling::type_get_attr(datatype, key()?, value_at, flag_at) };
    if answer != 0 || is_there == 0 || value == 0 {
        return None;
    }
    let kept = value as *const Datatype;
    // SAFETY: a value of ours, of which the attribute keeps its own reference.
    unsafe {
        Arc::increment_strong_count(kept);
        Some(Arc::from_raw(kept))
    }
}

fn keep(datatype: usize, made: &Arc<Datatype>) {
    let Some(key) = key() else { return };
    let value = Arc::into_raw(made.clone());
    // SAFETY: a valid datatype and key; the value is given back by `deleted`.
    unsafe {
        if profiling::type_set_attr(datatype, key, value as usize) != 0 {
            drop(Arc::from_raw(value));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn derived_of(name: &str, integers: &[i64], addresses: &[i64], parts: &[i64]) -> Datatype {
        let contents = Contents {
            integers: integers.to_vec(),
            addresses: addresses.to_vec(),
            types: Vec::new(),
        };
        let parts: Vec<_> = parts.iter().map(|&size| basic(size, 0, size).unwrap()).collect();
        derived(Family::here(), name, &contents, &parts).unwrap()
    }

    fn view(datatype: &Datatype) -> String {
        datatype.view(0).unwrap().to_string()
    }

    #[test]
    fn every_constructor_is_made_again_of_what_mpi_tells() {
        assert_eq!(view(&derived_of("vector", &[4, 1, 3], &[], &[4])), "4 x4/12 every 40");
        assert_eq!(view(&derived_of("hvector", &[2, 1], &[30], &[4])), "4 x2/30 every 34");
        let indexed = derived_of("indexed", &[2, 1, 2, 0, 5], &[], &[1]);
        assert_eq!(view(&indexed), "[0: 1, 5: 2] every 7");
        let hindexed = derived_of("hindexed", &[2, 1, 2], &[0, 10], &[1]);
        assert_eq!(view(&hindexed), "[0: 1, 10: 2] every 12");
        assert_eq!(
            view(&derived_of("indexed_block", &[3, 2, 0, 4, 8], &[], &[1])),
            "2 x3/4 every 10"
        );
        let arrays = derived_of("subarray", &[2, 8, 8, 4, 4, 0, 4, 56], &[], &[1]);
        assert_eq!(arrays.view(0).unwrap().to_string(), "4 x4/8 every 64 from 4");
        let dealt = [4, 1, 2, 4, 4, 121, 122, -49767, 1, 2, 2, 56];
        let share = derived_of("darray", &dealt, &[], &[1]);
        assert_eq!(share.view(0).unwrap().to_string(), "1 x4/2 every 16 from 1");
        let record = derived_of("struct", &[2, 1, 3], &[0, 8], &[8, 4]);
        assert_eq!(view(&record), "20 every 20");
    }

    #[test]
    fn the_index_of_a_pair_is_where_the_compiler_puts_it() {
        assert_eq!(view(&basic(6, 0, 8).unwrap()), "[0: 2, 4: 4] every 8");
        assert_eq!(view(&basic(12, 0, 16).unwrap()), "12 every 16");
    }

    #[test]
    fn what_mpich_ends_the_program_over_is_known_before_it_is_asked() {
        let ends = |kind| move |handle: &usize| ends_the_program(kind, *handle);
        // `MPI_WCHAR`, `MPI_2INT`, `MPI_2INTEGER`, `MPI_2REAL`, `MPI_2DOUBLE_PRECISION`, `MPI_DOUBLE_INT`.
        let deadly = [0x4c00_040e, 0x4c00_0816, 0x4c00_0820, 0x4c00_0821, 0x4c00_1023, 0x8c00_0001];
        assert!(deadly.iter().all(ends(Kind::Mpich)) && !deadly.iter().any(ends(Kind::OpenMpi)));
        // `MPI_INT`, `MPI_LONG_DOUBLE`, `MPI_LOGICAL`, `MPI_COMPLEX32`, `MPI_C_COMPLEX`.
        let converted = [0x4c00_0405, 0x4c00_100c, 0x4c00_041d, 0x4c00_202c, 0x4c00_0840];
        assert!(!converted.iter().any(ends(Kind::Mpich)));
    }

    #[test]
    fn marks_of_bounds_are_no_numbers() {
        let row = |datatype, in_memory| Numbers {
            datatype,
            count: 1,
            in_memory,
            extent: in_memory,
            in_file: in_memory,
        };
        let mut rows = Vec::new();
        [row(1, 0), row(7, 4), row(2, 0), row(7, 4)]
            .into_iter()
            .for_each(|row| add(&mut rows, row));
        assert_eq!(rows, [Numbers { count: 2, ..row(7, 4) }]);
    }

    #[test]
    fn contents_that_are_cut_short_are_an_error() {
        let contents = Contents { integers: vec![9, 1], addresses: Vec::new(), types: Vec::new() };
        let byte = basic(1, 0, 1).unwrap();
        let made = derived(Family::here(), "vector", &contents, &[byte]);
        assert_eq!(made.unwrap_err().class, Class::Type);
    }
}
