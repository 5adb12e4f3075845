//! How far the storage model is off on the recorded run, by kind of call.
//!
//! The recorded calls are carried out by the model in the order they began; per kind, the sum of
//! recorded durations over the sum of modelled ones is a factor for calls that were not recorded.
//! A kind that was hardly seen takes the factor of the kinds it is most like: a machine that was
//! slow for small writes was slow for large ones.
//!
//! A call that was preempted took many times its cost. That is no error of the model, but a machine
//! with other work to do; the run that is predicted will meet it too, so all costs that take a core
//! are stretched by the share of such time in the recorded calls.

use super::kernel::{Cost, Kernel, Kind};
use super::program::Program;
use iolab_device::local::LocalStorage;
use iolab_trace::Trace;
use iolab_vocab::Nanos;

/// A factor beyond these says that something else was measured than the call.
const FACTOR_LIMITS: (f64, f64) = (0.5, 2.0);
/// A preempted call took this many times its cost; the excess is not the model's error.
const DISTURBED: f64 = 20.0;
/// Recorded time in calls from which on the share of preemption can be told, nanoseconds.
const STRETCH_FROM_NS: f64 = 10e6;
/// More than this is a machine nobody should measure on.
const STRETCH_MAX: f64 = 4.0;
/// Fewer calls than this tell little about their kind.
const CALLS_MIN: u64 = 20;

/// Factors on the model's costs by kind.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Scale {
    factors: [f64; Kind::COUNT],
    stretch: f64,
}

impl Scale {
    /// The model as it is.
    pub(super) const ONE: Scale = Scale { factors: [1.0; Kind::COUNT], stretch: 1.0 };

    fn of(&self, kind: Kind) -> f64 {
        self.factors[kind as usize]
    }

    /// What a modelled call takes on the machine as it was while recording.
    pub(super) fn apply(&self, kind: Kind, cost: Cost) -> Cost {
        let scaled = |time: Nanos, factor: f64| Nanos((time.get() as f64 * factor).round() as u64);
        Cost {
            work: scaled(cost.work, self.of(kind) * self.stretch),
            wait: scaled(cost.wait, self.of(kind)),
        }
    }

    /// What work takes that is not a call (copies, steps of strategies).
    pub(super) fn stretched(&self, work_ns: f64) -> f64 {
        work_ns * self.stretch
    }
}

#[derive(Clone, Copy, Default)]
struct Sums {
    calls: u64,
    recorded: f64,
    modelled: f64,
    /// Recorded time beyond what a call takes that is not disturbed.
    preempted: f64,
}

/// Fits the factors to a recorded run.
pub(super) fn fit(trace: &Trace, program: &Program, storage: &LocalStorage, cold: bool) -> Scale {
    let header = &trace.header;
    let mut kernel = Kernel::new(storage, cold, header.files.len(), header.processes.len());
    let mut rows: Vec<usize> = (0..trace.events.len()).collect();
    rows.retain(|&row| trace.events[row].function.is_system_call());
    rows.sort_by_key(|&row| (trace.events[row].start, row));
    let mut sums = [Sums::default(); Kind::COUNT];
    for row in rows {
        let event = &trace.events[row];
        let Some(cost) = kernel.native(event, trace.copy_target(row)) else { continue };
        let modelled = cost.total().get() as f64;
        let kind = Kind::of(event.function.class(), event.moved_bytes());
        let sum = &mut sums[kind as usize];
        sum.calls += 1;
        sum.modelled += modelled;
        let recorded = program.durations[row].get() as f64;
        sum.recorded += recorded.min(DISTURBED * modelled);
        sum.preempted += (recorded - DISTURBED * modelled).max(0.0);
    }
    factors(&sums)
}

fn factors(sums: &[Sums; Kind::COUNT]) -> Scale {
    let clamp = |factor: f64| factor.clamp(FACTOR_LIMITS.0, FACTOR_LIMITS.1);
    let factor = |kind: Kind| {
        let sum = sums[kind as usize];
        (sum.calls >= CALLS_MIN && sum.modelled > 0.0).then(|| clamp(sum.recorded / sum.modelled))
    };
    let writes = factor(Kind::SmallWrite).or(factor(Kind::LargeWrite)).or(factor(Kind::Read));
    let like_writes = |kind| factor(kind).or(writes).unwrap_or(1.0);
    let mut scale = Scale { stretch: stretch(sums), ..Scale::ONE };
    for kind in [Kind::SmallWrite, Kind::LargeWrite, Kind::Read] {
        scale.factors[kind as usize] = like_writes(kind);
    }
    for kind in [Kind::Sync, Kind::Name, Kind::Other] {
        scale.factors[kind as usize] = factor(kind).unwrap_or(1.0);
    }
    scale
}

/// How much longer the recorded calls took because the machine had other work.
fn stretch(sums: &[Sums; Kind::COUNT]) -> f64 {
    let total = |of: fn(&Sums) -> f64| {
        let is_work = |kind: &usize| *kind != Kind::Sync as usize;
        (0..Kind::COUNT).filter(is_work).map(|kind| of(&sums[kind])).sum::<f64>()
    };
    let (recorded, preempted) = (total(|sum| sum.recorded), total(|sum| sum.preempted));
    match recorded >= STRETCH_FROM_NS {
        true => (1.0 + preempted / recorded).min(STRETCH_MAX),
        false => 1.0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kind_hardly_seen_takes_the_factor_of_what_it_is_like() {
        let mut sums = [Sums::default(); Kind::COUNT];
        sums[Kind::SmallWrite as usize] =
            Sums { calls: 1000, recorded: 1300.0, modelled: 1000.0, preempted: 0.0 };
        sums[Kind::LargeWrite as usize] =
            Sums { calls: 2, recorded: 900.0, modelled: 100.0, preempted: 0.0 };
        let scale = factors(&sums);
        assert_eq!(scale.of(Kind::SmallWrite), 1.3);
        assert_eq!(scale.of(Kind::LargeWrite), 1.3);
        assert_eq!(scale.of(Kind::Sync), 1.0);
    }

    #[test]
    fn a_factor_beyond_reason_is_cut() {
        let mut sums = [Sums::default(); Kind::COUNT];
        sums[Kind::Sync as usize] =
            Sums { calls: 50, recorded: 9e9, modelled: 1e3, preempted: 0.0 };
        assert_eq!(factors(&sums).of(Kind::Sync), 2.0);
    }

    #[test]
    fn preemption_stretches_work_but_not_waiting() {
        let mut sums = [Sums::default(); Kind::COUNT];
        sums[Kind::SmallWrite as usize] =
            Sums { calls: 1000, recorded: 20e6, modelled: 20e6, preempted: 30e6 };
        let scale = factors(&sums);
        let cost = Cost { work: Nanos(100), wait: Nanos(100) };
        let expected = Cost { work: Nanos(250), wait: Nanos(100) };
        assert_eq!(scale.apply(Kind::SmallWrite, cost), expected);
        // Too little was recorded to tell.
        sums[Kind::SmallWrite as usize].recorded = 1e6;
        assert_eq!(factors(&sums).stretched(100.0), 100.0);
    }
}
