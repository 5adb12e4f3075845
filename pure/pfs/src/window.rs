//! The window of a connection: memory that both of its ends have, so that payload is copied once by each
//! and never by the kernel. A frame then says in which slot of the window its payload is.
//!
//! Who asks has the say over all slots: one for the payload of a write, or for what a read may bring, is
//! taken with the request and free again when the reply has been used. A window goes with its connection;
//! what was asked again on the next one is in slots of the next one. So nobody writes to a slot that has
//! another use, whatever either side has given up.
//!
//! Costs: a look at one word for each slot taken.

use crate::message::PAYLOAD_BYTES_MAX;

/// Slots of a window at most.
pub const SLOTS_MAX: u32 = 64;
/// A slot, as servers cut them: one transfer of the usual size.
pub const SLOT_BYTES: u32 = 256 << 10;
/// Slots of a window, as servers make them: with four servers, 64 for a session. Two transfers to each server
/// are under way in a call.
const SLOTS: u32 = 16;
/// A window gets at most this part of what is left for windows: so there is some for those who come later.
const SHARE: u64 = 16;

/// How large a window is, and how it is cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Window {
    slots: u32,
    slot_bytes: u32,
}

/// Where in a window payload is, or may go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Slot {
    /// Its first byte in the window.
    pub offset: u64,
    /// How many bytes of payload there are, or may be; never none.
    pub bytes: u32,
}

impl Slot {
    /// The byte behind its last, or the largest number.
    pub fn end(&self) -> u64 {
        self.offset.saturating_add(self.bytes.into())
    }
}

impl Window {
    /// One of so many slots of so many bytes, if there may be such a one: slots are whole pages of 4 KiB.
    pub fn new(slots: u32, slot_bytes: u32) -> Option<Window> {
        let is_sensible = (1..=SLOTS_MAX).contains(&slots)
            && slot_bytes > 0
            && slot_bytes.is_multiple_of(4096)
            && u64::from(slot_bytes) <= PAYLOAD_BYTES_MAX;
        is_sensible.then_some(Window { slots, slot_bytes })
    }

    /// The one for a newcomer where so many bytes are left for windows: smaller ones as less is left, none
    /// if there is not one slot.
    pub fn within(left_bytes: u64) -> Option<Window> {
        let slot_bytes = u64::from(SLOT_BYTES);
        let share = (left_bytes / SHARE).max(slot_bytes.min(left_bytes));
        Window::new((share / slot_bytes).min(SLOTS.into()) as u32, SLOT_BYTES)
    }

    /// Its bytes.
    pub fn bytes(&self) -> u64 {
        u64::from(self.slots) * u64::from(self.slot_bytes)
    }

    /// How many slots it has.
    pub fn slots(&self) -> u32 {
        self.slots
    }

    /// Bytes of each.
    pub fn slot_bytes(&self) -> u32 {
        self.slot_bytes
    }

    /// Whether all of a slot is in it, and no more than the payload of one message.
    pub fn holds(&self, slot: Slot) -> bool {
        slot.end() <= self.bytes() && u64::from(slot.bytes) <= PAYLOAD_BYTES_MAX
    }
}

/// Which slots of a window are taken, as who asks keeps count.
#[derive(Debug)]
pub struct Slots {
    window: Window,
    taken: u64,
}

impl Slots {
    /// All of them free.
    pub fn of(window: Window) -> Slots {
        Slots { window, taken: 0 }
    }

    /// The first free place for so many bytes: what was used last is used again, while it is in the caches.
    pub fn take(&mut self, bytes: u32) -> Option<Slot> {
        let count = bytes.div_ceil(self.window.slot_bytes);
        if count == 0 || count > self.window.slots {
            return None;
        }
        let first =
            (0..=self.window.slots - count).find(|&first| self.taken & mask(first, count) == 0)?;
        self.taken |= mask(first, count);
        Some(Slot { offset: u64::from(first) * u64::from(self.window.slot_bytes), bytes })
    }

    /// One that was taken is free again.
    pub fn give_back(&mut self, slot: Slot) {
        let slot_bytes = u64::from(self.window.slot_bytes);
        let (first, end) = (slot.offset / slot_bytes, slot.end().div_ceil(slot_bytes));
        self.taken &= !mask(first as u32, (end - first) as u32);
    }
}

/// The bits of so many slots.
fn mask(first: u32, count: u32) -> u64 {
    (u64::MAX >> (64 - count)) << first
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slots_that_are_taken_never_overlap_and_the_first_free_one_comes_next() {
        let window = Window::new(5, 4096).unwrap();
        let mut slots = Slots::of(window);
        let [a, b, c] = [1, 8193, 4096].map(|bytes| slots.take(bytes).unwrap());
        assert_eq!([a.offset, b.offset, c.offset], [0, 4096, 16384]);
        assert_eq!([a, b, c].map(|slot| window.holds(slot)), [true; 3]);
        assert_eq!((slots.take(1), slots.take(0)), (None, None));
        slots.give_back(b);
        assert_eq!(slots.take(12288 + 1), None);
        assert_eq!(slots.take(12288).unwrap().offset, 4096);
        slots.give_back(a);
        assert_eq!(slots.take(4096).unwrap().offset, 0);
    }

    #[test]
    fn all_slots_of_the_largest_window_can_be_taken_and_given_back() {
        let mut slots = Slots::of(Window::new(SLOTS_MAX, SLOT_BYTES).unwrap());
        for _ in 0..2 {
            let all = slots.take(SLOTS_MAX * SLOT_BYTES).unwrap();
            assert_eq!((all.offset, slots.take(1)), (0, None));
            slots.give_back(all);
        }
        let each: Vec<_> = (0..SLOTS_MAX).map(|_| slots.take(1).unwrap().offset).collect();
        assert!(each.is_sorted() && slots.take(1).is_none());
        slots.give_back(Slot { offset: each[17], bytes: 1 });
        assert_eq!(slots.take(SLOT_BYTES).unwrap().offset, each[17]);
    }

    #[test]
    fn a_slot_beyond_the_window_is_not_in_it_however_large_the_numbers() {
        let window = Window::new(2, 4096).unwrap();
        for (offset, bytes, is_in) in [
            (0, 8192, true),
            (8191, 1, true),
            (8192, 1, false),
            (0, 8193, false),
            (u64::MAX, 1, false),
            (u64::MAX - 1, u32::MAX, false),
        ] {
            assert_eq!(window.holds(Slot { offset, bytes }), is_in, "{offset} {bytes}");
        }
    }

    #[test]
    fn a_slot_has_no_more_than_the_payload_of_one_message() {
        let window = Window::new(SLOTS_MAX, SLOT_BYTES).unwrap();
        assert!(window.holds(Slot { offset: 5, bytes: 1 << 20 }));
        assert!(!window.holds(Slot { offset: 5, bytes: (1 << 20) + 1 }));
    }

    #[test]
    fn windows_get_smaller_as_less_is_left_and_end_with_one_slot() {
        let slots = |left| Window::within(left).map_or(0, |window| window.slots());
        let slot = u64::from(SLOT_BYTES);
        assert_eq!([slots(u64::MAX), slots(1 << 30), slots(48 * slot)], [16, 16, 3]);
        assert_eq!([slots(slot), slots(slot - 1), slots(0)], [1, 0, 0]);
        let (mut left, mut count) = (100 * slot, 0);
        while let Some(window) = Window::within(left) {
            left -= window.bytes();
            count += 1;
        }
        assert!(left < slot && count > 30, "{count} windows, {left} bytes left");
    }

    #[test]
    fn impossible_windows_are_none() {
        for (slots, bytes) in [(0, 4096), (65, 4096), (1, 0), (1, 4095), (1, u32::MAX)] {
            assert_eq!(Window::new(slots, bytes), None, "{slots} {bytes}");
        }
    }
}
