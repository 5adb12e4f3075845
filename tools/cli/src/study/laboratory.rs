//! What the command has for a study: predictions over orders of simultaneous events, calibration, and
//! traces on disk.

use crate::advise::estimates;
use crate::failure::Failure;
use crate::output;
use crate::platform_file::read_platform;
use crate::simulate::predicted::over_ties;
use crate::{calibrate, trace_file};
use iolab_policy::insitu::StrategySpec;
use iolab_report::advice::Estimate;
use iolab_report::prediction::Predicted;
use iolab_sim::band::tie_seeds;
use iolab_sim::cluster::Order;
use iolab_sim::guest;
use iolab_sim::platform::Platform;
use iolab_study::{Laboratory, StudyError};
use iolab_trace::Trace;
use iolab_vocab::Refusal;
use std::path::Path;

/// Writes one of the results.
pub(crate) fn write(path: &Path, bytes: &[u8]) -> Result<(), Failure> {
    output::write(path, "--results", bytes)
}

/// This command's own means.
pub(crate) struct OwnLaboratory;

/// What was measured stays among the results.
fn measured(scratch: &Path, results: &Path) -> Result<Platform, Failure> {
    let calibration = calibrate::measure(scratch)?;
    let path = results.join("this-machine.toml");
    write(&path, calibrate::platform_text(&calibration)?.as_bytes())?;
    read_platform(&path.to_string_lossy())
}

impl Laboratory for OwnLaboratory {
    fn predict(
        &self,
        trace: &Trace,
        platform: &Platform,
        stack: &[StrategySpec],
    ) -> Result<Predicted, Refusal> {
        let seeds = tie_seeds(Order::Documented, None, None);
        over_ties(trace, platform, stack, &guest::Settings::default(), &seeds)
    }

    fn predict_all(
        &self,
        trace: &Trace,
        platform: &Platform,
        stacks: &[&[StrategySpec]],
        goes_on: &(dyn Fn() -> bool + Sync),
    ) -> Result<Vec<Option<Estimate>>, Refusal> {
        let subject = guest::Subject::new(trace, platform, &guest::Settings::default())?;
        Ok(estimates(&subject, stacks, goes_on))
    }

    fn measure(&self, scratch: &Path, results: &Path) -> Result<Platform, StudyError> {
        Ok(measured(scratch, results)?)
    }

    fn load(&self, path: &Path) -> Result<Trace, StudyError> {
        Ok(trace_file::load(path)?)
    }

    fn save(&self, path: &Path, trace: &Trace) -> Result<(), StudyError> {
        Ok(trace_file::save(path, trace)?)
    }
}

impl From<Failure> for StudyError {
    fn from(failure: Failure) -> StudyError {
        let error = StudyError::new(failure.message());
        match failure.way_out() {
            Some(hint) => error.hint(hint),
            None => error,
        }
    }
}

impl From<StudyError> for Failure {
    fn from(StudyError { message, hint }: StudyError) -> Failure {
        let failure = Failure::new(message);
        match hint {
            Some(hint) => failure.hint(hint),
            None => failure,
        }
    }
}
