//! The nouns and units every part of iolab speaks: time, bytes, places in files, who did it.
//!
//! Each is a newtype where two of the kind are easily swapped by mistake. Arithmetic that could
//! leave the range of a type says so (`saturating`, `checked`); nothing here allocates but texts.

mod duration;
mod printable;
mod refusal;
mod size;
pub mod varint;

pub use duration::parse_seconds;
pub use printable::printable;
pub use refusal::Refusal;
pub use size::{SizeError, format_bytes, parse_bytes};

use std::fmt;

macro_rules! number {
    ($(#[$doc:meta])* $name:ident($inner:ty)) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(pub $inner);

        impl $name {
            /// The bare number, in the unit the type is named for.
            pub const fn get(self) -> $inner {
                self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.fmt(f)
            }
        }
    };
}

number!(
    /// A point in time or a duration, in whole nanoseconds.
    Nanos(u64)
);
number!(
    /// A number of bytes.
    Bytes(u64)
);
number!(
    /// A byte position in a file.
    Offset(u64)
);
number!(
    /// A process of a parallel program, counted from 0 as MPI does.
    Rank(u32)
);
number!(
    /// A file, as an index into the file table of a trace or a run.
    FileId(u32)
);
number!(
    /// What makes a random choice repeatable: the same seed and commit give the same run.
    Seed(u64)
);

impl Nanos {
    /// Time zero, and the duration of nothing.
    pub const ZERO: Nanos = Nanos(0);

    /// This much later; stays at the end of time instead of wrapping.
    pub const fn after(self, duration: Nanos) -> Nanos {
        Nanos(self.0.saturating_add(duration.0))
    }

    /// How long from `earlier` to `self`; zero when `earlier` is the later one.
    pub const fn since(self, earlier: Nanos) -> Nanos {
        Nanos(self.0.saturating_sub(earlier.0))
    }

    /// In seconds, for printing and for division.
    pub fn seconds(self) -> f64 {
        self.0 as f64 / 1e9
    }
}

impl FileId {
    /// No file: the call was not about one, or it could not be told.
    pub const NONE: FileId = FileId(u32::MAX);

    /// As an index into a file table, if it is a file at all.
    pub fn index(self) -> Option<usize> {
        (self != FileId::NONE).then_some(self.0 as usize)
    }
}

/// Which way bytes go between a program and storage.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Direction {
    /// From storage.
    Read,
    /// To storage.
    Write,
}

/// A contiguous range of bytes of a file: `[offset, offset + length)`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Extent {
    /// First byte.
    pub offset: u64,
    /// How many bytes; an empty extent touches nothing.
    pub length: u64,
}

impl Extent {
    /// The extent of `length` bytes that starts at `offset`.
    pub const fn new(offset: u64, length: u64) -> Extent {
        Extent { offset, length }
    }

    /// The byte after the last one, saturating at the end of the address range.
    pub const fn end(self) -> u64 {
        self.offset.saturating_add(self.length)
    }

    /// Whether no byte is in it.
    pub const fn is_empty(self) -> bool {
        self.length == 0
    }

    /// Whether the two have a byte in common.
    pub fn overlaps(self, other: Extent) -> bool {
        !self.intersection(other).is_empty()
    }

    /// Whether every byte of `other` is in `self`.
    pub const fn contains(self, other: Extent) -> bool {
        self.offset <= other.offset && other.end() <= self.end()
    }

    /// The bytes both have, empty when there are none.
    pub fn intersection(self, other: Extent) -> Extent {
        let offset = self.offset.max(other.offset);
        let end = self.end().min(other.end());
        Extent::new(offset, end.saturating_sub(offset))
    }

    /// The bytes of `self` that are not in `other`: those before it and those behind it.
    pub fn without(self, other: Extent) -> impl Iterator<Item = Extent> {
        let until = other.offset.clamp(self.offset, self.end());
        let from = other.end().clamp(until, self.end());
        let before = Extent::new(self.offset, until - self.offset);
        let behind = Extent::new(from, self.end() - from);
        [before, behind].into_iter().filter(|part| !part.is_empty())
    }
}

impl fmt::Display for Extent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "[{}, {})", self.offset, self.end())
    }
}

/// A small, seedable generator (SplitMix64, Steele et al. 2014): same seed, same sequence,
/// on every machine and in every version of iolab.
#[derive(Clone, Debug)]
pub struct Random {
    state: u64,
}

impl Random {
    /// The sequence that belongs to `seed`.
    pub const fn new(seed: Seed) -> Random {
        Random { state: seed.0 }
    }

    /// The next 64 random bits.
    pub fn bits(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.state;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    /// A number in `[0, limit)`; `limit` must not be 0. The bias is below `limit / 2^64`.
    pub fn below(&mut self, limit: u64) -> u64 {
        assert!(limit > 0, "a random number below 0 does not exist");
        ((u128::from(self.bits()) * u128::from(limit)) >> 64) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes(extent: Extent) -> Vec<u64> {
        (extent.offset..extent.end()).collect()
    }

    #[test]
    fn extents_are_sets_of_bytes() {
        let all =
            || (0..7).flat_map(|offset| (0..5).map(move |length| Extent::new(offset, length)));
        for (one, other) in all().flat_map(|one| all().map(move |other| (one, other))) {
            let (own, others) = (bytes(one), bytes(other));
            let (common, rest): (Vec<u64>, Vec<u64>) =
                own.iter().partition(|at| others.contains(at));
            assert_eq!(bytes(one.intersection(other)), common, "{one} and {other}");
            assert_eq!(one.overlaps(other), !common.is_empty(), "{one} and {other}");
            assert_eq!(one.without(other).flat_map(bytes).collect::<Vec<_>>(), rest);
            if !other.is_empty() {
                let holds = others.iter().all(|at| own.contains(at));
                assert_eq!(one.contains(other), holds, "{other} in {one}");
            }
        }
        assert_eq!(Extent::new(3, 4).to_string(), "[3, 7)");
    }

    #[test]
    fn no_file_has_no_index() {
        assert_eq!(FileId::NONE.index(), None);
        assert_eq!((FileId(0).index(), FileId(7).index()), (Some(0), Some(7)));
    }

    #[test]
    fn seconds_are_a_thousand_million_nanoseconds() {
        assert_eq!(Nanos(2_500_000_000).seconds(), 2.5);
    }

    #[test]
    fn the_random_sequence_of_a_seed_never_changes() {
        let mut random = Random::new(Seed(42));
        // First values of SplitMix64 for seed 42, as every implementation of it gives them.
        assert_eq!(random.bits(), 13_679_457_532_755_275_413);
        assert_eq!(random.bits(), 2_949_826_092_126_892_291);
    }

    #[test]
    fn every_number_below_a_limit_is_as_likely() {
        let mut random = Random::new(Seed(1));
        let mut counts = [0_u32; 7];
        (0..70_000).for_each(|_| counts[random.below(7) as usize] += 1);
        assert!(counts.iter().all(|count| (9_600..10_400).contains(count)), "{counts:?}");
    }

    #[test]
    fn time_saturates_instead_of_wrapping() {
        assert_eq!(Nanos(5).since(Nanos(9)), Nanos::ZERO);
        assert_eq!(Nanos(u64::MAX).after(Nanos(1)), Nanos(u64::MAX));
    }
}
