//! The files of a run: where they lie, and that they go when the run ends.

use crate::plan::Plan;
use std::fs;
use std::path::{Path, PathBuf};

/// Everything a run may leave behind: the target, the ranks' own files, the metadata directory.
#[derive(Clone, Debug)]
pub struct Leftovers {
    target: PathBuf,
    ranks: u32,
}

impl Leftovers {
    /// What a run of that plan on so many ranks makes; `None` when it is to be kept.
    pub fn of(plan: &Plan, ranks: u32) -> Option<Leftovers> {
        (!plan.keep).then(|| Leftovers::at(&plan.target, ranks))
    }

    /// What lies at and beside `target`.
    pub fn at(target: &Path, ranks: u32) -> Leftovers {
        Leftovers { target: target.to_owned(), ranks }
    }

    /// Removes all of it. A device that was written to stays: it was there before.
    pub fn remove(&self) {
        remove_regular(&self.target);
        (0..self.ranks).for_each(|rank| remove_regular(&own_path(&self.target, rank)));
        let _ = fs::remove_dir_all(metadata_path(&self.target));
    }
}

fn remove_regular(path: &Path) {
    if fs::symlink_metadata(path).is_ok_and(|found| found.is_file()) {
        let _ = fs::remove_file(path);
    }
}

/// Removes the files when the run ends, however it ends.
pub(crate) struct Cleaning(pub(crate) Option<Leftovers>);

impl Drop for Cleaning {
    fn drop(&mut self) {
        if let Some(leftovers) = &self.0 {
            leftovers.remove();
        }
    }
}

/// Where metadata operations take place.
pub(crate) fn metadata_path(target: &Path) -> PathBuf {
    suffixed(target, "meta")
}

/// The file that belongs to one rank alone.
pub(crate) fn own_path(target: &Path, rank: u32) -> PathBuf {
    suffixed(target, &rank.to_string())
}

fn suffixed(target: &Path, suffix: &str) -> PathBuf {
    let mut name = target.as_os_str().to_owned();
    name.push(".");
    name.push(suffix);
    name.into()
}
