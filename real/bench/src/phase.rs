//! One phase of work between two barriers, on every rank. What each rank's clock showed travels to all;
//! [`iolab_report::bench::measurement`] makes the phase of all ranks out of it.

use crate::failure::{BenchError, agree};
use crate::plan::{Case, Plan};
use crate::timed::Tally;
use iolab_comm::Comm;
use iolab_host::tick::{cpu_time, monotonic};
use iolab_report::bench::{Measurement, RankTimes};

/// Opens, passes the barrier, works, passes the barrier, closes. `work` is what is timed; `sync`
/// follows it within the phase. Every rank gets the times of all.
///
/// # Errors
/// The first rank's error, on every rank, once all have come through the barriers.
pub(crate) fn timed(
    comm: &dyn Comm,
    mut stages: impl Stages,
) -> Result<Vec<RankTimes>, BenchError> {
    let mut times = RankTimes::default();
    let before_open = monotonic();
    let opened = stages.open();
    times.open_ns = monotonic() - before_open;
    agree(comm, opened)?;
    let before_barrier = monotonic();
    comm.barrier()?;
    let (start, cpu) = (monotonic(), cpu_time());
    times.barrier_ns = start - before_barrier;
    times.left_barrier = start;
    let mut tally = stages.work();
    let done = monotonic();
    let synced = if tally.error.is_none() { stages.sync() } else { Ok(()) };
    let after_sync = monotonic();
    comm.barrier()?;
    let end = monotonic();
    times.cpu_ns = cpu_time() - cpu;
    let closed = stages.close();
    times.close_ns = monotonic() - end;
    times.done_ns = done - start;
    times.sync_ns = after_sync - done;
    times.phase_ns = end - start;
    times.bytes = tally.bytes;
    times.operations = tally.operations;
    times.short = tally.short;
    times.latencies = recorded(&tally);
    let failure = tally.error.take().map(|e| (e.to_string(), e.hint().to_owned()));
    times.error = failure.or(synced.err()).or(closed.err());
    exchange(comm, &times)
}

/// What a rank does around and within a phase. Errors are a message and a way out.
pub(crate) trait Stages {
    fn open(&mut self) -> Result<(), (String, String)>;
    fn work(&mut self) -> Tally;
    fn sync(&mut self) -> Result<(), (String, String)>;
    fn close(&mut self) -> Result<(), (String, String)>;
}

/// The histogram as pairs of value and count.
pub(crate) fn recorded(tally: &Tally) -> Vec<(u64, u64)> {
    let values = tally.histogram.iter_recorded();
    values.map(|value| (value.value_iterated_to(), value.count_at_value())).collect()
}

fn exchange(comm: &dyn Comm, own: &RankTimes) -> Result<Vec<RankTimes>, BenchError> {
    let said = serde_json::to_vec(own).unwrap_or_default();
    let mut all = Vec::new();
    for (rank, text) in comm.gather(&said)?.iter().enumerate() {
        let times: RankTimes = serde_json::from_slice(text).map_err(|error| {
            let hint = "are all ranks the same version of iolab?".to_owned();
            BenchError::OnRank { rank: rank as u32, message: error.to_string(), hint }
        })?;
        if let Some((message, hint)) = times.error {
            return Err(BenchError::OnRank { rank: rank as u32, message, hint });
        }
        all.push(times);
    }
    Ok(all)
}

/// Puts in what it is a measurement of, and under which settings.
pub(crate) fn named(result: &mut Measurement, case: &Case, plan: &Plan, repetition: u32) {
    result.test.clone_from(&case.test);
    result.spatial = case.spatial.text();
    result.temporal = case.temporal.name().to_owned();
    result.method = case.method.name.to_owned();
    result.size = case.size;
    result.weight = case.weight;
    result.repetition = repetition;
    result.settings.extend(case.settings(plan));
}
