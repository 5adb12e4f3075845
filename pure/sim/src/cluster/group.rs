//! Groups of processes: an application's world, and the communicators its program declares.

use super::task::Meeting;
use crate::platform::PlatformError;
use crate::program::Program;
use std::collections::BTreeMap;

/// The processes of a communicator, by rank.
#[derive(Debug)]
enum Members {
    /// A whole application: processes are numbered in the order of their ranks.
    Range { first: u32, count: u32 },
    /// As declared; the map leads back from process to rank.
    Listed { processes: Vec<u32>, ranks: BTreeMap<u32, u32> },
}

/// A communicator at work. Within the simulation it has one number, whichever application it
/// belongs to.
#[derive(Debug)]
pub(super) struct Group {
    members: Members,
    /// Meetings that not everyone has come to yet, oldest first.
    pub(super) meetings: Vec<Meeting>,
}

impl Group {
    pub(super) fn world(first: u32, count: u32) -> Group {
        Group { members: Members::Range { first, count }, meetings: Vec::new() }
    }

    fn listed(processes: Vec<u32>) -> Group {
        let ranks = processes.iter().zip(0..).map(|(&process, rank)| (process, rank)).collect();
        Group { members: Members::Listed { processes, ranks }, meetings: Vec::new() }
    }

    pub(super) fn rank_count(&self) -> u32 {
        match &self.members {
            Members::Range { count, .. } => *count,
            Members::Listed { processes, .. } => processes.len() as u32,
        }
    }

    /// The process with that rank; it must exist.
    pub(super) fn process(&self, rank: u32) -> u32 {
        match &self.members {
            Members::Range { first, .. } => first + rank,
            Members::Listed { processes, .. } => processes[rank as usize],
        }
    }

    /// The rank of a process, if it is a member.
    pub(super) fn rank(&self, process: u32) -> Option<u32> {
        match &self.members {
            Members::Range { first, count } => {
                process.checked_sub(*first).filter(|rank| rank < count)
            }
            Members::Listed { ranks, .. } => ranks.get(&process).copied(),
        }
    }
}

/// The groups of one application whose processes start at `first`: its world, then what the
/// program declares.
pub(super) fn groups_of(
    program: &dyn Program,
    application: usize,
    first: u32,
) -> Result<Vec<Group>, PlatformError> {
    let count = program.rank_count();
    let mut groups = vec![Group::world(first, count)];
    for (ranks, number) in program.communicators().into_iter().zip(1..) {
        let mut processes = Vec::new();
        for rank in ranks {
            if rank >= count || processes.contains(&(first + rank)) {
                return Err(unknown_member(application, number, rank, count));
            }
            processes.push(first + rank);
        }
        groups.push(Group::listed(processes));
    }
    Ok(groups)
}

fn unknown_member(application: usize, communicator: u32, rank: u32, count: u32) -> PlatformError {
    let what = if rank < count { "twice" } else { "which the application does not have" };
    PlatformError {
        message: format!(
            "application {application}: communicator {communicator} has rank {rank}, {what}"
        ),
        hint: format!("list each rank from 0 to {} at most once", count.saturating_sub(1)),
    }
}
