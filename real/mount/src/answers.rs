//! Answers to the kernel's requests: what a handler came to, as a reply.

use crate::attributes::{attributes, kind, unknown};
use crate::directory::{Line, is_dots};
use crate::file_system::Requests;
use crate::metadata::Extended;
use crate::names::Entry;
use crate::open::Hosted;
use crate::tree::{Answer, Inode};
use fuser::{
    Errno, FileAttr, Generation, ReplyAttr, ReplyDirectoryPlus, ReplyEmpty, ReplyEntry, ReplyXattr,
};
use rustix::fs::Stat;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;

/// How long the kernel may believe that a name leads where it led, and the attributes of what is no
/// regular file. Only changes made beside the mount are seen late.
const TTL: Duration = Duration::from_secs(1);
/// Sizes and times of files change below the kernel's sight: by stacks, and where it passes through. Not those of members,
/// which lie in this process alone.
pub(crate) const NO_TTL: Duration = Duration::ZERO;

/// A handler's answer; one that panics answers EIO.
pub(crate) fn guarded<T>(work: impl FnOnce() -> Answer<T>) -> Result<T, Errno> {
    match catch_unwind(AssertUnwindSafe(work)) {
        Ok(answer) => answer.map_err(|error| Errno::from_i32(error.raw_os_error())),
        Err(_) => Err(Errno::EIO),
    }
}

/// The attributes of a file as this mount shows them.
pub(crate) fn shown(hosted: &Hosted, stat: &Stat, number: u64) -> FileAttr {
    let attributes = attributes(stat, number);
    match hosted.own {
        Some((uid, gid)) => FileAttr { uid, gid, ..attributes },
        None => attributes,
    }
}

fn ttl(stat: &Stat, inode: &Inode) -> Duration {
    let is_member = inode.member.as_ref().is_some_and(|member| !member.is_real());
    if is_member { TTL } else { ttl_of(stat) }
}

fn is_not_directory(stat: &Stat) -> bool {
    !rustix::fs::FileType::from_raw_mode(stat.st_mode).is_dir()
}

fn ttl_of(stat: &Stat) -> Duration {
    let is_file = rustix::fs::FileType::from_raw_mode(stat.st_mode).is_file();
    if is_file { NO_TTL } else { TTL }
}

pub(crate) fn tell_entry(hosted: &Hosted, answer: Result<Entry, Errno>, reply: ReplyEntry) {
    match answer {
        Ok((inode, stat)) => {
            let attributes = shown(hosted, &stat, inode.number);
            // Who tells of calls has to hear by which name of a file each one comes.
            let is_heard = hosted.teller.is_some() && is_not_directory(&stat);
            let name_ttl = if is_heard { NO_TTL } else { TTL };
            reply.entry_with_ttls(&ttl(&stat, &inode), &name_ttl, &attributes, Generation(0));
        }
        Err(error) => reply.error(error),
    }
}

pub(crate) fn tell_attributes(hosted: &Hosted, answer: Result<Entry, Errno>, reply: ReplyAttr) {
    match answer {
        Ok((inode, stat)) => {
            reply.attr(&ttl(&stat, &inode), &shown(hosted, &stat, stat.st_ino));
        }
        Err(error) => reply.error(error),
    }
}

pub(crate) fn tell(answer: Result<(), Errno>, reply: ReplyEmpty) {
    match answer {
        Ok(()) => reply.ok(),
        Err(error) => reply.error(error),
    }
}

pub(crate) fn tell_extended(answer: Result<Extended, Errno>, reply: ReplyXattr) {
    match answer {
        Ok(Extended::Length(length)) => reply.size(length as u32),
        Ok(Extended::Value(value)) => reply.data(&value),
        Err(error) => reply.error(error),
    }
}

impl Requests {
    /// Puts lines with what is known of their files into an answer, as many as fit: how many? An error
    /// behind the first is met again by the next request.
    pub(crate) fn fill(
        &self,
        directory: u64,
        lines: &[Line],
        reply: &mut ReplyDirectoryPlus,
    ) -> Result<usize, Errno> {
        let mut added = 0;
        for line in lines {
            let (attributes, ttl) = match guarded(|| self.0.entry_of(directory, line)) {
                Ok(Some((inode, stat))) => {
                    (shown(&self.0, &stat, inode.number), ttl(&stat, &inode))
                }
                // The kernel takes no more than the name of these.
                Ok(None) => (unknown(line.inode, kind(line.kind)), NO_TTL),
                Err(Errno::ENOENT) => continue,
                Err(_) if added > 0 => break,
                Err(error) => return Err(error),
            };
            let (number, generation) = (attributes.ino, Generation(0));
            if reply.add(number, line.next, &line.name, &ttl, &attributes, generation) {
                if !is_dots(&line.name) {
                    self.0.forget(number.0, 1);
                }
                break;
            }
            added += 1;
        }
        Ok(added)
    }
}
