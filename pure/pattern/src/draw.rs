//! Drawings of a pattern: which rank touches which byte of the file, and where the bytes of one
//! operation lie in memory. Text for terminals and goldens, SVG for pages.

use crate::{Access, Pattern, Strided};
use iolab_vocab::Rank;
use maud::{Markup, html};
use std::fmt::Write;

/// Cells per line of a drawing.
const WIDTH: usize = 64;
/// More cells than this and each cell stands for several bytes.
const CELLS: u64 = 1024;

/// A side of the drawing: what touches each cell, in units of `unit` bytes.
struct Side {
    unit: u64,
    cells: Vec<Cell>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Cell {
    Nobody,
    One(u32),
    Several,
}

impl Side {
    fn new(bytes: u64) -> Side {
        let unit = bytes.div_ceil(CELLS).max(1);
        Side { unit, cells: vec![Cell::Nobody; bytes.div_ceil(unit) as usize] }
    }

    fn touch(&mut self, offset: u64, length: u64, who: u32) {
        if length == 0 {
            return;
        }
        let (first, last) = (offset / self.unit, (offset + length - 1) / self.unit);
        for cell in &mut self.cells[first as usize..=last as usize] {
            *cell = match *cell {
                Cell::Nobody => Cell::One(who),
                Cell::One(other) if other == who => *cell,
                _ => Cell::Several,
            };
        }
    }
}

fn symbol(cell: Cell) -> char {
    match cell {
        Cell::Nobody => '.',
        Cell::One(rank) => char::from_digit(rank % 36, 36).unwrap_or('?'),
        Cell::Several => '*',
    }
}

fn file_side(pattern: &dyn Pattern, ranks: u32) -> Side {
    let mut side = Side::new(pattern.file_bytes());
    let mut access = Access::new();
    for rank in 0..ranks {
        for index in 0..pattern.operations(Rank(rank)) {
            pattern.place(Rank(rank), index, &mut access);
            access.file_extents().for_each(|e| side.touch(e.offset, e.length, rank));
        }
    }
    side
}

/// The buffer of a rank; each cell shows the operation that uses it.
fn memory_side(pattern: &dyn Pattern, rank: u32) -> Side {
    let mut side = Side::new(pattern.memory_bytes());
    let mut access = Access::new();
    for index in 0..pattern.operations(Rank(rank)) {
        pattern.place(Rank(rank), index, &mut access);
        let who = u32::try_from(index).unwrap_or(u32::MAX);
        access.memory_extents().for_each(|e| side.touch(e.offset, e.length, who));
    }
    side
}

/// Draws the file by rank, the memory of rank 0 by operation, and the list of operations.
///
/// Every piece of every operation is visited: see [`drawn_pieces`].
pub fn draw_text(pattern: &dyn Pattern, ranks: u32) -> String {
    let mut text = format!("contract: {}\n", pattern.contract());
    side_text(&mut text, "file, by rank", &file_side(pattern, ranks));
    side_text(&mut text, "memory of rank 0, by operation", &memory_side(pattern, 0));
    for rank in 0..ranks {
        operations_text(&mut text, pattern, rank);
    }
    text
}

fn side_text(text: &mut String, title: &str, side: &Side) {
    let _ = writeln!(text, "{title} (one character = {} B, . nobody, * several)", side.unit);
    for (line, cells) in side.cells.chunks(WIDTH).enumerate() {
        let symbols: String = cells.iter().copied().map(symbol).collect();
        let _ = writeln!(text, "{:>10} |{symbols}|", line as u64 * WIDTH as u64 * side.unit);
    }
}

/// The first operations of a rank, extents joined by `+`.
fn operations_text(text: &mut String, pattern: &dyn Pattern, rank: u32) {
    const SHOWN: u64 = 6;
    let count = pattern.operations(Rank(rank));
    let _ = write!(text, "rank {rank}, {count} operations:");
    let mut access = Access::new();
    for index in 0..count.min(SHOWN) {
        pattern.place(Rank(rank), index, &mut access);
        let extents: Vec<_> = access.file_extents().take(8).map(|e| e.to_string()).collect();
        let more = if access.file_extents().nth(8).is_some() { "+…" } else { "" };
        let _ = write!(text, "  {}{more}", extents.join("+"));
    }
    text.push_str(if count > SHOWN { "  …\n" } else { "\n" });
}

/// Draws the same as [`draw_text`] without the list, as an SVG document.
pub fn draw_svg(pattern: &dyn Pattern, ranks: u32, title: &str) -> String {
    let sides = [
        ("file, by rank", file_side(pattern, ranks)),
        ("memory of rank 0, by operation", memory_side(pattern, 0)),
    ];
    let tops = [24, 24 + height_of(&sides[0].1)];
    let (width, height) = (WIDTH * CELL, tops[1] + height_of(&sides[1].1) + 8);
    let drawing = html! {
        svg xmlns="http://www.w3.org/2000/svg" viewBox=(format_args!("0 0 {width} {height}"))
            font-family="sans-serif" font-size="12" {
            "\n"
            text x="0" y="14" font-weight="bold" { (title) }
            "\n"
            @for ((name, side), top) in sides.iter().zip(tops) { (side_svg(name, side, top)) }
        }
        "\n"
    };
    drawing.into_string()
}

/// Width and height of a cell, its gap included.
const CELL: usize = 10;
/// What stands above the cells of a side: its name, and a gap.
const ABOVE: usize = 24;

fn height_of(side: &Side) -> usize {
    ABOVE + side.cells.len().div_ceil(WIDTH) * CELL
}

fn side_svg(name: &str, side: &Side, top: usize) -> Markup {
    let place = |index: usize| (index % WIDTH * CELL, top + ABOVE + index / WIDTH * CELL);
    html! {
        text x="0" y=(top + ABOVE - 6) { (name) ", one box = " (side.unit) " B" }
        "\n"
        @for (index, cell) in side.cells.iter().enumerate() {
            @let (x, y) = place(index);
            rect x=(x) y=(y) width="9" height="9" fill=(colour(*cell)) {}
            "\n"
        }
    }
}

/// How many pieces a drawing visits, in file and memory, as far as up to `most`.
pub fn drawn_pieces(pattern: &dyn Pattern, ranks: u32, most: u64) -> u64 {
    let mut access = Access::new();
    let mut count = 0u64;
    for rank in 0..ranks {
        for index in 0..pattern.operations(Rank(rank)) {
            pattern.place(Rank(rank), index, &mut access);
            let pieces = access.file().iter().chain(access.memory()).map(Strided::blocks);
            // A contiguous buffer is one piece.
            count += u64::from(access.memory().is_empty());
            count = pieces.fold(count, u64::saturating_add);
            if count > most {
                return count;
            }
        }
    }
    count
}

/// Ranks get hues 137.5° apart, so that neighbours differ whatever their number.
fn colour(cell: Cell) -> String {
    match cell {
        Cell::Nobody => "#eee".to_owned(),
        Cell::One(rank) => format!("hsl({:.0} 65% 55%)", f64::from(rank) * 137.5 % 360.0),
        Cell::Several => "#222".to_owned(),
    }
}
