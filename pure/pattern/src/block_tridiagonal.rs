//! Block-tridiagonal: the diagonal multi-partitioning of BT-IO on a square number of ranks.
//!
//! The n³ grid is cut into q³ cells for q² ranks; every rank owns q cells on a diagonal, so that
//! a sweep along any axis keeps all ranks busy. Cell c of a rank lies at
//! (x + c mod q, y − c mod q, c), as NPB's `make_set` places them. One operation writes one cell
//! (a 3-D subarray of 5 doubles per point); a step appends the whole solution to the file.
//!
//! ```text
//! plane z=0   0 1      plane z=1   3 2      q = 2, four ranks
//!             2 3                  1 0
//! ```

use crate::{Access, Contract, Parameter, Pattern, Row, Settings, Strided};
use iolab_vocab::{Rank, Refusal};

pub(crate) const ROW: Row = Row {
    name: "block-tridiagonal",
    title: "block-tridiagonal",
    summary: "BT-IO: each of q² ranks owns q cells on a diagonal of an n³ grid",
    parameters: &[
        Parameter { name: "points", default: "24", meaning: "grid points per dimension" },
        Parameter { name: "steps", default: "2", meaning: "solutions after each other" },
        Parameter { name: "element", default: "40", meaning: "bytes per point: 5 doubles" },
    ],
    size: "element",
    count: "steps",
    small: "points=4,steps=1,element=1",
    build,
};

struct BlockTridiagonal {
    cells: u64,
    points: u64,
    steps: u64,
    element: u64,
}

fn build(settings: &Settings) -> Result<Box<dyn Pattern>, Refusal> {
    let cells = settings.ranks.isqrt();
    if cells * cells != settings.ranks {
        return Err(Refusal::new(
            format!("pattern block-tridiagonal cannot use {} ranks", settings.ranks),
            format!("give a square number: {} or {}", cells * cells, (cells + 1).pow(2)),
        ));
    }
    let points = settings.count("points")?;
    if points < cells {
        return Err(settings.wrong("points", "must not be below the square root of the ranks"));
    }
    let (steps, element) = (settings.count("steps")?, settings.bytes("element")?);
    settings.volume(&[points, points, points, element, steps])?;
    Ok(Box::new(BlockTridiagonal { cells, points, steps, element }))
}

impl BlockTridiagonal {
    /// Start and length of cell `index` along one axis; the first cells take what is left over.
    fn axis(&self, index: u64) -> (u64, u64) {
        let (length, rest) = (self.points / self.cells, self.points % self.cells);
        (index * length + index.min(rest), length + u64::from(index < rest))
    }

    fn solution_bytes(&self) -> u64 {
        self.points.pow(3) * self.element
    }
}

impl Pattern for BlockTridiagonal {
    fn operations(&self, _rank: Rank) -> u64 {
        self.cells * self.steps
    }

    fn place(&self, rank: Rank, index: u64, access: &mut Access) {
        let (step, cell) = (index / self.cells, index % self.cells);
        let rank = u64::from(rank.0);
        let (x, wide) = self.axis((rank % self.cells + cell) % self.cells);
        let (y, high) = self.axis((rank / self.cells + self.cells - cell) % self.cells);
        let (z, deep) = self.axis(cell);
        let point = (z * self.points + y) * self.points + x;
        let start = step * self.solution_bytes() + point * self.element;
        let row = self.points * self.element;
        let rows = Strided::contiguous(start, wide * self.element).repeated(high, row);
        access.set(rows.repeated(deep, row * self.points));
    }

    fn file_bytes(&self) -> u64 {
        self.solution_bytes() * self.steps
    }

    fn memory_bytes(&self) -> u64 {
        self.points.div_ceil(self.cells).pow(3) * self.element
    }

    fn contract(&self) -> Contract {
        Contract::ExactlyOnce
    }
}
