//! The rival's way, as ROMIO does it: every rank is an aggregator with a contiguous domain of the file, which
//! it writes or reads in pieces of one buffer; the ranks exchange what belongs there, piece by piece.
//!
//! Before the first piece each rank tells each aggregator where its runs lie, 16 bytes for each. Buffers are
//! cold: nothing is left in them from one call to the next.

use super::work::{Part, RANKS, Work};
use crate::file_system::Costs;
use iolab_vocab::{Extent, Refusal};

/// ROMIO's `cb_buffer_size`, unless somebody asks for another.
const BUFFER_BYTES: u64 = 4 << 20;
/// Offset and length of a run, as they are told.
const RUN_BYTES: u64 = 16;

/// One collective call.
pub(super) struct Exchange {
    extent: Extent,
    parts: Vec<Part>,
}

impl Exchange {
    /// A call of a program.
    pub(super) fn new(work: Work, call: u64) -> Result<Exchange, Refusal> {
        let parts = (0..RANKS).map(|rank| work.part(rank, call)).collect::<Result<_, _>>()?;
        Ok(Exchange { extent: work.extent(call), parts })
    }

    /// Pieces of a domain.
    pub(super) fn rounds(work: Work) -> u64 {
        work.call_bytes().div_ceil(u64::from(RANKS)).div_ceil(BUFFER_BYTES)
    }

    /// What an aggregator is responsible for.
    fn domain(&self, aggregator: u32) -> Extent {
        let share = self.extent.length.div_ceil(u64::from(RANKS));
        let at = |number: u32| (u64::from(number) * share).min(self.extent.length);
        let (from, to) = (at(aggregator), at(aggregator + 1));
        Extent::new(self.extent.offset + from, to - from)
    }

    /// What an aggregator accesses in a round; it may be empty.
    pub(super) fn piece(&self, aggregator: u32, round: u64) -> Extent {
        let domain = self.domain(aggregator);
        let from = (round * BUFFER_BYTES).min(domain.length);
        Extent::new(domain.offset + from, (domain.length - from).min(BUFFER_BYTES))
    }

    /// Bytes of lists of runs that a rank sends to each aggregator.
    pub(super) fn lists(&self, rank: u32) -> impl Iterator<Item = u64> + '_ {
        let part = &self.parts[rank as usize];
        (0..RANKS).map(move |aggregator| part.within(self.domain(aggregator)).1 * RUN_BYTES)
    }

    /// Bytes that go from a rank to an aggregator, or back, in a round.
    pub(super) fn between(&self, rank: u32, aggregator: u32, round: u64) -> u64 {
        self.parts[rank as usize].within(self.piece(aggregator, round)).0
    }

    /// Seconds it takes a rank to take its own bytes of a round out of its memory, or to put them there:
    /// what goes to one aggregator lies behind each other.
    pub(super) fn own_seconds(&self, rank: u32, round: u64, costs: &Costs) -> f64 {
        let pieces = (0..RANKS).map(|aggregator| self.between(rank, aggregator, round));
        let (bytes, count) = pieces
            .filter(|bytes| *bytes > 0)
            .fold((0, 0), |(sum, count), bytes| (sum + bytes, count + 1));
        costs.moved(bytes, count)
    }

    /// Seconds it takes an aggregator to scatter into its buffer what came in a round, or to gather it.
    pub(super) fn buffer_seconds(&self, aggregator: u32, round: u64, costs: &Costs) -> f64 {
        let piece = self.piece(aggregator, round);
        let all = self.parts.iter().map(|part| part.within(piece));
        let (bytes, runs) = all.fold((0, 0), |(bytes, runs), one| (bytes + one.0, runs + one.1));
        costs.moved(bytes, runs)
    }
}
