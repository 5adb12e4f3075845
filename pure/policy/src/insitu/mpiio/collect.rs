//! `collect`: independent writes are held by their rank, and go out together at the next call that all ranks make.
//!
//! Two-phase I/O (Thakur, Gropp and Lusk 1999) needs to know what all ranks write, which independent calls do not
//! tell. MPI lets it wait: outside of atomic mode the others need not see a write before a sync, a close or the like,
//! which all ranks call (MPI 4.0, section 14.6.1). What a rank has written by then is one collective access.
//! Until then its own calls find what it wrote: what they need goes out before them, by this rank alone.
//! It never waits for another one but where MPI has all ranks come.
//!
//! Holding pays where a call is dear. So the first writes of a rank pass and their time is taken; if storage
//! answers quickly, all others pass, too. A rank that holds alone gains little: so at the next call that all make,
//! all of them take for quick or slow what most of their writes together were.
//! What lies in large runs goes out as it is: an exchange merges nothing there.
//!
//! Members: the null one holds nothing (what the agreement costs), the honest one as above, the cruel one
//! holds, passes, writes out and exchanges by chance.

mod settings;

use super::super::held::Held;
use super::super::{Action as Copying, Place};
use crate::machine::Machine;
use iolab_pattern::{Nest, Node};
use iolab_vocab::{Extent, Nanos, Random, Refusal, Seed};
pub use settings::{Holds, Settings};

/// Pieces that are held at most: a list of as many is 1 MiB of a message (16 bytes each), and of a nest's nodes
/// (`iolab_pattern::nest::NEST_NODES`) a sixteenth.
const PIECES: usize = 1 << 16;
/// Writes whose time is taken before the others are held or passed; most of them decide.
const PROBES: u64 = 5;

/// What happened at one rank.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// The program writes these extents, whose bytes lie one behind the other in its memory.
    WriteArrived(Vec<Extent>),
    /// A write that passed was made, of so many bytes in so much time.
    WriteEnded(u64, Nanos),
    /// The program reads these extents of a file that has so many bytes without those held.
    ReadArrived(Vec<Extent>, u64),
    /// A call of this rank alone looks at the file, or accesses nobody knows which bytes of it.
    OtherArrived,
    /// All ranks switched atomic mode on or off.
    AtomicityChanged(bool),
}

/// What is to be done, in this order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Action {
    /// Bytes of the program's go to the staging memory.
    Copy {
        /// Where in the bytes of the call.
        from: u64,
        /// Where in the staging memory.
        to: u64,
        /// How many.
        length: u64,
    },
    /// This rank writes out what it holds, alone.
    WriteOut(Batch),
    /// The call is the library's.
    Pass,
    /// The call is done: all its bytes are held.
    Answer,
}

/// Bytes that go out, in ascending order of offsets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Batch {
    /// Where in the file.
    pub file: Nest,
    /// Where in the staging memory, in the same order.
    pub memory: Nest,
}

/// What a rank tells the others before a call that all make.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Share {
    /// Bytes it holds.
    pub bytes: u64,
    /// Runs of the file they lie in.
    pub runs: u64,
    /// What it knows of the storage's speed.
    pub probes: Probes,
}

/// What becomes of what all ranks hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// Nobody holds anything.
    Nothing,
    /// Each rank writes out its own, alone.
    Alone,
    /// It goes out as one collective access.
    Together,
}

/// How often what happened at one rank.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Writes that were held.
    pub held: u64,
    /// Writes that passed.
    pub passed: u64,
    /// Of these, since storage answered quickly.
    pub quick: u64,
    /// Held bytes went out by the rank alone.
    pub alone: u64,
    /// Held bytes went out as a collective access: the same on all ranks.
    pub together: u64,
}

/// The stage of one rank of an open file.
#[derive(Clone, Debug)]
pub struct Collect {
    settings: Settings,
    held: Held,
    is_atomic: bool,
    probes: Probes,
    counts: Counts,
    /// Drawn alike by all ranks.
    joint: Random,
    own: Random,
}

/// What is known of the storage's speed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Probes {
    /// Writes whose time was taken.
    pub taken: u64,
    /// Of these, that storage answered quickly.
    pub quick: u64,
}

impl Probes {
    /// What ranks know together; what they have agreed on stays.
    fn of_all(shares: &[Share]) -> Probes {
        let first = shares.first().map(|share| share.probes).unwrap_or_default();
        if first.are_over() && shares.iter().all(|share| share.probes == first) {
            return first;
        }
        let sum = |all: Probes, share: &Share| Probes {
            taken: all.taken.saturating_add(share.probes.taken),
            quick: all.quick.saturating_add(share.probes.quick),
        };
        shares.iter().fold(Probes::default(), sum)
    }

    fn are_over(self) -> bool {
        self.taken >= PROBES
    }

    fn are_quick(self) -> bool {
        self.are_over() && self.quick > self.taken / 2
    }
}

impl PartialEq for Collect {
    fn eq(&self, other: &Collect) -> bool {
        self.settings == other.settings
    }
}

impl Eq for Collect {}

impl Collect {
    /// One of rank 0 that holds nothing yet.
    pub fn new(settings: Settings) -> Collect {
        let seed = if let Holds::ByChance(seed) = settings.holds { seed } else { Seed(0) };
        let (joint, own) = (Random::new(seed), Random::new(seed));
        let (held, counts) = (Held::new(), Counts::default());
        let probes = Probes::default();
        Collect { settings, held, is_atomic: false, probes, counts, joint, own }
    }

    /// The same for another rank, whose chances are its own.
    pub fn of_rank(mut self, rank: u32) -> Collect {
        if let Holds::ByChance(Seed(seed)) = self.settings.holds {
            self.own = Random::new(Seed(seed.wrapping_mul(31).wrapping_add(u64::from(rank) + 1)));
        }
        self
    }

    /// Reads `buffer=16m,independent=1m,slow=20us,when=slow|never`.
    pub fn parse(parameters: &[(String, String)]) -> Result<Collect, Refusal> {
        Ok(Collect::new(Settings::parse(parameters)?))
    }

    /// Reads `seed=1,buffer=64k`, of the cruel member.
    pub fn parse_cruel(parameters: &[(String, String)]) -> Result<Collect, Refusal> {
        Ok(Collect::new(Settings::parse_cruel(parameters)?))
    }

    /// Bytes of staging memory, at most.
    pub fn buffer_bytes(&self) -> u64 {
        self.settings.buffer_bytes
    }

    /// Whether it holds bytes: without, it need not hear of calls but writes.
    pub fn holds_bytes(&self) -> bool {
        !self.held.is_empty()
    }

    /// Whether it wants to know how long the next write takes that passes.
    pub fn is_probing(&self) -> bool {
        matches!(self.settings.holds, Holds::IfSlower(slow) if slow > Nanos(0))
            && !self.probes.are_over()
    }

    /// Whether a write passes, whatever it is: nothing is held, and nothing will be. It is counted then.
    pub fn passes_at_once(&mut self) -> bool {
        let is_over = match self.settings.holds {
            Holds::Nothing => true,
            Holds::IfSlower(_) => self.is_atomic || self.probes.are_quick(),
            Holds::ByChance(_) => false,
        };
        let passes = is_over && !self.holds_bytes();
        if passes {
            self.count_passed();
        }
        passes
    }

    fn count_passed(&mut self) {
        self.counts.passed += 1;
        self.counts.quick += u64::from(self.probes.are_quick());
    }

    /// What it did so far.
    pub fn counts(&self) -> Counts {
        self.counts
    }

    /// What this rank tells the others before a call that all make.
    pub fn share(&self) -> Share {
        let mut share = Share { probes: self.probes, ..Share::default() };
        let mut end = None;
        for piece in self.held.pieces() {
            share.runs += u64::from(end != Some(piece.extent.offset));
            share.bytes += piece.extent.length;
            end = Some(piece.extent.end());
        }
        share
    }

    /// What becomes of what all ranks hold, from what each of them has told: alike on all of them.
    pub fn judge(&mut self, shares: &[Share]) -> Fate {
        self.probes = Probes::of_all(shares);
        // Drawn for each call, so that chance does not depend on what was held.
        let draw = self.joint.below(2) == 0;
        let holders = || shares.iter().filter(|share| share.bytes > 0);
        let has_large_runs =
            |share: &Share| share.bytes / share.runs.max(1) >= self.settings.independent_bytes;
        match self.settings.holds {
            _ if holders().next().is_none() => Fate::Nothing,
            Holds::ByChance(_) if draw => Fate::Alone,
            Holds::ByChance(_) => Fate::Together,
            // One rank's pieces are merged already.
            _ if holders().count() == 1 || holders().all(has_large_runs) => Fate::Alone,
            _ => Fate::Together,
        }
    }

    /// What is held, to go out as was judged; nothing is held then.
    ///
    /// # Errors
    /// Never for what [`Event`]s made: its offsets are those of a file, and its pieces few enough.
    pub fn take(&mut self, fate: Fate) -> Result<Batch, Refusal> {
        match fate {
            Fate::Nothing => {}
            Fate::Alone => self.counts.alone += u64::from(self.holds_bytes()),
            Fate::Together => self.counts.together += 1,
        }
        let parts = |place: fn(&super::super::held::Piece) -> u64| {
            let part = |piece| Ok((place(&piece), Node::bytes(piece.extent.length)?));
            let parts: Result<Vec<_>, Refusal> = self.held.pieces().map(part).collect();
            Nest::of_parts(0, 0, parts?)
        };
        let batch = Batch { file: parts(|it| it.extent.offset)?, memory: parts(|it| it.at)? };
        self.held.clear();
        Ok(batch)
    }

    fn wrote(&mut self, extents: &[Extent], out: &mut Vec<Action>) {
        let bytes: u64 = extents.iter().map(|extent| extent.length).sum();
        let fits = bytes <= self.settings.buffer_bytes && extents.len() <= PIECES;
        let overlaps = |held: &Held| extents.iter().any(|&extent| held.overlaps(extent));
        if bytes == 0 || !fits || !self.is_holding() {
            if overlaps(&self.held) {
                self.write_out(out);
            }
            self.count_passed();
            return out.push(Action::Pass);
        }
        let is_full = self.held.fill() + bytes > self.settings.buffer_bytes
            || self.held.piece_count() + extents.len() > PIECES;
        if is_full || self.is_cruel_now() {
            self.write_out(out);
        }
        let (mut copies, mut from) = (Vec::new(), 0);
        for &extent in extents.iter().filter(|extent| !extent.is_empty()) {
            self.held.hold(extent, from, &mut copies);
            from += extent.length;
        }
        out.extend(copies.into_iter().filter_map(copied));
        self.counts.held += 1;
        out.push(Action::Answer);
    }

    /// Whether a write is held that can be.
    fn is_holding(&mut self) -> bool {
        match self.settings.holds {
            _ if self.is_atomic => false,
            Holds::Nothing => false,
            Holds::ByChance(_) => self.own.below(4) != 0,
            Holds::IfSlower(Nanos(0)) => true,
            Holds::IfSlower(_) => self.probes.are_over() && !self.probes.are_quick(),
        }
    }

    fn is_cruel_now(&mut self) -> bool {
        matches!(self.settings.holds, Holds::ByChance(_)) && self.own.below(8) == 0
    }

    /// A write that passed took so long: most of it for moving the bytes, or for the call.
    fn probed(&mut self, bytes: u64, took: Nanos) {
        if let Holds::IfSlower(slow) = self.settings.holds
            && self.is_probing()
        {
            // What memory takes: 1 GB/s, that of a file's fresh pages (benchmarks/mpiio-layer).
            let moving = Nanos(bytes);
            self.probes.taken += 1;
            self.probes.quick += u64::from(took.0 <= slow.0.saturating_add(moving.0));
        }
    }

    /// Whether a read would find other bytes below, or another end of the file.
    fn is_read(&self, extents: &[Extent], file_bytes: u64) -> bool {
        let end = extents.iter().map(|extent| extent.end()).max().unwrap_or(0);
        extents.iter().any(|&extent| self.held.overlaps(extent))
            || (end > file_bytes && self.held.end() > file_bytes)
    }

    fn write_out(&mut self, out: &mut Vec<Action>) {
        if self.holds_bytes()
            && let Ok(batch) = self.take(Fate::Alone)
        {
            out.push(Action::WriteOut(batch));
        }
    }
}

/// A copy as this layer has it.
fn copied(action: Copying) -> Option<Action> {
    match action {
        Copying::Copy { from: Place::Caller(from), to: Place::Staging(to), length } => {
            Some(Action::Copy { from, to, length })
        }
        _ => None,
    }
}

impl Machine for Collect {
    type Event = Event;
    type Action = Action;

    fn step(&mut self, _now: Nanos, event: Event, out: &mut Vec<Action>) {
        match event {
            Event::WriteArrived(extents) => self.wrote(&extents, out),
            Event::WriteEnded(bytes, took) => self.probed(bytes, took),
            Event::ReadArrived(extents, file_bytes) => {
                if self.is_read(&extents, file_bytes) {
                    self.write_out(out);
                }
                out.push(Action::Pass);
            }
            Event::OtherArrived => {
                self.write_out(out);
                out.push(Action::Pass);
            }
            Event::AtomicityChanged(is_atomic) => self.is_atomic = is_atomic,
        }
    }
}

#[cfg(test)]
mod tests;
