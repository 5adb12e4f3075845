//! Sequential: every rank walks the whole file from start to end with fixed requests.
//!
//! With a time shift, rank r starts r·shift regions later and comes round, so that the ranks do
//! not meet on one server at one time. For writing, each rank has a file of its own.
//!
//! ```text
//! time →   0 1 2 3 4 5     region read by rank 0
//!          1 2 3 4 5 0     region read by rank 1 with shift 1
//! ```

use crate::{Access, Contract, Parameter, Pattern, Row, Settings};
use iolab_vocab::{Rank, Refusal};

pub(crate) const ROW: Row = Row {
    name: "sequential",
    title: "sequential",
    summary: "every rank walks the whole file; writes go to a file per rank",
    parameters: &[
        Parameter { name: "request", default: "64k", meaning: "bytes per operation" },
        Parameter { name: "count", default: "16", meaning: "operations: regions of the file" },
        Parameter {
            name: "shift",
            default: "0",
            meaning: "regions rank r + 1 starts after rank r",
        },
    ],
    size: "request",
    count: "count",
    small: "request=4,count=8,shift=2",
    build,
};

struct Sequential {
    request: u64,
    count: u64,
    shift: u64,
}

fn build(settings: &Settings) -> Result<Box<dyn Pattern>, Refusal> {
    let request = settings.bytes("request")?;
    let count = settings.count("count")?;
    settings.volume(&[request, count])?;
    let shift = settings.number("shift")? % count;
    Ok(Box::new(Sequential { request, count, shift }))
}

impl Pattern for Sequential {
    fn operations(&self, _rank: Rank) -> u64 {
        self.count
    }

    fn place(&self, rank: Rank, index: u64, access: &mut Access) {
        let region = match self.shift {
            0 => index,
            shift => (index + u64::from(rank.0) * shift) % self.count,
        };
        access.set_contiguous(region * self.request, self.request);
    }

    fn file_bytes(&self) -> u64 {
        self.request * self.count
    }

    fn memory_bytes(&self) -> u64 {
        self.request
    }

    fn contract(&self) -> Contract {
        Contract::OncePerRank
    }

    fn writes_own_file(&self) -> bool {
        true
    }
}
