//! What a server keeps of each session, whatever it serves: its connection, what is under way, its last
//! answers. `S` is what it keeps beside that.
//!
//! Promises: a session has one connection at most, the last one; one without any for too long is told as
//! expired. Costs: O(log n) in sessions, and in those that expire.

use crate::links::WINDOW;
use crate::serving::ELSEWHERE;
use crate::{Message, Peer, PeerAction, Request, SessionId};
use iolab_vocab::Nanos;
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// One session.
#[derive(Debug, Default)]
pub(crate) struct Session<S> {
    /// Its connection, if there is one now.
    pub(crate) peer: Option<Peer>,
    /// Since when there is none.
    lost_at: Nanos,
    /// Requests under way; those that are asked once more are not begun again.
    pub(crate) executing: BTreeSet<Request>,
    /// The last answers to requests that changed something.
    answers: VecDeque<(Request, Message)>,
    pub(crate) own: S,
}

impl<S> Session<S> {
    /// The answer to a changing request that was carried out before.
    pub(crate) fn answer(&self, request: Request) -> Option<&Message> {
        self.answers.iter().find(|(known, _)| *known == request).map(|(_, answer)| answer)
    }

    pub(crate) fn remember(&mut self, request: Request, answer: Message) {
        if self.answers.len() as u64 == WINDOW {
            // The one that the client has had for longest.
            let oldest = (0..self.answers.len()).min_by_key(|&at| self.answers[at].0);
            oldest.and_then(|at| self.answers.remove(at));
        }
        self.answers.push_back((request, answer));
    }
}

/// All sessions of a server, and whose connection is whose.
#[derive(Debug, Default)]
pub(crate) struct Sessions<S> {
    of: BTreeMap<SessionId, Session<S>>,
    peers: BTreeMap<Peer, SessionId>,
    /// Those without a connection, by when they lost it.
    lost: BTreeSet<(Nanos, SessionId)>,
    /// Those of an earlier life: they have been without a connection since somebody tells the time.
    recovered: Vec<SessionId>,
}

impl<S: Default> Sessions<S> {
    /// A session has a connection: it is welcome there, and ends the one that it had. `forgets` says that it may have been
    /// known before, with answers; where that cannot be, it counts as known.
    pub(crate) fn up<P>(
        &mut self,
        peer: Peer,
        id: SessionId,
        forgets: bool,
    ) -> impl Iterator<Item = PeerAction<P>> + use<S, P> {
        let known = !forgets || self.of.contains_key(&id);
        let session = self.of.entry(id).or_default();
        self.lost.remove(&(session.lost_at, id));
        let before = session.peer.replace(peer);
        if let Some(before) = before {
            self.peers.remove(&before);
        }
        self.peers.insert(peer, id);
        let ended = before.map(|peer| PeerAction::Drop { peer, why: ELSEWHERE });
        ended.into_iter().chain([PeerAction::Welcome { peer, known }])
    }

    /// A session that an earlier life knew.
    pub(crate) fn recover(&mut self, id: SessionId) -> &mut Session<S> {
        if !self.of.contains_key(&id) {
            self.recovered.push(id);
        }
        self.of.entry(id).or_default()
    }
}

impl<S> Sessions<S> {
    /// It is so late: those of an earlier life have been without a connection since now.
    pub(crate) fn told_time(&mut self, now: Nanos) {
        for id in std::mem::take(&mut self.recovered) {
            if let Some(session) = self.of.get_mut(&id)
                && session.peer.is_none()
            {
                session.lost_at = now;
                self.lost.insert((now, id));
            }
        }
    }

    /// A connection is no more. Gives its session.
    pub(crate) fn lost(&mut self, now: Nanos, peer: Peer) -> Option<SessionId> {
        let id = self.peers.remove(&peer)?;
        if let Some(session) = self.of.get_mut(&id) {
            (session.peer, session.lost_at) = (None, now);
            self.lost.insert((now, id));
        }
        Some(id)
    }

    /// The session of a connection.
    pub(crate) fn of_peer_mut(&mut self, peer: Peer) -> Option<(SessionId, &mut Session<S>)> {
        let id = *self.peers.get(&peer)?;
        Some((id, self.of.get_mut(&id)?))
    }

    pub(crate) fn get(&mut self, id: SessionId) -> Option<&mut Session<S>> {
        self.of.get_mut(&id)
    }

    /// Whether it is known.
    pub(crate) fn has(&self, id: SessionId) -> bool {
        self.of.contains_key(&id)
    }

    /// All answers that are remembered, by session, in the order in which they were given.
    pub(crate) fn answers(&self) -> impl Iterator<Item = (SessionId, Request, &Message)> + '_ {
        self.of.iter().flat_map(|(&id, session)| {
            session.answers.iter().map(move |(request, answer)| (id, *request, answer))
        })
    }

    /// The connection of a session.
    pub(crate) fn peer_of(&self, id: SessionId) -> Option<Peer> {
        self.of.get(&id)?.peer
    }

    /// When the session lost its connection that has been without one for longest.
    pub(crate) fn lost_first(&self) -> Option<Nanos> {
        self.lost.first().map(|&(at, _)| at)
    }

    /// Forgets a session.
    pub(crate) fn end(&mut self, id: SessionId) {
        let Some(session) = self.of.remove(&id) else { return };
        self.lost.remove(&(session.lost_at, id));
        if let Some(peer) = session.peer {
            self.peers.remove(&peer);
        }
    }

    /// Sessions that have had no connection for so long, by their numbers.
    pub(crate) fn expired(&self, now: Nanos, timeout: Nanos) -> Vec<SessionId> {
        let is_over = |&&(at, _): &&(Nanos, SessionId)| now.since(at) >= timeout;
        let over = self.lost.iter().take_while(is_over);
        let mut expired: Vec<SessionId> = over.map(|&(_, id)| id).collect();
        expired.sort_unstable();
        expired
    }
}
