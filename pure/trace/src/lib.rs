//! What a trace is: events, the functions they are calls of, and the header that says where they
//! come from.
//!
//! A trace that was recorded, one that was simulated and one that was imported are the same kind
//! of thing, so that any two can be laid side by side. This crate has no file format in it: the
//! raw spool of a running program is `spool`, the finished `.iot` file is the crate `iolab-iot`.

pub mod align;
mod call_view;
mod causes;
pub mod datatype;
mod event;
pub mod export;
pub mod finish;
pub mod function;
mod header;
pub mod import;
pub mod join;
pub mod launchers;
mod once;
pub mod open_flags;
pub mod program;
mod retained;
pub mod spool;

pub use call_view::{CallView, Partner};
pub use causes::{Causes, Impossible, Links, Moment};
pub use event::{APPENDS_NOT, APPENDS_ONCE, Event, MOVED_SOURCE, MOVED_TARGET, Trace, order, sort};
pub use function::{Class, Function, Layer};
pub use header::{
    Clock, FORMAT_VERSION, FileEntry, Header, Losses, MachineClock, ObjectEntry, Origin, Part,
    PhaseEntry, ProcessEntry, ProcessKind,
};
pub use once::Once;
pub use retained::Retained;
