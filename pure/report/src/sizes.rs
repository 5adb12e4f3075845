//! Request sizes by powers of two.

use serde::Serialize;

/// Buckets: 0, 1, 2-3, 4-7, … up to 2^30 and more.
const BUCKETS: usize = 32;

/// How many requests there were of which size, in powers of two.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sizes {
    counts: [u64; BUCKETS],
}

impl Default for Sizes {
    fn default() -> Sizes {
        Sizes { counts: [0; BUCKETS] }
    }
}

/// One bar of the histogram: requests of `from` up to but not including `below` bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct SizeRange {
    /// Smallest size counted.
    pub from: u64,
    /// Smallest size not counted; none for the last, open range.
    pub below: Option<u64>,
    /// How many.
    pub count: u64,
}

impl Sizes {
    pub(crate) fn add(&mut self, bytes: u64) {
        let bucket = (u64::BITS - bytes.leading_zeros()) as usize;
        self.counts[bucket.min(BUCKETS - 1)] += 1;
    }

    /// The ranges that are not empty, smallest first.
    pub fn ranges(&self) -> Vec<SizeRange> {
        let range = |(bucket, &count): (usize, &u64)| SizeRange {
            from: if bucket == 0 { 0 } else { 1 << (bucket - 1) },
            below: (bucket + 1 < BUCKETS).then(|| 1 << bucket),
            count,
        };
        self.counts.iter().enumerate().filter(|(_, count)| **count > 0).map(range).collect()
    }
}

impl Serialize for Sizes {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.ranges().serialize(serializer)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_size_falls_into_the_range_that_contains_it() {
        for size in [0, 1, 2, 3, 4, 4095, 4096, u64::MAX] {
            let mut sizes = Sizes::default();
            sizes.add(size);
            let [range] = sizes.ranges()[..] else { panic!("one size, one range") };
            assert!(range.from <= size && range.below.is_none_or(|below| size < below));
        }
    }
}
