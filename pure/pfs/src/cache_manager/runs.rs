//! Which bytes of a block are there: runs that neither overlap nor touch, ascending.
//!
//! Costs: O(runs) to add some or to ask; 8 bytes each.

/// A row of bytes, `[from, to)`.
pub(super) type Run = (u32, u32);

/// See the module.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Runs(Vec<Run>);

impl Runs {
    /// The one run of so many bytes from 0 on.
    pub(super) fn whole(bytes: u32) -> Runs {
        Runs(vec![(0, bytes)])
    }

    pub(super) fn count(&self) -> usize {
        self.0.len()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Adds runs, which ascend.
    pub(super) fn add(&mut self, more: impl IntoIterator<Item = Run>) {
        let mut old = std::mem::take(&mut self.0).into_iter().peekable();
        let mut new = more.into_iter().peekable();
        loop {
            let is_old = match (old.peek(), new.peek()) {
                (Some(old), Some(new)) => old.0 <= new.0,
                (old, new) if old.is_none() && new.is_none() => return,
                (old, _) => old.is_some(),
            };
            let next = if is_old { old.next() } else { new.next() };
            match (self.0.last_mut(), next) {
                (Some(last), Some((from, to))) if from <= last.1 => last.1 = last.1.max(to),
                (_, next) => self.0.extend(next.filter(|(from, to)| from < to)),
            }
        }
    }

    /// Forgets all bytes from `at` on.
    pub(super) fn cut(&mut self, at: u32) {
        self.0.retain(|&(from, _)| from < at);
        if let Some(last) = self.0.last_mut() {
            last.1 = last.1.min(at);
        }
    }

    /// Whether all bytes of a run are there.
    pub(super) fn covers(&self, (from, to): Run) -> bool {
        let behind = self.0.partition_point(|run| run.0 <= from);
        from >= to || behind.checked_sub(1).is_some_and(|at| self.0[at].1 >= to)
    }

    /// The runs that lie in another one, cut to it.
    pub(super) fn within(&self, (from, to): Run) -> impl Iterator<Item = Run> + '_ {
        let cut = move |&(low, high): &Run| (low.max(from), high.min(to));
        self.0.iter().map(cut).filter(|(low, high)| low < high)
    }

    /// What lies between them, up to byte `end`.
    pub(super) fn gaps(&self, end: u32) -> Vec<Run> {
        let starts = std::iter::once(0).chain(self.0.iter().map(|run| run.1));
        let ends = self.0.iter().map(|run| run.0).chain([end]);
        starts.zip(ends).filter(|(from, to)| from < to).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn runs_are_the_bytes_that_were_added_and_not_cut(
            adds in proptest::collection::vec((0u32..60, 0u32..12, 0u32..30, 1u32..4), 0..8),
            cut in 0u32..80, asked in (0u32..70, 0u32..20),
        ) {
            let mut runs = Runs::default();
            let mut there = [false; 128];
            for (from, length, stride, count) in adds {
                let each = |at| (from + at * (length + stride), from + at * (length + stride) + length);
                let new: Vec<Run> = (0..count).map(each).filter(|run| run.1 < 128).collect();
                runs.add(new.clone());
                new.iter().for_each(|run| (run.0..run.1).for_each(|at| there[at as usize] = true));
            }
            runs.cut(cut);
            there[cut as usize..].fill(false);
            prop_assert!(runs.0.windows(2).all(|pair| pair[0].1 < pair[1].0));
            let mut seen = [false; 128];
            runs.0.iter().for_each(|run| (run.0..run.1).for_each(|at| seen[at as usize] = true));
            prop_assert_eq!(seen, there);
            let (from, to) = (asked.0, asked.0 + asked.1);
            prop_assert_eq!(runs.covers((from, to)), (from..to).all(|at| there[at as usize]));
            let gaps: u32 = runs.gaps(128).iter().map(|run| run.1 - run.0).sum();
            prop_assert_eq!(gaps as usize, there.iter().filter(|there| !**there).count());
            let within: u32 = runs.within((from, to)).map(|run| run.1 - run.0).sum();
            prop_assert_eq!(within, (from..to).filter(|&at| there[at as usize]).count() as u32);
        }
    }
}
