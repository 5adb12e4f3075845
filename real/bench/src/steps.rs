//! What a temporal pattern is made of: steps, some of them timed.

use crate::plan::{Case, Temporal};
use crate::work::Work;
use iolab_backend::Direction;
use iolab_report::bench::PhaseLabel;
use iolab_vocab::Seed;

/// One step of a case.
#[derive(Clone, Copy)]
pub(crate) enum Step {
    /// Put generation 0 into the files, untimed.
    Setup,
    /// Bring the cache into the state of the plan.
    Caches,
    /// A timed phase.
    Timed { name: &'static str, work: &'static [Act], fresh: bool, generation: u32 },
}

/// What a timed phase does, before the numbers of the case are put in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Act {
    Read,
    Write,
    ReadThenWrite,
    Mixed,
}

impl Act {
    /// With the numbers of the case put in.
    pub(crate) fn work(self, case: &Case, seed: Seed) -> Work {
        match self {
            Act::Read => Work::One(Direction::Read),
            Act::Write => Work::One(Direction::Write),
            Act::ReadThenWrite => Work::ReadThenWrite,
            Act::Mixed => {
                let read_share = (case.read_share * 4_294_967_295.0) as u32;
                Work::Mixed { read_share, seed: seed.0 }
            }
        }
    }
}

/// What is told about a phase; `cache` is the state that was found before it.
pub(crate) fn label(name: &str, work: &[Act], fresh: bool, cache: &str) -> PhaseLabel {
    let allocation = match (work.iter().any(|act| *act != Act::Read), fresh) {
        (true, true) => "allocate",
        (true, false) => "overwrite",
        _ => "",
    };
    let cache = if work[0] == Act::Write { "" } else { cache };
    PhaseLabel {
        phase: name.to_owned(),
        cache: cache.to_owned(),
        allocation: allocation.to_owned(),
    }
}

const fn phase(name: &'static str, work: &'static [Act]) -> Step {
    Step::Timed { name, work, fresh: false, generation: 0 }
}

pub(crate) fn steps(temporal: Temporal) -> Vec<Step> {
    use Act::{Mixed, Read, ReadThenWrite, Write};
    use Step::{Caches, Setup, Timed};
    let write = Timed { name: "write", work: &[Write], fresh: true, generation: 0 };
    let changed = |name, work| Timed { name, work, fresh: false, generation: 1 };
    match temporal {
        Temporal::Write => vec![write],
        Temporal::Read => vec![Setup, Caches, phase("read", &[Read])],
        Temporal::ReRead => {
            vec![Setup, Caches, phase("read", &[Read]), phase("re-read", &[Read])]
        }
        Temporal::ReWrite => vec![write, changed("re-write", &[Write])],
        Temporal::ReadModifyWrite => {
            vec![Setup, Caches, changed("read-modify-write", &[ReadThenWrite])]
        }
        Temporal::ReadThenWrite => {
            vec![Setup, Caches, changed("read-then-write", &[Read, Write])]
        }
        Temporal::Mixed => vec![Setup, Caches, changed("mixed", &[Mixed])],
        Temporal::Metadata => Vec::new(),
    }
}
