//! What a temporal pattern is made of: steps, some of them timed.

use crate::plan::Temporal;

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
        Temporal::Mixed => vec![Setup, Caches, phase("mixed", &[Mixed])],
        Temporal::Metadata => Vec::new(),
    }
}
