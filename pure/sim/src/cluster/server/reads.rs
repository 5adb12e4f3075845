//! What tells whether anything of a server's reads is still going on by itself.

use crate::cluster::request::RequestId;

#[derive(Debug, Default)]
pub(super) struct Reads {
    /// Transfers on the device, writes included.
    transfer_count: u32,
    /// Wakes that the cache layer has asked for.
    wake_count: u32,
    /// Packets of read data that have not left.
    leaving_count: u32,
    /// Requests that have some data, less than a packet, and none of it leaving.
    parts: Vec<RequestId>,
}

impl Reads {
    pub(super) fn transfer_began(&mut self) {
        self.transfer_count += 1;
    }

    pub(super) fn transfer_ended(&mut self) {
        self.transfer_count -= 1;
    }

    pub(super) fn will_wake(&mut self) {
        self.wake_count += 1;
    }

    pub(super) fn woke(&mut self) {
        self.wake_count -= 1;
    }

    /// A packet is about to leave.
    pub(super) fn leaves(&mut self) {
        self.leaving_count += 1;
    }

    /// A packet has left; the next of its message may be about to.
    pub(super) fn left(&mut self, id: RequestId, is_followed: bool) {
        match is_followed {
            true => self.no_part(id),
            false => self.leaving_count -= 1,
        }
    }

    /// The request has data that is less than a packet.
    pub(super) fn has_part(&mut self, id: RequestId) {
        if !self.parts.contains(&id) {
            self.parts.push(id);
        }
    }

    pub(super) fn no_part(&mut self, id: RequestId) {
        self.parts.retain(|part| *part != id);
    }

    /// Whether something will happen anyway, or there is no part at all.
    pub(super) fn go_on_by_themselves(&self) -> bool {
        let goes_on = self.transfer_count + self.wake_count + self.leaving_count > 0;
        self.parts.is_empty() || goes_on
    }

    pub(super) fn take_parts(&mut self) -> Vec<RequestId> {
        std::mem::take(&mut self.parts)
    }
}
