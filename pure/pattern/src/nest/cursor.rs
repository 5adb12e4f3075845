//! Intersection: the common bytes of two nests, stored where that is short, else walked.
//!
//! The cursor asks both nests in turn for the first run at or behind an offset, so it jumps over
//! what only one of them has.
//!
//! Promises: the common runs inside a range of the file, ascending, each as long as both runs it is
//! in allow. A cursor ends: two tiles that do not meet within one common period never do.
//!
//! Costs: one step is O(D log f), without allocation. There is a step per common run, and one per
//! alternation of the two nests between common runs.

use super::Nest;
use super::intersect::{closed, least_common_multiple};
use super::node::LARGEST;
use iolab_vocab::{Extent, Refusal};

/// The common bytes of two nests.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Intersection {
    /// As a nest of at most [`crate::nest::CLOSED_NODES`] nodes.
    Closed(Nest),
    /// As the two, to be walked.
    Walked(Nest, Nest),
}

impl Nest {
    /// The bytes that both nests have. Both have to be proper.
    ///
    /// ```
    /// use iolab_pattern::{Intersection, Nest};
    /// let view: Nest = "2 x8/4 x4/64 every 256".parse()?;
    /// let stripe: Nest = "32 every 64".parse()?;
    /// let common = "2 x8/4 x4/64 every 256".parse()?;
    /// assert_eq!(view.intersect(&stripe)?, Intersection::Closed(common));
    /// # Ok::<(), iolab_vocab::Refusal>(())
    /// ```
    pub fn intersect(&self, other: &Nest) -> Result<Intersection, Refusal> {
        self.check_proper()?;
        other.check_proper()?;
        Ok(match closed(self, other) {
            Some(nest) => Intersection::Closed(nest),
            None => Intersection::Walked(self.clone(), other.clone()),
        })
    }

    /// The first run, or rest of one, at or behind `x`, in a proper nest.
    fn run_from(&self, x: u64) -> Option<Extent> {
        let (offset, length) = self.run_at(self.rank(x)?)?;
        Some(Extent::new(offset, length))
    }
}

impl Intersection {
    /// The common runs inside a range of the file, ascending. The range bounds the time as well: two
    /// sets that alternate without meeting are walked to its end.
    pub fn runs(&self, within: Extent) -> CommonRuns<'_> {
        let (one, other) = match self {
            Intersection::Closed(nest) => (nest, nest),
            Intersection::Walked(one, other) => (one, other),
        };
        CommonRuns { one, other, at: within.offset, end: within.end(), met: None }
    }
}

/// See [`Intersection::runs`].
pub struct CommonRuns<'a> {
    one: &'a Nest,
    other: &'a Nest,
    at: u64,
    end: u64,
    /// From where on nothing common was found.
    met: Option<u64>,
}

impl CommonRuns<'_> {
    /// Where to stop looking if nothing common was found from `start` on: where everything comes
    /// again because both tile.
    fn horizon(&self, start: u64) -> u64 {
        if self.one.extent == 0 || self.other.extent == 0 {
            return LARGEST;
        }
        let begin = start.max(self.one.displacement).max(self.other.displacement);
        let period = least_common_multiple(self.one.extent, self.other.extent);
        begin.saturating_add(period.unwrap_or(LARGEST))
    }
}

impl Iterator for CommonRuns<'_> {
    type Item = Extent;

    fn next(&mut self) -> Option<Extent> {
        let start = *self.met.get_or_insert(self.at);
        let end = self.end.min(self.horizon(start));
        while self.at < end {
            let (one, other) = (self.one.run_from(self.at)?, self.other.run_from(self.at)?);
            let common = one.intersection(other);
            self.at = one.offset.max(other.offset);
            if !common.is_empty() {
                let common = common.intersection(Extent::new(0, self.end));
                self.at = common.end();
                self.met = Some(self.at);
                return (!common.is_empty()).then_some(common);
            }
        }
        None
    }
}
