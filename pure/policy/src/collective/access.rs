//! What the ranks of one collective file call want, lists of extents or parts of views, and what of it
//! falls into a range.

use iolab_pattern::Nest;
use iolab_vocab::{Direction, Extent};
use std::sync::Arc;

/// What one rank wants, with what makes questions about it cheap.
#[derive(Clone, Debug, Default)]
pub struct Wanted {
    form: Form,
    /// First byte to last byte; empty when nothing is wanted.
    span: Extent,
}

#[derive(Clone, Debug)]
enum Form {
    /// Extents as the program gave them; if offsets ascend and nothing overlaps, ranges can be searched.
    List { list: Vec<Extent>, is_sorted: bool },
    /// Bytes `[from, to)` of a proper view: as small for millions of pieces as for one.
    Part { view: Arc<Nest>, from: u64, to: u64 },
}

impl Default for Form {
    fn default() -> Form {
        Form::List { list: Vec::new(), is_sorted: true }
    }
}

impl Wanted {
    /// A list as the program gave it.
    pub fn new(list: Vec<Extent>) -> Wanted {
        let start = list.iter().map(|extent| extent.offset).min().unwrap_or(0);
        let end = list.iter().map(|extent| extent.end()).max().unwrap_or(0);
        let is_sorted = list.is_sorted_by(|one, next| one.end() <= next.offset);
        Wanted { form: Form::List { list, is_sorted }, span: Extent::new(start, end - start) }
    }

    /// Bytes `[from, to)` of a view, as far as it has them; none of a view whose offsets do not ascend.
    pub fn of_view(view: Arc<Nest>, from: u64, to: u64) -> Option<Wanted> {
        if !view.proper() {
            return None;
        }
        let to = to.min(view.size());
        if from >= to {
            return Some(Wanted::default());
        }
        let (start, last) = (view.at(from)?, view.at(to - 1)?);
        let span = Extent::new(start, last + 1 - start);
        Some(Wanted { form: Form::Part { view, from, to }, span })
    }

    /// First byte to last byte.
    pub fn span(&self) -> Extent {
        self.span
    }

    /// The parts of it inside `range`, in its order.
    pub fn within(&self, range: Extent) -> impl Iterator<Item = Extent> + '_ {
        let (listed, laid): (&[Extent], Vec<Extent>) = match &self.form {
            Form::Part { view, .. } => {
                let (from, to) = self.interval(range);
                (&[], view.cut(from, to).runs().collect())
            }
            Form::List { list, is_sorted: false } => (list, Vec::new()),
            Form::List { list, is_sorted: true } => {
                let from = list.partition_point(|extent| extent.end() <= range.offset);
                let to = list.partition_point(|extent| extent.offset < range.end());
                (&list[from..to.max(from)], Vec::new())
            }
        };
        let parts = listed.iter().map(move |extent| extent.intersection(range));
        parts.filter(|part| !part.is_empty()).chain(laid)
    }

    /// Bytes and pieces inside `range`.
    pub fn measure(&self, range: Extent) -> (u64, u64) {
        if let Form::Part { view, .. } = &self.form {
            let (from, to) = self.interval(range);
            return (to - from, view.cut(from, to).run_count());
        }
        self.within(range).fold((0, 0), |(bytes, count), part| (bytes + part.length, count + 1))
    }

    /// Which bytes of the view lie inside `range`: of what is wanted, so a list has none.
    pub fn interval(&self, range: Extent) -> (u64, u64) {
        let Form::Part { view, from, to } = &self.form else { return (0, 0) };
        let before = |x| view.rank(x).map_or(*from, |rank| rank.clamp(*from, *to));
        (before(range.offset), before(range.end()).max(before(range.offset)))
    }

    /// The view that it is a part of; a list is of none.
    pub fn view(&self) -> Option<&Nest> {
        match &self.form {
            Form::Part { view, .. } => Some(view),
            Form::List { .. } => None,
        }
    }
}

/// A collective read or write, as all ranks know it after they have exchanged their spans.
///
/// A machine looks at another rank's list only to follow what it would have received from it.
#[derive(Clone, Debug)]
pub struct Access {
    /// Which way.
    pub direction: Direction,
    /// What each rank wants.
    pub wanted: Vec<Wanted>,
}

impl Access {
    /// First byte to last byte of all ranks.
    pub fn span(&self) -> Extent {
        let spans = || self.wanted.iter().map(|wanted| wanted.span).filter(|span| !span.is_empty());
        let start = spans().map(|span| span.offset).min().unwrap_or(0);
        let end = spans().map(|span| span.end()).max().unwrap_or(0);
        Extent::new(start, end - start)
    }

    /// Whether the ranks' spans interleave: any starts at or before its lower neighbour's end.
    pub fn is_interleaved(&self) -> bool {
        self.wanted.windows(2).any(|pair| pair[1].span.offset <= pair[0].span.end())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A part of a view is the list of its pieces: every answer is the same.
    #[test]
    fn a_part_of_a_view_answers_as_the_list_of_its_pieces() {
        for text in ["3 x5/7 every 64 from 11", "8 every 24", "5 from 3"] {
            let view: Arc<Nest> = Arc::new(text.parse().unwrap());
            for (from, to) in [(0, 0), (0, 1), (2, 4), (0, 60), (7, 41), (9, 3)] {
                let part = Wanted::of_view(view.clone(), from, to).unwrap();
                let list = Wanted::new(view.cut(from, to.max(from)).runs().collect());
                assert_eq!(part.span(), list.span(), "{text} [{from}, {to})");
                for (offset, length) in [(0, 500), (0, 12), (13, 9), (11, 0), (30, 100), (400, 9)] {
                    let range = Extent::new(offset, length);
                    let scene = format!("{text} [{from}, {to}) inside {range}");
                    assert!(part.within(range).eq(list.within(range)), "{scene}");
                    assert_eq!(part.measure(range), list.measure(range), "{scene}");
                    let (first, last) = part.interval(range);
                    assert_eq!(last - first, list.measure(range).0, "{scene}");
                }
            }
        }
    }

    #[test]
    fn a_view_that_goes_back_has_no_parts_here() {
        let view: Nest = "[8: 2, 0: 2] every 16".parse().unwrap();
        assert!(Wanted::of_view(Arc::new(view), 0, 4).is_none());
    }
}
