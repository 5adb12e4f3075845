//! What the journal of an instance says that there is, for those who look at its directory while nobody
//! serves it: a check, or a rescue.
//!
//! Promises: an intact journal gives the names that a manager in a new life would have. Of a damaged one
//! everything is taken that is intact; what a missing record would have changed is not known then.
//! Costs: one pass over the journal; memory for all names.

use crate::journal::{Ending, Record, salvaged};
use crate::metadata::Names;
use crate::{Attributes, Inode};
use iolab_vocab::Refusal;
use std::collections::{BTreeMap, BTreeSet};

/// Names and numbers that a journal knows of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Inventory {
    /// The instance whose journal it is.
    pub instance: u128,
    /// Files and directories, by their paths; without the root.
    pub named: BTreeMap<Vec<u8>, Attributes>,
    /// Files that were removed while somebody had them open, or that some server may still have.
    pub leaving: BTreeSet<Inode>,
    /// The first number that no file was given yet.
    pub unused: Inode,
    /// What is behind the last record.
    pub ending: Ending,
}

impl Inventory {
    /// Reads a journal with its header.
    pub fn of_journal(bytes: &[u8]) -> Result<Inventory, Refusal> {
        let (header, records, ending) = salvaged(bytes)?;
        let mut names = Names::new();
        for record in records {
            Record::decode(record)?.changes.iter().for_each(|change| names.apply(change));
        }
        Ok(Inventory {
            instance: header.instance,
            named: names.all(),
            leaving: names.leaving(),
            unused: names.next_numbers().0,
            ending,
        })
    }

    /// Whether a file without a name had one that was removed: where the journal is damaged, only its name
    /// may be lost.
    pub fn was_removed(&self, inode: Inode) -> bool {
        let is_damaged = matches!(self.ending, Ending::Damaged { .. });
        self.leaving.contains(&inode) || (inode < self.unused && !is_damaged)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::change::Change;
    use crate::journal::SegmentHeader;
    use crate::{Kind, Layout, Message, OpenNumber, SessionId};

    fn journal(changes: Vec<Change>) -> Vec<Vec<u8>> {
        let header = SegmentHeader { instance: 7, incarnation: 1, first: 1, checkpoint_bytes: 0 };
        let header = header.encode();
        let records = changes.into_iter().zip(1u64..).map(|(change, sequence)| {
            let changes = vec![change];
            Record { sequence, asked: None, answer: Message::Done, changes }.encode(sequence - 1)
        });
        std::iter::once(header).chain(records).collect()
    }

    fn paths(inventory: &Inventory) -> Vec<&str> {
        inventory.named.keys().map(|path| std::str::from_utf8(path).unwrap()).collect()
    }

    #[test]
    fn a_journal_gives_names_and_what_is_on_its_way_out() {
        let remove = |name: &str| Change::Remove { parent: Inode(1), name: name.into() };
        let open = |inode| Change::Open {
            open: OpenNumber(1),
            inode: Inode(inode),
            session: SessionId(5),
        };
        let parts = journal(vec![
            Change::of_create(1, "d", 2, Kind::Directory),
            Change::of_create(2, "x", 3, Kind::File),
            Change::of_create(1, "open", 4, Kind::File),
            Change::of_create(1, "gone", 5, Kind::File),
            Change::of_create(1, "discarded", 6, Kind::File),
            open(4),
            remove("open"),
            remove("gone"),
            remove("discarded"),
            Change::Discarded { inode: Inode(6) },
        ]);
        let inventory = Inventory::of_journal(&parts.concat()).unwrap();
        assert_eq!(paths(&inventory), ["/d", "/d/x"]);
        assert_eq!(inventory.leaving, BTreeSet::from([Inode(4), Inode(5)]));
        assert_eq!((inventory.instance, inventory.unused), (7, Inode(7)));
        assert_eq!(inventory.ending, Ending::Whole);
        assert_eq!(inventory.named[b"/d/x".as_slice()].layout, Some(Layout::usual(2)));
    }

    #[test]
    fn a_torn_end_costs_nothing_and_a_damaged_record_only_itself() {
        let file = |name: &str, inode| Change::of_create(1, name, inode, Kind::File);
        let parts = journal(vec![file("a", 2), file("b", 3), file("c", 4), file("d", 5)]);
        let mut torn = parts.concat();
        torn.truncate(torn.len() - 9);
        let left = parts[4].len() as u64 - 9;
        let inventory = Inventory::of_journal(&torn).unwrap();
        assert_eq!(paths(&inventory), ["/a", "/b", "/c"]);
        assert_eq!(inventory.ending, Ending::Torn { bytes: left });

        let mut damaged = parts.concat();
        let second = parts[0].len() + parts[1].len();
        damaged[second + 40] ^= 1;
        let inventory = Inventory::of_journal(&damaged).unwrap();
        assert_eq!(paths(&inventory), ["/a", "/c", "/d"]);
        assert_eq!(inventory.ending, Ending::Damaged { first: 2, records: 1 });
    }
}
