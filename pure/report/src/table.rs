//! A table: columns with names, rows of cells. One table has a face for a terminal, one for spreadsheets
//! and one for pages, so that they say the same.

use crate::csv;
use crate::markup::heading;
use iolab_vocab::printable;
use maud::{Markup, html};

/// A table of text. A column whose cells all begin with a digit or a sign is set as numbers.
#[derive(Clone, Debug, Default)]
pub struct Table {
    /// Heading above it.
    pub title: String,
    /// Column names.
    pub columns: Vec<String>,
    /// Rows of as many cells.
    pub rows: Vec<Vec<Cell>>,
    /// Sentence under it, may be empty.
    pub caption: String,
}

/// A cell of a table.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Cell {
    /// What stands there.
    pub text: String,
    /// How it is set.
    pub tone: Tone,
    /// A bar behind the text, as a share of the cell's width (0 to 1).
    pub bar: Option<f64>,
}

/// How something is meant.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Tone {
    /// A plain statement.
    #[default]
    Plain,
    /// Good news: faster, identical.
    Good,
    /// Worth a look.
    Doubtful,
    /// Wrong: differing output, slower, failed.
    Bad,
    /// Less important than what is around it.
    Quiet,
}

impl Tone {
    /// Its class on a page.
    pub(crate) fn class(self) -> &'static str {
        match self {
            Tone::Plain => "plain",
            Tone::Good => "good",
            Tone::Doubtful => "doubtful",
            Tone::Bad => "bad",
            Tone::Quiet => "quiet",
        }
    }
}

impl Table {
    /// An empty table with these columns and no title.
    pub fn of(columns: impl IntoIterator<Item = impl Into<String>>) -> Table {
        Table { columns: columns.into_iter().map(Into::into).collect(), ..Table::default() }
    }

    /// An empty table with these columns.
    pub fn new<const N: usize>(title: impl Into<String>, columns: [&str; N]) -> Table {
        Table { title: title.into(), ..Table::of(columns) }
    }

    /// The table with one more row.
    pub fn row<const N: usize>(mut self, cells: [impl Into<Cell>; N]) -> Table {
        self.push(cells);
        self
    }

    /// The table with a sentence under it.
    pub fn caption(mut self, caption: impl Into<String>) -> Table {
        self.caption = caption.into();
        self
    }

    /// Adds a row.
    pub fn push(&mut self, cells: impl IntoIterator<Item = impl Into<Cell>>) {
        self.rows.push(cells.into_iter().map(Into::into).collect());
    }

    /// For a terminal: columns as wide as their longest cell, two spaces apart.
    pub fn text(&self) -> String {
        let printed = |line: Vec<&'_ str>| -> Vec<String> {
            line.into_iter().map(|cell| printable(cell).into_owned()).collect()
        };
        let lines: Vec<Vec<String>> = self.lines().map(printed).collect();
        let width = |column: usize| {
            lines.iter().map(|line| line.get(column).map_or(0, |cell| cell.chars().count())).max()
        };
        let widths: Vec<usize> = (0..self.columns.len()).filter_map(width).collect();
        let mut text = String::new();
        for line in &lines {
            let cells = line.iter().zip(&widths).map(|(cell, width)| format!("{cell:<width$}"));
            text += cells.collect::<Vec<_>>().join("  ").trim_end();
            text.push('\n');
        }
        text
    }

    /// For a spreadsheet: a line of names, then a line per row.
    pub fn csv(&self) -> String {
        csv::lines(self.lines())
    }

    /// For a page, with title and caption.
    pub(crate) fn html(&self) -> Markup {
        section(self)
    }

    /// The names, then the cells of each row.
    fn lines(&self) -> impl Iterator<Item = Vec<&str>> {
        let names = self.columns.iter().map(String::as_str).collect();
        let rows = self.rows.iter().map(|row| row.iter().map(|cell| cell.text.as_str()).collect());
        std::iter::once(names).chain(rows)
    }
}

impl Cell {
    /// A cell set in a tone.
    pub fn toned(text: impl Into<String>, tone: Tone) -> Cell {
        Cell { text: text.into(), tone, bar: None }
    }

    /// A cell with a bar behind it.
    pub fn bar(text: impl Into<String>, share: f64) -> Cell {
        Cell { text: text.into(), tone: Tone::Plain, bar: Some(share) }
    }
}

impl<T: Into<String>> From<T> for Cell {
    fn from(text: T) -> Cell {
        Cell { text: text.into(), tone: Tone::Plain, bar: None }
    }
}

/// Whether every filled cell of a column begins like a number.
fn is_numeric(table: &Table, column: usize) -> bool {
    let begins_a_number =
        |text: &str| text.starts_with(|c: char| c.is_ascii_digit() || "+-−±<≤~–—".contains(c));
    let mut cells =
        table.rows.iter().filter_map(|row| row.get(column)).filter(|cell| !cell.text.is_empty());
    let any =
        table.rows.iter().any(|row| row.get(column).is_some_and(|cell| !cell.text.is_empty()));
    any && cells.all(|cell| begins_a_number(&cell.text))
}

fn section(table: &Table) -> Markup {
    let numeric: Vec<bool> = (0..table.columns.len()).map(|at| is_numeric(table, at)).collect();
    let is_numeric = |column: usize| numeric.get(column).copied().unwrap_or(false);
    html! {
        section {
            (heading(&table.title))
            div class="scroll" tabindex="0" role="region" aria-label=(table.title) {
                table {
                    thead {
                        tr {
                            @for (column, name) in table.columns.iter().enumerate() {
                                th scope="col" class=[is_numeric(column).then_some("number")] { (name) }
                            }
                        }
                    }
                    tbody {
                        @for row in &table.rows {
                            tr {
                                @for (column, cell) in row.iter().enumerate() {
                                    (of_cell(cell, is_numeric(column)))
                                }
                            }
                            "\n"
                        }
                    }
                }
            }
            @if !table.caption.is_empty() { p class="caption" { (table.caption) } }
        }
    }
}

fn of_cell(cell: &Cell, is_numeric: bool) -> Markup {
    let bar = cell.bar.map(|share| format!("--bar:{:.1}%", share.clamp(0.0, 1.0) * 100.0));
    html! {
        td class={ (cell.tone.class()) @if is_numeric { " number" } } style=[bar] {
            span { (cell.text) }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_column_is_set_as_numbers_only_when_all_its_cells_are() {
        let table = Table::new("", ["a", "b"]).row(["1.2 s", "+3 %"]).row(["none", "−4 %"]);
        assert!(!is_numeric(&table, 0) && is_numeric(&table, 1));
    }

    #[test]
    fn all_faces_hold_the_same_cells() {
        let mut table = Table::of(["name", "n"]);
        table.push(["a,\"b\"", "1"]);
        table.push(["<ß>", ""]);
        assert_eq!(table.text(), "name   n\na,\"b\"  1\n<ß>\n");
        assert_eq!(table.csv(), "name,n\n\"a,\"\"b\"\"\",1\n<ß>,\n");
        let html = table.html().into_string();
        assert!(html.contains("a,&quot;b&quot;") && html.contains("&lt;ß&gt;"), "{html}");
    }
}
