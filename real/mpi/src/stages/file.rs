//! The program's files that stages are for, by the library's handles.

use super::demotion::Demotion;
use super::info::{Added, Told};
use super::{Chosen, log};
use crate::call::Call;
use crate::exchange::storage::{mode, path_of_open};
use crate::open_files::{self, OpenFiles};
use crate::pfs::group::Group;
use crate::pfs::numbers::Numbers;
use iolab_policy::insitu::mpiio::{Demote, HintEffect, Line, MpiIoStage};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

/// An open file of the library's.
pub(super) struct File {
    handle: usize,
    path: String,
    /// One rank tells for all.
    is_first: bool,
    hints: Vec<(String, String)>,
    /// What was told of each hint.
    told: Mutex<BTreeMap<String, (Option<String>, HintEffect)>>,
    demotion: Option<Demotion>,
}

static FILES: OpenFiles<File> = OpenFiles::new();

/// The file of a handle, if a stage is for it.
pub(super) fn find(handle: usize) -> Option<Arc<File>> {
    FILES.find(handle)
}

/// A file that is about to be opened, which stages are for.
pub(super) struct Opening {
    group: Group,
    path: PathBuf,
    names: Vec<&'static str>,
    hints: Vec<(String, String)>,
    added: Option<Added>,
    demote: Option<Demote>,
}

/// Before `MPI_File_open(communicator, name, mode, info, file)`: which stages the file has, as rank 0
/// says, since names may differ and all must do the same; none: no stage is for it.
pub(super) fn opening(chosen: &[Chosen], call: &Call<'_>) -> Option<Opening> {
    if call.word(1) == 0 {
        return None;
    }
    let group = Group::of_open(call)?;
    let path = path_of_open(call);
    let own = || {
        let is_for = |(_, it): &(usize, &Chosen)| chooses(it, &path);
        chosen.iter().enumerate().take(63).filter(is_for).fold(0u64, |bits, (at, _)| bits | 1 << at)
    };
    let bits = group.found_by_first(|| Ok(own())).ok()?;
    let stages = || chosen.iter().enumerate().filter(|(at, _)| bits & 1 << at != 0).map(|it| it.1);
    let names: Vec<&'static str> = stages().map(|it| it.name).collect();
    if names.is_empty() {
        return None;
    }
    let (mut hints, mut demote) = (Vec::new(), None);
    for it in stages() {
        match &it.stage {
            MpiIoStage::Hints(given) => hints.extend_from_slice(given.given()),
            MpiIoStage::Demote(judge) => demote = Some(judge.clone()),
        }
    }
    let added = if hints.is_empty() { None } else { Added::beside(call.handle(3), &hints) };
    Some(Opening { group, path, names, hints, added, demote })
}

/// Whether a stage is for a file, by the name the program uses or by the one with symbolic links resolved.
fn chooses(stage: &Chosen, path: &Path) -> bool {
    let canonical = path.canonicalize().ok();
    let names =
        || [Some(path), canonical.as_deref()].into_iter().flatten().map(|it| it.to_string_lossy());
    let selection = &stage.selection;
    (selection.paths.is_empty() || names().any(|name| selection.includes(&name)))
        && !names().any(|name| selection.excludes(&name))
}

impl Opening {
    /// The arguments with our set of hints.
    pub(super) fn words(&self, call: &Call<'_>) -> Vec<usize> {
        let mut words = call.arguments.to_vec();
        if let Some(added) = &self.added {
            words[3] = added.handle();
        }
        words
    }

    /// After the open. A rank that could not open the file comes here, too.
    pub(super) fn done(self, call: &Call<'_>, answer: i32) {
        let is_sequential = call.family.mode(call.int(2)) & mode::SEQUENTIAL != 0;
        let cannot = u64::from(answer != 0 || is_sequential);
        let is_first = self.group.rank == 0;
        let is_demoted = self.demote.is_some()
            && self.group.gather(cannot).is_ok_and(|all| all.iter().all(|it| *it == 0));
        if answer != 0 {
            return;
        }
        let demotion = match self.demote {
            Some(judge) if is_demoted => Some(Demotion::new(self.group, judge)),
            _ => None,
        };
        let handle = open_files::opened(call);
        let path = self.path.to_string_lossy().into_owned();
        let told = Mutex::default();
        let file = File { handle, path, is_first, hints: self.hints, told, demotion };
        if is_first {
            for name in self.names {
                let (stage, path) = (name.to_owned(), file.path.clone());
                log::leave(&Line::Opened { stage, path });
            }
        }
        if let Some(added) = &self.added {
            file.tell_hints(added);
        }
        FILES.keep(handle, file);
    }
}

/// Before `MPI_File_close(file)`, which all ranks call.
pub(super) fn closing(call: &Call<'_>) {
    if let Some(file) = FILES.closing(call).filter(|file| file.is_first)
        && let Some(demotion) = &file.demotion
    {
        let (path, counts) = (file.path.clone(), demotion.counts());
        log::leave(&Line::Judged { path, counts });
    }
}

impl File {
    /// What is demoted of it, if anything is.
    pub(super) fn demotion(&self) -> Option<&Demotion> {
        self.demotion.as_ref()
    }

    /// Our hints beside those of a set that the program gives. One that it does not give changes nothing of what
    /// holds since the open.
    pub(super) fn hints_beside(&self, info: usize) -> Option<Added> {
        let is_given = info != Numbers::here().no_info && !self.hints.is_empty();
        is_given.then(|| Added::beside(info, &self.hints)).flatten()
    }

    /// Leaves what the library tells of our hints, as far as that is new. Later it may be silent about
    /// what it told at first (Open MPI 4.1 after `MPI_File_set_info`), which says nothing.
    pub(super) fn tell_hints(&self, added: &Added) {
        let library = if self.is_first { Told::of(self.handle) } else { None };
        let Some(library) = library else { return };
        let mut told = self.told.lock().unwrap_or_else(PoisonError::into_inner);
        for (key, asked) in &self.hints {
            let effect = added.effect(key, asked, &library);
            let before = told.get(key);
            if effect == HintEffect::Unknown && before.is_some() {
                continue;
            }
            let program = added.program(key, asked);
            let program = program.or_else(|| before.and_then(|it| it.0.clone()));
            let now = (program, effect);
            if before != Some(&now) {
                let (path, key, asked) = (self.path.clone(), key.clone(), asked.clone());
                let (program, effect) = now.clone();
                told.insert(key.clone(), now);
                log::leave(&Line::Hint { path, key, asked, program, effect });
            }
        }
    }
}
