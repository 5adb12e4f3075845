//! What strategies that count have counted on one file, for the launcher to tell at the end of the run. Without
//! a page of the run to write to, it stays where it is.

use iolab_policy::insitu::{Counts, Stack};
use iolab_segment::{COUNTED_VARIABLE, NUMBERS, Row};
use std::ffi::{CString, c_int};
use std::sync::OnceLock;

const _: () = assert!(Counts::KINDS.len() == NUMBERS, "a row has room for each kind");

/// The page of the run, set once at start.
static COUNTED: OnceLock<iolab_segment::Counted> = OnceLock::new();

/// Finds the page of the run.
pub(super) fn join(variable: &dyn Fn(&[u8]) -> Option<&'static [u8]>) {
    let path = variable(COUNTED_VARIABLE.as_bytes()).and_then(|path| CString::new(path).ok());
    if let Some(counted) = path.and_then(|path| iolab_segment::Counted::attach(&path)) {
        let _ = COUNTED.set(counted);
    }
}

/// Whether anybody wants to know.
pub(super) fn is_wanted() -> bool {
    COUNTED.get().is_some()
}

/// What was told of one file: by each stage that counts, in order.
#[derive(Default)]
pub(super) struct Told(Vec<(&'static Row, Counts)>);

impl Told {
    /// Tells what has come since the last time; `fd` leads to the file.
    pub(super) fn tell(&mut self, stack: &Stack, fd: Option<c_int>) {
        let Some(counted) = COUNTED.get().filter(|_| stack.counts().next().is_some()) else {
            return;
        };
        if self.0.is_empty()
            && let Some(fd) = fd
        {
            let mut buffer = crate::path::Buffer::new();
            let path = crate::path::of_descriptor(fd, &mut buffer);
            let row = |(_, place, _): (_, &str, _)| counted.row(place.as_bytes(), path);
            let rows: Option<Vec<_>> = stack.counts().map(row).collect();
            self.0 =
                rows.unwrap_or_default().into_iter().map(|it| (it, Counts::default())).collect();
        }
        for ((row, told), (_, _, counts)) in self.0.iter_mut().zip(stack.counts()) {
            row.add(&counts.since(told).0);
            *told = *counts;
        }
    }
}
