//! The files the kernel knows of, and by which names: each stands on a descriptor without access (`O_PATH`), so names may
//! change and go while it stays the same file.
//!
//! Numbers are those of the source, so `ls -i` shows what it shows there. The root has number 1 towards
//! the kernel; a file of another device, or one whose number is taken, gets one from above 2^63.
//! A number is taken as long as the kernel remembers the file; until then the descriptor keeps the
//! source from giving it to another one.

mod names;

use crate::hosting::Opened;
use crate::members::Member;
pub(crate) use names::Name;
use names::Names;
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::fs::{AtFlags, FileType, Mode, OFlags, Stat};
use rustix::io::Errno;
use rustix::process::{Resource, getrlimit};
use std::collections::HashMap;
use std::ffi::{CString, OsStr};
use std::os::fd::AsRawFd;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::SyncSender;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, RwLock};

/// What a call came to.
pub(crate) type Answer<T> = Result<T, Errno>;

pub(crate) const ROOT: u64 = 1;
const SPARE: u64 = 1 << 63;

/// A file of the source.
pub(crate) struct Inode {
    fd: OwnedFd,
    identity: Mutex<Identity>,
    /// Its number towards the kernel.
    pub(crate) number: u64,
    lookups: AtomicU64,
    /// When the kernel last asked for it by a name, counted in such requests.
    asked: AtomicU64,
    opened: Mutex<Opened>,
    /// What makes it a member of a container, where it is or was one.
    pub(crate) member: Option<Member>,
}

/// A file, as the system tells one from another.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Identity {
    device: u64,
    inode: u64,
}

impl Identity {
    pub(crate) fn of(stat: &Stat) -> Identity {
        Identity { device: stat.st_dev, inode: stat.st_ino }
    }
}

impl Inode {
    fn new(fd: OwnedFd, identity: Identity, number: u64) -> Inode {
        let opened = Mutex::new(Opened::default());
        let identity = Mutex::new(identity);
        let lookups = AtomicU64::new(1);
        Inode { fd, identity, number, lookups, asked: AtomicU64::new(0), opened, member: None }
    }

    /// A member's.
    pub(crate) fn of_member(fd: OwnedFd, identity: Identity, number: u64, member: Member) -> Inode {
        let lookups = AtomicU64::new(0);
        Inode { member: Some(member), lookups, ..Inode::new(fd, identity, number) }
    }

    /// Which file it is.
    pub(crate) fn identity(&self) -> Identity {
        *self.identity.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A path that leads to this file and no other, whatever its names are.
    pub(crate) fn path(&self) -> String {
        format!("/proc/self/fd/{}", self.fd.as_raw_fd())
    }

    /// How its descriptions are served, while somebody has it open.
    pub(crate) fn opened(&self) -> MutexGuard<'_, Opened> {
        // A handler that panicked has given its file up before it let go.
        self.opened.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn stat(&self) -> Answer<Stat> {
        let mut stat = rustix::fs::fstat(&self.fd)?;
        if let Some(member) = &self.member {
            stat.st_ino = self.number;
            member.shows(&mut stat);
        }
        Ok(stat)
    }

    /// Opens it with access to its data.
    pub(crate) fn open(&self, flags: OFlags) -> Answer<OwnedFd> {
        rustix::fs::open(self.path(), flags | OFlags::CLOEXEC, Mode::empty())
    }

    /// Where it is now, as the system tells it.
    pub(crate) fn place(&self) -> Answer<String> {
        Ok(self.place_bytes()?.to_string_lossy().into_owned())
    }

    /// The same byte for byte.
    pub(crate) fn place_bytes(&self) -> Answer<CString> {
        rustix::fs::readlink(self.path(), Vec::new())
    }
}

impl AsFd for Inode {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

/// All of them.
pub(crate) struct Tree {
    known: RwLock<Known>,
    names: Mutex<Names>,
    device: u64,
    requests: AtomicU64,
    /// Who is told that there are more than `most`.
    crowded: OnceLock<SyncSender<()>>,
    most: usize,
}

struct Known {
    by_number: HashMap<u64, Arc<Inode>>,
    by_identity: HashMap<Identity, u64>,
    next_spare: u64,
}

impl Tree {
    /// The tree below a directory.
    pub(crate) fn new(source: &Path) -> Answer<Tree> {
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let fd = rustix::fs::open(source, flags, Mode::empty())?;
        let identity = Identity::of(&rustix::fs::fstat(&fd)?);
        let root = Inode::new(fd, identity, ROOT);
        let known = Known {
            by_number: HashMap::from([(ROOT, Arc::new(root))]),
            by_identity: HashMap::from([(identity, ROOT)]),
            next_spare: SPARE,
        };
        Ok(Tree {
            known: RwLock::new(known),
            names: Mutex::default(),
            device: identity.device,
            requests: AtomicU64::new(0),
            crowded: OnceLock::new(),
            most: descriptors() / 4,
        })
    }

    /// From now on `crowded` is told whenever the kernel remembers more than a quarter of the descriptors
    /// this process may have.
    pub(crate) fn tell(&self, crowded: SyncSender<()>) {
        let _ = self.crowded.set(crowded);
    }

    /// What the kernel had better forget, the longest not asked for first: names of files that nobody has
    /// open, until it remembers half of what it may. No directories: a process may be in one, or use one
    /// that it has opened.
    pub(crate) fn forgettable(&self) -> Vec<Name> {
        let mut known = self.all();
        let many = known.len().saturating_sub(self.most / 2);
        // Requests go on meanwhile: each is looked at once, or there would be no order.
        known.sort_by_cached_key(|inode| inode.asked.load(Ordering::Relaxed));
        let is_idle = |inode: &Inode| inode.member.is_none() && inode.opened().count == 0;
        let idle = known.into_iter().take(many).filter(|inode| is_idle(inode));
        idle.flat_map(|inode| self.names_of(&inode, 0)).collect()
    }

    /// The names of a file that is no directory, first those by which that thread has come.
    pub(crate) fn names_of(&self, inode: &Inode, thread: u32) -> Vec<Name> {
        self.names().of(inode.number, thread)
    }

    /// The last name of a file that has lost all.
    pub(crate) fn last_name_of(&self, inode: &Inode) -> Option<Name> {
        self.names().last(inode.number)
    }

    /// How often names have been made to lead elsewhere so far: for [`Tree::came`].
    pub(crate) fn changes(&self) -> u64 {
        self.names().changes
    }

    /// A thread has come to a file by a name, which it looked up after there had been so many changes.
    pub(crate) fn came(
        &self,
        (parent, name): (&Inode, &OsStr),
        (inode, stat): (&Inode, &Stat),
        (thread, changes): (u32, u64),
    ) {
        if FileType::from_raw_mode(stat.st_mode).is_dir() {
            return;
        }
        let mut names = self.names();
        // What was found may have been moved away before it is noted here.
        let is_there = || {
            let found = rustix::fs::statat(parent, name, AtFlags::SYMLINK_NOFOLLOW);
            found.is_ok_and(|found| Identity::of(&found) == inode.identity())
        };
        if names.changes == changes || is_there() {
            names.came(Name::new(parent.number, name), inode.number, thread);
        }
    }

    /// A name leads nowhere.
    pub(crate) fn went(&self, parent: &Inode, name: &OsStr) {
        let mut names = self.names();
        names.changes += 1;
        names.went(&Name::new(parent.number, name));
    }

    /// A name is another one now, or both have changed places.
    pub(crate) fn moved(
        &self,
        (parent, name): (&Inode, &OsStr),
        (new_parent, new_name): (&Inode, &OsStr),
        is_exchange: bool,
    ) {
        let mut names = self.names();
        names.changes += 1;
        let (from, to) = (Name::new(parent.number, name), Name::new(new_parent.number, new_name));
        match is_exchange {
            true => names.exchanged(&from, &to),
            false => names.moved(&from, &to),
        }
    }

    fn names(&self) -> MutexGuard<'_, Names> {
        self.names.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn read(&self) -> std::sync::RwLockReadGuard<'_, Known> {
        self.known.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self) -> std::sync::RwLockWriteGuard<'_, Known> {
        self.known.write().unwrap_or_else(PoisonError::into_inner)
    }

    /// The file the kernel calls by that number.
    pub(crate) fn get(&self, number: u64) -> Answer<Arc<Inode>> {
        self.read().by_number.get(&number).cloned().ok_or(Errno::STALE)
    }

    /// The file of a name, if the kernel knows it already.
    pub(crate) fn known(&self, parent: &Inode, name: &std::ffi::OsStr) -> Option<Arc<Inode>> {
        let flags = rustix::fs::AtFlags::SYMLINK_NOFOLLOW;
        let stat = rustix::fs::statat(parent, name, flags).ok()?;
        let known = self.read();
        let number = known.by_identity.get(&Identity::of(&stat))?;
        known.by_number.get(number).cloned()
    }

    /// The file a descriptor without access stands for, remembered once more for the kernel.
    pub(crate) fn remember(&self, fd: OwnedFd) -> Answer<(Arc<Inode>, Stat)> {
        let stat = rustix::fs::fstat(&fd)?;
        let identity = Identity::of(&stat);
        let shown = |inode: &Inode, stat: Stat| match inode.member {
            Some(_) => inode.stat(),
            None => Ok(stat),
        };
        let now = self.requests.fetch_add(1, Ordering::Relaxed);
        let again = |known: &Known| {
            let inode = known.by_number.get(known.by_identity.get(&identity)?)?;
            inode.lookups.fetch_add(1, Ordering::Relaxed);
            inode.asked.store(now, Ordering::Relaxed);
            Some(inode.clone())
        };
        let found = again(&self.read());
        if let Some(inode) = found {
            return shown(&inode, stat).map(|stat| (inode, stat));
        }
        let mut known = self.write();
        if let Some(inode) = again(&known) {
            return shown(&inode, stat).map(|stat| (inode, stat));
        }
        let number = match identity {
            Identity { device, inode }
                if device == self.device
                    && inode > ROOT
                    && inode < SPARE
                    && !known.by_number.contains_key(&inode) =>
            {
                inode
            }
            _ => {
                known.next_spare += 1;
                known.next_spare
            }
        };
        let inode = Arc::new(Inode::new(fd, identity, number));
        inode.asked.store(now, Ordering::Relaxed);
        known.by_number.insert(number, inode.clone());
        known.by_identity.insert(identity, number);
        if known.by_number.len() > self.most
            && let Some(crowded) = self.crowded.get()
        {
            // Whoever has been told and not come yet will see this one as well.
            let _ = crowded.try_send(());
        }
        Ok((inode, stat))
    }

    /// The kernel has forgotten a file as often as that; which one, if it does not know it any more.
    pub(crate) fn forget(&self, number: u64, times: u64) -> Option<Arc<Inode>> {
        if number == ROOT {
            return None;
        }
        let mut known = self.write();
        let inode = known.by_number.get(&number)?.clone();
        let left = inode.lookups.load(Ordering::Relaxed).saturating_sub(times);
        inode.lookups.store(left, Ordering::Relaxed);
        if left == 0 {
            let identity = inode.identity();
            known.by_number.remove(&number);
            if known.by_identity.get(&identity) == Some(&number) {
                known.by_identity.remove(&identity);
            }
            self.names().forgotten(number);
        }
        (left == 0).then_some(inode)
    }

    /// A number for a file that the kernel may hear of later.
    pub(crate) fn reserve(&self) -> u64 {
        let mut known = self.write();
        known.next_spare += 1;
        known.next_spare
    }

    /// A file that lies in memory, remembered once for the kernel.
    pub(crate) fn begin(&self, fd: OwnedFd, member: Member) -> Answer<Arc<Inode>> {
        let identity = Identity::of(&rustix::fs::fstat(&fd)?);
        let inode = Arc::new(Inode::of_member(fd, identity, self.reserve(), member));
        self.again(&inode);
        Ok(inode)
    }

    /// The same remembered once more, whether the kernel had forgotten it or not.
    pub(crate) fn again(&self, inode: &Arc<Inode>) {
        let mut known = self.write();
        inode.lookups.fetch_add(1, Ordering::Relaxed);
        known.by_number.insert(inode.number, inode.clone());
    }

    /// From now on it is the file that this descriptor without access stands for.
    pub(crate) fn lead(&self, inode: &Arc<Inode>, to: &OwnedFd) -> Answer<()> {
        let identity = Identity::of(&rustix::fs::fstat(to)?);
        let mut known = self.write();
        let replaced = iolab_host::replace(inode.fd.as_fd(), to.as_fd());
        replaced.map_err(|error| Errno::from_io_error(&error).unwrap_or(Errno::IO))?;
        *inode.identity.lock().unwrap_or_else(PoisonError::into_inner) = identity;
        if known.by_number.contains_key(&inode.number) {
            known.by_identity.insert(identity, inode.number);
        }
        Ok(())
    }

    /// Every file that is known now.
    pub(crate) fn all(&self) -> Vec<Arc<Inode>> {
        self.read().by_number.values().cloned().collect()
    }
}

/// How many descriptors this process may have.
pub(crate) fn descriptors() -> usize {
    let most = getrlimit(Resource::Nofile).maximum.unwrap_or(u64::MAX);
    usize::try_from(most).unwrap_or(usize::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lookup(tree: &Tree, place: &Path) -> Arc<Inode> {
        let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let remembered = tree.remember(rustix::fs::open(place, flags, Mode::empty()).unwrap());
        let (inode, stat) = remembered.unwrap();
        let parent = rustix::fs::stat(place.parent().unwrap()).unwrap();
        let known = tree.read().by_identity.get(&Identity::of(&parent)).copied();
        if let Some(parent) = known.map(|parent| tree.get(parent).unwrap()) {
            tree.came((&parent, place.file_name().unwrap()), (&inode, &stat), (0, tree.changes()));
        }
        inode
    }

    #[test]
    fn two_names_of_one_file_are_one_inode_until_it_is_forgotten_twice() {
        let place = tempfile::tempdir().unwrap();
        let (one, two) = (place.path().join("one"), place.path().join("two"));
        std::fs::write(&one, "x").unwrap();
        std::fs::hard_link(&one, &two).unwrap();
        let tree = Tree::new(place.path()).unwrap();
        let number = lookup(&tree, &one).number;
        assert_eq!(lookup(&tree, &two).number, number);
        tree.forget(number, 1);
        assert!(tree.get(number).is_ok());
        tree.forget(number, 1);
        assert_eq!(tree.get(number).err(), Some(Errno::STALE));
        assert_eq!(tree.read().by_identity.len(), 1);
    }

    #[test]
    fn a_removed_file_stays_itself() {
        let place = tempfile::tempdir().unwrap();
        let one = place.path().join("one");
        std::fs::write(&one, "x").unwrap();
        let tree = Tree::new(place.path()).unwrap();
        let inode = lookup(&tree, &one);
        std::fs::remove_file(&one).unwrap();
        std::fs::write(&one, "another").unwrap();
        assert_ne!(lookup(&tree, &one).number, inode.number);
        assert_eq!(inode.stat().unwrap().st_size, 1);
    }

    #[test]
    fn the_kernel_is_to_forget_idle_files_longest_not_asked_for_first() {
        let place = tempfile::tempdir().unwrap();
        let inside = place.path().join("inside");
        std::fs::create_dir(&inside).unwrap();
        let mut tree = Tree::new(place.path()).unwrap();
        tree.most = 6;
        let (teller, told) = std::sync::mpsc::sync_channel(1);
        tree.tell(teller);
        let directory = lookup(&tree, &inside).number;
        let names = ["a", "b", "c", "d", "e"];
        for name in names {
            std::fs::write(inside.join(name), name).unwrap();
            assert!(told.try_recv().is_err(), "not crowded before {name}");
            lookup(&tree, &inside.join(name));
        }
        assert!(told.try_recv().is_ok(), "seven with both directories");
        lookup(&tree, &inside.join("b")).opened().count += 1;
        lookup(&tree, &inside.join("a"));
        std::fs::remove_file(inside.join("d")).unwrap();
        let forgettable = tree.forgettable();
        // Of root, inside, c and d, which were not asked for since, these are files, known by name.
        let found: Vec<_> = forgettable.iter().map(|it| (it.parent, it.name.to_str())).collect();
        assert_eq!(found, [(directory, Some("c")), (directory, Some("d"))]);
    }
}
