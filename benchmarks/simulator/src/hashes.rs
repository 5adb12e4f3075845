//! One line per run: hash over its events, and its end. Whoever moves code of the simulator compares
//! the lines before and after; what was only moved leaves them as they were.

use iolab_policy::{cache, collective};
use iolab_sim::cluster::Order;
use iolab_sim::evaluation::{Case, Conduct};
use iolab_sim::platform::Platform;
use iolab_sim::workload::{Settings, Workload, run};
use iolab_vocab::Seed;
use std::error::Error;

/// Every command of messages above and below the eager limit, and files in every way.
const EVERYTHING: &str = r#"
    files = [{ name = "one", size = "40m" }, { name = "other", size = "40m" }]
    [[applications]]
    ranks = 5

    [[applications.phases]]
    commands = [
      { open = "one" }, { open = "other" },
      { write_all = "one", pattern = "strided:strip=10k,stripes=200", per_call = 100 },
      { read_all = "one", pattern = "strided:strip=30k,stripes=60", per_call = "all" },
      { broadcast = "3m", root = 2 }, { reduce = "8k", root = 1 }, { reduce = "200k" },
      { allreduce = "8k" }, { gather = "30k" }, { scatter = "30k", root = 4 },
      { allgather = "9k" }, { alltoall = "70k" }, { barrier = true },
      { write = "other", pattern = "strided:strip=64k,stripes=20" },
      { read = "one", pattern = "segmented:request=100k,count=20" },
      { sync = "other" }, { close = "other" }, { close = "one" },
    ]"#;

/// Every published case but the largest in both orders, and a workload of everything under each cache
/// layer and each collective algorithm.
pub(crate) fn run_all() -> Result<(), Box<dyn Error>> {
    let platform = Platform::preset("classic-hdd")?;
    for case in Case::all().iter().filter(|case| case.block_bytes > 5120 || case.cache == "none") {
        for order in [Order::Published, Order::Documented] {
            let conduct = Conduct { order, tie_seed: Seed(0) };
            let run = case.run(&platform, conduct, 0)?;
            let Case { test, cache, block_bytes, operation } = case;
            let of = format!("{} {cache} {block_bytes} {operation:?} {order:?}", test.name());
            println!("{of}: {:016x} {}", run.event_hash, run.seconds);
        }
    }
    let workload = Workload::parse(EVERYTHING)?;
    let mut all = vec![("default".to_owned(), Settings::default())];
    for row in cache::catalog::ROWS {
        let name = row.name.to_owned();
        all.push((name.clone(), Settings { cache: Some(name), ..Settings::default() }));
    }
    for row in collective::catalog::ROWS {
        let mut settings = Settings::default();
        settings.collectives.set(row);
        all.push((format!("{}={}", row.kind.name(), row.name), settings));
    }
    for (name, settings) in all {
        let done = run(&workload, &platform, &settings)?;
        println!("{name}: {:016x} {} {}", done.event_hash, done.event_count, done.end.0);
    }
    Ok(())
}
