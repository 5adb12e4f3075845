//! Files in containers that earlier runs have left: members from the beginning, whose bytes come into memory when they are
//! opened, and leave it when nobody has them open any more.

use super::body::Body;
use super::{Member, Members, State};
use crate::tree::{Answer, Identity, Inode, Tree};
use iolab_pack::{Attributes, Contents, Packed};
use iolab_packs::{
    Left, OnDisk, PackError, directory_below, packs_in, split, timestamps, write_all,
};
use iolab_policy::insitu::defer_close::{ContainerId, MemberId, Place};
use rustix::fd::{AsFd, OwnedFd};
use rustix::fs::{
    Dir, FallocateFlags, Gid, MemfdFlags, Mode, OFlags, Stat, Timespec, Timestamps, Uid,
};
use rustix::io::Errno;
use std::collections::{HashMap, HashSet};
use std::path::Path;
use std::sync::Arc;

/// What a member is in the container it was left in.
pub(crate) struct Origin {
    bytes: OnDisk,
    packed: Packed,
    /// What the kernel calls it.
    pub(super) number: u64,
}

/// A directory of the source that has files in containers.
struct Known {
    number: u64,
    /// What lies there by itself.
    real: HashSet<Vec<u8>>,
}

impl Members {
    /// Shows what lies in the containers of the source.
    pub(super) fn read_through(&mut self, tree: &Tree) {
        let mut all = Vec::new();
        for path in packs_in(&self.source) {
            match Left::open(&path, self.is_only_read) {
                Ok(left) => all.push(left),
                Err(error) => eprintln!(
                    "iolab: the files in {} are not seen, it is shown as a file: {error}",
                    path.display()
                ),
            }
        }
        all.sort_by_key(|left| (left.scanned.header.begun_ns, left.scanned.header.run));
        let mut known = HashMap::new();
        let source = self.source.clone();
        for (number, left) in all.iter().enumerate().rev() {
            let state = self.state.get_mut().unwrap_or_else(std::sync::PoisonError::into_inner);
            let told = state.adopt(tree, &source, (ContainerId(number as u32), left), &mut known);
            state.remark(told);
            if let Some(damage) = left.damage() {
                eprintln!("iolab: warning: {damage}");
            }
            self.scratch.push(iolab_packs::scratch_prefix(left.scanned.header.run));
            self.pack_names.extend(left.path().file_name().map(|name| name.to_owned()));
        }
        let state = self.state.get_mut().unwrap_or_else(std::sync::PoisonError::into_inner);
        state.makes_directories = false;
        state.containers.take(all);
    }

    /// The inode of a member that nobody has asked for yet.
    pub(super) fn bring(&self, state: &mut State, id: MemberId) -> Answer<Arc<Inode>> {
        if let Some(inode) = state.inodes.get(&id) {
            return Ok(inode.clone());
        }
        let origin = state.older.get(&id).cloned().ok_or(Errno::NOENT)?;
        let fd = memory(&origin.packed).inspect_err(|&error| {
            if error == Errno::MFILE {
                state.say(format!(
                    "defer-close: the limit of descriptors (ulimit -Hn, {}) is for fewer files of \
                     containers than programs ask for; raise it, or `iolab unpack`",
                    super::descriptors()
                ));
            }
        })?;
        let number = origin.number;
        let identity = Identity::of(&rustix::fs::fstat(&fd)?);
        let inode = Inode::of_member(fd, identity, number, Member::of_older(id, origin));
        let inode = Arc::new(inode);
        state.inodes.insert(id, inode.clone());
        Ok(inode)
    }

    /// The kernel has forgotten a file: as long as it is in its container as it is in memory, memory need not have it.
    pub(crate) fn forgotten(&self, tree: &Tree, inode: &Inode) {
        let Some(member) = inode.member.as_ref().filter(|it| it.is_unchanged()) else { return };
        let mut state = self.state();
        if tree.get(inode.number).is_err() && !state.names.is_dirty(member.id) {
            state.inodes.remove(&member.id);
        }
    }

    /// A member is about to be changed: its container must let it.
    pub(super) fn may_change(&self, inode: &Inode) -> Answer<()> {
        let Some(member) = inode.member.as_ref().filter(|it| it.is_unchanged()) else {
            return Ok(());
        };
        let mut state = self.state();
        match state.names.container(member.id) {
            Some(container) => state.container(container).map(|_| ()),
            // It has no name any more, so nothing is written down.
            None => Ok(()),
        }
    }

    /// Nobody has a file open any more: its bytes are where they came from.
    pub(crate) fn rest(&self, inode: &Inode) {
        let Some(member) = inode.member.as_ref().filter(|it| it.is_unchanged()) else { return };
        let Some(mut body) = member.body().filter(|body| !body.is_absent) else { return };
        let Ok(stat) = inode.stat() else { return };
        if inode.opened().count > 0 {
            return;
        }
        let holes = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
        let size = stat.st_size as u64;
        if size > 0 && rustix::fs::fallocate(inode, holes, 0, size).is_ok() {
            let _ = rustix::fs::futimens(inode, &times(&stat));
            body.is_absent = true;
            self.recount(member, &mut body, 0);
        }
    }

    /// The bytes of a member are in memory from now on.
    pub(super) fn load(&self, member: &Member, body: &mut Body, inode: &Inode) -> Answer<()> {
        let Some(origin) = member.origin.as_ref().filter(|_| body.is_absent) else { return Ok(()) };
        let stat = inode.stat()?;
        let read = origin.bytes.read(&origin.packed, |offset, bytes| -> Result<(), PackError> {
            write_all(inode, offset, bytes).map_err(PackError::from)
        });
        read.map_err(|error| match error {
            PackError::System(error) => Errno::from_io_error(&error).unwrap_or(Errno::IO),
            _ => Errno::IO,
        })?;
        rustix::fs::futimens(inode, &times(&stat))?;
        body.is_absent = false;
        self.recount(member, body, stat.st_size as u64);
        Ok(())
    }
}

impl State {
    /// Takes the files of a container that was left as members, and says what came of it.
    fn adopt(
        &mut self,
        tree: &Tree,
        source: &Path,
        (id, left): (ContainerId, &Left),
        known: &mut HashMap<Vec<u8>, Option<Known>>,
    ) -> String {
        let contents = left.contents();
        let (mut seen, mut hidden, mut astray) = (0_u64, 0_u64, 0_u64);
        for (path, packed) in &contents.files {
            let (directory, name) = split(path);
            let found = match known.get(directory) {
                Some(found) => found,
                None => {
                    let found = self.directory(tree, source, directory, contents);
                    known.entry(directory.to_vec()).or_insert(found)
                }
            };
            let Some(Known { number, real }) = found else {
                astray += 1;
                continue;
            };
            let place = Place { directory: *number, name: name.to_vec() };
            if real.contains(name) {
                self.names.hide(place, id);
                hidden += 1;
            } else if let Some(member) = self.names.adopt(place, id) {
                let packed = Packed { attributes: believed(left, packed), ..packed.clone() };
                let (bytes, number) = (left.bytes(), tree.reserve());
                self.older.insert(member, Arc::new(Origin { bytes, packed, number }));
                seen += 1;
            } else {
                hidden += 1;
            }
            let changed_ns = contents.directories.get(directory).and_then(|it| it.changed_ns);
            if let Some(directory) = self.directories.get_mut(number) {
                directory.changed_ns = directory.changed_ns.max(changed_ns);
            }
        }
        let place = left.path().display();
        let mut words = format!("{seen} files in {place} are seen as the files they are");
        if hidden > 0 {
            words += &format!("; {hidden} are not, others have their names");
        }
        if astray > 0 {
            words += &format!(
                "; {astray} are not, their directories are not there or cannot be entered \
                 (`iolab unpack {place}`)"
            );
        }
        words
    }

    /// A directory of a container's files, if it is there or can be made.
    fn directory(
        &mut self,
        tree: &Tree,
        source: &Path,
        path: &[u8],
        contents: &Contents,
    ) -> Option<Known> {
        let root = rustix::fs::open(source, OFlags::PATH | OFlags::CLOEXEC, Mode::empty()).ok()?;
        let made = self.makes_directories.then_some(contents);
        let fd = directory_below(&root, path, made).ok()?;
        let mut real = HashSet::new();
        for line in Dir::read_from(&fd).ok()? {
            real.insert(line.ok()?.file_name().to_bytes().to_vec());
        }
        let bare = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let bare = rustix::fs::openat(&fd, ".", bare, Mode::empty()).ok()?;
        // It stays known as long as the mount, as it has members.
        let (inode, _) = tree.remember(bare).ok()?;
        Some(Known { number: self.number(&inode), real })
    }
}

/// What a container says of a file, as far as its owner may: nobody plants a file of somebody else's.
fn believed(left: &Left, packed: &Packed) -> Attributes {
    let ((user, group), mut attributes) = (left.owner, packed.attributes);
    if user != 0 {
        if attributes.user != user {
            (attributes.user, attributes.mode) = (user, attributes.mode & !0o6000);
        }
        if attributes.group != group {
            (attributes.group, attributes.mode) = (group, attributes.mode & !0o2000);
        }
    }
    attributes
}

/// Memory that looks as the file does; its bytes come later.
fn memory(packed: &Packed) -> Answer<OwnedFd> {
    let fd = rustix::fs::memfd_create("iolab-member", MemfdFlags::CLOEXEC)?;
    let attributes = &packed.attributes;
    let owner = (Uid::from_raw(attributes.user), Gid::from_raw(attributes.group));
    // Where this server may give nothing away, all files show as its user's.
    let _ = rustix::fs::fchown(&fd, Some(owner.0), Some(owner.1));
    rustix::fs::fchmod(&fd, Mode::from_raw_mode(attributes.mode))?;
    rustix::fs::ftruncate(&fd, packed.size)?;
    rustix::fs::futimens(fd.as_fd(), &timestamps(attributes.accessed, attributes.modified))?;
    Ok(fd)
}

pub(super) fn times(stat: &Stat) -> Timestamps {
    let timespec = |tv_sec, nanoseconds: u64| Timespec { tv_sec, tv_nsec: nanoseconds as i64 };
    Timestamps {
        last_access: timespec(stat.st_atime, stat.st_atime_nsec),
        last_modification: timespec(stat.st_mtime, stat.st_mtime_nsec),
    }
}
