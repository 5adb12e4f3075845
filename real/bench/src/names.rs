//! What the files of a run are called: the target, a file for each rank, a directory of names.

use std::fs;
use std::path::{Path, PathBuf};

/// A name that a run may use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Name {
    Shared,
    Metadata,
    Own(u32),
}

impl Name {
    /// Where it lies, for that target.
    pub(crate) fn below(self, target: &Path) -> PathBuf {
        match self {
            Name::Shared => target.to_owned(),
            Name::Metadata => suffixed(target, "meta"),
            Name::Own(rank) => suffixed(target, &rank.to_string()),
        }
    }
}

/// Every name that a run may use.
pub(crate) fn names(target: &Path, ranks: u32) -> Vec<PathBuf> {
    let own = (0..ranks).map(Name::Own);
    let all = [Name::Shared, Name::Metadata].into_iter().chain(own);
    all.map(|name| name.below(target)).collect()
}

fn suffixed(target: &Path, suffix: &str) -> PathBuf {
    let mut name = target.as_os_str().to_owned();
    name.push(".");
    name.push(suffix);
    name.into()
}

/// Empties a directory of metadata operations of the names that ranks make there: empty files and
/// directories `RANK.INDEX`, alone or below `rank-RANK`.
pub(crate) fn clear_names(directory: &Path, ranks: u32) {
    let is_rank = |text: &str| text.parse::<u32>().is_ok_and(|rank| rank < ranks);
    for entry in fs::read_dir(directory).into_iter().flatten().flatten() {
        let (name, path) = (entry.file_name(), entry.path());
        let Some(name) = name.to_str() else { continue };
        let Ok(found) = fs::symlink_metadata(&path) else { continue };
        if name.strip_prefix("rank-").is_some_and(is_rank) && found.is_dir() {
            clear_names(&path, ranks);
            let _ = fs::remove_dir(&path);
        }
        let numbers = name.split_once('.');
        if !numbers.is_some_and(|(rank, index)| is_rank(rank) && index.parse::<u64>().is_ok()) {
            continue;
        }
        let _ = match () {
            () if found.is_dir() => fs::remove_dir(&path),
            () if found.is_file() && found.len() == 0 => fs::remove_file(&path),
            () => Ok(()),
        };
    }
}
