//! The tree of a nest: a run, copies of a node, or parts one after the other.
//!
//! Promises: a node is canonical from birth. Its lowest byte is at 0; no node is empty but the one
//! that holds nothing; no level has a single element; a `Repeat` never continues the one in it, a
//! `Sequence` never holds another one. All numbers of a node, and all sums over its tree, fit a
//! file offset (2^63 − 1), its depth is at most [`NEST_DEPTH`] and it has at most [`NEST_NODES`]
//! nodes: what would not is refused by the constructor, so that nobody behind it needs to check.
//!
//! Costs: size, end, whether proper, depth and number of nodes are computed once, at construction.
//! A node is 16 bytes and shares its body; a clone is a counter. 32 bytes more per part.

use iolab_vocab::Refusal;
use std::sync::Arc;

/// The largest size and the largest offset of a byte set: a file offset is signed.
pub const LARGEST: u64 = i64::MAX as u64;
/// How many nodes may lie between root and leaf, both counted.
pub const NEST_DEPTH: usize = 32;
/// How many nodes a nest may have, counted as a tree.
pub const NEST_NODES: u64 = 1 << 20;

/// A set of bytes in an order, from offset 0 on.
#[derive(Clone, PartialEq, Eq)]
pub struct Node(pub(super) Form);

#[derive(Clone, PartialEq, Eq)]
pub(super) enum Form {
    Bytes(u64),
    Repeat(Arc<Repeat>),
    Sequence(Arc<Sequence>),
}

/// `count` copies of a body, each `stride` after the one before; at least 2.
#[derive(PartialEq, Eq)]
pub(super) struct Repeat {
    // First, because comparing it tells nearly all unequal trees apart.
    facts: Facts,
    pub(super) count: u64,
    pub(super) stride: u64,
    pub(super) body: Node,
}

/// Parts in their order; at least 2.
#[derive(PartialEq, Eq)]
pub(super) struct Sequence {
    facts: Facts,
    pub(super) parts: Box<[Part]>,
}

/// One part of a sequence.
#[derive(Clone, PartialEq, Eq)]
pub struct Part {
    /// Where it starts, from the start of the sequence.
    pub offset: u64,
    /// How many bytes of the sequence come before it, in order.
    pub before: u64,
    /// What it holds.
    pub node: Node,
}

/// What a node is, to look at.
#[derive(Clone, Copy, Debug)]
pub enum Shape<'a> {
    /// A contiguous run of that many bytes.
    Bytes(u64),
    /// `count` copies of the body, each `stride` bytes after the one before.
    Repeat {
        /// How many copies.
        count: u64,
        /// Bytes from the start of one copy to the start of the next.
        stride: u64,
        /// What is repeated.
        body: &'a Node,
    },
    /// Parts, in order.
    Sequence(&'a [Part]),
}

/// What is known of a tree without walking it.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Facts {
    fingerprint: u64,
    size: u64,
    end: u64,
    nodes: u32,
    depth: u8,
    proper: bool,
}

/// One round of SplitMix64's finaliser: enough to tell trees apart before they are walked.
fn mixed(seed: u64, value: u64) -> u64 {
    let z = (seed ^ value).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    (z ^ (z >> 29)).wrapping_mul(0x94D0_49BB_1331_11EB).rotate_left(31)
}

/// A number that a file offset can hold, or the error that names what left the range.
pub(super) fn offset(what: &str, value: Option<u64>) -> Result<u64, Refusal> {
    value.filter(|&value| value <= LARGEST).ok_or_else(|| too_large(what))
}

pub(super) fn too_large(what: &str) -> Refusal {
    Refusal::new(
        format!("{what} leaves what a file offset can hold, 2^63 - 1"),
        "make its lengths, counts, strides or offsets smaller",
    )
}

fn checked_depth(depth: usize) -> Result<u8, Refusal> {
    if depth <= NEST_DEPTH {
        return Ok(depth as u8);
    }
    Err(Refusal::new(
        format!("a nest of depth {depth} is deeper than {NEST_DEPTH}"),
        "describe the set with fewer levels in each other",
    ))
}

pub(super) fn checked_nodes(nodes: u64) -> Result<u32, Refusal> {
    if nodes <= NEST_NODES {
        return Ok(nodes as u32);
    }
    Err(Refusal::new(
        format!("a nest of {nodes} nodes has more than {NEST_NODES}"),
        "split the access, or describe regular parts as vectors",
    ))
}

impl Node {
    /// The node that holds nothing.
    pub const EMPTY: Node = Node(Form::Bytes(0));

    /// A contiguous run.
    pub fn bytes(length: u64) -> Result<Node, Refusal> {
        let name = || format!("a run of {length} bytes");
        if length > LARGEST { Err(too_large(&name())) } else { Ok(Node(Form::Bytes(length))) }
    }

    /// `count` copies of `body`, each `stride` bytes after the one before.
    ///
    /// ```
    /// use iolab_pattern::Node;
    /// let row = Node::bytes(2)?.repeated(4, 4)?;
    /// assert_eq!(row.repeated(2, 16)?, Node::bytes(2)?.repeated(8, 4)?, "levels that go on merge");
    /// assert_eq!(Node::bytes(2)?.repeated(4, 2)?, Node::bytes(8)?, "neighbours merge");
    /// # Ok::<(), iolab_vocab::Refusal>(())
    /// ```
    pub fn repeated(&self, count: u64, stride: u64) -> Result<Node, Refusal> {
        if count == 0 || self.is_empty() {
            return Ok(Node::EMPTY);
        }
        if count == 1 {
            return Ok(self.clone());
        }
        let name =
            || format!("a set of {} bytes repeated {count} times every {stride}", self.size());
        let size = self.size().checked_mul(count).filter(|&size| size <= LARGEST);
        let size = size.ok_or_else(|| too_large(&name()))?;
        let span = stride.checked_mul(count - 1).and_then(|span| span.checked_add(self.end()));
        let end = span.filter(|&end| end <= LARGEST).ok_or_else(|| too_large(&name()))?;
        match &self.0 {
            Form::Bytes(length) if stride == *length => return Ok(Node(Form::Bytes(size))),
            // `count · stride` of a valid Repeat is below 2^64: the last copy is below 2^63.
            Form::Repeat(inner) if stride == inner.count * inner.stride => {
                return inner.body.repeated(inner.count * count, inner.stride);
            }
            _ => {}
        }
        let facts = Facts {
            fingerprint: mixed(mixed(mixed(2, self.fingerprint()), count), stride),
            size,
            end,
            nodes: checked_nodes(self.nodes() + 1)?,
            depth: checked_depth(self.depth() + 1)?,
            proper: self.proper() && stride >= self.end(),
        };
        Ok(Node(Form::Repeat(Arc::new(Repeat { facts, count, stride, body: self.clone() }))))
    }

    /// A sequence of parts that are known to be canonical together, the lowest of them at 0.
    pub(super) fn of_parts(parts: Vec<(u64, Node)>) -> Result<Node, Refusal> {
        let mut facts = Facts { fingerprint: 3, size: 0, end: 0, nodes: 1, depth: 1, proper: true };
        let mut placed = Vec::with_capacity(parts.len());
        for (at, node) in parts {
            let before = facts.size;
            let end = at.checked_add(node.end());
            let end = offset("a part of a sequence", end)?;
            facts.proper &= node.proper() && (placed.is_empty() || at >= facts.end);
            facts.size = offset("the sum of a sequence", before.checked_add(node.size()))?;
            facts.end = facts.end.max(end);
            facts.nodes = checked_nodes(u64::from(facts.nodes) + node.nodes())?;
            facts.depth = facts.depth.max(checked_depth(node.depth() + 1)?);
            facts.fingerprint = mixed(mixed(facts.fingerprint, at), node.fingerprint());
            placed.push(Part { offset: at, before, node });
        }
        Ok(Node(Form::Sequence(Arc::new(Sequence { facts, parts: placed.into() }))))
    }

    /// What it is.
    pub fn shape(&self) -> Shape<'_> {
        match &self.0 {
            Form::Bytes(length) => Shape::Bytes(*length),
            Form::Repeat(r) => Shape::Repeat { count: r.count, stride: r.stride, body: &r.body },
            Form::Sequence(sequence) => Shape::Sequence(&sequence.parts),
        }
    }

    fn facts(&self) -> Option<&Facts> {
        match &self.0 {
            Form::Bytes(_) => None,
            Form::Repeat(repeat) => Some(&repeat.facts),
            Form::Sequence(sequence) => Some(&sequence.facts),
        }
    }

    /// How many bytes it has; bytes that overlap count again.
    pub fn size(&self) -> u64 {
        if let Form::Bytes(length) = self.0 { length } else { self.facts().map_or(0, |f| f.size) }
    }

    /// How many leaves it has, each counted as often as it is repeated. Trees are not deep.
    pub(super) fn run_count(&self) -> u64 {
        match &self.0 {
            Form::Bytes(0) => 0,
            Form::Bytes(_) => 1,
            Form::Repeat(r) => r.count * r.body.run_count(),
            Form::Sequence(sequence) => {
                sequence.parts.iter().map(|part| part.node.run_count()).sum()
            }
        }
    }

    /// The byte after the highest one.
    pub fn end(&self) -> u64 {
        if let Form::Bytes(length) = self.0 { length } else { self.facts().map_or(0, |f| f.end) }
    }

    /// Whether its offsets ascend without overlap.
    pub fn proper(&self) -> bool {
        self.facts().is_none_or(|facts| facts.proper)
    }

    /// How many nodes its tree has.
    pub fn nodes(&self) -> u64 {
        self.facts().map_or(1, |facts| u64::from(facts.nodes))
    }

    /// How many nodes there are from root to the deepest leaf.
    pub fn depth(&self) -> usize {
        self.facts().map_or(1, |facts| usize::from(facts.depth))
    }

    fn fingerprint(&self) -> u64 {
        if let Form::Bytes(length) = self.0 {
            return mixed(1, length);
        }
        self.facts().map_or(0, |facts| facts.fingerprint)
    }

    /// Whether it holds nothing.
    pub fn is_empty(&self) -> bool {
        self.0 == Form::Bytes(0)
    }
}
