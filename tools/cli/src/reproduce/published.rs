//! The published values, from `samples/piosimhd`.

use iolab_sim::evaluation::Case;

const TABLE: &str = include_str!("../../../../samples/piosimhd/published-simulation-results.csv");

/// First line of the published table, and of ours.
pub(crate) const COLUMNS: &str =
    "test,cache_layer,block_bytes,op,total_bytes,seconds,stddev_seconds";

/// A row's key as the published table writes it.
pub(crate) fn key(case: &Case) -> String {
    let operation = case.operation.name();
    format!("{},{},{},{operation}", case.test.name(), case.published_cache(), case.block_bytes)
}

/// The published seconds of a case, for the two thirds of cases whose values we have.
pub(crate) fn seconds(case: &Case) -> Option<f64> {
    let start = format!("{},", key(case));
    let row = TABLE.lines().find(|line| line.starts_with(&start))?;
    row.split(',').nth(5)?.parse().ok()
}

/// Whether ours equals the published value to every printed digit: the mean of ten times in
/// nanoseconds has ten decimals, what follows is noise of summation.
pub(crate) fn is_equal(ours: f64, published: f64) -> bool {
    (ours - published).abs() < 0.5e-10 * published.max(1.0)
}
