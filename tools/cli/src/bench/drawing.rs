//! Drawings and lists of patterns.

use super::flags::Flags;
use crate::failure::Failure;
use iolab_backend::Catalog as Methods;
use iolab_bench::Spatial;
use iolab_pattern::{Catalog, Row, draw_svg, draw_text, drawn_pieces, parse_spec};
use iolab_vocab::Seed;
use std::fmt::Write;

/// Pieces that are drawn within seconds.
const PIECES_MAX: u64 = 4_000_000;

/// Draws a pattern; without parameters at the row's small size.
pub(super) fn draw(spec: &str, flags: &Flags, svg: bool) -> Result<String, Failure> {
    let mut spatial = Spatial::parse(spec)?;
    if let Spatial::Catalogue { row, pairs } = &mut spatial
        && pairs.is_empty()
    {
        *pairs = parse_spec(&format!("{}:{}", row.name, row.small))?.1;
    }
    let (title, notes, ranks) = match &spatial {
        Spatial::Catalogue { row, .. } => (row.title, parameters(row), flags.ranks.unwrap_or(4)),
        Spatial::Recorded(recording) => ("recorded run", String::new(), recording.ranks),
    };
    let pattern = spatial.make(ranks, Seed(flags.seed.unwrap_or(1)))?;
    if drawn_pieces(pattern.as_ref(), ranks, PIECES_MAX) > PIECES_MAX {
        return Err(Failure::new(format!(
            "{} on {ranks} ranks has more than {PIECES_MAX} pieces, too many to draw",
            spatial.text()
        ))
        .hint("give smaller counts; without parameters a small one is drawn"));
    }
    let title = format!("{title}: {} on {ranks} ranks", spatial.text());
    Ok(match svg {
        true => draw_svg(pattern.as_ref(), ranks, &title),
        false => format!("{title}\n{}\n{notes}", draw_text(pattern.as_ref(), ranks)),
    })
}

fn parameters(row: &Row) -> String {
    let mut text = String::new();
    for parameter in row.parameters {
        let default = if parameter.default.is_empty() { "…" } else { parameter.default };
        let _ = writeln!(text, "    {:<12} {:<10} {}", parameter.name, default, parameter.meaning);
    }
    text
}

/// All patterns with their parameters, and all methods.
pub(super) fn list() -> String {
    let mut text = "patterns\n".to_owned();
    for row in Catalog::ROWS {
        let _ = write!(text, "  {:<18} {}\n{}", row.name, row.summary, parameters(row));
    }
    text += "  trace:RUN.iot      the accesses of a recorded run to its busiest file\n";
    for (key, meaning) in [
        ("file=END", "another file, by how its path ends"),
        ("calls=KIND", "reads or writes instead of all"),
    ] {
        let _ = writeln!(text, "    {key:<23} {meaning}");
    }
    text += "methods\n";
    for row in Methods::ROWS {
        let _ = writeln!(text, "  {:<24} {}", row.name, row.summary);
    }
    text
}
