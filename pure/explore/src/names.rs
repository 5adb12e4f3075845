//! The namespace against a small model: is there an order of the calls, each between its call and its
//! answer, in which the model gives the same answers?
//!
//! All orders are followed at once: a [`World`] is the tree after one of them, with the calls that have
//! happened in it but were not answered yet. What failed for lack of an answer may still happen. If there are
//! too many worlds the search ends undecided.

use crate::plan::NameCall;
use iolab_pfs::{Code, Inode, Kind};
use std::collections::{BTreeMap, BTreeSet};

/// More worlds than this are not followed.
const WORLDS_MAX: usize = 3_000;

/// A call, as this file numbers them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Asked(u64);

/// What is asked of the manager.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Question {
    Open { path: Vec<u8>, creates: bool, exclusive: bool },
    Name(NameCall),
}

/// What a thing is: the number of a file as it was told, or the call that made it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Thing {
    Told(Inode),
    Made(Asked),
}

/// What the manager says.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Said {
    Refused(Code),
    Done,
    Opened { thing: Thing, created: bool },
    Found { thing: Thing, kind: Kind },
    Entries { entries: Vec<Listed>, more: bool },
}

/// A name in a directory, what it stands for, and of what kind that is.
type Listed = (Vec<u8>, Thing, Kind);

type Tree = BTreeMap<Vec<u8>, (Kind, Thing)>;

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct World {
    tree: Tree,
    /// What has happened and was not answered yet, with what is to be answered.
    happened: BTreeMap<Asked, Said>,
}

/// The search.
#[derive(Clone, Debug)]
pub(crate) struct Names {
    worlds: BTreeSet<World>,
    pending: BTreeMap<Asked, Question>,
    told: BTreeMap<Asked, Inode>,
    next: u64,
    undecided: bool,
    /// Files and directories that there may be.
    quota: Option<u64>,
    /// Calls that may have taken the name of a file: who has it open keeps it, and it counts.
    removal_count: u64,
}

impl Names {
    pub(crate) fn new(quota: Option<u64>) -> Names {
        let world = World { tree: Tree::new(), happened: BTreeMap::new() };
        Names {
            worlds: BTreeSet::from([world]),
            pending: BTreeMap::new(),
            told: BTreeMap::new(),
            next: 0,
            undecided: false,
            quota,
            removal_count: 0,
        }
    }

    /// Whether there were too many possibilities.
    pub(crate) fn undecided(&self) -> bool {
        self.undecided
    }

    /// A call begins.
    pub(crate) fn asked(&mut self, question: Question) -> Asked {
        let asked = Asked(self.next);
        self.next += 1;
        self.removal_count += u64::from(question.removes());
        self.pending.insert(asked, question);
        asked
    }

    /// Nobody will hear what came of a call; it may still happen.
    pub(crate) fn unheard(&mut self, asked: Asked) {
        if !self.pending[&asked].changes() {
            self.settle(asked);
        }
    }

    /// A call was answered.
    pub(crate) fn answered(&mut self, asked: Asked, said: &Said) -> Result<(), String> {
        if self.undecided {
            return Ok(());
        }
        if let Said::Opened { thing: Thing::Told(inode), created: true } = said {
            if let Some((other, _)) = self.told.iter().find(|told| told.1 == inode) {
                return Err(format!("file {inode} is created by {asked:?} and by {other:?}"));
            }
            self.told.insert(asked, *inode);
            self.bind(asked, *inode);
        }
        if *said == Said::Refused(Code::BUSY) {
            // Who uses it is for the manager to know: a call that was refused has not happened.
            self.worlds.retain(|world| !world.happened.contains_key(&asked));
            self.settle(asked);
            return Ok(());
        }
        if *said == Said::Refused(Code::QUOTA) {
            return self.refused_for_quota(asked);
        }
        let (mut ready, mut frontier) = (BTreeSet::new(), std::mem::take(&mut self.worlds));
        let mut seen = frontier.clone();
        while let Some(world) = frontier.pop_first() {
            match world.happened.get(&asked) {
                Some(would) if matches(would, said) => {
                    let mut world = world;
                    world.happened.remove(&asked);
                    ready.insert(world);
                }
                Some(_) => {}
                None => {
                    for (&next, question) in &self.pending {
                        if !world.happened.contains_key(&next) {
                            let after = self.after(&world, next, question);
                            if seen.insert(after.clone()) {
                                frontier.insert(after);
                            }
                        }
                    }
                }
            }
            if seen.len() > WORLDS_MAX {
                self.undecided = true;
                return Ok(());
            }
        }
        if ready.is_empty() {
            let question = &self.pending[&asked];
            return Err(format!(
                "{question:?} is answered with {said:?}, which fits no order: {}",
                seen.first()
                    .map_or(String::new(), |world| format!("among others {:?}", world.tree))
            ));
        }
        self.worlds = ready;
        self.settle(asked);
        Ok(())
    }

    /// A call was refused for the quota of files, so it has not happened; it must be possible that there were so many.
    fn refused_for_quota(&mut self, asked: Asked) -> Result<(), String> {
        let quota = self.quota.unwrap_or(u64::MAX);
        let created = self.pending.values().filter(|question| question.creates()).count() as u64;
        let others = self.removal_count + created.saturating_sub(1);
        let refused = Said::Refused(Code::QUOTA);
        self.worlds.retain(|world| {
            let has_not_happened = world.happened.get(&asked).is_none_or(|would| *would == refused);
            has_not_happened && world.tree.len() as u64 + others >= quota
        });
        if self.worlds.is_empty() {
            let question = &self.pending[&asked];
            return Err(format!("{question:?} is refused for a quota that is not used up"));
        }
        self.settle(asked);
        Ok(())
    }

    /// Forgets a call.
    fn settle(&mut self, asked: Asked) {
        self.pending.remove(&asked);
        self.worlds = std::mem::take(&mut self.worlds)
            .into_iter()
            .map(|mut world| {
                world.happened.remove(&asked);
                world
            })
            .collect();
    }

    /// What a call made has got a number.
    fn bind(&mut self, asked: Asked, inode: Inode) {
        let told =
            |thing: Thing| if thing == Thing::Made(asked) { Thing::Told(inode) } else { thing };
        self.worlds = std::mem::take(&mut self.worlds)
            .into_iter()
            .map(|mut world| {
                world.tree.values_mut().for_each(|entry| entry.1 = told(entry.1));
                world.happened.values_mut().for_each(|said| said.rename(told));
                world
            })
            .collect();
    }

    /// The world after one more call.
    fn after(&self, world: &World, asked: Asked, question: &Question) -> World {
        let mut world = world.clone();
        let made = self.told.get(&asked).map_or(Thing::Made(asked), |&inode| Thing::Told(inode));
        let is_used_up = self.quota.is_some_and(|quota| world.tree.len() as u64 >= quota);
        let made = if is_used_up { Err(Code::QUOTA) } else { Ok(made) };
        let said = question.happen(&mut world.tree, made);
        world.happened.insert(asked, said);
        world
    }
}

impl Question {
    /// Whether it may change anything.
    fn changes(&self) -> bool {
        match self {
            Question::Open { creates, .. } => *creates,
            Question::Name(call) => !matches!(call, NameCall::Look(_) | NameCall::List(..)),
        }
    }

    /// Whether it may make something.
    fn creates(&self) -> bool {
        match self {
            Question::Open { creates, .. } => *creates,
            Question::Name(call) => matches!(call, NameCall::MakeDirectory(_)),
        }
    }

    /// Whether it may take the name of something.
    fn removes(&self) -> bool {
        matches!(self, Question::Name(NameCall::Remove(..) | NameCall::Rename(..)))
    }

    /// What it does to a tree, and what it makes there unless it may not.
    fn happen(&self, tree: &mut Tree, made: Result<Thing, Code>) -> Said {
        let outcome = match self {
            Question::Open { path, creates, exclusive } => {
                open(tree, path, made, *creates, *exclusive)
            }
            Question::Name(NameCall::Look(path)) => {
                kind_of(tree, path).map(|(kind, thing)| Said::Found { thing, kind })
            }
            Question::Name(NameCall::MakeDirectory(path)) => make(tree, path, made),
            Question::Name(NameCall::Remove(path, kind)) => remove(tree, path, *kind),
            Question::Name(NameCall::Rename(from, to)) => rename(tree, from, to),
            Question::Name(NameCall::List(path, after)) => list(tree, path, after),
        };
        outcome.unwrap_or_else(Said::Refused)
    }
}

impl Said {
    fn rename(&mut self, name: impl Fn(Thing) -> Thing) {
        match self {
            Said::Opened { thing, .. } | Said::Found { thing, .. } => *thing = name(*thing),
            Said::Entries { entries, .. } => {
                entries.iter_mut().for_each(|entry| entry.1 = name(entry.1));
            }
            Said::Refused(_) | Said::Done => {}
        }
    }
}

/// Whether what was said is what the model would say; the number of what an unanswered call made is free.
fn matches(would: &Said, said: &Said) -> bool {
    let same = |would: &Thing, said: &Thing| would == said || matches!(would, Thing::Made(_));
    match (would, said) {
        (Said::Opened { thing: a, created: was }, Said::Opened { thing: b, created: is }) => {
            was == is && same(a, b)
        }
        (Said::Found { thing: a, kind: was }, Said::Found { thing: b, kind: is }) => {
            was == is && same(a, b)
        }
        (Said::Entries { entries: a, .. }, Said::Entries { entries: b, more }) => {
            let whole = if *more { !b.is_empty() && b.len() < a.len() } else { a.len() == b.len() };
            let entry = |(a, b): (&Listed, &Listed)| a.0 == b.0 && a.2 == b.2 && same(&a.1, &b.1);
            whole && a.iter().zip(b).all(entry)
        }
        _ => would == said,
    }
}

const ROOT: (Kind, Thing) = (Kind::Directory, Thing::Told(Inode(0)));

fn parent(path: &[u8]) -> &[u8] {
    let slash = path.iter().rposition(|&byte| byte == b'/').unwrap_or(0);
    &path[..slash]
}

/// What a path stands for; every name on the way must be a directory.
fn kind_of(tree: &Tree, path: &[u8]) -> Result<(Kind, Thing), Code> {
    if path.is_empty() || path == b"/" {
        return Ok(ROOT);
    }
    if kind_of(tree, parent(path))?.0 != Kind::Directory {
        return Err(Code::NOT_DIRECTORY);
    }
    tree.get(path).copied().ok_or(Code::NO_ENTRY)
}

/// Sees that there is a directory for a path.
fn check_parent(tree: &Tree, path: &[u8]) -> Result<(), Code> {
    match kind_of(tree, parent(path))?.0 {
        Kind::Directory => Ok(()),
        Kind::File => Err(Code::NOT_DIRECTORY),
    }
}

fn open(
    tree: &mut Tree,
    path: &[u8],
    made: Result<Thing, Code>,
    creates: bool,
    exclusive: bool,
) -> Result<Said, Code> {
    match kind_of(tree, path) {
        Ok(_) if creates && exclusive => Err(Code::EXISTS),
        Ok((Kind::Directory, _)) => Err(Code::IS_DIRECTORY),
        Ok((Kind::File, thing)) => Ok(Said::Opened { thing, created: false }),
        Err(_) if creates => {
            check_parent(tree, path)?;
            let made = made?;
            tree.insert(path.into(), (Kind::File, made));
            Ok(Said::Opened { thing: made, created: true })
        }
        Err(code) => Err(code),
    }
}

fn make(tree: &mut Tree, path: &[u8], made: Result<Thing, Code>) -> Result<Said, Code> {
    match kind_of(tree, path) {
        Ok(_) => Err(Code::EXISTS),
        Err(_) => {
            check_parent(tree, path)?;
            tree.insert(path.into(), (Kind::Directory, made?));
            Ok(Said::Done)
        }
    }
}

/// Whether a directory has anything in it.
fn is_full(tree: &Tree, path: &[u8]) -> bool {
    tree.keys().any(|other| is_below(other, path))
}

fn is_below(path: &[u8], above: &[u8]) -> bool {
    path.strip_prefix(above).is_some_and(|rest| rest.first() == Some(&b'/'))
}

fn remove(tree: &mut Tree, path: &[u8], kind: Kind) -> Result<Said, Code> {
    match (kind_of(tree, path)?.0, kind) {
        (Kind::Directory, Kind::File) => return Err(Code::IS_DIRECTORY),
        (Kind::File, Kind::Directory) => return Err(Code::NOT_DIRECTORY),
        (Kind::Directory, _) if is_full(tree, path) => return Err(Code::NOT_EMPTY),
        _ => {}
    }
    tree.remove(path);
    Ok(Said::Done)
}

fn rename(tree: &mut Tree, from: &[u8], to: &[u8]) -> Result<Said, Code> {
    check_parent(tree, from)?;
    check_parent(tree, to)?;
    let (kind, _) = kind_of(tree, from)?;
    if is_below(to, from) {
        return Err(Code::INVALID);
    }
    match (kind, kind_of(tree, to).map(|(kind, _)| kind)) {
        _ if from == to => return Ok(Said::Done),
        (_, Err(_)) => {}
        (Kind::File, Ok(Kind::Directory)) => return Err(Code::IS_DIRECTORY),
        (Kind::Directory, Ok(Kind::File)) => return Err(Code::NOT_DIRECTORY),
        (Kind::Directory, Ok(_)) if is_full(tree, to) => return Err(Code::NOT_EMPTY),
        _ => {}
    }
    let moves = |path: &Vec<u8>| path == from || is_below(path, from);
    let paths: Vec<Vec<u8>> = tree.keys().filter(|path| moves(path)).cloned().collect();
    for path in paths {
        let entry = tree.remove(&path).expect("it was there");
        let renamed = [to, &path[from.len()..]].concat();
        tree.insert(renamed, entry);
    }
    Ok(Said::Done)
}

fn list(tree: &Tree, path: &[u8], after: &[u8]) -> Result<Said, Code> {
    if kind_of(tree, path)?.0 == Kind::File {
        return Err(Code::NOT_DIRECTORY);
    }
    let path = path.strip_suffix(b"/").unwrap_or(path);
    let name = |other: &[u8]| {
        let name = other.strip_prefix(path)?.strip_prefix(b"/")?;
        (!name.contains(&b'/') && name > after).then(|| name.to_vec())
    };
    let entry =
        |(path, &(kind, thing)): (&Vec<u8>, &(Kind, Thing))| Some((name(path)?, thing, kind));
    Ok(Said::Entries { entries: tree.iter().filter_map(entry).collect(), more: false })
}
