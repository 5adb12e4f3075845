//! Staging memory in the segment, with a list that says which extent of the file each part of it
//! holds: enough for anybody to write it out.
//!
//! A list is replayed in order, so later records overwrite earlier ones. It grows by one store once
//! the bytes are in place; when pieces went away it is written anew beside the old one, and one
//! store turns from the old to the new. A reader at any moment, after any crash, finds a whole list.

use crate::attach::Run;
use crate::layout::{PAGE, SLABS, TABLE_BYTES};
use crate::slab_layout::{HEAD_BYTES, Head, ListHead, PATH_ROOM, Record, bytes, list_bytes};
use crate::system::{self, Descriptor, system_call};
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release, SeqCst};

/// These many slabs keep their memory when they are given up, for the next file.
const WARM_SLABS: u32 = 8;
/// No size is known from before an append.
pub(crate) const NO_BASE: u64 = u64::MAX;

/// What one record says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Held {
    pub(crate) offset: u64,
    pub(crate) length: u64,
    pub(crate) at: u64,
}

/// A slab as this process sees it.
#[derive(Clone, Copy)]
pub struct Slab {
    index: u32,
    base: *mut u8,
    staging_bytes: u64,
    records: u64,
}

impl Run {
    /// Takes a slab for `bytes` of staging memory; `None` when there is no room.
    pub fn take_slab(&self, bytes: u64) -> Option<Slab> {
        let me = self.me();
        if me == 0 || bytes > self.table().header.staging_bytes.load(Relaxed) {
            return None;
        }
        let slabs = &self.table().slabs;
        let index = slabs.iter().position(|owner| {
            owner.load(Relaxed) == 0 && owner.compare_exchange(0, me, AcqRel, Relaxed).is_ok()
        })?;
        let slab = self.slab(index as u32).filter(|slab| self.grant(slab.base, 0, HEAD_BYTES));
        match slab {
            Some(slab) => {
                slab.head().selector.store(0, Relaxed);
                slab.head().path_names.store(0, Relaxed);
            }
            None => slabs[index].store(0, Release),
        }
        slab
    }

    /// The slab of that index, mapped here on first use.
    pub(crate) fn slab(&self, index: u32) -> Option<Slab> {
        let header = &self.table().header;
        let staging_bytes = header.staging_bytes.load(Relaxed);
        let records = header.records.load(Relaxed);
        let known = self.mapped.get(index as usize)?;
        let mut base = known.load(Acquire);
        if base.is_null() {
            let bytes = bytes(staging_bytes, records);
            let offset = TABLE_BYTES + u64::from(index) * bytes;
            let file = self.open()?;
            base = system::map_shared(file.number(), offset, bytes)?;
            // Another thread may have been faster; its mapping is as good.
            known.store(base, Release);
        }
        Some(Slab { index, base, staging_bytes, records })
    }

    /// Gives up a slab (index + 1).
    pub(crate) fn free_slab(&self, word: u32) {
        let Some(index) = (word as usize).checked_sub(1).filter(|&index| index < SLABS) else {
            return;
        };
        let base = self.mapped[index].load(Acquire);
        if index as u32 >= WARM_SLABS && !base.is_null() {
            let slab = self.slab(index as u32).expect("mapped already");
            let granted = slab.head().granted.swap(0, AcqRel).min(slab.staging_bytes);
            // SAFETY: nobody holds anything in the slab.
            unsafe { system::release_pages(slab.staging(), granted as usize) };
        }
        self.table().slabs[index].store(0, Release);
    }

    /// Gives up a slab that no entry was told of.
    pub fn return_slab(&self, slab: Slab) {
        self.free_slab(slab.index + 1);
    }

    pub(crate) fn free_slabs_of(&self, slot: u32) {
        for owner in &self.table().slabs {
            let _ = owner.compare_exchange(slot, 0, AcqRel, Relaxed);
        }
    }

    /// Has the system give memory to these bytes of a slab now.
    fn grant(&self, base: *mut u8, from: u64, bytes: u64) -> bool {
        let start = from / PAGE * PAGE;
        let bytes = (from + bytes).next_multiple_of(PAGE) - start;
        match system::populate(base.wrapping_add(start as usize), bytes) {
            Some(is_given) => is_given,
            None => self.allocate(base, start, bytes).is_some(),
        }
    }

    /// The same on kernels before 5.14.
    fn allocate(&self, base: *mut u8, start: u64, bytes: u64) -> Option<()> {
        let index = self.mapped.iter().position(|it| it.load(Relaxed) == base)?;
        let header = &self.table().header;
        let slab = self::bytes(header.staging_bytes.load(Relaxed), header.records.load(Relaxed));
        let offset = TABLE_BYTES + index as u64 * slab + start;
        let file: Descriptor = self.open()?;
        // SAFETY: no memory is involved.
        let done = unsafe { system_call!(SYS_fallocate, file.number(), 0, offset, bytes) };
        (done == 0).then_some(())
    }
}

impl Slab {
    /// Its number plus one, as entries name it.
    pub fn word(&self) -> u32 {
        self.index + 1
    }

    fn head(&self) -> &Head {
        // SAFETY: mapped for as long as the process lives; granted when it was taken.
        unsafe { &*self.base.cast::<Head>() }
    }

    /// Where held bytes lie.
    pub fn staging(&self) -> *mut u8 {
        self.base.wrapping_add((HEAD_BYTES + 2 * list_bytes(self.records)) as usize)
    }

    fn list_offset(&self, list: u64) -> u64 {
        HEAD_BYTES + (list & 1) * list_bytes(self.records)
    }

    fn list(&self, list: u64) -> &ListHead {
        // SAFETY: lies in the slab, aligned to a page.
        unsafe { &*self.base.add(self.list_offset(list) as usize).cast::<ListHead>() }
    }

    fn record(&self, list: u64, index: u64) -> &Record {
        assert!(index < self.records, "record {index} of {}", self.records);
        let at = self.list_offset(list)
            + size_of::<ListHead>() as u64
            + index * size_of::<Record>() as u64;
        // SAFETY: lies in the list, as just checked, aligned to a word.
        unsafe { &*self.base.add(at as usize).cast::<Record>() }
    }

    /// Staging memory that may be touched, from its front.
    pub fn granted(&self) -> u64 {
        self.head().granted.load(Relaxed).min(self.staging_bytes)
    }

    /// Makes the first `bytes` of staging memory fit to be touched; false when there is no room.
    pub fn grant(&self, run: &Run, bytes: u64) -> bool {
        let granted = self.granted();
        if bytes <= granted {
            return true;
        }
        let wanted = bytes.max(2 * granted).max(64 << 10).min(self.staging_bytes);
        let from = HEAD_BYTES + 2 * list_bytes(self.records) + granted;
        let is_given = wanted >= bytes && run.grant(self.base, from, wanted - granted);
        if is_given {
            self.head().granted.store(wanted, Relaxed);
        }
        is_given
    }

    fn grant_record(&self, run: &Run, list: u64, index: u64) -> bool {
        let granted = &self.head().granted_list[(list & 1) as usize];
        let end = (size_of::<ListHead>() + (index as usize + 1) * size_of::<Record>()) as u64;
        if end <= granted.load(Relaxed) {
            return true;
        }
        let wanted = end.max(2 * granted.load(Relaxed)).next_multiple_of(PAGE);
        let wanted = wanted.min(list_bytes(self.records));
        let is_given = end <= wanted && run.grant(self.base, self.list_offset(list), wanted);
        if is_given {
            granted.store(wanted, Relaxed);
        }
        is_given
    }

    /// Whether the recorded path is as of now.
    pub fn knows_path(&self, run: &Run) -> bool {
        self.head().path_names.load(Relaxed) == run.table().header.names.load(SeqCst)
    }

    /// Records the path of the file, empty when it has none any more; `names` was read before it was
    /// looked up.
    /// `birth` is [`birth_of`] the file.
    pub fn set_path(&self, path: &[u8], names: u32, birth: u64) {
        let head = self.head();
        let path = &path[..path.len().min(PATH_ROOM)];
        head.path_length.store(0, Release);
        for (word, part) in head.path.iter().zip(path.chunks(4)) {
            let mut bytes = [0; 4];
            bytes[..part.len()].copy_from_slice(part);
            word.store(u32::from_ne_bytes(bytes), Relaxed);
        }
        head.birth.store(birth, Relaxed);
        head.path_length.store(path.len() as u32, Release);
        head.path_names.store(names, Release);
    }

    /// When the file came to be, as [`birth_of`] says it.
    pub(crate) fn birth(&self) -> u64 {
        self.head().birth.load(Acquire)
    }

    pub(crate) fn path(&self) -> Vec<u8> {
        let head = self.head();
        let length = (head.path_length.load(Acquire) as usize).min(PATH_ROOM);
        let mut path: Vec<u8> = head
            .path
            .iter()
            .flat_map(|word| word.load(Relaxed).to_ne_bytes())
            .take(length)
            .collect();
        path.retain(|&byte| byte != 0);
        path
    }

    /// Everything that is held, in the order in which it is to be written, and whether it goes out
    /// by appending.
    pub(crate) fn held(&self) -> (Vec<Held>, bool) {
        let selector = self.head().selector.load(Acquire);
        let count = (selector >> 32).min(self.records);
        let record = |index| {
            let record = self.record(selector, index);
            Held {
                length: record.length.load(Acquire),
                offset: record.offset.load(Relaxed),
                at: record.at.load(Relaxed),
            }
        };
        let fits = |held: &Held| {
            held.at.checked_add(held.length).is_some_and(|end| end <= self.staging_bytes)
                && held.offset.checked_add(held.length).is_some_and(|end| end <= i64::MAX as u64)
        };
        ((0..count).map(record).filter(fits).collect(), selector & 2 != 0)
    }

    /// Whether nothing is held in it.
    pub fn is_empty(&self) -> bool {
        self.head().selector.load(Acquire) >> 32 == 0
    }

    pub(crate) fn base(&self) -> &AtomicU64 {
        &self.list(self.head().selector.load(Acquire)).base
    }

    pub(crate) fn clear(&self) {
        self.head().selector.store(0, Release);
    }
}

/// The owner's side of a slab's list.
pub struct Ledger {
    pub(crate) slab: Slab,
    list: u64,
    count: u64,
    appending: bool,
    /// Staging memory that is accounted for.
    fill: u64,
    /// File offset and staging offset behind the last record.
    last_end: u64,
    last_at_end: u64,
    /// Length of the last record, here and where it stands in the list.
    last_length: u64,
    last_word: *const AtomicU64,
}

// SAFETY: the slab is atomic words and bytes that only the owner writes, under its lock.
unsafe impl Send for Ledger {}

impl Ledger {
    /// An empty list.
    pub fn new(slab: Slab) -> Ledger {
        slab.clear();
        Ledger {
            slab,
            list: 0,
            count: 0,
            appending: false,
            fill: 0,
            last_end: 0,
            last_at_end: 0,
            last_length: 0,
            last_word: std::ptr::null(),
        }
    }

    /// The slab.
    pub fn slab(&self) -> Slab {
        self.slab
    }

    /// Staging memory that is accounted for.
    #[inline(always)]
    pub fn fill(&self) -> u64 {
        self.fill
    }

    /// Whether nothing is held by it.
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// The last record has grown by `length` bytes, which are in place.
    #[inline(always)]
    pub fn grow(&mut self, length: u64) {
        assert!(self.count > 0, "a record that is not there cannot grow");
        self.last_length += length;
        // SAFETY: points to the last record of the list, in the segment, which is never unmapped.
        unsafe { (*self.last_word).store(self.last_length, Release) };
        self.fill += length;
        self.last_end += length;
        self.last_at_end += length;
    }

    /// Staging memory is filled up to `fill` now; the last bytes of it are those of the file before
    /// `end`. False when there is no room to say so.
    pub fn add(&mut self, run: &Run, fill: u64, end: u64, appending: bool) -> bool {
        let Some(length) = fill.checked_sub(self.fill).filter(|&length| length > 0) else {
            return fill == self.fill;
        };
        let Some(offset) = end.checked_sub(length) else { return false };
        let follows = self.count > 0 && self.last_end == offset && self.last_at_end == self.fill;
        if follows && self.appending == appending {
            self.grow(length);
            return true;
        }
        if self.count == 0 {
            self.appending = appending;
        }
        if !self.put(run, Held { offset, length, at: self.fill }) {
            return false;
        }
        self.fill = fill;
        self.publish();
        true
    }

    /// Writes one record behind the others, unseen until it is published.
    fn put(&mut self, run: &Run, held: Held) -> bool {
        if self.count >= self.slab.records || !self.slab.grant_record(run, self.list, self.count) {
            return false;
        }
        if self.count == 0 {
            self.slab.list(self.list).base.store(NO_BASE, Relaxed);
        }
        let record = self.slab.record(self.list, self.count);
        record.offset.store(held.offset, Relaxed);
        record.at.store(held.at, Relaxed);
        record.length.store(held.length, Release);
        (self.last_length, self.last_word) = (held.length, &raw const record.length);
        self.count += 1;
        self.last_end = held.offset + held.length;
        self.last_at_end = held.at + held.length;
        true
    }

    fn publish(&self) {
        let appending = u64::from(self.appending) << 1;
        let word = self.count << 32 | appending | (self.list & 1);
        self.slab.head().selector.store(word, Release);
    }

    /// Begins a list anew, unseen until [`Ledger::end`].
    pub fn begin(&mut self, appending: bool) {
        (self.list, self.count, self.appending) = (self.list ^ 1, 0, appending);
    }

    /// One piece of the new list. False when there is no room.
    pub fn piece(&mut self, run: &Run, offset: u64, length: u64, at: u64) -> bool {
        self.put(run, Held { offset, length, at })
    }

    /// The new list counts from now on; staging memory up to `fill` is accounted for.
    pub fn end(&mut self, fill: u64) {
        self.fill = fill;
        self.publish();
    }

    /// What is held is about to be appended to a file of that size.
    pub fn set_base(&self, file_bytes: u64) {
        if self.count > 0 {
            self.slab.list(self.list).base.store(file_bytes, Release);
        }
    }
}
