//! Single rows of the evaluation: one run each.

use clap::Args;
use iolab_sim::cluster::Order;
use iolab_sim::evaluation::{Case, Conduct};
use iolab_sim::platform::Platform;
use iolab_vocab::Seed;
use std::error::Error;
use std::time::Instant;

#[derive(Args)]
pub(crate) struct Arguments {
    /// Block size
    #[arg(long, default_value_t = 5120)]
    bytes: u64,
    /// Only tests whose name contains this
    #[arg(long, default_value = "individual-1")]
    test: String,
}

pub(crate) fn run(arguments: &Arguments) -> Result<(), Box<dyn Error>> {
    let platform = Platform::preset("classic-hdd")?;
    println!(
        "{:<22} {:<16} {:<5} {:>12} {:>8} {:>7}",
        "test", "cache layer", "op", "events", "seconds", "M/s"
    );
    for case in Case::with_blocks(&[arguments.bytes]) {
        let test = case.test.name();
        if !test.contains(&arguments.test) {
            continue;
        }
        let started = Instant::now();
        let conduct = Conduct { order: Order::Published, tie_seed: Seed(0) };
        let run = case.run(&platform, conduct, 0)?;
        let seconds = started.elapsed().as_secs_f64();
        let rate = run.event_count as f64 / seconds / 1e6;
        let operation = case.operation.name();
        println!(
            "{test:<22} {:<16} {operation:<5} {:>12} {seconds:>8.2} {rate:>7.1}",
            case.cache, run.event_count
        );
    }
    Ok(())
}
