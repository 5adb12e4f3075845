//! What went on on every rank, gathered to be one trace.

use super::plan::OverlapCase;
use crate::failure::BenchError;
use iolab_comm::Comm;
use iolab_report::overlap::{Span, function_of, timeline};
use iolab_trace::Trace;
use std::path::Path;

/// The trace of all ranks' spans, on every rank.
pub(crate) fn gathered(
    comm: &dyn Comm,
    own: &[Span],
    cases: &[OverlapCase],
    target: &Path,
) -> Result<Trace, BenchError> {
    let said = serde_json::to_vec(own).unwrap_or_default();
    let mut ranks: Vec<Vec<Span>> = Vec::new();
    for text in comm.gather(&said)? {
        ranks.push(serde_json::from_slice(&text).unwrap_or_default());
    }
    let functions: Vec<_> =
        cases.iter().map(|case| function_of(case.method.name, case.direction)).collect();
    Ok(timeline(&ranks, &functions, target, std::env::args().collect()))
}
