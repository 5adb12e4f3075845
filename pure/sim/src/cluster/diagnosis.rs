//! How a deadlock of a cluster is looked into: what processes know, and who waits for which server.

use super::message::Message;
use super::{Cluster, World};
use crate::process::{Deadlock, Reason, Reasons};
use crate::queue::EventQueue;
use crate::world::Event;
use std::collections::BTreeSet;

impl<Q: EventQueue<Event>> Cluster<'_, Q> {
    /// Explains why processes have not ended although nothing is left to happen.
    pub(super) fn diagnose(&self) -> Deadlock {
        let processes = &self.machines.processes;
        processes.diagnose(&self.world, |reasons| self.tell_of_servers(reasons))
    }

    fn tell_of_servers(&self, reasons: &mut Reasons) {
        let world: &World<Q> = &self.world;
        let mut unanswered = BTreeSet::new();
        let requests = world.payloads.live();
        unanswered.extend(requests.map(|(_, request)| (request.from.task, request.server)));
        unanswered.extend(self.machines.servers.syncs());
        for message in world.messages() {
            let (task, server) = match message.content {
                Message::Sync { from, .. } | Message::Resize { from } => {
                    (from.task, Some(world.server_at(message.target)))
                }
                Message::ReadData { task, .. }
                | Message::WriteDone { task }
                | Message::Done { task } => {
                    let from = message.from;
                    (task, world.servers().find(|at| world.node_of(world.target_of(*at)) == from))
                }
                _ => continue,
            };
            unanswered.extend(server.map(|server| (task, server)));
        }
        for (task, server) in unanswered {
            reasons.entry(task).or_default().push(Reason::Server(server.0));
        }
    }
}
