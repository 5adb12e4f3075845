//! What direct I/O needs of a file: the grid that offsets and lengths must lie on.

use std::fs::File;
use std::os::unix::fs::FileExt;

/// The smallest power of two from 512 to 4096 at which a direct read of the file works, found by
/// trying, as `statx` tells it only on newer kernels. `None` when none works.
pub(crate) fn alignment(file: &File) -> Option<u64> {
    let mut arena = crate::Arena::new(8192);
    [512usize, 1024, 2048, 4096].into_iter().find_map(|grid| {
        let tried = file.read_at(&mut arena[grid..grid * 2], grid as u64);
        tried.is_ok().then_some(grid as u64)
    })
}

/// Whether every piece of an operation lies on the grid.
pub(crate) fn is_aligned(offset: u64, length: u64, alignment: u64) -> bool {
    offset.is_multiple_of(alignment) && length.is_multiple_of(alignment)
}
