//! Nested strided: each strip is itself a simple strided set, to any depth.
//!
//! A third of the accesses in the CHARISMA study; rows of a block of a matrix, planes of rows.
//! A block is repeated `counts[0]` times with a stride of `spacing` blocks, that span `counts[1]`
//! times with `spacing` spans, and so on. With `placement=outer` the ranks lie side by side
//! around the whole (holes stay holes), with `placement=inner` they share the innermost stride
//! (`spacing` = number of ranks there), as the columns of a row do.
//!
//! ```text
//! outer  |0.0.0.0.|1.1.1.1.|2.2.2.2.|3.3.3.3.|0.0.0.0.|…
//! inner  |0123 0123 ........ |0123 0123 ........ |…
//! ```

use crate::{Access, Contract, DEPTH, Parameter, Pattern, Row, Settings, Strided};
use iolab_vocab::{Rank, Refusal};

pub(crate) const ROW: Row = Row {
    name: "nested",
    title: "nested strided",
    summary: "a strided set inside a strided set, any depth",
    parameters: &[
        Parameter { name: "block", default: "4k", meaning: "contiguous bytes" },
        Parameter { name: "counts", default: "4x4", meaning: "repetitions, innermost first" },
        Parameter { name: "spacing", default: "2", meaning: "stride over span; 1 has no holes" },
        Parameter { name: "placement", default: "outer", meaning: "where ranks lie: outer, inner" },
        Parameter { name: "stripes", default: "4", meaning: "operations: repeats of the whole" },
    ],
    size: "block",
    count: "stripes",
    small: "block=2,counts=2x2,stripes=2",
    build,
};

struct Nested {
    /// One operation of rank 0.
    set: Strided,
    /// From one rank to the next.
    rank_stride: u64,
    /// From one operation to the next.
    stripe_bytes: u64,
    stripes: u64,
    ranks: u64,
    holes: bool,
}

fn build(settings: &Settings) -> Result<Box<dyn Pattern>, Refusal> {
    let block = settings.bytes("block")?;
    let counts = settings.counts("counts")?;
    let spacing = settings.count("spacing")?;
    let inner = settings.choice("placement", &["outer", "inner"])? == 1;
    let stripes = settings.count("stripes")?;
    if counts.len() + 2 > DEPTH {
        return Err(settings.wrong("counts", "has more than 4 levels"));
    }
    let mut set = Strided::contiguous(0, block);
    let mut span = block;
    for (depth, &count) in counts.iter().enumerate() {
        let factor = if inner && depth == 0 { settings.ranks } else { spacing };
        let stride = settings.volume(&[span, factor])?;
        span = settings.volume(&[stride, count])?;
        set = set.repeated(count, stride);
    }
    let rank_stride = if inner { block } else { span };
    let stripe_bytes = if inner { span } else { settings.volume(&[span, settings.ranks])? };
    settings.volume(&[stripe_bytes, stripes])?;
    let holes = spacing > 1 && (!inner || counts.len() > 1);
    let ranks = settings.ranks;
    Ok(Box::new(Nested { set, rank_stride, stripe_bytes, stripes, ranks, holes }))
}

impl Nested {
    fn set_of(&self, rank: Rank) -> Strided {
        self.set.at(u64::from(rank.0) * self.rank_stride)
    }
}

impl Pattern for Nested {
    fn operations(&self, _rank: Rank) -> u64 {
        self.stripes
    }

    fn place(&self, rank: Rank, index: u64, access: &mut Access) {
        let set = self.set_of(rank);
        access.set(set.at(set.offset + index * self.stripe_bytes));
    }

    fn file_bytes(&self) -> u64 {
        let last = Rank(self.ranks as u32 - 1);
        (self.stripes - 1) * self.stripe_bytes + self.set_of(last).end()
    }

    fn memory_bytes(&self) -> u64 {
        self.set.bytes()
    }

    fn contract(&self) -> Contract {
        if self.holes { Contract::AtMostOnce } else { Contract::ExactlyOnce }
    }

    fn whole(&self, rank: Rank) -> Option<Strided> {
        Some(self.set_of(rank).repeated(self.stripes, self.stripe_bytes))
    }
}
