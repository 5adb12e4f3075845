//! Stand-ins: each file of the file system that has a place among plain files has a plain one there, which
//! stands for it until the bytes come home: an empty one that was made with it, or the file it came from.
//!
//! So directories list it, permissions and times are its own, and whatever creates, links or looks for names
//! finds what it would find on a plain directory. Only length and bytes are elsewhere. Which plain files
//! stand in, and which directories lead to some, is a set of inodes that all processes of a run share in
//! memory: who meets another file knows without asking anybody. A member may be none any more, then the
//! manager tells.
//!
//! Who takes a file into the file system, or out of it, has the turn of its name meanwhile: a lock of the
//! kernel's, which ends with the process.

use crate::chosen::Chosen;
use rustix::fd::{AsRawFd, OwnedFd};
use rustix::fs::{self, AtFlags, CWD, FileType, Mode, OFlags, Stat, Timespec, Timestamps};
use rustix::io::Errno;
use rustix::mm::{self, MapFlags, ProtFlags};
use std::ffi::OsStr;
use std::fs::File;
use std::io::Write;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::{io, ptr, slice};

/// The set: a word that counts, and words of one member each, found by hashing. Members beyond its room make
/// every inode one.
const WORDS: usize = 1 << 16;
const BYTES: usize = WORDS * size_of::<u64>();
/// Where no member has been so far, and where one was.
const FREE: u64 = 0;
const LEFT: u64 = 1;
/// What the word that counts has from when the set is full.
const FULL: u64 = 1 << 63;
const NAME: &str = "stand-ins";

/// The stand-ins of an instance.
#[derive(Debug)]
pub struct StandIns {
    place: PathBuf,
    words: &'static [AtomicU64],
}

/// The turn of some names, until it is dropped.
#[derive(Debug)]
pub struct Turn(OwnedFd);

impl StandIns {
    /// Begins a set for the instance in a directory. It has all the room that it will ever need, or is refused.
    pub fn begin(directory: &Path) -> io::Result<()> {
        let place = directory.join(NAME);
        // A process of an earlier run may still look at the old one.
        let _ = std::fs::remove_file(&place);
        let flags = OFlags::RDWR | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
        let mut file = File::from(fs::open(&place, flags, Mode::RUSR | Mode::WUSR)?);
        // Written, not cut to its length: of a hole on a full device, who looks at it as memory gets a signal.
        file.write_all(&vec![0; BYTES])
    }

    /// Those of the instance in a directory, if it has a set.
    pub fn of(directory: &Path) -> Option<StandIns> {
        let place = directory.join(NAME);
        let file = fs::open(&place, OFlags::RDWR | OFlags::CLOEXEC, Mode::empty()).ok()?;
        if fs::fstat(&file).ok()?.st_size != BYTES as i64 {
            return None;
        }
        let access = ProtFlags::READ | ProtFlags::WRITE;
        // SAFETY: new memory, of a file as long as it; nobody cuts it. It is never unmapped, and read and
        // written as atomic words.
        let words = unsafe {
            let memory =
                mm::mmap(ptr::null_mut(), BYTES, access, MapFlags::SHARED, &file, 0).ok()?;
            slice::from_raw_parts(memory.cast::<AtomicU64>(), WORDS)
        };
        Some(StandIns { place, words })
    }

    /// Whether there has been none so far.
    pub fn is_empty(&self) -> bool {
        self.words[0].load(Ordering::Acquire) == 0
    }

    /// Whether a file may be one. If not, it is none.
    pub fn may_have(&self, device: u64, inode: u64) -> bool {
        let member = member(device, inode);
        match self.words[0].load(Ordering::Acquire) {
            0 => false,
            count if count >= FULL => true,
            _ => self.chain(member).any(|word| word.load(Ordering::Acquire) == member),
        }
    }

    /// Whether the file of a name is known to be one.
    pub fn has(&self, path: &[u8]) -> bool {
        let is_full = self.words[0].load(Ordering::Acquire) >= FULL;
        !is_full && fs::stat(path).is_ok_and(|status| self.may_have(status.st_dev, status.st_ino))
    }

    /// A file is one from now on.
    pub(crate) fn note(&self, status: &Stat) {
        let member = member(status.st_dev, status.st_ino);
        if self.chain(member).any(|word| word.load(Ordering::Acquire) == member) {
            return;
        }
        for word in self.all_from(member) {
            let had = word.load(Ordering::Acquire);
            if had <= LEFT
                && word.compare_exchange(had, member, Ordering::AcqRel, Ordering::Acquire).is_ok()
            {
                self.words[0].fetch_add(1, Ordering::AcqRel);
                return;
            }
        }
        self.words[0].fetch_or(FULL, Ordering::AcqRel);
    }

    /// A file is none any more.
    pub fn strike(&self, device: u64, inode: u64) {
        let member = member(device, inode);
        for word in self.chain(member) {
            if word.compare_exchange(member, LEFT, Ordering::AcqRel, Ordering::Acquire).is_ok() {
                self.words[0].fetch_sub(1, Ordering::AcqRel);
            }
        }
    }

    /// All places, in the order in which a member looks for one.
    fn all_from(&self, member: u64) -> impl Iterator<Item = &AtomicU64> {
        let places = &self.words[1..];
        let (before, after) = places.split_at((member % places.len() as u64) as usize);
        after.iter().chain(before)
    }

    /// The places where a member may be.
    fn chain(&self, member: u64) -> impl Iterator<Item = &AtomicU64> {
        self.all_from(member).take_while(|word| word.load(Ordering::Acquire) != FREE)
    }

    /// Sees that a name has a stand-in. The answer is whether it was made for that; it is not if a file of
    /// that name was there.
    pub fn stand(&self, path: &[u8], mode: u32, chosen: &Chosen) -> io::Result<bool> {
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
        let (status, is_new) = match fs::open(path, flags, Mode::from_raw_mode(mode & 0o7777)) {
            Ok(file) => (fs::fstat(&file)?, true),
            Err(Errno::EXIST) => (fs::stat(path)?, false),
            Err(error) => return Err(error.into()),
        };
        if FileType::from_raw_mode(status.st_mode) == FileType::Directory {
            return Err(Errno::ISDIR.into());
        }
        self.note(&status);
        self.lead_to(path, chosen).map(|()| is_new)
    }

    /// Notes the directories that lead to a file: they are renamed and removed in the file system, too.
    pub fn lead_to(&self, path: &[u8], chosen: &Chosen) -> io::Result<()> {
        let above = Path::new(OsStr::from_bytes(path)).ancestors().skip(1);
        for directory in above.take_while(|it| chosen.holds(it.as_os_str().as_bytes())) {
            self.note(&fs::stat(directory)?);
        }
        Ok(())
    }

    /// The turn of names, which is waited for.
    pub fn turn(&self, names: &[&[u8]]) -> io::Result<Turn> {
        let turn = Turn(fs::open(&self.place, OFlags::RDWR | OFlags::CLOEXEC, Mode::empty())?);
        // In one order for everybody.
        let mut places: Vec<i64> = names.iter().map(|name| place_of(name)).collect();
        places.sort_unstable();
        places.dedup();
        for place in places {
            turn.lock(libc::F_WRLCK, place, 1)?;
        }
        Ok(turn)
    }
}

impl Turn {
    fn lock(&self, kind: i32, start: i64, bytes: i64) -> io::Result<()> {
        let lock = libc::flock {
            l_type: kind as i16,
            l_whence: libc::SEEK_SET as i16,
            l_start: start,
            l_len: bytes,
            l_pid: 0,
        };
        loop {
            // SAFETY: a descriptor of our own, and a description of what is to be locked.
            match unsafe { libc::fcntl(self.0.as_raw_fd(), libc::F_OFD_SETLKW, &raw const lock) } {
                0 => return Ok(()),
                _ => match io::Error::last_os_error() {
                    error if error.kind() == io::ErrorKind::Interrupted => {}
                    error => return Err(error),
                },
            }
        }
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        // A child that was forked meanwhile has the descriptor, too, and would keep the turn.
        let _ = self.lock(libc::F_UNLCK, 0, 0);
    }
}

/// The file that a stand-in stands for was written.
pub fn touch(path: &[u8]) {
    let now = Timespec { tv_sec: 0, tv_nsec: fs::UTIME_NOW };
    let times = Timestamps { last_access: now, last_modification: now };
    // Times of a file that somebody else owns are theirs.
    let _ = fs::utimensat(CWD, path, &times, AtFlags::SYMLINK_NOFOLLOW);
}

/// Removes the stand-in of a file that stays in the file system, if it is one without bytes of its own.
pub fn withdraw(path: &[u8]) {
    let is_stand_in =
        |it: &Stat| FileType::from_raw_mode(it.st_mode) == FileType::RegularFile && it.st_size == 0;
    if fs::statat(CWD, path, AtFlags::SYMLINK_NOFOLLOW).is_ok_and(|status| is_stand_in(&status)) {
        let _ = fs::unlink(path);
    }
}

/// What the set has of an inode: a number that others have not, for all that is likely.
fn member(device: u64, inode: u64) -> u64 {
    mixed(inode ^ mixed(device)).max(LEFT + 1)
}

/// Spreads a number over all bits (the finisher of SplitMix64).
fn mixed(number: u64) -> u64 {
    let number = number.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let number = (number ^ number >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let number = (number ^ number >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    number ^ number >> 31
}

/// The byte that is locked for a name. Names that share one only wait for each other.
fn place_of(name: &[u8]) -> i64 {
    let mix = |sum, chunk: &[u8]| {
        let mut word = [0; 8];
        word[..chunk.len()].copy_from_slice(chunk);
        mixed(sum ^ u64::from_le_bytes(word))
    };
    (name.chunks(8).fold(name.len() as u64, mix) >> 2) as i64
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::MetadataExt;

    #[test]
    fn stand_ins_are_made_where_nothing_is_and_known_by_whoever_looks() {
        let directory = tempfile::tempdir().unwrap();
        let at = directory.path().canonicalize().unwrap();
        assert!(StandIns::of(&at).is_none());
        StandIns::begin(&at).unwrap();
        let [ours, theirs] = [StandIns::of(&at).unwrap(), StandIns::of(&at).unwrap()];
        std::fs::create_dir(at.join("d")).unwrap();
        std::fs::write(at.join("d/plain"), b"before").unwrap();
        let chosen = Chosen::by(format!("{}/**", at.display()));
        let stand = |name: &str| {
            let path = at.join(name);
            ours.stand(path.as_os_str().as_bytes(), 0o600, &chosen).map_err(|it| it.raw_os_error())
        };
        assert!(theirs.is_empty());
        assert_eq!(stand("d/new"), Ok(true));
        assert_eq!(stand("d/new"), Ok(false));
        assert_eq!(stand("d/plain"), Ok(false));
        assert_eq!(stand("d"), Err(Some(libc::EISDIR)));
        assert_eq!(stand("none/x"), Err(Some(libc::ENOENT)));
        let knows = |name: &str| {
            let it = std::fs::metadata(at.join(name)).unwrap();
            theirs.may_have(it.dev(), it.ino())
        };
        assert!(["d/new", "d/plain", "d"].into_iter().all(knows) && !knows("."));
        let it = std::fs::metadata(at.join("d/new")).unwrap();
        ours.strike(it.dev(), it.ino());
        assert!(!knows("d/new") && knows("d/plain"));
        for name in ["d/new", "d/plain"] {
            withdraw(at.join(name).as_os_str().as_bytes());
        }
        assert!(!at.join("d/new").exists() && at.join("d/plain").exists());
    }

    #[test]
    fn a_set_has_the_room_of_all_its_members_before_there_are_any() {
        let directory = tempfile::tempdir().unwrap();
        StandIns::begin(directory.path()).unwrap();
        let status = std::fs::metadata(directory.path().join(NAME)).unwrap();
        assert_eq!(status.len(), BYTES as u64);
        assert!(status.blocks() * 512 >= BYTES as u64, "{} blocks", status.blocks());
    }

    #[test]
    fn a_set_without_room_takes_every_file_for_one() {
        let directory = tempfile::tempdir().unwrap();
        StandIns::begin(directory.path()).unwrap();
        let set = StandIns::of(directory.path()).unwrap();
        let mut status = fs::stat(directory.path()).unwrap();
        for inode in 0..WORDS as u64 {
            assert!(!set.may_have(status.st_dev, inode));
            status.st_ino = inode;
            set.note(&status);
            assert!(set.may_have(status.st_dev, inode));
        }
        assert!(set.may_have(0, 0));
    }

    #[test]
    fn names_are_taken_out_and_in_by_one_at_a_time() {
        let directory = tempfile::tempdir().unwrap();
        StandIns::begin(directory.path()).unwrap();
        let set = StandIns::of(directory.path()).unwrap();
        let inside = AtomicU64::new(0);
        std::thread::scope(|scope| {
            for names in [[&b"/a"[..], b"/b"], [b"/b", b"/a"], [b"/b", b"/c"], [b"/a", b"/b"]] {
                let (set, inside) = (&set, &inside);
                scope.spawn(move || {
                    for _ in 0..200 {
                        let turn = set.turn(&names).unwrap();
                        assert_eq!(inside.fetch_add(1, Ordering::SeqCst), 0);
                        inside.fetch_sub(1, Ordering::SeqCst);
                        drop(turn);
                    }
                });
            }
        });
        assert_eq!(inside.into_inner(), 0);
    }
}
