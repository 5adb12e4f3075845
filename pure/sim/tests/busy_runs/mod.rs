//! Recorded runs of everything a cluster does: each cache layer, collectives of each kind, faults, file systems.

pub(crate) mod full_memories;

use iolab_policy::cache::catalog;
use iolab_sim::file_system::Configuration;
use iolab_sim::platform::Platform;
use iolab_sim::scenario::Scenario;
use iolab_sim::workload::{Settings, Workload, run};
use iolab_trace::Trace;

/// Reads and writes alone, together, in the background; messages, collectives, waits, computations.
pub(crate) const EVERYTHING: &str = r#"
name = "everything"
files = [{ name = "shared", size = "2m" }, { name = "own", per_rank = true }]
[[applications]]
name = "ranks"
ranks = 4
start = "3ms"
[[applications.phases]]
name = "open"
commands = [{ compute = 1500 }, { open = "own" }, { open = "shared" }]
[[applications.phases]]
name = "files"
commands = [
    { write = "own", bytes = "100k", start = "data" },
    { read_all = "shared", pattern = "strided:strip=1k,stripes=30", per_call = "all" },
    { read = "shared", pattern = "strided:strip=3k,stripes=12" },
    { write_all = "shared", pattern = "strided:strip=1k,stripes=30", per_call = "all", start = "all" },
    { compute = "2ms" },
    { wait = "all" },
    { wait = "data" },
    { write = "shared", bytes = "300k", offset = "1m" },
    { read = "own", bytes = "70k" },
]
[[applications.phases]]
name = "messages"
commands = [
    { send_to = "+1", receive_from = "-1", bytes = "300k", tag = 4 },
    { receive_from = "any", start = "message", only = "first" },
    { send_to = 0, bytes = 10, only = [3] },
    { wait = "message", only = "first" },
    { broadcast = "1m", root = 1 },
    { reduce = 8, root = 2 },
    { allreduce = 8 },
    { gather = "4k", root = 1 },
    { scatter = "4k" },
    { allgather = 64 },
    { alltoall = 128 },
    { barrier = true },
]
[[applications.phases]]
name = "close"
commands = [
    { sync = "shared" },
    { set_size = "shared", bytes = "5100k" },
    { read = "shared", bytes = "64k", offset = "5m" },
    { close = "shared" },
    { close = "own" },
]
"#;

/// Faults of every kind that a run survives.
const FAULTS: &str = "
[[faults]]
kind = 'slow-device'
server = 'server3'
factor = 2.5
from = '5ms'
[[faults]]
kind = 'stalled-server'
server = 'server7'
from = '10ms'
until = '40ms'
[[faults]]
kind = 'stalled-server'
server = 'server0'
from = '60ms'
until = '100ms'
[[faults]]
kind = 'lossy-link'
link = 'client2'
share = 0.02
[[faults]]
kind = 'cut-link'
link = 'server1'
from = '20ms'
until = '30ms'
";

const CLUSTERFILE: &str = "[layout]\ndefault = 'stripe:unit=4k'";
const CACHED: &str = "[layout]\ndefault = 'stripe:unit=4k'\n[[caches]]\ncount = 2";
const DURABLE: &str = "[instance]\ndurability = 'device'\n[layout]\ndefault = 'stripe:unit=64k'";

/// The run of a workload on a platform of ours, with its trace.
pub(crate) fn recorded(workload: &str, platform: &str, settings: &Settings) -> Trace {
    let settings = Settings { record: true, ..settings.clone() };
    let workload = Workload::parse(workload).unwrap();
    let outcome = run(&workload, &Platform::preset(platform).unwrap(), &settings).unwrap();
    outcome.trace.unwrap()
}

/// Settings with a name for what is particular about them.
fn variants() -> Vec<(String, Settings)> {
    let plain = Settings::default;
    let mut variants: Vec<(String, Settings)> = catalog::ROWS
        .iter()
        .map(|row| (row.name.to_owned(), Settings { cache: Some(row.name.to_owned()), ..plain() }))
        .collect();
    for choice in ["file=direct", "file=two-phase", "barrier=dissemination"] {
        let mut settings = plain();
        settings.collectives.choose(choice).unwrap();
        variants.push((choice.to_owned(), settings));
    }
    for cache in ["write-behind", "server-directed"] {
        let (cache, faults) = (Some(cache.to_owned()), Some(Scenario::parse(FAULTS).unwrap()));
        variants.push(("faults".to_owned(), Settings { cache, faults, ..plain() }));
    }
    for (name, text) in [("clusterfile", CLUSTERFILE), ("caches", CACHED), ("durable", DURABLE)] {
        let file_system = Some(Configuration::parse(text).unwrap());
        variants.push((name.to_owned(), Settings { file_system, ..plain() }));
    }
    variants
}

/// Everything, under each variant, on a cluster of disks and in part on one of flash.
pub(crate) fn all() -> Vec<(String, Trace)> {
    let on = |platform: &'static str| {
        move |(name, settings): (String, Settings)| {
            (format!("{name} on {platform}"), recorded(EVERYTHING, platform, &settings))
        }
    };
    let flash = variants().into_iter().step_by(4).map(on("nvme"));
    variants().into_iter().map(on("classic-hdd")).chain(flash).collect()
}
