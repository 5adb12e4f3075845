//! The journal of a run's fast place: which copy belongs to which real file, by what name, and what came of
//! it. It is what `iolab stage recover` goes by when nobody else is left. Format: `docs/format/stage.md`.
//!
//! Lines are only added, each with its checksum, so what a killed keeper left is read to the last whole one.
//! While the keeper lives it holds a lock on the file.

use iolab_segment::{Inode, file_name};
use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::fd::AsRawFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

/// Name of the journal in the directory of the copies.
pub(super) const NAME: &str = "journal";

/// One line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Entry {
    /// The file has that name, and its newest bytes are in the fast place.
    At(Inode, PathBuf),
    /// All of it is at home.
    Home(Inode),
    /// The last name of it went, so its bytes did.
    Dropped(Inode),
}

/// The journal of a run that goes on.
pub(super) struct Journal {
    file: File,
}

impl Journal {
    /// Begins one.
    pub(super) fn create(directory: &Path) -> io::Result<Journal> {
        let mut options = OpenOptions::new();
        let file = options.append(true).create_new(true).mode(0o600).open(directory.join(NAME))?;
        lock(&file);
        Ok(Journal { file })
    }

    /// Goes on with one that nobody writes any more; `None` while somebody does.
    pub(super) fn take_over(directory: &Path) -> io::Result<Option<Journal>> {
        let file = OpenOptions::new().append(true).open(directory.join(NAME))?;
        Ok(lock(&file).then_some(Journal { file }))
    }

    /// Adds a line. A failure is answered: without it the file could not be found again.
    pub(super) fn add(&mut self, entry: &Entry) -> io::Result<()> {
        self.file.write_all(line(entry).as_bytes())
    }

    /// Its time of change is now: no copy of ours ends later.
    pub(super) fn touch(&self) {
        let _as_it_was = self.file.set_modified(SystemTime::now());
    }
}

/// Nobody else writes here as long as the file stays open.
fn lock(file: &File) -> bool {
    // SAFETY: no memory is involved.
    unsafe { libc::flock(file.as_raw_fd(), libc::LOCK_EX | libc::LOCK_NB) == 0 }
}

fn line(entry: &Entry) -> String {
    let (word, inode, path) = match entry {
        Entry::At(inode, path) => ("at", inode, Some(path)),
        Entry::Home(inode) => ("home", inode, None),
        Entry::Dropped(inode) => ("dropped", inode, None),
    };
    let name = String::from_utf8_lossy(file_name(*inode).bytes()).into_owned();
    let mut text = format!("{word} {name}");
    if let Some(path) = path {
        text.push(' ');
        for &byte in path.as_os_str().as_bytes() {
            match byte {
                b'!'..=b'$' | b'&'..=b'~' => text.push(byte as char),
                _ => text += &format!("%{byte:02x}"),
            }
        }
    }
    format!("{:08x} {text}\n", crc32fast::hash(text.as_bytes()))
}

/// What of a file was last said.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Known {
    /// Its last name.
    pub(super) path: PathBuf,
    /// It is at home, or has no name any more.
    pub(super) is_over: bool,
}

/// Reads a journal; lines that are cut or damaged say nothing, and are counted.
pub(super) fn read(directory: &Path) -> io::Result<(BTreeMap<Inode, Known>, usize)> {
    let bytes = std::fs::read(directory.join(NAME))?;
    let (mut files, mut damaged) = (BTreeMap::new(), 0);
    for line in bytes.split(|&byte| byte == b'\n').filter(|line| !line.is_empty()) {
        match parse(line) {
            Some(Entry::At(inode, path)) => {
                files.insert(inode, Known { path, is_over: false });
            }
            Some(Entry::Home(inode) | Entry::Dropped(inode)) => {
                files.entry(inode).and_modify(|known| known.is_over = true);
            }
            None => damaged += 1,
        }
    }
    Ok((files, damaged))
}

/// Reads what [`line`] wrote, without the end of the line.
fn parse(line: &[u8]) -> Option<Entry> {
    let line = std::str::from_utf8(line).ok()?;
    let (sum, text) = line.split_once(' ')?;
    if sum.len() != 8 || u32::from_str_radix(sum, 16).ok()? != crc32fast::hash(text.as_bytes()) {
        return None;
    }
    let mut words = text.split(' ');
    let (word, inode) = (words.next()?, parse_name(words.next()?.as_bytes())?);
    match word {
        "at" => Some(Entry::At(inode, unescaped(words.next()?)?)),
        "home" => Some(Entry::Home(inode)),
        "dropped" => Some(Entry::Dropped(inode)),
        _ => None,
    }
}

/// The file that a copy of that name belongs to.
pub(super) fn parse_name(name: &[u8]) -> Option<Inode> {
    let (device, inode) = std::str::from_utf8(name).ok()?.split_once('-')?;
    Some((u64::from_str_radix(device, 16).ok()?, u64::from_str_radix(inode, 16).ok()?))
}

fn unescaped(text: &str) -> Option<PathBuf> {
    let mut bytes = Vec::new();
    let mut rest = text.as_bytes();
    while let [first, more @ ..] = rest {
        rest = more;
        if *first != b'%' {
            bytes.push(*first);
            continue;
        }
        let digits = std::str::from_utf8(rest.get(..2)?).ok()?;
        bytes.push(u8::from_str_radix(digits, 16).ok()?);
        rest = &rest[2..];
    }
    Some(PathBuf::from(OsStr::from_bytes(&bytes)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_journal_says_the_last_name_of_each_file_and_what_came_of_it() {
        let folder = tempfile::tempdir().unwrap();
        let mut journal = Journal::create(folder.path()).unwrap();
        let odd = PathBuf::from(OsStr::from_bytes(b"/data/a b%\n\xff.chk"));
        for entry in [
            Entry::At((1, 10), "/data/x".into()),
            Entry::At((1, 11), odd.clone()),
            Entry::At((1, 10), "/data/y".into()),
            Entry::Home((1, 11)),
            Entry::Dropped((1, 99)),
        ] {
            journal.add(&entry).unwrap();
        }
        let (files, damaged) = read(folder.path()).unwrap();
        assert_eq!(damaged, 0);
        assert_eq!(files[&(1, 10)], Known { path: "/data/y".into(), is_over: false });
        assert_eq!(files[&(1, 11)], Known { path: odd, is_over: true });
        assert_eq!(files.len(), 2);
    }

    #[test]
    fn a_journal_cut_or_damaged_at_any_byte_is_read_as_far_as_it_is_whole() {
        let folder = tempfile::tempdir().unwrap();
        let whole = line(&Entry::At((1, 10), "/data/x".into()));
        let more = line(&Entry::Home((1, 10)));
        for cut in 0..more.len() - 1 {
            std::fs::write(folder.path().join(NAME), format!("{whole}{}", &more[..cut])).unwrap();
            let (files, damaged) = read(folder.path()).unwrap();
            assert!(!files[&(1, 10)].is_over, "{cut}");
            assert_eq!(damaged, usize::from(cut > 0));
        }
        for at in 0..more.len() - 1 {
            let mut bytes = more.clone().into_bytes();
            bytes[at] ^= 1;
            assert_eq!(parse(&bytes[..bytes.len() - 1]), None, "{at}");
        }
    }

    #[test]
    fn one_writes_and_others_wait_until_it_has_gone() {
        let folder = tempfile::tempdir().unwrap();
        let journal = Journal::create(folder.path()).unwrap();
        assert!(Journal::take_over(folder.path()).unwrap().is_none());
        drop(journal);
        assert!(Journal::take_over(folder.path()).unwrap().is_some());
    }
}
