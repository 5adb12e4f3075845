//! Segmented: the file is divided into one contiguous byte range per rank.
//!
//! ```text
//! file  |0000000000|1111111111|2222222222|3333333333|
//! ```

use crate::{Access, Contract, Parameter, Pattern, Row, Settings, Strided};
use iolab_vocab::{Rank, Refusal};

pub(crate) const ROW: Row = Row {
    name: "segmented",
    title: "segmented",
    summary: "one contiguous range of the file per rank",
    parameters: &[
        Parameter { name: "request", default: "64k", meaning: "bytes per operation" },
        Parameter { name: "count", default: "16", meaning: "operations per rank" },
    ],
    size: "request",
    count: "count",
    small: "request=4,count=4",
    build,
};

struct Segmented {
    ranks: u64,
    request: u64,
    count: u64,
}

fn build(settings: &Settings) -> Result<Box<dyn Pattern>, Refusal> {
    let request = settings.bytes("request")?;
    let count = settings.count("count")?;
    settings.volume(&[request, count, settings.ranks])?;
    Ok(Box::new(Segmented { ranks: settings.ranks, request, count }))
}

impl Pattern for Segmented {
    fn operations(&self, _rank: Rank) -> u64 {
        self.count
    }

    fn place(&self, rank: Rank, index: u64, access: &mut Access) {
        let request_index = u64::from(rank.0) * self.count + index;
        access.set_contiguous(request_index * self.request, self.request);
    }

    fn file_bytes(&self) -> u64 {
        self.request * self.count * self.ranks
    }

    fn memory_bytes(&self) -> u64 {
        self.request
    }

    fn contract(&self) -> Contract {
        Contract::ExactlyOnce
    }

    fn whole(&self, rank: Rank) -> Option<Strided> {
        let segment = self.request * self.count;
        Some(Strided::contiguous(u64::from(rank.0) * segment, segment))
    }
}
