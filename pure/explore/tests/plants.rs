//! Defects that are planted in the machines must be found: who finds none of them proves nothing.

use iolab_explore::{Mask, explore};
use iolab_pfs::plant::{Plant, with};
use std::sync::atomic::{AtomicUsize, Ordering};

/// Each must be found within so many seeds.
const SEEDS: u64 = 2_000;

#[test]
fn every_planted_defect_is_found() {
    let finds = |plant| {
        (0..SEEDS).find(|&seed| with(plant, || explore(seed, &Mask::default())).defect.is_some())
    };
    // A defect is planted in a thread: one for each processor, and the next plant is whose turn it is.
    let next = AtomicUsize::new(0);
    let work = || {
        let turns = std::iter::repeat_with(|| next.fetch_add(1, Ordering::Relaxed));
        let plants = turns.map_while(|at| Plant::ALL.get(at).copied());
        plants.map(|plant| (plant, finds(plant))).collect::<Vec<_>>()
    };
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let found: Vec<(Plant, Option<u64>)> = std::thread::scope(|scope| {
        let begun: Vec<_> = (0..threads).map(|_| scope.spawn(work)).collect();
        begun.into_iter().flat_map(|thread| thread.join().unwrap()).collect()
    });
    assert_eq!(found.len(), Plant::ALL.len());
    let missed: Vec<Plant> =
        found.iter().filter(|(_, seed)| seed.is_none()).map(|&(plant, _)| plant).collect();
    assert!(missed.is_empty(), "{missed:?} stay hidden; the others were found: {found:?}");
}
