//! One phase of work between two barriers, on every rank; [`phase_time`] makes the phase of all out of
//! what each rank's clock showed.

use crate::failure::BenchError;
use crate::plan::{Case, Plan};
use crate::rank_times::RankTimes;
use crate::timed::Tally;
use hdrhistogram::Histogram;
use iolab_comm::Comm;
use iolab_host::tick::{cpu_time, monotonic};
use iolab_report::bench::{Latency, Measurement, phase_time};
use std::collections::BTreeMap;

/// What a phase is called and what is known about it beforehand.
#[derive(Clone, Debug, Default)]
pub(crate) struct Label {
    pub(crate) phase: String,
    pub(crate) cache: String,
    pub(crate) allocation: String,
}

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

/// Goes on only if no rank failed; else all stop with the same error.
pub(crate) fn agree(comm: &dyn Comm, own: Result<(), (String, String)>) -> Result<(), BenchError> {
    let said = serde_json::to_vec(&own.err()).unwrap_or_default();
    for (rank, text) in comm.gather(&said)?.iter().enumerate() {
        if let Ok(Some((message, hint))) = serde_json::from_slice::<Option<(String, String)>>(text)
        {
            return Err(BenchError::OnRank { rank: rank as u32, message, hint });
        }
    }
    Ok(())
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

/// The measurement that the times of all ranks make; names are filled in by the caller.
pub(crate) fn measurement(
    times: &[RankTimes],
    label: &Label,
    barrier_cost_ns: u64,
    one_clock: bool,
) -> Measurement {
    let sum = |field: fn(&RankTimes) -> u64| times.iter().map(field).sum::<u64>();
    let most = |field: fn(&RankTimes) -> u64| times.iter().map(field).max().unwrap_or(0);
    let stamps: Vec<_> = times.iter().map(RankTimes::stamps).collect();
    let phase = phase_time(&stamps, one_clock);
    let transfer_ns = phase.ns;
    let start = |rank: usize| phase.starts.as_ref().map_or(0, |starts| starts[rank]);
    let done: Vec<u64> = times.iter().enumerate().map(|(r, t)| start(r) + t.done_ns).collect();
    let (open_ns, close_ns) = (most(|t| t.open_ns), most(|t| t.close_ns));
    let mut all = Tally::new().histogram;
    for &(value, count) in times.iter().flat_map(|rank| &rank.latencies) {
        all.saturating_record_n(value, count);
    }
    let seconds = transfer_ns as f64 / 1e9;
    let (bytes, operations) = (sum(|t| t.bytes), sum(|t| t.operations));
    let mut made = Measurement {
        test: String::new(),
        spatial: String::new(),
        temporal: String::new(),
        method: String::new(),
        phase: label.phase.clone(),
        size: None,
        weight: 1.0,
        repetition: 0,
        ranks: times.len() as u32,
        bytes,
        operations,
        transfer_ns,
        open_ns,
        sync_ns: most(|t| t.sync_ns),
        close_ns,
        total_ns: open_ns + transfer_ns + close_ns,
        barrier_before_ns: times.first().map_or(0, |rank| rank.barrier_ns),
        barrier_cost_ns,
        skew_ns: phase.starts.as_ref().and_then(|starts| starts.iter().copied().max()),
        first_done_ns: done.iter().copied().min().unwrap_or(0),
        last_done_ns: done.iter().copied().max().unwrap_or(0),
        transfer_slack_ns: Some(phase.slack_ns),
        cpu_ns: sum(|t| t.cpu_ns),
        mib_per_second: bytes as f64 / f64::from(1 << 20) / seconds,
        operations_per_second: operations as f64 / seconds,
        latency: latency(&all),
        short: sum(|t| t.short),
        cache: label.cache.clone(),
        allocation: label.allocation.clone(),
        verified: None,
        invalid: None,
        done_by_rank_ns: times.iter().map(|rank| rank.done_ns).collect(),
        start_by_rank_ns: phase.starts,
        bytes_by_rank: times.iter().map(|rank| rank.bytes).collect(),
        settings: BTreeMap::new(),
        predicted: None,
        predicted_range_ns: None,
    };
    // Held to every phase of every result: a phase is no shorter than what a rank did in it.
    made.invalid = made.contradiction();
    made
}

/// The percentiles of a histogram, if it holds anything.
fn latency(histogram: &Histogram<u64>) -> Option<Latency> {
    (!histogram.is_empty()).then(|| Latency {
        count: histogram.len(),
        mean: histogram.mean(),
        p50: histogram.value_at_quantile(0.5),
        p90: histogram.value_at_quantile(0.9),
        p99: histogram.value_at_quantile(0.99),
        p999: histogram.value_at_quantile(0.999),
        max: histogram.max(),
    })
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

#[cfg(test)]
mod tests {
    use super::*;

    /// A rank that came to the barrier, left it, worked and was released at these moments.
    fn rank(entered: u64, left: u64, done: u64, released: u64) -> RankTimes {
        RankTimes {
            barrier_ns: left - entered,
            left_barrier: left,
            done_ns: done - left,
            phase_ns: released - left,
            bytes: 1 << 20,
            operations: 1,
            ..RankTimes::default()
        }
    }

    #[test]
    fn no_phase_is_shorter_than_the_work_of_a_rank_when_rank_0_leaves_the_barrier_late() {
        let late = [rank(0, 900_000, 950_000, 1_010_000), rank(5, 10_000, 1_000_000, 1_000_500)];
        for one_clock in [true, false] {
            let made = measurement(&late, &Label::default(), 0, one_clock);
            assert!(made.transfer_ns >= 990_000, "{one_clock}: {}", made.transfer_ns);
            assert!(made.mib_per_second <= 2.0 / 0.000_99, "{}", made.mib_per_second);
            assert_eq!((made.contradiction(), &made.invalid), (None, &None));
        }
        let made = measurement(&late, &Label::default(), 0, true);
        assert_eq!((made.skew_ns, made.last_done_ns), (Some(890_000), 990_000));
        assert_eq!(made.transfer_slack_ns, Some(500));
    }

    #[test]
    fn times_that_contradict_each_other_are_found() {
        let made = measurement(&[rank(0, 1, 500, 600)], &Label::default(), 0, true);
        let wrong = Measurement { transfer_ns: 100, ..made };
        assert!(wrong.contradiction().is_some_and(|why| why.contains("rank 0")));
    }
}
