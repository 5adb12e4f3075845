//! The naive model: a description of a set, and the list of its bytes, one by one.

use iolab_pattern::{Nest, Node};
use iolab_vocab::{Extent, Random};

/// A description that nobody has made canonical.
#[derive(Clone, Debug)]
pub(crate) enum Tree {
    Bytes(u64),
    Repeat(u64, u64, Box<Tree>),
    Sequence(Vec<(u64, Tree)>),
}

impl Tree {
    /// The offsets of its bytes, in order.
    pub(crate) fn bytes(&self) -> Vec<u64> {
        match self {
            Tree::Bytes(length) => (0..*length).collect(),
            Tree::Repeat(count, stride, body) => {
                let body = body.bytes();
                let copies = (0..*count).map(|copy| copy * stride);
                copies.flat_map(|at| body.iter().map(move |byte| at + byte)).collect()
            }
            Tree::Sequence(parts) => {
                let of = |(at, tree): &(u64, Tree)| {
                    tree.bytes().into_iter().map(|byte| at + byte).collect::<Vec<_>>()
                };
                parts.iter().flat_map(of).collect()
            }
        }
    }

    /// What the constructors make of it, and where its lowest byte is.
    pub(crate) fn node(&self) -> (u64, Node) {
        match self {
            Tree::Bytes(length) => (0, Node::bytes(*length).expect("short")),
            Tree::Repeat(count, stride, body) => {
                let (lowest, body) = body.node();
                (lowest, body.repeated(*count, *stride).expect("short"))
            }
            Tree::Sequence(parts) => {
                let placed = parts.iter().map(|(at, tree)| {
                    let (lowest, node) = tree.node();
                    (at + lowest, node)
                });
                Node::sequence(placed).expect("short")
            }
        }
    }

    fn end(&self) -> u64 {
        self.bytes().iter().max().map_or(0, |byte| byte + 1)
    }

    /// Any set: parts may overlap, descend and be empty.
    pub(crate) fn any(random: &mut Random, depth: u64) -> Tree {
        match if depth == 0 { 0 } else { 1 + random.below(5) / 2 } {
            0 | 3 => Tree::Bytes(random.below(6)),
            1 => {
                let body = Tree::any(random, depth - 1);
                Tree::Repeat(
                    [0, 1, 2, 2, 3, 4][random.below(6) as usize],
                    random.below(24),
                    Box::new(body),
                )
            }
            _ => {
                let count = [0, 1, 2, 3, 4, 5][random.below(6) as usize];
                let part = |random: &mut Random| (random.below(40), Tree::any(random, depth - 1));
                Tree::Sequence((0..count).map(|_| part(random)).collect())
            }
        }
    }

    /// A set whose offsets ascend without overlap.
    pub(crate) fn proper(random: &mut Random, depth: u64) -> Tree {
        match random.below(if depth == 0 { 1 } else { 4 }) {
            0 => Tree::Bytes(1 + random.below(5)),
            1 | 2 => {
                let body = Tree::proper(random, depth - 1);
                let stride = body.end() + gap(random);
                Tree::Repeat(1 + random.below(4), stride, Box::new(body))
            }
            _ => {
                let mut at = gap(random);
                let mut parts = Vec::new();
                for _ in 0..1 + random.below(4) {
                    let tree = Tree::proper(random, depth - 1);
                    let end = at + tree.end();
                    parts.push((at, tree));
                    at = end + gap(random);
                }
                Tree::Sequence(parts)
            }
        }
    }
}

/// Often none, often the same few, so that neighbours and equal distances come up; at times so wide
/// that all of another set lies in it.
fn gap(random: &mut Random) -> u64 {
    [0, 0, 1, 2, 2, 4, 4, random.below(12), random.below(90)][random.below(9) as usize]
}

/// A nest, and the bytes of its first tiles.
pub(crate) struct Case {
    pub(crate) tree: Tree,
    pub(crate) nest: Nest,
    /// Offsets in order; of all tiles that begin below `until` if it tiles.
    pub(crate) bytes: Vec<u64>,
}

impl Case {
    /// From a tree, as one tile or as many as begin below `until`.
    pub(crate) fn of(tree: Tree, displacement: u64, extent: u64, until: u64) -> Case {
        let (lowest, root) = tree.node();
        let nest = Nest::of_parts(displacement, extent, [(lowest, root)]).expect("short");
        let tile = tree.bytes();
        let mut bytes = Vec::new();
        let mut at = displacement;
        loop {
            bytes.extend(tile.iter().map(|byte| at + byte));
            at += extent;
            if extent == 0 || at >= until || tile.is_empty() {
                return Case { tree, nest, bytes };
            }
        }
    }

    pub(crate) fn proper(random: &mut Random, until: u64) -> Case {
        let depth = random.below(5);
        let tree = Tree::proper(random, depth);
        let extent = if random.below(3) == 0 { 0 } else { tree.end() + gap(random) };
        let displacement = [0, random.below(30)][random.below(2) as usize];
        Case::of(tree, displacement, extent, until)
    }

    pub(crate) fn any(random: &mut Random, until: u64) -> Case {
        let depth = random.below(5);
        let tree = Tree::any(random, depth);
        let extent = if random.below(2) == 0 { 0 } else { 1 + random.below(60) };
        let displacement = random.below(30);
        Case::of(tree, displacement, extent, until)
    }
}

/// The bytes of runs, in order.
pub(crate) fn bytes_of(runs: impl Iterator<Item = Extent>) -> Vec<u64> {
    runs.flat_map(|run| run.offset..run.end()).collect()
}

/// The maximal runs of a list of bytes, in order.
pub(crate) fn runs_of(bytes: &[u64]) -> Vec<Extent> {
    let mut runs: Vec<Extent> = Vec::new();
    for &byte in bytes {
        match runs.last_mut() {
            Some(last) if last.end() == byte => last.length += 1,
            _ => runs.push(Extent::new(byte, 1)),
        }
    }
    runs
}
