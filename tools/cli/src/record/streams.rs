//! How calls on streams are recorded, as the command line says it.

use clap::ValueEnum;
use iolab_host::recording::StreamCalls;

/// The value of `--stdio`.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum StdioName {
    Auto,
    Calls,
    Counts,
    None,
}

impl From<StdioName> for StreamCalls {
    fn from(name: StdioName) -> StreamCalls {
        match name {
            StdioName::Auto => StreamCalls::Auto,
            StdioName::Calls => StreamCalls::Calls,
            StdioName::Counts => StreamCalls::Counts,
            StdioName::None => StreamCalls::Nothing,
        }
    }
}
