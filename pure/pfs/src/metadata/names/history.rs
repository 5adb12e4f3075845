//! The shortest history of names: changes that make of none what there is, whatever it came from.
//!
//! It is told in parts, between which names change: what the walk has not come to yet is kept as it was for
//! each name that changes. So the history is that of one instant. Costs: memory in proportion to what changes
//! while it is told, and a moment at its beginning in proportion to what is open or on its way out.

use super::{Names, Node, Open, ROOT};
use crate::change::{Change, Pointer};
use crate::plant::{Plant, is_planted};
use crate::{Inode, Kind, Layout, OpenNumber};
use std::collections::BTreeMap;
use std::ops::Bound::{Excluded, Unbounded};

/// The name that files without one have between their creation and their removal.
const PASSING: &[u8] = b"unnamed";

/// What is told of a file or directory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Told {
    kind: Kind,
    mode: u32,
    layout: Option<Layout>,
}

impl Told {
    fn of(&Node { kind, mode, layout, .. }: &Node) -> Told {
        Told { kind, mode, layout }
    }
}

/// What a name stood for, if it was there.
type Stood = Option<(Inode, Told)>;

/// What names stood for when a walk began: those that have changed since.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Kept {
    entries: BTreeMap<Inode, BTreeMap<Vec<u8>, Stood>>,
}

/// How far a history is told.
#[derive(Debug)]
pub(in crate::metadata) struct Walk {
    /// Directories whose names are still to be told.
    todo: Vec<Inode>,
    /// The directory whose names are being told, and the last of them.
    at: Option<(Inode, Vec<u8>)>,
    /// Opens of what has a name.
    opens: Vec<(OpenNumber, Open)>,
    /// What comes last.
    numbers: Change,
}

impl Names {
    /// Begins to tell the changes, in the order in which they can be applied to [`Names::new`]. The last of
    /// them will say that records up to `sequence` are in it.
    pub(in crate::metadata) fn begin_walk(
        &mut self,
        sequence: u64,
        tell: &mut impl FnMut(Change),
    ) -> Walk {
        self.kept = Some(Kept::default());
        let (mut opens, mut of_unnamed) = (Vec::new(), BTreeMap::<Inode, Vec<_>>::new());
        for (&number, &open) in &self.opens {
            match self.unnamed.contains(&open.inode) {
                true => of_unnamed.entry(open.inode).or_default().push((number, open)),
                false => opens.push((number, open)),
            }
        }
        // The root is empty yet, so the name that they pass through is nobody's.
        for (inode, opens) in of_unnamed {
            let Some(node) = self.nodes.get(&inode) else { continue };
            tell(creation(ROOT, PASSING, inode, Told::of(node)));
            opens.into_iter().for_each(|(number, open)| tell_open(number, open, tell));
            tell(Change::Remove { parent: ROOT, name: PASSING.to_vec() });
        }
        for inode in self.orphans() {
            let gone = Told { kind: Kind::File, mode: 0, layout: None };
            tell(creation(ROOT, PASSING, inode, gone));
            tell(Change::Remove { parent: ROOT, name: PASSING.to_vec() });
        }
        let numbers = Change::Numbers { inode: self.last_inode, open: self.last_open, sequence };
        Walk { todo: vec![ROOT], at: None, opens, numbers }
    }

    /// Goes on by so many names or opens; whether that was the end.
    pub(in crate::metadata) fn walk_on(
        &mut self,
        walk: &mut Walk,
        count: usize,
        tell: &mut impl FnMut(Change),
    ) -> bool {
        for _ in 0..count {
            if !self.tell_name(walk, tell) {
                let Some((number, open)) = walk.opens.pop() else {
                    tell(walk.numbers.clone());
                    self.end_walk();
                    return true;
                };
                tell_open(number, open, tell);
            }
        }
        false
    }

    /// Nobody goes on any more.
    pub(in crate::metadata) fn end_walk(&mut self) {
        self.kept = None;
    }

    /// Tells the next name, if there is one left.
    fn tell_name(&self, walk: &mut Walk, tell: &mut impl FnMut(Change)) -> bool {
        loop {
            let Some((parent, after)) = &mut walk.at else {
                let Some(directory) = walk.todo.pop() else { return false };
                // No name is empty.
                walk.at = Some((directory, Vec::new()));
                continue;
            };
            let Some((name, inode, told)) = self.name_behind(*parent, after) else {
                walk.at = None;
                continue;
            };
            tell(creation(*parent, &name, inode, told));
            if told.kind == Kind::Directory {
                walk.todo.push(inode);
            }
            *after = name;
            return true;
        }
    }

    /// The first name behind another in a directory, and what it stood for when the walk began.
    fn name_behind(&self, directory: Inode, after: &[u8]) -> Option<(Vec<u8>, Inode, Told)> {
        let behind = (Excluded(after), Unbounded);
        let node = self.nodes.get(&directory);
        let mut now =
            node.into_iter().flat_map(|node| node.entries.range::<[u8], _>(behind)).peekable();
        let kept = self.kept.as_ref().and_then(|kept| kept.entries.get(&directory));
        let mut was = kept.into_iter().flat_map(|kept| kept.range::<[u8], _>(behind)).peekable();
        loop {
            let is_kept = match (now.peek(), was.peek()) {
                (_, None) => false,
                (None, Some(_)) => true,
                (Some((now, _)), Some((was, _))) => was <= now,
            };
            if !is_kept {
                let (name, inode) = now.next()?;
                let Some(node) = self.nodes.get(inode) else { continue };
                return Some((name.clone(), *inode, Told::of(node)));
            }
            let (name, stood) = was.next()?;
            now.next_if(|(now, _)| *now == name);
            if let &Some((inode, told)) = stood {
                return Some((name.clone(), inode, told));
            }
        }
    }

    /// Keeps what a name stands for that is about to change, for a walk that has begun.
    pub(super) fn keep(&mut self, directory: Inode, name: &[u8]) {
        let Some(kept) = &mut self.kept else { return };
        if is_planted(Plant::CheckpointOfSeveralTimes) {
            return;
        }
        let entries = kept.entries.entry(directory).or_default();
        if entries.contains_key(name) {
            return;
        }
        let inode = self.nodes.get(&directory).and_then(|node| node.entries.get(name));
        let stood = inode.and_then(|&inode| Some((inode, Told::of(self.nodes.get(&inode)?))));
        entries.insert(name.to_vec(), stood);
    }
}

fn creation(parent: Inode, name: &[u8], inode: Inode, told: Told) -> Change {
    let Told { kind, mode, layout } = told;
    Change::Create { parent, name: name.to_vec(), inode, kind, mode, layout }
}

fn tell_open(number: OpenNumber, open: Open, tell: &mut impl FnMut(Change)) {
    let Open { inode, session, pointer } = open;
    tell(Change::Open { open: number, inode, session });
    if pointer != Pointer::default() {
        tell(Change::Pointer { open: number, pointer });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::SessionId;

    fn remove(parent: u64, name: &str) -> Change {
        Change::Remove { parent: Inode(parent), name: name.into() }
    }

    #[test]
    fn a_history_makes_the_same_names_again_and_none_of_it_is_of_what_has_gone() {
        let open = |open, inode| Change::Open {
            open: OpenNumber(open),
            inode: Inode(inode),
            session: SessionId(u128::from(open) << 70),
        };
        let mut names = Names::new();
        let pointer = Pointer { setting: 3, units: 99 };
        let changes = [
            Change::of_create(1, "d", 2, Kind::Directory),
            Change::of_create(2, "e", 3, Kind::Directory),
            Change::of_create(3, "x", 4, Kind::File),
            Change::of_create(1, "unnamed", 5, Kind::File),
            Change::of_create(1, "open", 6, Kind::File),
            Change::of_create(1, "orphan", 7, Kind::File),
            Change::of_create(1, "gone", 8, Kind::File),
            open(1, 4),
            open(2, 6),
            open(3, 6),
            open(4, 8),
            Change::Pointer { open: OpenNumber(3), pointer },
            Change::Rename {
                parent: Inode(3),
                name: b"x".to_vec(),
                new_parent: Inode(1),
                new_name: b"y".to_vec(),
            },
            remove(1, "open"),
            remove(1, "orphan"),
            Change::Close { open: OpenNumber(4) },
            remove(1, "gone"),
            Change::Discarded { inode: Inode(8) },
        ];
        changes.iter().for_each(|change| names.apply(change));
        let mut told = Vec::new();
        let mut walk = names.begin_walk(18, &mut |change| told.push(change));
        assert!(names.walk_on(&mut walk, usize::MAX, &mut |change| told.push(change)));
        let mut again = Names::new();
        told.iter().for_each(|change| again.apply(change));
        assert_eq!(again, names);
        assert_eq!(again.next_numbers(), (Inode(9), OpenNumber(5)));
        let is_of_gone = |change: &Change| matches!(change, Change::Create { inode: Inode(8), .. });
        assert!(!told.iter().any(is_of_gone));
    }

    /// Changes of all kinds to names that are there or not, of directories one in another.
    fn changed(names: &Names, step: u64) -> Change {
        let directory = |at: u64| Inode(1 + at % 3);
        let name = |at: u64| format!("{}", at % 7).into_bytes();
        let (inode, open) = names.next_numbers();
        let (parent, new_parent) = (directory(step), directory(step / 3));
        match step % 5 {
            0 | 1 => Change::Create {
                parent,
                name: format!("{}.{}", step % 7, inode.0).into_bytes(),
                inode,
                kind: Kind::File,
                mode: 0o600,
                layout: None,
            },
            2 => {
                let entries = &names.nodes[&parent].entries;
                let file = |&(_, inode): &(&Vec<u8>, &Inode)| names.nodes[inode].kind == Kind::File;
                match entries.iter().filter(file).nth(step as usize % 4) {
                    Some((name, _)) => Change::Remove { parent, name: name.clone() },
                    None => Change::Close { open: OpenNumber(step % 50) },
                }
            }
            3 => {
                let entries = &names.nodes[&parent].entries;
                let file = |&(_, inode): &(&Vec<u8>, &Inode)| names.nodes[inode].kind == Kind::File;
                match entries.iter().filter(file).nth(step as usize % 3) {
                    Some((from, _)) => Change::Rename {
                        parent,
                        name: from.clone(),
                        new_parent,
                        new_name: name(step),
                    },
                    None => Change::Close { open: OpenNumber(step % 50) },
                }
            }
            _ => {
                let inode = *names.nodes.keys().nth(step as usize % names.nodes.len()).unwrap();
                match names.nodes[&inode].kind {
                    Kind::File => Change::Open { open, inode, session: SessionId(7) },
                    Kind::Directory => Change::Close { open: OpenNumber(step % 50) },
                }
            }
        }
    }

    #[test]
    fn a_history_told_in_parts_is_that_of_the_instant_it_began_whatever_changes_meanwhile() {
        let mut met = 0;
        for seed in 0..200u64 {
            let mut names = Names::new();
            names.apply(&Change::of_create(1, "d", 2, Kind::Directory));
            names.apply(&Change::of_create(2, "e", 3, Kind::Directory));
            let mut step = seed * 7919;
            let mut on = |names: &mut Names| {
                step = step
                    .wrapping_mul(6_364_136_223_846_793_005)
                    .wrapping_add(1_442_695_040_888_963_407);
                let change = changed(names, step >> 33);
                names.apply(&change);
            };
            (0..60).for_each(|_| on(&mut names));
            let before = names.clone();
            let mut told = Vec::new();
            let mut walk = names.begin_walk(1, &mut |change| told.push(change));
            while !names.walk_on(&mut walk, 1, &mut |change| told.push(change)) {
                on(&mut names);
            }
            let mut again = Names::new();
            told.iter().for_each(|change| again.apply(change));
            assert_eq!(again, before, "seed {seed}");
            met += usize::from(names != before);
        }
        assert!(met > 100, "names have changed meanwhile in {met} of 200 walks");
    }
}
