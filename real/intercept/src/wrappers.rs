//! The exported symbols: one wrapper per symbol of the function table, generated from it. Those
//! marked `by_hand` there stand in `hook::process` and `hook::variadic`.

#![allow(missing_docs, reason = "each is the function of libc of that name")]

use crate::call::{self, Call, Returns, keep, padded};
use crate::mode::{self, Mode};
use crate::{hook, next};
use iolab_trace::{Class, Function, Layer};

macro_rules! returns {
    (descriptor) => {
        Returns::Int
    };
    (status) => {
        Returns::Int
    };
    (character) => {
        Returns::Int
    };
    (process) => {
        Returns::Int
    };
    (nothing) => {
        Returns::Int
    };
    (moved) => {
        Returns::Long
    };
    (position) => {
        Returns::Long
    };
    (items) => {
        Returns::Long
    };
    (address) => {
        Returns::Long
    };
    (error) => {
        Returns::Error
    };
    (stream) => {
        Returns::Pointer
    };
    (text) => {
        Returns::Pointer
    };
}

macro_rules! wrappers {
    ($($constant:ident = $code:literal $name:literal $layer:ident $class:ident
       $arguments:tt -> $result:ident [$($symbol:ident)*]
       $(also $other:tt [$($also:ident)*])* $(by_hand [$($hand:ident)*])?;)*) => {
        $(
            wrappers! { group $constant $result $arguments $($symbol)* }
            $(wrappers! { group $constant $result $other $($also)* })*
        )*
    };
    (group $constant:ident $result:ident $arguments:tt) => {};
    (group $constant:ident $result:ident $arguments:tt $symbol:ident $($more:ident)*) => {
        wrappers! { one $constant $result $symbol $arguments }
        wrappers! { group $constant $result $arguments $($more)* }
    };
    (one $constant:ident $result:ident $symbol:ident ($($argument:ident)*)) => {
        /// # Safety
        /// The arguments must be what libc's function of this name demands.
        #[unsafe(no_mangle)]
        pub(crate) unsafe extern "C-unwind" fn $symbol($($argument: usize),*) -> usize {
            const CLASS: Class = Function::$constant.class();
            const LAYER: Layer = Function::$constant.layer();
            const ARGUMENTS: &[&str] = &[$(stringify!($argument)),*];
            let mode = mode::get();
            if !mode.has(Mode::USUAL) {
                // Arguments in registers: what is built for the rare case must not force the usual
                // one to build it in memory.
                // SAFETY: the guest's own arguments.
                return unsafe { by_name::$symbol($($argument),*) };
            }
            if const { hook::hot::is_hot(Function::$constant, ARGUMENTS.len()) } {
                let [a, b, c, d, ..] = padded([$($argument),*]);
                const FUNCTION: u16 = Function::$constant.0;
                let next = &next::$symbol;
                // SAFETY: the guest's own arguments.
                return match unsafe { hook::hot::perform::<FUNCTION>(next, mode, [a, b, c, d]) } {
                    Some(result) => call::answer(result),
                    // SAFETY: as above.
                    None => unsafe { by_name::$symbol($($argument),*) },
                };
            }
            #[allow(unused_mut, reason = "functions without arguments change nothing")]
            let mut call = Call::new(
                Function::$constant,
                returns!($result),
                &next::$symbol,
                padded([$($argument),*]),
            );
            $(keep!($argument call);)*
            // SAFETY: the guest's own arguments.
            unsafe { hook::choose(CLASS, LAYER, call) }
        }
    };
}

iolab_trace::for_each_function!(wrappers);

macro_rules! copies {
    ($($constant:ident = $code:literal $name:literal $layer:ident $class:ident
       $arguments:tt -> $result:ident [$($symbol:ident)*]
       $(also $other:tt [$($also:ident)*])* $(by_hand [$($hand:ident)*])?;)*) => {
        $(
            copies! { group $constant $result $arguments $($symbol)* }
            $(copies! { group $constant $result $other $($also)* })*
        )*
    };
    (group $constant:ident $result:ident $arguments:tt) => {};
    (group $constant:ident $result:ident $arguments:tt $symbol:ident $($more:ident)*) => {
        copies! { one $constant $result $symbol $arguments }
        copies! { group $constant $result $arguments $($more)* }
    };
    (one $constant:ident $result:ident $symbol:ident ($($argument:ident)*)) => {
        /// # Safety
        /// The arguments must be what the function or the system call demands.
        #[cold]
        #[inline(never)]
        pub(crate) unsafe extern "C-unwind" fn $symbol($($argument: usize),*) -> usize {
            const CLASS: Class = Function::$constant.class();
            const LAYER: Layer = Function::$constant.layer();
            let mut call = Call::new(
                Function::$constant,
                returns!($result),
                &next::$symbol,
                padded([$($argument),*]),
            );
            call.origin = ORIGIN;
            $(keep!($argument call);)*
            // SAFETY: the guest's own arguments.
            unsafe { hook::enter(CLASS, LAYER, call) }
        }
    };
}

/// The same functions once more, for calls by name at moments that are not ordinary ones.
mod by_name {
    use crate::call::{Call, Origin, Returns, keep, padded};
    use crate::{hook, next};
    use iolab_trace::{Class, Function, Layer};

    const ORIGIN: Origin = Origin::Symbol;

    iolab_trace::for_each_function!(copies);
}

/// And for calls made by number. Somebody who has put himself before an exported symbol (a library that
/// watches memory overwrites `mmap`) takes `syscall` for the way behind himself, and would be called
/// again without end; so would be one whose function is the next one of that name.
#[allow(dead_code, reason = "not every function is a system call")]
pub(crate) mod by_number {
    use crate::call::{Call, Origin, Returns, keep, padded};
    use crate::{hook, next};
    use iolab_trace::{Class, Function, Layer};

    const ORIGIN: Origin = Origin::Number;

    iolab_trace::for_each_function!(copies);
}
