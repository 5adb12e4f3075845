//! Scatter and gather: the bytes of a cut between a contiguous buffer and one laid out as the file.
//!
//! Promises: `gather` reads and `scatter` writes each byte of the cut, in its order, and no other.
//! Buffers that do not fit are refused before the first byte moves. Where bytes of an improper cut
//! overlap, the later in the order wins.
//!
//! Costs: one nest of loops, no list, no allocation. Runs of 1 to 64 bytes in powers of two move as
//! values of that size.

use super::cut::{Chain, Cut};
use super::node::{Form, Node};
use iolab_vocab::Refusal;

impl Cut {
    /// Copies the bytes of the cut out of `laid`, whose first byte has the offset `base`, one
    /// behind the other into `contiguous`, which has [`Cut::bytes`] bytes.
    pub fn gather(&self, laid: &[u8], base: u64, contiguous: &mut [u8]) -> Result<(), Refusal> {
        self.check(laid.len(), base, contiguous.len())?;
        let mut rest = contiguous;
        for chain in self.chains() {
            let (to, more) = rest.split_at_mut(chain.size() as usize);
            gather(&chain.body, Copies::of(chain, base), laid, to);
            rest = more;
        }
        Ok(())
    }

    /// Copies the bytes of `contiguous`, one after the other, to the places of the cut in `laid`,
    /// whose first byte has the offset `base`.
    pub fn scatter(&self, contiguous: &[u8], laid: &mut [u8], base: u64) -> Result<(), Refusal> {
        self.check(laid.len(), base, contiguous.len())?;
        let mut rest = contiguous;
        for chain in self.chains() {
            let (from, more) = rest.split_at(chain.size() as usize);
            scatter(&chain.body, Copies::of(chain, base), from, laid);
            rest = more;
        }
        Ok(())
    }

    /// Whether both buffers hold what moves. From here on every number fits a `usize`.
    fn check(&self, laid: usize, base: u64, contiguous: usize) -> Result<(), Refusal> {
        if contiguous as u64 != self.bytes() {
            return Err(Refusal::new(
                format!("a buffer of {contiguous} bytes for a cut of {}", self.bytes()),
                "give the contiguous buffer the size of the cut",
            ));
        }
        let end = base.saturating_add(laid as u64);
        match self.chains().iter().find(|chain| chain.offset < base || chain.end() > end) {
            None => Ok(()),
            Some(chain) => Err(Refusal::new(
                format!("chain {chain} leaves the buffer, which has [{base}, {end})"),
                "cut to what the buffer holds",
            )),
        }
    }
}

/// Where copies lie in a buffer.
#[derive(Clone, Copy)]
struct Copies {
    at: usize,
    count: usize,
    stride: usize,
}

impl Copies {
    fn of(chain: &Chain, base: u64) -> Copies {
        let at = (chain.offset - base) as usize;
        Copies { at, count: chain.count as usize, stride: chain.stride as usize }
    }

    const fn one(at: usize) -> Copies {
        Copies { at, count: 1, stride: 0 }
    }

    fn places(self) -> impl Iterator<Item = usize> {
        (0..self.count).map(move |copy| self.at + copy * self.stride)
    }
}

fn gather(body: &Node, copies: Copies, laid: &[u8], to: &mut [u8]) {
    let size = body.size() as usize;
    match &body.0 {
        Form::Bytes(_) => gather_runs(size, copies, laid, to),
        Form::Repeat(r) => {
            for (at, to) in copies.places().zip(to.chunks_exact_mut(size)) {
                let (count, stride) = (r.count as usize, r.stride as usize);
                gather(&r.body, Copies { at, count, stride }, laid, to);
            }
        }
        Form::Sequence(sequence) => {
            for (at, mut to) in copies.places().zip(to.chunks_exact_mut(size)) {
                for part in &sequence.parts {
                    let (own, rest) = to.split_at_mut(part.node.size() as usize);
                    gather(&part.node, Copies::one(at + part.offset as usize), laid, own);
                    to = rest;
                }
            }
        }
    }
}

fn scatter(body: &Node, copies: Copies, from: &[u8], laid: &mut [u8]) {
    let size = body.size() as usize;
    match &body.0 {
        Form::Bytes(_) => scatter_runs(size, copies, from, laid),
        Form::Repeat(r) => {
            for (at, from) in copies.places().zip(from.chunks_exact(size)) {
                let (count, stride) = (r.count as usize, r.stride as usize);
                scatter(&r.body, Copies { at, count, stride }, from, laid);
            }
        }
        Form::Sequence(sequence) => {
            for (at, mut from) in copies.places().zip(from.chunks_exact(size)) {
                for part in &sequence.parts {
                    let (own, rest) = from.split_at(part.node.size() as usize);
                    scatter(&part.node, Copies::one(at + part.offset as usize), own, laid);
                    from = rest;
                }
            }
        }
    }
}

/// Runs that do not overlap are chunks of the buffer, so that no index is checked but one per run.
fn gather_runs(length: usize, copies: Copies, laid: &[u8], to: &mut [u8]) {
    match length {
        _ if copies.stride < length => {
            for (at, to) in copies.places().zip(to.chunks_exact_mut(length)) {
                to.copy_from_slice(&laid[at..at + length]);
            }
        }
        1 => gather_fixed::<1>(copies, laid, to),
        2 => gather_fixed::<2>(copies, laid, to),
        4 => gather_fixed::<4>(copies, laid, to),
        8 => gather_fixed::<8>(copies, laid, to),
        16 => gather_fixed::<16>(copies, laid, to),
        32 => gather_fixed::<32>(copies, laid, to),
        64 => gather_fixed::<64>(copies, laid, to),
        _ => {
            let runs = laid[copies.at..].chunks(copies.stride);
            for (to, run) in to.chunks_exact_mut(length).zip(runs) {
                to.copy_from_slice(&run[..length]);
            }
        }
    }
}

fn gather_fixed<const LENGTH: usize>(copies: Copies, laid: &[u8], to: &mut [u8]) {
    let runs = laid[copies.at..].chunks(copies.stride);
    for (to, run) in to.chunks_exact_mut(LENGTH).zip(runs) {
        to.copy_from_slice(&run[..LENGTH]);
    }
}

fn scatter_runs(length: usize, copies: Copies, from: &[u8], laid: &mut [u8]) {
    match length {
        _ if copies.stride < length => {
            for (at, from) in copies.places().zip(from.chunks_exact(length)) {
                laid[at..at + length].copy_from_slice(from);
            }
        }
        1 => scatter_fixed::<1>(copies, from, laid),
        2 => scatter_fixed::<2>(copies, from, laid),
        4 => scatter_fixed::<4>(copies, from, laid),
        8 => scatter_fixed::<8>(copies, from, laid),
        16 => scatter_fixed::<16>(copies, from, laid),
        32 => scatter_fixed::<32>(copies, from, laid),
        64 => scatter_fixed::<64>(copies, from, laid),
        _ => {
            let runs = laid[copies.at..].chunks_mut(copies.stride);
            for (from, run) in from.chunks_exact(length).zip(runs) {
                run[..length].copy_from_slice(from);
            }
        }
    }
}

fn scatter_fixed<const LENGTH: usize>(copies: Copies, from: &[u8], laid: &mut [u8]) {
    let runs = laid[copies.at..].chunks_mut(copies.stride);
    for (from, run) in from.chunks_exact(LENGTH).zip(runs) {
        run[..LENGTH].copy_from_slice(from);
    }
}
