//! `Nest`: the one form of non-contiguous sets of bytes, in file and memory.
//!
//! A tree of runs, copies and parts (`nest/node.rs`), repeated as a tile. It is the nested FALLS of
//! Clusterfile (Isaila and Tichy, Cluster 2001) and what an MPI datatype says: a set with an order.
//! A nest has a *view*, its bytes in order as if nothing lay between them, and functions that map
//! offsets of the view to offsets of the file and back.
//!
//! Promises: a nest that exists is canonical and in range: equal sets have equal nests where folding
//! finds it (`nest/fold.rs`), and no later operation can overflow. Nothing is ever flattened to an
//! entry per run if a `Repeat` says it. The lowest byte of the root is at the displacement, whatever
//! was given; a nest without bytes has displacement and extent 0.
//!
//! Costs: mapping O(D log f) for depth D and the widest sequence f, without allocation; each of the
//! others says its own in `nest/*.rs`.

mod array;
mod binary;
mod chain;
mod cursor;
mod cut;
mod datatype;
mod fold;
mod intersect;
mod mapping;
mod node;
mod runs;
mod text;
mod transfer;

pub use array::{Distribution, Order};
pub use cursor::{CommonRuns, Intersection};
pub use cut::{Chain, Cut};
pub use datatype::Datatype;
pub use intersect::CLOSED_NODES;
pub use node::{LARGEST, NEST_DEPTH, NEST_NODES, Node, Part, Shape};
pub use runs::Runs;

use iolab_vocab::Refusal;

/// A set of bytes with an order: a node, repeated every `extent` bytes from `displacement` on.
///
/// ```
/// use iolab_pattern::{Nest, Node};
/// // Columns 0 and 1 of every four, of every other row pair of a 16 × 16 matrix of bytes.
/// let tile = Node::bytes(2)?.repeated(4, 4)?.repeated(2, 16)?.repeated(4, 64)?;
/// let view = Nest::new(0, 256, tile)?;
/// assert_eq!(view.at(18), Some(68));
/// assert_eq!(view.rank(68), Some(18));
/// # Ok::<(), iolab_vocab::Refusal>(())
/// ```
#[derive(Clone, PartialEq, Eq)]
pub struct Nest {
    displacement: u64,
    extent: u64,
    root: Node,
}

impl Nest {
    /// The set without bytes.
    pub const EMPTY: Nest = Nest { displacement: 0, extent: 0, root: Node::EMPTY };

    /// All bytes of a file, in their order.
    ///
    /// ```
    /// use iolab_pattern::Nest;
    /// assert_eq!(Nest::WHOLE_FILE, "1 every 1".parse()?);
    /// assert_eq!(Nest::WHOLE_FILE.at(7), Some(7));
    /// # Ok::<(), iolab_vocab::Refusal>(())
    /// ```
    pub const WHOLE_FILE: Nest =
        Nest { displacement: 0, extent: 1, root: Node(node::Form::Bytes(1)) };

    /// `root` every `extent` bytes from `displacement` on; once, for an extent of 0.
    pub fn new(displacement: u64, extent: u64, root: Node) -> Result<Nest, Refusal> {
        let what = || format!("a nest of {} bytes at {displacement}", root.size());
        let end = displacement.checked_add(root.end());
        if extent > LARGEST || end.is_none_or(|end| end > LARGEST) {
            return Err(node::too_large(&what()));
        }
        Ok(if root.is_empty() { Nest::EMPTY } else { Nest { displacement, extent, root } })
    }

    /// Parts at offsets, in that order, every `extent` bytes from `displacement` on.
    pub fn of_parts<I>(displacement: u64, extent: u64, parts: I) -> Result<Nest, Refusal>
    where
        I: IntoIterator<Item = (u64, Node)>,
    {
        let (lowest, root) = Node::sequence(parts)?;
        let displacement = node::offset("a nest", displacement.checked_add(lowest))?;
        Nest::new(displacement, extent, root)
    }

    /// Where the lowest byte is.
    pub const fn displacement(&self) -> u64 {
        self.displacement
    }

    /// From one tile to the next; 0: there is one.
    pub const fn extent(&self) -> u64 {
        self.extent
    }

    /// One tile.
    pub const fn root(&self) -> &Node {
        &self.root
    }

    /// Whether offsets ascend without overlap, as writing through a view demands.
    pub fn proper(&self) -> bool {
        self.root.proper() && (self.extent == 0 || self.extent >= self.root.end())
    }

    /// Whether offsets never go back, as MPI demands of filetypes and etypes also for reading; they may overlap.
    /// Costs nothing for a proper nest, otherwise a look at each run of a tile.
    pub fn ordered(&self) -> bool {
        let offsets_ascend =
            || self.cut(0, self.root.size()).runs().is_sorted_by_key(|run| run.offset);
        self.proper() || offsets_ascend()
    }

    /// An error that says so, unless the nest is ordered.
    pub fn check_ordered(&self) -> Result<(), Refusal> {
        if self.ordered() {
            return Ok(());
        }
        Err(Refusal::new(
            format!("the offsets of nest `{}` go back", self.named()),
            "order its parts by offset",
        ))
    }

    /// An error that says so, unless the nest is proper.
    pub fn check_proper(&self) -> Result<(), Refusal> {
        if self.proper() {
            return Ok(());
        }
        Err(Refusal::new(
            format!("the offsets of nest `{}` do not ascend without overlap", self.named()),
            "order its parts by offset, and give it an extent of at least its span",
        ))
    }

    /// How many bytes the view has: those of all whole tiles below 2^63, and of the part of one
    /// that is left there if the nest is proper.
    pub fn size(&self) -> u64 {
        if self.extent == 0 {
            return self.root.size();
        }
        if self.proper() {
            return self.rank_proper(LARGEST);
        }
        let more = (LARGEST - self.displacement - self.root.end()) / self.extent;
        (more + 1).saturating_mul(self.root.size()).min(LARGEST)
    }

    /// V(y): where byte `y` of the view lies in the file; `None` beyond the end of the view.
    pub fn at(&self, y: u64) -> Option<u64> {
        self.run_at(y).map(|(offset, _)| offset)
    }

    /// Where byte `y` of the view lies, and how many bytes its run still has from there on.
    fn run_at(&self, y: u64) -> Option<(u64, u64)> {
        let size = self.root.size();
        if size == 0 || (self.extent == 0 && y >= size) {
            return None;
        }
        let (offset, left) = self.root.run_at(y % size);
        let tile = (y / size).checked_mul(self.extent)?.checked_add(self.displacement)?;
        let offset = tile.checked_add(offset).filter(|&offset| offset < LARGEST)?;
        // A tile that is one run without a hole goes on in the next.
        let endless = self.extent > 0 && self.root.0 == node::Form::Bytes(self.extent);
        Some((offset, if endless { LARGEST - offset } else { left.min(LARGEST - offset) }))
    }

    /// V⁻¹(x): how many bytes of the view lie before offset `x` of the file; `None` for a nest that
    /// is not proper.
    pub fn rank(&self, x: u64) -> Option<u64> {
        self.proper().then(|| self.rank_proper(x))
    }

    fn rank_proper(&self, x: u64) -> u64 {
        let x = x.min(LARGEST).saturating_sub(self.displacement);
        match self.extent {
            0 => self.root.rank(x),
            // A tile has no more bytes than its extent, so the product is at most x.
            extent => x / extent * self.root.size() + self.root.rank(x % extent),
        }
    }

    /// The nest in an error message: its text, unless that is long.
    fn named(&self) -> String {
        match self.root.nodes() {
            0..=32 => self.to_string(),
            nodes => format!("of {nodes} nodes at {}", self.displacement),
        }
    }
}
