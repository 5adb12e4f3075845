//! Names: looking them up, making, moving and removing them.

use crate::attributes::device;
use crate::caller::Caller;
use crate::open::Hosted;
use crate::rules;
use crate::tree::{Answer, Inode};
use fuser::Request;
use iolab_trace::Function;
use rustix::fs::{AtFlags, CWD, FileType, Mode, OFlags, RenameFlags, Stat};
use rustix::io::Errno;
use std::ffi::OsStr;
use std::path::Path;
use std::sync::Arc;

/// A file and what is known of it.
pub(crate) type Entry = (Arc<Inode>, Stat);

/// What is to be made.
pub(crate) enum New<'a> {
    /// A directory.
    Directory,
    /// A symbolic link to there.
    Link(&'a Path),
    /// A file of any other type, by mode and device number.
    Node(u32),
}

impl Hosted {
    /// The file of a name.
    pub(crate) fn lookup(&self, parent: u64, name: &OsStr, thread: u32) -> Answer<Entry> {
        self.entry(&*self.tree.get(parent)?, name, thread)
    }

    fn entry(&self, parent: &Inode, name: &OsStr, thread: u32) -> Answer<Entry> {
        let changes = self.tree.changes();
        let found = self.found(parent, name);
        match &found {
            Ok((inode, stat)) => self.tree.came((parent, name), (inode, stat), (thread, changes)),
            Err(Errno::NOENT) => self.tree.went(parent, name),
            Err(_) => {}
        }
        found
    }

    fn found(&self, parent: &Inode, name: &OsStr) -> Answer<Entry> {
        if let Some(members) = &self.members {
            if let Some(inode) = members.find(&self.tree, parent, name)? {
                let stat = inode.stat()?;
                return Ok((inode, stat));
            }
            if members.is_hidden(parent, name) {
                return Err(Errno::NOENT);
            }
        }
        let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let fd = rustix::fs::openat(parent, name, flags, Mode::empty())?;
        let (inode, stat) = self.tree.remember(fd)?;
        // The kernel learns the size with the name.
        match inode.opened().staged() {
            Some(staged) => staged.flush(),
            None => return Ok((inode.clone(), self.with_members(&inode, stat))),
        }
        let stat = inode.stat()?;
        Ok((inode, stat))
    }

    /// What is known of a directory, with what was changed in it by members.
    pub(crate) fn with_members(&self, inode: &Inode, mut stat: Stat) -> Stat {
        if let Some(members) = &self.members
            && FileType::from_raw_mode(stat.st_mode).is_dir()
        {
            members.show(inode, &mut stat);
        }
        stat
    }

    /// Refuses a name that leads to a member already, or to a container that is not seen.
    fn is_free(&self, parent: &Inode, name: &OsStr) -> Answer<()> {
        match self.members.as_ref().is_some_and(|members| members.has(parent, name)) {
            true => Err(Errno::EXIST),
            false => self.is_ours(parent, name),
        }
    }

    /// Nobody makes a file in the place of a container that is not seen.
    pub(crate) fn is_ours(&self, parent: &Inode, name: &OsStr) -> Answer<()> {
        match self.members.as_ref().is_some_and(|members| members.is_hidden(parent, name)) {
            true => Err(Errno::PERM),
            false => Ok(()),
        }
    }

    /// The file is asked for what only a real one has: a member becomes one.
    pub(crate) fn materialise(&self, inode: &Inode) -> Answer<()> {
        match &self.members {
            Some(members) => members.materialise(self, inode),
            None => Ok(()),
        }
    }

    /// Makes something for whoever asks.
    pub(crate) fn make(
        &self,
        request: &Request,
        (parent, name): (u64, &OsStr),
        (mode, mask): (u32, u32),
        new: New<'_>,
    ) -> Answer<Entry> {
        let parent = self.tree.get(parent)?;
        self.is_free(&parent, name)?;
        let is_directory = matches!(new, New::Directory);
        {
            let _caller = Caller::of(request, mask);
            let permissions = Mode::from_raw_mode(mode & 0o7777);
            match new {
                New::Directory => rustix::fs::mkdirat(&parent, name, permissions)?,
                New::Link(target) => rustix::fs::symlinkat(target, &parent, name)?,
                New::Node(number) => {
                    let kind = FileType::from_raw_mode(mode);
                    rustix::fs::mknodat(&parent, name, kind, permissions, device(number))?;
                }
            }
        }
        let entry = self.entry(&parent, name, request.pid())?;
        if let Some(members) = self.members.as_ref().filter(|_| is_directory) {
            members.made_directory(&entry.0);
        }
        Ok(entry)
    }

    /// Gives a file another name.
    pub(crate) fn link(
        &self,
        request: &Request,
        number: u64,
        (parent, name): (u64, &OsStr),
    ) -> Answer<Entry> {
        let (inode, parent) = (self.tree.get(number)?, self.tree.get(parent)?);
        self.is_free(&parent, name)?;
        self.materialise(&inode)?;
        rules::before(Function::LINK, Some(&inode), None);
        rustix::fs::linkat(CWD, inode.path(), &parent, name, AtFlags::SYMLINK_FOLLOW)?;
        self.entry(&parent, name, request.pid())
    }

    /// Removes a name.
    pub(crate) fn remove(&self, parent: u64, name: &OsStr, flags: AtFlags) -> Answer<()> {
        let parent = self.tree.get(parent)?;
        self.remove_below(&parent, name, flags)?;
        self.tree.went(&parent, name);
        Ok(())
    }

    fn remove_below(&self, parent: &Arc<Inode>, name: &OsStr, flags: AtFlags) -> Answer<()> {
        if let Some(members) = &self.members {
            let goes_on = match flags.contains(AtFlags::REMOVEDIR) {
                true => members.remove_directory(self, parent, name)?,
                false => members.unlink(self, parent, name)?,
            };
            if !goes_on {
                return Ok(());
            }
        }
        let known = self.tree.known(parent, name);
        rules::before(Function::UNLINK, known.as_deref(), None);
        rustix::fs::unlinkat(parent, name, flags)
    }

    /// Moves a name.
    pub(crate) fn rename(
        &self,
        (parent, name): (u64, &OsStr),
        (new_parent, new_name): (u64, &OsStr),
        flags: u32,
    ) -> Answer<()> {
        let (parent, new_parent) = (self.tree.get(parent)?, self.tree.get(new_parent)?);
        let (from, to) = ((&parent, name), (&new_parent, new_name));
        let flags = RenameFlags::from_bits_retain(flags);
        self.rename_below(from, to, flags)?;
        self.tree.moved((from.0, name), (to.0, new_name), flags.contains(RenameFlags::EXCHANGE));
        Ok(())
    }

    fn rename_below(
        &self,
        (parent, name): (&Arc<Inode>, &OsStr),
        (new_parent, new_name): (&Arc<Inode>, &OsStr),
        flags: RenameFlags,
    ) -> Answer<()> {
        self.is_ours(new_parent, new_name)?;
        if let Some(members) = &self.members
            && !members.rename(self, (parent, name), (new_parent, new_name), flags)?
        {
            return Ok(());
        }
        let moved = self.tree.known(parent, name);
        let replaced = self.tree.known(new_parent, new_name);
        rules::before(Function::RENAME, moved.as_deref(), replaced.as_deref());
        rustix::fs::renameat_with(parent, name, new_parent, new_name, flags)
    }

    /// Where a symbolic link leads.
    pub(crate) fn read_link(&self, number: u64) -> Answer<Vec<u8>> {
        let inode = self.tree.get(number)?;
        Ok(rustix::fs::readlinkat(&*inode, "", Vec::new())?.into_bytes())
    }
}
