//! The strategies of a layer that are applied to this program (`IOLAB_APPLY`), the files they are for, and where what
//! they did is left for the launcher to tell.

use iolab_policy::insitu::stacking::{self, Consent, Setting};
use iolab_policy::insitu::{Selection, StrategySpec};
use std::fs::OpenOptions;
use std::io::Write;
use std::path::Path;

/// The strategies of this program that `is_here` knows for the layer's. None where the text cannot be read or
/// nobody has consented to it, which the recorder's library tells, which reads the same.
pub fn strategies(is_here: impl Fn(&StrategySpec) -> bool) -> Vec<StrategySpec> {
    let text = std::env::var("IOLAB_APPLY").unwrap_or_default();
    let Ok(mut specs) = StrategySpec::parse_all(&text) else { return Vec::new() };
    specs.retain(is_here);
    let consent = Consent::read(&std::env::var("IOLAB_ALLOW").unwrap_or_default());
    match stacking::check(&specs, Setting::Loaded, consent) {
        Ok(_remarks) => specs,
        Err(_refusal) => Vec::new(),
    }
}

/// What the layer's strategies of this program come to, by `read`, and the files each is for.
pub fn of_layer<P>(read: fn(&StrategySpec) -> Option<P>) -> Vec<(Selection, P)> {
    let specs = strategies(|spec| read(spec).is_some()).into_iter();
    specs.filter_map(|spec| read(&spec).map(|it| (spec.selection, it))).collect()
}

/// Whether a strategy is for a file, by the name the program uses or by the one with symbolic links resolved.
pub fn chooses(selection: &Selection, path: &Path) -> bool {
    let canonical = path.canonicalize().ok();
    let names =
        || [Some(path), canonical.as_deref()].into_iter().flatten().map(|it| it.to_string_lossy());
    (selection.paths.is_empty() || names().any(|name| selection.includes(&name)))
        && !names().any(|name| selection.excludes(&name))
}

/// Leaves a line, in one piece since all processes write there, in the file that the launcher named in that variable. A
/// file that is full or gone costs the line, nothing else.
pub fn leave(variable: &str, line: &str) {
    let Some(place) = std::env::var_os(variable) else { return };
    if let Ok(mut log) = OpenOptions::new().append(true).open(place) {
        let _ = log.write_all(line.as_bytes());
    }
}
