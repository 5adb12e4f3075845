//! FLASH I/O: the checkpoint kernel of an adaptive-mesh astrophysics code.
//!
//! Each rank holds `blocks` blocks of x × y × z cells with `guard` guard cells on every side, and
//! `variables` doubles per cell, variable fastest in memory. The checkpoint is variable-major:
//! operation v writes variable v of all inner cells of all blocks of the rank, contiguous in the
//! file, element by element in memory (guard cells and the other variables skipped).
//! Source: Zingale's FLASH I/O benchmark routine (2001).
//!
//! ```text
//! memory of a block   g g g g g g        file   |var 0: ranks 0 1 2 3|var 1: ranks 0 1 2 3|…
//!                     g c c c c g
//!                     g g g g g g        c = (v0 v1 v2 …) per cell
//! ```

use crate::{Access, Contract, Parameter, Pattern, Row, Settings, Strided};
use iolab_vocab::{Rank, Refusal};

pub(crate) const ROW: Row = Row {
    name: "flash",
    title: "FLASH I/O",
    summary: "blocks of cells with guard cells; variable-major in the file",
    parameters: &[
        Parameter { name: "blocks", default: "4", meaning: "blocks per rank" },
        Parameter { name: "cells", default: "8x8x8", meaning: "inner cells of a block" },
        Parameter { name: "guard", default: "4", meaning: "guard cells on each side" },
        Parameter { name: "variables", default: "24", meaning: "variables per cell: operations" },
        Parameter { name: "element", default: "8", meaning: "bytes of a value" },
    ],
    size: "element",
    count: "variables",
    small: "blocks=2,cells=2x1x1,guard=1,variables=2,element=2",
    build,
};

struct Flash {
    ranks: u64,
    variables: u64,
    element: u64,
    /// Bytes of one variable of one rank.
    variable_bytes: u64,
    /// The inner cells of all blocks of a rank, for variable 0.
    inner: Strided,
    memory_bytes: u64,
}

fn build(settings: &Settings) -> Result<Box<dyn Pattern>, Refusal> {
    let blocks = settings.count("blocks")?;
    let &[x, y, z] = &settings.counts("cells")?[..] else {
        return Err(settings.wrong("cells", "wants three numbers, as in 8x8x8"));
    };
    let guard = settings.number("guard")?;
    let variables = settings.count("variables")?;
    let element = settings.bytes("element")?;
    let around = |cells: u64| cells.saturating_add(guard.saturating_mul(2));
    let cell = settings.volume(&[variables, element])?;
    let row = settings.volume(&[cell, around(x)])?;
    let plane = settings.volume(&[row, around(y)])?;
    let block = settings.volume(&[plane, around(z)])?;
    let memory_bytes = settings.volume(&[block, blocks])?;
    settings.volume(&[memory_bytes, settings.ranks])?;
    let first = guard * (plane + row + cell);
    let inner = Strided::contiguous(first, element)
        .repeated(x, cell)
        .repeated(y, row)
        .repeated(z, plane)
        .repeated(blocks, block);
    let variable_bytes = inner.bytes();
    let ranks = settings.ranks;
    Ok(Box::new(Flash { ranks, variables, element, variable_bytes, inner, memory_bytes }))
}

impl Pattern for Flash {
    fn operations(&self, _rank: Rank) -> u64 {
        self.variables
    }

    fn place(&self, rank: Rank, index: u64, access: &mut Access) {
        let start = (index * self.ranks + u64::from(rank.0)) * self.variable_bytes;
        access.set(Strided::contiguous(start, self.variable_bytes));
        access.push_memory(self.inner.at(self.inner.offset + index * self.element));
    }

    fn file_bytes(&self) -> u64 {
        self.variable_bytes * self.ranks * self.variables
    }

    fn memory_bytes(&self) -> u64 {
        self.memory_bytes
    }

    fn contract(&self) -> Contract {
        Contract::ExactlyOnce
    }

    fn whole(&self, rank: Rank) -> Option<Strided> {
        let first =
            Strided::contiguous(u64::from(rank.0) * self.variable_bytes, self.variable_bytes);
        Some(first.repeated(self.variables, self.variable_bytes * self.ranks))
    }
}
