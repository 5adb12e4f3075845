//! Random accesses, database style: random start, random length up to a limit, with replacement.
//!
//! Starts are multiples of `align`, so that a page-based table (align = page) and a log of odd
//! records (align = 1) are both this pattern.
//!
//! ```text
//! file  ..00..3.11111....0..222.....  some bytes never, some several times
//! ```

use crate::{Access, Contract, Parameter, Pattern, Row, Settings};
use iolab_vocab::{Random, Rank, Refusal, Seed};

pub(crate) const ROW: Row = Row {
    name: "database",
    title: "random blocks (database)",
    summary: "random start, length up to a limit, with replacement",
    parameters: &[
        Parameter { name: "limit", default: "8k", meaning: "longest access" },
        Parameter { name: "file", default: "4m", meaning: "size of the file" },
        Parameter { name: "count", default: "256", meaning: "operations per rank" },
        Parameter {
            name: "align",
            default: "1",
            meaning: "starts and lengths are multiples of it",
        },
    ],
    size: "limit",
    count: "count",
    small: "limit=6,file=48,count=3",
    build,
};

struct Database {
    limit: u64,
    file: u64,
    count: u64,
    align: u64,
    seed: u64,
}

fn build(settings: &Settings) -> Result<Box<dyn Pattern>, Refusal> {
    let align = settings.bytes("align")?;
    let file = settings.bytes("file")? / align * align;
    let limit = settings.bytes("limit")?.max(align) / align * align;
    if file < limit {
        return Err(settings.wrong("file", "must not be below limit and align"));
    }
    settings.volume(&[file])?;
    let count = settings.count("count")?;
    Ok(Box::new(Database { limit, file, count, align, seed: settings.seed.0 }))
}

impl Pattern for Database {
    fn operations(&self, _rank: Rank) -> u64 {
        self.count
    }

    fn place(&self, rank: Rank, index: u64, access: &mut Access) {
        let key = self.seed ^ (u64::from(rank.0) << 40) ^ index;
        let mut random = Random::new(Seed(key.wrapping_mul(0xD6E8_FEB8_6659_FD93)));
        let length = (random.below(self.limit / self.align) + 1) * self.align;
        let starts = (self.file - length) / self.align + 1;
        access.set_contiguous(random.below(starts) * self.align, length);
    }

    fn file_bytes(&self) -> u64 {
        self.file
    }

    fn memory_bytes(&self) -> u64 {
        self.limit
    }

    fn contract(&self) -> Contract {
        Contract::Any
    }
}
