//! The functions behind the wrappers: those of the MPI library, or of another tool before it.

use iolab_layer::loader::{following, objects, symbol};
use std::ffi::{CStr, c_void};
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

/// The symbol in an MPI library that was loaded for somebody alone (Python's modules do so).
pub(crate) fn in_library(name: &CStr) -> Option<usize> {
    objects().iter().filter(|it| is_mpi(&it.path)).find_map(|it| {
        // It stays now, since its addresses are kept.
        // SAFETY: a terminated path; nothing is loaded.
        let handle = unsafe {
            let stays = libc::RTLD_NOLOAD | libc::RTLD_NODELETE;
            libc::dlopen(it.path.as_ptr(), libc::RTLD_LAZY | stays)
        };
        if handle.is_null() {
            return None;
        }
        symbol(&it.path, name)
    })
}

/// Whether a library's file is called as those of MPI are: `libmpi.so.40`, `libmpich.so.12`.
fn is_mpi(path: &CStr) -> bool {
    let name = path.to_bytes().rsplit(|&byte| byte == b'/').next().unwrap_or_default();
    [b"libmpi.so".as_slice(), b"libmpich.so", b"libmpi_abi.so", b"libmpi-"]
        .iter()
        .any(|start| name.starts_with(start))
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
