//! Listings: real names first, then members. What a directory had when its listing began comes exactly once, whether
//! it becomes real meanwhile or not.

use super::Members;
use crate::directory::Line;
use crate::tree::Inode;
use rustix::fs::FileType;
use std::collections::HashSet;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};

/// Positions from here on are those of members; those of file systems are hashes of 63 bits, or small.
const FIRST: u64 = 0x7ffe_0000_0000_0000;

/// The members of a directory when its listing began.
#[derive(Default)]
pub(crate) struct Snapshot {
    names: Vec<(Vec<u8>, u64)>,
    known: HashSet<Vec<u8>>,
}

impl Members {
    /// The members of a directory now.
    pub(crate) fn snapshot(&self, directory: &Inode) -> Snapshot {
        let state = self.state();
        let Some(&number) = state.numbers.get(&directory.identity()) else {
            return Snapshot::default();
        };
        let listed = state.names.list(number);
        let numbered = |(name, id): (Vec<u8>, _)| {
            let known = state.inodes.get(&id).map(|inode| inode.number);
            Some((name, known.or_else(|| Some(state.older.get(&id)?.number))?))
        };
        let names: Vec<(Vec<u8>, u64)> = listed.into_iter().filter_map(numbered).collect();
        let known = names.iter().map(|(name, _)| name.clone()).collect();
        Snapshot { names, known }
    }
}

impl Snapshot {
    /// Whether a real line is one of these, which come later.
    pub(crate) fn has(&self, name: &OsStr) -> bool {
        self.known.contains(name.as_bytes())
    }

    /// Whether a position is among members.
    pub(crate) fn begins_at(from: u64) -> bool {
        from >= FIRST && from < FIRST + u64::from(u32::MAX)
    }

    /// Some of them, from a position on, or from the first where the real ones have ended.
    pub(crate) fn lines(&self, from: u64, is_there: impl Fn(&OsStr) -> bool) -> Vec<Line> {
        const MOST: usize = 256;
        let first = if Snapshot::begins_at(from) { (from - FIRST) as usize } else { 0 };
        let rest = self.names.iter().enumerate().skip(first);
        let present = rest.filter(|(_, (name, _))| is_there(OsStr::from_bytes(name)));
        let line = |(index, (name, number)): (usize, &(Vec<u8>, u64))| Line {
            inode: *number,
            next: FIRST + index as u64 + 1,
            kind: FileType::RegularFile,
            name: OsString::from_vec(name.clone()),
        };
        present.map(line).take(MOST).collect()
    }
}
