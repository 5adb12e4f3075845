//! Access patterns: which bytes of a file a rank touches with its n-th operation.
//!
//! A pattern is a function `(rank, index) -> Access`, never a generator: any position is reached
//! without replaying what came before, so a stopped run resumes, a plan of 10⁹ operations needs
//! constant memory, and the simulator may ask in any order. Nothing is flattened: a nested-strided
//! set stays `(offset, block, levels of count and stride)` from here down to the MPI datatype.
//!
//! [`Nest`] is the form that says every set, with sequences and tiles, and the order of its bytes;
//! `Strided` is the chain among them. Patterns do not make nests yet.
//!
//! A new pattern is one file with one [`Row`] in `catalog.rs`; the row feeds the command line, the
//! documentation and the shared checks (contract on all small shapes, golden drawing for 4 ranks).

mod access;
mod block_tridiagonal;
mod catalog;
mod contract;
mod database;
mod draw;
mod flash;
mod hpf;
mod interleaved;
mod mesh;
pub mod nest;
mod nested;
mod permuted;
mod random_strided;
mod recorded;
mod segmented;
mod sequential;
mod settings;
mod strided;
mod tiled;

pub use access::{Access, DEPTH, Level, Piece, Strided};
pub use catalog::{Catalog, Row};
pub use contract::{Contract, Violation, check};
pub use draw::{draw_svg, draw_text, drawn_pieces};
pub use nest::{Chain, Cut, Datatype, Intersection, Nest, Node, Shape};
pub use recorded::Recorded;
pub use settings::{Parameter, Settings, parse_spec};

use iolab_vocab::Rank;

/// Which bytes are touched by each operation of each rank.
pub trait Pattern: Send + Sync {
    /// How many operations this rank makes.
    fn operations(&self, rank: Rank) -> u64;

    /// Writes into `access` where operation `index` of `rank` goes, in file and memory.
    /// `index` is below [`Pattern::operations`].
    fn place(&self, rank: Rank, index: u64, access: &mut Access);

    /// Size of the file (of each file, when every rank has its own).
    fn file_bytes(&self) -> u64;

    /// Size of the buffer that one operation needs, holes included.
    fn memory_bytes(&self) -> u64;

    /// What the operations of all ranks together promise about the bytes of the file.
    fn contract(&self) -> Contract;

    /// Whether writing needs a file of its own for every rank.
    fn writes_own_file(&self) -> bool {
        false
    }

    /// All operations of a rank as one set, in order, where that is one compact form: what a file
    /// view is made of. `None` where the operations are not in one regular order.
    fn whole(&self, _rank: Rank) -> Option<Strided> {
        None
    }
}
