//! The library that sees calls of NetCDF (NetCDF-C and PnetCDF): preloaded beside `libiolab_intercept.so`, whose
//! recorder keeps what is seen.
//!
//! One build serves all versions, without their headers: every argument is a word (an identifier, a pointer, a
//! number), which passes unchanged (`calls`; the functions stand in `serial` and `parallel`, made of type and
//! shape). A process may have several NetCDFs, since Python's packages bring their own: a call goes to the one its
//! caller was linked to. What variables are called, and how many bytes an element has, is asked of the library itself
//! (`ask`), of a variable once per opening of its file (`objects`).
//!
//! A strategy of this layer may give files other properties when they are opened and defined (`properties`).
//!
//! What NetCDF calls inside, HDF5, MPI-IO or POSIX, is seen by the libraries of those layers.
//!
//! A guest's rules: the call is made first and its answer never changes; the library is asked only about what a
//! call has just succeeded with; without a recorder everything passes.

mod ask;
mod calls;
mod objects;
mod parallel;
mod properties;
mod requests;
mod rows;
mod serial;
