//! The runs of a cut, one by one, in the order of the view.
//!
//! Promises: every byte once for each time it is in the order; a run is one leaf of the tree, so
//! neighbours from different copies stay two runs.
//!
//! Costs: a stack of as many frames as the cut is deep, allocated once; O(1) per run.

use super::cut::{Chain, Cut};
use super::node::{Form, Node, Part};
use iolab_vocab::Extent;

enum Frame<'a> {
    Copies { body: &'a Node, at: u64, stride: u64, left: u64 },
    Parts { parts: &'a [Part], base: u64 },
}

/// See [`Cut::runs`].
pub struct Runs<'a> {
    chains: std::slice::Iter<'a, Chain>,
    stack: Vec<Frame<'a>>,
}

impl Cut {
    /// The runs, in the order of the view.
    pub fn runs(&self) -> Runs<'_> {
        let deepest = self.chains().iter().map(|chain| chain.body.depth()).max();
        Runs { chains: self.chains().iter(), stack: Vec::with_capacity(deepest.unwrap_or(0)) }
    }
}

impl Iterator for Runs<'_> {
    type Item = Extent;

    fn next(&mut self) -> Option<Extent> {
        loop {
            let (node, at) = match self.stack.last_mut() {
                None => {
                    let &Chain { offset: at, count: left, stride, ref body } =
                        self.chains.next()?;
                    self.stack.push(Frame::Copies { body, at, stride, left });
                    continue;
                }
                Some(Frame::Copies { body, at, stride, left }) if *left > 0 => {
                    let here = *at;
                    *left -= 1;
                    // One beyond the last copy is below 2^64: both numbers are below 2^63.
                    *at += *stride;
                    (*body, here)
                }
                Some(Frame::Parts { parts, base }) if !parts.is_empty() => {
                    let part = &parts[0];
                    *parts = &parts[1..];
                    (&part.node, *base + part.offset)
                }
                Some(_) => {
                    self.stack.pop();
                    continue;
                }
            };
            match &node.0 {
                Form::Bytes(length) => return Some(Extent::new(at, *length)),
                Form::Repeat(r) => {
                    let (body, stride, left) = (&r.body, r.stride, r.count);
                    self.stack.push(Frame::Copies { body, at, stride, left });
                }
                Form::Sequence(sequence) => {
                    self.stack.push(Frame::Parts { parts: &sequence.parts, base: at });
                }
            }
        }
    }
}
