//! `iolab strategies`: the catalogue of in-situ strategies with their classes.

use crate::failure::Failure;
use clap::Args;
use iolab_policy::collective::CollectiveKind;
use iolab_policy::insitu::Catalog;
use std::process::ExitCode;

/// List the strategies that can be applied to unmodified programs and what each one changes, and the
/// algorithms that can carry out their collective accesses.
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
    say_line!(
        "\nAlgorithms of collective MPI-IO accesses, for `iolab run --collective file=NAME`:"
    );
    for row in CollectiveKind::File.rows() {
        say_line!("{}\n    {}", row.name, row.summary);
    }
    Ok(ExitCode::SUCCESS)
}
