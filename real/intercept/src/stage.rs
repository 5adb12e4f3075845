//! The stage: in-situ strategies at work inside a live program.
//!
//! Each file (inode) that a strategy chooses and this process opens gets a [`machine`] that hosts
//! the pure [`Stack`](iolab_policy::insitu::Stack): calls go in, copies and system calls come out.
//! Descriptors lead to descriptions and files by fixed tables ([`table`]); each file has a lock of
//! its own, so different files share nothing. Whatever looks at a file by another way makes it
//! true first ([`life`]). The rules are those of `iolab_policy::insitu::guest`, which replay and
//! the simulator follow on recorded events.
//!
//! Promises: no call of libc's `malloc` (see [`allocator`]), no lock that a signal handler could
//! wait for in vain (see [`late`]), no crash for a bad address (see [`memory`]), and when anything
//! inside fails: what is held goes out, one line on stderr, and every call passes from then on.
//!
//! Cost of an absorbed 64-byte write: see `benchmarks/write-back`.

mod allocator;
mod calls;
mod caution;
mod counted;
mod fast_place;
mod hooks;
mod joining;
mod journal;
mod kept;
mod kernel;
mod late;
mod life;
mod lock;
mod machine;
mod memory;
mod opening;
mod own;
mod planned;
mod region;
mod rules;
mod settings;
mod shared;
mod signals;
mod table;
pub(crate) mod tally;
#[cfg(test)]
mod tests;
mod tripwire;
mod visit;
mod watch;

pub(crate) use calls::answer;
pub(crate) use fast_place::{Held, Opening, after_open, attribute_names, before_open, name_behind};
pub(crate) use hooks::{
    after_exec_failed, after_fork, after_move, before_exit, before_file_limit, before_filter,
    before_move, before_path, before_process, before_stranger, before_stream_close,
    before_unfollowed_lock, before_unseen_open, close_range, close_stream, close_unfollowed,
    dup_unfollowed, enter_child, give_room, inherited, is_any_fast, is_known, is_own, keep_out,
    keeps_existing, lent, made_room, opened, passes, perform, replaced_unseen, start, step_aside,
};
pub(crate) use memory::is_memory;
pub(crate) use signals::raw_sigaction;
