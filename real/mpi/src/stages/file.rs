//! The program's files that stages are for, by the library's handles.

use super::collection::Collection;
use super::demotion::Demotion;
use super::info::{Added, Told};
use super::seen::Seen;
use super::{Chosen, log};
use crate::call::Call;
use crate::exchange::storage::{Plain, mode, path_of_open};
use crate::exchange::told;
use crate::open_files::{self, OpenFiles};
use crate::pfs::group::Group;
use crate::pfs::numbers::Numbers;
use iolab_layer::applied;
use iolab_policy::insitu::mpiio::{Collect, Demote, HintEffect, Line, MpiIoStage};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// An open file of the library's.
pub(super) struct File {
    pub(super) handle: usize,
    path: String,
    /// Its ranks, who talk by a communicator of ours.
    pub(super) group: Group,
    seen: Mutex<Seen>,
    hints: Vec<(String, String)>,
    /// What was told of each hint.
    told: Mutex<BTreeMap<String, (Option<String>, HintEffect)>>,
    pub(super) demotion: Option<Demotion>,
    pub(super) collection: Option<Collection>,
}

static FILES: OpenFiles<File> = OpenFiles::new();

/// The file of a handle, if a stage is for it.
pub(super) fn find(handle: usize) -> Option<Arc<File>> {
    FILES.find(handle)
}

/// All files that stages are for.
pub(super) fn all() -> Vec<Arc<File>> {
    FILES.all()
}

/// A file that is about to be opened, which stages are for.
pub(super) struct Opening {
    group: Group,
    path: PathBuf,
    names: Vec<&'static str>,
    hints: Vec<(String, String)>,
    added: Option<Added>,
    demote: Option<Demote>,
    collect: Option<Collect>,
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
        let is_for = |(_, it): &(usize, &Chosen)| applied::chooses(&it.selection, &path);
        chosen.iter().enumerate().take(63).filter(is_for).fold(0u64, |bits, (at, _)| bits | 1 << at)
    };
    let bits = group.found_by_first(|| Ok(own())).ok()?;
    let stages = || chosen.iter().enumerate().filter(|(at, _)| bits & 1 << at != 0).map(|it| it.1);
    let names: Vec<&'static str> = stages().map(|it| it.name).collect();
    if names.is_empty() {
        return None;
    }
    let (mut hints, mut demote, mut collect) = (Vec::new(), None, None);
    for it in stages() {
        match &it.stage {
            MpiIoStage::Hints(given) => hints.extend_from_slice(given.given()),
            MpiIoStage::Demote(judge) => demote = Some(judge.clone()),
            MpiIoStage::Collect(stage) => collect = Some(stage.clone()),
        }
    }
    let added = if hints.is_empty() { None } else { Added::beside(call.handle(3), &hints) };
    Some(Opening { group, path, names, hints, added, demote, collect })
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
        let demotion = self.demotion(call, answer);
        let collection = self.collection(call, answer);
        if answer != 0 {
            return;
        }
        let handle = open_files::opened(call);
        let path = self.path.to_string_lossy().into_owned();
        let (told, seen) = (Mutex::default(), Mutex::new(Seen::of_bytes()));
        let (group, hints) = (self.group, self.hints);
        let file = File { handle, path, group, seen, hints, told, demotion, collection };
        if file.is_first() {
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

    /// Its demotion, if all ranks can have one.
    fn demotion(&self, call: &Call<'_>, answer: i32) -> Option<Demotion> {
        let judge = self.demote.as_ref()?;
        let is_sequential = call.family.mode(call.int(2)) & mode::SEQUENTIAL != 0;
        let cannot = u64::from(answer != 0 || is_sequential);
        let all = self.group.gather(cannot).ok()?;
        all.iter().all(|it| *it == 0).then(|| Demotion::new(judge.clone()))
    }

    /// Its collection, if there is more than one rank and all of them can have one.
    fn collection(&self, call: &Call<'_>, answer: i32) -> Option<Collection> {
        let stage = self.collect.as_ref().filter(|_| self.group.size > 1)?;
        let plain = match answer {
            0 => Plain::of(call),
            _ => Err(""),
        };
        let all = self.group.gather(u64::from(plain.is_err())).ok()?;
        let first = all.iter().position(|&cannot| cannot != 0);
        match (plain, first) {
            (Ok(plain), None) => {
                Some(Collection::new(plain, stage.clone().of_rank(self.group.rank)))
            }
            (Err(why), Some(first)) if first == self.group.rank as usize && answer == 0 => {
                told::not_held(&self.path, why);
                None
            }
            _ => None,
        }
    }
}

/// Before `MPI_File_close(file)`, which all ranks call.
pub(super) fn closing(call: &Call<'_>) {
    let Some(file) = FILES.closing(call) else { return };
    if let Some(demotion) = file.demotion.as_ref().filter(|_| file.is_first()) {
        let (path, counts) = (file.path.clone(), demotion.counts());
        log::leave(&Line::Judged { path, counts });
    }
    if let Some(collection) = &file.collection {
        let (path, mut counts) = (file.path.clone(), collection.counts());
        counts.together *= u64::from(file.is_first());
        log::leave(&Line::Collected { path, counts });
    }
}

impl File {
    /// Its path, as the program named it.
    pub(super) fn path(&self) -> &Path {
        Path::new(&self.path)
    }

    /// Before `MPI_Finalize`, which finds it open.
    pub(super) fn before_end(&self) {
        self.collection.iter().for_each(|it| it.before_end(&self.group));
    }

    /// One rank tells for all.
    fn is_first(&self) -> bool {
        self.group.rank == 0
    }

    /// What this rank sees of it.
    pub(super) fn seen(&self) -> MutexGuard<'_, Seen> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
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
        let library = if self.is_first() { Told::of(self.handle) } else { None };
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
