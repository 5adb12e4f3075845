//! Staging memory of one stage. What may be the only place of held bytes lies in the segment of the
//! run, with a list beside it that says where in the file they belong; the rest, where pieces are
//! put in order on their way out, is this process's own.

use super::{kernel, shared};
use iolab_policy::insitu::{HeldPiece, Holding};
use iolab_segment::{Ledger, Run, birth_of};
use std::ffi::c_int;
use std::sync::atomic::{AtomicUsize, Ordering};

/// See the module.
pub(super) struct Region {
    front: *mut u8,
    front_bytes: u64,
    /// How much of the front may be touched.
    granted: u64,
    back: *mut u8,
    back_bytes: usize,
    ledger: Option<Ledger>,
    rearranged: u64,
    /// The entry of the file knows the slab, and gives it up.
    is_shown: bool,
}

impl Region {
    /// Staging memory of `bytes`, of which the first `holding` may hold; `None` when there is none.
    pub(super) fn take(bytes: u64, holding: u64) -> Option<Region> {
        let back_bytes = ((bytes - holding) as usize).next_multiple_of(4096);
        let mut region = Region {
            front: std::ptr::null_mut(),
            front_bytes: holding,
            granted: 0,
            back: std::ptr::null_mut(),
            back_bytes: 0,
            ledger: None,
            rearranged: 0,
            is_shown: false,
        };
        if holding > 0 {
            let slab = shared::run()?.take_slab(holding)?;
            region.front = slab.staging();
            region.granted = slab.granted();
            region.ledger = Some(Ledger::new(slab));
        }
        if back_bytes > 0 {
            region.back = take_spare(back_bytes)?;
            region.back_bytes = back_bytes;
        }
        Some(region)
    }

    /// The slab of held bytes, as entries name it.
    pub(super) fn slab(&self) -> Option<u32> {
        self.ledger.as_ref().map(|ledger| ledger.slab().word())
    }

    pub(super) fn is_shown(&mut self) {
        self.is_shown = true;
    }

    /// The address of `length` bytes of it.
    #[inline]
    pub(super) fn place(&self, offset: u64, length: u64) -> *mut u8 {
        let end = offset.checked_add(length);
        if end.is_some_and(|end| end <= self.granted.min(self.front_bytes)) {
            return self.front.wrapping_add(offset as usize);
        }
        let behind = offset.checked_sub(self.front_bytes);
        let fits = behind.is_some_and(|from| from + length <= self.back_bytes as u64);
        assert!(fits, "{length} bytes from {offset} leave the staging memory");
        self.back.wrapping_add((offset - self.front_bytes) as usize)
    }

    /// Whether as many more bytes can be held without asking the system.
    #[inline]
    pub(super) fn has_room(&self, length: u64) -> bool {
        match &self.ledger {
            Some(ledger) => ledger.fill() + length <= self.granted,
            None => true,
        }
    }

    /// Asks the system for room; false when it has none.
    pub(super) fn grant(&mut self, length: u64) -> bool {
        let (Some(ledger), Some(run)) = (&self.ledger, shared::run()) else {
            return self.ledger.is_none();
        };
        // More than the buffer never is held; what fits no more is written out first.
        let wanted = ledger.fill().saturating_add(length).min(self.front_bytes);
        let is_given = ledger.slab().grant(run, wanted);
        self.granted = ledger.slab().granted();
        is_given
    }

    /// `length` bytes were absorbed at `offset`.
    #[inline]
    pub(super) fn absorbed(&mut self, offset: u64, length: u64) {
        if let Some(ledger) = &mut self.ledger
            && offset == ledger.fill()
        {
            ledger.grow(length);
        }
    }

    /// Whether it holds nothing, as far as this process knows.
    pub(super) fn is_empty(&self) -> bool {
        self.ledger.as_ref().is_none_or(Ledger::is_empty)
    }

    pub(super) fn is_rearranged(&self, holding: &Holding) -> bool {
        holding.rearranged != self.rearranged
    }

    /// Tells the run what is held, from the start; bytes from `fresh_from` on are not in place yet.
    /// False when there is no room to tell it.
    pub(super) fn tell_anew(
        &mut self,
        holding: &Holding,
        fresh_from: u64,
        pieces: impl FnOnce(&mut dyn FnMut(HeldPiece)),
    ) -> bool {
        self.rearranged = holding.rearranged;
        let (Some(ledger), Some(run)) = (&mut self.ledger, shared::run()) else { return true };
        let mut told = true;
        ledger.begin(holding.appending);
        pieces(&mut |piece| {
            let length = piece.extent.length.min(fresh_from.saturating_sub(piece.at));
            if length > 0 {
                told &= ledger.piece(run, piece.extent.offset, length, piece.at);
            }
        });
        ledger.end(fresh_from);
        told
    }

    /// Tells the run what came since. False when there is no room to tell it.
    pub(super) fn tell(&mut self, holding: &Holding) -> bool {
        match (&mut self.ledger, shared::run()) {
            (Some(ledger), Some(run)) if holding.fill != ledger.fill() => {
                ledger.add(run, holding.fill, holding.end, holding.appending)
            }
            _ => true,
        }
    }

    /// What is held is about to be appended to a file of that size.
    pub(super) fn appends_to(&self, file_bytes: u64) {
        if let Some(ledger) = &self.ledger {
            ledger.set_base(file_bytes);
        }
    }

    /// Whether another process has written out what was held here, or nothing was.
    pub(super) fn is_drained(&self) -> bool {
        self.ledger.as_ref().is_none_or(|ledger| ledger.slab().is_empty())
    }

    /// Nothing is held any more.
    pub(super) fn begin_anew(&mut self) {
        if let Some(ledger) = &mut self.ledger {
            *ledger = Ledger::new(ledger.slab());
        }
    }

    /// Whether the path that was shown is as of now.
    pub(super) fn knows_path(&self) -> bool {
        let (Some(ledger), Some(run)) = (&self.ledger, shared::run()) else { return true };
        ledger.slab().knows_path(run)
    }

    /// Tells the run where the file of that descriptor is; false when it would not be found there.
    pub(super) fn show_path(&self, fd: c_int) -> bool {
        let (Some(ledger), Some(run)) = (&self.ledger, shared::run()) else { return true };
        if self.knows_path() {
            return true;
        }
        let mut is_found = false;
        crate::roomy::with_room(&mut || is_found = show_path(ledger, run, fd));
        is_found
    }
}

#[cold]
fn show_path(ledger: &Ledger, run: &Run, fd: c_int) -> bool {
    let names = run.names();
    let Some(status) = kernel::status(fd) else { return false };
    let mut buffer = crate::path::Buffer::new();
    let path = match status.st_nlink {
        0 => &[],
        _ => crate::path::of_descriptor(fd, &mut buffer),
    };
    ledger.slab().set_path(path, names, birth_of(fd));
    drop(buffer);
    kernel::is_found_by_name(fd, &status)
}

impl Drop for Region {
    fn drop(&mut self) {
        if self.back_bytes > 0 {
            give_spare(self.back, self.back_bytes);
        }
        if let (Some(ledger), Some(run), false) = (&self.ledger, shared::run(), self.is_shown) {
            run.return_slab(ledger.slab());
        }
    }
}

/// A few regions are kept for the next file, pages and all: touching fresh ones costs more than
/// writing a small file. Each slot holds an address, or 0.
static SPARE: [AtomicUsize; 8] = [const { AtomicUsize::new(0) }; 8];
/// What the regions in `SPARE` measure; all stacks of a process have stages of like sizes.
static SPARE_BYTES: AtomicUsize = AtomicUsize::new(0);

fn take_spare(bytes: usize) -> Option<*mut u8> {
    let spare = (SPARE_BYTES.load(Ordering::Relaxed) == bytes)
        .then(|| SPARE.iter().map(|slot| slot.swap(0, Ordering::AcqRel)).find(|&at| at != 0))
        .flatten();
    match spare {
        Some(address) => Some(address as *mut u8),
        None => kernel::map(bytes),
    }
}

fn give_spare(address: *mut u8, bytes: usize) {
    let size = SPARE_BYTES.compare_exchange(0, bytes, Ordering::Relaxed, Ordering::Relaxed);
    let fits = size.is_ok() || size == Err(bytes);
    let at = address as usize;
    let kept = fits
        && SPARE
            .iter()
            .any(|slot| slot.compare_exchange(0, at, Ordering::AcqRel, Ordering::Relaxed).is_ok());
    if !kept {
        // SAFETY: the region is given up and nothing else knows its address.
        unsafe { kernel::unmap(address, bytes) };
    }
}
