//! What came by places of the run's stacks, file by file: a page of counters that all its processes share
//! ([`crate::page`]). A row belongs to a place and a file; its numbers are the caller's to name.
//!
//! Costs: a file's first call looks for its row, once in each process; after that what is added is added
//! when the file is closed.

use crate::page;
use std::ffi::{CStr, c_int};
use std::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release};
use std::sync::atomic::{AtomicU8, AtomicU32, AtomicU64};

/// The variable that tells processes where the page is.
pub const COUNTED_VARIABLE: &str = "IOLAB_COUNTED";
/// Numbers in a row.
pub const NUMBERS: usize = 8;
/// Rows for places and files.
const ROWS: usize = 1024;
/// Rows more for all other files of a place.
const SPARE: usize = 16;
const PLACE_BYTES: usize = 31;
const FILE_BYTES: usize = 255;

/// States of a row.
const FREE: u32 = 0;
const CLAIMED: u32 = 1;
const READY: u32 = 2;

#[repr(C)]
struct Page {
    magic: AtomicU64,
    rows: [Row; ROWS + SPARE],
}

// SAFETY: atomic words, and arrays of such.
unsafe impl page::Page for Page {
    /// "iolabct", and the version of what follows.
    const MAGIC: u64 = u64::from_le_bytes(*b"iolabct1");
    const NAME: &CStr = c"iolab-counted";

    fn magic(&self) -> &AtomicU64 {
        &self.magic
    }
}

/// The numbers of a place and a file.
#[repr(C)]
pub struct Row {
    state: AtomicU32,
    place: Text<PLACE_BYTES>,
    file: Text<FILE_BYTES>,
    numbers: [AtomicU64; NUMBERS],
}

#[repr(C)]
struct Text<const BYTES: usize> {
    length: AtomicU8,
    bytes: [AtomicU8; BYTES],
}

/// The page as this process sees it.
#[derive(Clone, Copy)]
pub struct Counted(&'static Page);

impl Counted {
    /// Makes the page. The value of [`COUNTED_VARIABLE`] for processes to find it by holds as long as this
    /// process lives.
    ///
    /// # Errors
    /// The error number, where the system has no room.
    pub fn create() -> Result<(Counted, String), c_int> {
        page::create().map(|(page, path)| (Counted(page), path))
    }

    /// Finds the page of the run this process is part of.
    pub fn attach(path: &CStr) -> Option<Counted> {
        page::attach(path).map(Counted)
    }

    /// The row of a file at a place. Of a long path the end counts. Files there is no room for share the row
    /// without a name.
    pub fn row(self, place: &[u8], file: &[u8]) -> Option<&'static Row> {
        let place = &place[..place.len().min(PLACE_BYTES)];
        let file = &file[file.len().saturating_sub(FILE_BYTES)..];
        let (rows, spare) = self.0.rows.split_at(ROWS);
        let from = hash(place, file) % ROWS;
        let (before, after) = rows.split_at(from);
        find(after.iter().chain(before), place, file).or_else(|| find(spare.iter(), place, b""))
    }

    /// Place, file and numbers of each row. Two may be of the same place and file.
    pub fn rows(self) -> impl Iterator<Item = (String, String, [u64; NUMBERS])> {
        let ready = self.0.rows.iter().filter(|row| row.state.load(Acquire) == READY);
        ready.map(|row| {
            let numbers = std::array::from_fn(|at| row.numbers[at].load(Relaxed));
            (row.place.read(), row.file.read(), numbers)
        })
    }
}

/// A row that has these names, or the first free one, which gets them. Rows are never given back, so one that
/// is free is where a search may end.
fn find(
    mut rows: impl Iterator<Item = &'static Row>,
    place: &[u8],
    file: &[u8],
) -> Option<&'static Row> {
    rows.find(|row| {
        let claimed = row.state.compare_exchange(FREE, CLAIMED, AcqRel, Acquire);
        if claimed.is_ok() {
            row.place.write(place);
            row.file.write(file);
            row.state.store(READY, Release);
        }
        // One that is being written may be of the same names: then there are two.
        claimed.is_ok() || claimed == Err(READY) && row.place.is(place) && row.file.is(file)
    })
}

fn hash(place: &[u8], file: &[u8]) -> usize {
    let bytes = place.iter().chain(file);
    let mixed = bytes.fold(0xcbf2_9ce4_8422_2325_u64, |hash, &byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    });
    (mixed ^ mixed >> 32) as usize
}

impl Row {
    /// Adds to the numbers.
    pub fn add(&self, more: &[u64; NUMBERS]) {
        for (number, more) in self.numbers.iter().zip(more) {
            if *more > 0 {
                number.fetch_add(*more, Relaxed);
            }
        }
    }
}

impl<const BYTES: usize> Text<BYTES> {
    fn write(&self, text: &[u8]) {
        for (to, &byte) in self.bytes.iter().zip(text) {
            to.store(byte, Relaxed);
        }
        self.length.store(text.len().min(BYTES) as u8, Relaxed);
    }

    fn bytes(&self) -> &[AtomicU8] {
        &self.bytes[..usize::from(self.length.load(Relaxed)).min(BYTES)]
    }

    fn is(&self, text: &[u8]) -> bool {
        let bytes = self.bytes();
        bytes.len() == text.len()
            && bytes.iter().zip(text).all(|(one, other)| one.load(Relaxed) == *other)
    }

    fn read(&self) -> String {
        let bytes: Vec<u8> = self.bytes().iter().map(|byte| byte.load(Relaxed)).collect();
        String::from_utf8_lossy(&bytes).into_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;
    use std::ffi::CString;

    fn sums(counted: Counted) -> BTreeMap<(String, String), u64> {
        let mut sums = BTreeMap::new();
        for (place, file, numbers) in counted.rows() {
            *sums.entry((place, file)).or_default() += numbers[1];
        }
        sums
    }

    #[test]
    fn what_processes_add_to_a_file_at_a_place_the_launcher_reads_as_one() {
        let (launcher, path) = Counted::create().unwrap();
        let path = CString::new(path).unwrap();
        for more in [1, 2] {
            let process = Counted::attach(&path).unwrap();
            for (place, file) in [("above", "/a"), ("below", "/a"), ("above", "/b")] {
                let row = process.row(place.as_bytes(), file.as_bytes()).unwrap();
                row.add(&[0, more, 0, 0, 0, 0, 0, 7]);
            }
        }
        let row = |place: &str, file: &str| (place.to_owned(), file.to_owned());
        let expected = [row("above", "/a"), row("above", "/b"), row("below", "/a")];
        assert_eq!(sums(launcher), expected.into_iter().map(|row| (row, 3)).collect());
    }

    #[test]
    fn files_there_is_no_room_for_are_counted_together() {
        let (counted, _) = Counted::create().unwrap();
        for number in 0..3000 {
            let row = counted.row(b"here", format!("/{number}").as_bytes()).unwrap();
            row.add(&[0, 1, 0, 0, 0, 0, 0, 0]);
        }
        let sums = sums(counted);
        assert_eq!(sums.len(), ROWS + 1);
        assert_eq!(sums[&("here".to_owned(), String::new())], 3000 - ROWS as u64);
        assert_eq!(sums.values().sum::<u64>(), 3000);
    }

    #[test]
    fn of_a_long_path_the_end_is_kept() {
        let (counted, _) = Counted::create().unwrap();
        let path = format!("/{}/end", "x".repeat(400));
        counted.row(&[b'p'; 50], path.as_bytes()).unwrap();
        let (place, file, _) = counted.rows().next().unwrap();
        assert_eq!((place.len(), file.len()), (PLACE_BYTES, FILE_BYTES));
        assert!(file.ends_with("xx/end"), "{file}");
    }

    #[test]
    fn threads_that_come_at_once_lose_nothing() {
        let (counted, _) = Counted::create().unwrap();
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for number in 0..200 {
                        let row = counted.row(b"here", format!("/{number}").as_bytes()).unwrap();
                        row.add(&[0, 1, 0, 0, 0, 0, 0, 0]);
                    }
                });
            }
        });
        let sums = sums(counted);
        assert_eq!(sums.len(), 200);
        assert!(sums.values().all(|sum| *sum == 4), "{sums:?}");
    }
}
