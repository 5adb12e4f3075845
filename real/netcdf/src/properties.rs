//! The strategy `nc`: files get properties that a user gave, in place of the program's own for these.
//!
//! The size of caches is set around the calls in which NetCDF reads it, and set back, so that other files keep theirs.
//! Room behind the header is left when the first variables of a new file have been defined: later, it is there to be
//! used. A guest's rules: the library is asked and told about files only with which a call has just succeeded.

use crate::ask::Asked;
use crate::objects::{self, STATE};
use crate::rows::What;
use iolab_layer::applied;
use iolab_policy::insitu::hdf5::slots;
use iolab_policy::insitu::netcdf::{Effect, Line, Properties, Property};
use iolab_policy::insitu::{Selection, StrategySpec};
use std::ffi::{CStr, OsStr, c_char, c_int};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::OnceLock;

/// `NC_EPERM`: the file is open for reading.
const ONLY_READ: c_int = -37;
/// `NC_FILL` and `NC_NOFILL`.
const FILL: c_int = 0;
const NO_FILL: c_int = 0x100;
/// Alignments that `nc_enddef` has, and those that PnetCDF reads as its own.
const ALIGNMENT_OF_C: usize = 4;
const ALIGNMENT_OF_PARALLEL: usize = 0;

/// The properties of this program's files, and the files; none without the strategy.
fn wanted() -> &'static [(Selection, Properties)] {
    static WANTED: OnceLock<Vec<(Selection, Properties)>> = OnceLock::new();
    WANTED.get_or_init(|| applied::of_layer(StrategySpec::netcdf))
}

/// Whether any file gets properties.
pub(crate) fn are_wanted() -> bool {
    !wanted().is_empty()
}

/// An open file that the strategy is for.
#[derive(Clone, Debug)]
pub(crate) struct Chosen {
    path: String,
    properties: &'static Properties,
    /// It was created, and no definitions of variables have ended yet.
    is_fresh: bool,
}

/// What is done around a call.
pub(crate) enum Around {
    /// Nothing.
    Nothing,
    /// A file is opened, perhaps with another size of caches.
    Open { path: String, properties: &'static Properties, cache: Option<Cache> },
    /// Something is defined with another size of caches.
    Define(Option<Cache>),
    /// Definitions of a new file end, by the longer form of the call with these arguments.
    End { chosen: Chosen, address: usize, words: [usize; 5] },
}

/// Before a call: `name` of a function of these arguments.
pub(crate) fn before(asked: Asked, name: &CStr, what: What, words: &[usize]) -> Around {
    match what {
        What::Open(at) => opening(asked, words.get(at).copied().unwrap_or(0)),
        What::Define => Around::Define(chosen(asked, words).and_then(|it| it.cache(asked))),
        What::On if name.to_bytes().ends_with(b"enddef") => ending(asked, words),
        _ => Around::Nothing,
    }
}

fn opening(asked: Asked, name: usize) -> Around {
    began(asked);
    if name == 0 {
        return Around::Nothing;
    }
    // SAFETY: the program's name of a file, which the call is about to read.
    let name = unsafe { CStr::from_ptr(name as *const c_char) }.to_bytes();
    let path = objects::path_of(asked, name);
    let path = Path::new(OsStr::from_bytes(&path));
    let Some((_, properties)) = wanted().iter().find(|it| applied::chooses(&it.0, path)) else {
        return Around::Nothing;
    };
    let cache = cache_of(properties).and_then(|bytes| Cache::set(asked, bytes));
    Around::Open { path: path.to_string_lossy().into_owned(), properties, cache }
}

fn ending(asked: Asked, words: &[usize]) -> Around {
    let Some(chosen) = chosen(asked, words).filter(|it| it.is_fresh) else {
        return Around::Nothing;
    };
    let Some(bytes) = chosen.pad().filter(|_| !asked.has_chunks(words[0] as c_int)) else {
        return Around::Nothing;
    };
    if asked.variables(words[0] as c_int).is_none_or(|count| count == 0) {
        // NetCDF leaves no room before nothing, and Python's ends definitions after each one.
        return Around::Nothing;
    }
    if !asked.has_room(words[0] as c_int, bytes) {
        chosen.leave(Property::HeaderPad(bytes), Effect::NoRoom);
        return Around::Nothing;
    }
    let name = if asked.is_parallel() { c"ncmpi__enddef" } else { c"nc__enddef" };
    let Some(address) = asked.library.function(name) else {
        chosen.leave(Property::HeaderPad(bytes), Effect::Unknown);
        return Around::Nothing;
    };
    let align = if asked.is_parallel() { ALIGNMENT_OF_PARALLEL } else { ALIGNMENT_OF_C };
    let words = match *words {
        // A program that leaves room itself is left with the larger one.
        [file, room, first, second, third] => {
            [file, room.max(bytes as usize), first, second, third]
        }
        _ => [words[0], bytes as usize, align, 0, align],
    };
    Around::End { chosen, address, words }
}

impl Around {
    /// What is called in place of the call, if anything is.
    pub(crate) fn instead(&self) -> Option<usize> {
        let Around::End { address, words: [a, b, c, d, e], .. } = *self else { return None };
        // SAFETY: the longer form of the call, which takes so many words and answers as the shorter one does.
        unsafe {
            let function: unsafe extern "C-unwind" fn(usize, usize, usize, usize, usize) -> usize =
                std::mem::transmute(address);
            Some(function(a, b, c, d, e))
        }
    }

    /// After the call with its answer.
    pub(crate) fn after(self, asked: Asked, name: &CStr, words: &[usize], answer: c_int) {
        match self {
            Around::Nothing => {}
            Around::Define(cache) => cache.into_iter().for_each(|cache| cache.give_back(asked)),
            Around::End { chosen, .. } => {
                if answer == 0 {
                    let pad = chosen.pad().map(Property::HeaderPad);
                    pad.into_iter().for_each(|pad| chosen.leave(pad, Effect::Set));
                    let key = (asked.library.key(), words[0] as c_int);
                    STATE.lock().chosen.insert(key, Chosen { is_fresh: false, ..chosen });
                }
            }
            Around::Open { path, properties, cache } => {
                let has_cache = cache.is_some();
                cache.into_iter().for_each(|cache| cache.give_back(asked));
                let place = words.last().copied().unwrap_or(0) as *const c_int;
                if answer != 0 || place.is_null() {
                    return;
                }
                // SAFETY: the place where the library has just put the identifier.
                let id = unsafe { *place };
                let is_fresh = name.to_bytes().windows(6).any(|part| part == b"create");
                let chosen = Chosen { path, properties, is_fresh };
                chosen.opened(asked, id, has_cache);
                STATE.lock().chosen.insert((asked.library.key(), id), chosen);
            }
        }
    }
}

impl Chosen {
    fn pad(&self) -> Option<u64> {
        self.properties.wanted().iter().find_map(|it| match it {
            Property::HeaderPad(bytes) => Some(*bytes),
            _ => None,
        })
    }

    fn cache(&self, asked: Asked) -> Option<Cache> {
        cache_of(self.properties).and_then(|bytes| Cache::set(asked, bytes))
    }

    /// What became of each property when the file was opened.
    fn opened(&self, asked: Asked, id: c_int, has_cache: bool) {
        leave(&Line::Opened { path: self.path.clone() });
        for property in self.properties.wanted() {
            let effect = match property {
                Property::ChunkCache(_) if !asked.has_chunks(id) => Effect::NoChunks,
                Property::ChunkCache(_) if has_cache => Effect::Set,
                Property::ChunkCache(_) => Effect::Unknown,
                Property::HeaderPad(_) if asked.has_chunks(id) => Effect::NoHeader,
                Property::HeaderPad(_) if !self.is_fresh => Effect::NotNew,
                // Until definitions end.
                Property::HeaderPad(_) => Effect::NothingDefined,
                Property::NoFill(true) if asked.is_parallel() => Effect::Already,
                Property::NoFill(wanted) => set_fill(asked, id, !wanted),
            };
            self.leave(*property, effect);
        }
    }

    fn leave(&self, property: Property, effect: Effect) {
        leave(&Line::Property { path: self.path.clone(), asked: property.text(), effect });
    }
}

fn chosen(asked: Asked, words: &[usize]) -> Option<Chosen> {
    let id = words.first().copied()? as c_int;
    let (state, library) = (STATE.lock(), asked.library.key());
    let of_id = state.chosen.get(&(library, id));
    of_id.or_else(|| state.chosen.get(&(library, asked.file_of(id)))).cloned()
}

fn cache_of(properties: &Properties) -> Option<u64> {
    properties.wanted().iter().find_map(|it| match it {
        Property::ChunkCache(bytes) => Some(*bytes),
        _ => None,
    })
}

fn set_fill(asked: Asked, id: c_int, is_filled: bool) -> Effect {
    type Set = unsafe extern "C-unwind" fn(c_int, c_int, *mut c_int) -> c_int;
    let mut before = 0;
    // SAFETY: the function's type, and room for what was before.
    let answer = unsafe {
        let set: Option<Set> = asked.function(c"nc_set_fill", c"ncmpi_set_fill");
        set.map(|set| set(id, if is_filled { FILL } else { NO_FILL }, &mut before))
    };
    match answer {
        None => Effect::Unknown,
        Some(0) => Effect::Set,
        Some(ONLY_READ) => Effect::OnlyRead,
        Some(_) => Effect::Refused,
    }
}

/// What caches were before: bytes, slots, and how willingly chunks that were read whole leave.
pub(crate) struct Cache(usize, usize, f32);

impl Cache {
    /// Has caches be of so many bytes from now on; none where NetCDF knows no size.
    fn set(asked: Asked, bytes: u64) -> Option<Cache> {
        type Get = unsafe extern "C-unwind" fn(*mut usize, *mut usize, *mut f32) -> c_int;
        let mut was = Cache(0, 0, 0.75);
        // SAFETY: the function's type, and room for what it tells.
        let answer = unsafe {
            let get: Get = asked.function(c"nc_get_chunk_cache", c"ncmpi_get_chunk_cache")?;
            get(&mut was.0, &mut was.1, &mut was.2)
        };
        let wanted = Cache(bytes as usize, was.1.max(slots(bytes) as usize), was.2);
        (answer == 0 && wanted.put(asked)).then_some(was)
    }

    fn give_back(self, asked: Asked) {
        self.put(asked);
    }

    fn put(&self, asked: Asked) -> bool {
        type Set = unsafe extern "C-unwind" fn(usize, usize, f32) -> c_int;
        // SAFETY: the function's type.
        unsafe {
            let set: Option<Set> = asked.function(c"nc_set_chunk_cache", c"ncmpi_set_chunk_cache");
            set.is_some_and(|set| set(self.0, self.1, self.2) == 0)
        }
    }
}

fn leave(line: &Line) {
    applied::leave("IOLAB_NETCDF_LOG", &line.text());
}

/// This process has come to that library, which is left once for each.
fn began(asked: Asked) {
    if asked.library.is_first_told() {
        leave(&Line::Began { library: asked.name() });
    }
}
