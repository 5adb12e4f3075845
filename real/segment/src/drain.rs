//! Writing out what another process holds: it is alive and someone looks at the file, or it died.

use crate::attach::Run;
use crate::layout::Entry;
use crate::slab::{NO_BASE, Slab};
use crate::system::{self, Descriptor};
use std::ffi::CStr;
use std::fmt;
use std::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release};

/// Held bytes that could not be written out. They stay where they are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unwritten {
    /// Where the file was last seen; empty when nobody said.
    pub path: Vec<u8>,
    /// How many bytes.
    pub bytes: u64,
    /// Why.
    pub errno: i32,
}

impl fmt::Display for Unwritten {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let path = String::from_utf8_lossy(&self.path);
        let why = std::io::Error::from_raw_os_error(self.errno);
        write!(f, "{} bytes of {path} could not be written out: {why}", self.bytes)
    }
}

/// Why a file is not as its program believes it to be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Undrained {
    /// Its owner does not come out of a call.
    Busy,
    /// What is held could not be written out.
    Unwritten(Unwritten),
}

impl Run {
    /// Writes out what the owner of an entry holds, whoever it is, and has it look up at its next
    /// call: others use the file now, or look at it.
    ///
    /// # Errors
    /// When that could not be done; then what is held stays held.
    pub fn disturb(&self, entry: &Entry) -> Result<(), Undrained> {
        let owner = entry.owner.load(Acquire);
        if owner == 0 {
            return Ok(());
        }
        let key = entry.key();
        let mut claim = self.claim(entry).ok_or(Undrained::Busy)?;
        if !entry.is(key.0, key.1) {
            return Ok(());
        }
        claim.tell();
        let owner = entry.owner.load(Acquire);
        let is_dead = owner != 0 && self.is_dead(owner);
        let written = self.write_out(entry, if is_dead { 0 } else { owner });
        if is_dead && written.is_ok() {
            self.clear_owner(entry);
        }
        written.map_err(Undrained::Unwritten)
    }

    /// Writes out what any process holds.
    ///
    /// # Errors
    /// What could not be written out.
    pub fn disturb_all(&self) -> Vec<Undrained> {
        let holds = |entry: &&Entry| entry.is_used() && entry.holds.load(Relaxed) != 0;
        let mut failures = Vec::new();
        for entry in self.table().entries.iter().filter(holds) {
            failures.extend(self.disturb(entry).err());
        }
        failures
    }

    /// The launcher goes: nobody holds anything any more.
    ///
    /// # Errors
    /// What could not be written out.
    pub fn close(&self) -> Vec<Undrained> {
        self.table().header.closing.store(1, Release);
        let owned = |entry: &&Entry| entry.is_used() && entry.owner.load(Relaxed) != 0;
        let entries = self.table().entries.iter();
        entries.filter(owned).filter_map(|entry| self.disturb(entry).err()).collect()
    }

    /// The process that makes the rest of the run's ends its own: after a launcher that was killed.
    pub fn inherit(&self) {
        self.table().header.launcher.store(system::own_pid(), Relaxed);
        self.table().processes[0].pid.store(system::own_pid(), Relaxed);
        self.slot.store(1, Relaxed);
    }

    /// Notes whether bytes of the entry's file are held.
    pub fn note_held(&self, entry: &Entry, holds: bool) {
        if entry.holds.swap(u32::from(holds), AcqRel) != u32::from(holds) {
            match holds {
                true => self.table().header.holding.fetch_add(1, AcqRel),
                false => self.table().header.holding.fetch_sub(1, AcqRel),
            };
        }
    }

    fn write_out(&self, entry: &Entry, living_owner: u32) -> Result<(), Unwritten> {
        // Lower stages first: what an upper one holds is newer.
        let slabs = entry.slabs.iter().rev().filter_map(|word| {
            let index = word.load(Acquire).checked_sub(1)?;
            self.slab(index).filter(|slab| !slab.is_empty())
        });
        let slabs: Vec<Slab> = slabs.collect();
        let Some(top) = slabs.last() else {
            self.note_held(entry, false);
            return Ok(());
        };
        let bytes = || slabs.iter().flat_map(|slab| slab.held().0).map(|held| held.length).sum();
        let failed = |errno| Unwritten { path: top.path(), bytes: bytes(), errno };
        let file = self.reopen(entry, living_owner, top).map_err(failed)?;
        for slab in &slabs {
            write_slab(slab, &file).map_err(failed)?;
        }
        slabs.iter().for_each(Slab::clear);
        self.note_held(entry, false);
        Ok(())
    }

    /// The file, by the owner's own descriptor while it lives, or by where it was last seen.
    fn reopen(&self, entry: &Entry, living_owner: u32, slab: &Slab) -> Result<Descriptor, i32> {
        let is_it = |file: &Descriptor| {
            file.status().is_some_and(|status| (status.st_dev, status.st_ino) == entry.key())
        };
        let number = entry.descriptor.load(Acquire);
        if let Some(pid) = self.pid_of(living_owner).filter(|_| number >= 0)
            && let Ok(file) = by_owner(pid, number as u32)
            && is_it(&file)
        {
            return Ok(file);
        }
        let mut path = slab.path();
        path.push(0);
        let path = CStr::from_bytes_until_nul(&path).map_err(|_| libc::ENOENT)?;
        let file = Descriptor::open(path, libc::O_WRONLY | libc::O_NOFOLLOW)?;
        if is_it(&file) { Ok(file) } else { Err(libc::ESTALE) }
    }
}

fn by_owner(pid: u32, number: u32) -> Result<Descriptor, i32> {
    let mut path = [0u8; 40];
    let mut end = 0;
    let (mut a, mut b) = ([0; 10], [0; 10]);
    for part in
        [&b"/proc/"[..], system::decimal(pid, &mut a), b"/fd/", system::decimal(number, &mut b)]
    {
        path[end..end + part.len()].copy_from_slice(part);
        end += part.len();
    }
    let path = CStr::from_bytes_until_nul(&path).map_err(|_| libc::ENOENT)?;
    Descriptor::open(path, libc::O_WRONLY)
}

/// Writing a second time what a first one has begun comes to the same: extents have their place,
/// and what is appended begins at the size the file had before.
fn write_slab(slab: &Slab, file: &Descriptor) -> Result<(), i32> {
    let (held, appending) = slab.held();
    let mut append_at = 0;
    if appending {
        let base = slab.base();
        if base.load(Acquire) == NO_BASE {
            base.store(file.status().ok_or(libc::EIO)?.st_size as u64, Release);
        }
        append_at = base.load(Acquire);
    }
    for piece in held {
        let from = slab.staging().wrapping_add(piece.at as usize);
        let offset = if appending { append_at } else { piece.offset };
        // SAFETY: the piece lies in the staging memory of the slab.
        unsafe { file.write_all(from, piece.length, offset)? };
        append_at += piece.length;
    }
    Ok(())
}
