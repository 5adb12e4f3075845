//! The views that a session has stored.

use crate::plant::{Plant, is_planted};
use crate::{Inode, Layout, ViewNumber};
use iolab_pattern::Nest;
use std::collections::BTreeMap;
use std::sync::Arc;

/// A stored view.
#[derive(Clone, Debug)]
pub(crate) struct View {
    pub(crate) inode: Inode,
    pub(crate) layout: Layout,
    pub(crate) nest: Arc<Nest>,
    /// Encoded.
    bytes: u64,
}

/// A view of which some parts have come.
#[derive(Debug)]
struct Coming {
    view: ViewNumber,
    inode: Inode,
    layout: Layout,
    encoded: Vec<u8>,
}

/// Those of one session.
#[derive(Debug, Default)]
pub(crate) struct Views {
    of: BTreeMap<ViewNumber, View>,
    /// All of them, encoded.
    bytes: u64,
    coming: Option<Coming>,
}

impl Views {
    pub(crate) fn get(&self, number: ViewNumber) -> Option<&View> {
        self.of.get(&number)
    }

    pub(crate) fn forget(&mut self, number: ViewNumber) {
        if let Some(view) = self.of.remove(&number) {
            self.bytes -= view.bytes;
        }
    }

    /// Forgets the oldest views until no more than so many bytes are left: who still needs one is told that
    /// it is unknown, and sends it again.
    fn make_room(&mut self, bytes: u64) {
        while self.bytes > bytes
            && let Some((_, view)) = self.of.pop_first()
        {
            self.bytes -= view.bytes;
        }
    }

    /// Takes a part of a view; the answer is an error for people, if there is one.
    pub(crate) fn take_part(&mut self, part: Part, bytes_max: u64) -> Result<(), &'static str> {
        let Part { view, inode, layout, offset, total, bytes } = part;
        if offset == 0 {
            self.forget(view);
            self.coming = None;
            if u64::from(total) > bytes_max {
                return Err("the view is larger than what is stored of one session");
            }
            let is_full = u64::from(total) > bytes_max - self.bytes;
            if is_planted(Plant::ViewsKept) && is_full {
                return Err("the session has no room for more views");
            }
            self.make_room(bytes_max - u64::from(total));
            self.coming = Some(Coming { view, inode, layout, encoded: Vec::new() });
        }
        let Some(coming) = &mut self.coming else {
            return Err("a part of a view without its first");
        };
        let fits = coming.view == view
            && (coming.inode, coming.layout) == (inode, layout)
            && coming.encoded.len() == offset as usize
            && coming.encoded.len() + bytes.len() <= total as usize;
        if !fits {
            self.coming = None;
            return Err("parts of a view that do not belong together");
        }
        coming.encoded.extend(bytes);
        if coming.encoded.len() < total as usize {
            return Ok(());
        }
        let Some(Coming { encoded, .. }) = self.coming.take() else { return Ok(()) };
        let nest = Nest::decode(&encoded).map_err(|_| "a mangled nest")?;
        if !nest.proper() {
            return Err("a view whose offsets do not ascend");
        }
        let stored = View { inode, layout, nest: Arc::new(nest), bytes: u64::from(total) };
        self.bytes += stored.bytes;
        self.of.insert(view, stored);
        Ok(())
    }
}

/// A part of a view, as it comes.
pub(crate) struct Part {
    pub(crate) view: ViewNumber,
    pub(crate) inode: Inode,
    pub(crate) layout: Layout,
    pub(crate) offset: u32,
    pub(crate) total: u32,
    pub(crate) bytes: Vec<u8>,
}
