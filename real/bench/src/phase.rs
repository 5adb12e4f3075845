//! The timing rule: one phase of work between two barriers.
//!
//! ```text
//! rank 0   open │ B1 │ S  T            B2 │ close
//! rank 1   open │ B1 │   S  T       B2    │ close
//!                    └─ counted, rank 0 ──┘
//! ```
//!
//! Counted is from the end of the first barrier (B1, not counted) on rank 0 to the end of the
//! second (B2, counted). No synchronised clocks are needed, and the time is an upper bound: it
//! contains the skew S of the ranks' starts and the cost of B2, which are measured and stand
//! beside the result. After Büttner (2007) and Shorter (2003).

use crate::failure::BenchError;
use crate::outcome::{Latency, Measurement, RankTimes};
use crate::timed::Tally;
use iolab_comm::Comm;
use iolab_host::tick::{cpu_time, monotonic};

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
    let least = |field: fn(&RankTimes) -> u64| times.iter().map(field).min().unwrap_or(0);
    let transfer_ns = times.first().map_or(0, |rank| rank.phase_ns).max(1);
    let (open_ns, close_ns) = (most(|t| t.open_ns), most(|t| t.close_ns));
    let mut all = Tally::new().histogram;
    for &(value, count) in times.iter().flat_map(|rank| &rank.latencies) {
        all.saturating_record_n(value, count);
    }
    let seconds = transfer_ns as f64 / 1e9;
    let (bytes, operations) = (sum(|t| t.bytes), sum(|t| t.operations));
    Measurement {
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
        skew_ns: one_clock.then(|| most(|t| t.left_barrier) - least(|t| t.left_barrier)),
        first_done_ns: least(|t| t.done_ns),
        last_done_ns: most(|t| t.done_ns),
        cpu_ns: sum(|t| t.cpu_ns),
        mib_per_second: bytes as f64 / f64::from(1 << 20) / seconds,
        operations_per_second: operations as f64 / seconds,
        latency: Latency::of(&all),
        short: sum(|t| t.short),
        cache: label.cache.clone(),
        allocation: label.allocation.clone(),
        verified: None,
        invalid: None,
        done_by_rank_ns: times.iter().map(|rank| rank.done_ns).collect(),
        predicted: None,
        predicted_range_ns: None,
    }
}
