//! Who is staged: descriptor → open file description → file, in fixed tables.
//!
//! The way of a data call is two loads and no lock of the tables. Changes (open, close, dup) are
//! made under one lock with signals blocked, so a signal handler never finds the tables half
//! changed. Lock order: the tables, then a file; whoever holds a file's lock never asks for the
//! tables. Full tables mean that a file is not staged, never an error.
//!
//! Descriptors that are not staged but may lead to a staged file all the same (inherited, opened
//! with `O_SYNC`, left over after a fork) are found by inode: a filter of a few kilobytes says
//! "surely not" for nearly all of them.

use super::late::LateCalls;
use super::lock::Lock;
use super::machine::Machine;
use super::{kernel, own, shared};
use Ordering::Relaxed;
use iolab_policy::insitu::{Handle, Interest};
use iolab_segment::{Entry, Joined, Run};
use std::cell::UnsafeCell;
use std::ffi::c_int;
use std::ptr::null_mut;
use std::sync::atomic::{
    AtomicBool, AtomicI32, AtomicPtr, AtomicU8, AtomicU32, AtomicU64, Ordering,
};

const DESCRIPTORS: usize = 65_536;
const DESCRIPTIONS: usize = 8_192;
const FILES: usize = 4_096;
const FILTER: usize = 4_096;

/// Description of each descriptor plus one; 0 for a descriptor that is not staged.
static DESCRIPTOR: [AtomicU32; DESCRIPTORS] = [const { AtomicU32::new(0) }; DESCRIPTORS];
/// Key of the inode of a descriptor that is not staged; 0 not looked at, 1 no regular file.
static FOREIGN: [AtomicU64; DESCRIPTORS] = [const { AtomicU64::new(0) }; DESCRIPTORS];
static DESCRIPTION: [Description; DESCRIPTIONS] = [const { Description::new() }; DESCRIPTIONS];
static FILE: [File; FILES] = [const { File::new() }; FILES];
/// How many staged files have a key that falls here.
static STAGED_BY_KEY: [AtomicU8; FILTER] = [const { AtomicU8::new(0) }; FILTER];
/// Files below this index have been used.
static FILES_USED: AtomicU32 = AtomicU32::new(0);
/// No descriptor from here on was ever staged.
static DESCRIPTOR_END: AtomicU32 = AtomicU32::new(0);
static STAGED_FILES: AtomicU32 = AtomicU32::new(0);
static HOLDING_FILES: AtomicU32 = AtomicU32::new(0);
static NEXT_HANDLE: AtomicU32 = AtomicU32::new(0);
static CHANGES: Lock = Lock::new();

/// An open file description that is staged.
pub(super) struct Description {
    /// Index of its file plus one; 0 when the entry is free.
    file: AtomicU32,
    handle: AtomicU32,
    descriptors: AtomicU32,
    /// The stage's own descriptor of it; of a file that borrows, the program's, as long as it is the only one.
    own: AtomicI32,
}

/// What a file's entry is used for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum State {
    /// Nothing.
    Free,
    /// Its calls go through its machine.
    Staged,
    /// Its calls pass until it is opened anew: others may use its descriptions as well.
    Released,
}

/// A file (inode) with staged descriptions.
pub(super) struct File {
    pub(super) lock: Lock,
    state: AtomicU8,
    holds: AtomicBool,
    /// Its machine answers reads from what it has read before.
    keeps: AtomicBool,
    /// Its machine can do with the program's descriptors.
    borrows: AtomicBool,
    /// What its strategies want to hear (`Interest`). All else passes without the lock.
    interest: AtomicU32,
    device: AtomicU64,
    inode: AtomicU64,
    descriptions: AtomicU32,
    /// Where the run is told what is held; null when nothing ever is.
    entry: AtomicPtr<Entry>,
    /// What the entry says as long as no other process comes.
    pub(super) expected: AtomicU64,
    /// Other processes cannot make this one listen.
    pub(super) looks_up: AtomicBool,
    /// The process has locked a part of it, which closing any descriptor of it would unlock.
    locked: AtomicBool,
    /// A failure to write out that the program has not been told of, after the release.
    pub(super) failure: AtomicI32,
    /// Calls a signal handler made while its own thread was inside.
    pub(super) late: LateCalls,
    machine: UnsafeCell<Option<Machine>>,
}

// SAFETY: `machine` is touched under `lock` only (`File::machine`).
unsafe impl Sync for File {}

/// A staged descriptor.
#[derive(Clone, Copy)]
pub(super) struct Staged {
    pub(super) file: &'static File,
    pub(super) handle: Handle,
    description: &'static Description,
}

impl Description {
    const fn new() -> Description {
        Description {
            file: AtomicU32::new(0),
            handle: AtomicU32::new(0),
            descriptors: AtomicU32::new(0),
            own: AtomicI32::new(-1),
        }
    }

    /// Its file; `None` when it was just given up.
    #[inline(always)]
    pub(super) fn file(&self) -> Option<&'static File> {
        FILE.get((self.file.load(Relaxed) as usize).wrapping_sub(1))
    }

    /// Itself and what it leads to.
    #[inline(always)]
    pub(super) fn staged(&'static self) -> Option<Staged> {
        let handle = Handle(self.handle.load(Relaxed));
        self.file().map(|file| Staged { file, handle, description: self })
    }
}

impl File {
    const fn new() -> File {
        File {
            lock: Lock::new(),
            state: AtomicU8::new(State::Free as u8),
            holds: AtomicBool::new(false),
            keeps: AtomicBool::new(false),
            borrows: AtomicBool::new(false),
            interest: AtomicU32::new(Interest::EVERYTHING.word()),
            device: AtomicU64::new(0),
            inode: AtomicU64::new(0),
            descriptions: AtomicU32::new(0),
            entry: AtomicPtr::new(null_mut()),
            expected: AtomicU64::new(0),
            looks_up: AtomicBool::new(true),
            locked: AtomicBool::new(false),
            failure: AtomicI32::new(0),
            late: LateCalls::new(),
            machine: UnsafeCell::new(None),
        }
    }

    #[inline]
    pub(super) fn leave(&self) {
        if let Some(entry) = self.entry() {
            entry.leave();
        }
        self.lock.leave();
    }

    /// Whether this thread is inside.
    pub(super) fn is_mine(&self) -> bool {
        self.lock.is_mine()
    }

    #[inline]
    pub(super) fn entry(&self) -> Option<&'static Entry> {
        // SAFETY: entries lie in the segment, which is never unmapped.
        unsafe { self.entry.load(Relaxed).as_ref() }
    }

    #[inline]
    pub(super) fn is_staged(&self) -> bool {
        self.state.load(Relaxed) == State::Staged as u8
    }

    /// A part of it is locked by this process.
    pub(super) fn note_lock(&self) {
        self.locked.store(true, Relaxed);
    }

    pub(super) fn is_locked(&self) -> bool {
        self.locked.load(Relaxed)
    }

    pub(super) fn is_released(&self) -> bool {
        self.state.load(Relaxed) == State::Released as u8
    }

    /// Whether calls of that kind must come in.
    #[inline(always)]
    pub(super) fn hears(&self, kind: Interest) -> bool {
        Interest::from_word(self.interest.load(Relaxed)).hears(kind)
    }

    /// From now on these calls must come in. Inside `lock`: whoever is told of a call that changed it
    /// finds it changed.
    #[inline]
    pub(super) fn publish(&self, interest: Interest) {
        if self.interest.load(Relaxed) != interest.word() {
            self.interest.store(interest.word(), Ordering::Release);
        }
    }

    #[inline]
    pub(super) fn holds(&self) -> bool {
        self.holds.load(Relaxed)
    }

    /// Whether its machine answers reads from what it has read before.
    #[inline]
    pub(super) fn keeps(&self) -> bool {
        self.keeps.load(Relaxed)
    }

    /// The machine of a staged file.
    ///
    /// # Safety
    /// The caller is inside `lock`, and this is the only reference taken there.
    #[inline]
    #[allow(clippy::mut_from_ref, reason = "the lock makes it unique")]
    pub(super) unsafe fn machine(&self) -> Option<&mut Machine> {
        if !self.is_staged() {
            return None;
        }
        // SAFETY: by this function's contract.
        unsafe { (*self.machine.get()).as_mut() }
    }

    /// Keeps the count of files that hold something back; false when nobody would find the file
    /// after the end of this process, so that it must not. Inside `lock`.
    #[must_use]
    pub(super) fn note_held(&self, held_bytes: u64) -> bool {
        let holds = held_bytes > 0;
        let mut is_found = true;
        if holds
            && !self.holds()
            // SAFETY: inside the lock; the reference ends here.
            && let Some(machine) = unsafe { self.machine() }
        {
            is_found = machine.show_path();
        }
        if self.holds() != holds {
            self.holds.store(holds, Relaxed);
            match holds {
                true => HOLDING_FILES.fetch_add(1, Relaxed),
                false => HOLDING_FILES.fetch_sub(1, Relaxed),
            };
            if let (Some(entry), Some(run)) = (self.entry(), shared::run()) {
                run.note_held(entry, holds);
            }
        }
        is_found
    }

    /// What is held now would be found after the end of this process. Inside `lock`.
    pub(super) fn confirm_held(&self) {
        if let (Some(entry), Some(run)) = (self.entry(), shared::run()) {
            run.confirm_held(entry);
        }
    }

    /// From now on calls pass. Inside `lock`; what was held is out.
    pub(super) fn set_released(&self) {
        if self.is_staged() {
            self.state.store(State::Released as u8, Relaxed);
            // A failure to write out is told by the next call that can.
            self.publish(Interest::EVERYTHING);
            let _nothing_to_find = self.note_held(0);
            self.leave_filter();
            // SAFETY: inside the lock; nobody refers to the machine once released.
            unsafe { *self.machine.get() = None };
            if let Some(entry) = self.entry() {
                self.entry.store(null_mut(), Relaxed);
                shared::disown(entry);
            }
        }
    }

    fn leave_filter(&self) {
        STAGED_BY_KEY[self.filter_index()].fetch_sub(1, Relaxed);
        STAGED_FILES.fetch_sub(1, Relaxed);
    }

    fn filter_index(&self) -> usize {
        key(self.device.load(Relaxed), self.inode.load(Relaxed)) as usize % FILTER
    }

    fn is(&self, device: u64, inode: u64) -> bool {
        self.inode.load(Relaxed) == inode
            && self.device.load(Relaxed) == device
            && self.state.load(Relaxed) != State::Free as u8
    }
}

impl Staged {
    /// Whether other descriptors share the description.
    pub(super) fn is_shared(&self) -> bool {
        self.description.descriptors.load(Relaxed) > 1
    }

    /// The stage's own descriptor, or what stands in for it.
    pub(super) fn own(&self) -> c_int {
        self.description.own.load(Relaxed)
    }

    /// Whether the program's descriptor stands in.
    fn is_borrowed(&self) -> bool {
        self.file.borrows.load(Relaxed) && !own::is_own(self.own())
    }
}

/// Mixes an inode's two numbers; never 0 or 1.
fn key(device: u64, inode: u64) -> u64 {
    let mixed = (inode ^ device.rotate_left(32)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    (mixed ^ mixed >> 29) | 2
}

/// The staging of a descriptor, whether its file is staged now or released.
#[inline(always)]
pub(super) fn lookup(fd: c_int) -> Option<Staged> {
    let word = DESCRIPTOR.get(fd as usize)?.load(Relaxed);
    if word == 0 || is_a_copy() {
        return None;
    }
    DESCRIPTION[word as usize - 1].staged()
}

/// The description of a descriptor, at an ordinary moment: in a copy of the process it is the parent's.
#[inline(always)]
pub(super) fn description(fd: c_int) -> Option<&'static Description> {
    let word = DESCRIPTOR.get(fd as usize)?.load(Relaxed) as usize;
    DESCRIPTION.get(word.wrapping_sub(1))
}

/// Whether this is a forked child that came past the hooks of `fork`: the tables are its parent's,
/// and what is held lies in memory they share. It gets tables of its own.
#[inline(always)]
fn is_a_copy() -> bool {
    let is_new = crate::process::is_new();
    if is_new {
        crate::process::enter_child();
    }
    is_new
}

/// The stage's own descriptor of a description.
pub(super) fn own_of(handle: Handle) -> Option<c_int> {
    let is_it = |entry: &&Description| {
        entry.file.load(Relaxed) != 0 && entry.handle.load(Relaxed) == handle.0
    };
    DESCRIPTION.iter().find(is_it).map(|entry| entry.own.load(Relaxed)).filter(|&own| own >= 0)
}

/// Takes the stage's own descriptors of a file out of its descriptions. Inside its lock.
pub(super) fn take_own(file: &'static File) -> impl Iterator<Item = c_int> {
    let is_of_file = move |it: &&Description| it.file.load(Relaxed) == index_of(file) + 1;
    DESCRIPTION.iter().filter(is_of_file).map(|it| it.own.swap(-1, Relaxed)).filter(|&own| own >= 0)
}

/// Whether any file is staged at all.
#[inline(always)]
pub(super) fn is_any_staged() -> bool {
    STAGED_FILES.load(Relaxed) != 0
}

/// Whether any file holds something back.
#[inline(always)]
pub(super) fn is_any_holding() -> bool {
    HOLDING_FILES.load(Relaxed) != 0
}

/// Every file that is in use.
pub(super) fn files() -> impl Iterator<Item = &'static File> {
    FILE[..FILES_USED.load(Relaxed) as usize].iter().filter(|f| f.state.load(Relaxed) != 0)
}

/// The file with that inode, staged or released.
pub(super) fn find(device: u64, inode: u64) -> Option<&'static File> {
    files().find(|file| file.is(device, inode))
}

/// Whether an inode may have an entry; false where it surely has none. In doubt it may.
pub(super) fn may_be_staged(device: u64, inode: u64) -> bool {
    STAGED_BY_KEY[key(device, inode) as usize % FILTER].load(Relaxed) != 0
        || find(device, inode).is_some()
}

/// The staged file a descriptor that is not staged itself leads to.
#[inline(always)]
pub(super) fn foreign(fd: c_int) -> Option<&'static File> {
    if !is_any_staged() {
        return None;
    }
    let key = FOREIGN.get(fd as usize)?.load(Relaxed);
    if key == 1 || (key != 0 && STAGED_BY_KEY[key as usize % FILTER].load(Relaxed) == 0) {
        return None;
    }
    foreign_by_status(fd)
}

#[cold]
fn foreign_by_status(fd: c_int) -> Option<&'static File> {
    let status = kernel::status(fd)?;
    if status.st_mode & libc::S_IFMT != libc::S_IFREG {
        FOREIGN[fd as usize].store(1, Relaxed);
        return None;
    }
    FOREIGN[fd as usize].store(key(status.st_dev, status.st_ino), Relaxed);
    find(status.st_dev, status.st_ino).filter(|file| file.is_staged())
}

/// Inside the tables with signals blocked; dropping it leaves.
pub(super) struct Change {
    mask: u64,
}

/// Enters the tables. `None` when this thread is inside already, which blocked signals prevent
/// except for a fault in here.
pub(super) fn change() -> Option<Change> {
    let mask = kernel::block_signals();
    if CHANGES.enter() {
        return Some(Change { mask });
    }
    kernel::restore_signals(mask);
    None
}

impl Drop for Change {
    fn drop(&mut self) {
        CHANGES.leave();
        kernel::restore_signals(self.mask);
    }
}

impl Change {
    /// Takes a file's entry for an inode that has none, with its machine.
    pub(super) fn add_file(
        &mut self,
        device: u64,
        inode: u64,
        machine: Machine,
        joined: Option<Joined<'static>>,
    ) -> Option<&'static File> {
        let index = FILE.iter().position(|file| file.state.load(Relaxed) == 0)?;
        let file = &FILE[index];
        if !file.lock.enter() {
            return None;
        }
        file.device.store(device, Relaxed);
        file.inode.store(inode, Relaxed);
        file.descriptions.store(0, Relaxed);
        file.failure.store(0, Relaxed);
        file.locked.store(false, Relaxed);
        file.looks_up.store(shared::run().is_none_or(Run::must_look_up), Relaxed);
        file.expected.store(joined.map_or(0, |joined| joined.expected), Relaxed);
        let entry = joined.map_or(null_mut(), |joined| (&raw const *joined.entry).cast_mut());
        file.entry.store(entry, Relaxed);
        file.keeps.store(machine.keeps_bytes(), Relaxed);
        file.borrows.store(machine.is_idle(), Relaxed);
        file.publish(machine.interest());
        // SAFETY: inside the lock of an entry nobody uses yet.
        unsafe { *file.machine.get() = Some(machine) };
        file.state.store(State::Staged as u8, Ordering::Release);
        file.lock.leave();
        FILES_USED.fetch_max(index as u32 + 1, Relaxed);
        STAGED_BY_KEY[file.filter_index()].fetch_add(1, Relaxed);
        STAGED_FILES.fetch_add(1, Relaxed);
        Some(file)
    }

    /// Takes a description for a descriptor of that file, with a descriptor of the stage's own.
    pub(super) fn add_description(&mut self, fd: c_int, file: &'static File) -> Option<Staged> {
        let word = DESCRIPTOR.get(fd as usize)?;
        let index = DESCRIPTION.iter().position(|entry| entry.file.load(Relaxed) == 0)?;
        let own = if file.borrows.load(Relaxed) { fd } else { own::descriptor(fd)? };
        let description = &DESCRIPTION[index];
        description.own.store(own, Relaxed);
        let handle = Handle(NEXT_HANDLE.fetch_add(1, Relaxed));
        description.handle.store(handle.0, Relaxed);
        description.descriptors.store(1, Relaxed);
        description.file.store(index_of(file) + 1, Relaxed);
        file.descriptions.fetch_add(1, Relaxed);
        word.store(index as u32 + 1, Ordering::Release);
        DESCRIPTOR_END.fetch_max(fd as u32 + 1, Relaxed);
        Some(Staged { file, handle, description })
    }

    /// A second descriptor for a description; false when it is to pass. What a description has borrowed may go now
    /// while it stays, so that it gets a descriptor of the stage's own.
    pub(super) fn share(
        &mut self,
        fd: c_int,
        with: Staged,
        enter: fn(&'static File) -> bool,
    ) -> bool {
        let Some(word) = DESCRIPTOR.get(fd as usize) else { return false };
        if with.is_borrowed() {
            let Some(own) = own::descriptor(fd) else { return false };
            if !enter(with.file) {
                own::close(own);
                return false;
            }
            with.description.own.store(own, Relaxed);
            // SAFETY: inside the lock; the reference ends here.
            if let Some(machine) = unsafe { with.file.machine() } {
                machine.set_descriptor(with.handle, own);
            }
            with.file.leave();
        }
        with.description.descriptors.fetch_add(1, Relaxed);
        let index = (&raw const *with.description as usize - DESCRIPTION.as_ptr() as usize)
            / size_of::<Description>();
        word.store(index as u32 + 1, Ordering::Release);
        DESCRIPTOR_END.fetch_max(fd as u32 + 1, Relaxed);
        true
    }

    /// A descriptor goes away; a file that serves nobody after it is given up. The answer is the
    /// stage's own descriptor, if it was the last one of its description: to be closed when the
    /// program's is.
    pub(super) fn drop_descriptor(
        &mut self,
        fd: c_int,
        enter: fn(&'static File) -> bool,
    ) -> Option<c_int> {
        let staged = lookup(fd)?;
        DESCRIPTOR[fd as usize].store(0, Relaxed);
        if staged.description.descriptors.fetch_sub(1, Relaxed) > 1 {
            return None;
        }
        let own = staged.description.own.swap(-1, Relaxed);
        staged.description.file.store(0, Relaxed);
        if staged.file.descriptions.fetch_sub(1, Relaxed) == 1 && enter(staged.file) {
            staged.file.set_released();
            staged.file.state.store(State::Free as u8, Relaxed);
            staged.file.leave();
        }
        Some(own)
    }
}

/// The descriptor leads to something new, or nowhere.
pub(super) fn forget_foreign(fd: c_int) {
    if let Some(key) = FOREIGN.get(fd as usize)
        && key.load(Relaxed) != 0
    {
        key.store(0, Relaxed);
    }
}

fn index_of(file: &'static File) -> u32 {
    ((&raw const *file as usize - FILE.as_ptr() as usize) / size_of::<File>()) as u32
}

/// The program's descriptors of a file.
pub(super) fn descriptors_of(file: &'static File) -> impl Iterator<Item = c_int> {
    let leads = move |fd: &c_int| lookup(*fd).is_some_and(|staged| std::ptr::eq(staged.file, file));
    (0..DESCRIPTOR_END.load(Relaxed) as c_int).filter(leads)
}

/// The descriptors of a range that anything is known of.
pub(super) fn descriptors(first: u32, last: u32) -> impl Iterator<Item = c_int> {
    let last = (last as usize).min(DESCRIPTORS - 1);
    (first as usize..=last)
        .filter(|&fd| DESCRIPTOR[fd].load(Relaxed) != 0 || FOREIGN[fd].load(Relaxed) != 0)
        .map(|fd| fd as c_int)
}

/// In a forked child: nothing is staged any more, whatever threads of the parent were doing.
/// What they held back is theirs to write out.
pub(super) fn after_fork() {
    for word in &DESCRIPTOR {
        if word.load(Relaxed) != 0 {
            word.store(0, Relaxed);
        }
    }
    for description in &DESCRIPTION {
        if description.file.load(Relaxed) != 0 {
            description.file.store(0, Relaxed);
            description.own.store(-1, Relaxed);
        }
    }
    own::after_fork();
    for file in files() {
        file.lock.reset();
        file.late.forget();
        if file.is_staged() {
            file.leave_filter();
        }
        file.state.store(State::Free as u8, Relaxed);
        file.holds.store(false, Relaxed);
        file.entry.store(null_mut(), Relaxed);
        // SAFETY: one thread; the old machine may be half changed, so it is not even dropped.
        unsafe { std::ptr::write(file.machine.get(), None) };
    }
    HOLDING_FILES.store(0, Relaxed);
    CHANGES.reset();
}
