//! HPF distributions: an n-D array over an n-D grid of ranks, BLOCK or CYCLIC(k) per dimension.
//!
//! The matrix and 3-D block tests of Clusterfile and ROMIO's coll_perf. Row-major: the last
//! dimension is contiguous. BLOCK gives each grid position one range of ⌈n/p⌉ indices, CYCLIC(k)
//! deals chunks of k round robin, `whole` does not divide. Ragged edges give an operation up to
//! 2ⁿ nested-strided sets: the full chunks and the last short one of every dimension.
//!
//! ```text
//! block/block on 2×2     0 0 1 1        cyclic-1/whole on 4×1    0 0 0 0
//!                        0 0 1 1                                 1 1 1 1
//!                        2 2 3 3                                 2 2 2 2
//!                        2 2 3 3                                 3 3 3 3
//! ```

use crate::{Access, Contract, DEPTH, Parameter, Pattern, Row, Settings, Strided};
use iolab_vocab::{Rank, Refusal};

pub(crate) const ROW: Row = Row {
    name: "hpf",
    title: "HPF block / cyclic(k)",
    summary: "an n-D array over a grid of ranks, block or cyclic per dimension",
    parameters: &[
        Parameter { name: "array", default: "64x64", meaning: "elements per dimension" },
        Parameter {
            name: "grid",
            default: "",
            meaning: "ranks per dimension; empty: all on the first",
        },
        Parameter { name: "dist", default: "block", meaning: "block, cyclic-k or whole, by `/`" },
        Parameter { name: "element", default: "8", meaning: "bytes of an element" },
        Parameter { name: "frames", default: "1", meaning: "operations: arrays after each other" },
    ],
    size: "element",
    count: "frames",
    small: "array=6x6,grid=2x2,dist=cyclic-2/block,element=1",
    build,
};

/// One dimension: how many indices, over how many ranks, in chunks of what length.
#[derive(Clone, Copy)]
struct Dimension {
    extent: u64,
    ranks: u64,
    chunk: u64,
}

/// `count` chunks of `length` indices, `stride` apart, from `start` on.
#[derive(Clone, Copy)]
struct Run {
    start: u64,
    length: u64,
    count: u64,
    stride: u64,
}

impl Dimension {
    /// What the rank at `position` of this dimension owns: its full chunks, then its short one.
    fn runs(&self, position: u64) -> impl Iterator<Item = Run> {
        let stride = self.ranks * self.chunk;
        let start = position * self.chunk;
        let full = (self.extent.saturating_sub(start) + stride - self.chunk) / stride;
        let whole = Run { start, length: self.chunk, count: full, stride };
        let rest_start = start + full * stride;
        let rest = self.extent.saturating_sub(rest_start).min(self.chunk);
        let short = Run { start: rest_start, length: rest, count: rest.min(1), stride };
        [whole, short].into_iter().filter(|run| run.count > 0 && run.length > 0)
    }
}

struct Hpf {
    dimensions: Vec<Dimension>,
    element: u64,
    frames: u64,
    array_bytes: u64,
    memory_bytes: u64,
}

fn build(settings: &Settings) -> Result<Box<dyn Pattern>, Refusal> {
    let extents = settings.counts("array")?;
    let element = settings.bytes("element")?;
    let frames = settings.count("frames")?;
    // Two levels per dimension when cyclic, one for the frames.
    if extents.len() > DEPTH / 2 {
        return Err(settings.wrong("array", "has more than 3 dimensions"));
    }
    let grid = grid(settings, extents.len())?;
    let dists: Vec<&str> = settings.text("dist").split('/').collect();
    let dimensions = (extents.iter().zip(&grid).enumerate())
        .map(|(i, (&extent, &ranks))| {
            let dist = dists.get(i).or(dists.last()).copied().unwrap_or("block");
            chunk(settings, dist, extent, ranks).map(|chunk| Dimension { extent, ranks, chunk })
        })
        .collect::<Result<Vec<_>, _>>()?;
    let mut factors = extents;
    factors.push(element);
    let array_bytes = settings.volume(&factors)?;
    settings.volume(&[array_bytes, frames])?;
    let mut hpf = Hpf { dimensions, element, frames, array_bytes, memory_bytes: 0 };
    hpf.memory_bytes = hpf.largest_share();
    Ok(Box::new(hpf))
}

fn grid(settings: &Settings, dimensions: usize) -> Result<Vec<u64>, Refusal> {
    let mut grid = match settings.text("grid") {
        "" => vec![settings.ranks],
        _ => settings.counts("grid")?,
    };
    grid.resize(dimensions.max(grid.len()), 1);
    if grid.len() > dimensions {
        return Err(settings.wrong("grid", "has more dimensions than the array"));
    }
    match grid.iter().try_fold(1u64, |product, &n| product.checked_mul(n)) {
        Some(ranks) if ranks == settings.ranks => Ok(grid),
        _ => {
            let why = format!("has to have as many places as ranks ({})", settings.ranks);
            Err(settings.wrong("grid", &why))
        }
    }
}

fn chunk(settings: &Settings, dist: &str, extent: u64, ranks: u64) -> Result<u64, Refusal> {
    let cyclic = dist.strip_prefix("cyclic").map(|rest| match rest {
        "" => Some(1),
        rest => rest.strip_prefix('-').and_then(|k| k.parse().ok()).filter(|&k: &u64| k > 0),
    });
    match (dist, cyclic) {
        ("block", _) => Ok(extent.div_ceil(ranks)),
        ("whole", _) if ranks == 1 => Ok(extent),
        ("whole", _) => Err(settings.wrong("dist", "has `whole` where the grid has several ranks")),
        (_, Some(Some(k))) => Ok(k.min(extent)),
        _ => Err(settings.wrong("dist", "wants block, cyclic, cyclic-k or whole per dimension")),
    }
}

impl Hpf {
    /// The position of a rank in the grid, row-major.
    fn position(&self, rank: Rank, dimension: usize) -> u64 {
        let after: u64 = self.dimensions[dimension + 1..].iter().map(|d| d.ranks).product();
        u64::from(rank.0) / after % self.dimensions[dimension].ranks
    }

    /// Adds to `access` every combination of runs, last dimension innermost, so that the data of
    /// the sets follow each other in row-major order only within a set.
    fn push_sets(
        &self,
        rank: Rank,
        dimension: usize,
        base: u64,
        run_set: Strided,
        access: &mut Access,
    ) {
        let Some(next) = dimension.checked_sub(1) else {
            return access.push_file(run_set.at(base + run_set.offset));
        };
        let pitch: u64 = self.dimensions[next + 1..].iter().map(|d| d.extent).product();
        let pitch = pitch * self.element;
        for run in self.dimensions[next].runs(self.position(rank, next)) {
            let chunk = run_set.repeated(run.length, pitch).repeated(run.count, run.stride * pitch);
            self.push_sets(rank, next, base + run.start * pitch, chunk, access);
        }
    }

    fn largest_share(&self) -> u64 {
        // Position 0 of every dimension never owns less than another.
        let mut access = Access::new();
        let last = self.dimensions.len();
        self.push_sets(Rank(0), last, 0, Strided::contiguous(0, self.element), &mut access);
        access.bytes()
    }
}

impl Pattern for Hpf {
    fn operations(&self, _rank: Rank) -> u64 {
        self.frames
    }

    fn place(&self, rank: Rank, index: u64, access: &mut Access) {
        access.clear();
        let base = index * self.array_bytes;
        let element = Strided::contiguous(0, self.element);
        self.push_sets(rank, self.dimensions.len(), base, element, access);
    }

    fn file_bytes(&self) -> u64 {
        self.array_bytes * self.frames
    }

    fn memory_bytes(&self) -> u64 {
        self.memory_bytes
    }

    fn contract(&self) -> Contract {
        Contract::ExactlyOnce
    }
}
