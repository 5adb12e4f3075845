//! How far the storage model is off on the recorded run, by kind of call.
//!
//! The recorded calls are carried out by the model in the order they began; per kind, the sum of
//! recorded durations over the sum of modelled ones is a factor for calls that were not recorded.
//! A kind that was hardly seen takes the factor of the kinds it is most like: a machine that was
//! slow for small writes was slow for large ones.

use super::kernel::{Kernel, Kind};
use super::program::Program;
use iolab_device::local::LocalStorage;
use iolab_trace::{Layer, Trace};
use iolab_vocab::Nanos;

/// A factor beyond these says that something else was measured than the call.
const FACTOR_LIMITS: (f64, f64) = (0.5, 2.0);
/// A preempted call took this many times its cost; the excess is not the model's error.
const DISTURBED: f64 = 20.0;
/// Fewer calls than this tell little about their kind.
const CALLS_MIN: u64 = 20;

/// Factors on the model's costs by kind.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Scale {
    factors: [f64; Kind::COUNT],
}

impl Scale {
    /// The model as it is.
    pub(super) const ONE: Scale = Scale { factors: [1.0; Kind::COUNT] };

    pub(super) fn of(&self, kind: Kind) -> f64 {
        self.factors[kind as usize]
    }

    pub(super) fn apply(&self, kind: Kind, cost: Nanos) -> Nanos {
        Nanos((cost.get() as f64 * self.of(kind)).round() as u64)
    }
}

#[derive(Clone, Copy, Default)]
struct Sums {
    calls: u64,
    recorded: f64,
    modelled: f64,
}

/// Fits the factors to a recorded run.
pub(super) fn fit(trace: &Trace, program: &Program, storage: &LocalStorage, cold: bool) -> Scale {
    let header = &trace.header;
    let mut kernel = Kernel::new(storage, cold, header.files.len(), header.processes.len());
    let mut rows: Vec<usize> = (0..trace.events.len()).collect();
    rows.retain(|&row| trace.events[row].function.layer() == Layer::Posix);
    rows.sort_by_key(|&row| (trace.events[row].start, row));
    let mut sums = [Sums::default(); Kind::COUNT];
    for row in rows {
        let event = &trace.events[row];
        let Some(cost) = kernel.native(event) else { continue };
        let modelled = cost.total().get() as f64;
        let kind = Kind::of(event.function.class(), event.moved_bytes());
        let sum = &mut sums[kind as usize];
        sum.calls += 1;
        sum.modelled += modelled;
        sum.recorded += (program.durations[row].get() as f64).min(DISTURBED * modelled);
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
    let mut scale = Scale::ONE;
    for kind in [Kind::SmallWrite, Kind::LargeWrite, Kind::Read] {
        scale.factors[kind as usize] = like_writes(kind);
    }
    for kind in [Kind::Sync, Kind::Name, Kind::Other] {
        scale.factors[kind as usize] = factor(kind).unwrap_or(1.0);
    }
    scale
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kind_hardly_seen_takes_the_factor_of_what_it_is_like() {
        let mut sums = [Sums::default(); Kind::COUNT];
        sums[Kind::SmallWrite as usize] = Sums { calls: 1000, recorded: 1300.0, modelled: 1000.0 };
        sums[Kind::LargeWrite as usize] = Sums { calls: 2, recorded: 900.0, modelled: 100.0 };
        let scale = factors(&sums);
        assert_eq!(scale.of(Kind::SmallWrite), 1.3);
        assert_eq!(scale.of(Kind::LargeWrite), 1.3);
        assert_eq!(scale.of(Kind::Sync), 1.0);
    }

    #[test]
    fn a_factor_beyond_reason_is_cut() {
        let mut sums = [Sums::default(); Kind::COUNT];
        sums[Kind::Sync as usize] = Sums { calls: 50, recorded: 9e9, modelled: 1e3 };
        assert_eq!(factors(&sums).of(Kind::Sync), 2.0);
    }
}
