//! What the processes of a run know of the files that lie in its fast place (strategy `stage`): a page that
//! its keeper writes and everybody reads, and the line by which they ask the keeper ([`Line`]).
//!
//! A file is found by what it is at home and by what its copy is: both are inodes. So nothing has to be
//! remembered in a process: what a descriptor leads to is asked of the system, whoever opened, inherited or
//! was sent it. While nothing is staged, a look costs one load.
//!
//! An entry is read without a lock: its stamp is odd while it changes. A file that comes home is counted
//! ([`FastPlace::moves`]) and taken out before its copy goes, so that who has asked the system about the real
//! file too early notices, and asks again.

mod line;

pub use line::{Answer, Line, Listener, Question, Reply, Request, STILL, Talk};

use crate::page::{self, Page};
use crate::system::own_pid;
use std::ffi::{CStr, c_int};
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::sync::atomic::{AtomicU8, AtomicU32, AtomicU64, fence};

/// The variable that tells processes where the page is.
pub const STAGE_VARIABLE: &str = "IOLAB_STAGE";
/// The longest path of the directory, in bytes: a socket in it has an address of 108.
pub const DIRECTORY_BYTES_MAX: usize = 96;
/// As many files may be staged at once. Each has two entries, and half of them stay free.
pub const FILES_MAX: usize = 8192;
const ENTRIES: usize = 4 * FILES_MAX;
/// A reader gives an entry up that changes so often: whoever changed it was killed.
const LOOKS: usize = 1000;

/// See the module.
#[repr(C)]
pub struct FastPlace {
    magic: AtomicU64,
    keeper: AtomicU32,
    files: AtomicU32,
    moves: AtomicU64,
    device: AtomicU64,
    directory: [AtomicU8; 128],
    entries: [Entry; ENTRIES],
}

#[repr(C)]
struct Entry {
    stamp: AtomicU32,
    kind: AtomicU32,
    device: AtomicU64,
    inode: AtomicU64,
    home_device: AtomicU64,
    home_inode: AtomicU64,
    descriptor: AtomicU32,
    reserved: AtomicU32,
}

const EMPTY: u32 = 0;
const GONE: u32 = 1;
const HOME: u32 = 2;
const FAST: u32 = 3;

// SAFETY: all of it are atomic words, for which any bits are good.
unsafe impl Page for FastPlace {
    const MAGIC: u64 = u64::from_le_bytes(*b"iolabst1");
    const NAME: &CStr = c"iolab-stage";

    fn magic(&self) -> &AtomicU64 {
        &self.magic
    }
}

/// A file by device and inode.
pub type Inode = (u64, u64);

/// A file that lies in the fast place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StagedFile {
    /// The real file.
    pub home: Inode,
    /// The keeper's descriptor of the real file.
    pub descriptor: c_int,
    /// What was asked about is the real file, not its copy.
    pub is_home: bool,
}

impl FastPlace {
    /// Makes the page of a run of this process, whose files lie in that directory of that device. The path
    /// for [`STAGE_VARIABLE`] holds as long as this process lives.
    ///
    /// # Errors
    /// The error number, where the system has no room; `ENAMETOOLONG` for a path beyond
    /// [`DIRECTORY_BYTES_MAX`].
    pub fn create(directory: &[u8], device: u64) -> Result<(&'static FastPlace, String), c_int> {
        if directory.len() > DIRECTORY_BYTES_MAX {
            return Err(libc::ENAMETOOLONG);
        }
        let (page, path) = page::create::<FastPlace>()?;
        page.keeper.store(own_pid(), Relaxed);
        page.device.store(device, Relaxed);
        for (to, &byte) in page.directory.iter().zip(directory) {
            to.store(byte, Relaxed);
        }
        Ok((page, path))
    }

    /// Finds the page of the run this process is part of.
    pub fn attach(path: &CStr) -> Option<&'static FastPlace> {
        page::attach(path)
    }

    /// Whether any file is staged.
    #[inline(always)]
    pub fn is_any(&self) -> bool {
        self.files.load(Relaxed) != 0
    }

    /// How many files have gone from the fast place so far: those that were not found any more by the looks before
    /// are among them.
    pub fn moves(&self) -> u64 {
        fence(Acquire);
        self.moves.load(Acquire)
    }

    /// The device of the fast place.
    pub fn device(&self) -> u64 {
        self.device.load(Relaxed)
    }

    /// The directory of the copies; the answer is its length in bytes.
    pub fn directory(&self, to: &mut [u8; 128]) -> usize {
        for (to, byte) in to.iter_mut().zip(&self.directory) {
            *to = byte.load(Relaxed);
        }
        to.iter().position(|&byte| byte == 0).unwrap_or(DIRECTORY_BYTES_MAX)
    }

    /// The path of something in the directory, ended by NUL.
    pub fn path_of(&self, name: &[u8]) -> Path {
        let mut directory = [0; 128];
        let length = self.directory(&mut directory);
        let mut path = Path::new();
        path.push(&directory[..length.min(DIRECTORY_BYTES_MAX)]);
        path.push(b"/");
        path.push(name);
        path
    }

    /// The path of a file's copy.
    pub fn copy_of(&self, home: Inode) -> Path {
        self.path_of(file_name(home).bytes())
    }

    /// A path that leads to the real file, whatever it is called by now.
    pub fn home_of(&self, file: &StagedFile) -> Path {
        let mut path = Path::new();
        path.push(b"/proc/");
        path.push_number(u64::from(self.keeper.load(Relaxed)), 10);
        path.push(b"/fd/");
        path.push_number(file.descriptor as u64, 10);
        path
    }

    /// The staged file that an inode is, or is the copy of.
    pub fn find(&self, inode: Inode) -> Option<StagedFile> {
        if !self.is_any() {
            return None;
        }
        for entry in self.probes(inode) {
            let (kind, its, found) = entry.read()?;
            match kind {
                EMPTY => return None,
                HOME | FAST if its == inode => return Some(found),
                _ => {}
            }
        }
        None
    }

    /// Adds a file, by what it is at home and by the inode of its copy. False when there is no room. Its
    /// keeper is one thread at a time.
    #[must_use]
    pub fn insert(&self, home: Inode, copy: Inode, descriptor: c_int) -> bool {
        if self.files.load(Relaxed) as usize >= FILES_MAX {
            return false;
        }
        for (inode, kind) in [(home, HOME), (copy, FAST)] {
            let is_free = |entry: &&Entry| entry.kind.load(Relaxed) < HOME;
            let Some(entry) = self.probes(inode).find(is_free) else { return false };
            entry.write(kind, inode, home, descriptor);
        }
        self.files.fetch_add(1, Release);
        true
    }

    /// Takes a file out. It is counted first: who does not find it any more, and asked the system before, has to
    /// notice that from this moment on.
    pub fn remove(&self, home: Inode, copy: Inode) {
        self.moves.fetch_add(1, Release);
        for inode in [home, copy] {
            let is_it = |entry: &&Entry| {
                entry.kind.load(Relaxed) >= HOME
                    && (entry.device.load(Relaxed), entry.inode.load(Relaxed)) == inode
            };
            let found = self.probes(inode).position(|entry| is_it(&entry));
            if let Some(step) = found {
                let index = first_of(inode).wrapping_add(step) % ENTRIES;
                self.entries[index].write(GONE, inode, home, 0);
                self.tidy(index);
            }
        }
        self.files.fetch_sub(1, Release);
    }

    /// Entries that are gone, and behind which nothing stands, are empty: looks end there.
    fn tidy(&self, last: usize) {
        let entry = |index: usize| &self.entries[index % ENTRIES];
        if entry(last + 1).kind.load(Relaxed) != EMPTY {
            return;
        }
        let mut index = last;
        while entry(index).kind.load(Relaxed) == GONE {
            entry(index).write(EMPTY, (0, 0), (0, 0), 0);
            index = index.checked_sub(1).unwrap_or(ENTRIES - 1);
        }
    }

    fn probes(&self, inode: Inode) -> impl Iterator<Item = &Entry> {
        let first = first_of(inode);
        (0..ENTRIES).map(move |step| &self.entries[first.wrapping_add(step) % ENTRIES])
    }
}

fn first_of((device, inode): Inode) -> usize {
    let mixed = (inode ^ device.rotate_left(32)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    (mixed ^ mixed >> 29) as usize % ENTRIES
}

impl Entry {
    /// `None` where nobody can tell.
    fn read(&self) -> Option<(u32, Inode, StagedFile)> {
        for _ in 0..LOOKS {
            let stamp = self.stamp.load(Acquire);
            let kind = self.kind.load(Relaxed);
            let inode = (self.device.load(Relaxed), self.inode.load(Relaxed));
            let file = StagedFile {
                home: (self.home_device.load(Relaxed), self.home_inode.load(Relaxed)),
                descriptor: self.descriptor.load(Relaxed) as c_int,
                is_home: kind == HOME,
            };
            fence(Acquire);
            if stamp.is_multiple_of(2) && self.stamp.load(Relaxed) == stamp {
                return Some((kind, inode, file));
            }
            std::hint::spin_loop();
        }
        None
    }

    fn write(&self, kind: u32, inode: Inode, home: Inode, descriptor: c_int) {
        let stamp = self.stamp.load(Relaxed);
        self.stamp.store(stamp.wrapping_add(1), Relaxed);
        fence(Release);
        self.kind.store(kind, Relaxed);
        self.device.store(inode.0, Relaxed);
        self.inode.store(inode.1, Relaxed);
        self.home_device.store(home.0, Relaxed);
        self.home_inode.store(home.1, Relaxed);
        self.descriptor.store(descriptor as u32, Relaxed);
        self.stamp.store(stamp.wrapping_add(2), Release);
    }
}

/// A short path, made without memory of anybody's.
pub struct Path {
    bytes: [u8; 192],
    length: usize,
}

impl Path {
    fn new() -> Path {
        Path { bytes: [0; 192], length: 0 }
    }

    /// Whatever does not fit is left out, and the last byte stays 0.
    fn push(&mut self, text: &[u8]) {
        for &byte in text {
            if self.length + 1 < self.bytes.len() {
                self.bytes[self.length] = byte;
                self.length += 1;
            }
        }
    }

    fn push_number(&mut self, mut number: u64, base: u64) {
        let mut digits = [0u8; 20];
        let mut first = digits.len();
        loop {
            first -= 1;
            digits[first] = b"0123456789abcdef"[(number % base) as usize];
            number /= base;
            if number == 0 {
                break;
            }
        }
        self.push(&digits[first..]);
    }

    /// Without the NUL at its end.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes[..self.length]
    }

    /// Ended by NUL.
    pub fn c_text(&self) -> &CStr {
        CStr::from_bytes_until_nul(&self.bytes).unwrap_or(c"")
    }
}

/// What the copy of a file is called: `DEVICE-INODE`, hexadecimal.
pub fn file_name(home: Inode) -> Path {
    let mut name = Path::new();
    name.push_number(home.0, 16);
    name.push(b"-");
    name.push_number(home.1, 16);
    name
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_found_by_both_its_inodes_until_it_is_taken_out() {
        let (page, path) = FastPlace::create(b"/fast/run", 7).unwrap();
        let path = std::ffi::CString::new(path).unwrap();
        let other = FastPlace::attach(&path).unwrap();
        assert_eq!(other.find((1, 2)), None);
        for inode in 0..500 {
            assert!(page.insert((1, inode), (7, inode + 9), inode as c_int));
        }
        let found = other.find((1, 2)).unwrap();
        assert_eq!(found, StagedFile { home: (1, 2), descriptor: 2, is_home: true });
        assert_eq!(other.find((7, 11)), Some(StagedFile { is_home: false, ..found }));
        assert_eq!(other.copy_of((1, 255)).bytes(), b"/fast/run/1-ff");
        let home = format!("/proc/{}/fd/2", std::process::id());
        assert_eq!(other.home_of(&found).bytes(), home.as_bytes());
        page.remove((1, 2), (7, 11));
        assert_eq!((other.find((1, 2)), other.find((7, 11)), other.moves()), (None, None, 1));
        assert!((3..500).all(|inode| other.find((7, inode + 9)).is_some()));
    }

    /// Who asks the system about a file, and does not find it here afterwards, must see that it went meanwhile.
    #[test]
    fn a_file_is_counted_as_gone_before_it_is_not_found() {
        const ROUNDS: u64 = 2000;
        let (page, _) = FastPlace::create(b"/f", 7).unwrap();
        let (home, copy) = ((1, 2), (7, 3));
        let (found, lost) = (AtomicU64::new(0), AtomicU64::new(0));
        let wait_for = |round: u64, done: &AtomicU64| {
            while done.load(Acquire) <= round {
                std::thread::yield_now();
            }
        };
        let unseen = std::thread::scope(|scope| {
            let reader = scope.spawn(|| {
                let is_unseen = |&round: &u64| {
                    let before = page.moves();
                    while page.find(home).is_none() {
                        std::thread::yield_now();
                    }
                    found.store(round + 1, Release);
                    while page.find(home).is_some() {}
                    let is_unseen = page.moves() == before;
                    lost.store(round + 1, Release);
                    is_unseen
                };
                (0..ROUNDS).filter(is_unseen).count()
            });
            for round in 0..ROUNDS {
                assert!(page.insert(home, copy, 1));
                wait_for(round, &found);
                page.remove(home, copy);
                wait_for(round, &lost);
            }
            reader.join().unwrap()
        });
        assert_eq!(unseen, 0);
    }

    #[test]
    fn a_full_page_takes_no_more_and_finds_all_it_has() {
        let (page, _) = FastPlace::create(b"/f", 7).unwrap();
        for round in 0..3 {
            for inode in 0..FILES_MAX as u64 {
                assert!(page.insert((1, inode + round), (7, inode), 1), "{inode}");
            }
            assert!(!page.insert((1, 1 << 40), (7, 1 << 40), 1));
            assert!((0..FILES_MAX as u64).all(|inode| page.find((7, inode)).is_some()));
            (0..FILES_MAX as u64).for_each(|inode| page.remove((1, inode + round), (7, inode)));
            assert!(!page.is_any());
            let is_empty = |entry: &Entry| entry.kind.load(Relaxed) == EMPTY;
            assert!(page.entries.iter().all(is_empty), "what is gone makes looks long");
        }
    }

    #[test]
    fn a_directory_of_too_long_a_name_is_refused() {
        assert_eq!(FastPlace::create(&[b'x'; 97], 1).err(), Some(libc::ENAMETOOLONG));
    }
}
