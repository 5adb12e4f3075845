//! Recorded runs that strategies go by: read once, by whoever starts.

use crate::failure::Failure;
use crate::trace_file;
use iolab_policy::insitu::{Plan, StrategySpec};
use iolab_segment::{PLANS_VARIABLE, share_bytes};
use iolab_trace::Trace;
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::ffi::OsStr;
use std::path::Path;
use std::process::Command;

/// The strategies with the plans that theirs name. `of` is told of each trace they are from.
pub(crate) fn with_plans(
    specs: Vec<StrategySpec>,
    mut of: impl FnMut(&str, &Trace),
) -> Result<Vec<StrategySpec>, Failure> {
    let mut plans: BTreeMap<String, Plan> = BTreeMap::new();
    let mut planned = |mut spec: StrategySpec| {
        let Some(path) = spec.plan_path().map(str::to_owned) else { return Ok(spec) };
        let plan = match plans.entry(path) {
            Entry::Occupied(known) => known.into_mut(),
            Entry::Vacant(place) => {
                let path = place.key();
                let trace = trace_file::load(Path::new(path))?;
                let plan = Plan::of(&trace).map_err(|refusal| {
                    Failure::new(format!("{path}: {}", refusal.message)).hint(refusal.hint)
                })?;
                of(path, &trace);
                place.insert(plan)
            }
        };
        spec.plan = Some(plan.clone());
        Ok(spec)
    };
    specs.into_iter().map(&mut planned).collect()
}

/// Says so when a plan was recorded of another program than is about to run.
pub(crate) fn warn_of_another_program(path: &str, trace: &Trace, program: &OsStr) {
    let name = |program: &str| program.rsplit('/').next().unwrap_or_default().to_owned();
    let recorded = trace.header.command.first().map(|program| name(program));
    let now = name(&program.to_string_lossy());
    if let Some(recorded) = recorded.filter(|recorded| *recorded != now) {
        eprintln!(
            "iolab: prefetch: {path} was recorded of `{recorded}`, and this is `{now}`; where the \
             reads are others, streams are looked for instead"
        );
    }
}

/// Hands the plans on to a command; whether there are any, which are there as long as this process is.
pub(crate) fn share(command: &mut Command, specs: &[StrategySpec]) -> Result<bool, Failure> {
    let shared = specs.iter().filter_map(|spec| spec.plan.as_ref()).map(|plan| {
        share_bytes(plan.bytes()).map_err(|errno| {
            let error = std::io::Error::from_raw_os_error(errno);
            Failure::new(format!("the plan of reads cannot be shared: {error}"))
        })
    });
    let places: Vec<String> = shared.collect::<Result<_, _>>()?;
    if !places.is_empty() {
        command.env(PLANS_VARIABLE, places.join(":"));
    }
    Ok(!places.is_empty())
}
