//! `iolab strategies`: the catalogue of in-situ strategies with their classes.

use crate::failure::Failure;
use clap::Args;
use iolab_policy::insitu::Catalog;
use std::process::ExitCode;

/// List the strategies that can be applied to unmodified programs, and what each one changes.
#[derive(Args)]
pub(crate) struct Arguments {}

pub(crate) fn run(_arguments: &Arguments) -> Result<ExitCode, Failure> {
    for row in Catalog::ROWS {
        let semantics = if row.traits.keeps_semantics { "kept" } else { "NOT kept" };
        say_line!("{}\n    {}", row.usage, row.summary);
        say_line!(
            "    scope {}; interference {}; state {}; semantics {semantics}",
            row.traits.scope,
            row.traits.interference,
            row.traits.state
        );
    }
    Ok(ExitCode::SUCCESS)
}
