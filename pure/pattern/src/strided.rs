//! Simple strided: the file is a sequence of stripes, rank r owns the r-th strip of each.
//!
//! About 63 % of the accesses that CHARISMA saw in scientific codes (Nieuwejaar et al. 1996).
//! With `request` below `strip` this is also IOR's geometry: a segment is a stripe, a block a
//! strip, a transfer a request. With `gather` one operation takes several strips at once.
//!
//! ```text
//! file  |0000|1111|2222|3333|0000|1111|2222|3333|…    strip = one box, stripe = four
//! ```

use crate::{Access, Contract, Parameter, Pattern, Row, Settings, Strided};
use iolab_vocab::{Rank, Refusal};

pub(crate) const ROW: Row = Row {
    name: "strided",
    title: "simple strided",
    summary: "a sequence of stripes; rank r accesses strip r of each",
    parameters: &[
        Parameter { name: "strip", default: "64k", meaning: "bytes of one rank in one stripe" },
        Parameter { name: "stripes", default: "16", meaning: "how many stripes" },
        Parameter { name: "request", default: "", meaning: "bytes per operation; strip if empty" },
        Parameter { name: "gather", default: "1", meaning: "strips per operation" },
    ],
    size: "strip",
    count: "stripes",
    small: "strip=4,stripes=4",
    build,
};

struct SimpleStrided {
    ranks: u64,
    strip: u64,
    stripes: u64,
    request: u64,
    requests_per_strip: u64,
    gather: u64,
}

fn build(settings: &Settings) -> Result<Box<dyn Pattern>, Refusal> {
    let strip = settings.bytes("strip")?;
    let request = settings.bytes_or("request", strip)?.min(strip);
    let gather = settings.count("gather")?;
    if gather > 1 && request != strip {
        return Err(settings.wrong("gather", "takes whole strips, so request must equal strip"));
    }
    let stripes = settings.count("stripes")?;
    settings.volume(&[strip, stripes, settings.ranks])?;
    let requests_per_strip = strip.div_ceil(request);
    let ranks = settings.ranks;
    let gather = gather.min(stripes);
    Ok(Box::new(SimpleStrided { ranks, strip, stripes, request, requests_per_strip, gather }))
}

impl SimpleStrided {
    fn stripe_bytes(&self) -> u64 {
        self.strip * self.ranks
    }
}

impl Pattern for SimpleStrided {
    fn operations(&self, _rank: Rank) -> u64 {
        self.stripes.div_ceil(self.gather) * self.requests_per_strip
    }

    fn place(&self, rank: Rank, index: u64, access: &mut Access) {
        if self.gather > 1 {
            let first = index * self.gather;
            let count = self.gather.min(self.stripes - first);
            let start = first * self.stripe_bytes() + u64::from(rank.0) * self.strip;
            let strips = Strided::contiguous(start, self.strip);
            return access.set(strips.repeated(count, self.stripe_bytes()));
        }
        // A division costs as much as the rest of this function; most strips are one request.
        let (stripe, request) = match self.requests_per_strip {
            1 => (index, 0),
            n => (index / n, index % n),
        };
        let within = request * self.request;
        let start = stripe * self.stripe_bytes() + u64::from(rank.0) * self.strip + within;
        access.set_contiguous(start, self.request.min(self.strip - within));
    }

    fn file_bytes(&self) -> u64 {
        self.stripe_bytes() * self.stripes
    }

    fn memory_bytes(&self) -> u64 {
        self.request * self.gather
    }

    fn contract(&self) -> Contract {
        Contract::ExactlyOnce
    }

    fn whole(&self, rank: Rank) -> Option<Strided> {
        let strip = Strided::contiguous(u64::from(rank.0) * self.strip, self.strip);
        Some(strip.repeated(self.stripes, self.stripe_bytes()))
    }
}
