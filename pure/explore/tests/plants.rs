//! Defects that are planted in the machines must be found: who finds none of them proves nothing.

use iolab_explore::{Mask, explore};
use iolab_pfs::plant::{Plant, with};

/// Each must be found within so many seeds.
const SEEDS: u64 = 2_000;

#[test]
fn every_planted_defect_is_found() {
    let finds = |plant| {
        (0..SEEDS).find(|&seed| with(plant, || explore(seed, &Mask::default())).defect.is_some())
    };
    let found = Plant::ALL.map(|plant| (plant, finds(plant)));
    let missed: Vec<Plant> =
        found.iter().filter(|(_, seed)| seed.is_none()).map(|&(plant, _)| plant).collect();
    assert!(missed.is_empty(), "{missed:?} stay hidden; the others were found: {found:?}");
}
