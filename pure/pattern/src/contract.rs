//! What a pattern promises about the bytes of its file, and the check of the promise.

use crate::{Access, Pattern};
use iolab_vocab::{Extent, Rank};
use std::fmt;

/// How often the operations of all ranks together touch each byte of the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Contract {
    /// Each byte exactly once: no overlap, no hole.
    ExactlyOnce,
    /// Each byte at most once: holes, but no overlap.
    AtMostOnce,
    /// Each rank touches each byte exactly once.
    OncePerRank,
    /// Anything inside the file.
    Any,
}

impl fmt::Display for Contract {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Contract::ExactlyOnce => "each byte exactly once",
            Contract::AtMostOnce => "each byte at most once",
            Contract::OncePerRank => "each byte once by every rank",
            Contract::Any => "any byte, any number of times",
        })
    }
}

/// Where a pattern breaks its promise.
#[allow(missing_docs)] // The fields are the scene; their names say what they are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Violation {
    /// An operation leaves the file or its buffer.
    Outside { rank: u32, index: u64, end: u64, limit: u64 },
    /// File and memory side of an operation differ in length.
    Unequal { rank: u32, index: u64, file_bytes: u64, memory_bytes: u64 },
    /// A byte is touched twice that must not be.
    Twice { offset: u64 },
    /// A byte is not touched that must be.
    Hole { offset: u64 },
    /// The compact form of a whole rank differs from its operations, here.
    Whole { rank: u32, block: u64 },
}

/// Goes through every operation; meant for small shapes.
///
/// # Errors
/// The first place where the promise does not hold.
pub fn check(pattern: &dyn Pattern, ranks: u32) -> Result<(), Violation> {
    let mut all = Vec::new();
    for rank in 0..ranks {
        let own = rank_extents(pattern, rank)?;
        check_whole(pattern, rank, &own)?;
        match pattern.contract() {
            Contract::OncePerRank => covers_once(own, pattern.file_bytes(), true)?,
            _ => all.extend(own),
        }
    }
    match pattern.contract() {
        Contract::ExactlyOnce => covers_once(all, pattern.file_bytes(), true),
        Contract::AtMostOnce => covers_once(all, pattern.file_bytes(), false),
        Contract::OncePerRank | Contract::Any => Ok(()),
    }
}

fn rank_extents(pattern: &dyn Pattern, rank: u32) -> Result<Vec<Extent>, Violation> {
    let mut extents = Vec::new();
    let mut access = Access::new();
    for index in 0..pattern.operations(Rank(rank)) {
        pattern.place(Rank(rank), index, &mut access);
        inside(pattern, &access, rank, index)?;
        extents.extend(access.file_extents());
    }
    Ok(extents)
}

fn inside(pattern: &dyn Pattern, access: &Access, rank: u32, index: u64) -> Result<(), Violation> {
    let limits =
        [(access.file_end(), pattern.file_bytes()), (access.memory_end(), pattern.memory_bytes())];
    if let Some(&(end, limit)) = limits.iter().find(|(end, limit)| end > limit) {
        return Err(Violation::Outside { rank, index, end, limit });
    }
    let memory_bytes: u64 = access.memory_extents().map(|extent| extent.length).sum();
    let file_bytes = access.bytes();
    if file_bytes != memory_bytes {
        return Err(Violation::Unequal { rank, index, file_bytes, memory_bytes });
    }
    let mut memory: Vec<_> = access.memory_extents().collect();
    memory.sort();
    match memory.windows(2).find(|pair| pair[0].overlaps(pair[1])) {
        Some(pair) => Err(Violation::Twice { offset: pair[1].offset }),
        None => Ok(()),
    }
}

fn check_whole(pattern: &dyn Pattern, rank: u32, own: &[Extent]) -> Result<(), Violation> {
    let Some(whole) = pattern.whole(Rank(rank)) else { return Ok(()) };
    let blocks = merged(whole.extents());
    let wanted = merged(own.iter().copied());
    match blocks.iter().zip(&wanted).position(|(block, extent)| block != extent) {
        Some(block) => Err(Violation::Whole { rank, block: block as u64 }),
        None if blocks.len() != wanted.len() => {
            Err(Violation::Whole { rank, block: blocks.len() as u64 })
        }
        None => Ok(()),
    }
}

/// The extents with neighbours joined, in their order.
fn merged(extents: impl Iterator<Item = Extent>) -> Vec<Extent> {
    let mut joined: Vec<Extent> = Vec::new();
    for extent in extents.filter(|extent| !extent.is_empty()) {
        match joined.last_mut() {
            Some(last) if last.end() == extent.offset => last.length += extent.length,
            _ => joined.push(extent),
        }
    }
    joined
}

fn covers_once(mut extents: Vec<Extent>, bytes: u64, fully: bool) -> Result<(), Violation> {
    extents.retain(|extent| !extent.is_empty());
    extents.sort();
    let mut position = 0;
    for extent in extents {
        if extent.offset < position {
            return Err(Violation::Twice { offset: extent.offset });
        }
        if fully && extent.offset > position {
            return Err(Violation::Hole { offset: position });
        }
        position = extent.end();
    }
    if fully && position < bytes {
        return Err(Violation::Hole { offset: position });
    }
    Ok(())
}
