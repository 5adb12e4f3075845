//! The unwinder of the process, found when it is first needed.
//!
//! Rust's library calls libgcc_s where a panic unwinds and where a cancelled thread passes our frames:
//! neither happens in most processes. Linked to it, every process would load it, 75 µs of the 0.6 ms
//! that a small program takes (its initialiser asks the processor what it can do, which is slow in a
//! virtual machine). So the names lead here, and from here to the one that is loaded: there must be no
//! second one, since a cancelled thread comes with a context of libc's choice.

use crate::object::{self, Name};
use crate::processor::way_to_unwinder;
use std::sync::atomic::{AtomicUsize, Ordering};

const FILE: &std::ffi::CStr = c"libgcc_s.so.1";

macro_rules! ways {
    ($($index:literal $name:literal;)*) => {
        const NAMES: &[Name] = &[$(Name::new(
            match std::ffi::CStr::from_bytes_with_nul(concat!($name, "\0").as_bytes()) {
                Ok(name) => name,
                Err(_) => panic!("a symbol holds no NUL"),
            },
        )),*];

        /// Where they lead, 0 before the first call.
        static FOUND: [AtomicUsize; NAMES.len()] = [const { AtomicUsize::new(0) }; NAMES.len()];

        $(way_to_unwinder!($index $name, FOUND, find);)*
    };
}

ways! {
    0 "_Unwind_Backtrace";
    1 "_Unwind_DeleteException";
    2 "_Unwind_GetDataRelBase";
    3 "_Unwind_GetIP";
    4 "_Unwind_GetIPInfo";
    5 "_Unwind_GetLanguageSpecificData";
    6 "_Unwind_GetRegionStart";
    7 "_Unwind_GetTextRelBase";
    8 "_Unwind_RaiseException";
    9 "_Unwind_Resume";
    10 "_Unwind_SetGR";
    11 "_Unwind_SetIP";
    12 "_Unwind_GetGR";
    13 "_Unwind_GetCFA";
    14 "_Unwind_FindEnclosingFunction";
}

/// Where a call goes on. A file that is loaded already is found without a lock or memory of the program.
#[cold]
extern "C" fn find(index: usize) -> usize {
    let name = &NAMES[index];
    let address = object::in_file(FILE.to_bytes(), name).or_else(|| {
        // SAFETY: a terminated name. Only a defect of ours comes here, with nothing of the program's on
        // its way.
        unsafe { libc::dlopen(FILE.as_ptr(), libc::RTLD_NOW | libc::RTLD_GLOBAL) };
        object::in_file(FILE.to_bytes(), name)
    });
    let address = address.unwrap_or(missing as *const () as usize);
    FOUND[index].store(address, Ordering::Relaxed);
    address
}

/// Stands for all of them where there is no unwinder: a panic cannot be caught then. The answer is an
/// error of those that have one (`_URC_FATAL_PHASE1_ERROR`).
extern "C" fn missing() -> usize {
    3
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_is_caught_by_the_unwinder_that_is_loaded_for_it() {
        struct Last<'a>(&'a mut u32);
        impl Drop for Last<'_> {
            fn drop(&mut self) {
                *self.0 += 1;
            }
        }
        let mut cleaned = 0;
        for _ in 0..2 {
            let caught = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
                let _last = Last(&mut cleaned);
                std::panic::resume_unwind(Box::new(7));
            }));
            assert_eq!(caught.unwrap_err().downcast_ref(), Some(&7));
        }
        assert_eq!(cleaned, 2);
        let raise = NAMES.iter().position(|it| it.text() == c"_Unwind_RaiseException").unwrap();
        let found = FOUND[raise].load(Ordering::Relaxed);
        assert_eq!(Some(found), object::in_file(FILE.to_bytes(), &NAMES[raise]));
    }

    #[test]
    fn all_of_them_are_found() {
        for (index, name) in NAMES.iter().enumerate() {
            assert_ne!(find(index), missing as *const () as usize, "{:?}", name.text());
        }
    }
}
