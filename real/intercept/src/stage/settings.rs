//! What this process was asked to apply, read once at start.

use super::caution;
use iolab_policy::insitu::classes::Semantics;
use iolab_policy::insitu::stacking::{Verdict, verdict};
use iolab_policy::insitu::{Strategy, StrategySpec, runtimes};
use std::cell::UnsafeCell;
use std::sync::atomic::{AtomicBool, Ordering};

/// The environment variable that carries the strategies, top first.
pub(super) const VARIABLE: &str = "IOLAB_APPLY";
/// The one that carries what the user has consented to.
pub(super) const CONSENT_VARIABLE: &str = "IOLAB_ALLOW";

/// The one that is there where the run is to say nothing of what strategies do not reach.
pub(super) const QUIET_VARIABLE: &str = "IOLAB_QUIET";

struct Applied(UnsafeCell<Vec<StrategySpec>>);

// SAFETY: written once by `apply` before `READY`, only read after.
unsafe impl Sync for Applied {}

static APPLIED: Applied = Applied(UnsafeCell::new(Vec::new()));
static READY: AtomicBool = AtomicBool::new(false);

/// Sets the strategies of this process; only the first call counts.
pub(crate) fn apply(specs: Vec<StrategySpec>) {
    if !READY.load(Ordering::Acquire) {
        // SAFETY: called once, at start, while nobody reads.
        unsafe { *APPLIED.0.get() = specs };
        READY.store(true, Ordering::Release);
    }
}

fn applied() -> &'static [StrategySpec] {
    if !READY.load(Ordering::Acquire) {
        return &[];
    }
    // SAFETY: no longer written once ready.
    unsafe { &*APPLIED.0.get() }
}

/// Whether any strategy could choose a file.
pub(crate) fn is_any() -> bool {
    !applied().is_empty()
}

/// Whether files that exist are to be kept as they are: some strategy destroys what it serves.
pub(super) fn keeps_existing() -> bool {
    let destroys = |spec: &StrategySpec| spec.row().classes.semantics == Semantics::Destroyed;
    applied().iter().any(destroys)
}

/// Whether names have to be found out: some strategy is choosy, or goes by what was read of a file of that
/// name.
pub(super) fn asks_for_names() -> bool {
    let choosy = |spec: &StrategySpec| {
        !spec.selection.paths.is_empty() || !spec.selection.exclude.is_empty()
    };
    applied().iter().any(|spec| choosy(spec) || spec.plan.is_some())
}

/// Fresh strategies for a file, top first. A file goes by the name the program used and by the one
/// the system knows (symbolic links resolved): either may be chosen, both must not be excluded.
pub(super) fn strategies_for(
    named: Option<&str>,
    canonical: Option<&str>,
) -> Vec<Box<dyn Strategy>> {
    let names = [named, canonical];
    if names.iter().flatten().any(|name| runtimes::owner_of(name).is_some()) {
        return Vec::new();
    }
    let chosen = || applied().iter().filter(|spec| chooses(spec, &names));
    if chosen().nth(1).is_some() && !may_stand(&chosen().collect::<Vec<_>>()) {
        caution::remark_once(
            &MET,
            "strategies that must not stand on each other choose one file by its two names; it passes",
        );
        return Vec::new();
    }
    let name = canonical.or(named).unwrap_or_default();
    chosen().map(|spec| spec.build_for(name)).collect()
}

static MET: AtomicBool = AtomicBool::new(false);

/// Whether strategies whose globs are apart, but which a file's two names have brought together, may
/// stand on each other.
fn may_stand(chosen: &[&StrategySpec]) -> bool {
    chosen.iter().enumerate().all(|(index, above)| {
        let is_refused = |below: &&StrategySpec| {
            matches!(verdict(above.row(), below.row()), Verdict::Refused { .. })
        };
        !chosen[index + 1..].iter().any(is_refused)
    })
}

/// Whether a strategy is for a file of these names, and it is no parallel runtime's.
pub(super) fn is_for(spec: &StrategySpec, names: &[Option<&str>]) -> bool {
    names.iter().flatten().all(|name| runtimes::owner_of(name).is_none()) && chooses(spec, names)
}

fn chooses(spec: &StrategySpec, names: &[Option<&str>]) -> bool {
    let names = || names.iter().flatten();
    (spec.selection.paths.is_empty() || names().any(|name| spec.selection.includes(name)))
        && !names().any(|name| spec.selection.excludes(name))
}

/// Whether no strategy is for a file whose name, the last part of its path, is that: which is known
/// without the name the system knows it by, unless a symbolic link was followed at the end.
pub(super) fn are_for_none_of_name(named: &str) -> bool {
    applied().iter().all(|spec| spec.selection.is_for_none_of_name(named))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn either_name_may_be_chosen_but_neither_may_be_excluded() {
        let spec = StrategySpec::parse("null:paths=/link/**,exclude=*.tmp").unwrap();
        let chooses = |a, b| chooses(&spec, &[Some(a), Some(b)]);
        assert!(chooses("/link/a", "/real/a"));
        assert!(!chooses("/else/a", "/real/a"));
        assert!(!chooses("/link/a", "/real/a.tmp"));
    }

    #[test]
    fn a_name_decides_alone_where_no_glob_asks_for_folders() {
        let is_for_none = |text: &str, path| {
            StrategySpec::parse(text).unwrap().selection.is_for_none_of_name(path)
        };
        assert!(is_for_none("null:paths=*.chk", "/a/b.dat"));
        assert!(!is_for_none("null:paths=*.chk", "/a/b.chk"));
        assert!(!is_for_none("null:paths=/x/**,paths=*.chk", "/a/b.dat"));
        assert!(!is_for_none("null:exclude=*.dat", "/a/b.dat"));
    }
}
