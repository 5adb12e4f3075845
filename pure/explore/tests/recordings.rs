//! Recordings of explored machines replay: their machines decide by nothing but what they are told.

use iolab_explore::{Mask, explore, record};
use iolab_pfs::plant::{Plant, with};
use iolab_pfs::recording::{Difference, replay};

#[test]
fn recorded_events_fed_to_fresh_machines_give_the_same_actions() {
    let mut rows = 0;
    for seed in 0..25 {
        let (outcome, recordings) = record(seed, &Mask::default());
        assert_eq!(outcome, explore(seed, &Mask::default()), "recording has changed seed {seed}");
        for (party, recording) in &recordings {
            let replayed = replay(recording).unwrap_or_else(|why| panic!("{seed} {party}: {why}"));
            assert_eq!(replayed.difference, None, "{party} of seed {seed}");
            assert_eq!(replayed.torn_bytes, 0);
            rows += replayed.rows;
        }
    }
    assert!(rows > 25_000, "{rows} rows are too few to tell anything");
}

#[test]
fn what_is_cut_is_read_to_the_cut_and_what_is_damaged_is_refused() {
    let (_, recordings) = record(3, &Mask::default());
    let recording = &recordings["server-0-1"];
    let whole = replay(recording).unwrap();
    let cut = replay(&recording[..recording.len() - 1]).unwrap();
    assert_eq!((cut.rows, cut.difference), (whole.rows - 1, None));
    assert!(cut.torn_bytes > 0);
    for (at, word) in [(0, "no recording"), (8, "version"), (10, "no machine"), (30, "damaged")] {
        let mut damaged = recording.clone();
        damaged[at] ^= 0x10;
        let refusal = replay(&damaged).unwrap_err();
        assert!(refusal.message.contains(word), "{refusal}");
    }
    for bytes in [0, 7, 20] {
        let none = replay(&recording[..bytes]).unwrap();
        assert_eq!((none.rows, none.difference), (0, None));
    }
}

#[test]
fn a_machine_that_acts_otherwise_is_told_with_the_row_and_both_actions() {
    // Recorded with a defect, replayed without.
    let (_, recordings) = (0..100)
        .map(|seed| with(Plant::EndOfOneSubfile, || record(seed, &Mask::default())))
        .find(|(_, recordings)| recordings.values().any(|one| differs(one).is_some()))
        .expect("a machine with a defect acts otherwise");
    let difference = recordings.values().find_map(|one| differs(one)).unwrap();
    assert_ne!(difference.expected, difference.got);
    assert!(!difference.event.is_empty());
}

fn differs(recording: &[u8]) -> Option<Difference> {
    replay(recording).unwrap().difference
}
