//! The library behind a call: of those of its kind in the process the one that its caller is linked to, since packages
//! of Python bring their own.
//!
//! With one in the process it is that one. With several, the caller decides, found by the return
//! address: one that defines the function itself, else what its own dependencies define. Which are there is
//! looked up again when the loader has loaded or unloaded something, which costs a glance per call.

use crate::loader::{Object, following, object_at, objects, symbol, symbol_for};
use crate::lock::{Hold, Locked};
use std::collections::BTreeMap;
use std::ffi::{CStr, CString, c_int, c_void};
use std::ops::Range;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

/// Libraries of one kind: those that define the function of this name, which every version of them has.
pub struct Kind(pub &'static CStr);

/// A loaded library of a kind.
#[derive(Debug)]
pub struct Library {
    path: CString,
    /// Addresses its file lies at.
    span: Range<usize>,
    version: OnceLock<Option<[u32; 3]>>,
    is_told: AtomicBool,
}

/// What is known of the loader's list.
struct State {
    /// Of each kind, by where its name lies.
    kinds: BTreeMap<usize, Loaded>,
    /// Addresses of functions, by library and where their names lie.
    addresses: BTreeMap<(usize, usize), Option<usize>>,
}

static STATE: Locked<State> =
    Locked::new(State { kinds: BTreeMap::new(), addresses: BTreeMap::new() });

/// The lock of what is known, for [`survive_forks`](crate::lock::survive_forks).
pub fn lock() -> &'static dyn Hold {
    &STATE
}

/// What is known of one kind.
#[derive(Default)]
struct Loaded {
    /// Libraries loaded and unloaded so far when it was looked through.
    changes: (u64, u64),
    libraries: Vec<&'static Library>,
    /// All there ever were: they are few, and calls may be under way in them.
    known: Vec<&'static Library>,
}

impl Kind {
    /// The library a call of the function of that name goes to.
    pub fn of_call(&self, name: &CStr) -> Option<&'static Library> {
        let changes = changes();
        if let Some(loaded) = STATE.lock().kinds.get(&self.key())
            && loaded.changes == changes
        {
            match loaded.libraries.as_slice() {
                [] => return None,
                [only] => return Some(only),
                _ => {}
            }
        }
        match self.all(changes).as_slice() {
            [] => None,
            [only] => Some(only),
            several => of_caller(name, several),
        }
    }

    /// All libraries after so many changes.
    fn all(&self, changes: (u64, u64)) -> Vec<&'static Library> {
        if let Some(loaded) = STATE.lock().kinds.get(&self.key())
            && loaded.changes == changes
        {
            return loaded.libraries.clone();
        }
        // Not under the lock: the loader has locks of its own.
        let found: Vec<Library> =
            objects().into_iter().filter_map(|object| self.library(object)).collect();
        let mut state = STATE.lock();
        let loaded = state.kinds.entry(self.key()).or_default();
        let known = &mut loaded.known;
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
        loaded.libraries.clone_from(&libraries);
        loaded.changes = changes;
        // A library that went may come back elsewhere.
        state.addresses.clear();
        libraries
    }

    fn key(&self) -> usize {
        self.0.as_ptr() as usize
    }

    /// The library a file is, if it is of this kind. A program that defines the functions itself calls its own.
    fn library(&self, object: Object) -> Option<Library> {
        let own = changes as *const () as usize;
        if object.path.is_empty() || object.span.contains(&own) {
            return None;
        }
        let marker = symbol(&object.path, self.0)?;
        // Else one of its dependencies defines it.
        object.span.contains(&marker).then(|| Library {
            path: object.path,
            span: object.span,
            version: OnceLock::new(),
            is_told: AtomicBool::new(false),
        })
    }
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

impl Library {
    fn is(&self, other: &Library) -> bool {
        (&self.span, &self.path) == (&other.span, &other.path)
    }

    /// Its version: major, minor and release, which is asked once. A library may set itself up to answer, so this is
    /// for one that is about to be called.
    pub fn version_by(&self, ask: impl FnOnce() -> Option<[u32; 3]>) -> Option<[u32; 3]> {
        *self.version.get_or_init(ask)
    }

    /// Whether this is asked for the first time.
    pub fn is_first_told(&self) -> bool {
        !self.is_told.swap(true, Relaxed)
    }

    /// What its name of that variable or function stands for, in itself or in what it is linked to.
    pub fn symbol(&self, name: &CStr) -> Option<usize> {
        symbol(&self.path, name)
    }

    /// Address of its own function of that name.
    pub fn function(&self, name: &'static CStr) -> Option<usize> {
        let key = (self.span.start, name.as_ptr() as usize);
        if let Some(found) = STATE.lock().addresses.get(&key) {
            return *found;
        }
        let found = self.symbol(name).filter(|at| self.span.contains(at));
        STATE.lock().addresses.insert(key, found);
        found
    }

    /// What tells it apart from others in the process.
    pub fn key(&self) -> usize {
        self.span.start
    }
}
