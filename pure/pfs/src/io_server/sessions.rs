//! What a server keeps of each session: its connection, its views, its last answers.

use super::Settings;
use crate::links::WINDOW;
use crate::plant::{Plant, is_planted};
use crate::{Inode, Layout, Message, Peer, Request, SessionId, ViewNumber};
use iolab_pattern::Nest;
use iolab_vocab::Nanos;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

/// A stored view.
#[derive(Clone, Debug)]
pub(super) struct View {
    pub(super) inode: Inode,
    pub(super) layout: Layout,
    pub(super) nest: Arc<Nest>,
    /// Encoded.
    bytes: u64,
}

/// A view of which some parts have come.
#[derive(Debug)]
struct Coming {
    view: ViewNumber,
    inode: Inode,
    layout: Layout,
    encoded: Vec<u8>,
}

/// One session.
#[derive(Debug, Default)]
pub(super) struct Session {
    /// Its connection, if there is one now.
    pub(super) peer: Option<Peer>,
    /// Since when there is none.
    pub(super) lost_at: Nanos,
    views: BTreeMap<ViewNumber, View>,
    view_bytes: u64,
    coming: Option<Coming>,
    /// Requests under way; those that are asked once more are not begun again.
    pub(super) executing: BTreeSet<Request>,
    /// The last answers to requests that changed something.
    answers: VecDeque<(Request, Message)>,
}

impl Session {
    pub(super) fn view(&self, number: ViewNumber) -> Option<&View> {
        self.views.get(&number)
    }

    /// The answer to a changing request that was carried out before.
    pub(super) fn answer(&self, request: Request) -> Option<&Message> {
        self.answers.iter().find(|(known, _)| *known == request).map(|(_, answer)| answer)
    }

    pub(super) fn remember(&mut self, request: Request, answer: Message) {
        if self.answers.len() as u64 == WINDOW {
            // The one that the client has had for longest.
            let oldest = (0..self.answers.len()).min_by_key(|&at| self.answers[at].0);
            oldest.and_then(|at| self.answers.remove(at));
        }
        self.answers.push_back((request, answer));
    }

    pub(super) fn drop_view(&mut self, number: ViewNumber) {
        if let Some(view) = self.views.remove(&number) {
            self.view_bytes -= view.bytes;
        }
    }

    /// Forgets the oldest views until no more than so many bytes are left: who still needs one is told that
    /// it is unknown, and sends it again.
    fn make_room(&mut self, bytes: u64) {
        while self.view_bytes > bytes
            && let Some((_, view)) = self.views.pop_first()
        {
            self.view_bytes -= view.bytes;
        }
    }

    /// Takes a part of a view; the answer is an error for people, if there is one.
    pub(super) fn take_part(
        &mut self,
        part: Part,
        settings: &Settings,
    ) -> Result<(), &'static str> {
        let Part { view, inode, layout, offset, total, bytes } = part;
        if offset == 0 {
            self.drop_view(view);
            self.coming = None;
            if u64::from(total) > settings.view_bytes_max {
                return Err("the view is larger than what is stored of one session");
            }
            let is_full = u64::from(total) > settings.view_bytes_max - self.view_bytes;
            if is_planted(Plant::ViewsKept) && is_full {
                return Err("the session has no room for more views");
            }
            self.make_room(settings.view_bytes_max - u64::from(total));
            self.coming = Some(Coming { view, inode, layout, encoded: Vec::new() });
        }
        let Some(coming) = &mut self.coming else {
            return Err("a part of a view without its first");
        };
        let fits = coming.view == view
            && (coming.inode, coming.layout) == (inode, layout)
            && coming.encoded.len() == offset as usize
            && coming.encoded.len() + bytes.len() <= total as usize;
        if !fits {
            self.coming = None;
            return Err("parts of a view that do not belong together");
        }
        coming.encoded.extend(bytes);
        if coming.encoded.len() < total as usize {
            return Ok(());
        }
        let Some(Coming { encoded, .. }) = self.coming.take() else { return Ok(()) };
        let nest = Nest::decode(&encoded).map_err(|_| "a mangled nest")?;
        if !nest.proper() {
            return Err("a view whose offsets do not ascend");
        }
        let stored = View { inode, layout, nest: Arc::new(nest), bytes: u64::from(total) };
        self.view_bytes += stored.bytes;
        self.views.insert(view, stored);
        Ok(())
    }
}

/// A part of a view, as it comes.
pub(super) struct Part {
    pub(super) view: ViewNumber,
    pub(super) inode: Inode,
    pub(super) layout: Layout,
    pub(super) offset: u32,
    pub(super) total: u32,
    pub(super) bytes: Vec<u8>,
}

/// All sessions of a server, and whose connection is whose.
#[derive(Debug, Default)]
pub(super) struct Sessions {
    of: BTreeMap<SessionId, Session>,
    peers: BTreeMap<Peer, SessionId>,
}

impl Sessions {
    /// A session has a connection. Tells whether it was known, and which connection it had.
    pub(super) fn up(&mut self, peer: Peer, id: SessionId) -> (bool, Option<Peer>) {
        let known = self.of.contains_key(&id);
        let session = self.of.entry(id).or_default();
        let before = session.peer.replace(peer);
        if let Some(before) = before {
            self.peers.remove(&before);
        }
        self.peers.insert(peer, id);
        (known, before)
    }

    /// A connection is no more. Gives its session.
    pub(super) fn lost(&mut self, now: Nanos, peer: Peer) -> Option<SessionId> {
        let id = self.peers.remove(&peer)?;
        if let Some(session) = self.of.get_mut(&id) {
            (session.peer, session.lost_at) = (None, now);
        }
        Some(id)
    }

    /// The session of a connection.
    pub(super) fn of_peer_mut(&mut self, peer: Peer) -> Option<(SessionId, &mut Session)> {
        let id = *self.peers.get(&peer)?;
        Some((id, self.of.get_mut(&id)?))
    }

    /// When the session lost its connection that has been without one for longest.
    pub(super) fn lost_first(&self) -> Option<Nanos> {
        let without = self.of.values().filter(|session| session.peer.is_none());
        without.map(|session| session.lost_at).min()
    }

    pub(super) fn get(&mut self, id: SessionId) -> Option<&mut Session> {
        self.of.get_mut(&id)
    }

    /// Forgets a session.
    pub(super) fn end(&mut self, id: SessionId) {
        if let Some(peer) = self.of.remove(&id).and_then(|session| session.peer) {
            self.peers.remove(&peer);
        }
    }

    /// Sessions that have had no connection for so long.
    pub(super) fn expired(&self, now: Nanos, timeout: Nanos) -> Vec<SessionId> {
        let is_over =
            |session: &Session| session.peer.is_none() && now.since(session.lost_at) >= timeout;
        self.of.iter().filter(|(_, session)| is_over(session)).map(|(&id, _)| id).collect()
    }
}
