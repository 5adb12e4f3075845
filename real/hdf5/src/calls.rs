//! Every function of HDF5 that is seen, and what happens around a call of it.
//!
//! A row: the function, its arguments, the function of the trace, what it does, and how many arguments
//! stand before its own (an `…_async` call says first where it stands, and last which set of events it
//! joins). What one call of HDF5 calls inside is its own.

use crate::library::HDF5;
use crate::objects::STATE;
use crate::properties;
use crate::rows::{Call, RECORDER, What};
use iolab_layer::inside::{Inside, kept};
use iolab_layer::library::{self, Library};
use iolab_layer::lock::{Hold, survive_forks};
use iolab_layer::recorder::Times;
use iolab_trace::Function;
use std::cell::Cell;
use std::ffi::CStr;
use std::sync::LazyLock;

/// What a function answers that this HDF5 does not have: as all of them when they fail.
const NO_SUCH_FUNCTION: usize = usize::MAX;

thread_local! {
    /// Where this thread is in a call of HDF5.
    static FRAME: Cell<usize> = const { Cell::new(0) };
}

/// One row of the table.
struct Row {
    name: &'static CStr,
    function: Function,
    what: What,
    before: usize,
}

/// Makes a call with such arguments, at that address.
type Perform<'a> = &'a dyn Fn(usize, &[usize]) -> usize;

/// # Safety
/// The arguments are the guest's own; `perform` calls a function that takes them.
#[inline(never)]
unsafe fn around(row: &'static Row, words: &[usize], perform: Perform<'_>) -> usize {
    let found =
        HDF5.of_call(row.name).and_then(|library| Some((library, library.function(row.name)?)));
    let Some((library, address)) = found else { return NO_SUCH_FUNCTION };
    let has_properties = row.what == What::OpenFile && properties::are_wanted();
    if RECORDER.door().is_none() && !has_properties {
        return perform(address, words);
    }
    let Some(_inside) = Inside::enter(&FRAME) else { return perform(address, words) };
    survive_forks(locks());
    let opening = has_properties
        .then(|| kept(|| properties::opening(row.name, words, row.before, library)))
        .flatten();
    let Some(opening) = opening else { return recorded(row, words, library, address, perform) };
    let answer = recorded(row, &opening.words(words), library, address, perform);
    kept(|| opening.done(answer));
    answer
}

/// All locks of this library.
fn locks() -> &'static [&'static dyn Hold] {
    static LOCKS: LazyLock<[&'static dyn Hold; 2]> = LazyLock::new(|| [&STATE, library::lock()]);
    &*LOCKS
}

/// Makes a call, and a record of it where there is a recorder.
fn recorded(
    row: &'static Row,
    words: &[usize],
    library: &'static Library,
    address: usize,
    perform: Perform<'_>,
) -> usize {
    let Some(door) = RECORDER.door() else { return perform(address, words) };
    let call = Call::of(row.function, row.what, &words[row.before..], library);
    let start = (door.now)();
    let answer = perform(address, words);
    let times = Times { start, end: (door.now)() };
    if let Some(record) = kept(|| call.record(times, answer)) {
        RECORDER.push(record);
    }
    answer
}

macro_rules! wrappers {
    ($($name:ident ($($argument:ident)*) $function:ident $what:ident $before:literal;)*) => { $(
        /// # Safety
        /// The arguments must be what HDF5's function of this name demands.
        #[unsafe(no_mangle)]
        #[allow(non_snake_case, reason = "HDF5's name")]
        #[allow(clippy::too_many_arguments, reason = "HDF5 has them")]
        unsafe extern "C-unwind" fn $name($($argument: usize),*) -> usize {
            static ROW: Row = Row {
                name: match CStr::from_bytes_with_nul(concat!(stringify!($name), "\0").as_bytes()) {
                    Ok(name) => name,
                    Err(_) => panic!("a name of the table has no end"),
                },
                function: Function::$function,
                what: What::$what,
                before: $before,
            };
            let perform = |address: usize, words: &[usize]| {
                let &[$($argument),*] = words else { return NO_SUCH_FUNCTION };
                // SAFETY: the function of this name, which takes as many words.
                unsafe {
                    let function: unsafe extern "C-unwind" fn($(wrappers!(word $argument)),*) -> usize =
                        std::mem::transmute(address);
                    function($($argument),*)
                }
            };
            // SAFETY: the guest's own arguments.
            unsafe { around(&ROW, &[$($argument),*], &perform) }
        }
    )* };
    (word $argument:ident) => { usize };
}

wrappers! {
    H5Fcreate (a b c d) H5F_CREATE OpenFile 0;
    H5Fcreate_async (a b c d e f g h) H5F_CREATE OpenFile 3;
    H5Fopen (a b c) H5F_OPEN OpenFile 0;
    H5Fopen_async (a b c d e f g) H5F_OPEN OpenFile 3;
    H5Fflush (a b) H5F_FLUSH On 0;
    H5Fflush_async (a b c d e f) H5F_FLUSH On 3;
    H5Fclose (a) H5F_CLOSE Close 0;
    H5Fclose_async (a b c d e) H5F_CLOSE Close 3;
    H5Gcreate1 (a b c) H5G_CREATE Open 0;
    H5Gcreate2 (a b c d e) H5G_CREATE Open 0;
    H5Gcreate_async (a b c d e f g h i) H5G_CREATE Open 3;
    H5Gcreate_anon (a b c) H5G_CREATE Open 0;
    H5Gopen1 (a b) H5G_OPEN Open 0;
    H5Gopen2 (a b c) H5G_OPEN Open 0;
    H5Gopen_async (a b c d e f g) H5G_OPEN Open 3;
    H5Gclose (a) H5G_CLOSE Close 0;
    H5Gclose_async (a b c d e) H5G_CLOSE Close 3;
    H5Dcreate1 (a b c d e) H5D_CREATE Open 0;
    H5Dcreate2 (a b c d e f g) H5D_CREATE Open 0;
    H5Dcreate_async (a b c d e f g h i j k) H5D_CREATE Open 3;
    H5Dcreate_anon (a b c d e) H5D_CREATE Open 0;
    H5Dopen1 (a b) H5D_OPEN Open 0;
    H5Dopen2 (a b c) H5D_OPEN Open 0;
    H5Dopen_async (a b c d e f g) H5D_OPEN Open 3;
    H5Dread (a b c d e f) H5D_READ Transfer 0;
    H5Dread_async (a b c d e f g h i j) H5D_READ Transfer 3;
    H5Dwrite (a b c d e f) H5D_WRITE Transfer 0;
    H5Dwrite_async (a b c d e f g h i j) H5D_WRITE Transfer 3;
    H5Dread_multi (a b c d e f g) H5D_READ TransferSeveral 0;
    H5Dread_multi_async (a b c d e f g h i j k) H5D_READ TransferSeveral 3;
    H5Dwrite_multi (a b c d e f g) H5D_WRITE TransferSeveral 0;
    H5Dwrite_multi_async (a b c d e f g h i j k) H5D_WRITE TransferSeveral 3;
    H5Dread_chunk (a b c d e) H5D_READ_CHUNK ReadChunk 0;
    H5Dread_chunk1 (a b c d e) H5D_READ_CHUNK ReadChunk 0;
    H5Dread_chunk2 (a b c d e f) H5D_READ_CHUNK ReadChunk 0;
    H5Dwrite_chunk (a b c d e f) H5D_WRITE_CHUNK WriteChunk 0;
    H5Dset_extent (a b) H5D_SET_EXTENT On 0;
    H5Dset_extent_async (a b c d e f) H5D_SET_EXTENT On 3;
    H5Dextend (a b) H5D_SET_EXTENT On 0;
    H5Dflush (a) H5D_FLUSH On 0;
    H5Dclose (a) H5D_CLOSE Close 0;
    H5Dclose_async (a b c d e) H5D_CLOSE Close 3;
    H5Acreate1 (a b c d e) H5A_CREATE OpenAttribute 0;
    H5Acreate2 (a b c d e f) H5A_CREATE OpenAttribute 0;
    H5Acreate_async (a b c d e f g h i j) H5A_CREATE OpenAttribute 3;
    H5Acreate_by_name (a b c d e f g h) H5A_CREATE OpenAttribute 0;
    H5Acreate_by_name_async (a b c d e f g h i j k l) H5A_CREATE OpenAttribute 3;
    H5Aopen (a b c) H5A_OPEN OpenAttribute 0;
    H5Aopen_async (a b c d e f g) H5A_OPEN OpenAttribute 3;
    H5Aopen_name (a b) H5A_OPEN OpenAttribute 0;
    H5Aopen_idx (a b) H5A_OPEN OpenAttribute 0;
    H5Aopen_by_name (a b c d e) H5A_OPEN OpenAttribute 0;
    H5Aopen_by_name_async (a b c d e f g h i) H5A_OPEN OpenAttribute 3;
    H5Aopen_by_idx (a b c d e f g) H5A_OPEN OpenAttribute 0;
    H5Aopen_by_idx_async (a b c d e f g h i j k) H5A_OPEN OpenAttribute 3;
    H5Aread (a b c) H5A_READ TransferAttribute 0;
    H5Aread_async (a b c d e f g) H5A_READ TransferAttribute 3;
    H5Awrite (a b c) H5A_WRITE TransferAttribute 0;
    H5Awrite_async (a b c d e f g) H5A_WRITE TransferAttribute 3;
    H5Aclose (a) H5A_CLOSE Close 0;
    H5Aclose_async (a b c d e) H5A_CLOSE Close 3;
    H5Oopen (a b c) H5O_OPEN Open 0;
    H5Oopen_async (a b c d e f g) H5O_OPEN Open 3;
    H5Oopen_by_addr (a b) H5O_OPEN Open 0;
    H5Oopen_by_token (a b c) H5O_OPEN Open 0;
    H5Oopen_by_idx (a b c d e f) H5O_OPEN Open 0;
    H5Oopen_by_idx_async (a b c d e f g h i j) H5O_OPEN Open 3;
    H5Oflush (a) H5O_FLUSH On 0;
    H5Oflush_async (a b c d e) H5O_FLUSH On 3;
    H5Oclose (a) H5O_CLOSE Close 0;
    H5Oclose_async (a b c d e) H5O_CLOSE Close 3;
    H5Idec_ref (a) H5I_DEC_REF Release 0;
}
