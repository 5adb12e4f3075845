//! The strategy `h5`: a file is opened with properties that a user gave, in place of the program's own for these.
//!
//! They are set on a copy of the program's list, which the call gets for its own and which goes when the file is
//! open. A guest's rules: an identifier that means no list passes for HDF5 to complain of; and where an open failed
//! nothing is asked of the library before the program's next one, since any call of it clears the account of what
//! went wrong, which the program may want to read.

use crate::ask::{ask, ask_of, kind};
use crate::library::Hdf5;
use crate::objects::STATE;
use iolab_layer::applied;
use iolab_layer::library::Library;
use iolab_layer::recorder::absolute;
use iolab_policy::insitu::hdf5::{Effect, Line, Properties, Property, slots};
use iolab_policy::insitu::{Selection, StrategySpec};
use std::ffi::{CStr, OsStr};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

/// The properties of this program's files, and the files; none without the strategy.
fn wanted() -> &'static [(Selection, Properties)] {
    static WANTED: OnceLock<Vec<(Selection, Properties)>> = OnceLock::new();
    WANTED.get_or_init(|| applied::of_layer(StrategySpec::hdf5))
}

/// Whether any file gets properties.
pub(crate) fn are_wanted() -> bool {
    !wanted().is_empty()
}

/// A file about to be opened, which the strategy is for.
pub(crate) struct Opening {
    library: &'static Library,
    path: PathBuf,
    /// Our list, and where it stands among the arguments; none where the call is left alone.
    list: Option<(i64, usize)>,
    effects: Vec<(Property, Effect)>,
}

/// Before a call that may open a file. `before` arguments stand before its own, as in `…_async`.
pub(crate) fn opening(
    name: &CStr,
    words: &[usize],
    before: usize,
    library: &'static Library,
) -> Option<Opening> {
    // `H5Fcreate(name, flags, creation, access)`, `H5Fopen(name, flags, access)`.
    let at = before + if name.to_bytes().starts_with(b"H5Fcreate") { 3 } else { 2 };
    let given = *words.get(at)?;
    began(library);
    give_back(library);
    let file = *words.get(before).filter(|&&file| file != 0)?;
    // SAFETY: the program's name of a file, which the call is about to read.
    let file = unsafe { CStr::from_ptr(file as *const libc::c_char) }.to_bytes();
    let path = absolute(file);
    let path = Path::new(OsStr::from_bytes(&path)).to_owned();
    let (_, properties) = wanted().iter().find(|it| applied::chooses(&it.0, &path))?;
    let all = |effect| properties.wanted().iter().map(|it| (*it, effect)).collect();
    if before > 0 {
        // When its work is done the list may be gone.
        return Some(Opening { library, path, list: None, effects: all(Effect::Asynchronous) });
    }
    let Some(list) = own_list(library, given) else {
        return Some(Opening { library, path, list: None, effects: all(Effect::Unknown) });
    };
    let set = |it: &Property| (*it, set(library, list, *it));
    let effects = properties.wanted().iter().map(set).collect();
    Some(Opening { library, path, list: Some((list, at)), effects })
}

impl Opening {
    /// The arguments with our list.
    pub(crate) fn words(&self, words: &[usize]) -> Vec<usize> {
        let mut words = words.to_vec();
        if let Some((list, at)) = self.list {
            words[at] = list as usize;
        }
        words
    }

    /// After the call, with its answer.
    pub(crate) fn done(self, answer: usize) {
        let is_open = self.library.id(answer) >= 0;
        if let Some((list, _)) = self.list {
            match is_open {
                true => close(self.library, list),
                false => STATE.lock().lists.push((self.library.key_of(list), list)),
            }
        }
        if !is_open {
            return;
        }
        let path = self.path.to_string_lossy().into_owned();
        leave(&Line::Opened { path: path.clone() });
        for (property, effect) in self.effects {
            leave(&Line::Property { path: path.clone(), asked: property.text(), effect });
        }
    }
}

/// Gives back the lists of opens that failed.
fn give_back(library: &'static Library) {
    let mut state = STATE.lock();
    let (here, elsewhere): (Vec<_>, Vec<_>) =
        std::mem::take(&mut state.lists).into_iter().partition(|it| it.0 == library.key_of(it.1));
    state.lists = elsewhere;
    drop(state);
    here.into_iter().for_each(|(_, list)| close(library, list));
}

fn close(library: &'static Library, list: i64) {
    ask(library, c"H5Pclose", [list as usize, 0, 0]);
}

/// A list of our own like the one that a call is given; none where that is none, or nothing is known of lists. (The
/// library answers what kind an identifier is of without complaining of those it does not know.)
fn own_list(library: &'static Library, given: usize) -> Option<i64> {
    const DEFAULT: i64 = 0;
    // Before anything else: the library says what its classes are when it has set itself up.
    ask(library, c"H5open", [0; 3]);
    let made = match library.id(given) {
        DEFAULT => ask(library, c"H5Pcreate", [access_class(library)? as usize, 0, 0]),
        list if kind(library, list) > 0 => ask(library, c"H5Pcopy", [list as usize, 0, 0]),
        _ => return None,
    };
    Some(library.id(made)).filter(|list| *list > 0)
}

/// The class of lists with which files are opened.
fn access_class(library: &'static Library) -> Option<i64> {
    // The second is that of versions before 1.8.14.
    [c"H5P_CLS_FILE_ACCESS_ID_g", c"H5P_CLS_FILE_ACCESS_g"]
        .into_iter()
        .find_map(|name| library.variable(name).filter(|id| kind(library, *id) > 0))
}

fn set(library: &'static Library, list: i64, property: Property) -> Effect {
    let list = list as usize;
    let effect = |name, words: [usize; 3]| match library.function(name) {
        None => Effect::Unknown,
        Some(_) if (ask(library, name, words) as i32) < 0 => Effect::Refused,
        Some(_) => Effect::Set,
    };
    match property {
        Property::Alignment { bytes, threshold } => {
            effect(c"H5Pset_alignment", [list, threshold as usize, bytes as usize])
        }
        Property::MetaBlock(bytes) => effect(c"H5Pset_meta_block_size", [list, bytes as usize, 0]),
        Property::ChunkCache(bytes) => set_cache(library, list, bytes),
        Property::CollectiveMetadata(_) if !is_parallel(library, list) => Effect::NotParallel,
        Property::CollectiveMetadata(wanted) => {
            let words = [list, usize::from(wanted), 0];
            match effect(c"H5Pset_all_coll_metadata_ops", words) {
                Effect::Set => effect(c"H5Pset_coll_metadata_write", words),
                other => other,
            }
        }
    }
}

/// Whether files are opened by MPI-IO with that list: its driver is the one of that name.
fn is_parallel(library: &'static Library, list: usize) -> bool {
    let driver = library.id(ask(library, c"H5Pget_driver", [list, 0, 0]));
    let of_mpi = match library.function(c"H5FD_mpio_init") {
        Some(_) => Some(library.id(ask(library, c"H5FD_mpio_init", [0; 3]))),
        None => library.variable(c"H5FD_MPIO_id_g"),
    };
    driver > 0 && of_mpi == Some(driver)
}

/// `H5Pset_cache(list, int, slots, bytes, preemption)`: what was set beside the bytes stays, and there are slots enough.
fn set_cache(library: &'static Library, list: usize, bytes: u64) -> Effect {
    type Get =
        unsafe extern "C-unwind" fn(usize, *mut i32, *mut usize, *mut usize, *mut f64) -> i32;
    type Set = unsafe extern "C-unwind" fn(usize, i32, usize, usize, f64) -> i32;
    let (mut objects, mut had, mut held, mut preemption) = (0, 0, 0, 0.75);
    // SAFETY: the library's functions of these types, and room for what one of them tells.
    let answer = unsafe {
        ask_of::<Get>(library, c"H5Pget_cache").zip(ask_of::<Set>(library, c"H5Pset_cache")).map(
            |(get, set)| match get(list, &mut objects, &mut had, &mut held, &mut preemption) {
                0.. => {
                    set(list, objects, had.max(slots(bytes) as usize), bytes as usize, preemption)
                }
                failed => failed,
            },
        )
    };
    match answer {
        None => Effect::Unknown,
        Some(0..) => Effect::Set,
        Some(_) => Effect::Refused,
    }
}

fn leave(line: &Line) {
    applied::leave("IOLAB_HDF5_LOG", &line.text());
}

/// This process has come to that library, which is left once for each.
fn began(library: &'static Library) {
    if !library.is_first_told() {
        return;
    }
    let name = match library.version() {
        Some([major, minor, release]) => format!("HDF5 {major}.{minor}.{release}"),
        None => "HDF5".to_owned(),
    };
    leave(&Line::Began { library: name });
}
