//! Who has which file open: every open and close of a regular file in any process of the run.
//!
//! A description that nobody told of (made before the library could see it, or closed past it)
//! leaves a file looking more shared than it is, never less.

use crate::attach::Run;
use crate::layout::{ENTRIES, Entry, State, User, WINDOW, Wanted};
use crate::meeting::before_looking;
use crate::system;
use std::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release};

/// What an open came to.
#[derive(Clone, Copy)]
pub struct Joined<'a> {
    /// The file's entry.
    pub entry: &'a Entry,
    /// This process alone has it open, and may hold bytes of it.
    pub is_owner: bool,
    /// What an owner has to expect of the entry: whoever opens the file after this shows there,
    /// however late the owner first looks.
    pub expected: u64,
}

/// The lock on the table lasts some 50 ns; one that lasts this many attempts (seconds) belongs to a
/// thread that was stopped or left in there.
const ATTEMPTS: u64 = 30_000;

struct TableLock<'a> {
    run: &'a Run,
    holder: u32,
}

impl Drop for TableLock<'_> {
    fn drop(&mut self) {
        // It may have been taken from a thread that was stopped in there for too long.
        let lock = &self.run.table().header.table;
        let _ = lock.compare_exchange(self.holder, 0, Release, Relaxed);
    }
}

impl Run {
    fn lock_table(&self) -> TableLock<'_> {
        let lock = &self.table().header.table;
        let me = self.me();
        for attempt in 0u64.. {
            let holder = lock.load(Relaxed);
            let is_lost = (attempt % 1024 == 1023 && self.is_dead(holder)) || attempt > ATTEMPTS;
            if (holder == 0 || is_lost)
                && lock.compare_exchange(holder, me, AcqRel, Relaxed).is_ok()
            {
                break;
            }
            system::pause(attempt);
        }
        TableLock { run: self, holder: me }
    }

    /// Where the entry of a file may be.
    fn window(tag: u64) -> impl Iterator<Item = usize> {
        let first = (tag >> 40) as usize;
        (0..WINDOW).map(move |step| (first + step) % ENTRIES)
    }

    /// The entry of a file, if any process has it open.
    pub fn find(&self, device: u64, inode: u64) -> Option<&Entry> {
        let (tags, entries) = (&self.table().tags, &self.table().entries);
        let tag = tag_of(device, inode);
        Run::window(tag)
            .filter(|&at| tags[at].load(Acquire) == tag)
            .map(|at| &entries[at])
            .find(|entry| entry.is(device, inode))
    }

    /// The entry of that index.
    pub fn entry(&self, index: u32) -> Option<&Entry> {
        self.table().entries.get(index as usize)
    }

    /// The index of an entry.
    pub fn index_of(&self, entry: &Entry) -> u32 {
        let first = self.table().entries.as_ptr() as usize;
        ((&raw const *entry as usize - first) / size_of::<Entry>()) as u32
    }

    /// This process has opened the file. With `wants_to_own`, it becomes the owner if nobody else
    /// has it open. `None` when the tables are full; then nothing is held in the run any more.
    /// The caller disturbs what another owner holds.
    pub fn join(&self, device: u64, inode: u64, wants_to_own: bool) -> Option<Joined<'_>> {
        let me = self.me();
        if me == 0 {
            return None;
        }
        let can_own = wants_to_own && self.can_own();
        let lock = self.lock_table();
        let Some(entry) = self.find(device, inode).or_else(|| self.free_entry(device, inode))
        else {
            self.table().header.crowded.store(1, Release);
            return None;
        };
        self.forget_dead_users(entry, me);
        change_user(entry, me, |user| user.opens = user.opens.saturating_add(1));
        let owner = entry.owner.load(Relaxed);
        let is_alone = !entry.is_shared(me) && (owner == 0 || owner == me);
        let is_owner = can_own && is_alone && !self.must_pass();
        if is_owner {
            entry.owner.store(me, Release);
        }
        let expected = entry.expected();
        drop(lock);
        Some(Joined { entry, is_owner, expected })
    }

    fn free_entry(&self, device: u64, inode: u64) -> Option<&Entry> {
        let (tags, entries) = (&self.table().tags, &self.table().entries);
        let tag = tag_of(device, inode);
        let at = Run::window(tag)
            .find(|&at| tags[at].load(Relaxed) == 0)
            .or_else(|| Run::window(tag).find(|&at| is_unused(&entries[at])))?;
        let entry = &entries[at];
        entry.state.store(State::Free as u32, Release);
        entry.device.store(device, Relaxed);
        entry.inode.store(inode, Relaxed);
        entry.crowd.store(0, Relaxed);
        entry.inside.store(0, Relaxed);
        entry.descriptor.store(-1, Relaxed);
        entry.wanted.store(Wanted::Nothing as u32, Relaxed);
        entry.users.iter().for_each(|user| user.store(0, Relaxed));
        entry.slabs.iter().for_each(|slab| slab.store(0, Relaxed));
        entry.state.store(State::Used as u32, Release);
        tags[at].store(tag, Release);
        Some(entry)
    }

    /// One descriptor more or less of a file, whose entry is known.
    pub fn share(&self, entry: &Entry) {
        let me = self.me();
        if me != 0 {
            let _lock = self.lock_table();
            change_user(entry, me, |user| user.opens = user.opens.saturating_add(1));
        }
    }

    /// A descriptor of the file was closed.
    pub fn part(&self, entry: &Entry) {
        let me = self.me();
        if me != 0 {
            let _lock = self.lock_table();
            change_user(entry, me, |user| {
                if user.opens < u16::MAX {
                    user.opens = user.opens.saturating_sub(1);
                }
            });
            self.free_if_unused(entry);
        }
    }

    /// The file was mapped, or a mapping went away.
    pub fn map(&self, entry: &Entry, is_mapped: bool) {
        let me = self.me();
        if me != 0 {
            let _lock = self.lock_table();
            change_user(entry, me, |user| {
                user.maps = match is_mapped {
                    true => user.maps.saturating_add(1),
                    false => user.maps.saturating_sub(1),
                }
            });
            self.free_if_unused(entry);
        }
    }

    /// Whether another process has the file open, or any has it mapped.
    pub fn is_shared(&self, entry: &Entry) -> bool {
        entry.is_shared(self.me())
    }

    /// Tells where the owner's stages hold bytes, top first.
    pub fn show_slabs(&self, entry: &Entry, slabs: &[u32]) {
        for (word, slab) in entry.slabs.iter().zip(slabs) {
            word.store(*slab, Release);
        }
    }

    /// Tells by which of its descriptors the owner's file can be reached.
    pub fn show_descriptor(&self, entry: &Entry, fd: i32) {
        entry.descriptor.store(fd, Release);
    }

    /// Whether another process may hold bytes of the file.
    pub fn is_owned_elsewhere(&self, entry: &Entry) -> bool {
        let owner = entry.owner.load(Acquire);
        owner != 0 && owner != self.slot.load(Relaxed)
    }

    /// How often names were changed so far.
    pub fn names(&self) -> u32 {
        self.table().header.names.load(Relaxed)
    }

    /// More is open than can be told: nobody begins to hold bytes any more. Who looks for holders
    /// after this finds all there will be; who holds the first bytes looks here after saying so.
    pub fn give_up_holding(&self) {
        self.table().header.crowded.store(1, Release);
        before_looking();
    }

    /// The owner holds no bytes and will not again.
    pub fn disown(&self, entry: &Entry) {
        let _lock = self.lock_table();
        if entry.owner.load(Relaxed) == self.me() {
            self.clear_owner(entry);
            self.free_if_unused(entry);
        }
    }

    /// Takes from an entry the traces of its owner, who holds nothing any more.
    pub(crate) fn clear_owner(&self, entry: &Entry) {
        for slab in &entry.slabs {
            self.free_slab(slab.swap(0, AcqRel));
        }
        entry.inside.store(0, Relaxed);
        entry.descriptor.store(-1, Relaxed);
        entry.owner.store(0, Release);
    }

    fn free_if_unused(&self, entry: &Entry) {
        if is_unused(entry) {
            self.table().tags[self.index_of(entry) as usize].store(0, Release);
            entry.state.store(State::Free as u32, Release);
        }
    }

    fn forget_dead_users(&self, entry: &Entry, me: u32) {
        for (word, user) in entry.users() {
            let slot = u32::from(user.slot);
            if slot != me && entry.owner.load(Relaxed) != slot && self.is_dead(slot) {
                word.store(0, Relaxed);
            }
        }
    }

    /// A dead process no longer uses the file.
    pub(crate) fn forget_user(&self, entry: &Entry, slot: u32, pid: u32) {
        if !entry.users().any(|(_, user)| u32::from(user.slot) == slot) {
            return;
        }
        let _lock = self.lock_table();
        let is_same = self.process(slot).is_some_and(|it| it.pid.load(Acquire) == pid);
        if is_same {
            let users = entry.users().filter(|(_, user)| u32::from(user.slot) == slot);
            users.for_each(|(word, _)| word.store(0, Relaxed));
            self.free_if_unused(entry);
        }
    }
}

/// Changes what an entry says of a process. Inside the table's lock.
fn change_user(entry: &Entry, me: u32, change: impl FnOnce(&mut User)) {
    let mine = entry.users().find(|(_, user)| u32::from(user.slot) == me);
    let free = || entry.users.iter().find(|word| word.load(Relaxed) == 0);
    let (word, mut user) = match mine {
        Some((word, user)) => (word, user),
        None => match free() {
            Some(word) => (word, User { slot: me as u16, ..User::default() }),
            None => return entry.crowd.store(1, Release),
        },
    };
    change(&mut user);
    let is_gone = user.opens == 0 && user.maps == 0;
    word.store(if is_gone { 0 } else { user.word() }, Release);
}

fn is_unused(entry: &Entry) -> bool {
    entry.crowd.load(Relaxed) == 0
        && entry.holds.load(Relaxed) == 0
        && entry.owner.load(Relaxed) == 0
        && entry.word.load(Relaxed) as u32 == 0
        && entry.users().next().is_none()
}

/// Mixes an inode's two numbers; never 0.
fn tag_of(device: u64, inode: u64) -> u64 {
    (inode ^ device.rotate_left(32)).wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1
}
