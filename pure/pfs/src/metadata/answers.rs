//! Answers of the manager that wait for their records, and what becomes of them.

use super::Metadata;
use super::events::Action;
use crate::{Code, Message, PeerAction, Request, SessionId};

/// What is told after a sync of the journal that failed.
pub(super) const FAILED: &str = "the device could not sync the journal: names do not change until the instance is started again";

/// An answer that is true once a record is written.
#[derive(Debug)]
pub(super) struct Waiting {
    pub(super) sequence: u64,
    pub(super) session: SessionId,
    pub(super) request: Request,
    pub(super) message: Message,
    /// Whether it is remembered, so that the request is not carried out again.
    pub(super) is_change: bool,
}

impl Metadata {
    /// Gives the answers whose records are written.
    pub(super) fn answer_written(&mut self, out: &mut Vec<Action>) {
        while let Some(waiting) = self.waiting.front()
            && waiting.sequence <= self.durable
        {
            let Some(Waiting { session, request, message, is_change, .. }) =
                self.waiting.pop_front()
            else {
                return;
            };
            let Some(session) = self.sessions.get(session) else { continue };
            session.executing.remove(&request);
            if is_change {
                session.remember(request, message.clone());
            }
            if let Some(peer) = session.peer {
                out.push(Action::Peer(PeerAction::reply(peer, request, message)));
            }
        }
    }

    /// The journal could not be synced: whoever waits hears that it failed, though it may have happened.
    pub(super) fn fail(&mut self, out: &mut Vec<Action>) {
        self.has_failed = true;
        self.checkpoints.cancel();
        self.names.end_walk();
        for Waiting { session, request, .. } in std::mem::take(&mut self.waiting) {
            let Some(session) = self.sessions.get(session) else { continue };
            session.executing.remove(&request);
            let message = Message::failed(Code::IO, FAILED);
            let reply = |peer| Action::Peer(PeerAction::reply(peer, request, message));
            out.extend(session.peer.map(reply));
        }
    }
}
