//! Calibration: measures what calls cost on the file system of one directory, in some seconds.
//!
//! All files lie in one scratch directory below the given one, which is removed at the end. Every
//! parameter of [`LocalStorage`] comes with the spread of its batches, and every table with its
//! leave-one-out error: how far off interpolation would have been at each measured size.

mod bench;
mod calls;
mod check;
mod interception;
mod stopwatch;
mod transfers;

pub use bench::Fit;
pub use check::{Check, check};
pub use interception::{Carrying, GuestCosts, InterceptProbe, Spawning, probe_guest, probe_spawns};

use crate::vigil::Vigil;
use bench::Bench;
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

/// What was measured.
#[derive(Clone, Debug, PartialEq)]
pub struct Calibration {
    /// The model's parameters.
    pub storage: LocalStorage,
    /// How well each is known.
    pub fits: Vec<Fit>,
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
    let mut bench = Bench { scratch: PathBuf::new(), fits: Vec::new(), progress };
    let storage = in_scratch(directory, |scratch| {
        bench.scratch = scratch.to_owned();
        measure(&mut bench, file_system, intercept)
    })?;
    Ok(Calibration { storage, fits: bench.fits })
}

/// Does `work` in a new directory below another, and removes it.
fn in_scratch<T>(
    directory: &Path,
    work: impl FnOnce(&Path) -> io::Result<T>,
) -> Result<T, CalibrationError> {
    let scratch = directory.join(format!(".iolab-calibrate-{}", std::process::id()));
    let at = |what: &str| format!("cannot {what} {}", scratch.display());
    // Interrupted or killed, it leaves nothing. With several threads nobody can promise that.
    let made = fs::create_dir(&scratch);
    made.map_err(|cause| CalibrationError { what: at("make"), cause })?;
    let vigil = Vigil::over(|_| _ = fs::remove_dir_all(&scratch)).ok();
    let measured = work(&scratch);
    let removed = fs::remove_dir_all(&scratch);
    if let Some(vigil) = vigil {
        vigil.call_off();
    }
    let measured = measured.map_err(|cause| CalibrationError { what: at("measure in"), cause })?;
    removed.map_err(|cause| CalibrationError { what: at("remove"), cause })?;
    Ok(measured)
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
}
