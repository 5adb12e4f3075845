//! How long to compute: found by trying, while I/O runs beside it.
//!
//! A try gives the time of one I/O and of the computation next to it. When the two are further
//! apart than the margin, the computation is corrected by their quotient, at most by a factor of
//! two, so that one disturbed try does not throw away what the others found.

/// The computation that is being fitted, on one rank.
#[derive(Clone, Debug)]
pub(crate) struct Calibration {
    /// Wanted compute time over I/O time.
    wanted: f64,
    /// Nearer than this is near enough.
    margin: f64,
    /// How much to compute.
    pub(crate) sweeps: u64,
    /// Tries so far.
    pub(crate) tries: u32,
    /// How far the last try was from what is wanted, as a share of it.
    pub(crate) difference: f64,
}

impl Calibration {
    /// The first guess, from what I/O and computation take alone.
    pub(crate) fn guess(wanted: f64, margin: f64, io_ns: f64, sweep_ns: f64) -> Calibration {
        let sweeps = (io_ns * wanted / sweep_ns).round() as u64;
        let sweeps = if wanted > 0.0 { sweeps.max(1) } else { 0 };
        Calibration { wanted, margin, sweeps, tries: 0, difference: 0.0 }
    }

    /// Learns from a try: what both took while both ran.
    pub(crate) fn learn(&mut self, io_ns: f64, compute_ns: f64) {
        self.tries += 1;
        let target = io_ns * self.wanted;
        if target <= 0.0 || self.sweeps == 0 || compute_ns <= 0.0 {
            self.difference = 0.0;
            return;
        }
        self.difference = (compute_ns - target).abs() / target;
        if self.difference > self.margin {
            let factor = (target / compute_ns).clamp(0.5, 2.0);
            self.sweeps = (self.sweeps as f64 * factor).round().max(1.0) as u64;
        }
    }

    /// Whether to stop, when the worst rank is that far off.
    pub(crate) fn is_done(&self, worst: f64, tries: (u32, u32)) -> bool {
        self.tries >= tries.1 || (self.tries >= tries.0 && worst <= self.margin)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Tries until done in a world where a sweep takes `sweep_ns` beside I/O of `io_ns`.
    fn fitted(mut fit: Calibration, io_ns: f64, sweep_ns: f64) -> Calibration {
        loop {
            let compute_ns = fit.sweeps as f64 * sweep_ns;
            fit.learn(io_ns, compute_ns);
            if fit.is_done(fit.difference, (3, 20)) {
                return fit;
            }
        }
    }

    #[test]
    fn a_computation_that_is_slower_beside_io_is_shortened_to_the_io() {
        let fit = fitted(Calibration::guess(1.0, 0.05, 1e6, 100.0), 1e6, 370.0);
        assert!(fit.difference <= 0.05, "{fit:?}");
        assert!((fit.sweeps as f64 * 370.0 - 1e6).abs() < 5e4, "{fit:?}");
        assert!((3..=6).contains(&fit.tries), "{fit:?}");
    }

    #[test]
    fn what_is_near_enough_is_kept_and_still_tried_as_often_as_asked() {
        let fit = fitted(Calibration::guess(2.0, 0.05, 1e6, 100.0), 1e6, 103.0);
        assert_eq!((fit.sweeps, fit.tries), (20_000, 3));
    }

    #[test]
    fn the_tries_end_when_nothing_helps() {
        let mut fit = Calibration::guess(1.0, 0.05, 1e6, 100.0);
        while !fit.is_done(1.0, (3, 20)) {
            fit.learn(1e6, if fit.tries.is_multiple_of(2) { 3e6 } else { 1e5 });
        }
        assert_eq!(fit.tries, 20);
        assert!(fit.difference > 0.05);
    }

    #[test]
    fn io_alone_computes_nothing() {
        let fit = fitted(Calibration::guess(0.0, 0.05, 1e6, 100.0), 1e6, 100.0);
        assert_eq!((fit.sweeps, fit.tries, fit.difference), (0, 3, 0.0));
    }
}
