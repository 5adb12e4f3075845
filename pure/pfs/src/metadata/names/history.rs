//! The shortest history of names: changes that make of none what there is, whatever it came from.

use super::{Names, Node, Open, ROOT};
use crate::change::{Change, Pointer};
use crate::{Inode, Kind, OpenNumber};
use std::collections::BTreeMap;

/// The name that files without one have between their creation and their removal.
const PASSING: &[u8] = b"unnamed";

impl Names {
    /// Tells the changes, in the order in which they can be applied to [`Names::new`]. The last of them says
    /// that records up to `sequence` are in it. Costs: time and changes in proportion to names and opens.
    pub(in crate::metadata) fn history(&self, sequence: u64, tell: &mut impl FnMut(Change)) {
        let mut opens: BTreeMap<Inode, Vec<(OpenNumber, Open)>> = BTreeMap::new();
        for (&number, &open) in &self.opens {
            opens.entry(open.inode).or_default().push((number, open));
        }
        // The root is empty yet, so the name that they pass through is nobody's.
        let unnamed = self.nodes.iter().filter(|(_, node)| !node.is_named);
        for (&inode, node) in unnamed {
            tell(creation(ROOT, PASSING, inode, node));
            tell_opens(&opens, inode, tell);
            tell(Change::Remove { parent: ROOT, name: PASSING.to_vec() });
        }
        for inode in self.orphans() {
            let (parent, name) = (ROOT, PASSING.to_vec());
            let (kind, mode, layout) = (Kind::File, 0, None);
            tell(Change::Create { parent, name: name.clone(), inode, kind, mode, layout });
            tell(Change::Remove { parent, name });
        }
        let mut todo = vec![ROOT];
        while let Some(parent) = todo.pop() {
            for (name, &inode) in self.nodes.get(&parent).into_iter().flat_map(|it| &it.entries) {
                let Some(node) = self.nodes.get(&inode) else { continue };
                tell(creation(parent, name, inode, node));
                tell_opens(&opens, inode, tell);
                if node.kind == Kind::Directory {
                    todo.push(inode);
                }
            }
        }
        tell(Change::Numbers { inode: self.last_inode, open: self.last_open, sequence });
    }
}

fn creation(parent: Inode, name: &[u8], inode: Inode, node: &Node) -> Change {
    let &Node { kind, mode, layout, .. } = node;
    Change::Create { parent, name: name.to_vec(), inode, kind, mode, layout }
}

fn tell_opens(
    opens: &BTreeMap<Inode, Vec<(OpenNumber, Open)>>,
    inode: Inode,
    tell: &mut impl FnMut(Change),
) {
    for &(open, Open { session, pointer, .. }) in opens.get(&inode).into_iter().flatten() {
        tell(Change::Open { open, inode, session });
        if pointer != Pointer::default() {
            tell(Change::Pointer { open, pointer });
        }
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
        names.history(18, &mut |change| told.push(change));
        let mut again = Names::new();
        told.iter().for_each(|change| again.apply(change));
        assert_eq!(again, names);
        assert_eq!(again.next_numbers(), (Inode(9), OpenNumber(5)));
        let is_of_gone = |change: &Change| matches!(change, Change::Create { inode: Inode(8), .. });
        assert!(!told.iter().any(is_of_gone));
    }
}
