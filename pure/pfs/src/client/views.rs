//! The views of a client: which are stored where.
//!
//! A view is stored at a server together with the first access through it. It is soft state there: a server
//! that has forgotten it says so, and gets it again.

use super::Party;
use crate::{Inode, Layout, Message, ViewNumber};
use iolab_pattern::Nest;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// Views of one file that are kept though no call uses them.
const IDLE_MAX: usize = 16;
/// An encoded view travels in parts of so many bytes.
const PART_BYTES: usize = 512 << 10;

#[derive(Debug)]
struct View {
    inode: Inode,
    layout: Layout,
    nest: Arc<Nest>,
    stored: BTreeSet<Party>,
    /// Calls that use it.
    uses: u32,
}

/// The views that calls have used.
#[derive(Debug, Default)]
pub(super) struct Views {
    of: BTreeMap<ViewNumber, View>,
    last: u32,
}

impl Views {
    /// The number of a view that a call uses from now on.
    pub(super) fn take(&mut self, inode: Inode, layout: Layout, nest: &Arc<Nest>) -> ViewNumber {
        let is_it = |view: &View| {
            view.inode == inode && (Arc::ptr_eq(&view.nest, nest) || view.nest == *nest)
        };
        if let Some((&number, view)) = self.of.iter_mut().find(|(_, view)| is_it(view)) {
            view.uses += 1;
            return number;
        }
        self.last += 1;
        let (nest, stored) = (nest.clone(), BTreeSet::new());
        let number = ViewNumber(self.last);
        self.of.insert(number, View { inode, layout, nest, stored, uses: 1 });
        number
    }

    /// A call does not use it any more. Gives what is not kept, and where that is stored.
    pub(super) fn give_back(&mut self, number: ViewNumber) -> Vec<(ViewNumber, BTreeSet<Party>)> {
        let Some(view) = self.of.get_mut(&number) else { return Vec::new() };
        view.uses -= 1;
        let inode = view.inode;
        let idle = |view: &View| view.inode == inode && view.uses == 0;
        let idle: Vec<ViewNumber> =
            self.of.iter().filter(|(_, view)| idle(view)).map(|(&number, _)| number).collect();
        let over = idle.len().saturating_sub(IDLE_MAX);
        self.remove(idle.into_iter().take(over))
    }

    /// A file is closed. Gives its views that no call uses, and where they are stored.
    pub(super) fn close(&mut self, inode: Inode) -> Vec<(ViewNumber, BTreeSet<Party>)> {
        let idle = |view: &View| view.inode == inode && view.uses == 0;
        let idle: Vec<ViewNumber> =
            self.of.iter().filter(|(_, view)| idle(view)).map(|(&number, _)| number).collect();
        self.remove(idle)
    }

    fn remove(
        &mut self,
        numbers: impl IntoIterator<Item = ViewNumber>,
    ) -> Vec<(ViewNumber, BTreeSet<Party>)> {
        let take = |number| Some((number, self.of.remove(&number)?.stored));
        numbers.into_iter().filter_map(take).collect()
    }

    /// A party has forgotten everything.
    pub(super) fn forgotten(&mut self, by: Party) {
        for view in self.of.values_mut() {
            view.stored.remove(&by);
        }
    }

    /// A party does not have a view.
    pub(super) fn unknown(&mut self, number: ViewNumber, to: Party) {
        if let Some(view) = self.of.get_mut(&number) {
            view.stored.remove(&to);
        }
    }

    /// The messages that store a view at a party, none if it has it.
    pub(super) fn store(&mut self, number: ViewNumber, at: Party) -> Vec<Message> {
        let Some(view) = self.of.get_mut(&number) else { return Vec::new() };
        if !view.stored.insert(at) {
            return Vec::new();
        }
        let mut encoded = Vec::new();
        view.nest.encode(&mut encoded);
        let (inode, layout, total) = (view.inode, view.layout, encoded.len() as u32);
        let part = |(index, part): (usize, &[u8])| Message::SetView {
            view: number,
            inode,
            layout,
            offset: (index * PART_BYTES) as u32,
            total,
            part: part.to_vec(),
        };
        encoded.chunks(PART_BYTES).enumerate().map(part).collect()
    }
}
