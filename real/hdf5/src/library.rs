//! What is HDF5's own about a library: its version, and how wide its identifiers are.

use iolab_layer::library::{Kind, Library};
use iolab_layer::loader::anywhere;
use std::ffi::CStr;

/// What every version has.
const VERSION: &CStr = c"H5get_libversion";

/// HDF5, of any version.
pub(crate) static HDF5: Kind = Kind(VERSION);

/// A library of HDF5.
pub(crate) trait Hdf5 {
    /// Its version: major, minor and release. The library sets itself up to answer, so this is for one that is about to
    /// be called.
    fn version(&'static self) -> Option<[u32; 3]>;

    /// Whether identifiers are 32 bits wide, as before version 1.10; asked as [`Hdf5::version`] is.
    fn has_short_ids(&'static self) -> bool {
        self.version().is_some_and(|[major, minor, _]| (major, minor) < (1, 10))
    }

    /// The identifier in its variable of that name. A program that refers to it has the variable in itself, then, and the
    /// library's own keeps what it began with.
    fn variable(&'static self, name: &'static CStr) -> Option<i64>;

    /// An identifier as a number, from the word it was passed in.
    fn id(&'static self, word: usize) -> i64 {
        match self.has_short_ids() {
            true => i64::from(word as i32),
            false => word as i64,
        }
    }

    /// What tells identifiers of two libraries apart.
    fn key_of(&self, id: i64) -> (usize, i64);
}

impl Hdf5 for Library {
    fn version(&'static self) -> Option<[u32; 3]> {
        self.version_by(|| {
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

    fn variable(&'static self, name: &'static CStr) -> Option<i64> {
        let read = |address: usize| match self.has_short_ids() {
            // SAFETY: a variable that holds an identifier of this width.
            true => i64::from(unsafe { (address as *const i32).read() }),
            // SAFETY: as above.
            false => unsafe { (address as *const i64).read() },
        };
        let own = self.symbol(name).map(read).filter(|id| *id > 0);
        own.or_else(|| anywhere(name).map(read).filter(|id| *id > 0))
    }

    fn key_of(&self, id: i64) -> (usize, i64) {
        (self.key(), id)
    }
}
