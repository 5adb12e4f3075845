//! `iolab reproduce hdd-vs-ssd`: the study that the evaluation asks for as future work.

use super::piosimhd::compute;
use super::published;
use crate::failure::Failure;
use clap::Args;
use iolab_sim::cluster::Order;
use iolab_sim::evaluation::{Case, Conduct};
use iolab_sim::platform::Platform;
use iolab_vocab::Seed;
use std::process::ExitCode;

#[derive(Args)]
pub(crate) struct Arguments {
    /// Only cases whose `test,cache_layer,block_bytes,op` contains this
    #[arg(long, value_name = "TEXT", default_value = "")]
    only: String,
    /// Platform with the other medium: a preset or a TOML file
    #[arg(long, value_name = "P.toml", default_value = "classic-ssd")]
    against: String,
    /// Print as CSV
    #[arg(long)]
    csv: bool,
    /// Runs at once
    #[arg(long, default_value_t = 1)]
    jobs: usize,
}

pub(crate) fn run(arguments: &Arguments) -> Result<ExitCode, Failure> {
    let conduct = Conduct { order: Order::Documented, tie_seed: Seed(0) };
    let mut cases = Case::all();
    cases.retain(|case| published::key(case).contains(&arguments.only));
    let hdd = compute(&Platform::preset("classic-hdd")?, &cases, conduct, arguments.jobs)?;
    let other = Platform::preset(&arguments.against)?;
    let ssd = compute(&other, &cases, conduct, arguments.jobs)?;
    if arguments.csv {
        println!("test,cache_layer,block_bytes,op,hdd_seconds,ssd_seconds");
        for (hdd, ssd) in hdd.iter().zip(&ssd) {
            println!("{},{},{}", published::key(&hdd.case), hdd.seconds, ssd.seconds);
        }
        return Ok(ExitCode::SUCCESS);
    }
    println!("{:<55} {:>12} {:>12} {:>8}", "case", "hdd [s]", "ssd [s]", "gain");
    for (hdd, ssd) in hdd.iter().zip(&ssd) {
        let gain = hdd.seconds / ssd.seconds;
        let key = published::key(&hdd.case);
        println!("{key:<55} {:>12.4} {:>12.4} {gain:>7.2}x", hdd.seconds, ssd.seconds);
    }
    Ok(ExitCode::SUCCESS)
}
