//! Who may touch what an entry holds: its owner while it is inside a call, anybody else under a
//! claim. The owner is inside thousands of times between two claims, so its way is a store and a
//! load; who claims makes the owner's processors listen and waits until it is outside.

use crate::attach::Run;
use crate::layout::Entry;
use crate::system;
use std::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release, SeqCst};
use std::sync::atomic::{compiler_fence, fence};

const CLAIMANT: u64 = 0xffff_ffff;
/// A wait for a process that lives and does not come out ends here; with pauses of 100 µs this is
/// some 20 s.
const ATTEMPTS: u64 = 200_000;
/// How often it is asked whether the one that is waited for lives.
pub(crate) const LOOK_EVERY: u64 = 512;

/// What an entry's word says.
fn generation(word: u64) -> u32 {
    (word >> 32) as u32
}

/// An entry in the hands of somebody who is not its owner. Dropping it lets go.
pub struct Claim<'a> {
    entry: &'a Entry,
    next_generation: bool,
}

impl Entry {
    /// The owner comes in; it must look up by itself where [`Run::must_look_up`] says so. False when somebody else has been here or is: then [`Run::settle_in`].
    #[inline(always)]
    pub fn enter(&self, expected: u64, looks_up: bool) -> bool {
        self.inside.store(1, Relaxed);
        compiler_fence(SeqCst);
        if looks_up {
            fence(SeqCst);
        }
        self.word.load(Relaxed) == expected
    }

    /// The owner goes out.
    #[inline(always)]
    pub fn leave(&self) {
        self.inside.store(0, Release);
    }

    /// The word an owner expects as long as nobody else comes.
    pub(crate) fn expected(&self) -> u64 {
        self.word.load(Acquire) & !CLAIMANT
    }
}

impl Run {
    /// Waits until nobody else has the entry, and comes in; the answer is the word to expect from
    /// now on.
    pub fn settle_in(&self, entry: &Entry) -> u64 {
        for attempt in 0u64.. {
            let word = entry.word.load(Acquire);
            if word & CLAIMANT == 0 {
                entry.inside.store(1, Relaxed);
                fence(SeqCst);
                if entry.word.load(Acquire) == word {
                    return word;
                }
            }
            entry.inside.store(0, Release);
            if attempt % LOOK_EVERY == LOOK_EVERY - 1 && self.is_dead((word & CLAIMANT) as u32) {
                let _ = entry.word.compare_exchange(word, word & !CLAIMANT, AcqRel, Relaxed);
            }
            system::pause(attempt);
        }
        unreachable!("waits until it is in")
    }

    /// Takes the entry from its owner, who may be dead. `None` when it does not let go.
    pub(crate) fn claim<'a>(&self, entry: &'a Entry) -> Option<Claim<'a>> {
        let me = u64::from(self.me());
        if me == 0 {
            return None;
        }
        for attempt in 0..ATTEMPTS {
            let word = entry.word.load(Acquire);
            let is_free = word & CLAIMANT == 0
                || (attempt % LOOK_EVERY == LOOK_EVERY - 1
                    && self.is_dead((word & CLAIMANT) as u32));
            let claimed = word & !CLAIMANT | me;
            if is_free && entry.word.compare_exchange(word, claimed, AcqRel, Relaxed).is_ok() {
                let mut claim = Claim { entry, next_generation: false };
                if self.wait_for_owner(entry) {
                    return Some(claim);
                }
                // Stopped inside, perhaps: it has to look when it goes on.
                claim.tell();
                return None;
            }
            system::pause(attempt);
        }
        None
    }

    fn wait_for_owner(&self, entry: &Entry) -> bool {
        fence(SeqCst);
        let owner = entry.owner.load(Acquire);
        if owner == 0 {
            return true;
        }
        if self.table().header.strict.load(Relaxed) == 0 {
            system::make_all_listen();
        }
        for attempt in 0..ATTEMPTS {
            if entry.inside.load(Acquire) == 0 {
                return true;
            }
            if attempt % LOOK_EVERY == LOOK_EVERY - 1 && self.is_dead(owner) {
                return true;
            }
            system::pause(attempt);
        }
        false
    }

    /// A process that has ended claims nothing any more.
    pub(crate) fn forget_claim(&self, entry: &Entry, slot: u32) {
        let word = entry.word.load(Acquire);
        if word & CLAIMANT == u64::from(slot) {
            let free = u64::from(generation(word).wrapping_add(1)) << 32;
            let _ = entry.word.compare_exchange(word, free, AcqRel, Relaxed);
        }
    }
}

impl Claim<'_> {
    /// The owner is to learn that somebody was here.
    pub(crate) fn tell(&mut self) {
        self.next_generation = true;
    }
}

impl Drop for Claim<'_> {
    fn drop(&mut self) {
        let word = self.entry.word.load(Relaxed);
        let next = generation(word).wrapping_add(u32::from(self.next_generation));
        self.entry.word.store(u64::from(next) << 32, Release);
    }
}
