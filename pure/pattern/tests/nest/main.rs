//! Nests against lists of bytes: every function on thousands of seeded random nests.

mod canonical;
mod datatypes;
mod encodings;
mod intersections;
mod limits;
mod mappings;
mod model;
mod transfers;
