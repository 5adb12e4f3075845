//! Communicators, as lists of ranks of the whole program.

use crate::call::Call;
use crate::handle::Communicator;
use crate::profiling::{
    comm_group, comm_rank, group_free, group_size, group_translate, has_world, is_inter,
};
use crate::recorder;
use crate::state::State;
use std::fmt::Write;

/// More ranks than any machine has, so that a broken answer asks for no memory.
const RANKS_MAX: i32 = 1 << 24;

impl State {
    /// What a handle stands for; none for a communicator between two groups. A call with it has just
    /// succeeded.
    pub(crate) fn communicator(&mut self, handle: usize) -> Option<&Communicator> {
        if !self.communicators.contains_key(&handle) {
            // SAFETY: the handle is valid, which a call has shown.
            let found = unsafe { self.look(handle) };
            self.communicators.insert(handle, found);
        }
        self.communicators.get(&handle)?.as_ref()
    }

    unsafe fn look(&self, handle: usize) -> Option<Communicator> {
        let (mut flag, mut rank) = (0i32, -1i32);
        if !has_world() {
            return None;
        }
        // SAFETY: a valid handle, and room for each answer.
        let members = unsafe {
            if is_inter(handle, &raw mut flag as usize) != 0 || flag != 0 {
                return None;
            }
            if comm_rank(handle, &raw mut rank as usize) != 0 {
                return None;
            }
            self.members(handle)?
        };
        let mut text = String::from("\0communicator");
        for member in &members {
            let _ = write!(text, " {member}");
        }
        Some(Communicator { number: recorder::number(text.as_bytes()), rank, members })
    }

    unsafe fn members(&self, handle: usize) -> Option<Vec<u32>> {
        let (mut group, mut world, mut size) = (0usize, 0usize, 0i32);
        // SAFETY: valid handles; each answer has room; groups are given back.
        unsafe {
            if comm_group(handle, &raw mut group as usize) != 0 {
                return None;
            }
            if comm_group(self.family.world, &raw mut world as usize) != 0 {
                group_free(&raw mut group as usize);
                return None;
            }
            let known = group_size(group, &raw mut size as usize) == 0;
            let count = if known { size.clamp(0, RANKS_MAX) } else { 0 };
            let ranks: Vec<i32> = (0..count).collect();
            let mut found = vec![-1i32; ranks.len()];
            let (from, to) = (ranks.as_ptr() as usize, found.as_mut_ptr() as usize);
            let answer = group_translate(group, count as usize, from, world, to);
            group_free(&raw mut group as usize);
            group_free(&raw mut world as usize);
            // A member that is not of this world was spawned by another program.
            let members = found.into_iter().map(|rank| u32::try_from(rank).ok());
            members.collect::<Option<Vec<u32>>>().filter(|_| answer == 0 && known)
        }
    }
}

/// `MPI_Comm_free`, `MPI_Comm_disconnect`: the handle may be another communicator's soon.
pub(crate) fn before_free(call: &mut Call<'_>) {
    // SAFETY: the guest's own pointer to a handle, which the call is about to follow.
    let handle = unsafe { call.family.handle_at(call.word(0)) };
    call.with(|state| state.communicators.remove(&handle));
}
