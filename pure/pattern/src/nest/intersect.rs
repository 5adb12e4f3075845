//! The bytes that two nests have in common, in closed form where their strides allow it.
//!
//! Two sets of copies meet: with equal strides, copy i of one meets at most two copies of the other,
//! at distances that do not depend on i, so one meeting stands for all of them. If one stride is a
//! multiple of the other, the copies of the finer are taken in groups of it. If none is, one side
//! is unrolled while that is cheap. Tiles are brought to one start and one period, by which the
//! common set is a nest again.
//!
//! Promises: what `closed` gives is exactly the common bytes, in ascending order. It gives up, and
//! the caller takes the cursor of `nest/cursor.rs`, rather than take more than [`STEPS`] meetings
//! or store more than [`CLOSED_NODES`] nodes.
//!
//! Costs: a meeting per pair of nodes that lie over each other where strides divide, two where copies
//! meet two copies; never more than [`STEPS`], about 0.1 s when sequences of 500,000 parts give up.

use super::Nest;
use super::cut::{Chain, Cut};
use super::fold::Fold;
use super::node::{Form, LARGEST, Node};
use iolab_vocab::Extent;

/// How many nodes the closed form of an intersection may have.
pub const CLOSED_NODES: u64 = 1 << 16;
/// How many meetings of two sets of copies are tried.
const STEPS: u32 = 1 << 17;
/// How many copies are unrolled where no stride divides the other.
const UNROLLED: u64 = 1 << 10;

/// The common bytes of two proper nests as a nest, unless that takes too much.
pub(super) fn closed(one: &Nest, other: &Nest) -> Option<Nest> {
    let mut meeting = Meeting { steps: STEPS };
    let start = one.displacement.max(other.displacement);
    let period = match (one.extent, other.extent) {
        (0, _) | (_, 0) => None,
        (one, other) => Some(least_common_multiple(one, other)?),
    };
    let once = |nest: &Nest| match nest.extent {
        0 => nest.displacement + nest.root.end(),
        _ => LARGEST,
    };
    let end = once(one).min(once(other));
    let end = period.and_then(|period| start.checked_add(period)).map_or(end, |at| end.min(at));
    if start >= end {
        return Some(Nest::EMPTY);
    }
    let window = Extent::new(start, end - start);
    let one = operand(&one.cut_file(window)?)?;
    let other = operand(&other.cut_file(window)?)?;
    let mut out = Fold::new();
    meeting.meet(&one, &other, &mut out)?;
    let (offset, root) = out.finish().ok()?;
    // Where the window ends before the period does, the second tile is beyond all offsets.
    let extent = period.unwrap_or(0);
    Nest::new(offset, extent, root).ok().filter(|nest| nest.root.nodes() <= CLOSED_NODES)
}

/// The period of two tiles together, when a file offset can hold it.
pub(super) fn least_common_multiple(one: u64, other: u64) -> Option<u64> {
    let (mut a, mut b) = (one, other);
    while b > 0 {
        (a, b) = (b, a % b);
    }
    (one / a).checked_mul(other).filter(|&multiple| multiple <= LARGEST)
}

/// All of a cut as one chain.
fn operand(cut: &Cut) -> Option<Chain> {
    if let [chain] = cut.chains() {
        return Some(chain.clone());
    }
    let mut fold = Fold::new();
    for chain in cut.chains() {
        fold.push(chain.offset, &chain.node()?).ok()?;
    }
    let (offset, node) = fold.finish().ok()?;
    Some(Chain::new(offset, 1, 0, node))
}

impl Chain {
    fn node(&self) -> Option<Node> {
        self.body.repeated(self.count, self.stride).ok()
    }

    /// The copies that reach into the window.
    fn clipped(&self, window: Extent) -> Option<Chain> {
        let last = (window.end() - 1).checked_sub(self.offset)?;
        if self.count == 1 {
            return (window.offset < self.end()).then(|| self.clone());
        }
        let first = match (window.offset + 1).checked_sub(self.offset + self.body.end()) {
            None => 0,
            Some(beyond) => beyond.div_ceil(self.stride),
        };
        let end = (last / self.stride + 1).min(self.count);
        (first < end).then(|| {
            let offset = self.offset + first * self.stride;
            Chain::new(offset, end - first, self.stride, self.body.clone())
        })
    }

    /// Copies `[first, first + count)` of several, without any normalisation.
    fn copies(&self, first: u64, count: u64) -> Chain {
        Chain { offset: self.offset + first * self.stride, count, ..self.clone() }
    }
}

struct Meeting {
    steps: u32,
}

impl Meeting {
    /// Appends what two chains have in common; `None` gives up.
    fn meet(&mut self, one: &Chain, other: &Chain, out: &mut Fold) -> Option<()> {
        self.steps = self.steps.checked_sub(1)?;
        if out.len() as u64 > CLOSED_NODES {
            return None;
        }
        let start = one.offset.max(other.offset);
        let Some(length) = one.end().min(other.end()).checked_sub(start).filter(|&n| n > 0) else {
            return Some(());
        };
        let window = Extent::new(start, length);
        let (Some(one), Some(other)) = (one.clipped(window), other.clipped(window)) else {
            return Some(());
        };
        match (one.count, other.count) {
            (1, _) => self.meet_single(&one, &other, out),
            (_, 1) => self.meet_single(&other, &one, out),
            _ if one.stride <= other.stride => self.meet_copies(&one, &other, out),
            _ => self.meet_copies(&other, &one, out),
        }
    }

    /// A run or a sequence meets anything; a single Repeat would have shown its copies.
    fn meet_single(&mut self, single: &Chain, other: &Chain, out: &mut Fold) -> Option<()> {
        match &single.body.0 {
            Form::Bytes(length) => {
                let nest = Nest::new(other.offset, 0, other.node()?).ok()?;
                let cut = nest.cut_file(Extent::new(single.offset, *length))?;
                cut.chains().iter().try_for_each(|c| out.push(c.offset, &c.node()?).ok())
            }
            Form::Repeat(_) => {
                let copies = Chain::new(single.offset, 1, 0, single.body.clone());
                self.meet(&copies, other, out)
            }
            Form::Sequence(sequence) => {
                let parts = &sequence.parts;
                let from = other.offset.saturating_sub(single.offset);
                let first = parts.partition_point(|part| part.offset + part.node.end() <= from);
                // Only copies that reach into the window are left: they may all be before `single`.
                let until = other.end().saturating_sub(single.offset);
                for part in parts[first..].iter().take_while(|part| part.offset < until) {
                    let place = single.offset + part.offset;
                    self.meet(&Chain::new(place, 1, 0, part.node.clone()), other, out)?;
                }
                Some(())
            }
        }
    }

    /// Several copies meet several copies with the same or a larger stride.
    fn meet_copies(&mut self, fine: &Chain, coarse: &Chain, out: &mut Fold) -> Option<()> {
        if fine.stride == coarse.stride {
            return self.meet_in_step(fine, coarse, out);
        }
        let ratio = coarse.stride / fine.stride;
        let groups = fine.count / ratio;
        if !coarse.stride.is_multiple_of(fine.stride) || groups < 2 {
            let (few, many) =
                if coarse.count <= fine.count { (coarse, fine) } else { (fine, coarse) };
            if few.count > UNROLLED {
                return None;
            }
            return (0..few.count).try_for_each(|copy| {
                let copy = few.copies(copy, 1);
                self.meet(&copy, many, out)
            });
        }
        let body = fine.body.repeated(ratio, fine.stride).ok()?;
        let grouped = Chain { offset: fine.offset, count: groups, stride: coarse.stride, body };
        self.meet_in_step(&grouped, coarse, out)?;
        match fine.count % ratio {
            0 => Some(()),
            rest => self.meet(&fine.copies(groups * ratio, rest), coarse, out),
        }
    }

    /// Copies with one stride: copy i of one meets copy i + k of the other, for at most two k.
    fn meet_in_step(&mut self, one: &Chain, other: &Chain, out: &mut Fold) -> Option<()> {
        // All numbers are below 2^63, so i128 holds every sum and product here.
        let stride = i128::from(one.stride);
        let distance = i128::from(other.offset) - i128::from(one.offset);
        let lowest = (-i128::from(other.body.end()) - distance).div_euclid(stride) + 1;
        let highest = (i128::from(one.body.end()) - 1 - distance).div_euclid(stride);
        let (ones, others) = (i128::from(one.count), i128::from(other.count));
        // For each k: the copies of `one` it holds for, and what the first of them has in common.
        let mut met = Vec::with_capacity(2);
        for k in lowest..=highest {
            let (from, to) = (0.max(-k), ones.min(others - k));
            if from < to {
                let mut common = Fold::new();
                let own = one.copies(from as u64, 1);
                let own = Chain::new(own.offset, 1, 0, own.body);
                let its = other.copies((from + k) as u64, 1);
                let its = Chain::new(its.offset, 1, 0, its.body);
                self.meet(&own, &its, &mut common)?;
                let (offset, node) = common.finish().ok()?;
                met.push((from as u64, to as u64, offset, node));
            }
        }
        let mut seams: Vec<u64> = met.iter().flat_map(|&(from, to, ..)| [from, to]).collect();
        seams.sort_unstable();
        seams.dedup();
        for between in seams.windows(2) {
            let (from, to) = (between[0], between[1]);
            let mut copy = Fold::new();
            for (first, end, offset, node) in &met {
                if *first <= from && to <= *end {
                    copy.push(offset + (from - first) * one.stride, node).ok()?;
                }
            }
            let (offset, node) = copy.finish().ok()?;
            out.push(offset, &node.repeated(to - from, one.stride).ok()?).ok()?;
        }
        Some(())
    }
}
