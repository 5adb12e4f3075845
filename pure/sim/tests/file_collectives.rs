//! What each collective file access beyond the published ones is for.

mod small_cluster;

use iolab_sim::cluster::Cluster;
use iolab_sim::platform::Platform;
use iolab_sim::program::{Command, FileOperation};
use iolab_sim::queue::Ordered;
use iolab_sim::workload::Script;
use iolab_vocab::{Extent, Seed};
use small_cluster::setup;

const RANKS: u64 = 10;
const FILE_BYTES: u64 = 200 << 20;

/// Ten ranks, every rank every tenth block, in one collective call; how long it takes.
fn nanos(platform: &str, cache: &str, collective: &str, command: Command, block: u64) -> u64 {
    let count = FILE_BYTES / block / RANKS;
    let list = |rank| (0..count).map(|i| Extent::new((i * RANKS + rank) * block, block)).collect();
    let script = Script::new((0..RANKS).map(|rank| vec![(command, list(rank))]).collect());
    let mut setup = setup(vec![Box::new(script)], 1);
    setup.files[0].bytes = FILE_BYTES;
    setup.cache = Some(cache.to_owned());
    setup.collectives.choose(&format!("file={collective}")).unwrap();
    let platform = Platform::preset(platform).unwrap();
    Cluster::build(&platform, setup, Ordered::new(Seed(0))).unwrap().run().unwrap().get()
}

#[test]
fn double_buffering_hides_the_exchange_behind_the_disks() {
    for command in [FileOperation::ReadAll.of(0), FileOperation::WriteAll.of(0)] {
        let time = |collective| nanos("classic-hdd", "none", collective, command, 51_200);
        let (one, two) = (time("two-phase"), time("double-buffered-two-phase"));
        assert!(two * 100 < one * 98, "{command:?}: {two} ns instead of {one} ns");
    }
}

/// Where servers do not join by themselves, disks want two-phase and flash does not; where they
/// do, not even disks want it.
#[test]
fn the_informed_access_takes_the_cheaper_way_on_any_device() {
    let cases = [
        ("classic-hdd", "none", 5120, false),
        ("classic-hdd", "aggregation", 5120, true),
        ("classic-ssd", "none", 524_288, true),
        ("classic-ssd", "aggregation", 51_200, true),
    ];
    for (platform, cache, block, is_direct) in cases {
        let time =
            |collective| nanos(platform, cache, collective, FileOperation::ReadAll.of(0), block);
        let [informed, two_phase, direct] = ["informed", "two-phase", "direct"].map(time);
        let scene = format!("{platform}, {cache}, {block}: {informed} {two_phase} {direct}");
        assert_eq!(direct < two_phase, is_direct, "{scene}");
        assert!(informed <= two_phase.min(direct) + 1_000_000, "{scene}");
    }
}
