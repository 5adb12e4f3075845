//! What happens around a call of NetCDF.
//!
//! A row of the tables (`serial`, `parallel`): the name, how many arguments, the function of the trace, and what it
//! does with them. What one call of NetCDF calls inside of NetCDF is its own.

use crate::ask::Asked;
use crate::objects::{self, STATE};
use crate::properties::{self, Around};
use crate::rows::{Call, RECORDER, What};
use iolab_layer::inside::{Inside, kept};
use iolab_layer::library::{self, Kind};
use iolab_layer::lock::{Hold, survive_forks};
use iolab_layer::recorder::Times;
use iolab_trace::Function;
use std::cell::Cell;
use std::ffi::CStr;
use std::sync::LazyLock;

/// NetCDF-C.
pub(crate) static NETCDF_C: Kind = Kind(c"nc_inq_libvers");
/// PnetCDF.
pub(crate) static PNETCDF: Kind = Kind(c"ncmpi_inq_libvers");

/// `NC_ENOTBUILT`: what a function answers that this NetCDF does not have.
pub(crate) const NO_SUCH_FUNCTION: usize = -128i32 as u32 as usize;

thread_local! {
    /// Where this thread is in a call of NetCDF.
    static FRAME: Cell<usize> = const { Cell::new(0) };
}

/// One row of a table.
pub(crate) struct Row {
    pub(crate) name: &'static CStr,
    pub(crate) kind: &'static Kind,
    pub(crate) function: Function,
    pub(crate) what: What,
}

/// Makes a call with such arguments, at that address.
type Perform = unsafe fn(usize, &[usize]) -> usize;

/// # Safety
/// The arguments are the guest's own; `perform` calls a function that takes them.
#[inline(never)]
pub(crate) unsafe fn around(row: &'static Row, words: &[usize], perform: Perform) -> usize {
    let of_call = row.kind.of_call(row.name);
    let found = of_call.and_then(|library| Some((library, library.function(row.name)?)));
    let Some((library, address)) = found else { return NO_SUCH_FUNCTION };
    // SAFETY: the library's function of that name, and what the guest gave to it.
    let perform = || unsafe { perform(address, words) };
    let has_properties = properties::are_wanted();
    if RECORDER.door().is_none() && !has_properties {
        return perform();
    }
    let Some(_inside) = Inside::enter(&FRAME) else { return perform() };
    survive_forks(locks());
    let asked = Asked { library, kind: row.kind };
    let around = match has_properties {
        true => kept(|| properties::before(asked, row.name, row.what, words)),
        false => Around::Nothing,
    };
    let answer = recorded(row, words, asked, || around.instead().unwrap_or_else(perform));
    kept(|| around.after(asked, row.name, words, answer as i32));
    if row.what == What::Close && answer as i32 == 0 {
        objects::forget(asked, words[0] as i32);
    }
    answer
}

/// Makes a call, and a record of it where there is a recorder.
fn recorded(
    row: &'static Row,
    words: &[usize],
    asked: Asked,
    perform: impl FnOnce() -> usize,
) -> usize {
    let Some(door) = RECORDER.door() else { return perform() };
    let call = kept(|| Call::of(row, words, asked));
    let start = (door.now)();
    let answer = perform();
    let times = Times { start, end: (door.now)() };
    if let Some(record) = kept(|| call.record(times, answer as i32)) {
        RECORDER.push(record);
    }
    answer
}

/// All locks of this library.
fn locks() -> &'static [&'static dyn Hold] {
    static LOCKS: LazyLock<[&'static dyn Hold; 2]> = LazyLock::new(|| [&STATE, library::lock()]);
    &*LOCKS
}

/// The function of that name, seen.
macro_rules! wrapper {
    ($kind:ident, $name:expr, ($($argument:ident)*), $function:ident, $what:expr) => {
        const _: () = {
            static ROW: $crate::calls::Row = $crate::calls::Row {
                name: match std::ffi::CStr::from_bytes_with_nul(concat!($name, "\0").as_bytes()) {
                    Ok(name) => name,
                    Err(_) => panic!("a name of the table has no end"),
                },
                kind: &$crate::calls::$kind,
                function: iolab_trace::Function::$function,
                what: $what,
            };

            /// # Safety
            /// The arguments must be what NetCDF's function of this name demands.
            #[unsafe(export_name = $name)]
            #[allow(clippy::too_many_arguments, reason = "NetCDF has them")]
            unsafe extern "C-unwind" fn wrapper($($argument: usize),*) -> usize {
                /// # Safety
                /// The function at that address takes as many words.
                unsafe fn perform(address: usize, words: &[usize]) -> usize {
                    let &[$($argument),*] = words else { return $crate::calls::NO_SUCH_FUNCTION };
                    // SAFETY: the caller's promise.
                    unsafe {
                        let function: unsafe extern "C-unwind" fn(
                            $($crate::calls::wrapper!(word $argument)),*
                        ) -> usize = std::mem::transmute(address);
                        function($($argument),*)
                    }
                }
                // SAFETY: the guest's own arguments.
                unsafe { $crate::calls::around(&ROW, &[$($argument),*], perform) }
            }
        };
    };
    (word $argument:ident) => { usize };
}

/// The forms of one access: untyped, and of each type in memory. Between `start` and `end` of their names stands the
/// type; `also` are those arguments of the untyped form that others do not have.
macro_rules! of_each_type {
    ($kind:ident, $start:literal, $end:literal, ($($argument:ident)*), also ($($also:ident)*), $function:ident,
     $what:ident, $shape:ident) => {
        $crate::calls::wrapper!($kind, concat!($start, $end), ($($argument)* $($also)*), $function,
            $crate::rows::What::$what($crate::rows::Shape::$shape, 0));
        $crate::calls::of_each_type!(named $kind, $start, $end, ($($argument)*), $function, $what, $shape,
            "_text" 1, "_schar" 1, "_uchar" 1, "_ubyte" 1, "_short" 2, "_ushort" 2, "_int" 4, "_uint" 4, "_long" 8,
            "_float" 4, "_double" 8, "_longlong" 8, "_ulonglong" 8, "_string" 8);
    };
    (named $kind:ident, $start:literal, $end:literal, $arguments:tt, $function:ident, $what:ident, $shape:ident,
     $($type:literal $bytes:literal),*) => {
        $($crate::calls::wrapper!($kind, concat!($start, $type, $end), $arguments, $function,
            $crate::rows::What::$what($crate::rows::Shape::$shape, $bytes));)*
    };
}

/// Attributes: the forms of each type.
macro_rules! attributes {
    ($kind:ident, $put:literal $put_function:ident, $get:literal $get_function:ident) => {
        $crate::calls::attributes!(put $kind, $put, (a b c d e), 3, $put_function, "_text" 1, "_string" 8);
        $crate::calls::attributes!(put $kind, $put, (a b c d e f), 4, $put_function, "" 0, "_schar" 1,
            "_uchar" 1, "_ubyte" 1, "_short" 2, "_ushort" 2, "_int" 4, "_uint" 4, "_long" 8, "_float" 4, "_double" 8,
            "_longlong" 8, "_ulonglong" 8);
        $crate::calls::attributes!(get $kind, $get, $get_function, "" 0, "_text" 1, "_string" 8, "_schar" 1,
            "_uchar" 1, "_ubyte" 1, "_short" 2, "_ushort" 2, "_int" 4, "_uint" 4, "_long" 8, "_float" 4, "_double" 8,
            "_longlong" 8, "_ulonglong" 8);
    };
    (put $kind:ident, $start:literal, $arguments:tt, $length:literal, $function:ident,
     $($type:literal $bytes:literal),*) => {
        $($crate::calls::wrapper!($kind, concat!($start, $type), $arguments, $function,
            $crate::rows::What::PutAttribute { length: $length, bytes: $bytes });)*
    };
    (get $kind:ident, $start:literal, $function:ident, $($type:literal $bytes:literal),*) => {
        $($crate::calls::wrapper!($kind, concat!($start, $type), (a b c d), $function,
            $crate::rows::What::GetAttribute { bytes: $bytes });)*
    };
}

pub(crate) use {attributes, of_each_type, wrapper};
