//! Where measurements are put together: each parameter with how well it is known.

use super::stopwatch::Sample;
use iolab_device::CostTable;
use std::path::PathBuf;

/// How well one parameter is known.
#[derive(Clone, Debug, PartialEq)]
pub struct Fit {
    /// Its name in the platform file.
    pub parameter: String,
    /// Its value, nanoseconds; for a table the value at its smallest size.
    pub value_ns: f64,
    /// Half the distance between quartiles of the batches, relative (worst size of a table).
    pub spread: f64,
    /// For a table: median relative error of interpolating each size from its neighbours.
    pub interpolation_error: Option<f64>,
}

/// Where measurements and their fits are put together.
pub(super) struct Bench<'a> {
    pub(super) scratch: PathBuf,
    pub(super) fits: Vec<Fit>,
    pub(super) progress: &'a mut dyn FnMut(&str),
}

impl Bench<'_> {
    pub(super) fn path(&self, name: &str) -> PathBuf {
        self.scratch.join(name)
    }

    pub(super) fn note(&mut self, parameter: &str, sample: Sample) -> f64 {
        self.fits.push(Fit {
            parameter: parameter.to_owned(),
            value_ns: sample.cost_ns,
            spread: sample.spread,
            interpolation_error: None,
        });
        sample.cost_ns
    }

    pub(super) fn note_table(&mut self, parameter: &str, samples: &[(u64, Sample)]) -> CostTable {
        let points: Vec<(u64, f64)> =
            samples.iter().map(|(size, sample)| (*size, rounded(sample.cost_ns))).collect();
        self.fits.push(Fit {
            parameter: parameter.to_owned(),
            value_ns: points[0].1,
            spread: samples.iter().map(|(_, sample)| sample.spread).fold(0.0, f64::max),
            interpolation_error: leave_one_out(&points),
        });
        CostTable::new(points)
            .expect("sizes are listed in order and measured costs are not negative")
    }
}

/// A tenth of a nanosecond is more than is known.
pub(super) fn rounded(cost_ns: f64) -> f64 {
    (cost_ns * 10.0).round() / 10.0
}

/// Median relative error of each inner point against the line between its neighbours.
fn leave_one_out(points: &[(u64, f64)]) -> Option<f64> {
    let mut errors: Vec<f64> = points
        .windows(3)
        .map(|three| {
            let outer = CostTable::new(vec![three[0], three[2]]).expect("a part of a table");
            (outer.at(three[1].0) - three[1].1).abs() / three[1].1.max(1e-9)
        })
        .collect();
    errors.sort_by(f64::total_cmp);
    errors.get(errors.len() / 2).copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_straight_table_has_no_interpolation_error() {
        assert_eq!(leave_one_out(&[(0, 10.0), (50, 15.0), (100, 20.0)]), Some(0.0));
        assert_eq!(leave_one_out(&[(0, 10.0), (50, 30.0), (100, 20.0)]), Some(0.5));
        assert_eq!(leave_one_out(&[(0, 10.0)]), None);
    }
}
