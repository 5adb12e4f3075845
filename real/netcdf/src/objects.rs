//! What this process knows of open files and their variables, as records have it.

use crate::ask::{Asked, Variable};
use crate::properties::Chosen;
use crate::requests::Requests;
use crate::rows::RECORDER;
use iolab_layer::lock::Locked;
use iolab_layer::recorder::{Numbers, absolute};
use std::collections::BTreeMap;
use std::ffi::c_int;

/// All of it. Libraries are told apart by their keys.
pub(crate) struct State {
    /// Numbers of files, by identifier.
    files: BTreeMap<(usize, c_int), u32>,
    /// By identifiers of file (or group) and variable.
    variables: BTreeMap<(usize, c_int, c_int), Known>,
    /// Numbers of files and texts in the run, the latter by file.
    numbers: Numbers,
    /// Accesses that are posted and not waited for.
    pub(crate) requests: Requests,
    /// Open files that the strategy is for, by identifier.
    pub(crate) chosen: BTreeMap<(usize, c_int), Chosen>,
}

pub(crate) static STATE: Locked<State> = Locked::new(State {
    files: BTreeMap::new(),
    variables: BTreeMap::new(),
    numbers: Numbers::none(),
    requests: Requests::none(),
    chosen: BTreeMap::new(),
});

/// What a call is on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct On {
    /// Number of the file.
    pub(crate) file: u32,
    /// Number of the text that describes the object; 0 for the file itself.
    pub(crate) text: u32,
}

/// A variable that was met.
#[derive(Clone, Debug)]
pub(crate) struct Known {
    pub(crate) on: On,
    /// Its name with those of the groups around it.
    pub(crate) path: Vec<u8>,
    pub(crate) variable: Variable,
}

/// The number of an open file; 0 for none that was seen.
pub(crate) fn file(asked: Asked, id: c_int) -> u32 {
    let (state, library) = (STATE.lock(), asked.library.key());
    let of_id = state.files.get(&(library, id));
    of_id.or_else(|| state.files.get(&(library, asked.file_of(id)))).copied().unwrap_or(0)
}

/// A file that was just opened, by its name.
pub(crate) fn opened(asked: Asked, id: c_int, name: &[u8]) -> u32 {
    forget(asked, id);
    let number = number(0, path_of(asked, name));
    STATE.lock().files.insert((asked.library.key(), id), number);
    number
}

/// The number of a file that could not be opened.
pub(crate) fn unopened(asked: Asked, name: &[u8]) -> u32 {
    number(0, path_of(asked, name))
}

/// Forgets a file and all that is in it.
pub(crate) fn forget(asked: Asked, id: c_int) {
    let mut state = STATE.lock();
    let library = asked.library.key();
    state.files.remove(&(library, id));
    state.requests.forget(library, id);
    state.chosen.remove(&(library, id));
    let of_file =
        |it: &(usize, c_int, c_int)| it.0 == library && (it.1 == id || asked.file_of(it.1) == id);
    state.variables.retain(|key, _| !of_file(key));
}

/// A variable that was met before.
pub(crate) fn known(asked: Asked, id: c_int, variable: c_int) -> Option<Known> {
    STATE.lock().variables.get(&(asked.library.key(), id, variable)).cloned()
}

/// A variable that a call has just succeeded with; asked once.
pub(crate) fn of(asked: Asked, id: c_int, variable: c_int) -> Option<Known> {
    if let Some(known) = known(asked, id, variable) {
        return Some(known);
    }
    let found = asked.variable(id, variable)?;
    let file = file(asked, id);
    let path = [asked.group(id).as_slice(), b"/", &found.name].concat();
    let sides: Vec<String> = found.chunk.iter().map(ToString::to_string).collect();
    let chunk = if sides.is_empty() { "-".to_owned() } else { sides.join("x") };
    let text = text(file, &format!("variable {} {chunk}", found.element_bytes), &path);
    let known = Known { on: On { file, text }, path, variable: found };
    STATE.lock().variables.insert((asked.library.key(), id, variable), known.clone());
    Some(known)
}

/// An attribute, of a variable or (`NC_GLOBAL`) a group.
pub(crate) fn attribute(asked: Asked, id: c_int, variable: c_int, name: &[u8]) -> On {
    let file = file(asked, id);
    let group = || {
        let name = asked.group(id);
        if name.is_empty() { b"/".to_vec() } else { name }
    };
    let of = if variable < 0 { None } else { of(asked, id, variable) };
    let owner = of.map_or_else(group, |known| known.path);
    On { file, text: text(file, "attribute 0 -", &[owner.as_slice(), b"@", name].concat()) }
}

/// Several variables of a file that one call is on.
pub(crate) fn several(file: u32, paths: &[Vec<u8>]) -> On {
    /// More are not named.
    const NAMED: usize = 4;
    let mut name = paths.iter().take(NAMED).map(Vec::as_slice).collect::<Vec<_>>().join(&b", "[..]);
    if let Some(more) = paths.len().checked_sub(NAMED).filter(|more| *more > 0) {
        name.extend(format!(" and {more} more").into_bytes());
    }
    On { file, text: text(file, "variables 0 -", &name) }
}

/// The number of a text about an object.
fn text(file: u32, what: &str, path: &[u8]) -> u32 {
    number(file, [b"\0object ", what.as_bytes(), b" ", path].concat())
}

/// The path a name stands for: of a name with the kind of file system before it (`ufs:out`, of PnetCDF) the rest,
/// of an address the whole.
pub(crate) fn path_of(asked: Asked, name: &[u8]) -> Vec<u8> {
    let text = String::from_utf8_lossy(name);
    if let Some((scheme, rest)) = text.split_once("://") {
        // What follows `#` says how to read it.
        let path = rest.split('#').next().unwrap_or_default();
        return if scheme == "file" { absolute(path.as_bytes()) } else { name.to_vec() };
    }
    let kind = name.split(|byte| *byte == b':').next().unwrap_or_default();
    let has_kind = kind.len() < name.len() && kind.iter().all(u8::is_ascii_alphanumeric);
    absolute(if asked.is_parallel() && has_kind { &name[kind.len() + 1..] } else { name })
}

/// The number of a path, or of a text about an object of `file`; given out once.
fn number(file: u32, text: Vec<u8>) -> u32 {
    Numbers::of(&STATE, |state| &mut state.numbers, &RECORDER, (file, text))
}
