//! All links of a machine, and what it has to look at when it is told of one.

use super::{Forgotten, Link, Wish};
use crate::{Buffer, Incarnation, Message, Party, PartyEvent};
use iolab_vocab::Nanos;
use std::collections::BTreeMap;

/// The links of a machine, each made when its party is asked first.
#[derive(Debug)]
pub(crate) struct Links<C, P> {
    failure_timeout: Nanos,
    of: BTreeMap<Party, Link<C, P>>,
}

/// What is left for a machine to do after an event of a link.
#[derive(Debug)]
pub(crate) enum Heard<C> {
    /// Nothing.
    Nothing,
    /// There is a connection again, perhaps to one who has forgotten something.
    Connected { to: Party, incarnation: Incarnation, forgotten: Forgotten<C> },
    /// A question has its answer.
    Replied { from: Party, context: C, message: Message, payload: Option<Buffer> },
    /// Nobody waits for an answer that brought this.
    Unwanted(Buffer),
}

impl<C, P: Clone> Links<C, P> {
    /// None yet; who gives no sign of life for so long is given up.
    pub(crate) fn new(failure_timeout: Nanos) -> Links<C, P> {
        Links { failure_timeout, of: BTreeMap::new() }
    }

    /// The link to a party.
    pub(crate) fn to(&mut self, party: Party) -> &mut Link<C, P> {
        let timeout = self.failure_timeout;
        self.of.entry(party).or_insert_with(|| Link::new(party, timeout))
    }

    /// The life that a party was last seen in.
    pub(crate) fn incarnation(&self, party: Party) -> Option<Incarnation> {
        self.of.get(&party)?.incarnation()
    }

    /// Those that ought to have answered for a while: whether they run may be looked at.
    pub(crate) fn silent(&self, now: Nanos) -> Vec<Party> {
        let silent = self.of.values().filter(|link| link.is_silent(now));
        silent.map(|link| link.party).collect()
    }

    /// All who were ever asked.
    pub(crate) fn parties(&self) -> Vec<Party> {
        self.of.keys().copied().collect()
    }

    /// Looks at the time for a party: see [`Link::woke`].
    pub(crate) fn woke<A: From<Wish<P>>>(
        &mut self,
        now: Nanos,
        party: Party,
        out: &mut Vec<A>,
    ) -> Vec<C> {
        self.of.get_mut(&party).map_or_else(Vec::new, |link| link.woke(now, out))
    }

    /// Something has happened to a link, or came over it.
    pub(crate) fn hear<A: From<Wish<P>>>(
        &mut self,
        now: Nanos,
        event: PartyEvent,
        out: &mut Vec<A>,
    ) -> Heard<C> {
        match event {
            PartyEvent::Connected { to, incarnation, known } => {
                if let Some(link) = self.of.get_mut(&to) {
                    let forgotten = link.connected(now, incarnation, known, out);
                    return Heard::Connected { to, incarnation, forgotten };
                }
            }
            PartyEvent::Disconnected { from } => {
                if let Some(link) = self.of.get_mut(&from) {
                    link.disconnected(now, out);
                }
            }
            PartyEvent::Runs { party } => {
                if let Some(link) = self.of.get_mut(&party) {
                    link.runs(now);
                }
            }
            PartyEvent::Replied { from, request, message, payload } => {
                let link = self.of.get_mut(&from);
                if let Some(context) = link.and_then(|link| link.replied(now, request, out)) {
                    return Heard::Replied { from, context, message, payload };
                }
                return payload.map_or(Heard::Nothing, Heard::Unwanted);
            }
        }
        Heard::Nothing
    }
}
