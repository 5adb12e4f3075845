//! The functions behind the wrappers: those of the MPI library, or of another tool before it.

use std::ffi::{CStr, c_char, c_int, c_void};
use std::sync::atomic::{AtomicUsize, Ordering};

/// No look-up yet.
const UNKNOWN: usize = 0;
/// The library has no such function.
const ABSENT: usize = 1;

/// A function by name, looked up at its first call.
pub(crate) struct Next {
    name: &'static CStr,
    address: AtomicUsize,
}

impl Next {
    pub(crate) const fn new(name: &'static CStr) -> Next {
        Next { name, address: AtomicUsize::new(UNKNOWN) }
    }

    /// Its name.
    pub(crate) fn name(&self) -> &'static CStr {
        self.name
    }

    /// Its address, none if the program's MPI does not have it.
    #[inline]
    pub(crate) fn get(&self) -> Option<usize> {
        match self.address.load(Ordering::Relaxed) {
            UNKNOWN => self.find(),
            ABSENT => None,
            found => Some(found),
        }
    }

    #[cold]
    fn find(&self) -> Option<usize> {
        let found = following(self.name).or_else(|| in_library(self.name));
        self.address.store(found.unwrap_or(ABSENT), Ordering::Relaxed);
        found
    }
}

/// The symbol of that name behind this library.
fn following(name: &CStr) -> Option<usize> {
    // SAFETY: a look-up by a terminated name.
    let found = unsafe { libc::dlsym(libc::RTLD_NEXT, name.as_ptr()) };
    (!found.is_null()).then_some(found as usize)
}

/// The first symbol of that name in the process.
pub(crate) fn anywhere(name: &CStr) -> Option<usize> {
    // SAFETY: as above.
    let found = unsafe { libc::dlsym(libc::RTLD_DEFAULT, name.as_ptr()) };
    (!found.is_null()).then_some(found as usize)
}

/// The symbol in an MPI library that was loaded for somebody alone (Python's modules do so).
pub(crate) fn in_library(name: &CStr) -> Option<usize> {
    struct Search<'a> {
        name: &'a CStr,
        found: Option<usize>,
    }

    unsafe extern "C" fn look(
        info: *mut libc::dl_phdr_info,
        _size: usize,
        search: *mut c_void,
    ) -> c_int {
        // SAFETY: the loader's description and our own structure, for the time of this call.
        unsafe {
            let (info, search) = (&*info, &mut *(search as *mut Search<'_>));
            if info.dlpi_name.is_null() || !is_mpi(CStr::from_ptr(info.dlpi_name)) {
                return 0;
            }
            search.found = symbol(info.dlpi_name, search.name);
            c_int::from(search.found.is_some())
        }
    }

    let mut search = Search { name, found: None };
    // SAFETY: the callback gets the structure it expects.
    unsafe { libc::dl_iterate_phdr(Some(look), (&raw mut search).cast()) };
    search.found
}

/// Whether a library's file is called as those of MPI are: `libmpi.so.40`, `libmpich.so.12`.
fn is_mpi(path: &CStr) -> bool {
    let name = path.to_bytes().rsplit(|&byte| byte == b'/').next().unwrap_or_default();
    [b"libmpi.so".as_slice(), b"libmpich.so", b"libmpi_abi.so", b"libmpi-"]
        .iter()
        .any(|start| name.starts_with(start))
}

/// # Safety
/// The path is terminated.
unsafe fn symbol(path: *const c_char, name: &CStr) -> Option<usize> {
    // SAFETY: nothing is loaded; the handle is kept, as the library is by whoever loaded it.
    unsafe {
        let handle = libc::dlopen(path, libc::RTLD_LAZY | libc::RTLD_NOLOAD);
        if handle.is_null() {
            return None;
        }
        let found = libc::dlsym(handle, name.as_ptr());
        (!found.is_null()).then_some(found as usize)
    }
}

/// File name of the library an address lies in.
pub(crate) fn file_of(address: usize) -> String {
    // SAFETY: fills the structure it is given.
    unsafe {
        let mut info: libc::Dl_info = std::mem::zeroed();
        if libc::dladdr(address as *const c_void, &mut info) == 0 || info.dli_fname.is_null() {
            return String::new();
        }
        CStr::from_ptr(info.dli_fname).to_string_lossy().into_owned()
    }
}
