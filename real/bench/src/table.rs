//! The table of a plan while it runs.

use crate::plan::{Case, Plan};
use iolab_report::bench::{Settings, Table};

/// A table that knows in which settings the cases of a plan differ.
pub fn table(plan: &Plan) -> Table {
    let all: Vec<Settings> = plan.cases.iter().map(|case| settings(case, plan)).collect();
    Table::of(&all)
}

fn settings(case: &Case, plan: &Plan) -> Settings {
    let mut all: Settings = case.settings(plan).into_iter().collect();
    all.insert("pattern".to_owned(), case.spatial.text());
    all.insert("temporal".to_owned(), case.temporal.name().to_owned());
    all.insert("test".to_owned(), case.test.clone());
    all.extend(case.size.map(|size| ("size".to_owned(), size.to_string())));
    all
}
