//! What is done with a member's bytes and attributes while it is one.

use super::Members;
use crate::open::Hosted;
use crate::tree::{Answer, Inode};
use rustix::fs::OFlags;

impl Members {
    /// Whether a file of that length is none for a container.
    pub(crate) fn is_too_long(&self, bytes: u64) -> bool {
        bytes > self.settings.largest_bytes
    }

    /// Opens a member, as it is wanted, while it stays one; nothing if it is none.
    pub(crate) fn opens<T>(
        &self,
        inode: &Inode,
        wanted: OFlags,
        open: impl FnOnce() -> Answer<T>,
    ) -> Answer<Option<T>> {
        let Some(member) = &inode.member else { return Ok(None) };
        let truncates = wanted.contains(OFlags::TRUNC);
        if truncates || wanted.intersects(OFlags::WRONLY | OFlags::RDWR) {
            self.may_change(inode)?;
        }
        let Some(mut body) = member.body() else { return Ok(None) };
        if !truncates {
            self.load(member, &mut body, inode)?;
        } else {
            let before = inode.stat()?.st_size as u64;
            rustix::fs::ftruncate(inode, 0)?;
            member.changes();
            body.is_absent = false;
            self.recount(member, &mut body, 0);
            body.came(0..before);
            self.note_dirty(member.id);
        }
        open().map(Some)
    }

    /// Changes something about a member, or about its bytes, while it stays one; nothing if it is none.
    pub(crate) fn hold<T>(
        &self,
        inode: &Inode,
        needs_bytes: bool,
        change: impl FnOnce() -> Answer<T>,
    ) -> Answer<Option<T>> {
        let Some(member) = &inode.member else { return Ok(None) };
        self.may_change(inode)?;
        let Some(mut body) = member.body() else { return Ok(None) };
        if needs_bytes {
            self.load(member, &mut body, inode)?;
        }
        member.changes();
        let before = inode.stat()?.st_size as u64;
        let changed = change();
        let after = inode.stat()?.st_size as u64;
        if !body.is_absent {
            self.recount(member, &mut body, after);
        }
        if after < before {
            // Where it grows again, there are zeros, and the container may know of other bytes.
            body.came(after..before);
        }
        self.note_dirty(member.id);
        changed.map(Some)
    }

    /// Writes to a member, or makes a real file of it where it would be too long; nothing if it is none.
    pub(crate) fn write(
        &self,
        hosted: &Hosted,
        inode: &Inode,
        (offset, length, appends): (u64, u64, bool),
        write: impl FnOnce() -> Answer<usize>,
    ) -> Answer<Option<usize>> {
        let Some(member) = &inode.member else { return Ok(None) };
        {
            let Some(mut body) = member.body() else { return Ok(None) };
            let size = inode.stat()?.st_size as u64;
            let offset = if appends { size } else { offset };
            let is_short = offset.checked_add(length).is_some_and(|end| !self.is_too_long(end));
            // Without a name it is in nobody's way, and no real file can be made of it.
            if is_short || !member.has_name() {
                self.load(member, &mut body, inode)?;
                member.changes();
                let moved = write()?;
                let end = offset + moved as u64;
                // What lies between the old end and this is zeros, which the container knows by itself.
                body.came(offset..end);
                let after = inode.stat()?.st_size as u64;
                self.recount(member, &mut body, after);
                self.note_dirty(member.id);
                return Ok(Some(moved));
            }
        }
        self.materialise(hosted, inode)?;
        match inode.member.as_ref().is_some_and(|member| member.is_real()) {
            true => Ok(None),
            // It has lost its name meanwhile.
            false => write().map(Some),
        }
    }

    pub(super) fn recount(&self, member: &super::Member, body: &mut super::body::Body, size: u64) {
        if member.has_name() {
            self.count_bytes(std::mem::replace(&mut body.size, size), size);
        }
    }
}
