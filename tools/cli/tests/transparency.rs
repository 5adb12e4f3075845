//! Transparency: a program must not notice that it is recorded or that strategies are applied to
//! its files. Every program here runs bare and in each way iolab can stand between it and its
//! files; output, exit code and the files it leaves must be the same, byte for byte.
//!
//! `guests/` holds programs of our own that go through what a program may rely on; the others are
//! tools of everyday use.

#[path = "transparency/bench.rs"]
mod bench;
#[path = "transparency/endurance.rs"]
mod endurance;
#[path = "transparency/guests.rs"]
mod guests;
#[path = "transparency/inherited.rs"]
mod inherited;
#[path = "transparency/mount.rs"]
mod mount;
#[path = "transparency/mpi.rs"]
mod mpi;
#[path = "transparency/packages.rs"]
mod packages;
#[path = "transparency/reach.rs"]
mod reach;
#[path = "transparency/shared.rs"]
mod shared;
#[path = "transparency/sharing.rs"]
mod sharing;
#[path = "transparency/stacks.rs"]
mod stacks;
#[path = "transparency/system_calls.rs"]
mod system_calls;
#[path = "transparency/tools.rs"]
mod tools;
