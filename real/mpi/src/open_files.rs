//! What is kept of files that the MPI library has open, by its handles.

use crate::call::Call;
use std::collections::BTreeMap;
use std::sync::{Arc, PoisonError, RwLock};

/// One kind of it.
pub(crate) struct OpenFiles<T>(RwLock<BTreeMap<usize, Arc<T>>>);

impl<T> OpenFiles<T> {
    /// Of no file.
    pub(crate) const fn new() -> OpenFiles<T> {
        OpenFiles(RwLock::new(BTreeMap::new()))
    }

    /// What is kept of a file, if anything is.
    pub(crate) fn find(&self, handle: usize) -> Option<Arc<T>> {
        self.0.read().unwrap_or_else(PoisonError::into_inner).get(&handle).cloned()
    }

    /// What is kept of all of them.
    pub(crate) fn all(&self) -> Vec<Arc<T>> {
        self.0.read().unwrap_or_else(PoisonError::into_inner).values().cloned().collect()
    }

    /// From now on this is kept of a file.
    pub(crate) fn keep(&self, handle: usize, file: T) {
        let mut table = self.0.write().unwrap_or_else(PoisonError::into_inner);
        table.insert(handle, Arc::new(file));
    }

    /// Before `MPI_File_close(file)`, which all ranks call: what was kept.
    pub(crate) fn closing(&self, call: &Call<'_>) -> Option<Arc<T>> {
        let handle = closing(call)?;
        self.0.write().unwrap_or_else(PoisonError::into_inner).remove(&handle)
    }
}

/// The handle that `MPI_File_close(file)` is about to overwrite.
pub(crate) fn closing(call: &Call<'_>) -> Option<usize> {
    match call.word(0) {
        0 => None,
        // SAFETY: the program's handle.
        place => Some(unsafe { (place as *const usize).read_unaligned() }),
    }
}

/// The handle that `MPI_File_open(communicator, name, mode, info, file)` has written; a file is a pointer everywhere.
pub(crate) fn opened(call: &Call<'_>) -> usize {
    // SAFETY: the handle that MPI has just written.
    unsafe { (call.word(4) as *const usize).read_unaligned() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::family::Family;
    use crate::recorder::Times;

    /// `MPI_File_close(file)`.
    fn close<T>(files: &OpenFiles<T>, file: *const usize) -> Option<Arc<T>> {
        let (times, scratch) = (Times { start: 0, end: 0 }, [0; 8]);
        let (family, noted) = (Family::here(), Vec::new());
        let arguments = &mut [file as usize];
        files.closing(&Call { arguments, has_large_counts: false, family, times, noted, scratch })
    }

    #[test]
    fn a_file_is_forgotten_when_it_is_closed_since_its_handle_comes_again() {
        let files = OpenFiles::new();
        files.keep(7, "first");
        files.keep(8, "other");
        assert_eq!(close(&files, &7), Some(Arc::new("first")));
        assert_eq!((files.find(7), close(&files, &7)), (None, None));
        assert_eq!(files.find(8), Some(Arc::new("other")));
        files.keep(7, "second");
        assert_eq!(files.find(7), Some(Arc::new("second")));
    }

    #[test]
    fn a_close_of_no_place_closes_nothing() {
        let files = OpenFiles::new();
        files.keep(0, "kept");
        assert_eq!(close(&files, std::ptr::null()), None);
        assert!(files.find(0).is_some());
    }
}
