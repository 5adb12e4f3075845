//! The `iolab` command: one sub-command per capability, each in its own file.
//!
//! Results go to stdout, progress to stderr; a failure names the offender and a way out.

#[macro_use]
mod say;

mod above;
mod advise;
mod bench;
mod calibrate;
mod collective;
mod compare;
mod completion;
mod doctor;
mod env;
mod export;
mod failure;
mod fs;
mod import;
mod lines;
mod man;
mod merge;
mod mount;
mod mounted;
mod mpi;
mod output;
mod overlap;
mod pack;
mod packed;
mod parallel;
mod planned;
mod platform_file;
mod profile;
mod reconstructed;
mod record;
mod recover;
mod replay;
mod report;
mod reproduce;
mod run;
mod simulate;
mod stage;
mod storage_block;
mod strategies;
mod study;
mod sweep;
mod ties;
mod trace_file;
mod tune;
mod unpack;
mod view;
mod words;

use clap::{CommandFactory, Parser, Subcommand};
use failure::Failure;
use std::process::ExitCode;

/// A laboratory for parallel I/O: measure, record, explain, simulate, reshape, verify.
#[derive(Parser)]
#[command(name = "iolab", version, max_term_width = 100)]
struct Iolab {
    #[command(subcommand)]
    capability: Capability,
}

#[derive(Subcommand)]
enum Capability {
    Advise(advise::Arguments),
    Bench(Box<bench::Arguments>),
    Mount(mount::Arguments),
    MountEnter(mount::enter::Arguments),
    MountServer(mount::server::Arguments),
    Mpi(mpi::Arguments),
    Overlap(Box<overlap::Arguments>),
    Calibrate(calibrate::Arguments),
    Compare(compare::Arguments),
    Completion(completion::Arguments),
    Doctor(doctor::Arguments),
    Env(env::Arguments),
    Record(record::Arguments),
    Recover(recover::Arguments),
    Export(export::Arguments),
    WriteOtf2(export::otf2::Arguments),
    Fs(fs::Arguments),
    Import(import::Arguments),
    Man(man::Arguments),
    Merge(merge::Arguments),
    Replay(replay::Arguments),
    Reproduce(reproduce::Arguments),
    Report(report::Arguments),
    Simulate(simulate::Arguments),
    Run(run::Arguments),
    Stage(stage::Arguments),
    Pack(pack::Arguments),
    Unpack(unpack::Arguments),
    Strategies(strategies::Arguments),
    Study(study::Arguments),
    Sweep(sweep::Arguments),
    Tune(tune::Arguments),
    View(view::Arguments),
}

fn main() -> ExitCode {
    iolab_host::inherited::hear_of_children();
    iolab_host::limits::fail_when_too_large();
    let capability = match Iolab::try_parse() {
        Ok(iolab) => iolab.capability,
        Err(other) => return words::told(&other),
    };
    let outcome = match capability {
        Capability::Advise(arguments) => advise::run(&arguments),
        Capability::Bench(arguments) => bench::run(&arguments),
        Capability::Mount(arguments) => mount::run(&arguments),
        Capability::MountEnter(arguments) => mount::enter::run(&arguments),
        Capability::MountServer(arguments) => mount::server::run(&arguments),
        Capability::Mpi(arguments) => mpi::run(&arguments),
        Capability::Overlap(arguments) => overlap::run(&arguments),
        Capability::Calibrate(arguments) => calibrate::run(&arguments),
        Capability::Compare(arguments) => compare::run(&arguments),
        Capability::Completion(arguments) => completion::run(&arguments, Iolab::command()),
        Capability::Doctor(arguments) => doctor::run(&arguments),
        Capability::Env(arguments) => env::run(&arguments),
        Capability::Record(arguments) => record::run(&arguments),
        Capability::Recover(arguments) => recover::run(&arguments),
        Capability::Export(arguments) => export::run(&arguments),
        Capability::WriteOtf2(arguments) => export::otf2::run(&arguments),
        Capability::Fs(arguments) => fs::run(&arguments),
        Capability::Import(arguments) => import::run(&arguments),
        Capability::Man(arguments) => man::run(&arguments, Iolab::command()),
        Capability::Merge(arguments) => merge::run(&arguments),
        Capability::Replay(arguments) => replay::run(&arguments),
        Capability::Reproduce(arguments) => reproduce::run(&arguments),
        Capability::Simulate(arguments) => simulate::run(&arguments),
        Capability::Report(arguments) => report::run(&arguments),
        Capability::Run(arguments) => run::run(&arguments),
        Capability::Stage(arguments) => stage::run(&arguments),
        Capability::Pack(arguments) => pack::run(&arguments),
        Capability::Unpack(arguments) => unpack::run(&arguments),
        Capability::Strategies(arguments) => strategies::run(&arguments),
        Capability::Study(arguments) => study::run(&arguments),
        Capability::Sweep(arguments) => sweep::run(&arguments),
        Capability::Tune(arguments) => tune::run(&arguments),
        Capability::View(arguments) => view::run(&arguments),
    };
    outcome.unwrap_or_else(|failure: Failure| {
        eprintln!("{failure}");
        failure.exit_code()
    })
}
