//! What the ranks of one collective file call want: lists of extents, and what falls into a range.

use iolab_vocab::{Direction, Extent};

/// One rank's list, with what makes questions about it cheap.
#[derive(Clone, Debug, Default)]
pub struct Wanted {
    list: Vec<Extent>,
    /// First byte to last byte; empty when nothing is wanted.
    span: Extent,
    /// Offsets ascend and nothing overlaps, so ranges can be searched.
    is_sorted: bool,
}

impl Wanted {
    /// A list as the program gave it.
    pub fn new(list: Vec<Extent>) -> Wanted {
        let start = list.iter().map(|extent| extent.offset).min().unwrap_or(0);
        let end = list.iter().map(|extent| extent.end()).max().unwrap_or(0);
        let is_sorted = list.is_sorted_by(|one, next| one.end() <= next.offset);
        Wanted { list, span: Extent::new(start, end - start), is_sorted }
    }

    /// First byte to last byte.
    pub fn span(&self) -> Extent {
        self.span
    }

    /// The parts of the list inside `range`, in the list's order.
    pub fn within(&self, range: Extent) -> impl Iterator<Item = Extent> + '_ {
        let (from, to) = match self.is_sorted {
            true => (
                self.list.partition_point(|extent| extent.end() <= range.offset),
                self.list.partition_point(|extent| extent.offset < range.end()),
            ),
            false => (0, self.list.len()),
        };
        let parts = self.list[from..to.max(from)].iter();
        parts.map(move |extent| extent.intersection(range)).filter(|part| !part.is_empty())
    }

    /// Bytes and pieces inside `range`.
    pub fn measure(&self, range: Extent) -> (u64, u64) {
        self.within(range).fold((0, 0), |(bytes, count), part| (bytes + part.length, count + 1))
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
