//! What came of a run: a page of counters that all its processes share ([`crate::page`]), and the programs of
//! it that ran without the library. Who cannot reach it counts nothing.
//!
//! Costs: a process that starts opens and maps it once; a file adds its calls when it is closed.

use crate::page;
use iolab_trace::program::Missed;
use std::ffi::{CStr, c_int};
use std::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release};
use std::sync::atomic::{AtomicU8, AtomicU32, AtomicU64};

/// The variable that tells processes where the page is.
pub const TALLY_VARIABLE: &str = "IOLAB_TALLY";

/// Programs that are named; more are counted.
const NAMES: usize = 32;
const NAME_BYTES: usize = 244;
/// Files that are told apart; of more the number is estimated.
const FILES: usize = 4096;
/// Registers of that estimate, a power of two: it is off by 1.04 / sqrt(4096) = 1.6 % (standard deviation).
const REGISTERS: usize = 4096;
/// Places of the table that are looked at for a file.
const PROBES: usize = 16;

#[repr(C)]
struct Page {
    magic: AtomicU64,
    processes: AtomicU64,
    files: AtomicU64,
    heard: AtomicU64,
    below: AtomicU64,
    noticed: AtomicU32,
    missed: AtomicU32,
    names: [Name; NAMES],
    known: [AtomicU64; FILES],
    /// A file found no place among them.
    is_crowded: AtomicU32,
    /// HyperLogLog (Flajolet et al., 2007): by a part of a file's hash the most zeros that any rest began
    /// with, plus one.
    registers: [AtomicU8; REGISTERS],
}

// SAFETY: atomic words, and arrays of such.
unsafe impl page::Page for Page {
    /// "iolabtl", and the version of what follows.
    const MAGIC: u64 = u64::from_le_bytes(*b"iolabtl2");
    const NAME: &CStr = c"iolab-tally";

    fn magic(&self) -> &AtomicU64 {
        &self.magic
    }
}

#[repr(C)]
struct Name {
    /// 0 is free; else a `Missed` plus one, once the text is there.
    why: AtomicU32,
    is_claimed: AtomicU32,
    length: AtomicU32,
    text: [AtomicU8; NAME_BYTES],
}

/// The page as this process sees it.
#[derive(Clone, Copy)]
pub struct Tally(&'static Page);

/// What was counted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Figures {
    /// Programs that loaded the library and have strategies.
    pub processes: u64,
    /// Files that strategies served.
    pub files: u64,
    /// There were so many that this is an estimate, within 5 % of the truth (three standard deviations).
    pub files_are_estimated: bool,
    /// Calls on them that strategies heard.
    pub heard: u64,
    /// Calls that came out below.
    pub below: u64,
    /// Bits of what was noticed and goes past the library, as numbered by who sets them.
    pub noticed: u32,
    /// Programs without the library, and why.
    pub missed: Vec<(String, Missed)>,
    /// Further such programs, without their names.
    pub missed_more: u64,
}

impl Tally {
    /// Makes the page. The value of [`TALLY_VARIABLE`] for processes to find it by holds as long as this
    /// process lives.
    ///
    /// # Errors
    /// The error number, where the system has no room.
    pub fn create() -> Result<(Tally, String), c_int> {
        page::create().map(|(page, path)| (Tally(page), path))
    }

    /// Finds the page of the run this process is part of.
    pub fn attach(path: &CStr) -> Option<Tally> {
        page::attach(path).map(Tally)
    }

    /// A program has begun to serve files.
    pub fn begun(self) {
        self.0.processes.fetch_add(1, Relaxed);
    }

    /// A file is served.
    pub fn serves(self, device: u64, inode: u64) {
        let mark = device.wrapping_mul(0x9e37_79b9_7f4a_7c15).wrapping_add(inode).max(1);
        let hash = mixed(mark);
        for probe in 0..PROBES {
            let place = &self.0.known[(hash as usize + probe) % FILES];
            match place.compare_exchange(0, mark, Relaxed, Relaxed) {
                Ok(_) => {
                    self.0.files.fetch_add(1, Relaxed);
                    return self.note(hash);
                }
                Err(known) if known == mark => return,
                Err(_) => {}
            }
        }
        self.0.is_crowded.store(1, Relaxed);
        self.note(hash);
    }

    fn note(self, hash: u64) {
        let register = &self.0.registers[(hash >> (64 - REGISTERS.ilog2())) as usize];
        // The bits that chose the register are gone; some bit of the rest is set.
        let rest = hash << REGISTERS.ilog2() | 1;
        register.fetch_max(rest.leading_zeros() as u8 + 1, Relaxed);
    }

    /// How many files were noted, about.
    fn estimate(self) -> u64 {
        let registers = self.0.registers.iter().map(|register| register.load(Relaxed));
        let count = REGISTERS as f64;
        let empty = registers.clone().filter(|zeros| *zeros == 0).count();
        let sum: f64 = registers.map(|zeros| (-f64::from(zeros)).exp2()).sum();
        let raw = 0.7213 / (1.0 + 1.079 / count) * count * count / sum;
        let estimate = match raw <= 2.5 * count && empty > 0 {
            true => count * (count / empty as f64).ln(),
            false => raw,
        };
        estimate.round() as u64
    }

    /// So many calls were heard, and so many came out below.
    pub fn calls(self, heard: u64, below: u64) {
        self.0.heard.fetch_add(heard, Relaxed);
        self.0.below.fetch_add(below, Relaxed);
    }

    /// Something that goes past the library was noticed.
    pub fn notice(self, bit: u32) {
        if self.0.noticed.load(Relaxed) & bit == 0 {
            self.0.noticed.fetch_or(bit, Relaxed);
        }
    }

    /// A program is about to be started that will have no library. Each is named once.
    pub fn miss(self, program: &[u8], why: Missed) {
        let program = &program[..program.len().min(NAME_BYTES)];
        for name in &self.0.names {
            if name.is_claimed.compare_exchange(0, 1, AcqRel, Acquire).is_ok() {
                for (to, &byte) in name.text.iter().zip(program) {
                    to.store(byte, Relaxed);
                }
                name.length.store(program.len() as u32, Relaxed);
                return name.why.store(why as u32 + 1, Release);
            }
            if name.is(program) {
                return;
            }
        }
        self.0.missed.fetch_add(1, Relaxed);
    }

    /// What was counted so far.
    pub fn figures(self) -> Figures {
        let page = self.0;
        let missed = page.names.iter().filter_map(Name::read).collect();
        let files_are_estimated = page.is_crowded.load(Relaxed) != 0;
        Figures {
            processes: page.processes.load(Relaxed),
            files: match files_are_estimated {
                true => self.estimate(),
                false => page.files.load(Relaxed),
            },
            files_are_estimated,
            heard: page.heard.load(Relaxed),
            below: page.below.load(Relaxed),
            noticed: page.noticed.load(Relaxed),
            missed,
            missed_more: u64::from(page.missed.load(Relaxed)),
        }
    }
}

/// Every bit of the answer depends on every bit of the number (the end of SplitMix64).
fn mixed(number: u64) -> u64 {
    let number = (number ^ (number >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let number = (number ^ (number >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    number ^ (number >> 31)
}

impl Name {
    fn is(&self, program: &[u8]) -> bool {
        self.why.load(Acquire) != 0
            && self.length.load(Relaxed) as usize == program.len()
            && self.text.iter().zip(program).all(|(one, other)| one.load(Relaxed) == *other)
    }

    fn read(&self) -> Option<(String, Missed)> {
        let why = *Missed::ALL.get((self.why.load(Acquire) as usize).checked_sub(1)?)?;
        let length = (self.length.load(Relaxed) as usize).min(NAME_BYTES);
        let text: Vec<u8> = self.text[..length].iter().map(|byte| byte.load(Relaxed)).collect();
        Some((String::from_utf8_lossy(&text).into_owned(), why))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::ffi::CString;

    #[test]
    fn what_one_process_counts_the_launcher_reads() {
        let (launcher, path) = Tally::create().unwrap();
        let process = Tally::attach(&CString::new(path).unwrap()).unwrap();
        process.begun();
        for (device, inode) in [(1, 2), (1, 3), (1, 2), (2, 1)] {
            process.serves(device, inode);
        }
        process.calls(10, 3);
        process.calls(5, 5);
        process.notice(4);
        process.notice(4);
        process.miss(b"/bin/static", Missed::Static);
        process.miss(b"/bin/static", Missed::Static);
        process.miss(b"/bin/su", Missed::SetUser);
        let expected = Figures {
            processes: 1,
            files: 3,
            files_are_estimated: false,
            heard: 15,
            below: 8,
            noticed: 4,
            missed: vec![
                ("/bin/static".into(), Missed::Static),
                ("/bin/su".into(), Missed::SetUser),
            ],
            missed_more: 0,
        };
        assert_eq!(launcher.figures(), expected);
    }

    #[test]
    fn names_that_have_no_room_are_counted() {
        let (tally, _) = Tally::create().unwrap();
        for number in 0..40 {
            tally.miss(format!("/bin/{number}").as_bytes(), Missed::Environment);
        }
        tally.miss(&[b'x'; 1000], Missed::Environment);
        let figures = tally.figures();
        assert_eq!((figures.missed.len(), figures.missed_more), (NAMES, 9));
    }

    #[test]
    fn a_file_is_one_however_often_it_is_opened_and_however_many_there_are() {
        for count in [1_000, 6_000, 50_000, 1_000_000] {
            let (tally, _) = Tally::create().unwrap();
            for _ in 0..2 {
                (0..count).for_each(|inode| tally.serves(7, inode));
            }
            let Figures { files, files_are_estimated, .. } = tally.figures();
            assert_eq!(files_are_estimated, count > FILES as u64, "{count}");
            let off = files.abs_diff(count);
            let most = if files_are_estimated { count / 20 } else { 0 };
            assert!(off <= most, "{files} instead of {count}");
        }
    }

    #[test]
    fn what_is_no_such_page_is_left_alone() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let path = CString::new(file.path().to_str().unwrap()).unwrap();
        assert!(Tally::attach(&path).is_none());
        file.as_file().set_len(size_of::<Page>() as u64).unwrap();
        assert!(Tally::attach(&path).is_none(), "no magic");
        assert!(Tally::attach(c"/proc/1/fd/999999").is_none());
    }
}
