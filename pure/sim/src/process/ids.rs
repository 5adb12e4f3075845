//! Numbers of processes, their groups and their offers, and who waits for an answer.

use crate::slab::ids;
use crate::world::{Target, TaskId};

ids! {
    /// A process, over all applications: they fill the platform's clients in order.
    ProcessId;
    /// A communicator at work: it has one number, whichever application it belongs to.
    GroupId;
    /// A large message between processes, from offer to arrival.
    OfferId;
}

impl ProcessId {
    /// Where messages reach it.
    pub(crate) fn target(self) -> Target {
        Target(self.0)
    }

    /// Its own task.
    pub(crate) fn task(self) -> TaskId {
        TaskId(self.0)
    }
}

/// A task that waits for servers, and its process, where the answers go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Caller {
    pub(crate) process: ProcessId,
    pub(crate) task: TaskId,
}

impl Caller {
    /// Where answers go.
    pub(crate) fn target(self) -> Target {
        self.process.target()
    }
}
