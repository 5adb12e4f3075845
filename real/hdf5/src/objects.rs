//! What this process knows of its HDF5s: what identifiers stand for.

use crate::ask::{self, kind};
use crate::library::Hdf5;
use crate::rows::RECORDER;
use iolab_layer::library::Library;
use iolab_layer::lock::Locked;
use iolab_layer::recorder::{Numbers, absolute};
use std::collections::BTreeMap;

/// All of it.
pub(crate) struct State {
    /// By library and identifier.
    objects: BTreeMap<(usize, i64), Known>,
    /// Lists of properties of ours that are to be given back, and whose they are.
    pub(crate) lists: Vec<((usize, i64), i64)>,
    /// Absolute paths, by the name a file was opened with last.
    paths: BTreeMap<Vec<u8>, Vec<u8>>,
    /// Numbers of files and texts in the run, the latter by file.
    numbers: Numbers,
}

pub(crate) static STATE: Locked<State> = Locked::new(State {
    objects: BTreeMap::new(),
    lists: Vec::new(),
    paths: BTreeMap::new(),
    numbers: Numbers::none(),
});

/// What an identifier stands for, as records have it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Known {
    /// Number of the file.
    pub(crate) file: u32,
    /// Number of the text that describes the object; 0 for the file itself.
    pub(crate) text: u32,
    /// The text is said. An object may get its name when all is written (`H5Olink`).
    is_said: bool,
}

impl Known {
    /// Of this object and others of its file: the file.
    pub(crate) fn of_several(self) -> Known {
        Known { text: 0, ..self }
    }
}

/// What an identifier is known to stand for.
pub(crate) fn known(library: &'static Library, id: i64) -> Option<Known> {
    STATE.lock().objects.get(&library.key_of(id)).copied()
}

/// Forgets an identifier.
pub(crate) fn forget(library: &'static Library, id: i64) {
    STATE.lock().objects.remove(&library.key_of(id));
}

/// What an identifier stands for that a call has just succeeded with; asked once.
pub(crate) fn of(library: &'static Library, id: i64, is_attribute: bool) -> Known {
    if let Some(found) = known(library, id) {
        say_name(library, id, found);
        return found;
    }
    let name = ask::file_name(library, id);
    let path = STATE.lock().paths.get(&name).cloned();
    let file = number(0, path.unwrap_or_else(|| absolute(&name)));
    let kind = match ask::kind(library, id) {
        _ if is_attribute => "attribute",
        kind::FILE => return keep(library, id, Known { file, text: 0, is_said: true }),
        kind::DATASET => "dataset",
        kind::GROUP => "group",
        _ => "other",
    };
    let name = ask::name(library, id);
    if name.is_empty() && kind != "attribute" {
        let number = RECORDER.door().map_or(0, |door| (door.number)());
        return keep(library, id, Known { file, text: number, is_said: false });
    }
    let text = number(file, description(library, id, kind, &name));
    keep(library, id, Known { file, text, is_said: true })
}

/// Says what an object is that had no name before, if it has one now.
pub(crate) fn say_name(library: &'static Library, id: i64, known: Known) {
    // Another call may have given the identifier back.
    let kind = match (known.is_said, known.text) {
        (true, _) | (_, 0) => return,
        _ => ask::kind(library, id),
    };
    let kind = match kind {
        kind::DATASET => "dataset",
        kind::GROUP => "group",
        _ => return,
    };
    let name = ask::name(library, id);
    let Some(door) = RECORDER.door().filter(|_| !name.is_empty()) else { return };
    let text = description(library, id, kind, &name);
    (door.name)(known.text, text.as_ptr(), text.len());
    keep(library, id, Known { is_said: true, ..known });
}

/// The text about an object.
fn description(library: &'static Library, id: i64, kind: &str, name: &[u8]) -> Vec<u8> {
    let (mut element, mut chunk) = (0, "-".to_owned());
    if kind == "dataset" {
        element = ask::element_bytes(library, id).max(0);
        let sides: Vec<String> = ask::chunk(library, id).iter().map(ToString::to_string).collect();
        if !sides.is_empty() {
            chunk = sides.join("x");
        }
    }
    let mut text = format!("\0object {kind} {element} {chunk} ").into_bytes();
    text.extend(name);
    if kind == "attribute" {
        text.push(b'@');
        text.extend(ask::attribute_name(library, id));
    }
    text
}

/// A file that was just opened by that name.
pub(crate) fn opened(library: &'static Library, id: i64, name: &[u8]) -> Known {
    let path = absolute(name);
    STATE.lock().paths.insert(name.to_owned(), path.clone());
    keep(library, id, Known { file: number(0, path), text: 0, is_said: true })
}

/// The number of a file that could not be opened.
pub(crate) fn unopened(name: &[u8]) -> u32 {
    number(0, absolute(name))
}

fn keep(library: &'static Library, id: i64, known: Known) -> Known {
    STATE.lock().objects.insert(library.key_of(id), known);
    known
}

/// The number of a path, or of a text about an object of `file`; given out once.
fn number(file: u32, text: Vec<u8>) -> u32 {
    Numbers::of(&STATE, |state| &mut state.numbers, &RECORDER, (file, text))
}
