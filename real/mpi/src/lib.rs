//! The library that sees calls of MPI: preloaded beside `libiolab_intercept.so`, whose recorder
//! keeps what is seen.
//!
//! One build serves every family of MPI, without its headers: arguments of MPI are words (integers,
//! pointers, handles), which pass unchanged; what must be known of a family is a table of numbers
//! (`family`). Each function is defined under its own name and its profiling name (`PMPI_…`), since
//! some Fortran layers call the latter; what one call of MPI calls inside is not seen (`calls`).
//!
//! A guest's rules: the call is made first and its answer never changes; MPI is asked about handles
//! only after a call with them succeeded; without a recorder everything passes. Files of the parallel
//! file system are another matter (`pfs`): calls on them are carried out here.

mod call;
mod calls;
mod collectives;
mod communicators;
mod completion;
mod datatypes;
mod exchange;
mod family;
mod files;
mod handle;
mod messages;
mod next;
mod open_files;
mod pfs;
mod profiling;
mod recorder;
mod stages;
mod state;
