//! Groups of processes: an application's world, and the communicators its program declares.

use super::{Meeting, ProcessId};
use crate::program::Program;
use crate::world::TaskId;
use iolab_vocab::Refusal;
use std::collections::BTreeMap;

/// The processes of a communicator, by rank.
#[derive(Debug)]
enum Members {
    /// A whole application: processes are numbered in the order of their ranks.
    Range { first: ProcessId, count: u32 },
    /// As declared; the map leads back from process to rank.
    Listed { processes: Vec<ProcessId>, ranks: BTreeMap<ProcessId, u32> },
}

/// A communicator at work.
#[derive(Debug)]
pub(crate) struct Group {
    members: Members,
    /// Meetings that not everyone has come to yet, oldest first.
    pub(crate) meetings: Vec<Meeting>,
}

impl Group {
    fn world(first: ProcessId, count: u32) -> Group {
        Group { members: Members::Range { first, count }, meetings: Vec::new() }
    }

    fn listed(processes: Vec<ProcessId>) -> Group {
        let ranks = processes.iter().zip(0..).map(|(&process, rank)| (process, rank)).collect();
        Group { members: Members::Listed { processes, ranks }, meetings: Vec::new() }
    }

    pub(crate) fn rank_count(&self) -> u32 {
        match &self.members {
            Members::Range { count, .. } => *count,
            Members::Listed { processes, .. } => processes.len() as u32,
        }
    }

    /// The process with that rank; it must exist.
    pub(crate) fn process(&self, rank: u32) -> ProcessId {
        match &self.members {
            Members::Range { first, .. } => ProcessId(first.0 + rank),
            Members::Listed { processes, .. } => processes[rank as usize],
        }
    }

    /// The rank of a process, if it is a member.
    pub(crate) fn rank(&self, process: ProcessId) -> Option<u32> {
        match &self.members {
            Members::Range { first, count } => {
                process.0.checked_sub(first.0).filter(|rank| rank < count)
            }
            Members::Listed { ranks, .. } => ranks.get(&process).copied(),
        }
    }

    /// A task of a process that has crashed waits in no meeting any more.
    pub(crate) fn leave(&mut self, process: ProcessId, task: TaskId) {
        let rank = self.rank(process);
        for meeting in &mut self.meetings {
            if let Some(place) = meeting.waiting.iter().position(|one| *one == task) {
                meeting.waiting.remove(place);
                meeting.present[rank.expect("only members come") as usize] = false;
            }
        }
    }
}

/// The groups of one application whose processes start at `first`: its world, then what the
/// program declares.
pub(crate) fn groups_of(
    program: &dyn Program,
    application: usize,
    first: ProcessId,
) -> Result<Vec<Group>, Refusal> {
    let count = program.rank_count();
    let mut groups = vec![Group::world(first, count)];
    for (ranks, number) in program.communicators().into_iter().zip(1..) {
        let mut processes = Vec::new();
        for rank in ranks {
            let process = ProcessId(first.0.saturating_add(rank));
            if rank >= count || processes.contains(&process) {
                return Err(unknown_member(application, number, rank, count));
            }
            processes.push(process);
        }
        groups.push(Group::listed(processes));
    }
    Ok(groups)
}

fn unknown_member(application: usize, communicator: u32, rank: u32, count: u32) -> Refusal {
    let what = if rank < count { "twice" } else { "which the application does not have" };
    Refusal {
        message: format!(
            "application {application}: communicator {communicator} has rank {rank}, {what}"
        ),
        hint: format!("list each rank from 0 to {} at most once", count.saturating_sub(1)),
    }
}
