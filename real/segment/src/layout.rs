//! What lies where in the segment. Version 2; `docs/design/0006-the-run-segment.md` tells why.

use std::sync::atomic::{AtomicI32, AtomicU32, AtomicU64, Ordering::Relaxed};

pub(crate) const MAGIC: u64 = u64::from_le_bytes(*b"iolabrun");
pub(crate) const VERSION: u32 = 2;
/// Processes at a time that have files open.
pub(crate) const PROCESSES: usize = 1024;
/// Files at a time that are open in any process.
pub(crate) const ENTRIES: usize = 4096;
/// An entry lies within this many places from where its key points.
pub(crate) const WINDOW: usize = 64;
/// Stages of staging memory at a time.
pub(crate) const SLABS: usize = 2048;
/// Processes an entry can name; more make it crowded.
pub(crate) const USERS: usize = 6;
/// Stages of one stack that may hold bytes back.
pub const STAGES: usize = 4;
/// Of the largest pages this processor has, so that every place is at the beginning of one.
pub(crate) const PAGE: u64 = iolab_processor::PAGE_BYTES_MAX as u64;

/// The first words of the segment.
#[repr(C, align(64))]
pub(crate) struct Header {
    pub(crate) magic: AtomicU64,
    pub(crate) version: AtomicU32,
    pub(crate) launcher: AtomicU32,
    pub(crate) pid_namespace: AtomicU64,
    /// Staging memory in each slab.
    pub(crate) staging_bytes: AtomicU64,
    /// Records in each of a slab's two lists.
    pub(crate) records: AtomicU64,
    /// Owners cannot be made to listen: they have to look up at each call.
    pub(crate) strict: AtomicU32,
    /// Entries of which bytes are held.
    pub(crate) holding: AtomicU32,
    /// The launcher has gone: nothing is held any more.
    pub(crate) closing: AtomicU32,
    /// More is open than the tables can tell: nothing is held any more.
    pub(crate) crowded: AtomicU32,
    /// How often a name was changed.
    pub(crate) names: AtomicU32,
    /// Who changes the table of entries.
    pub(crate) table: AtomicU32,
    /// Who gives up what dead processes had.
    pub(crate) sweeper: AtomicU32,
    pub(crate) processes_used: AtomicU32,
    /// Some entry is [`Entry::wanted`].
    pub(crate) wanted: AtomicU32,
    /// What names mean to the launcher: its space of mounts, and its root by device and inode.
    pub(crate) names_in: [AtomicU64; 3],
}

/// A process that has files open. Slot 0 is the launcher's.
#[repr(C)]
pub(crate) struct Process {
    /// 0 free.
    pub(crate) pid: AtomicU32,
    /// 1: of another process number space, so nobody can tell whether it lives.
    pub(crate) is_foreign: AtomicU32,
    /// 1: names may mean other files there than to the launcher.
    pub(crate) sees_otherwise: AtomicU32,
    /// Its calls under way that change names.
    pub(crate) moving: AtomicU32,
    /// When it came here, in nanoseconds since the system's start: a process of that number that
    /// started later is another one.
    pub(crate) since: AtomicU64,
}

/// A file that a process of the run has open.
#[repr(C, align(128))]
pub struct Entry {
    pub(crate) device: AtomicU64,
    pub(crate) inode: AtomicU64,
    /// Generation in the upper half; below, who has claimed the entry (slot + 1).
    pub(crate) word: AtomicU64,
    /// [`State`].
    pub(crate) state: AtomicU32,
    /// Who may hold bytes of it (slot + 1).
    pub(crate) owner: AtomicU32,
    /// The owner is inside a call.
    pub(crate) inside: AtomicU32,
    /// The owner's own descriptor.
    pub(crate) descriptor: AtomicI32,
    /// Counted in `holding`.
    pub(crate) holds: AtomicU32,
    /// More processes have it open than are named below.
    pub(crate) crowd: AtomicU32,
    /// [`Wanted`].
    pub(crate) wanted: AtomicU32,
    /// Slabs of the stages that hold, top first (index + 1).
    pub(crate) slabs: [AtomicU32; STAGES],
    /// Who has it open: slot + 1, opens, mappings; 16 bits each.
    pub(crate) users: [AtomicU64; USERS],
}

/// Whether bytes of a file are held.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub(crate) enum Holds {
    /// None are.
    Nothing,
    /// The first ones, by a call that has not returned.
    Begun,
    /// Some are.
    Some,
}

/// What a process that cannot write out by itself asks the launcher for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub(crate) enum Wanted {
    /// Nothing, or it is done.
    Nothing,
    /// To write out what is held.
    Out,
    /// The launcher is at it.
    Working,
    /// It was tried in vain.
    Refused,
}

/// What an entry is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub(crate) enum State {
    Free,
    Used,
}

/// The part of the segment that every process maps.
#[repr(C)]
pub(crate) struct Table {
    pub(crate) header: Header,
    pub(crate) processes: [Process; PROCESSES],
    /// Owner of each slab (slot + 1).
    pub(crate) slabs: [AtomicU32; SLABS],
    /// What each entry is about, mixed into one word, so that looking for one touches few lines of
    /// memory; 0 when it is free.
    pub(crate) tags: [AtomicU64; ENTRIES],
    pub(crate) entries: [Entry; ENTRIES],
}

pub(crate) const TABLE_BYTES: u64 = (size_of::<Table>() as u64).next_multiple_of(PAGE);

/// One user of an entry.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct User {
    pub(crate) slot: u16,
    pub(crate) opens: u16,
    pub(crate) maps: u16,
}

impl User {
    pub(crate) fn of(word: u64) -> User {
        User { slot: word as u16, opens: (word >> 16) as u16, maps: (word >> 32) as u16 }
    }

    pub(crate) fn word(self) -> u64 {
        u64::from(self.slot) | u64::from(self.opens) << 16 | u64::from(self.maps) << 32
    }
}

impl Entry {
    pub(crate) fn is_used(&self) -> bool {
        self.state.load(Relaxed) == State::Used as u32
    }

    pub(crate) fn is(&self, device: u64, inode: u64) -> bool {
        self.inode.load(Relaxed) == inode && self.device.load(Relaxed) == device && self.is_used()
    }

    pub(crate) fn key(&self) -> (u64, u64) {
        (self.device.load(Relaxed), self.inode.load(Relaxed))
    }

    /// Everybody that has it open.
    pub(crate) fn users(&self) -> impl Iterator<Item = (&AtomicU64, User)> {
        let named = self.users.iter().map(|word| (word, User::of(word.load(Relaxed))));
        named.filter(|(_, user)| user.slot != 0)
    }

    /// Whether anybody but process `me` (slot + 1) uses the file, or anybody has it mapped.
    pub(crate) fn is_shared(&self, me: u32) -> bool {
        self.crowd.load(Relaxed) != 0
            || self.users().any(|(_, user)| u32::from(user.slot) != me || user.maps > 0)
    }
}

const _: () = assert!(size_of::<Entry>() == 128);
