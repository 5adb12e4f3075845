//! What is asked of the library: of identifiers that a call has just succeeded with, so that no
//! question fails.

use crate::library::Hdf5;
use iolab_layer::library::Library;
use std::ffi::CStr;

/// Kinds of identifiers, the same numbers in all versions.
pub(crate) mod kind {
    pub(crate) const FILE: i32 = 1;
    pub(crate) const GROUP: i32 = 2;
    pub(crate) const DATASET: i32 = 5;
}

/// Longer names are cut.
const NAME_BYTES: usize = 2048;
/// `H5S_MAX_RANK`.
const DIMENSIONS: usize = 32;
/// No identifier is that small: its kind stands in its upper bits.
const SPACES_MAX: i64 = 0xffff;
/// `H5D_CHUNKED`.
const CHUNKED: i32 = 2;

/// Calls a function of the library; 0 when it does not have it, which no question means anything by.
pub(crate) fn ask(library: &'static Library, name: &'static CStr, words: [usize; 3]) -> usize {
    let Some(address) = library.function(name) else { return 0 };
    // SAFETY: a function that takes at most three words; more than it takes do no harm in registers.
    unsafe {
        let function: unsafe extern "C-unwind" fn(usize, usize, usize) -> usize =
            std::mem::transmute(address);
        function(words[0], words[1], words[2])
    }
}

/// A function of the library, of the type that the caller knows it to be of.
///
/// # Safety
/// `F` is the type of a pointer to the function of that name.
pub(crate) unsafe fn ask_of<F: Copy>(library: &'static Library, name: &'static CStr) -> Option<F> {
    const { assert!(size_of::<F>() == size_of::<usize>()) };
    // SAFETY: an address as a pointer to the function that lies there.
    library.function(name).map(|address| unsafe { std::mem::transmute_copy(&address) })
}

fn of_id(library: &'static Library, name: &'static CStr, id: i64) -> usize {
    ask(library, name, [id as usize, 0, 0])
}

/// What kind of thing an identifier stands for, below 1 for none.
pub(crate) fn kind(library: &'static Library, id: i64) -> i32 {
    of_id(library, c"H5Iget_type", id) as i32
}

/// Answers of functions that write a text and say its length.
fn text(
    library: &'static Library,
    name: &'static CStr,
    words: impl Fn(usize, usize) -> [usize; 3],
) -> Vec<u8> {
    let mut buffer = vec![0; NAME_BYTES];
    let length = ask(library, name, words(buffer.as_mut_ptr() as usize, buffer.len())) as isize;
    buffer.truncate(usize::try_from(length).unwrap_or(0).min(NAME_BYTES - 1));
    buffer
}

/// The name of an object in its file; of an attribute, that of what it is attached to.
pub(crate) fn name(library: &'static Library, id: i64) -> Vec<u8> {
    text(library, c"H5Iget_name", |buffer, room| [id as usize, buffer, room])
}

/// The own name of an attribute.
pub(crate) fn attribute_name(library: &'static Library, id: i64) -> Vec<u8> {
    text(library, c"H5Aget_name", |buffer, room| [id as usize, room, buffer])
}

/// The name of an object's file, as it was opened.
pub(crate) fn file_name(library: &'static Library, id: i64) -> Vec<u8> {
    text(library, c"H5Fget_name", |buffer, room| [id as usize, buffer, room])
}

/// Works with an identifier that a question has given, and gives it back.
fn with<T>(
    library: &'static Library,
    (opened, close): (usize, &'static CStr),
    work: impl FnOnce(i64) -> T,
) -> Option<T> {
    let id = library.id(opened);
    if id <= 0 {
        return None;
    }
    let answer = work(id);
    of_id(library, close, id);
    Some(answer)
}

/// Bytes of an element of a type.
pub(crate) fn type_bytes(library: &'static Library, datatype: i64) -> i64 {
    of_id(library, c"H5Tget_size", datatype) as i64
}

/// Bytes of an element of a dataset, in the file.
pub(crate) fn element_bytes(library: &'static Library, dataset: i64) -> i64 {
    let opened = of_id(library, c"H5Dget_type", dataset);
    with(library, (opened, c"H5Tclose"), |it| type_bytes(library, it)).unwrap_or(0)
}

/// Elements of a chunk by dimension; none where the dataset is not stored in chunks.
pub(crate) fn chunk(library: &'static Library, dataset: i64) -> Vec<u64> {
    let opened = of_id(library, c"H5Dget_create_plist", dataset);
    let sides = with(library, (opened, c"H5Pclose"), |list| {
        if of_id(library, c"H5Pget_layout", list) as i32 != CHUNKED {
            return Vec::new();
        }
        let mut sides = vec![0u64; DIMENSIONS];
        let words = [list as usize, DIMENSIONS, sides.as_mut_ptr() as usize];
        let count = ask(library, c"H5Pget_chunk", words) as i32;
        sides.truncate(usize::try_from(count).unwrap_or(0));
        sides
    });
    sides.unwrap_or_default()
}

/// Elements selected in a space.
fn selected(library: &'static Library, space: i64) -> i64 {
    of_id(library, c"H5Sget_select_npoints", space) as i64
}

/// Elements of an access: those selected in the file, else in memory, else all there are.
pub(crate) fn points(library: &'static Library, dataset: i64, memory: i64, file: i64) -> i64 {
    // Beside spaces there are small numbers that mean one (`H5S_ALL`, `H5S_BLOCK`, `H5S_PLIST`).
    let is_space = |space: &&i64| **space > SPACES_MAX;
    match [file, memory].iter().find(is_space) {
        Some(space) => selected(library, *space),
        None => extent(library, c"H5Dget_space", dataset),
    }
}

/// Elements of an attribute.
pub(crate) fn attribute_points(library: &'static Library, attribute: i64) -> i64 {
    extent(library, c"H5Aget_space", attribute)
}

fn extent(library: &'static Library, get: &'static CStr, id: i64) -> i64 {
    let opened = of_id(library, get, id);
    let points = |space| of_id(library, c"H5Sget_simple_extent_npoints", space) as i64;
    with(library, (opened, c"H5Sclose"), points).unwrap_or(0)
}

/// Bytes of a stored chunk, by the place of its first element; -1 where the version cannot tell.
pub(crate) fn stored_chunk(library: &'static Library, dataset: i64, place: usize) -> i64 {
    let mut bytes = u64::MAX;
    ask(library, c"H5Dget_chunk_storage_size", [dataset as usize, place, &raw mut bytes as usize]);
    bytes as i64
}
