//! Sets of hints: the program's with ours added, which is a set of our own, and what the library tells.

use crate::family::{Family, Kind};
use crate::pfs::hints::{Given, of_info};
use crate::pfs::numbers::Numbers;
use crate::profiling;
use iolab_policy::insitu::mpiio::HintEffect;
use std::collections::BTreeSet;
use std::ffi::CString;

/// Names that OMPIO asks a set of hints for: those in the library of Open MPI 4.1.4.
const READ_BY_OMPIO: [&str; 3] = ["cb_buffer_size", "cb_nodes", "collective_buffering"];

/// Hints that ROMIO tells of each file, whatever it was given.
const TOLD_BY_ROMIO: [&str; 3] = ["romio_cb_read", "romio_no_indep_rw", "romio_filesystem_type"];

/// A set of our own.
pub(super) struct Added {
    handle: usize,
    /// Names of all hints in it.
    given: BTreeSet<String>,
    /// What the program's had.
    program: Given,
    /// Hints that were not given, for they are too long for this library.
    too_long: Vec<String>,
}

/// Bytes of a name and of a value, at most (`MPI_MAX_INFO_KEY`, `MPI_MAX_INFO_VAL`, without their ends).
fn bytes_max() -> (usize, usize) {
    match Family::here().kind {
        Kind::OpenMpi => (35, 255),
        Kind::Mpich | Kind::Standard => (254, 1023),
    }
}

impl Added {
    /// The hints of the program's set, or of none, and `hints` in place of those of the same name.
    pub(super) fn beside(info: usize, hints: &[(String, String)]) -> Option<Added> {
        let mut handle = 0usize;
        let room = &raw mut handle as usize;
        // SAFETY: the program's set, if it gave one, and room for a handle.
        let (answer, program) = unsafe {
            match info == Numbers::here().no_info {
                true => (profiling::info_create(room), Given::new()),
                false => (profiling::info_dup(info, room), of_info(info)),
            }
        };
        if answer != 0 {
            return None;
        }
        let handle = Family::here().handle(handle);
        let names = program.keys().chain(hints.iter().map(|it| &it.0));
        let given = names.cloned().collect();
        let mut added = Added { handle, given, program, too_long: Vec::new() };
        let (key_bytes, value_bytes) = bytes_max();
        for (key, value) in hints {
            if key.len() > key_bytes || value.len() > value_bytes {
                added.too_long.push(key.clone());
            } else if let (Ok(key), Ok(value)) = (CString::new(&**key), CString::new(&**value)) {
                // SAFETY: our set, and texts that have an end.
                unsafe {
                    profiling::info_set(handle, key.as_ptr() as usize, value.as_ptr() as usize);
                }
            }
        }
        Some(added)
    }

    /// Its handle.
    pub(super) fn handle(&self) -> usize {
        self.handle
    }

    /// The program's own value for a hint, where it is another one.
    pub(super) fn program(&self, key: &str, asked: &str) -> Option<String> {
        self.program.get(key).filter(|value| *value != asked).cloned()
    }

    /// What became of a hint of ours, from what the library tells.
    pub(super) fn effect(&self, key: &str, asked: &str, told: &Told) -> HintEffect {
        if self.too_long.iter().any(|it| it == key) {
            return HintEffect::TooLong;
        }
        let value = told.0.get(key).map(String::as_str);
        match value {
            Some(value) if value == asked && self.is_echo(told) => {
                match READ_BY_OMPIO.contains(&key) {
                    true => HintEffect::Echoed,
                    false => HintEffect::EchoedUnread,
                }
            }
            value => HintEffect::of(asked, value),
        }
    }

    /// Whether the library hands back what it was given, whatever that was: so does OMPIO, while ROMIO, which
    /// Open MPI has, too, tells hints of its own.
    fn is_echo(&self, told: &Told) -> bool {
        let is_own = |name: &&str| told.0.contains_key(*name) && !self.given.contains(*name);
        Family::here().kind == Kind::OpenMpi && !TOLD_BY_ROMIO.iter().any(is_own)
    }
}

impl Drop for Added {
    fn drop(&mut self) {
        // SAFETY: our set, which nobody else has.
        unsafe { profiling::info_free(&raw mut self.handle as usize) };
    }
}

/// The hints of a file as the library tells them.
pub(super) struct Told(Given);

impl Told {
    /// Of an open file.
    pub(super) fn of(file: usize) -> Option<Told> {
        let mut handle = 0usize;
        // SAFETY: an open file, and room for a handle; the set is ours then.
        unsafe {
            if profiling::file_get_info(file, &raw mut handle as usize) != 0 {
                return None;
            }
            let told = of_info(Family::here().handle(handle));
            profiling::info_free(&raw mut handle as usize);
            Some(Told(told))
        }
    }
}
