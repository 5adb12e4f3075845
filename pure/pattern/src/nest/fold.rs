//! How parts become one node: the canonical form of a sequence.
//!
//! Neighbouring runs merge. Parts are pushed in their order onto a stack, a run only when what
//! follows does not continue it, and the top of the stack is reduced as long as a rule holds: a `Repeat` takes in the copy that continues it, on either side; equal
//! nodes fold into a `Repeat`, runs only from three on (two of them are as short as two entries,
//! and arbitrary displacements shall stay entries); groups of up to [`PERIOD`] parts that return
//! at a distance fold likewise.
//!
//! Promises: the order of the bytes stays. Folding what was folded changes nothing: each prefix of
//! a finished stack had been irreducible when its last part was made. Equal sets get equal nodes
//! where these rules find it: grids of runs in any cut into rows do; a period above [`PERIOD`],
//! or a run that reaches from one copy into the next, is not found.
//!
//! Costs: O([`PERIOD`]²) comparisons per part, nearly all of them of two words.

use super::node::{Form, LARGEST, NEST_DEPTH, Node, Part, too_large};
use iolab_vocab::Refusal;

/// How many parts a group that repeats may have. Ragged edges of 3-D arrays make up to 2^3.
const PERIOD: usize = 8;

pub(super) struct Fold {
    parts: Vec<(u64, Node)>,
    /// The last run, offset and length, while the next part may still continue it.
    growing: Option<(u64, u64)>,
}

/// The bottom of a reduction: which parts from the top it replaces, and by what.
struct Reduction {
    taken: usize,
    at: u64,
    node: Node,
}

impl Node {
    /// Parts at offsets, in that order: where the lowest byte is, and the set from there on.
    ///
    /// Neighbours merge and equal parts at equal distances fold.
    pub fn sequence<I>(parts: I) -> Result<(u64, Node), Refusal>
    where
        I: IntoIterator<Item = (u64, Node)>,
    {
        let mut fold = Fold::new();
        for (offset, node) in parts {
            fold.push(offset, &node)?;
        }
        fold.finish()
    }
}

impl Fold {
    pub(super) const fn new() -> Fold {
        Fold { parts: Vec::new(), growing: None }
    }

    /// How many parts are on the stack.
    pub(super) fn len(&self) -> usize {
        self.parts.len()
    }

    pub(super) fn push(&mut self, offset: u64, node: &Node) -> Result<(), Refusal> {
        if offset.checked_add(node.end()).is_none_or(|end| end > LARGEST) {
            return Err(too_large(&format!("a part of {} bytes at {offset}", node.size())));
        }
        match &node.0 {
            Form::Bytes(0) => Ok(()),
            Form::Sequence(sequence) => sequence
                .parts
                .iter()
                .try_for_each(|part| self.push_single(offset + part.offset, &part.node)),
            _ => self.push_single(offset, node),
        }
    }

    /// Two equal runs are two parts, however they came.
    fn push_single(&mut self, offset: u64, node: &Node) -> Result<(), Refusal> {
        match &node.0 {
            Form::Bytes(length) => self.push_run(offset, *length),
            Form::Repeat(r) if r.count == 2 && matches!(r.body.0, Form::Bytes(_)) => {
                self.push_run(offset, r.body.size())?;
                self.push_run(offset + r.stride, r.body.size())
            }
            _ => {
                self.push_grown()?;
                self.push_reduced(offset, node.clone())
            }
        }
    }

    fn push_run(&mut self, offset: u64, length: u64) -> Result<(), Refusal> {
        match &mut self.growing {
            // Both numbers are below 2^63.
            Some((at, grown)) if *at + *grown == offset => *grown += length,
            _ => {
                self.push_grown()?;
                self.growing = Some((offset, length));
            }
        }
        Ok(())
    }

    fn push_grown(&mut self) -> Result<(), Refusal> {
        match self.growing.take() {
            Some((offset, length)) => self.push_reduced(offset, Node::bytes(length)?),
            None => Ok(()),
        }
    }

    fn push_reduced(&mut self, offset: u64, node: Node) -> Result<(), Refusal> {
        self.parts.push((offset, node));
        while let Some(Reduction { taken, at, node }) = self.reduction()? {
            self.parts.truncate(self.parts.len() - taken);
            self.parts.push((at, node));
        }
        Ok(())
    }

    fn reduction(&self) -> Result<Option<Reduction>, Refusal> {
        let Some(merged) = self.merged()? else {
            for period in 1..=PERIOD.min(self.parts.len() - 1) {
                let found = match self.continued(period)? {
                    None => self.returned(period)?,
                    found => found,
                };
                // Below a sequence there has to be room for this node.
                if let Some(found) = found.filter(|found| found.node.depth() < NEST_DEPTH) {
                    return Ok(Some(found));
                }
            }
            return Ok(None);
        };
        Ok(Some(merged))
    }

    /// Two Repeats one of which goes on where the other ends.
    fn merged(&self) -> Result<Option<Reduction>, Refusal> {
        let [.., (at, below), (next, top)] = self.parts.as_slice() else { return Ok(None) };
        let (Form::Repeat(one), Form::Repeat(more)) = (&below.0, &top.0) else { return Ok(None) };
        let goes_on = one.stride == more.stride
            && at.checked_add(one.count * one.stride) == Some(*next)
            && one.body == more.body;
        if !goes_on {
            return Ok(None);
        }
        let node = one.body.repeated(one.count + more.count, one.stride)?;
        Ok(Some(Reduction { taken: 2, at: *at, node }))
    }

    /// A Repeat followed or preceded by the `period` parts of one more copy.
    fn continued(&self, period: usize) -> Result<Option<Reduction>, Refusal> {
        let group = &self.parts[self.parts.len() - 1 - period..];
        let (first, last) = (&group[0], &group[period]);
        if let Form::Repeat(r) = &first.1.0 {
            let next = first.0.checked_add(r.count * r.stride);
            if next.is_some_and(|next| is_copy(&group[1..], &r.body, next)) {
                let node = r.body.repeated(r.count + 1, r.stride)?;
                return Ok(Some(Reduction { taken: period + 1, at: first.0, node }));
            }
        }
        if let Form::Repeat(r) = &last.1.0 {
            let before = last.0.checked_sub(r.stride);
            if let Some(at) = before.filter(|&at| is_copy(&group[..period], &r.body, at)) {
                let node = r.body.repeated(r.count + 1, r.stride)?;
                return Ok(Some(Reduction { taken: period + 1, at, node }));
            }
        }
        Ok(None)
    }

    /// A group of `period` parts that stands twice on top, at one distance; a run three times.
    fn returned(&self, period: usize) -> Result<Option<Reduction>, Refusal> {
        let is_run = period == 1 && matches!(self.parts.last(), Some((_, Node(Form::Bytes(_)))));
        let times = if is_run { 3 } else { 2 };
        let Some(start) = self.parts.len().checked_sub(times * period) else { return Ok(None) };
        let group = &self.parts[start..];
        let Some(distance) = group[period].0.checked_sub(group[0].0) else { return Ok(None) };
        let again = |i: usize| {
            let ((at, node), (next, same)) = (&group[i], &group[i + period]);
            at.checked_add(distance) == Some(*next) && node == same
        };
        if !(0..group.len() - period).rev().all(again) {
            return Ok(None);
        }
        // A group deeper than a nest may be is not folded, and no error.
        let depth = group[..period].iter().map(|(_, node)| node.depth()).max().unwrap_or(1);
        if depth + 2 >= NEST_DEPTH {
            return Ok(None);
        }
        let (at, body) = finished(group[..period].to_vec())?;
        let node = body.repeated(times as u64, distance)?;
        Ok(Some(Reduction { taken: times * period, at, node }))
    }

    /// Where the lowest byte is, and everything as one node.
    pub(super) fn finish(mut self) -> Result<(u64, Node), Refusal> {
        self.push_grown()?;
        finished(self.parts)
    }
}

/// Whether these parts are the parts of `body` at `offset`.
fn is_copy(parts: &[(u64, Node)], body: &Node, offset: u64) -> bool {
    let is = |part: &(u64, Node), at: u64, node: &Node| {
        offset.checked_add(at) == Some(part.0) && part.1 == *node
    };
    match (&body.0, parts) {
        (Form::Sequence(sequence), parts) => {
            let same = |(part, own): (&(u64, Node), &Part)| is(part, own.offset, &own.node);
            sequence.parts.len() == parts.len() && parts.iter().zip(&sequence.parts).all(same)
        }
        (Form::Repeat(r), [one, other]) if r.count == 2 => {
            is(one, 0, &r.body) && is(other, r.stride, &r.body)
        }
        (_, [part]) => is(part, 0, body),
        _ => false,
    }
}

/// Irreducible parts as one node.
fn finished(mut parts: Vec<(u64, Node)>) -> Result<(u64, Node), Refusal> {
    match parts.as_slice() {
        [] => return Ok((0, Node::EMPTY)),
        [(offset, node)] => return Ok((*offset, node.clone())),
        [(at, node), (next, same)] if node == same && at <= next => {
            return Ok((*at, node.repeated(2, next - at)?));
        }
        _ => {}
    }
    let lowest = parts.iter().map(|(offset, _)| *offset).min().unwrap_or(0);
    parts.iter_mut().for_each(|(offset, _)| *offset -= lowest);
    Ok((lowest, Node::of_parts(parts)?))
}
