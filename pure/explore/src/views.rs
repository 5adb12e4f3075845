//! Views that programs use: contiguous, strided, nested, in parts, with displacements.

use crate::dice::Dice;
use iolab_pattern::{Nest, Node};
use std::sync::Arc;

/// The most bytes of a file that programs touch.
pub(crate) const FILE_BYTES_MAX: u64 = 4 << 10;

/// A few sets of views for the ranks of a program; ranks that find none of their own share.
pub(crate) fn family(dice: &mut Dice, ranks: u32) -> Vec<Vec<Arc<Nest>>> {
    let mut families = vec![vec![Arc::new(Nest::WHOLE_FILE)]];
    for _ in 0..dice.between(1, 3) {
        families.push(if dice.one_in(2) { interleaved(dice, ranks) } else { any(dice, ranks) });
    }
    families
}

fn bytes(count: u64) -> Node {
    Node::bytes(count).expect("in range")
}

/// Each rank its own part of every tile.
fn interleaved(dice: &mut Dice, ranks: u32) -> Vec<Arc<Nest>> {
    let run = dice.magnitude(1, 128);
    let count = dice.between(1, 3);
    let rows = u64::from(ranks) * run;
    let displacement = if dice.one_in(2) { 0 } else { dice.below(100) };
    let part = |rank: u64| {
        let node = bytes(run).repeated(count, rows).expect("in range");
        Nest::new(displacement + rank * run, rows * count, node).map(Arc::new).expect("in range")
    };
    (0..u64::from(ranks)).map(part).collect()
}

/// Each rank something else; they may overlap.
fn any(dice: &mut Dice, ranks: u32) -> Vec<Arc<Nest>> {
    let view = |_| {
        let root = node(dice);
        let gap = if dice.one_in(3) { 0 } else { dice.below(40) };
        let extent = if dice.one_in(4) { 0 } else { root.end() + gap };
        let displacement = if dice.one_in(2) { 0 } else { dice.below(FILE_BYTES_MAX / 8) };
        Nest::new(displacement, extent, root).map(Arc::new).expect("in range")
    };
    (0..ranks).map(view).collect()
}

/// A proper node of a few hundred bytes.
fn node(dice: &mut Dice) -> Node {
    if dice.one_in(4) {
        let mut at = 0;
        let part = |_| {
            let body = runs(dice);
            let offset = at;
            at += body.end() + dice.below(30);
            (offset, body)
        };
        let parts: Vec<(u64, Node)> = (0..3).map(part).collect();
        return Node::sequence(parts).expect("in range").1;
    }
    runs(dice)
}

/// Runs at equal distances, at up to three levels.
fn runs(dice: &mut Dice) -> Node {
    let mut node = bytes(dice.magnitude(1, 32));
    for _ in 0..dice.below(4) {
        let stride = node.end() + dice.below(20);
        node = node.repeated(dice.between(1, 3), stride).expect("in range");
    }
    node
}
