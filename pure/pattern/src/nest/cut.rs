//! A cut: the bytes of a nest in an interval, as a few chains.
//!
//! Through each level an interval cuts at most a head and a tail, and leaves whole copies between
//! them; a chain is such copies. What is whole stays whole, whatever it holds.
//!
//! Promises: the chains hold the bytes in the order of the view. There are at most 2D + 1 of them
//! for a nest without sequences of depth D (tile and levels, runs not counted), and as many for
//! each part of a sequence that the interval touches.
//!
//! Costs: O(D log f), and O(1) for each chain.

use super::Nest;
use super::mapping::holding;
use super::node::{Form, Node};
use iolab_vocab::Extent;
use std::fmt;

/// `count` copies of a node, each `stride` bytes after the one before.
#[derive(Clone, PartialEq, Eq)]
pub struct Chain {
    /// Where the first copy starts.
    pub offset: u64,
    /// How many copies; at least 1.
    pub count: u64,
    /// From one copy to the next; meaningless for one copy.
    pub stride: u64,
    /// What is repeated.
    pub body: Node,
}

impl Chain {
    /// Copies whose numbers are known to fit; a single copy of a Repeat shows its copies.
    pub(super) fn new(offset: u64, count: u64, stride: u64, body: Node) -> Chain {
        match &body.0 {
            Form::Repeat(r) if count == 1 => {
                Chain { offset, count: r.count, stride: r.stride, body: r.body.clone() }
            }
            Form::Repeat(r) if stride == r.count * r.stride => {
                let count = count * r.count;
                Chain { offset, count, stride: r.stride, body: r.body.clone() }
            }
            Form::Bytes(length) if count > 1 && stride == *length => {
                Chain { offset, count: 1, stride: 0, body: Node(Form::Bytes(count * length)) }
            }
            _ => Chain { offset, count, stride: if count == 1 { 0 } else { stride }, body },
        }
    }

    /// Whether both are single runs, and neighbours.
    fn ends_in_run_before(&self, next: &Chain) -> bool {
        let runs = matches!((&self.body.0, &next.body.0), (Form::Bytes(_), Form::Bytes(_)));
        runs && self.count == 1 && next.count == 1 && self.end() == next.offset
    }

    /// Whether the copies of `next` are further copies of this.
    fn goes_on_in(&self, next: &Chain) -> bool {
        self.count > 1
            && next.count > 1
            && self.stride == next.stride
            && next.offset.checked_sub(self.offset) == Some(self.count * self.stride)
            && self.body == next.body
    }

    /// How many bytes it has.
    pub fn size(&self) -> u64 {
        self.count * self.body.size()
    }

    /// The byte after the highest one.
    pub fn end(&self) -> u64 {
        self.offset + (self.count - 1) * self.stride + self.body.end()
    }
}

/// As in `{20: 2 x3/4}`.
impl fmt::Display for Chain {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.count {
            1 => write!(f, "{{{}: {}}}", self.offset, self.body),
            count => write!(f, "{{{}: {} x{count}/{}}}", self.offset, self.body, self.stride),
        }
    }
}

impl fmt::Debug for Chain {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// The bytes of a nest in an interval, in order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Cut {
    chains: Vec<Chain>,
    bytes: u64,
}

impl Cut {
    /// What it consists of, in order.
    pub fn chains(&self) -> &[Chain] {
        &self.chains
    }

    /// How many bytes it has.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// How many runs [`Cut::runs`] gives: O(nodes), however many there are.
    ///
    /// ```
    /// let nest: iolab_pattern::Nest = "2 x8/4 x4/64 every 256 from 0".parse()?;
    /// let cut = nest.cut(10, 30);
    /// assert_eq!(cut.run_count(), cut.runs().count() as u64);
    /// # Ok::<(), iolab_vocab::Refusal>(())
    /// ```
    pub fn run_count(&self) -> u64 {
        self.chains.iter().map(|chain| chain.count * chain.body.run_count()).sum()
    }

    /// The byte after the highest one; 0 when there is none.
    pub fn end(&self) -> u64 {
        self.chains.iter().map(Chain::end).max().unwrap_or(0)
    }

    fn push(&mut self, offset: u64, count: u64, stride: u64, body: &Node) {
        let chain = Chain::new(offset, count, stride, body.clone());
        self.bytes += chain.size();
        match self.chains.last_mut() {
            Some(last) if last.ends_in_run_before(&chain) => {
                last.body = Node(Form::Bytes(last.size() + chain.size()));
            }
            Some(last) if last.goes_on_in(&chain) => last.count += chain.count,
            _ => self.chains.push(chain),
        }
    }

    /// Bytes `[from, to)` of the order of `node`, which lies at `base`.
    fn push_node(&mut self, base: u64, node: &Node, from: u64, to: u64) {
        if from == 0 && to == node.size() {
            return self.push(base, 1, 0, node);
        }
        match &node.0 {
            Form::Bytes(_) => self.push(base + from, 1, 0, &Node(Form::Bytes(to - from))),
            Form::Repeat(r) => self.push_copies(base, r.stride, &r.body, from, to),
            Form::Sequence(sequence) => {
                let first = holding(&sequence.parts, from);
                for part in sequence.parts[first..].iter().take_while(|part| part.before < to) {
                    let (from, to) = (from.saturating_sub(part.before), to - part.before);
                    let to = to.min(part.node.size());
                    self.push_node(base + part.offset, &part.node, from, to);
                }
            }
        }
    }

    /// Bytes `[from, to)` of copies of `body`, the first of which lies at `base`.
    fn push_copies(&mut self, base: u64, stride: u64, body: &Node, from: u64, to: u64) {
        let size = body.size();
        let (mut first, last) = (from / size, to / size);
        let (head, tail) = (from % size, to % size);
        if first == last {
            return self.push_node(base + first * stride, body, head, tail);
        }
        if head > 0 {
            self.push_node(base + first * stride, body, head, size);
            first += 1;
        }
        if first < last {
            self.push(base + first * stride, last - first, stride, body);
        }
        if tail > 0 {
            self.push_node(base + last * stride, body, 0, tail);
        }
    }
}

impl Nest {
    /// Bytes `[from, to)` of the view; what lies beyond its end is not there.
    ///
    /// ```
    /// let nest: iolab_pattern::Nest = "2 x8/4 x4/64 every 256 from 0".parse()?;
    /// let cut = nest.cut(10, 30);
    /// assert_eq!(format!("{:?}", cut.chains()), "[{20: 2 x3/4}, {64: 2 x7/4}]");
    /// # Ok::<(), iolab_vocab::Refusal>(())
    /// ```
    pub fn cut(&self, from: u64, to: u64) -> Cut {
        let mut cut = Cut::default();
        let to = to.min(self.size());
        if from < to {
            match self.extent {
                0 => cut.push_node(self.displacement, &self.root, from, to),
                extent => cut.push_copies(self.displacement, extent, &self.root, from, to),
            }
        }
        cut
    }

    /// The bytes of the view that lie in a range of the file; none for an improper view, whose
    /// bytes there are not one interval of it.
    pub fn cut_file(&self, file: Extent) -> Option<Cut> {
        Some(self.cut(self.rank(file.offset)?, self.rank(file.end())?))
    }
}
