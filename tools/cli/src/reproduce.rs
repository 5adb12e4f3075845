//! `iolab reproduce`: published evaluations, case by case beside what iolab computes.

mod bands;
mod campaign;
mod clusterfile;
mod media;
mod partdiff;
mod piosimhd;
mod plots;
mod result;

use crate::failure::Failure;
use clap::{Args, Subcommand};
use std::process::ExitCode;

/// Compute a published evaluation again and print every value beside the published one.
#[derive(Args)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    evaluation: Evaluation,
}

#[derive(Subcommand)]
enum Evaluation {
    /// The 180 cases of PIOsimHD (Kuhn 2009): five patterns, four cache layers
    Piosimhd(piosimhd::Arguments),
    /// A real program of 2009 under five cache configurations, server by server
    Partdiff(partdiff::Arguments),
    /// The cases of PIOsimHD on hard disks and on flash
    HddVsSsd(media::Arguments),
    /// The claims of Clusterfile (ICS 2004): collective I/O against two-phase on a modelled cluster
    Clusterfile(clusterfile::Arguments),
}

pub(crate) fn run(arguments: &Arguments) -> Result<ExitCode, Failure> {
    match &arguments.evaluation {
        Evaluation::Piosimhd(arguments) => piosimhd::run(arguments),
        Evaluation::Partdiff(arguments) => partdiff::run(arguments),
        Evaluation::HddVsSsd(arguments) => media::run(arguments),
        Evaluation::Clusterfile(arguments) => clusterfile::run(arguments),
    }
}
