//! What the evaluation claims, and what becomes of it here: reproduced, not reproduced, or not to be told.
//!
//! A claim that holds under one assumption about what is not published and fails under another is not to be
//! told; so is a published value inside a band that also contains its opposite.

pub(super) mod caches;
mod exact;
mod scaling;
mod signs;
mod table;

use super::plan::{Cell, Extent, Results};

/// A claim, and how it is checked.
pub(super) struct Claim {
    /// As the specification of the file system numbers them.
    pub(super) number: u32,
    pub(super) text: &'static str,
    /// What must be computed.
    pub(super) cells: fn(Extent) -> Vec<Cell>,
    judge: fn(&Results, Extent) -> Judgement,
}

/// What became of a claim.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    Reproduced,
    NotReproduced,
    CannotBeTold,
}

/// A verdict with what it rests on.
struct Judgement {
    verdict: Verdict,
    figures: Vec<String>,
    /// Which assumption decides.
    because: String,
}

/// A claim with its verdict.
pub(super) struct Judged {
    pub(super) claim: &'static Claim,
    pub(super) verdict: Verdict,
    pub(super) figures: Vec<String>,
    pub(super) because: String,
}

impl Verdict {
    pub(super) fn word(self) -> &'static str {
        match self {
            Verdict::Reproduced => "reproduced",
            Verdict::NotReproduced => "not reproduced",
            Verdict::CannotBeTold => "cannot be told",
        }
    }

    /// Of a claim that was held under each of several assumptions.
    fn under(assumptions: impl IntoIterator<Item = bool>) -> Verdict {
        let all: Vec<bool> = assumptions.into_iter().collect();
        match (all.contains(&true), all.contains(&false)) {
            (true, false) => Verdict::Reproduced,
            (true, true) => Verdict::CannotBeTold,
            _ => Verdict::NotReproduced,
        }
    }
}

impl Claim {
    pub(super) fn judge(&'static self, results: &Results, extent: Extent) -> Judged {
        let Judgement { verdict, figures, because } = (self.judge)(results, extent);
        Judged { claim: self, verdict, figures, because }
    }
}

/// Every claim that can be looked at, in the order of the paper.
pub(super) const CLAIMS: &[Claim] = &[
    Claim {
        number: 1,
        text: "collective writes of the block-tridiagonal kernel 1.67, 2.69 and 4.75 times as fast as the rival's",
        cells: table::cells_of_writes,
        judge: table::writes,
    },
    Claim {
        number: 2,
        text: "its reads 7.34, 1.43 and 0.83 times as fast",
        cells: table::cells_of_reads,
        judge: table::reads,
    },
    Claim {
        number: 3,
        text: "ahead of the rival on cubes in blocks, all sizes, write, read and disk write",
        cells: signs::cells_of_cubes,
        judge: signs::cubes,
    },
    Claim {
        number: 4,
        text: "ours moves data once, two-phase twice",
        cells: exact::cells_of_moves,
        judge: exact::moves,
    },
    Claim {
        number: 5,
        text: "ahead with CYCLIC(k) in most of the cases, for 4, 8 and 16 servers",
        cells: scaling::cells_of_grains,
        judge: signs::grains,
    },
    Claim {
        number: 6,
        text: "from 4 to 16 servers 3.1, 2.2 and 3.3 times as fast, the rival 1.3, 1.3 and 1.9 times",
        cells: scaling::cells_of_speedups,
        judge: scaling::speedups,
    },
    Claim {
        number: 7,
        text: "ahead for matrices of 1 to 256 MiB, but for reading 1 MiB from the buffer cache",
        cells: signs::cells_of_sizes,
        judge: signs::sizes,
    },
    Claim {
        number: 8,
        text: "the rival's exchange does not depend on the number of servers, its file access does; at fine grain the exchange limits",
        cells: scaling::cells_of_grains,
        judge: scaling::exchange,
    },
    Claim {
        number: 9,
        text: "read from a warm global cache, up to 6.8 (CYCLIC, CYCLIC) and 7.3 (*, CYCLIC) times as fast with 16 \
               cache managers as with 1, and no server is asked",
        cells: caches::cells_of_global,
        judge: caches::global,
    },
    Claim {
        number: 10,
        text: "rotating among servers takes fewer steps than all beginning with the first",
        cells: exact::cells_of_schedules,
        judge: exact::schedules,
    },
    Claim {
        number: 11,
        text: "a second collective read of the same data asks servers for nothing",
        cells: caches::cells_of_hot,
        judge: caches::hot,
    },
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_depends_on_an_assumption_cannot_be_told() {
        assert_eq!(Verdict::under([true, true]), Verdict::Reproduced);
        assert_eq!(Verdict::under([false, false]), Verdict::NotReproduced);
        assert_eq!(Verdict::under([true, false]), Verdict::CannotBeTold);
    }
}
