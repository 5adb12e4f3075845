//! What is told: that something stays the library's, once for each file, and at the end of a file what was
//! carried out, into the place that the launcher named (`IOLAB_COLLECTIVE_LOG`).

use super::file::{self, File};
use crate::call::Call;
use crate::pfs::numbers::Numbers;
use crate::pfs::trouble::{Trouble, say};
use crate::profiling;
use std::fs::OpenOptions;
use std::io::Write;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::atomic::Ordering::Relaxed;

/// Tells of an error as the library would: by the file's handler, and by the answer.
pub(crate) fn raise(path: &Path, handle: usize, trouble: &Trouble) -> i32 {
    if !trouble.text.is_empty() {
        say(&format!("{}: {}", path.display(), trouble.text));
    }
    let code = Numbers::here().code(trouble.class);
    // SAFETY: an open file; a handler of the program's may end it.
    unsafe { profiling::file_call_errhandler(handle, code as usize) };
    code
}

/// A call on a file that stays the library's.
pub(super) fn is_theirs(call: &Call<'_>, why: &str) {
    if let Some(file) = file::find(call.word(0)) {
        passes(&file, why);
    }
}

/// A call on a file goes to the library; all ranks come here.
pub(super) fn passes(file: &File, why: &str) {
    file.passed.fetch_add(1, Relaxed);
    is_out(file, why);
}

/// Calls on a file go to the library from now on; all ranks come here, and the first tells.
pub(super) fn is_out(file: &File, why: &str) {
    if file.group.rank == 0 && !file.has_told.swap(true, Relaxed) {
        stays(&file.plain.path, why);
    }
}

/// Collective accesses of a file, some or all, stay the library's.
pub(super) fn stays(path: &Path, why: &str) {
    say(&format!("collective accesses of {} stay with the MPI library: {why}", path.display()));
}

/// Independent writes to a file are not held back.
pub(crate) fn not_held(path: &Path, why: &str) {
    say(&format!("independent writes to {} are not held back: {why}", path.display()));
}

/// What a file that is closed came to: a line of its own, in one piece, since all ranks write there.
pub(super) fn at_the_end(file: &File) {
    let Some(place) = std::env::var_os("IOLAB_COLLECTIVE_LOG") else { return };
    let (carried, passed) = (file.carried.load(Relaxed), file.passed.load(Relaxed));
    let (rank, bytes) = (file.group.rank, file.exchanged.load(Relaxed));
    let mut line = format!("{rank} {carried} {passed} {bytes} ").into_bytes();
    // A path may have more than one line.
    let path = file.plain.path.as_os_str().as_bytes().iter();
    line.extend(path.map(|&byte| if byte == b'\n' { b' ' } else { byte }));
    line.push(b'\n');
    if let Ok(mut log) = OpenOptions::new().append(true).open(place) {
        // A place that is full or gone costs the line, nothing else.
        let _ = log.write_all(&line);
    }
}
