//! The library that sees calls of HDF5: preloaded beside `libiolab_intercept.so`, whose recorder keeps
//! what is seen.
//!
//! One build serves all versions, without their headers: every argument is a word (an identifier, a
//! pointer, an integer), which passes unchanged whatever its width (`calls`). A process may have several
//! HDF5s, since Python's packages bring their own: a call goes to the one its caller was linked to
//! (`library`). What objects are called and how many bytes a selection has is asked of the library
//! itself (`ask`), of an object once per opening (`objects`).
//!
//! A strategy of this layer may give files other properties when they are opened (`properties`).
//!
//! A guest's rules: the call is made first and its answer never changes; the library is asked only
//! about identifiers with which a call succeeded, so that no question fails and its stack of errors
//! stays as it was; without a recorder everything passes.

mod ask;
mod calls;
mod library;
mod objects;
mod properties;
mod rows;
