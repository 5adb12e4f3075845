//! The size of a file that nobody else writes to, as its calls tell it.

use super::descriptions::Description;
use super::{At, Call, Outcome, Whence};

/// The size; none after something that does not tell it.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct KnownSize(Option<u64>);

impl KnownSize {
    pub(super) fn set(&mut self, bytes: u64) {
        self.0 = Some(bytes);
    }

    /// Something happened that does not tell it.
    pub(super) fn forget(&mut self) {
        self.0 = None;
    }

    pub(super) fn get(self) -> Option<u64> {
        self.0
    }

    /// A call of that description came to something; its position is still as it was before.
    pub(super) fn learn(&mut self, description: Description, call: Call, outcome: Outcome) {
        self.0 = match (call, outcome) {
            (Call::Write { .. }, Ok(0)) => self.0,
            (Call::Write { at, .. }, Ok(moved)) if !description.access.append => {
                let offset = if let At::Offset(at) = at { at } else { description.position };
                self.0.map(|bytes| bytes.max(offset.saturating_add(moved)))
            }
            (Call::Truncate { length }, Ok(_)) => Some(length),
            (Call::Seek { offset, whence: Whence::End }, Ok(position)) => {
                Some(position.saturating_add_signed(-offset))
            }
            (Call::Write { .. } | Call::Truncate { .. } | Call::Allocate { .. }, _) => None,
            _ => self.0,
        };
    }
}
