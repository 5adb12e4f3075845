//! The functions of libc that are taken, under all their names. Those with `64` are the same on this
//! machine; those with underscores are what older and fortified programs call.

use crate::change::{linked, removed, renamed, truncated};
use crate::next::Next;
use crate::open::{descriptor, flags_of, opened};
use crate::place::Place;
use crate::run::fail;
use crate::status::{Asked, corrected, corrected_x};
use libc::{FILE, O_CREAT, O_TRUNC, O_WRONLY, mode_t, off_t, stat as Status};
use std::ffi::{CStr, c_char, c_int, c_uint};
use std::mem::transmute;
use std::ptr;

type Text = *const c_char;

macro_rules! taken {
    ($([$($name:ident)*] $arguments:tt -> $result:ty, $next:ident: $body:expr;)*) => {
        $($(taken! { one $name $arguments -> $result, $next: $body })*)*
    };
    (one $name:ident ($($argument:ident: $type:ty),*) -> $result:ty, $next:ident: $body:expr) => {
        /// # Safety
        /// As libc's.
        #[unsafe(no_mangle)]
        pub(crate) unsafe extern "C-unwind" fn $name($($argument: $type),*) -> $result {
            const NAME: &CStr = match CStr::from_bytes_with_nul(
                concat!(stringify!($name), "\0").as_bytes()
            ) {
                Ok(name) => name,
                Err(_) => panic!("a name has no zeros"),
            };
            static NEXT: Next = Next::new(NAME);
            type Function = unsafe extern "C-unwind" fn($($type),*) -> $result;
            // SAFETY: the function of that name has this type; arguments are the program's own.
            unsafe {
                let $next = transmute::<usize, Function>(NEXT.address());
                $body
            }
        }
    };
}

// Variadic functions get their third argument as others do.
taken! {
    [stat stat64](path: Text, to: *mut Status) -> c_int, next:
        corrected(next(path, to), Asked::Name(Place::of(path)), to);
    [lstat lstat64](path: Text, to: *mut Status) -> c_int, next:
        corrected(next(path, to), Asked::Name(Place::of(path).itself()), to);
    [fstat fstat64](fd: c_int, to: *mut Status) -> c_int, next:
        corrected(next(fd, to), Asked::Descriptor(fd), to);
    [fstatat fstatat64](at: c_int, path: Text, to: *mut Status, flags: c_int) -> c_int, next:
        corrected(next(at, path, to, flags), Asked::with(Place::at(at, path), flags), to);
    [__xstat __xstat64](version: c_int, path: Text, to: *mut Status) -> c_int, next:
        corrected(next(version, path, to), Asked::Name(Place::of(path)), to);
    [__lxstat __lxstat64](version: c_int, path: Text, to: *mut Status) -> c_int, next:
        corrected(next(version, path, to), Asked::Name(Place::of(path).itself()), to);
    [__fxstat __fxstat64](version: c_int, fd: c_int, to: *mut Status) -> c_int, next:
        corrected(next(version, fd, to), Asked::Descriptor(fd), to);
    [__fxstatat __fxstatat64]
        (version: c_int, at: c_int, path: Text, to: *mut Status, flags: c_int) -> c_int, next:
        corrected(next(version, at, path, to, flags), Asked::with(Place::at(at, path), flags), to);
    [statx](at: c_int, path: Text, flags: c_int, mask: c_uint, to: *mut libc::statx) -> c_int, next:
        corrected_x(next(at, path, flags, mask, to), Asked::with(Place::at(at, path), flags), to);

    [open open64](path: Text, flags: c_int, mode: mode_t) -> c_int, next:
        descriptor(Place::of(path), flags, |(_, path), flags| next(path, flags, mode));
    [__open_2 __open64_2](path: Text, flags: c_int) -> c_int, next:
        descriptor(Place::of(path), flags, |(_, path), flags| next(path, flags));
    [openat openat64](at: c_int, path: Text, flags: c_int, mode: mode_t) -> c_int, next:
        descriptor(Place::at(at, path), flags, |(at, path), flags| next(at, path, flags, mode));
    [__openat_2 __openat64_2](at: c_int, path: Text, flags: c_int) -> c_int, next:
        descriptor(Place::at(at, path), flags, |(at, path), flags| next(at, path, flags));
    [creat creat64](path: Text, mode: mode_t) -> c_int, next:
        descriptor(Place::of(path), O_CREAT | O_WRONLY | O_TRUNC, |(_, path), _| next(path, mode));
    [fopen fopen64](path: Text, mode: Text) -> *mut FILE, next:
        stream(opened(Place::of(path), flags_of(mode), |instead| {
            next(instead.map_or(path, CStr::as_ptr), mode)
        }));
    [freopen freopen64](path: Text, mode: Text, old: *mut FILE) -> *mut FILE, next:
        stream(opened(Place::of(path), flags_of(mode), |instead| {
            next(instead.map_or(path, CStr::as_ptr), mode, old)
        }));

    [unlink](path: Text) -> c_int, next: removed(Place::of(path), || next(path));
    [rmdir](path: Text) -> c_int, next: removed(Place::of(path), || next(path));
    [remove](path: Text) -> c_int, next: removed(Place::of(path), || next(path));
    [unlinkat](at: c_int, path: Text, flags: c_int) -> c_int, next:
        removed(Place::at(at, path), || next(at, path, flags));
    [rename](from: Text, to: Text) -> c_int, next:
        renamed(Place::of(from), Place::of(to), 0, || next(from, to));
    [renameat](at: c_int, from: Text, to_at: c_int, to: Text) -> c_int, next:
        renamed(Place::at(at, from), Place::at(to_at, to), 0, || next(at, from, to_at, to));
    [renameat2](at: c_int, from: Text, to_at: c_int, to: Text, flags: c_uint) -> c_int, next:
        renamed(Place::at(at, from), Place::at(to_at, to), flags, || {
            next(at, from, to_at, to, flags)
        });
    [link](from: Text, to: Text) -> c_int, next:
        linked(Place::of(from).itself(), || next(from, to));
    [linkat](at: c_int, from: Text, to_at: c_int, to: Text, flags: c_int) -> c_int, next:
        linked(Place::at(at, from), || next(at, from, to_at, to, flags));
    [truncate truncate64](path: Text, bytes: off_t) -> c_int, next:
        truncated(Place::of(path), bytes, || next(path, bytes));
}

/// A stream as functions give it.
fn stream(opened: Result<*mut FILE, c_int>) -> *mut FILE {
    opened.unwrap_or_else(|number| {
        fail(number);
        ptr::null_mut()
    })
}
