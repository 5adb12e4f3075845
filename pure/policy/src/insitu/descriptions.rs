//! The open file descriptions of one file, with the position the program believes in and the
//! position the file below really has. Shared by the strategies that make positions virtual.

use super::{Access, At, Call, Handle, Short, Whence};

/// `EINVAL`: a seek before the start of the file.
pub(super) const INVALID: super::Errno = super::Errno(22);

/// One description.
#[derive(Clone, Copy, Debug)]
pub(super) struct Description {
    pub(super) handle: Handle,
    pub(super) access: Access,
    /// Where the program believes the file position to be.
    pub(super) position: u64,
    /// Where it is below.
    pub(super) below: u64,
}

/// A handful of descriptions; the one used last is found first.
#[derive(Clone, Debug, Default)]
pub(super) struct Descriptions {
    list: Vec<Description>,
    last: usize,
}

impl Descriptions {
    pub(super) fn open(&mut self, handle: Handle, access: Access, position: u64) {
        self.list.push(Description { handle, access, position, below: position });
    }

    pub(super) fn close(&mut self, handle: Handle) {
        self.list.retain(|description| description.handle != handle);
        self.last = 0;
    }

    /// Any description that can write, by appending or not.
    pub(super) fn writer(&self, appending: bool) -> Option<Handle> {
        let suits = |access: Access| access.write && access.append == appending;
        self.list.iter().find(|description| suits(description.access)).map(|d| d.handle)
    }

    /// A transfer at the position as one at its offset; appends stay as they are.
    pub(super) fn placed(&mut self, handle: Handle, call: Call) -> Call {
        let description = self.get(handle);
        if description.access.append { call } else { call.placed(description.position) }
    }

    /// What a call that came to `value` says about the position the program believes in.
    pub(super) fn moved(&mut self, handle: Handle, call: Call, value: u64) {
        let description = self.get(handle);
        match call {
            Call::Read { at: At::Position, .. } | Call::Write { at: At::Position, .. } => {
                description.position = description.position.saturating_add(value);
            }
            Call::Seek { .. } => (description.position, description.below) = (value, value),
            _ => {}
        }
    }

    /// The description of that handle. A handle nobody opened is the driver's broken promise.
    pub(super) fn get(&mut self, handle: Handle) -> &mut Description {
        if self.list.get(self.last).is_none_or(|description| description.handle != handle) {
            self.last = self
                .list
                .iter()
                .position(|description| description.handle == handle)
                .unwrap_or_else(|| panic!("{handle:?} was never opened on this file"));
        }
        &mut self.list[self.last]
    }
}

/// A seek from the start or the position that leads somewhere: it needs nothing but the position.
pub(super) fn seek_short(position: &mut u64, offset: i64, whence: Whence) -> Short {
    let target = match whence {
        Whence::Start => u64::try_from(offset).ok(),
        Whence::Current => position.checked_add_signed(offset),
        Whence::End | Whence::Sparse(_) => None,
    };
    match target.filter(|&target| target <= i64::MAX as u64) {
        Some(target) => {
            *position = target;
            Short::Answer(target)
        }
        None => Short::Ask,
    }
}

/// Where a seek leads, if it can be told without asking the file: `end` is the file's size.
/// `None` for the kinds only the file below can answer.
pub(super) fn seek_target(
    position: u64,
    end: u64,
    offset: i64,
    whence: Whence,
) -> Option<Result<u64, super::Errno>> {
    let base = match whence {
        Whence::Start => 0,
        Whence::Current => position,
        Whence::End => end,
        Whence::Sparse(_) => return None,
    };
    let target = i128::from(base) + i128::from(offset);
    let valid = (0..=i128::from(i64::MAX)).contains(&target);
    Some(if valid { Ok(target as u64) } else { Err(INVALID) })
}
