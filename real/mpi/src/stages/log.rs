//! What stages did, for the launcher to tell: lines in the place it named (`IOLAB_MPIIO_LOG`).

use crate::profiling;
use iolab_layer::applied;
use iolab_policy::insitu::mpiio::Line;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

/// More than any family has (`MPI_MAX_LIBRARY_VERSION_STRING` of MPICH is 8,192).
const VERSION_BYTES: usize = 1 << 14;

/// Leaves a line.
pub(super) fn leave(line: &Line) {
    applied::leave("IOLAB_MPIIO_LOG", &line.text());
}

/// This process has begun with MPI, which is left once.
pub(super) fn began() {
    static TOLD: AtomicBool = AtomicBool::new(false);
    if !TOLD.swap(true, Ordering::Relaxed) {
        leave(&Line::Began { library: library().to_owned() });
    }
}

/// The MPI library by name and version.
fn library() -> &'static str {
    static LIBRARY: OnceLock<String> = OnceLock::new();
    LIBRARY.get_or_init(|| {
        let (mut text, mut length) = (vec![0u8; VERSION_BYTES], 0i32);
        let (to, at) = (text.as_mut_ptr() as usize, &raw mut length as usize);
        // SAFETY: may be asked at any time; there is room for the longest answer.
        let answer = unsafe { profiling::library_version(to, at) };
        let end = text.iter().position(|&byte| byte == 0).unwrap_or(0);
        match answer {
            0 => named(&String::from_utf8_lossy(&text[..end])),
            _ => "the MPI library".to_owned(),
        }
    })
}

/// `MPICH 4.0.2` of what a library says at length.
fn named(text: &str) -> String {
    let line = text.lines().next().unwrap_or_default();
    let line = line.split(',').next().unwrap_or_default();
    let words = line.split_whitespace().filter(|&word| word != "Version:").take(5);
    let words: Vec<&str> = words
        .map(|word| match word.strip_prefix('v') {
            Some(version) if version.starts_with(|it: char| it.is_ascii_digit()) => version,
            _ => word,
        })
        .collect();
    if words.is_empty() { "the MPI library".to_owned() } else { words.join(" ") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_library_is_named_by_the_beginning_of_what_it_says() {
        for (text, name) in [
            ("MPICH Version:\t4.0.2\nMPICH Release date:\tThu\n", "MPICH 4.0.2"),
            ("Open MPI v4.1.4, package: Debian, ident: 4.1.4", "Open MPI 4.1.4"),
            ("Intel(R) MPI Library 2021.9 for Linux* OS\n", "Intel(R) MPI Library 2021.9 for"),
            ("", "the MPI library"),
        ] {
            assert_eq!(named(text), name);
        }
    }
}
