//! How fast the cluster simulator is, and what it needs as clusters and runs grow.
//!
//! `simulator-speed rows` times single rows of the published evaluation, `ties` a row under many
//! tie seeds, `scale` small requests of many clients to many servers; `hashes` shows
//! whether a change left the results alone. What came out is in the
//! README beside this.

mod hashes;
mod memory;
mod requests;
mod rows;
mod scale;
mod ties;

use clap::{Parser, Subcommand};
use std::error::Error;

#[derive(Parser)]
struct Arguments {
    #[command(subcommand)]
    task: Task,
}

#[derive(Subcommand)]
enum Task {
    /// Time one run of each row of a block size, layer by layer.
    Rows(rows::Arguments),
    /// Run one row under many tie seeds.
    Ties(ties::Arguments),
    /// Print the hash of all events of many runs, to compare before and after a move of code.
    Hashes,
    /// Small requests of many clients to many servers: time and memory while they grow.
    Scale(scale::Arguments),
}

fn main() -> Result<(), Box<dyn Error>> {
    match Arguments::parse().task {
        Task::Rows(arguments) => rows::run(&arguments),
        Task::Ties(arguments) => ties::run(&arguments),
        Task::Hashes => hashes::run_all(),
        Task::Scale(arguments) => scale::run(&arguments),
    }
}
