//! Members: small files that lie in memory and in a container instead of the source (strategy `defer-close`).
//!
//! Which names lead to members, and in which order container and source hear of what, decides
//! `iolab_policy::insitu::defer_close::Names`; here is its driver. A member's inode stands on memory (`memfd`), so all
//! that is done with an open file is done as with any other. When it becomes a real file, the descriptors under it
//! are led there, and it stays the same file to programs: number, mode, owner, times, who has it open.
//!
//! Locks are taken in this order: the state of all, a member's body, what is dirty.

mod access_list;
mod body;
mod calls;
mod containers;
mod creating;
mod ending;
mod listing;
mod older;
mod transfer;

pub(crate) use access_list::permissions;
pub(crate) use body::Member;
pub(crate) use creating::Wanted;
pub use ending::Packed;
pub(crate) use listing::Snapshot;

use crate::session::Source;
use crate::tree::{Answer, Identity, Inode, Tree, descriptors};
use containers::{Container, Containers};
use iolab_pack::Record;
use iolab_packs::{Writer, now_ns, scratch_prefix};
use iolab_policy::insitu::defer_close::{ContainerId, DeferClose, MemberId, Names, Place};
use iolab_policy::insitu::{Selection, StrategySpec};
use older::Origin;
use rustix::fs::Stat;
use rustix::io::Errno;
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The members of a mount.
pub(crate) struct Members {
    settings: DeferClose,
    selection: Selection,
    source: PathBuf,
    run: u64,
    /// Nothing of the source is changed.
    is_only_read: bool,
    /// Containers that programs do not see, and what the names of unfinished files begin with.
    pack_names: HashSet<OsString>,
    scratch: Vec<String>,
    state: Mutex<State>,
    /// Who was written to since the state last heard of it.
    dirty: Mutex<BTreeSet<MemberId>>,
    /// Bytes of members in memory.
    bytes: AtomicU64,
    /// Each takes a descriptor, and so many are spared for them.
    most: usize,
}

/// What is known of all of them.
pub(crate) struct State {
    names: Names,
    containers: Containers,
    inodes: BTreeMap<MemberId, Arc<Inode>>,
    /// What members were that earlier runs have left.
    older: BTreeMap<MemberId, Arc<Origin>>,
    /// Directories of such members that are missing are made.
    makes_directories: bool,
    numbers: HashMap<Identity, u64>,
    directories: BTreeMap<u64, Directory>,
    /// Directories that the run has made.
    own: HashSet<Identity>,
    /// Directories that hand on no access list.
    without_access: HashSet<Identity>,
    said: HashSet<String>,
    /// Nothing is said of what merely passes.
    is_quiet: bool,
    made: u64,
    created: u64,
}

/// A directory that has, or had, members.
struct Directory {
    inode: Arc<Inode>,
    /// When a name of a member in it last changed, in nanoseconds since 1970.
    changed_ns: Option<u64>,
    /// A program has set its times, and has changed no member's name since.
    is_settled: bool,
}

impl Members {
    /// For the files of a source that a strategy chooses, and those that lie in containers there; nothing if there is no
    /// such strategy.
    pub(crate) fn new(
        source: Source<'_>,
        strategies: &[StrategySpec],
        tree: &Tree,
    ) -> Option<Members> {
        let (settings, spec) = strategies.iter().find_map(|spec| Some((spec.deferral()?, spec)))?;
        let writer = Writer::new(source.path, settings.to.as_deref().map(Path::new));
        let state = State {
            names: Names::default(),
            inodes: BTreeMap::new(),
            older: BTreeMap::new(),
            makes_directories: !source.is_read_only,
            numbers: HashMap::new(),
            directories: BTreeMap::new(),
            own: HashSet::new(),
            without_access: HashSet::new(),
            said: HashSet::new(),
            is_quiet: source.is_quiet,
            made: 0,
            created: 0,
            containers: Containers::new(writer),
        };
        let mut members = Members {
            settings,
            selection: spec.selection.clone(),
            source: source.path.to_owned(),
            run: state.containers.own.writer.run(),
            is_only_read: source.is_read_only,
            pack_names: HashSet::from([state.containers.own.writer.name().to_owned()]),
            scratch: vec![scratch_prefix(state.containers.own.writer.run())],
            state: Mutex::new(state),
            dirty: Mutex::default(),
            bytes: AtomicU64::new(0),
            most: descriptors() / 2,
        };
        members.read_through(tree);
        Some(members)
    }

    /// The state, with what was written since.
    fn state(&self) -> MutexGuard<'_, State> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let dirty = std::mem::take(&mut *self.dirty.lock().unwrap_or_else(PoisonError::into_inner));
        dirty.into_iter().for_each(|id| state.names.changed(id));
        state
    }

    fn note_dirty(&self, id: MemberId) {
        self.dirty.lock().unwrap_or_else(PoisonError::into_inner).insert(id);
    }

    /// Whether a name is one of the run's own that programs do not see.
    pub(crate) fn is_hidden(&self, parent: &Inode, name: &OsStr) -> bool {
        let is_root = parent.number == crate::tree::ROOT;
        is_root && self.pack_names.contains(name)
            || self.scratch.iter().any(|it| name.as_bytes().starts_with(it.as_bytes()))
    }

    /// The member of a name, remembered once more for the kernel.
    pub(crate) fn find(
        &self,
        tree: &Tree,
        parent: &Inode,
        name: &OsStr,
    ) -> Answer<Option<Arc<Inode>>> {
        let mut state = self.state();
        let id = state.place(parent, name).and_then(|place| state.names.find(&place));
        let inode = id.map(|id| self.bring(&mut state, id)).transpose()?;
        if let Some(inode) = &inode {
            tree.again(inode);
        }
        Ok(inode)
    }

    /// Where a member is, while it is one and has a name.
    pub(crate) fn place_of(&self, inode: &Inode) -> Option<PathBuf> {
        let member = inode.member.as_ref().filter(|it| !it.is_real())?;
        let state = self.state();
        let place = state.names.place(member.id)?;
        let directory = state.directories.get(&place.directory)?.inode.place_bytes().ok()?;
        let directory = Path::new(OsStr::from_bytes(directory.as_bytes()));
        Some(directory.join(OsStr::from_bytes(&place.name)))
    }

    /// Whether a name leads to a member.
    pub(crate) fn has(&self, parent: &Inode, name: &OsStr) -> bool {
        let state = self.state();
        state.place(parent, name).is_some_and(|place| state.names.find(&place).is_some())
    }

    /// What was changed in a directory shows in its times.
    pub(crate) fn show(&self, inode: &Inode, stat: &mut Stat) {
        let state = self.state();
        let number = state.numbers.get(&inode.identity());
        let directory = number.and_then(|number| state.directories.get(number));
        let Some(changed) = directory.and_then(|it| it.changed_ns) else { return };
        let (seconds, nanoseconds) = ((changed / 1_000_000_000) as i64, changed % 1_000_000_000);
        if (stat.st_mtime, stat.st_mtime_nsec) < (seconds, nanoseconds) {
            (stat.st_mtime, stat.st_mtime_nsec) = (seconds, nanoseconds);
        }
        if (stat.st_ctime, stat.st_ctime_nsec) < (seconds, nanoseconds) {
            (stat.st_ctime, stat.st_ctime_nsec) = (seconds, nanoseconds);
        }
    }

    /// A program has set the times of a directory.
    pub(crate) fn settled(&self, inode: &Inode) {
        let mut state = self.state();
        if let Some(&number) = state.numbers.get(&inode.identity()) {
            self.settle(&mut state, number);
        }
    }

    /// A directory's times are those that the system tells.
    fn settle(&self, state: &mut State, number: u64) {
        let Some(directory) = state.directories.get_mut(&number) else { return };
        directory.is_settled = true;
        if directory.changed_ns.take().is_none() {
            return;
        }
        let directory = directory.inode.clone();
        // Nothing but a time is lost where it cannot be written down.
        let Ok(path) = self.path_of(&directory) else { return };
        for id in state.containers.dated(&path) {
            if let Ok(container) = state.container(id) {
                let _ = container.writer.append(&Record::Settled { path: &path });
            }
        }
    }

    /// An extended attribute of a directory was set, which may be an access list to hand on.
    pub(crate) fn extended(&self, inode: &Inode) {
        self.state().without_access.remove(&inode.identity());
    }

    /// A directory was made by the run.
    pub(crate) fn made_directory(&self, inode: &Inode) {
        self.state().own.insert(inode.identity());
    }

    /// The path of a directory below the source.
    fn path_of(&self, directory: &Inode) -> Answer<Vec<u8>> {
        let place = directory.place_bytes()?;
        let place = Path::new(OsStr::from_bytes(place.as_bytes()));
        let below = place.strip_prefix(&self.source).map_err(|_| Errno::NOENT)?;
        Ok(below.as_os_str().as_bytes().to_vec())
    }

    /// The path of a name in a directory.
    fn path_in(&self, directory: &Inode, name: &[u8]) -> Answer<Vec<u8>> {
        let mut path = self.path_of(directory)?;
        if !path.is_empty() {
            path.push(b'/');
        }
        path.extend(name);
        Ok(path)
    }

    fn count_bytes(&self, before: u64, after: u64) {
        if after >= before {
            self.bytes.fetch_add(after - before, Ordering::Relaxed);
        } else {
            self.bytes.fetch_sub(before - after, Ordering::Relaxed);
        }
    }
}

impl State {
    /// A name in a directory that has members.
    fn place(&self, parent: &Inode, name: &OsStr) -> Option<Place> {
        let &directory = self.numbers.get(&parent.identity())?;
        Some(Place { directory, name: name.as_bytes().to_vec() })
    }

    /// The number of a directory, which has members from now on.
    fn number(&mut self, parent: &Arc<Inode>) -> u64 {
        let next = self.directories.keys().next_back().map_or(1, |last| last + 1);
        let number = *self.numbers.entry(parent.identity()).or_insert(next);
        self.directories.entry(number).or_insert_with(|| Directory {
            inode: parent.clone(),
            changed_ns: None,
            is_settled: false,
        });
        number
    }

    fn touch(&mut self, directory: u64) {
        if let Some(directory) = self.directories.get_mut(&directory) {
            directory.changed_ns = Some(now_ns());
            directory.is_settled = false;
        }
    }

    /// Whether a program has set the times of a directory, and has changed no member's name in it since.
    fn is_settled(&self, directory: u64) -> bool {
        self.directories.get(&directory).is_some_and(|it| it.is_settled)
    }

    /// Says something once where nothing is wrong, and something merely passes.
    fn remark(&mut self, what: String) {
        if !self.is_quiet {
            self.say(what);
        }
    }

    /// Says something once.
    fn say(&mut self, what: String) {
        if !self.said.contains(&what) {
            eprintln!("iolab: {what}");
            self.said.insert(what);
        }
    }

    /// A container that is added to.
    fn container(&mut self, id: ContainerId) -> Answer<&mut Container> {
        match self.containers.of(id) {
            Ok(container) => Ok(container),
            Err((error, why)) => {
                if self.said.insert(why.clone()) {
                    eprintln!("iolab: {why}");
                }
                Err(error)
            }
        }
    }

    fn is_own(&self, directory: &Inode) -> bool {
        self.own.contains(&directory.identity())
    }
}
