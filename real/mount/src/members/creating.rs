//! Making a member: which new files begin as one.

use super::{Member, Members, State};
use crate::tree::{Answer, Inode, Tree};
use fuser::Request;
use iolab_policy::insitu::defer_close::Place;
use rustix::fd::OwnedFd;
use rustix::fs::{Gid, MemfdFlags, Mode, OFlags, Uid};
use rustix::io::Errno;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// What is asked for.
pub(crate) struct Wanted<'a> {
    pub(crate) parent: &'a Arc<Inode>,
    pub(crate) name: &'a OsStr,
    /// What programs call it.
    pub(crate) seen: &'a [String],
    /// Permissions, with the file mode mask taken away.
    pub(crate) mode: u32,
    pub(crate) flags: OFlags,
    /// It belongs to the server's own user, whoever asks.
    pub(crate) is_servers: bool,
}

impl Members {
    /// Makes a member of that name, where there is nothing, or says that the file is to be made for real.
    pub(crate) fn create(
        &self,
        tree: &Tree,
        request: &Request,
        wanted: &Wanted<'_>,
    ) -> Answer<Option<Arc<Inode>>> {
        if !wanted.seen.iter().any(|name| self.selection.chooses(name)) || !self.takes(wanted) {
            return Ok(None);
        }
        let Ok(fd) = memory(request, wanted) else { return Ok(None) };
        let mut state = self.state();
        let directory = state.number(wanted.parent);
        let name = wanted.name.as_bytes().to_vec();
        let id = state.names.create(Place { directory, name });
        let inode = tree.begin(fd, Member::new(id))?;
        state.inodes.insert(id, inode.clone());
        state.touch(directory);
        state.created += 1;
        Ok(Some(inode))
    }

    /// Whether the directory is one whose names are the run's, and there is room.
    fn takes(&self, wanted: &Wanted<'_>) -> bool {
        let special = OFlags::DIRECT | OFlags::SYNC | OFlags::DSYNC;
        let mut state = self.state();
        if wanted.flags.intersects(special) || state.has_default_access(wanted.parent) {
            return false;
        }
        if !self.settings.is_exclusive && !state.is_own(wanted.parent) {
            let place = wanted.parent.place().unwrap_or_default();
            state.remark(format!(
                "defer-close: {place} was not made by this run, so its files are made at once; \
                 exclusive=yes keeps them, if nobody else makes files there"
            ));
            return false;
        }
        if self.bytes.load(Ordering::Relaxed) >= self.settings.memory_bytes {
            let bytes = iolab_vocab::format_bytes(self.settings.memory_bytes);
            state.remark(format!(
                "defer-close: files take {bytes} of memory, so more are made at once; memory=SIZE \
                 is for more"
            ));
            return false;
        }
        if state.inodes.len() >= self.most {
            state.remark(format!(
                "defer-close: the limit of descriptors (ulimit -Hn) is for {} files; more are made at \
                 once",
                self.most
            ));
            return false;
        }
        // That nothing has the name the kernel has asked just before, and keeps the directory to itself since then.
        true
    }
}

impl State {
    /// Whether new files of a directory get an access list from it, which memory has not.
    fn has_default_access(&mut self, parent: &Inode) -> bool {
        let identity = parent.identity();
        if self.without_access.contains(&identity) {
            return false;
        }
        let name = "system.posix_acl_default";
        let has_list = rustix::fs::getxattr(parent.path(), name, &mut [0_u8; 0][..]).is_ok();
        if !has_list {
            self.without_access.insert(identity);
        }
        has_list
    }
}

/// Memory that looks as the file would.
fn memory(request: &Request, wanted: &Wanted<'_>) -> Answer<OwnedFd> {
    let fd = rustix::fs::memfd_create("iolab-member", MemfdFlags::CLOEXEC)?;
    let parent = wanted.parent.stat()?;
    let is_inherited = parent.st_mode & 0o2000 != 0;
    let mut mode = wanted.mode & 0o7777;
    if wanted.is_servers {
        // Another group is given by who may, which this user may not.
        if is_inherited && parent.st_gid != rustix::process::getegid().as_raw() {
            return Err(Errno::PERM);
        }
    } else {
        let group = if is_inherited { parent.st_gid } else { request.gid() };
        rustix::fs::fchown(&fd, Some(Uid::from_raw(request.uid())), Some(Gid::from_raw(group)))?;
        if is_inherited && request.uid() != 0 && request.gid() != parent.st_gid {
            mode &= !0o2000;
        }
    }
    rustix::fs::fchmod(&fd, Mode::from_raw_mode(mode))?;
    Ok(fd)
}
