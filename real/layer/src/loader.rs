//! The loader's list of files, and what names stand for in them.
//!
//! A preloaded library has every function of its layer, also those that nothing else in the process has. A
//! program that looks names up to learn what there is (`dlsym`) must find what it would find without the
//! library: the loader's answer stands, unless only the library has the name. Then there is none.

use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering};

/// A file in the process.
pub struct Object {
    /// Empty for the program.
    pub path: CString,
    /// Addresses it lies at.
    pub span: Range<usize>,
}

/// All files in the process, in the order in which they were loaded.
pub fn objects() -> Vec<Object> {
    unsafe extern "C" fn next(
        info: *mut libc::dl_phdr_info,
        _size: usize,
        found: *mut c_void,
    ) -> c_int {
        // SAFETY: the loader's own structures while the call lasts, and the place given below.
        unsafe {
            let (info, found) = (&*info, &mut *found.cast::<Vec<Object>>());
            if !info.dlpi_name.is_null() {
                let headers = std::slice::from_raw_parts(info.dlpi_phdr, info.dlpi_phnum.into());
                let loaded = headers.iter().filter(|it| it.p_type == libc::PT_LOAD);
                let spans = loaded.map(|it| {
                    let start = info.dlpi_addr as usize + it.p_vaddr as usize;
                    (start, start + it.p_memsz as usize)
                });
                let (start, end) =
                    spans.fold((usize::MAX, 0), |all, it| (all.0.min(it.0), all.1.max(it.1)));
                let path = CStr::from_ptr(info.dlpi_name).to_owned();
                found.push(Object { path, span: start..end });
            }
            0
        }
    }
    let mut found: Vec<Object> = Vec::new();
    // SAFETY: as above.
    unsafe { libc::dl_iterate_phdr(Some(next), (&raw mut found).cast()) };
    found
}

/// The file an address lies in.
pub fn object_at(address: usize) -> Option<Object> {
    objects().into_iter().find(|it| it.span.contains(&address))
}

/// What a name stands for in the file an address lies in and its dependencies, which may have been loaded for
/// it alone. None for the program's own addresses: it finds what everybody finds.
pub fn symbol_for(address: usize, name: &CStr) -> Option<usize> {
    let object = object_at(address).filter(|it| !it.path.is_empty())?;
    symbol(&object.path, name)
}

/// What a name stands for in a loaded file and its dependencies. The error message of the program's last
/// failed call to the loader is lost by that, which nobody was seen to rely on.
pub fn symbol(path: &CStr, name: &CStr) -> Option<usize> {
    // SAFETY: nothing is loaded, and what is counted is counted back.
    unsafe {
        let handle = libc::dlopen(path.as_ptr(), libc::RTLD_LAZY | libc::RTLD_NOLOAD);
        if handle.is_null() {
            return None;
        }
        let found = look_up(handle, name);
        libc::dlclose(handle);
        found
    }
}

/// What follows this library under that name, for everybody.
pub fn following(name: &CStr) -> Option<usize> {
    look_up(libc::RTLD_NEXT, name)
}

/// What comes first under that name, for everybody.
pub fn anywhere(name: &CStr) -> Option<usize> {
    look_up(libc::RTLD_DEFAULT, name)
}

/// What the loader finds for this library.
fn look_up(handle: *mut c_void, name: &CStr) -> Option<usize> {
    // SAFETY: the loader's function, a handle of its own or a special one, a terminated name.
    let found = unsafe {
        let dlsym: unsafe extern "C" fn(*mut c_void, *const c_char) -> *mut c_void =
            std::mem::transmute(loaders_own());
        dlsym(handle, name.as_ptr())
    };
    (!found.is_null()).then_some(found as usize)
}

/// The loader's own `dlsym`.
fn loaders_own() -> usize {
    // SAFETY: a look-up by terminated names.
    kept(&LOADERS_OWN, || unsafe {
        libc::dlvsym(libc::RTLD_NEXT, c"dlsym".as_ptr(), iolab_processor::LIBC_VERSION.as_ptr())
            as usize
    })
}

/// The `dlsym` behind the one below: the loader's, or that of another library that has one.
fn behind() -> usize {
    kept(&BEHIND, || following(c"dlsym").unwrap_or_else(loaders_own))
}

static LOADERS_OWN: AtomicUsize = AtomicUsize::new(0);
static BEHIND: AtomicUsize = AtomicUsize::new(0);

fn kept(place: &AtomicUsize, find: impl FnOnce() -> usize) -> usize {
    match place.load(Ordering::Relaxed) {
        0 => {
            let found = find();
            place.store(found, Ordering::Relaxed);
            found
        }
        found => found,
    }
}

/// Where a look-up goes on: the function behind, or 0 for none to be found. The loader has noted then that
/// there is none.
pub(crate) extern "C" fn way(handle: *mut c_void, name: *const c_char, caller: usize) -> usize {
    // SAFETY: the caller's terminated name, if it is one.
    let name = unsafe { (!name.is_null()).then(|| CStr::from_ptr(name)) };
    match name.is_some_and(|name| is_here_alone(handle, name, caller)) {
        true => 0,
        false => behind(),
    }
}

/// Starts of the names in the layers above POSIX.
const STARTS: [&[u8]; 5] = [b"H5", b"MPI_", b"PMPI_", b"nc_", b"ncmpi_"];

/// Whether this library would be found under that name, and without it nothing.
fn is_here_alone(handle: *mut c_void, name: &CStr, caller: usize) -> bool {
    if !STARTS.iter().any(|start| name.to_bytes().starts_with(start)) {
        return false;
    }
    let depends_on_caller = [libc::RTLD_DEFAULT, libc::RTLD_NEXT].contains(&handle);
    let found = if depends_on_caller { anywhere(name) } else { look_up(handle, name) };
    let own = object_at(way as *const () as usize);
    if !found.is_some_and(|found| own.is_some_and(|own| own.span.contains(&found))) {
        return false;
    }
    let for_caller = depends_on_caller.then(|| symbol_for(caller, name)).flatten();
    for_caller.or_else(|| following(name)).is_none()
}
