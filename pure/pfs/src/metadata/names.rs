//! Names, and what they stand for: a tree of directories with files.
//!
//! Every change is a [`Change`] that was checked; applying those of the journal in their order gives the
//! same names again.

mod history;

pub(super) use history::Walk;

use crate::change::{Change, Pointer};
use crate::message::PATH_BYTES_MAX;
use crate::plant::{Plant, is_planted};
use crate::{Attributes, Code, Entry, Inode, Kind, Layout, OpenNumber, SessionId};
use history::Kept;
use std::collections::{BTreeMap, BTreeSet};

/// The directory that has all others.
pub(crate) const ROOT: Inode = Inode(1);
/// Bytes of a name.
const NAME_MAX: usize = 255;
/// Permissions of the root.
const ROOT_MODE: u32 = 0o755;

#[derive(Clone, Debug, PartialEq, Eq)]
struct Node {
    kind: Kind,
    mode: u32,
    layout: Option<Layout>,
    entries: BTreeMap<Vec<u8>, Inode>,
    /// Whether it has a name.
    is_named: bool,
    opens: u32,
}

/// A file that is open.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Open {
    inode: Inode,
    pub(super) session: SessionId,
    pub(super) pointer: Pointer,
}

/// All names and opens.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Names {
    nodes: BTreeMap<Inode, Node>,
    opens: BTreeMap<OpenNumber, Open>,
    /// Files without name and opens, until all servers have discarded them.
    orphans: BTreeSet<Inode>,
    /// Files that are open and have no name.
    unnamed: BTreeSet<Inode>,
    last_inode: Inode,
    last_open: OpenNumber,
    /// What a walk that has begun needs of what has changed since.
    kept: Option<Kept>,
}

/// Where a name is, or would be.
#[derive(Clone, Debug)]
pub(super) struct Place<'a> {
    pub(super) parent: Inode,
    pub(super) name: &'a [u8],
    /// What has that name.
    pub(super) found: Option<Inode>,
}

impl Names {
    pub(crate) fn new() -> Names {
        let root = Node {
            kind: Kind::Directory,
            mode: ROOT_MODE,
            layout: None,
            entries: BTreeMap::new(),
            is_named: true,
            opens: 0,
        };
        Names {
            nodes: BTreeMap::from([(ROOT, root)]),
            opens: BTreeMap::new(),
            orphans: BTreeSet::new(),
            unnamed: BTreeSet::new(),
            last_inode: ROOT,
            last_open: OpenNumber(0),
            kept: None,
        }
    }

    pub(super) fn inode_count(&self) -> u64 {
        self.nodes.len() as u64
    }

    /// Numbers for a file and an open that are not in use, and will not have been.
    pub(crate) fn next_numbers(&self) -> (Inode, OpenNumber) {
        (Inode(self.last_inode.0 + 1), OpenNumber(self.last_open.0 + 1))
    }

    /// Where the last name of a path is; the directories before it must be there. `None` for the root.
    pub(super) fn place<'a>(&self, path: &'a [u8]) -> Result<Option<Place<'a>>, Code> {
        if path.len() > PATH_BYTES_MAX {
            return Err(Code::NAME_TOO_LONG);
        }
        let Some(names) = path.strip_prefix(b"/") else { return Err(Code::INVALID) };
        if names.is_empty() {
            return Ok(None);
        }
        let (before, name) = match names.iter().rposition(|&byte| byte == b'/') {
            Some(at) => (Some(&names[..at]), &names[at + 1..]),
            None => (None, names),
        };
        let mut parent = ROOT;
        for directory in before.into_iter().flat_map(|before| before.split(|&byte| byte == b'/')) {
            check_name(directory)?;
            parent = *self.entries(parent)?.get(directory).ok_or(Code::NO_ENTRY)?;
        }
        check_name(name)?;
        let found = self.entries(parent)?.get(name).copied();
        Ok(Some(Place { parent, name, found }))
    }

    /// What a path stands for.
    pub(super) fn find(&self, path: &[u8]) -> Result<Inode, Code> {
        match self.place(path)? {
            None => Ok(ROOT),
            Some(place) => place.found.ok_or(Code::NO_ENTRY),
        }
    }

    fn entries(&self, directory: Inode) -> Result<&BTreeMap<Vec<u8>, Inode>, Code> {
        let node = self.nodes.get(&directory).ok_or(Code::NO_ENTRY)?;
        match node.kind {
            Kind::Directory => Ok(&node.entries),
            Kind::File => Err(Code::NOT_DIRECTORY),
        }
    }

    pub(super) fn attributes(&self, inode: Inode) -> Result<Attributes, Code> {
        let &Node { kind, mode, layout, opens, .. } =
            self.nodes.get(&inode).ok_or(Code::NO_ENTRY)?;
        let is_open = opens > 0 && !is_planted(Plant::OpenUntold);
        Ok(Attributes { inode, kind, mode, layout, is_open })
    }

    /// Entries of a directory behind a name, as long as `fits` takes them; and whether there are more.
    pub(super) fn list(
        &self,
        directory: Inode,
        after: &[u8],
        mut fits: impl FnMut(&[u8]) -> bool,
    ) -> Result<(Vec<Entry>, bool), Code> {
        let mut listed = Vec::new();
        let behind = self.entries(directory)?.iter().filter(|(name, _)| name.as_slice() > after);
        for (name, &inode) in behind {
            if !fits(name) {
                return Ok((listed, true));
            }
            listed.push(Entry { name: name.clone(), attributes: self.attributes(inode)? });
        }
        Ok((listed, false))
    }

    /// Whether a name may go that stands for such a thing.
    pub(super) fn check_removal(&self, inode: Inode, kind: Kind) -> Result<(), Code> {
        let node = self.nodes.get(&inode).ok_or(Code::NO_ENTRY)?;
        match (node.kind, kind) {
            (Kind::Directory, Kind::File) => Err(Code::IS_DIRECTORY),
            (Kind::File, Kind::Directory) => Err(Code::NOT_DIRECTORY),
            (Kind::Directory, Kind::Directory) if !node.entries.is_empty() => Err(Code::NOT_EMPTY),
            _ => Ok(()),
        }
    }

    /// Whether `inner` is `outer`, or lies in it.
    pub(super) fn is_within(&self, inner: Inode, outer: Inode) -> bool {
        if inner == outer {
            return true;
        }
        let mut below = vec![outer];
        while let Some(directory) = below.pop() {
            let Ok(entries) = self.entries(directory) else { continue };
            for &entry in entries.values() {
                if entry == inner {
                    return true;
                }
                below.push(entry);
            }
        }
        false
    }

    pub(super) fn open(&self, open: OpenNumber) -> Option<&Open> {
        self.opens.get(&open)
    }

    /// Opens of a session.
    pub(super) fn opens_of(&self, session: SessionId) -> Vec<OpenNumber> {
        let its = self.opens.iter().filter(|(_, open)| open.session == session);
        its.map(|(&open, _)| open).collect()
    }

    /// Sessions that have opens.
    pub(super) fn sessions(&self) -> BTreeSet<SessionId> {
        self.opens.values().map(|open| open.session).collect()
    }

    /// Files that are to be discarded.
    pub(super) fn orphans(&self) -> impl Iterator<Item = Inode> + '_ {
        self.orphans.iter().copied()
    }

    /// Everything that has a name, by its path; without the root.
    pub(crate) fn all(&self) -> BTreeMap<Vec<u8>, Attributes> {
        let mut all = BTreeMap::new();
        let mut todo = vec![(Vec::new(), ROOT)];
        // By a damaged journal a directory may have come to lie in itself.
        let mut seen = BTreeSet::from([ROOT]);
        while let Some((path, directory)) = todo.pop() {
            let entries = self.nodes.get(&directory).into_iter().flat_map(|node| &node.entries);
            for (name, &inode) in entries {
                let path = [path.as_slice(), b"/", name].concat();
                let Ok(attributes) = self.attributes(inode) else { continue };
                if attributes.kind == Kind::Directory && seen.insert(inode) {
                    todo.push((path.clone(), inode));
                }
                all.insert(path, attributes);
            }
        }
        all
    }

    /// Files without a name that somebody has open, or that some server may still have.
    pub(crate) fn leaving(&self) -> BTreeSet<Inode> {
        self.unnamed.union(&self.orphans).copied().collect()
    }

    /// Applies a change that was checked, or that the journal has. One of a damaged journal changes
    /// nothing where it does not fit.
    pub(crate) fn apply(&mut self, change: &Change) {
        match change {
            Change::Create { parent, name, inode, kind, mode, layout } => {
                let node = Node {
                    kind: *kind,
                    mode: *mode,
                    layout: *layout,
                    entries: BTreeMap::new(),
                    is_named: true,
                    opens: 0,
                };
                self.keep(*parent, name);
                if let Some(directory) = self.nodes.get_mut(parent) {
                    directory.entries.insert(name.clone(), *inode);
                    self.nodes.insert(*inode, node);
                    self.unnamed.remove(inode);
                    self.last_inode = self.last_inode.max(*inode);
                }
            }
            Change::Rename { parent, name, new_parent, new_name } => {
                self.keep(*parent, name);
                self.keep(*new_parent, new_name);
                let directory = self.nodes.get_mut(parent);
                let Some(inode) = directory.and_then(|node| node.entries.remove(name)) else {
                    return;
                };
                if let Some(directory) = self.nodes.get_mut(new_parent)
                    && let Some(gone) = directory.entries.insert(new_name.clone(), inode)
                {
                    self.unname(gone);
                }
            }
            Change::Remove { parent, name } => {
                self.keep(*parent, name);
                let directory = self.nodes.get_mut(parent);
                if let Some(inode) = directory.and_then(|node| node.entries.remove(name)) {
                    self.unname(inode);
                }
            }
            &Change::Open { open, inode, session } => {
                if let Some(node) = self.nodes.get_mut(&inode) {
                    node.opens += 1;
                    let pointer = Pointer::default();
                    self.opens.insert(open, Open { inode, session, pointer });
                }
                self.last_open = self.last_open.max(open);
            }
            Change::Close { open } => {
                let Some(Open { inode, .. }) = self.opens.remove(open) else { return };
                if let Some(node) = self.nodes.get_mut(&inode) {
                    node.opens = node.opens.saturating_sub(1);
                }
                self.drop_unused(inode);
            }
            Change::Pointer { open, pointer } => {
                if let Some(open) = self.opens.get_mut(open) {
                    open.pointer = *pointer;
                }
            }
            Change::Discarded { inode } => {
                self.orphans.remove(inode);
            }
            Change::Numbers { inode, open, .. } => {
                self.last_inode = self.last_inode.max(*inode);
                self.last_open = self.last_open.max(*open);
            }
        }
    }

    fn unname(&mut self, inode: Inode) {
        if let Some(node) = self.nodes.get_mut(&inode) {
            node.is_named = false;
            self.unnamed.insert(inode);
        }
        self.drop_unused(inode);
    }

    /// What has no name and is not open is no more; of a file, servers still have the bytes.
    fn drop_unused(&mut self, inode: Inode) {
        let unused = |node: &Node| !node.is_named && node.opens == 0;
        if self.nodes.get(&inode).is_some_and(unused)
            && let Some(node) = self.nodes.remove(&inode)
        {
            self.unnamed.remove(&inode);
            if node.kind == Kind::File {
                self.orphans.insert(inode);
            }
        }
    }
}

fn check_name(name: &[u8]) -> Result<(), Code> {
    match name {
        b"" | b"." | b".." => Err(Code::INVALID),
        name if name.len() > NAME_MAX => Err(Code::NAME_TOO_LONG),
        _ => Ok(()),
    }
}
