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

    /// From now on this is kept of a file.
    pub(crate) fn keep(&self, handle: usize, file: T) {
        let mut table = self.0.write().unwrap_or_else(PoisonError::into_inner);
        table.insert(handle, Arc::new(file));
    }

    /// Before `MPI_File_close(file)`, which all ranks call: what was kept.
    pub(crate) fn closing(&self, call: &Call<'_>) -> Option<Arc<T>> {
        if call.word(0) == 0 {
            return None;
        }
        // SAFETY: the program's handle.
        let handle = unsafe { (call.word(0) as *const usize).read_unaligned() };
        self.0.write().unwrap_or_else(PoisonError::into_inner).remove(&handle)
    }
}

/// The handle that `MPI_File_open(communicator, name, mode, info, file)` has written; a file is a pointer everywhere.
pub(crate) fn opened(call: &Call<'_>) -> usize {
    // SAFETY: the handle that MPI has just written.
    unsafe { (call.word(4) as *const usize).read_unaligned() }
}
