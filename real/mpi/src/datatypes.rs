//! Datatypes as texts: what `MPI_Type_get_envelope` and `MPI_Type_get_contents` tell of them, in the
//! grammar of `iolab_trace::datatype`. What the numbers mean is for the reader to find out.

use crate::family::{Family, OPAQUE};
use crate::profiling::{
    has_large_counts, large_type_contents, large_type_envelope, type_contents, type_envelope,
    type_extent, type_free, type_size,
};
use std::fmt::Write;

/// Numbers in a text; a type with more is only told by its size and extent.
const NUMBERS_MAX: usize = 1 << 16;
/// Types made of types.
const DEPTH_MAX: u32 = 32;

/// Bytes of a datatype, if MPI tells. A call with it has just succeeded.
pub(crate) fn size(datatype: usize) -> Option<i64> {
    let mut size = -1i64;
    // SAFETY: a valid handle, and room for the answer.
    let answer = unsafe { type_size(datatype, &raw mut size as usize) };
    (answer == 0 && size >= 0).then_some(size)
}

/// Bytes of `count` elements. Of none, nobody looks at the datatype, which may be null then.
pub(crate) fn bytes(count: i64, datatype: usize) -> Option<i64> {
    match count {
        0 => Some(0),
        _ => size(datatype)?.checked_mul(count),
    }
}

/// The text of a datatype. A call with it has just succeeded.
pub(crate) fn text(family: &Family, datatype: usize) -> String {
    let mut writer = Writer { family, text: String::new(), room: NUMBERS_MAX };
    match writer.write(datatype, 0) {
        Some(()) => writer.text,
        None => opaque(datatype),
    }
}

/// Lower bound and extent of a datatype in bytes.
pub(crate) fn bounds(datatype: usize) -> Option<(isize, isize)> {
    let (mut lower, mut extent) = (0isize, 0isize);
    let (lower_at, extent_at) = (&raw mut lower as usize, &raw mut extent as usize);
    // SAFETY: a valid handle, and room for both answers.
    let answer = unsafe { type_extent(datatype, lower_at, extent_at) };
    (answer == 0).then_some((lower, extent))
}

/// The text of a basic type. Pairs of a number and an index (`MPI_DOUBLE_INT`) are the only ones with
/// bytes between or behind their own.
fn basic(size: i64, (lower, extent): (isize, isize)) -> String {
    match (size, lower, extent as i64) {
        // `MPI_SHORT_INT`: the index is aligned.
        (6, 0, 8) => "resized(;0,8;struct(2,1,1;0,4;2,4))".to_owned(),
        (_, 0, extent) if extent == size => size.to_string(),
        _ => format!("resized(;{lower},{extent};{size})"),
    }
}

/// Whether MPI may pad the extent so that the next element is aligned.
fn is_padded(name: &str) -> bool {
    matches!(name, "struct" | "hvector" | "hindexed" | "hindexed_block")
}

fn opaque(datatype: usize) -> String {
    let (lower, extent) = bounds(datatype).unwrap_or_default();
    format!("{OPAQUE}(;{},{lower},{extent};)", size(datatype).unwrap_or(0))
}

struct Writer<'a> {
    family: &'a Family,
    text: String,
    room: usize,
}

/// How a type was made.
pub(crate) struct Envelope {
    pub(crate) integers: usize,
    addresses: usize,
    large_counts: usize,
    types: usize,
    pub(crate) combiner: i32,
}

/// Of what it was made, as without large counts.
pub(crate) struct Contents {
    pub(crate) integers: Vec<i64>,
    pub(crate) addresses: Vec<i64>,
    pub(crate) types: Vec<usize>,
}

pub(crate) fn envelope(datatype: usize) -> Option<Envelope> {
    let (mut counts, mut combiner) = ([0i64; 4], 0i32);
    let [integers, addresses, large_counts, types] =
        [0, 1, 2, 3].map(|at| &raw mut counts[at] as usize);
    let combiner_at = &raw mut combiner as usize;
    // SAFETY: a valid handle, and room for each answer, as wide as the function has it.
    let answer = unsafe {
        match has_large_counts() {
            true => {
                large_type_envelope(datatype, integers, addresses, large_counts, types, combiner_at)
            }
            // Fills the lower half of each, which is all of it for numbers that are not negative.
            false => type_envelope(datatype, integers, addresses, types, combiner_at),
        }
    };
    let count = |at: usize| usize::try_from(counts[at]).ok();
    (answer == 0).then_some(())?;
    Some(Envelope {
        integers: count(0)?,
        addresses: count(1)?,
        large_counts: count(2)?,
        types: count(3)?,
        combiner,
    })
}

/// The contents of a type that has such an envelope and is not a basic one.
pub(crate) fn contents(
    family: &Family,
    datatype: usize,
    name: &str,
    has: &Envelope,
) -> Option<Contents> {
    let mut integers = vec![0i32; has.integers.max(1)];
    let mut addresses = vec![0i64; has.addresses.max(1)];
    let mut large_counts = vec![0i64; has.large_counts.max(1)];
    let mut types = vec![0u64; has.types.max(1)];
    let to = [
        integers.as_mut_ptr() as usize,
        addresses.as_mut_ptr() as usize,
        large_counts.as_mut_ptr() as usize,
        types.as_mut_ptr() as usize,
    ];
    // SAFETY: a valid handle of a derived type, and as much room as its envelope asks for; handles
    // are at most as wide as a word.
    let answer = unsafe {
        match has_large_counts() {
            true => large_type_contents(
                datatype,
                has.integers,
                has.addresses,
                has.large_counts,
                has.types,
                to[0],
                to[1],
                to[2],
                to[3],
            ),
            false => {
                type_contents(datatype, has.integers, has.addresses, has.types, to[0], to[1], to[3])
            }
        }
    };
    // SAFETY: MPI has just filled the array.
    let types = (0..has.types).map(|at| unsafe { family.handle_in(to[3], at) }).collect();
    integers.truncate(has.integers);
    addresses.truncate(has.addresses);
    large_counts.truncate(has.large_counts);
    let integers = integers.into_iter().map(i64::from).collect();
    (answer == 0).then_some(())?;
    usual(name, integers, addresses, large_counts, types)
}

/// Contents without large counts: these stand where the same type made with usual counts has integers
/// or addresses.
fn usual(
    name: &str,
    integers: Vec<i64>,
    addresses: Vec<i64>,
    large_counts: Vec<i64>,
    types: Vec<usize>,
) -> Option<Contents> {
    if large_counts.is_empty() {
        return Some(Contents { integers, addresses, types });
    }
    let split = match name {
        "hvector" | "hindexed_block" => 2,
        "hindexed" | "struct" => usize::try_from(*large_counts.first()?).ok()?.checked_add(1)?,
        "resized" => 0,
        _ => large_counts.len(),
    };
    let (counts, places) = large_counts.split_at_checked(split)?;
    // Those of arrays stand within the integers.
    let before = match name {
        "subarray" => 1,
        "darray" => 3,
        _ => 0,
    };
    let (first, last) = integers.split_at_checked(before)?;
    let integers = [first, counts, last].concat();
    let addresses = if places.is_empty() { addresses } else { places.to_vec() };
    Some(Contents { integers, addresses, types })
}

impl Writer<'_> {
    /// None if there is more than fits, or MPI does not tell.
    fn write(&mut self, datatype: usize, depth: u32) -> Option<()> {
        let envelope = envelope(datatype)?;
        let name = self.family.combiner(envelope.combiner)?;
        if name.is_empty() {
            return write!(self.text, "{}", basic(size(datatype)?, bounds(datatype)?)).ok();
        }
        let numbers = envelope.integers + envelope.addresses + envelope.large_counts;
        self.room = self.room.checked_sub(numbers + envelope.types)?;
        if name == OPAQUE || depth == DEPTH_MAX {
            return None;
        }
        let contents = contents(self.family, datatype, name, &envelope)?;
        let written = match is_padded(name) {
            false => self.derived(name, &contents, depth),
            true => self.with_bounds(datatype, name, &contents, depth),
        };
        give_back(self.family, &contents);
        written
    }

    /// A type whose extent has padding behind it that only this MPI knows.
    fn with_bounds(
        &mut self,
        datatype: usize,
        name: &str,
        contents: &Contents,
        depth: u32,
    ) -> Option<()> {
        let (lower, extent) = bounds(datatype)?;
        write!(self.text, "resized(;{lower},{extent};").ok()?;
        self.derived(name, contents, depth)?;
        self.text.push(')');
        Some(())
    }

    fn derived(&mut self, name: &str, contents: &Contents, depth: u32) -> Option<()> {
        write!(self.text, "{name}(").ok()?;
        for (at, &number) in contents.integers.iter().enumerate() {
            let comma = if at > 0 { "," } else { "" };
            write!(self.text, "{comma}{}", self.normal(name, &contents.integers, at, number))
                .ok()?;
        }
        self.text.push(';');
        for (at, address) in contents.addresses.iter().enumerate() {
            let comma = if at > 0 { "," } else { "" };
            write!(self.text, "{comma}{address}").ok()?;
        }
        self.text.push(';');
        for (at, &datatype) in contents.types.iter().enumerate() {
            if at > 0 {
                self.text.push(',');
            }
            self.write(datatype, depth + 1)?;
        }
        self.text.push(')');
        Some(())
    }

    /// An integer of a type, without what differs between families.
    fn normal(&self, name: &str, integers: &[i64], at: usize, number: i64) -> i64 {
        let is_last = at + 1 == integers.len();
        let family = self.family;
        if matches!(name, "subarray" | "darray") && is_last {
            return i64::from(number != i64::from(family.order_c));
        }
        if name != "darray" {
            return number;
        }
        let dimensions = integers.get(2).map_or(0, |&count| count.max(0) as usize);
        match at.checked_sub(3).map(|at| at / dimensions.max(1)) {
            Some(1) if number == i64::from(family.distribute_block) => 0,
            Some(1) if number == i64::from(family.distribute_cyclic) => 1,
            Some(1) => 2,
            Some(2) if number == i64::from(family.default_argument) => -1,
            _ => number,
        }
    }
}

/// Types that were told are references, but for basic ones.
pub(crate) fn give_back(family: &Family, contents: &Contents) {
    for &datatype in &contents.types {
        let name = envelope(datatype).and_then(|it| family.combiner(it.combiner));
        if name.is_some_and(|name| !name.is_empty()) {
            let mut handle = datatype;
            // SAFETY: a reference that is ours.
            unsafe { type_free(&raw mut handle as usize) };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn large_counts_stand_where_usual_ones_do_and_pairs_have_their_holes() {
        let of = |name: &str, integers: &[i64], large: &[i64]| {
            let made = usual(name, integers.to_vec(), Vec::new(), large.to_vec(), vec![1]).unwrap();
            (made.integers, made.addresses)
        };
        assert_eq!(of("vector", &[], &[4, 1, 3]), (vec![4, 1, 3], vec![]));
        assert_eq!(of("hvector", &[], &[4, 1, 30]), (vec![4, 1], vec![30]));
        assert_eq!(of("hindexed", &[], &[2, 5, 6, 10, 20]), (vec![2, 5, 6], vec![10, 20]));
        assert_eq!(of("hindexed_block", &[], &[2, 5, 10, 20]), (vec![2, 5], vec![10, 20]));
        assert_eq!(of("resized", &[], &[0, 64]), (vec![], vec![0, 64]));
        assert_eq!(basic(8, (0, 8)), "8");
        assert_eq!(basic(12, (0, 16)), "resized(;0,16;12)");
        let array = of("subarray", &[2, 56], &[8, 8, 4, 4, 0, 4]);
        assert_eq!(array, (vec![2, 8, 8, 4, 4, 0, 4, 56], vec![]));
        let shared = of("darray", &[4, 1, 2, 121, 121, -49767, -49767, 2, 2, 56], &[9, 7]);
        assert_eq!(shared.0, [4, 1, 2, 9, 7, 121, 121, -49767, -49767, 2, 2, 56]);
        assert!(usual("struct", vec![], vec![], vec![9, 1], vec![]).is_none(), "cut short");
    }
}
