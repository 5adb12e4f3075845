//! The function that would have been called without this library.
//!
//! One cell per wrapped symbol, filled at start from the tables of the files behind this library and,
//! for hooks that run earlier and symbols that came later, by `dlsym(RTLD_NEXT)` at first use.

use crate::object::{Behind, Name};
use std::ffi::CStr;
use std::mem::transmute;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

/// Where a symbol leads beyond this library.
pub(crate) struct Next {
    name: Name,
    address: AtomicUsize,
    /// Another preloaded library wraps the function: calls go on to it.
    foreign: AtomicBool,
    /// Libc's function behind that library's; 0 when there is none.
    libc: AtomicUsize,
    /// Libc's function leads back to the hook: calls must not go on to it.
    patched: AtomicBool,
}

/// Any function; about unwinding through it see `system`.
#[cfg(panic = "unwind")]
type Anything = unsafe extern "C-unwind" fn(usize, usize, usize, usize, usize, usize) -> usize;
#[cfg(panic = "abort")]
type Anything = unsafe extern "C" fn(usize, usize, usize, usize, usize, usize) -> usize;

/// Address of a symbol in the libraries after this one, 0 when there is none.
pub(crate) fn symbol(name: &CStr) -> usize {
    // SAFETY: a terminated name; the result is an address or null.
    unsafe { libc::dlsym(libc::RTLD_NEXT, name.as_ptr()) as usize }
}

impl Next {
    pub(crate) const fn new(name: &'static CStr) -> Next {
        Next {
            name: Name::new(name),
            address: AtomicUsize::new(0),
            foreign: AtomicBool::new(false),
            libc: AtomicUsize::new(0),
            patched: AtomicBool::new(false),
        }
    }

    pub(crate) fn name(&self) -> &Name {
        &self.name
    }

    /// The address as far as it is known: 0 when no library had the symbol at start.
    pub(crate) fn known(&self) -> usize {
        self.address.load(Ordering::Relaxed)
    }

    /// The address, 0 when no library has the symbol.
    #[inline(always)]
    pub(crate) fn address(&self) -> usize {
        match self.address.load(Ordering::Relaxed) {
            0 => self.find(),
            address => address,
        }
    }

    /// Says that the function is another library's, and where libc's is (0: there is none).
    pub(crate) fn set_foreign(&self, libc: usize) {
        self.libc.store(libc, Ordering::Relaxed);
        self.foreign.store(true, Ordering::Relaxed);
    }

    #[inline(always)]
    pub(crate) fn is_foreign(&self) -> bool {
        self.foreign.load(Ordering::Relaxed)
    }

    /// Says that libc's function leads back here.
    pub(crate) fn set_patched(&self) {
        self.patched.store(true, Ordering::Relaxed);
    }

    pub(crate) fn is_patched(&self) -> bool {
        self.patched.load(Ordering::Relaxed)
    }

    #[cold]
    fn find(&self) -> usize {
        let address = symbol(self.name.text());
        self.address.store(address, Ordering::Relaxed);
        address
    }

    /// Calls it with up to six register arguments; the callee ignores those it does not have.
    /// Without such a function the answer is what a system without it says: -1 and `ENOSYS`.
    ///
    /// # Safety
    /// The arguments must be what the function demands.
    #[inline(always)]
    pub(crate) unsafe fn call(&self, a: [usize; 6]) -> usize {
        // SAFETY: the caller's promise.
        unsafe { Next::call_at(self.address(), a) }
    }

    /// As [`Next::call`], of libc's function.
    ///
    /// # Safety
    /// As [`Next::call`].
    #[inline(always)]
    pub(crate) unsafe fn call_libc(&self, a: [usize; 6]) -> usize {
        let foreign = self.is_foreign();
        let address = if foreign { self.libc.load(Ordering::Relaxed) } else { self.address() };
        // SAFETY: the caller's promise.
        unsafe { Next::call_at(address, a) }
    }

    #[inline(always)]
    unsafe fn call_at(address: usize, a: [usize; 6]) -> usize {
        if address == 0 {
            crate::errno::set(libc::ENOSYS);
            return usize::MAX;
        }
        // SAFETY: a function of the C calling convention whose arguments all travel in registers.
        unsafe {
            let function = transmute::<usize, Anything>(address);
            function(a[0], a[1], a[2], a[3], a[4], a[5])
        }
    }
}

macro_rules! cells {
    ($($constant:ident = $code:literal $name:literal $layer:ident $class:ident
       ($($argument:ident)*) -> $result:ident [$($symbol:ident)*]
       $(also ($($other:ident)*) [$($also:ident)*])* $(by_hand [$($hand:ident)*])?;)*) => {
        cells! { cell $($($symbol)* $($($also)*)* $($($hand)*)?)* }
    };
    (cell $($symbol:ident)*) => {
        $(#[allow(non_upper_case_globals, reason = "named as the symbol is")]
        pub(crate) static $symbol: Next = Next::new(
            match CStr::from_bytes_with_nul(concat!(stringify!($symbol), "\0").as_bytes()) {
                Ok(name) => name,
                Err(_) => panic!("a symbol holds no NUL"),
            },
        );)*

        /// Every cell, for looking all of them up at start.
        static ALL: &[&Next] = &[
            $(&$symbol,)*
            &__close_nocancel, &__read_nocancel, &__write_nocancel, &__open_nocancel, &__pread64_nocancel,
        ];
    };
}

iolab_trace::for_each_function!(cells);

macro_rules! inner {
    ($($symbol:ident)*) => {
        $(#[allow(non_upper_case_globals, reason = "named as the symbol is")]
        pub(crate) static $symbol: Next = Next::new(
            match CStr::from_bytes_with_nul(concat!(stringify!($symbol), "\0").as_bytes()) {
                Ok(name) => name,
                Err(_) => panic!("a symbol holds no NUL"),
            },
        );)*
    };
}

// Functions only libc calls; they have an entry point, but no wrapper.
inner! { __close_nocancel __read_nocancel __write_nocancel __open_nocancel __pread64_nocancel }

/// Every function.
pub(crate) fn all() -> impl Iterator<Item = &'static Next> {
    ALL.iter().copied()
}

/// Looks every symbol up, so that no hook has to later (in a signal handler, say).
pub(crate) fn find_all() {
    let behind = Behind::loaded();
    for next in ALL.iter().filter(|next| next.known() == 0) {
        let address = behind.find(&next.name).unwrap_or_else(|| symbol(next.name.text()));
        next.address.store(address, Ordering::Relaxed);
    }
}
