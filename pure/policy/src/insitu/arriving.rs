//! Bytes on their way from storage that somebody has asked for ahead of time: when each is there.

use iolab_vocab::{Extent, Nanos};

/// A range that comes at an even rate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Arriving {
    /// Which range.
    pub extent: Extent,
    /// When its first byte is under way.
    pub begins: Nanos,
    /// When its last byte is there.
    pub ends: Nanos,
}

impl Arriving {
    /// When all of it before `end` is there, which lies in it.
    pub fn until(&self, end: u64) -> Nanos {
        let bytes = u128::from(end - self.extent.offset);
        let whole_ns = u128::from(self.ends.since(self.begins).get());
        let part_ns = (whole_ns * bytes).div_ceil(u128::from(self.extent.length.max(1)));
        self.begins.after(Nanos(part_ns as u64))
    }

    /// What is left of it without `extent`.
    pub fn without(self, extent: Extent) -> impl Iterator<Item = Arriving> {
        self.extent.without(extent).map(move |rest| Arriving {
            extent: rest,
            begins: self.until(rest.offset),
            ends: self.until(rest.end()),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_come_one_after_another_and_taking_some_away_changes_no_others() {
        let all = Arriving { extent: Extent::new(100, 50), begins: Nanos(7), ends: Nanos(107) };
        assert_eq!(
            (all.until(100), all.until(125), all.until(150)),
            (Nanos(7), Nanos(57), Nanos(107))
        );
        let rest: Vec<Arriving> = all.without(Extent::new(110, 10)).collect();
        assert_eq!(rest.len(), 2);
        assert_eq!(rest[1].extent, Extent::new(120, 30));
        for end in [121, 133, 150] {
            assert_eq!(rest[1].until(end), all.until(end));
        }
    }
}
