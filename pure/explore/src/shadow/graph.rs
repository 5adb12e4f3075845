//! Is there one order of everything that was done and seen in a block, or of what counts there?
//!
//! Nodes are what was answered; an edge says "before". Time gives the first edges, and the order in which a
//! process has called what touches the same bytes. A read that saw the
//! write `w` on a byte lies behind `w`, and every other write to that byte before `w` or behind the read:
//! edges are added until nothing follows any more. A circle means that there is no order.
//!
//! Costs: O(bytes + nodes² · different bytes) per round, nodes being those of the block.

use super::{Effect, Op, Tick};
use std::collections::BTreeSet;
use std::ops::Range;

/// Where a byte that was seen comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Source {
    /// A node.
    Node(usize),
    /// Nobody: it was never written.
    Start,
    /// Something that may have happened at any time.
    Loose,
}

/// What happened to one byte: who saw what, and which nodes set it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Byte {
    seen: Vec<(usize, Source)>,
    set: Vec<usize>,
}

pub(super) fn judge(
    ops: &[Op],
    writers: &[Vec<u32>],
    block: Range<u32>,
    forgets: &[Tick],
    counts: impl Fn(&Op) -> bool,
) -> Result<(), String> {
    let touches = |op: &Op| match &op.effect {
        Effect::Write(bytes) | Effect::Read(bytes) => {
            let at = bytes.partition_point(|&(x, _)| x < block.start);
            bytes.get(at).is_some_and(|&(x, _)| x < block.end)
        }
        Effect::Resize(to) => *to < u64::from(block.end),
    };
    let is_node = |op: &Op| op.end.is_some() && counts(op) && touches(op);
    let nodes: Vec<usize> = (0..ops.len()).filter(|&at| is_node(&ops[at])).collect();
    let reads = |at: &usize| matches!(ops[*at].effect, Effect::Read(_));
    if !nodes.iter().any(reads) {
        return Ok(());
    }
    let mut order = Order::of(&nodes, ops);
    order.add_programs(&nodes, ops);
    let bytes = bytes(ops, &nodes, writers, block, forgets);
    loop {
        let before = order.edges;
        for byte in &bytes {
            for &(read, source) in &byte.seen {
                order.follow(byte, read, source);
            }
        }
        if let Some(at) = order.circle() {
            let circle = (0..nodes.len()).filter(|&b| order.before(at, b) && order.before(b, at));
            let words: Vec<String> = circle.map(|at| ops[nodes[at]].named()).collect();
            return Err(format!("no order fits: {} each come before the next", words.join(", ")));
        }
        if order.edges == before {
            return Ok(());
        }
    }
}

/// The different bytes of a block.
fn bytes(
    ops: &[Op],
    nodes: &[usize],
    writers: &[Vec<u32>],
    block: Range<u32>,
    forgets: &[Tick],
) -> BTreeSet<Byte> {
    let loose = |op: &Op| match op.end {
        None => true,
        Some(end) => forgets.iter().any(|&at| op.begin < at && at < end),
    };
    let resizes: Vec<&Op> = ops.iter().filter(|op| op.resizes_to().is_some()).collect();
    let mut bytes = BTreeSet::new();
    for x in block {
        let mut byte = Byte { seen: Vec::new(), set: Vec::new() };
        let cut = |op: &&&Op| op.resizes_to().is_some_and(|to| u64::from(x) >= to);
        let cuts: Vec<&&Op> = resizes.iter().filter(cut).collect();
        for (at, &number) in nodes.iter().enumerate() {
            let op = &ops[number];
            if op.sets(x).is_some() {
                byte.set.push(at);
            }
            let Effect::Read(seen) = &op.effect else { continue };
            let Some(value) = super::value_at(seen, x) else { continue };
            let source = match value {
                0 if cuts.iter().any(|cut| cut.begin < op.end.unwrap_or(0)) => Source::Loose,
                0 => Source::Start,
                value => {
                    let writer = writers[x as usize][usize::from(value) - 1] as usize;
                    let write = &ops[writer];
                    let early = write.end.is_none_or(|end| op.begin < end);
                    match nodes.binary_search(&writer) {
                        Ok(node) if !(early && loose(write)) => Source::Node(node),
                        _ => Source::Loose,
                    }
                }
            };
            if source != Source::Loose {
                byte.seen.push((at, source));
            }
        }
        if !byte.seen.is_empty() {
            bytes.insert(byte);
        }
    }
    bytes
}

/// Which node is known to be before which.
struct Order {
    /// For each node the set of those behind it, as bits.
    behind: Vec<Vec<u64>>,
    edges: usize,
}

impl Order {
    fn of(nodes: &[usize], ops: &[Op]) -> Order {
        let count = nodes.len();
        let mut order = Order { behind: vec![vec![0; count.div_ceil(64)]; count], edges: 0 };
        for (a, &first) in nodes.iter().enumerate() {
            for (b, &second) in nodes.iter().enumerate() {
                // Time alone is transitive, so nothing has to be followed here.
                if ops[first].over_before(ops[second].begin) {
                    order.behind[a][b / 64] |= 1 << (b % 64);
                    order.edges += 1;
                }
            }
        }
        order
    }

    /// Adds what processes have called one after the other about the same bytes.
    fn add_programs(&mut self, nodes: &[usize], ops: &[Op]) {
        for (a, first) in nodes.iter().map(|&node| &ops[node]).enumerate() {
            for (b, second) in nodes.iter().map(|&node| &ops[node]).enumerate() {
                let is_program = first.by.process == second.by.process;
                if is_program && first.begin < second.begin && first.conflicts(second) {
                    self.put(a, b);
                }
            }
        }
    }

    fn before(&self, a: usize, b: usize) -> bool {
        self.behind[a][b / 64] >> (b % 64) & 1 == 1
    }

    fn circle(&self) -> Option<usize> {
        (0..self.behind.len()).find(|&at| self.before(at, at))
    }

    /// What follows from a read of a byte.
    fn follow(&mut self, byte: &Byte, read: usize, source: Source) {
        match source {
            Source::Loose => {}
            Source::Start => byte.set.iter().for_each(|&set| self.put(read, set)),
            Source::Node(write) => {
                self.put(write, read);
                for &set in byte.set.iter().filter(|&&set| set != write) {
                    if self.before(set, read) {
                        self.put(set, write);
                    }
                    if self.before(write, set) {
                        self.put(read, set);
                    }
                }
            }
        }
    }

    /// `a` is before `b`, and so is all that is before `a` before all that is behind `b`.
    fn put(&mut self, a: usize, b: usize) {
        if self.before(a, b) {
            return;
        }
        self.edges += 1;
        let mut behind = self.behind[b].clone();
        behind[b / 64] |= 1 << (b % 64);
        for at in 0..self.behind.len() {
            if at == a || self.before(at, a) {
                self.behind[at].iter_mut().zip(&behind).for_each(|(row, more)| *row |= more);
            }
        }
    }
}
