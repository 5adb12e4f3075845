//! Tiled: a dense 2-D array of elements, one tile per rank, as in mpi-tile-io.
//!
//! The tiles lie on a `grid` of x × y; each has `tile` elements in x and y. With an overlap,
//! neighbours share that many elements (ghost cells of a tiled display), and the array shrinks
//! accordingly. One operation moves `rows` rows of the tile; all of it when 0.
//!
//! ```text
//! row 0  |0000|1111|
//! row 1  |0000|1111|
//! row 2  |2222|3333|
//! row 3  |2222|3333|
//! ```

use crate::{Access, Contract, Parameter, Pattern, Row, Settings, Strided};
use iolab_vocab::{Rank, Refusal};

pub(crate) const ROW: Row = Row {
    name: "tiled",
    title: "tiled",
    summary: "a 2-D array in the file, one tile of it per rank, optional overlap",
    parameters: &[
        Parameter { name: "grid", default: "", meaning: "tiles in x × y; near square if empty" },
        Parameter { name: "tile", default: "64x64", meaning: "elements of a tile in x × y" },
        Parameter { name: "element", default: "32", meaning: "bytes of an element" },
        Parameter { name: "overlap", default: "0", meaning: "elements shared with a neighbour" },
        Parameter { name: "rows", default: "0", meaning: "rows per operation; 0 = the whole tile" },
        Parameter { name: "frames", default: "1", meaning: "arrays after each other" },
    ],
    size: "element",
    count: "frames",
    small: "tile=4x2,element=1",
    build,
};

struct Tiled {
    grid_x: u64,
    /// Bytes of a row of a tile.
    row: u64,
    /// Bytes from one row of the array to the next.
    pitch: u64,
    /// Bytes from one tile to its right neighbour, rows to the one below.
    step_x: u64,
    step_y: u64,
    tile_y: u64,
    rows: u64,
    frames: u64,
    frame_bytes: u64,
    overlaps: bool,
}

fn build(settings: &Settings) -> Result<Box<dyn Pattern>, Refusal> {
    let (grid_x, grid_y) = grid(settings)?;
    let (tile_x, tile_y) = pair(settings, "tile")?;
    let element = settings.bytes("element")?;
    let overlap = settings.number("overlap")?;
    if overlap >= tile_x.min(tile_y) {
        return Err(settings.wrong("overlap", "must be below the extent of a tile"));
    }
    let frames = settings.count("frames")?;
    settings.volume(&[grid_x, tile_x, grid_y, tile_y, element, frames])?;
    let width = grid_x * (tile_x - overlap) + overlap;
    let height = grid_y * (tile_y - overlap) + overlap;
    let rows = match settings.number("rows")? {
        0 => tile_y,
        rows => rows.min(tile_y),
    };
    Ok(Box::new(Tiled {
        grid_x,
        row: tile_x * element,
        pitch: width * element,
        step_x: (tile_x - overlap) * element,
        step_y: tile_y - overlap,
        tile_y,
        rows,
        frames,
        frame_bytes: width * height * element,
        overlaps: overlap > 0 && settings.ranks > 1,
    }))
}

fn pair(settings: &Settings, name: &str) -> Result<(u64, u64), Refusal> {
    match settings.counts(name)?[..] {
        [x, y] => Ok((x, y)),
        _ => Err(settings.wrong(name, "wants two numbers, as in 4x2")),
    }
}

fn grid(settings: &Settings) -> Result<(u64, u64), Refusal> {
    if settings.text("grid").is_empty() {
        let y = (1..=settings.ranks.isqrt()).rev().find(|y| settings.ranks.is_multiple_of(*y));
        let y = y.unwrap_or(1);
        return Ok((settings.ranks / y, y));
    }
    let (x, y) = pair(settings, "grid")?;
    if x.checked_mul(y) != Some(settings.ranks) {
        let why = format!("has to have as many tiles as ranks ({})", settings.ranks);
        return Err(settings.wrong("grid", &why));
    }
    Ok((x, y))
}

impl Tiled {
    fn operations_per_frame(&self) -> u64 {
        self.tile_y.div_ceil(self.rows)
    }

    fn tile_start(&self, rank: Rank) -> u64 {
        let (x, y) = (u64::from(rank.0) % self.grid_x, u64::from(rank.0) / self.grid_x);
        y * self.step_y * self.pitch + x * self.step_x
    }
}

impl Pattern for Tiled {
    fn operations(&self, _rank: Rank) -> u64 {
        self.operations_per_frame() * self.frames
    }

    fn place(&self, rank: Rank, index: u64, access: &mut Access) {
        let per_frame = self.operations_per_frame();
        let (frame, first_row) = (index / per_frame, index % per_frame * self.rows);
        let rows = self.rows.min(self.tile_y - first_row);
        let start = frame * self.frame_bytes + self.tile_start(rank) + first_row * self.pitch;
        access.set(Strided::contiguous(start, self.row).repeated(rows, self.pitch));
    }

    fn file_bytes(&self) -> u64 {
        self.frame_bytes * self.frames
    }

    fn memory_bytes(&self) -> u64 {
        self.row * self.rows
    }

    fn contract(&self) -> Contract {
        if self.overlaps { Contract::Any } else { Contract::ExactlyOnce }
    }

    fn whole(&self, rank: Rank) -> Option<Strided> {
        let row = Strided::contiguous(self.tile_start(rank), self.row);
        Some(row.repeated(self.tile_y, self.pitch).repeated(self.frames, self.frame_bytes))
    }
}
