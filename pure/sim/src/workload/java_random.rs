//! The generator of the Java library, a 48-bit linear congruential one, and its shuffle.
//!
//! The published evaluation drew its random benchmarks from it, so its very sequence is needed
//! (java.util.Random and java.util.Collections as documented by their specification).

/// A generator with Java's sequence.
#[derive(Clone, Debug)]
pub struct JavaRandom {
    state: u64,
}

const MULTIPLIER: u64 = 0x5_DEEC_E66D;
const MASK: u64 = (1 << 48) - 1;

impl JavaRandom {
    /// The sequence that belongs to `seed`.
    pub fn new(seed: u64) -> JavaRandom {
        JavaRandom { state: (seed ^ MULTIPLIER) & MASK }
    }

    fn bits(&mut self, count: u32) -> i32 {
        self.state = self.state.wrapping_mul(MULTIPLIER).wrapping_add(11) & MASK;
        (self.state >> (48 - count)) as i32
    }

    /// A number in `[0, limit)`; `limit` must be above 0.
    pub fn below(&mut self, limit: i32) -> i32 {
        assert!(limit > 0, "a random number below {limit} does not exist");
        let mut bits = self.bits(31);
        if limit & (limit - 1) == 0 {
            return ((i64::from(limit) * i64::from(bits)) >> 31) as i32;
        }
        while bits.wrapping_sub(bits % limit).wrapping_add(limit - 1) < 0 {
            bits = self.bits(31);
        }
        bits % limit
    }

    /// A whole number of 64 bits.
    pub fn long(&mut self) -> i64 {
        let high = i64::from(self.bits(32)) << 32;
        high.wrapping_add(i64::from(self.bits(32)))
    }

    /// True or false.
    pub fn bit(&mut self) -> bool {
        self.bits(1) != 0
    }

    /// Shuffles from the last index down, swapping with one below or itself.
    pub fn shuffle<T>(&mut self, list: &mut [T]) {
        for index in (1..list.len()).rev() {
            list.swap(index, self.below(index as i32 + 1) as usize);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sequence_is_that_of_the_java_library() {
        // First values of new java.util.Random(42), as its specification gives them.
        let mut random = JavaRandom::new(42);
        assert_eq!(random.below(10), 0);
        assert_eq!(random.below(100), 63);
        // `nextInt()` of 42 begins with -1170105035, whose upper bits are those of small powers of two.
        for (limit, first) in [(2, 1), (16, 11), (1024, 745), (1 << 30, 781_215_565)] {
            assert_eq!(JavaRandom::new(42).below(limit), first, "below {limit}");
        }
        let mut random = JavaRandom::new(0);
        assert_eq!(random.long(), -4_962_768_465_676_381_896);
    }
}
