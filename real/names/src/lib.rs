//! The library through which programs of a run see its files: preloaded into every process of
//! `iolab fs run`, MPI or not, it answers POSIX calls by name on files that are in the file system.
//!
//! Each such file has a stand-in among plain files (`iolab_pfs_node::stand_ins`), so what only asks for names,
//! permissions and directories needs nobody. Left for here is what length and bytes are needed for (`status`,
//! `open`), and what must happen on both sides (`change`). `calls` has the functions of libc that are
//! taken, each with all its names.
//!
//! A guest's rules: a call on any other file reaches libc unchanged; a program that never meets a file of
//! ours pays a look at a set in memory for calls that have a file's status at hand, and one system call more
//! for the others. Nothing of ours stays in the process between calls: no descriptor, no thread, no session,
//! so forked children, and programs that close what they did not open, cannot meet any. What is called
//! from within our own work passes; a defect of ours is a failed call.

mod calls;
mod change;
mod next;
mod open;
mod ours;
mod place;
mod run;
mod status;
