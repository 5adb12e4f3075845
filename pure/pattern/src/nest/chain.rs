//! Nests and `Strided`: the chain of at most [`DEPTH`] levels, without sequences and tile.
//!
//! Promises: what converts comes back equal. A `Strided` that leaves the range of a file offset is
//! refused; a nest that is no such chain has none.
//!
//! Costs: O(levels).

use super::Nest;
use super::cut::Chain;
use super::node::{Form, Node};
use crate::{DEPTH, Strided};
use iolab_vocab::Refusal;

impl Nest {
    /// The same bytes in the same order.
    pub fn of_strided(strided: &Strided) -> Result<Nest, Refusal> {
        let mut node = Node::bytes(strided.block)?;
        for level in strided.levels() {
            node = node.repeated(level.count, level.stride)?;
        }
        Nest::new(strided.offset, 0, node)
    }

    /// The same bytes in the same order, when one tile of at most [`DEPTH`] levels says them.
    pub fn to_strided(&self) -> Option<Strided> {
        let once = Chain::new(self.displacement, 1, 0, self.root.clone());
        if self.extent == 0 { once.to_strided() } else { None }
    }
}

impl Chain {
    /// The same bytes in the same order, when at most [`DEPTH`] levels say them.
    pub fn to_strided(&self) -> Option<Strided> {
        // Levels from the outside in; a Strided is built from the inside out.
        let mut levels = [(self.count, self.stride); DEPTH];
        let mut depth = usize::from(self.count > 1);
        let mut node = &self.body;
        while let Form::Repeat(r) = &node.0 {
            *levels.get_mut(depth)? = (r.count, r.stride);
            depth += 1;
            node = &r.body;
        }
        let Form::Bytes(length) = node.0 else { return None };
        let block = Strided::contiguous(self.offset, length);
        let inward = levels[..depth].iter().rev();
        Some(inward.fold(block, |set, &(count, stride)| set.repeated(count, stride)))
    }
}
