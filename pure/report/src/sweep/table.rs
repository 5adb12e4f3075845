//! The runs of a sweep as one table.

use super::{NUMBERS, Results};
use crate::table::Table;

impl Results<'_> {
    /// Everything, for spreadsheets.
    pub fn csv(&self) -> String {
        let names = ["run"].into_iter().chain(self.sweep.names()).chain(NUMBERS).chain(["error"]);
        let mut table = Table::of(names);
        for line in self.lines {
            let number = |index| line.numbers.get(index).map_or_else(String::new, f64::to_string);
            let numbers = (0..NUMBERS.len()).map(number);
            let (run, error) = (line.run.to_string(), line.error.clone().unwrap_or_default());
            let first = [run].into_iter().chain(self.values(line));
            table.push(first.chain(numbers).chain([error]));
        }
        table.csv()
    }

    /// For a terminal: parameters and the run time; the files have the rest.
    pub fn text(&self) -> String {
        let mut table = Table::of(self.sweep.names().into_iter().chain(["seconds"]));
        for line in self.lines {
            let seconds = match line.range() {
                None => "failed".to_owned(),
                Some([low, seconds, high]) if low == high => format!("{seconds:.6}"),
                Some([low, seconds, high]) => format!("{seconds:.6} ({low:.6} to {high:.6})"),
            };
            table.push(self.values(line).into_iter().chain([seconds]));
        }
        table.text()
    }
}
