//! One row under many tie seeds: what a band costs.

use clap::Args;
use iolab_sim::cluster::Order;
use iolab_sim::evaluation::{Case, Conduct};
use iolab_sim::platform::Platform;
use iolab_vocab::Seed;
use std::collections::BTreeSet;
use std::error::Error;
use std::time::Instant;

#[derive(Args)]
pub(crate) struct Arguments {
    /// How many
    #[arg(long, default_value_t = 1000)]
    seeds: u64,
    /// Test, as the published table calls it
    #[arg(long, default_value = "individual-1")]
    test: String,
    /// Cache layer
    #[arg(long, default_value = "server-directed")]
    cache: String,
    /// Block size
    #[arg(long, default_value_t = 524_288)]
    bytes: u64,
    /// READ or WRITE
    #[arg(long, default_value = "READ")]
    operation: String,
}

pub(crate) fn run(arguments: &Arguments) -> Result<(), Box<dyn Error>> {
    let platform = Platform::preset("classic-hdd")?;
    let case = find(arguments).ok_or("the evaluation has no such row")?;
    let started = Instant::now();
    let (mut seconds, mut events, mut logs) = (Vec::new(), 0, BTreeSet::new());
    for tie in 1..=arguments.seeds {
        let conduct = Conduct { order: Order::Published, tie_seed: Seed(tie) };
        let run = case.run(&platform, conduct, 0)?;
        seconds.push(run.seconds);
        events += run.event_count;
        logs.insert(run.event_hash);
    }
    let elapsed = started.elapsed().as_secs_f64();
    seconds.sort_by(f64::total_cmp);
    let at = |share: usize| seconds[(seconds.len() - 1) * share / 100];
    println!("{} seeds, {} different logs of events", arguments.seeds, logs.len());
    println!("least {:.4} s, median {:.4} s, greatest {:.4} s", at(0), at(50), at(100));
    println!("{events} events in {elapsed:.1} s: {:.1} M/s", events as f64 / elapsed / 1e6);
    Ok(())
}

fn find(arguments: &Arguments) -> Option<Case> {
    let is_meant = |case: &Case| {
        case.test.name() == arguments.test
            && case.cache == arguments.cache
            && case.block_bytes == arguments.bytes
            && case.operation.name() == arguments.operation
    };
    Case::all().into_iter().find(is_meant)
}
