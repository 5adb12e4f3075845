//! Messages of one collective call, by MPI, over a communicator of ours.
//!
//! Waiting is asking again and now and then giving the processor away, as in `pfs::group`. What is sent counts as gone:
//! its bytes are kept until MPI has them, since algorithms may send before they receive, and a large message
//! of MPI's leaves only when the other side receives it.

use crate::family::Family;
use crate::pfs::group::{Group, check, wait};
use crate::pfs::trouble::Trouble;
use crate::profiling;
use std::collections::VecDeque;

/// Tags are taken modulo what every MPI has at least. Messages of two ranks keep their order, so that tags
/// only matter among those that are on their way at once.
const TAGS: u32 = 1 << 15;
/// How often is asked before the processor is given away: a large message is many parts to MPI, of which
/// each question moves a few.
const POLLS: u32 = 20;
/// Largest part of a message: counts are `int`.
const PART_BYTES: usize = 1 << 30;

/// Where the bytes of a message are until it is gone.
pub(super) enum Source {
    /// Memory of the program's, unchanged until the call ends.
    Lent(*const u8, usize),
    Kept(Vec<u8>),
}

impl Source {
    /// The bytes.
    ///
    /// # Safety
    /// What was lent must still be there, and not change while they are looked at.
    pub(super) unsafe fn bytes(&self) -> &[u8] {
        let (from, bytes) = self.parts();
        // SAFETY: the caller's promise.
        unsafe { std::slice::from_raw_parts(from, bytes) }
    }

    fn parts(&self) -> (*const u8, usize) {
        match self {
            Source::Lent(from, bytes) => (*from, *bytes),
            Source::Kept(bytes) => (bytes.as_ptr(), bytes.len()),
        }
    }
}

/// Messages between ranks.
pub(super) trait Wire {
    /// Begins to send.
    fn send(&mut self, to: u32, tag: u32, what: Source) -> Result<(), Trouble>;

    /// Begins to receive.
    ///
    /// # Safety
    /// There must be room for so many bytes until the next `receive_all` or the end of this.
    unsafe fn receive(
        &mut self,
        from: u32,
        tag: u32,
        to: *mut u8,
        bytes: usize,
    ) -> Result<(), Trouble>;

    /// Waits for all that is to be received.
    fn receive_all(&mut self) -> Result<(), Trouble>;

    /// Waits until no more than so many bytes are on their way; what they were in, for later use.
    fn send_all_but(&mut self, bytes: usize) -> Result<Vec<Vec<u8>>, Trouble>;
}

/// Messages of MPI's.
pub(super) struct Messages<'a> {
    group: &'a Group,
    sent: VecDeque<(Vec<usize>, Source)>,
    on_the_way: usize,
    awaited: Vec<usize>,
}

impl Messages<'_> {
    pub(super) fn of(group: &Group) -> Messages<'_> {
        Messages { group, sent: VecDeque::new(), on_the_way: 0, awaited: Vec::new() }
    }
}

impl Drop for Messages<'_> {
    fn drop(&mut self) {
        // What is still on its way, after a failure of MPI's, may be read at any time.
        std::mem::forget(std::mem::take(&mut self.sent));
    }
}

/// Addresses and lengths of the parts of a message; one of nothing has one part.
fn parts(address: usize, bytes: usize) -> impl Iterator<Item = (usize, usize)> {
    let count = bytes.div_ceil(PART_BYTES).max(1);
    (0..count).map(move |part| {
        let from = part * PART_BYTES;
        (address + from, (bytes - from).min(PART_BYTES))
    })
}

impl Wire for Messages<'_> {
    fn send(&mut self, to: u32, tag: u32, what: Source) -> Result<(), Trouble> {
        let (address, bytes) = what.parts();
        let (byte, communicator) = (Family::here().byte, self.group.communicator);
        let mut requests = Vec::new();
        for (at, bytes) in parts(address as usize, bytes) {
            let mut request = 0usize;
            let (to, tag) = (to as usize, (tag % TAGS) as usize);
            let place = &raw mut request as usize;
            // SAFETY: the bytes stay until the request is done.
            let answer = unsafe { profiling::isend(at, bytes, byte, to, tag, communicator, place) };
            check(answer, "MPI_Isend")?;
            requests.push(request);
        }
        self.on_the_way += bytes;
        self.sent.push_back((requests, what));
        Ok(())
    }

    unsafe fn receive(
        &mut self,
        from: u32,
        tag: u32,
        to: *mut u8,
        bytes: usize,
    ) -> Result<(), Trouble> {
        let (byte, communicator) = (Family::here().byte, self.group.communicator);
        for (at, bytes) in parts(to as usize, bytes) {
            let mut request = 0usize;
            let (from, tag) = (from as usize, (tag % TAGS) as usize);
            let place = &raw mut request as usize;
            // SAFETY: the caller's promise.
            let answer =
                unsafe { profiling::irecv(at, bytes, byte, from, tag, communicator, place) };
            check(answer, "MPI_Irecv")?;
            self.awaited.push(request);
        }
        Ok(())
    }

    fn receive_all(&mut self) -> Result<(), Trouble> {
        for mut request in self.awaited.drain(..) {
            wait(&mut request, POLLS)?;
        }
        Ok(())
    }

    fn send_all_but(&mut self, bytes: usize) -> Result<Vec<Vec<u8>>, Trouble> {
        let mut spare = Vec::new();
        while self.on_the_way > bytes || (bytes == 0 && !self.sent.is_empty()) {
            let Some((requests, what)) = self.sent.pop_front() else { break };
            for mut request in requests {
                wait(&mut request, POLLS)?;
            }
            self.on_the_way -= what.parts().1;
            if let Source::Kept(bytes) = what {
                spare.push(bytes);
            }
        }
        Ok(spare)
    }
}
