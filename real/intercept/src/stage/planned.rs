//! Plans of reads, which the launcher made of recorded runs and shares with all processes of its own.

use super::kernel;
use iolab_policy::insitu::{Plan, StrategySpec};
use iolab_segment::{PLANS_VARIABLE, shared_bytes};
use std::borrow::Cow;
use std::ffi::CString;

/// The strategies with their plans. One without passes: a line says so.
pub(super) fn with_plans(
    specs: Vec<StrategySpec>,
    variable: &dyn Fn(&[u8]) -> Option<&'static [u8]>,
) -> Vec<StrategySpec> {
    let places = variable(PLANS_VARIABLE.as_bytes()).unwrap_or_default();
    let mut places = places.split(|&byte| byte == b':');
    let planned = |mut spec: StrategySpec| {
        if spec.plan_path().is_some() {
            spec.plan = places.next().and_then(plan);
            if spec.plan.is_none() {
                let name = spec.name.as_bytes();
                kernel::tell(&[name, b" passes: there is no plan; start programs by `iolab run`"]);
                return None;
            }
        }
        Some(spec)
    };
    specs.into_iter().filter_map(planned).collect()
}

fn plan(place: &[u8]) -> Option<Plan> {
    let bytes = shared_bytes(&CString::new(place).ok()?)?;
    Plan::read(Cow::Borrowed(bytes)).ok()
}
