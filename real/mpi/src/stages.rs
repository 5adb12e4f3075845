//! Strategies of the layer MPI-IO, on the program's own files: `collect`, `hints` and `demote`, in this order.
//!
//! `IOLAB_APPLY` names them, with those of other layers, which are for others. Calls come here before
//! collective machines (`exchange`) and the library hear of them; files of the parallel file system never do.
//!
//! A guest's rules hold. Which stages a file has is found by rank 0 for all when it is opened, and
//! what becomes of a collective call is judged by all from what all have said: no rank ever goes by what it
//! alone knows, so none waits for another that went elsewhere. What a stage has no part in passes as it came.

mod collection;
mod demotion;
mod file;
mod independent;
mod info;
mod log;
mod request;
mod seen;
mod staging;

use crate::call::Call;
use crate::exchange::{Part, Sort, guarded, told};
use crate::family::Family;
use crate::open_files;
use crate::pfs::trouble::Trouble;
use crate::recorder::Times;
use demotion::Verdict;
use file::File;
use iolab_layer::applied;
use iolab_layer::inside::Inside;
use iolab_policy::insitu::mpiio::MpiIoStage;
use iolab_policy::insitu::{Selection, StrategySpec};
use iolab_vocab::Direction;
use std::cell::Cell;
use std::sync::OnceLock;

thread_local! {
    /// Where this thread is in a call on a file: what the library calls inside of it is its own.
    static FRAME: Cell<usize> = const { Cell::new(0) };
}

/// One stage, and the files it is for.
pub(super) struct Chosen {
    name: &'static str,
    selection: Selection,
    stage: MpiIoStage,
}

/// The stages of this run.
fn chosen() -> &'static [Chosen] {
    static CHOSEN: OnceLock<Vec<Chosen>> = OnceLock::new();
    CHOSEN.get_or_init(|| {
        let stage = |spec: StrategySpec| {
            let stage = spec.mpiio()?;
            Some(Chosen { name: spec.name, selection: spec.selection, stage })
        };
        applied::strategies(|spec| spec.mpiio().is_some()).into_iter().filter_map(stage).collect()
    })
}

/// Makes a call of MPI by `library`, with what stages have to do with it; the answer.
pub(crate) fn around(
    part: Option<Part>,
    words: &[usize],
    has_large_counts: bool,
    library: &mut dyn FnMut(&[usize]) -> i32,
) -> i32 {
    let Some(part) = part else { return library(words) };
    if chosen().is_empty() {
        return library(words);
    }
    let Some(_inside) = Inside::enter(&FRAME) else { return library(words) };
    let mut arguments = words.to_vec();
    let (times, scratch) = (Times { start: 0, end: 0 }, [0; 8]);
    let (family, noted) = (Family::here(), Vec::new());
    let call = Call { arguments: &mut arguments, has_large_counts, family, times, noted, scratch };
    match part {
        Part::Init => {
            let answer = library(words);
            guarded(log::began).unwrap_or_default();
            answer
        }
        Part::Open => {
            guarded(log::began).unwrap_or_default();
            let opening = guarded(|| file::opening(chosen(), &call)).ok().flatten();
            let Some(opening) = opening else { return library(words) };
            let answer = library(&opening.words(&call));
            guarded(|| opening.done(&call, answer)).unwrap_or_default();
            answer
        }
        Part::Finalize => {
            guarded(|| file::all().iter().for_each(|file| file.before_end())).unwrap_or_default();
            library(words)
        }
        Part::Close => {
            let file = open_files::closing(&call).and_then(file::find);
            // The handler of a file is gone when it is closed.
            let late = file.and_then(|file| Some(raised(&file, joined(&file)?)));
            guarded(|| file::closing(&call)).unwrap_or_default();
            match library(words) {
                0 => late.unwrap_or(0),
                code => code,
            }
        }
        _ => match guarded(|| file::find(call.word(0))).ok().flatten() {
            Some(file) => on_file(part, &file, &call, library),
            None => library(words),
        },
    }
}

/// A call on a file that stages are for.
fn on_file(
    part: Part,
    file: &File,
    call: &Call<'_>,
    library: &mut dyn FnMut(&[usize]) -> i32,
) -> i32 {
    let words = &*call.arguments;
    let collection = file.collection.as_ref();
    let late = if part.is_joint() { joined(file) } else { None };
    let answer = match part {
        Part::SetView => hinted(file, call, 5, library, |answer| {
            if file.demotion.is_some() || collection.is_some() {
                file.seen().view_was_set(call, answer);
            }
        }),
        Part::SetInfo => hinted(file, call, 1, library, |_| {}),
        Part::SetAtomicity => {
            let answer = library(words);
            let set = || {
                file.seen().atomicity_was_set(call, answer);
                collection.iter().for_each(|it| it.atomicity_was_set(file));
            };
            guarded(set).unwrap_or_default();
            answer
        }
        Part::Access(direction, place) => {
            let judge = || demotion::verdict(file, call, direction, place);
            match guarded(judge).unwrap_or(Verdict::Collective) {
                Verdict::Collective => library(words),
                Verdict::Independent(function) => independent::perform(function, words),
            }
        }
        Part::Begin(..) => {
            let answer = library(words);
            file.seen().is_split |= answer == 0;
            answer
        }
        Part::End(_) => {
            let answer = library(words);
            file.seen().is_split = false;
            answer
        }
        Part::Alone(Direction::Write, place) => match collection {
            Some(collection) => collection.write(file, call, place, &mut || library(words)),
            None => library(words),
        },
        Part::AloneBegun(Direction::Write, place) => match collection {
            Some(collection) => collection.begin_write(file, call, place, &mut || library(words)),
            None => library(words),
        },
        Part::Alone(Direction::Read, place) | Part::AloneBegun(Direction::Read, place) => {
            let before = || collection.iter().for_each(|it| it.before_read(file, call, place));
            guarded(before).unwrap_or_default();
            library(words)
        }
        Part::Seek if call.int(2) != call.family.seek_end => library(words),
        Part::Seek | Part::Other | Part::Theirs(Sort::NonBlocking) => {
            let before = || collection.iter().for_each(|it| it.before_other(&file.group));
            guarded(before).unwrap_or_default();
            library(words)
        }
        _ => library(words),
    };
    match late {
        // All ranks made the call, and an error of its own was told.
        Some(trouble) if answer == 0 => raised(file, trouble),
        _ => answer,
    }
}

/// What all ranks hold goes out before a call that all of them make; what went wrong.
fn joined(file: &File) -> Option<Trouble> {
    let collection = file.collection.as_ref()?;
    guarded(|| collection.joined(&file.group)).ok()?.err()
}

/// Tells of it as of an error of the call; its answer.
fn raised(file: &File, trouble: Trouble) -> i32 {
    told::raise(file.path(), file.handle, &trouble)
}

/// A call with a set of hints at the place `at`, to which ours are added where the program gives one.
fn hinted(
    file: &File,
    call: &Call<'_>,
    at: usize,
    library: &mut dyn FnMut(&[usize]) -> i32,
    then: impl FnOnce(i32),
) -> i32 {
    let added = guarded(|| file.hints_beside(call.handle(at))).ok().flatten();
    let mut words = call.arguments.to_vec();
    if let Some(added) = &added {
        words[at] = added.handle();
    }
    let answer = library(&words);
    guarded(|| {
        if let (Some(added), 0) = (added, answer) {
            file.tell_hints(&added);
        }
        then(answer);
    })
    .unwrap_or_default();
    answer
}
