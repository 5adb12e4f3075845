//! What is known of files beside their bytes.

use crate::attributes::timespec;
use crate::members::permissions;
use crate::names::Entry;
use crate::open::{Hosted, strip_privileges};
use crate::rules;
use crate::tree::{Answer, Inode, ROOT};
use fuser::{Request, TimeOrNow};
use iolab_trace::Function;
use rustix::fs::{Access, AtFlags, CWD, Gid, Mode, Stat, StatVfs, Timestamps, Uid, XattrFlags};
use std::ffi::OsStr;

/// Attributes to set; absent ones stay.
pub(crate) struct Changes {
    pub(crate) mode: Option<u32>,
    pub(crate) owner: Option<u32>,
    pub(crate) group: Option<u32>,
    pub(crate) size: Option<u64>,
    pub(crate) accessed: Option<TimeOrNow>,
    pub(crate) modified: Option<TimeOrNow>,
}

impl Changes {
    /// The call that asks for them, by a description and by a name.
    pub(crate) fn functions(&self) -> (Function, Function) {
        if self.size.is_some() {
            (Function::FTRUNCATE, Function::TRUNCATE)
        } else if self.mode.is_some() {
            (Function::FCHMOD, Function::CHMOD)
        } else if self.owner.is_some() || self.group.is_some() {
            (Function::FCHOWN, Function::CHOWN)
        } else {
            (Function::FUTIME, Function::UTIMENSAT)
        }
    }
}

impl Hosted {
    /// What `stat` shows, after what is held of the file has gone out.
    pub(crate) fn attributes(&self, number: u64) -> Answer<Entry> {
        let inode = self.tree.get(number)?;
        rules::before(Function::FSTAT, Some(&inode), None);
        let stat = self.with_members(&inode, inode.stat()?);
        Ok((inode, stat))
    }

    /// Whether this server may; asked where the kernel does not check by itself.
    pub(crate) fn access(&self, number: u64, mask: u32) -> Answer<()> {
        let (path, wanted) = (self.tree.get(number)?.path(), Access::from_bits_retain(mask));
        rustix::fs::accessat(CWD, path, wanted, AtFlags::EACCESS)
    }

    /// Sets attributes and shows all.
    pub(crate) fn change(
        &self,
        request: &Request,
        number: u64,
        file: Option<u64>,
        changes: Changes,
    ) -> Answer<Stat> {
        let inode = self.tree.get(number)?;
        rules::before(Function::FCHMOD, Some(&inode), None);
        if let Some(members) = &self.members {
            let makes_long = changes.size.is_some_and(|size| members.is_too_long(size));
            if makes_long {
                members.materialise(self, &inode)?;
            }
            let changed = members.hold(&inode, changes.size.is_some(), || {
                self.change_below(request, number, file, &changes)
            });
            if let Some(stat) = changed? {
                members.attributed(self, &inode)?;
                return Ok(stat);
            }
        }
        self.change_below(request, number, file, &changes)
    }

    fn change_below(
        &self,
        request: &Request,
        number: u64,
        file: Option<u64>,
        changes: &Changes,
    ) -> Answer<Stat> {
        let inode = self.tree.get(number)?;
        let path = inode.path();
        if let Some(mode) = changes.mode {
            rustix::fs::chmodat(CWD, &path, Mode::from_raw_mode(mode & 0o7777), AtFlags::empty())?;
        }
        if changes.owner.is_some() || changes.group.is_some() {
            let (owner, group) =
                (changes.owner.map(Uid::from_raw), changes.group.map(Gid::from_raw));
            rustix::fs::chownat(&*inode, "", owner, group, AtFlags::EMPTY_PATH)?;
        }
        if let Some(size) = changes.size {
            if request.uid() != 0 {
                strip_privileges(&inode);
            }
            self.truncate(number, file, size)?;
        }
        if changes.accessed.is_some() || changes.modified.is_some() {
            let times = Timestamps {
                last_access: timespec(changes.accessed),
                last_modification: timespec(changes.modified),
            };
            rustix::fs::utimensat(CWD, &path, &times, AtFlags::empty())?;
            // A member's body is held here; only directories have such times.
            if let Some(members) = &self.members
                && inode.member.is_none()
                && changes.modified.is_some()
            {
                members.settled(&inode);
            }
        }
        Ok(self.with_members(&inode, inode.stat()?))
    }

    /// The file system's own figures.
    pub(crate) fn figures(&self, number: u64) -> Answer<StatVfs> {
        let inode = self.tree.get(number)?;
        match inode.member {
            // Memory's own figures are not those of the source.
            Some(_) => rustix::fs::fstatvfs(&*self.tree.get(ROOT)?),
            None => rustix::fs::fstatvfs(&*inode),
        }
    }

    /// An extended attribute; `None` of room asks for its length.
    pub(crate) fn extended(&self, number: u64, name: &OsStr, room: usize) -> Answer<Extended> {
        let path = self.tree.get(number)?.path();
        if room == 0 {
            let length = rustix::fs::getxattr(path, name, &mut [0_u8; 0][..])?;
            return Ok(Extended::Length(length));
        }
        let mut value = vec![0; room];
        let length = rustix::fs::getxattr(path, name, &mut value[..])?;
        value.truncate(length);
        Ok(Extended::Value(value))
    }

    /// The names of all.
    pub(crate) fn extended_names(&self, number: u64, room: usize) -> Answer<Extended> {
        let path = self.tree.get(number)?.path();
        if room == 0 {
            return Ok(Extended::Length(rustix::fs::listxattr(path, &mut [0_u8; 0][..])?));
        }
        let mut names = vec![0; room];
        let length = rustix::fs::listxattr(path, &mut names[..])?;
        names.truncate(length);
        Ok(Extended::Value(names))
    }

    /// Sets one.
    pub(crate) fn extend(&self, number: u64, name: &OsStr, value: &[u8], flags: i32) -> Answer<()> {
        let inode = self.tree.get(number)?;
        if flags == 0 && self.permitted(&inode, name, value)? {
            return Ok(());
        }
        self.materialise(&inode)?;
        rules::before(Function::FCHMOD, Some(&inode), None);
        let flags = XattrFlags::from_bits_retain(flags as u32);
        rustix::fs::setxattr(inode.path(), name, value, flags)?;
        if let Some(members) = &self.members {
            members.extended(&inode);
        }
        Ok(())
    }

    /// Sets an access list of a member that says no more than its mode, as the system does: the mode.
    fn permitted(&self, inode: &Inode, name: &OsStr, value: &[u8]) -> Answer<bool> {
        let (Some(members), Some(permissions)) = (&self.members, permissions(name, value)) else {
            return Ok(false);
        };
        let held = members.hold(inode, false, || {
            let mode = inode.stat()?.st_mode & 0o7777;
            // Whether that bit stays depends on who asks.
            if mode & 0o2000 != 0 {
                return Ok(false);
            }
            let mode = Mode::from_raw_mode(mode & !0o777 | permissions);
            rustix::fs::chmodat(CWD, inode.path(), mode, AtFlags::empty())?;
            Ok(true)
        })?;
        if held == Some(true) {
            members.attributed(self, inode)?;
        }
        Ok(held == Some(true))
    }

    /// Removes one.
    pub(crate) fn shorten(&self, number: u64, name: &OsStr) -> Answer<()> {
        let inode = self.tree.get(number)?;
        self.materialise(&inode)?;
        rustix::fs::removexattr(inode.path(), name)
    }
}

/// An extended attribute, or how long it is.
pub(crate) enum Extended {
    /// Bytes it takes.
    Length(usize),
    /// These.
    Value(Vec<u8>),
}
