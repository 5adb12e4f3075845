//! Which cells of pattern × temporal × method run, and why the others are refused.

use crate::cache::CacheState;
use crate::plan::{Case, Plan, Temporal};
use crate::source::is_contiguous;
use iolab_backend::Needs;
use iolab_vocab::Rank;

/// What this run can do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Abilities {
    /// It was started under mpiexec.
    pub mpi: bool,
    /// The kernel has io_uring and lets us use it.
    pub uring: bool,
}

/// Why a case is not run, if it is not.
pub fn refusal(case: &Case, plan: &Plan, ranks: u32, abilities: Abilities) -> Option<String> {
    let method = case.method.name;
    if case.temporal == Temporal::Metadata && !matches!(method, "posix" | "null") {
        return Some(format!("metadata operations have no {method} form; use posix"));
    }
    match case.method.needs {
        Needs::Mpi if !abilities.mpi => {
            return Some(format!("{method} needs a start under mpiexec"));
        }
        Needs::Uring if !abilities.uring => {
            return Some(format!("{method} needs a kernel that allows io_uring"));
        }
        _ => {}
    }
    if plan.cache == CacheState::Direct && !case.method.direct {
        return Some(format!("{method} cannot go around the page cache"));
    }
    let pattern = match case.pattern(ranks, plan.seed) {
        Ok(pattern) => pattern,
        Err(error) => return Some(error.message),
    };
    let pieces = (0..ranks).any(|rank| !is_contiguous(pattern.as_ref(), case.rank(Rank(rank))));
    if plan.time_limit > 0.0 && case.together(pieces) {
        return Some(format!("{method} needs the same count on all ranks here: no time limit"));
    }
    if case.depth > 1 && pieces {
        return Some("several operations under way have to be contiguous ones".to_owned());
    }
    None
}
