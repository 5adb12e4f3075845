//! The published table of the evaluation, of which two thirds of the rows are known.

use super::Case;
use csv::Reader;
use serde::Deserialize;
use std::sync::LazyLock;

const TABLE: &str = include_str!("../../../../samples/piosimhd/published-simulation-results.csv");

static ROWS: LazyLock<Vec<Row>> = LazyLock::new(|| {
    let rows = Reader::from_reader(TABLE.as_bytes()).into_deserialize();
    rows.collect::<Result<_, _>>().expect("the sample is sound")
});

#[derive(Deserialize)]
struct Row {
    test: String,
    cache_layer: String,
    block_bytes: u64,
    op: String,
    seconds: f64,
    stddev_seconds: Option<f64>,
}

/// What was published of a case.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PublishedTime {
    /// Mean over the seeds.
    pub seconds: f64,
    /// Standard deviation over them, where there are several.
    pub deviation: Option<f64>,
}

impl Case {
    /// What was published of it, if that is known.
    pub fn published(&self) -> Option<PublishedTime> {
        let (test, cache, operation) =
            (self.test.name(), self.published_cache(), self.operation.name());
        let is_meant = |row: &&Row| {
            row.test == test
                && row.cache_layer == cache
                && row.block_bytes == self.block_bytes
                && row.op == operation
        };
        ROWS.iter()
            .find(is_meant)
            .map(|row| PublishedTime { seconds: row.seconds, deviation: row.stddev_seconds })
    }

    /// Its key in the table: `random,NoCache,5120,READ`.
    pub fn published_key(&self) -> String {
        let (test, operation) = (self.test.name(), self.operation.name());
        format!("{test},{},{},{operation}", self.published_cache(), self.block_bytes)
    }
}
