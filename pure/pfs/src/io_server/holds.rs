//! What atomic calls hold: bytes of subfiles that no other such call uses meanwhile.
//!
//! Promises: a hold that excludes others stands alone, the others beside each other; who comes waits for
//! those before it. Only holds wait for holds: requests of calls that are not atomic pass. A hold is its
//! session's, and goes with it; who releases one learns whether it stood until then. It stands as long as
//! its process is there, however long that takes.
//!
//! Costs: O(log n) in sessions and subfiles, and a look at all who hold or wait for bytes of the same one.

use super::Subfile;
use crate::serving::{Claim, Claims};
use crate::{HoldNumber, Request, SessionId};
use iolab_vocab::Extent;
use std::collections::BTreeMap;

/// Holds of one session at most, with those it waits for.
const HOLDS_MAX: usize = 1 << 16;

/// Whose a hold is; in each subfile it is another one.
type Holder = (SessionId, HoldNumber);

/// All holds of a server.
#[derive(Debug, Default)]
pub(super) struct Holds {
    claims: BTreeMap<Subfile, Claims<Holder>>,
    /// What each session has, and with which request it waits for the rest.
    of: BTreeMap<SessionId, BTreeMap<(HoldNumber, Subfile), Option<Request>>>,
}

/// A hold that is wished.
#[derive(Clone, Copy, Debug)]
pub(super) struct Wish {
    pub(super) number: HoldNumber,
    pub(super) subfile: Subfile,
    pub(super) range: Extent,
    pub(super) excludes: bool,
}

/// What becomes of a wish.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Taken {
    Stands,
    /// It will stand when others are through.
    Waits,
    /// There are too many, or it is wished already.
    Refused,
}

/// What became of a hold that is released.
#[derive(Debug)]
pub(super) enum Released {
    /// It stood.
    Stood,
    /// It was still waited for, with that request.
    Waited(Request),
    Unknown,
}

impl Holds {
    /// Somebody wishes a hold.
    pub(super) fn take(&mut self, session: SessionId, request: Request, wish: Wish) -> Taken {
        let Wish { number, subfile, range, excludes } = wish;
        let own = self.of.entry(session).or_default();
        match own.get(&(number, subfile)) {
            // The answer was lost.
            Some(None) => return Taken::Stands,
            Some(Some(_)) => return Taken::Refused,
            None if own.len() >= HOLDS_MAX => return Taken::Refused,
            None => {}
        }
        let claim = Claim { whose: (session, number), range, is_change: excludes };
        let stands = self.claims.entry(subfile).or_default().enter(claim);
        own.insert((number, subfile), (!stands).then_some(request));
        if stands { Taken::Stands } else { Taken::Waits }
    }

    /// A hold is not needed any more. Gives also those that stand now, by what asked for them.
    pub(super) fn release(
        &mut self,
        session: SessionId,
        number: HoldNumber,
        subfile: Subfile,
    ) -> (Released, Vec<(SessionId, Request)>) {
        let own = self.of.get_mut(&session);
        let released = match own.and_then(|own| own.remove(&(number, subfile))) {
            None => return (Released::Unknown, Vec::new()),
            Some(None) => Released::Stood,
            Some(Some(request)) => Released::Waited(request),
        };
        (released, self.leave(subfile, (session, number)))
    }

    /// A session is over. Gives the holds that stand now.
    pub(super) fn end(&mut self, session: SessionId) -> Vec<(SessionId, Request)> {
        let own = self.of.remove(&session).unwrap_or_default().into_keys();
        own.flat_map(|(number, subfile)| self.leave(subfile, (session, number))).collect()
    }

    fn leave(&mut self, subfile: Subfile, holder: Holder) -> Vec<(SessionId, Request)> {
        let Some(claims) = self.claims.get_mut(&subfile) else { return Vec::new() };
        let begun = claims.leave(holder);
        if claims.is_idle() {
            self.claims.remove(&subfile);
        }
        let stands = |(session, number)| {
            // Of the session that ends, nothing is left.
            let wished = self.of.get_mut(&session)?.get_mut(&(number, subfile))?;
            Some((session, wished.take()?))
        };
        begun.into_iter().filter_map(stands).collect()
    }
}
