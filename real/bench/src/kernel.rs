//! Work to overlap with: real floating-point arithmetic of a chosen length.
//!
//! A Jacobi sweep over a vector that fits the first-level cache, so that it competes with I/O for
//! the processor but little for memory. Sleeping would not do: a sleeping program always overlaps.

use iolab_host::tick::monotonic;

/// Elements of the vector: 8 KiB.
const ELEMENTS: usize = 1024;

/// Work to overlap with.
pub(crate) trait Computation {
    /// Nanoseconds of a sweep when nothing else runs.
    fn sweep_ns(&mut self) -> f64;

    /// Does so many sweeps, with a pause for `look` after every `every` of them (0: never).
    fn run(&mut self, sweeps: u64, every: u64, look: &mut dyn FnMut());
}

/// A computation that can be made as long as wanted.
pub(crate) struct Kernel {
    old: Vec<f64>,
    new: Vec<f64>,
}

impl Default for Kernel {
    fn default() -> Kernel {
        let old = (0..ELEMENTS).map(|i| (i as f64).sin()).collect();
        Kernel { old, new: vec![0.0; ELEMENTS] }
    }
}

impl Computation for Kernel {
    fn run(&mut self, sweeps: u64, every: u64, look: &mut dyn FnMut()) {
        for sweep in 1..=sweeps {
            self.sweep();
            if every > 0 && sweep % every == 0 {
                look();
            }
        }
    }

    /// The fastest of some batches.
    fn sweep_ns(&mut self) -> f64 {
        const SWEEPS: u64 = 500;
        let mut batch = || {
            let start = monotonic();
            self.run(SWEEPS, 0, &mut || ());
            (monotonic() - start) as f64 / SWEEPS as f64
        };
        (0..5).map(|_| batch()).fold(f64::MAX, f64::min).max(1.0)
    }
}

impl Kernel {
    fn sweep(&mut self) {
        for i in 1..ELEMENTS - 1 {
            self.new[i] = 0.25f64.mul_add(self.old[i - 1] + self.old[i + 1], 0.5 * self.old[i]);
        }
        std::mem::swap(&mut self.old, &mut self.new);
        std::hint::black_box(&self.old);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_computation_is_real_and_stays_finite() {
        let mut kernel = Kernel::default();
        let before: f64 = kernel.old.iter().map(|x| x.abs()).sum();
        let mut polls = 0;
        kernel.run(1000, 100, &mut || polls += 1);
        let after: f64 = kernel.old.iter().map(|x| x.abs()).sum();
        assert_eq!(polls, 10);
        assert!(after.is_finite() && after < before, "smoothing {before} gave {after}");
    }
}
