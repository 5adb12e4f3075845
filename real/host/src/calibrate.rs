//! Calibration: measures what calls cost on the file system of one directory, in some seconds.
//!
//! All files lie in one scratch directory below the given one, which is removed at the end. Every
//! parameter of [`LocalStorage`] comes with the spread of its batches, and every table with its
//! leave-one-out error: how far off interpolation would have been at each measured size.

mod calls;
mod check;
mod interception;
mod stopwatch;
mod transfers;

pub use check::{Check, check};
pub use interception::{Carrying, GuestCosts, InterceptProbe, Spawning, probe_guest, probe_spawns};

use crate::vigil::Vigil;
use iolab_device::CostTable;
use iolab_device::local::LocalStorage;
use std::fmt;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// Why nothing could be measured.
#[derive(Debug)]
pub struct CalibrationError {
    /// What was being done, naming the place.
    pub what: String,
    /// What the system said.
    pub cause: io::Error,
}

impl fmt::Display for CalibrationError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.what, self.cause)
    }
}

impl std::error::Error for CalibrationError {}

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

/// What was measured.
#[derive(Clone, Debug, PartialEq)]
pub struct Calibration {
    /// The model's parameters.
    pub storage: LocalStorage,
    /// How well each is known.
    pub fits: Vec<Fit>,
}

/// Where measurements and their fits are put together.
struct Bench<'a> {
    scratch: PathBuf,
    fits: Vec<Fit>,
    progress: &'a mut dyn FnMut(&str),
}

impl Bench<'_> {
    fn path(&self, name: &str) -> PathBuf {
        self.scratch.join(name)
    }

    fn note(&mut self, parameter: &str, sample: stopwatch::Sample) -> f64 {
        self.fits.push(Fit {
            parameter: parameter.to_owned(),
            value_ns: sample.cost_ns,
            spread: sample.spread,
            interpolation_error: None,
        });
        sample.cost_ns
    }

    fn note_table(&mut self, parameter: &str, samples: &[(u64, stopwatch::Sample)]) -> CostTable {
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
fn rounded(cost_ns: f64) -> f64 {
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

/// Measures the file system of `directory`. `intercept` runs a probe of this library inside a
/// process that carries strategies; without it the costs of strategies are taken from
/// `docs/models/local.md`. `progress` is told what is being measured.
pub fn calibrate(
    directory: &Path,
    file_system: &str,
    intercept: Option<&InterceptProbe>,
    progress: &mut dyn FnMut(&str),
) -> Result<Calibration, CalibrationError> {
    let scratch = directory.join(format!(".iolab-calibrate-{}", std::process::id()));
    let at = |what: &str| format!("cannot {what} {}", scratch.display());
    // Interrupted or killed, it leaves nothing. With several threads nobody can promise that.
    let made = fs::create_dir(&scratch);
    made.map_err(|cause| CalibrationError { what: at("make"), cause })?;
    let vigil = Vigil::over(|_| _ = fs::remove_dir_all(&scratch)).ok();
    let mut bench = Bench { scratch: scratch.clone(), fits: Vec::new(), progress };
    let measured = measure(&mut bench, file_system, intercept);
    let removed = fs::remove_dir_all(&scratch);
    if let Some(vigil) = vigil {
        vigil.call_off();
    }
    let storage = measured.map_err(|cause| CalibrationError { what: at("measure in"), cause })?;
    removed.map_err(|cause| CalibrationError { what: at("remove"), cause })?;
    Ok(Calibration { storage, fits: bench.fits })
}

fn measure(
    bench: &mut Bench,
    file_system: &str,
    intercept: Option<&InterceptProbe>,
) -> io::Result<LocalStorage> {
    let write = transfers::writes(bench)?;
    let read = transfers::reads(bench)?;
    let call = calls::calls(bench)?;
    let sync = calls::syncs(bench)?;
    let intercept = interception::costs(bench, &write, intercept)?;
    let cores = std::thread::available_parallelism().map_or(1, |count| count.get() as u32);
    Ok(LocalStorage {
        file_system: file_system.to_owned(),
        cores,
        write,
        read,
        call,
        sync,
        intercept,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_calibration_fills_every_parameter_and_leaves_nothing_behind() {
        let directory = tempfile::tempdir().unwrap();
        let mut stages = Vec::new();
        let calibration =
            calibrate(directory.path(), "some", None, &mut |stage| stages.push(stage.to_owned()))
                .unwrap();
        calibration.storage.check().unwrap();
        assert!(calibration.storage.write.overwrite.at(64) > 0.0);
        assert!(calibration.storage.call.open_create_ns > calibration.storage.call.seek_ns);
        assert!(!stages.is_empty() && calibration.fits.len() > 15);
        assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 0);
    }

    #[test]
    fn a_directory_that_cannot_be_used_is_named() {
        let error = calibrate(Path::new("/proc/nowhere"), "proc", None, &mut |_| {}).unwrap_err();
        assert!(error.to_string().contains("/proc/nowhere"), "{error}");
    }

    #[test]
    fn a_straight_table_has_no_interpolation_error() {
        assert_eq!(leave_one_out(&[(0, 10.0), (50, 15.0), (100, 20.0)]), Some(0.0));
        assert_eq!(leave_one_out(&[(0, 10.0), (50, 30.0), (100, 20.0)]), Some(0.5));
        assert_eq!(leave_one_out(&[(0, 10.0)]), None);
    }
}
