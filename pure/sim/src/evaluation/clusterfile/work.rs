//! What the programs of the evaluation write and read: nests of 16 ranks, call by call.

use iolab_pattern::nest::{Distribution, Order};
use iolab_pattern::{Datatype, Nest};
use iolab_vocab::{Extent, Refusal};

/// Processes of every program.
pub const RANKS: u32 = 16;

/// Records of the block-tridiagonal kernel, each written by one collective call.
const RECORDS: u64 = 40;
/// Doubles of a point.
const POINT_BYTES: u64 = 5 * 8;
/// Of the block-tridiagonal kernel's grid of processes, in each dimension.
const GRID: u64 = 4;
/// Of the three-dimensional block.
const ELEMENT_BYTES: u64 = 16;

/// Problem class of the block-tridiagonal kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Class {
    /// 64 points in each dimension.
    A,
    /// 102.
    B,
    /// 162.
    C,
}

/// A program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Work {
    /// The I/O of the block-tridiagonal benchmark: 40 records of a cube of points, by diagonal
    /// multi-partitioning.
    BlockTridiagonal(Class),
    /// A cube of elements of 16 bytes in blocks, one for each rank, in one call.
    Block(u64),
    /// A square matrix of bytes of so many rows, dealt in squares of `run` bytes to 4 x 4 ranks.
    Cyclic {
        /// Length of a run.
        run: u64,
        /// Rows, and columns.
        rows: u64,
    },
    /// The same matrix, dealt in columns of `run` bytes to the ranks: `*`, CYCLIC(k).
    Columns {
        /// Length of a run.
        run: u64,
        /// Rows, and columns.
        rows: u64,
    },
}

/// Bytes `[from, to)` of a nest: what a rank accesses in one call.
#[derive(Clone, Debug)]
pub struct Part {
    nest: Nest,
    from: u64,
    to: u64,
}

impl Class {
    /// All of them.
    pub const ALL: [Class; 3] = [Class::A, Class::B, Class::C];

    /// As the table calls it.
    pub const fn name(self) -> &'static str {
        match self {
            Class::A => "A",
            Class::B => "B",
            Class::C => "C",
        }
    }

    const fn points(self) -> u64 {
        match self {
            Class::A => 64,
            Class::B => 102,
            Class::C => 162,
        }
    }
}

impl Work {
    /// As results call it.
    pub fn name(self) -> String {
        match self {
            Work::BlockTridiagonal(class) => format!("block-tridiagonal {}", class.name()),
            Work::Block(points) => format!("block {points}^3"),
            Work::Cyclic { run, rows } => format!("cyclic({run}) {} MiB", (rows * rows) >> 20),
            Work::Columns { run, rows } => format!("*,cyclic({run}) {} MiB", (rows * rows) >> 20),
        }
    }

    /// Bytes of the file.
    pub fn bytes(self) -> u64 {
        self.calls() * self.call_bytes()
    }

    /// Collective calls in each direction.
    pub const fn calls(self) -> u64 {
        match self {
            Work::BlockTridiagonal(_) => RECORDS,
            Work::Block(_) | Work::Cyclic { .. } | Work::Columns { .. } => 1,
        }
    }

    /// Bytes of all ranks in one call; calls follow each other in the file.
    pub fn call_bytes(self) -> u64 {
        match self {
            Work::BlockTridiagonal(class) => class.points().pow(3) * POINT_BYTES,
            Work::Block(points) => points.pow(3) * ELEMENT_BYTES,
            Work::Cyclic { rows, .. } | Work::Columns { rows, .. } => rows * rows,
        }
    }

    /// The bytes of the file that a call is about.
    pub fn extent(self, call: u64) -> Extent {
        Extent::new(call * self.call_bytes(), self.call_bytes())
    }

    /// What a rank accesses in a call.
    ///
    /// # Errors
    /// If there is no such set.
    pub fn part(self, rank: u32, call: u64) -> Result<Part, Refusal> {
        let rank = u64::from(rank);
        let extent = self.extent(call);
        let nest = match self {
            Work::BlockTridiagonal(class) => {
                multipartition(class.points(), rank)?.view(extent.offset)?
            }
            Work::Block(points) => {
                let sizes = [points; 3];
                let blocks = [Distribution::Block(None); 3];
                Datatype::bytes(ELEMENT_BYTES)?
                    .darray(rank, &sizes, &blocks, &[4, 2, 2], Order::C)?
                    .view(0)?
            }
            Work::Cyclic { run, rows } => {
                let cyclic = [Distribution::Cyclic(run); 2];
                Datatype::bytes(1)?
                    .darray(rank, &[rows; 2], &cyclic, &[GRID; 2], Order::C)?
                    .view(0)?
            }
            Work::Columns { run, rows } => {
                let columns = [Distribution::None, Distribution::Cyclic(run)];
                Datatype::bytes(1)?
                    .darray(rank, &[rows; 2], &columns, &[1, u64::from(RANKS)], Order::C)?
                    .view(0)?
            }
        };
        let below = |x| nest.rank(x).unwrap_or(0);
        let (from, to) = (below(extent.offset), below(extent.end()));
        Ok(Part { nest, from, to })
    }
}

/// The cells of a rank: one in each slab of the cube, on a diagonal, so that every rank has work in every
/// sweep (Naik 1995).
fn multipartition(points: u64, rank: u64) -> Result<Datatype, Refusal> {
    let (column, row) = (rank % GRID, rank / GRID);
    let point = Datatype::bytes(POINT_BYTES)?;
    // The first cells have one point more where they do not come out even.
    let length = |cell: u64| points / GRID + u64::from(cell < points % GRID);
    let start = |cell: u64| (0..cell).map(length).sum::<u64>();
    let mut cells = Vec::new();
    for slab in 0..GRID {
        let place = [slab, (row + GRID - slab) % GRID, (column + slab) % GRID];
        let (lengths, starts) = (place.map(length), place.map(start));
        cells.push(point.subarray(&[points; 3], &lengths, &starts, Order::C)?);
    }
    let parts: Vec<_> = cells.iter().map(|cell| (1, 0, cell)).collect();
    Datatype::structure(&parts)
}

impl Part {
    /// As bytes `[from, to)` of a nest.
    pub fn view(&self) -> (Nest, u64, u64) {
        (self.nest.clone(), self.from, self.to)
    }

    /// How many bytes it has.
    pub fn bytes(&self) -> u64 {
        self.to - self.from
    }

    /// Bytes and runs that it has of a range of the file.
    pub fn within(&self, range: Extent) -> (u64, u64) {
        let below = |x| self.nest.rank(x).unwrap_or(0).clamp(self.from, self.to);
        let (from, to) = (below(range.offset), below(range.end()));
        (to - from, self.nest.cut(from, to).run_count())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_ranks_of_every_call_cover_its_bytes_once() {
        let works = [
            Work::BlockTridiagonal(Class::A),
            Work::BlockTridiagonal(Class::B),
            Work::Block(64),
            Work::Cyclic { run: 32, rows: 1024 },
            Work::Columns { run: 32, rows: 1024 },
        ];
        for work in works {
            let call = work.calls() - 1;
            let mut all = Vec::new();
            for rank in 0..RANKS {
                let part = work.part(rank, call).unwrap();
                let before = all.len();
                let (nest, from, to) = part.view();
                let cut = nest.cut(from, to);
                all.extend(cut.runs().map(|run| Extent::new(run.offset, run.length)));
                let bytes: u64 = all[before..].iter().map(|run| run.length).sum();
                assert_eq!(bytes, part.bytes(), "{}", work.name());
                assert_eq!(part.within(work.extent(call)), (bytes, (all.len() - before) as u64));
            }
            all.sort_unstable();
            let mut at = work.extent(call).offset;
            for run in all {
                assert_eq!(run.offset, at, "{}", work.name());
                at = run.end();
            }
            assert_eq!(at, work.bytes(), "{}", work.name());
        }
    }

    #[test]
    fn files_are_as_large_as_published() {
        for (class, published) in Class::ALL.into_iter().zip(super::super::published()) {
            let bytes = Work::BlockTridiagonal(class).bytes() as f64 / 1e6;
            assert!((bytes - published.megabytes).abs() < 0.01, "{bytes}");
        }
    }
}
