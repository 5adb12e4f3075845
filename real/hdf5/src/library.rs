//! The HDF5 behind a call: of those in the process the one that its caller is linked to.
//!
//! With one in the process it is that one. With several, the caller decides, found by the return
//! address: one that defines the function itself, else what its own dependencies define. Which are there is
//! looked up again when the loader has loaded or unloaded something, which costs a glance per call.

use crate::objects::STATE;
use iolab_layer::loader::{Object, anywhere, following, object_at, objects, symbol, symbol_for};
use std::ffi::{CStr, CString, c_int, c_void};
use std::ops::Range;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

/// A loaded library that defines HDF5's functions.
#[derive(Debug)]
pub(crate) struct Library {
    path: CString,
    /// Addresses its file lies at.
    span: Range<usize>,
    version: OnceLock<Option<[u32; 3]>>,
    is_told: AtomicBool,
}

/// What is known of the loader's list.
pub(crate) struct Loaded {
    /// Libraries loaded and unloaded so far when it was looked through.
    changes: (u64, u64),
    libraries: Vec<&'static Library>,
    /// All there ever were: they are few, and calls may be under way in them.
    known: Vec<&'static Library>,
}

impl Loaded {
    pub(crate) const fn unknown() -> Loaded {
        Loaded { changes: (u64::MAX, u64::MAX), libraries: Vec::new(), known: Vec::new() }
    }
}

/// The library a call of the function of that name goes to.
pub(crate) fn of_call(name: &CStr) -> Option<&'static Library> {
    let changes = changes();
    {
        let state = STATE.lock();
        match state.loaded.libraries.as_slice() {
            _ if state.loaded.changes != changes => {}
            [] => return None,
            [only] => return Some(only),
            _ => {}
        }
    }
    match all(changes).as_slice() {
        [] => None,
        [only] => Some(only),
        several => of_caller(name, several),
    }
}

/// All libraries after so many changes.
fn all(changes: (u64, u64)) -> Vec<&'static Library> {
    {
        let state = STATE.lock();
        if state.loaded.changes == changes {
            return state.loaded.libraries.clone();
        }
    }
    // Not under the lock: the loader has locks of its own.
    let found: Vec<Library> = objects().into_iter().filter_map(library).collect();
    let mut state = STATE.lock();
    let known = &mut state.loaded.known;
    let libraries: Vec<&'static Library> = found
        .into_iter()
        .map(|library| match known.iter().find(|it| it.is(&library)) {
            Some(known) => *known,
            None => {
                let library: &'static Library = Box::leak(Box::new(library));
                known.push(library);
                library
            }
        })
        .collect();
    // A library that went may come back elsewhere.
    state.addresses.clear();
    state.loaded.libraries.clone_from(&libraries);
    state.loaded.changes = changes;
    libraries
}

/// How often the loader has loaded and unloaded something.
fn changes() -> (u64, u64) {
    unsafe extern "C" fn first(
        info: *mut libc::dl_phdr_info,
        size: usize,
        found: *mut c_void,
    ) -> c_int {
        if size >= std::mem::offset_of!(libc::dl_phdr_info, dlpi_subs) + size_of::<u64>() {
            // SAFETY: the loader's structure of that size, and the place given below.
            unsafe { *found.cast::<(u64, u64)>() = ((*info).dlpi_adds, (*info).dlpi_subs) };
        }
        1
    }
    let mut found = (u64::MAX, 0);
    // SAFETY: the function gets the place it expects.
    unsafe { libc::dl_iterate_phdr(Some(first), (&raw mut found).cast()) };
    found
}

/// The library a file is, if it defines HDF5's functions. A program that does so itself calls its own.
fn library(object: Object) -> Option<Library> {
    let own = library as *const () as usize;
    if object.path.is_empty() || object.span.contains(&own) {
        return None;
    }
    let version = symbol(&object.path, VERSION)?;
    // Else one of its dependencies defines it.
    object.span.contains(&version).then(|| Library {
        path: object.path,
        span: object.span,
        version: OnceLock::new(),
        is_told: AtomicBool::new(false),
    })
}

/// Among several libraries the caller's.
fn of_caller(name: &CStr, libraries: &[&'static Library]) -> Option<&'static Library> {
    let holding = |address: usize| libraries.iter().find(|it| it.span.contains(&address)).copied();
    let caller = caller();
    let by_itself = holding(caller);
    let by_dependency = || holding(symbol_for(caller, name)?);
    let by_order = || holding(following(name)?);
    by_itself.or_else(by_dependency).or_else(by_order).or(libraries.first().copied())
}

/// The first address on the stack that is not of this library: where a wrapper returns to.
fn caller() -> usize {
    struct Search {
        own: Range<usize>,
        found: usize,
    }
    extern "C" fn look(context: *mut c_void, search: *mut c_void) -> c_int {
        // SAFETY: the unwinder's context, and the place given below.
        unsafe {
            let search = &mut *search.cast::<Search>();
            let address = _Unwind_GetIP(context);
            if address != 0 && !search.own.contains(&address) {
                search.found = address;
                // The end of the walk.
                return 5;
            }
            0
        }
    }
    let here = caller as *const () as usize;
    let mut search = Search { own: object_at(here).map_or(0..0, |it| it.span), found: 0 };
    // SAFETY: the function gets the place it expects.
    unsafe { _Unwind_Backtrace(look, (&raw mut search).cast()) };
    search.found
}

unsafe extern "C" {
    fn _Unwind_Backtrace(
        each: extern "C" fn(*mut c_void, *mut c_void) -> c_int,
        argument: *mut c_void,
    ) -> c_int;
    fn _Unwind_GetIP(context: *mut c_void) -> usize;
}

/// What every version has.
const VERSION: &CStr = c"H5get_libversion";

impl Library {
    fn is(&self, other: &Library) -> bool {
        (&self.span, &self.path) == (&other.span, &other.path)
    }

    /// Its version: major, minor and release. The library sets itself up to answer, so this is for one that is about to
    /// be called.
    pub(crate) fn version(&'static self) -> Option<[u32; 3]> {
        *self.version.get_or_init(|| {
            let address = self.function(VERSION)?;
            let [mut major, mut minor, mut release] = [0u32; 3];
            // SAFETY: the library's own function, which fills three integers.
            unsafe {
                let version: unsafe extern "C" fn(*mut u32, *mut u32, *mut u32) -> i32 =
                    std::mem::transmute(address);
                version(&mut major, &mut minor, &mut release);
            }
            (major > 0).then_some([major, minor, release])
        })
    }

    /// Whether identifiers are 32 bits wide, as before version 1.10; asked as [`Library::version`] is.
    pub(crate) fn has_short_ids(&'static self) -> bool {
        self.version().is_some_and(|[major, minor, _]| (major, minor) < (1, 10))
    }

    /// Whether this is asked for the first time.
    pub(crate) fn is_first_told(&self) -> bool {
        !self.is_told.swap(true, Relaxed)
    }

    /// The identifier in its variable of that name. A program that refers to it has the variable in itself, then, and the
    /// library's own keeps what it began with.
    pub(crate) fn variable(&'static self, name: &'static CStr) -> Option<i64> {
        let read = |address: usize| match self.has_short_ids() {
            // SAFETY: a variable that holds an identifier of this width.
            true => i64::from(unsafe { (address as *const i32).read() }),
            // SAFETY: as above.
            false => unsafe { (address as *const i64).read() },
        };
        let own = symbol(&self.path, name).map(read).filter(|id| *id > 0);
        own.or_else(|| anywhere(name).map(read).filter(|id| *id > 0))
    }

    /// Address of its function of that name.
    pub(crate) fn function(&'static self, name: &'static CStr) -> Option<usize> {
        let key = (self.span.start, name.as_ptr() as usize);
        if let Some(found) = STATE.lock().addresses.get(&key) {
            return *found;
        }
        let found = symbol(&self.path, name).filter(|at| self.span.contains(at));
        STATE.lock().addresses.insert(key, found);
        found
    }

    /// An identifier as a number, from the word it was passed in.
    pub(crate) fn id(&'static self, word: usize) -> i64 {
        match self.has_short_ids() {
            true => i64::from(word as i32),
            false => word as i64,
        }
    }

    /// What tells identifiers of two libraries apart.
    pub(crate) fn key(&self, id: i64) -> (usize, i64) {
        (self.span.start, id)
    }
}
