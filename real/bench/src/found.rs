//! Which version of the content an existing file holds.
//!
//! Every phase that writes writes a version of its own, so a file that an earlier job left may hold any
//! of them. The first bytes of a rank's operations tell: a version is taken to be there when all of
//! them are as it has them, and there are enough of them that no other would be. Everything else is
//! then held to that one version alone.

use crate::case_setup::{CaseSetup, first_version};
use crate::content::Content;
use crate::failure::BenchError;
use crate::runner::Runner;
use iolab_comm::largest;
use iolab_pattern::Access;
use std::fs::File;
use std::os::unix::fs::FileExt;

/// Bytes that are looked at; fewer than the least tell too little of a million versions.
const SAMPLE: usize = 64;
const SAMPLE_LEAST: usize = 8;
/// Cases and repetitions of the earlier job that are thought of, and phases within one.
const CASES: usize = 256;
const REPETITIONS: u32 = 4096;
const GENERATIONS: u64 = 2;
/// What is written over existing data that look the same has this, so that it can be told from them.
const OTHER: u64 = 1 << 62;

impl Runner<'_> {
    /// The version that the existing file holds, the same on all ranks, if it is one of a run with this
    /// pattern, seed and header.
    pub(crate) fn found_version(&self, scene: &CaseSetup) -> Result<Option<u64>, BenchError> {
        let found = self.sample(scene).and_then(|sample| {
            let file = scene.own_file;
            let player = self.played(scene.case, true);
            let key = if file { player.0 + 1 } else { 0 };
            candidates().find(|version| {
                let content = Content::new(self.plan.seed, key, *version);
                sample.iter().all(|(offset, byte)| content.byte(*offset) == *byte)
            })
        });
        let heard = largest(self.comm, found.map_or(0, |version| version + 1))?;
        Ok(heard.checked_sub(1))
    }

    /// Bytes of this rank's first operations, each with its place.
    fn sample(&self, scene: &CaseSetup) -> Option<Vec<(u64, u8)>> {
        let (player, rank) = (self.played(scene.case, true), self.pattern_rank(scene.case, true));
        let file = File::open(self.path(scene, player)).ok()?;
        let (mut access, mut sample) = (Access::new(), Vec::new());
        for index in 0..scene.pattern.operations(rank).min(SAMPLE as u64) {
            scene.pattern.place(rank, index, &mut access);
            for piece in access.pieces() {
                let length = piece.length.min((SAMPLE - sample.len()) as u64);
                let mut bytes = vec![0; length as usize];
                file.read_exact_at(&mut bytes, scene.case.header + piece.file).ok()?;
                sample.extend((piece.file..).zip(bytes));
            }
        }
        sample.sort_unstable();
        sample.dedup();
        (sample.len() >= SAMPLE_LEAST).then_some(sample)
    }
}

/// All versions that a file may hold, the likeliest first.
fn candidates() -> impl Iterator<Item = u64> {
    let cases = move |repetition| (0..CASES).map(move |case| first_version(case, repetition));
    let firsts = (0..REPETITIONS).flat_map(cases);
    firsts
        .flat_map(|first| (0..GENERATIONS).map(move |generation| first + generation))
        .flat_map(|version| [version, version | OTHER])
}

/// A version to write where `found` lies, which must not be the same.
pub(crate) fn other_than(found: Option<u64>, first: u64) -> u64 {
    match found {
        Some(found) if found & !0xFF == first => first | OTHER,
        _ => first,
    }
}
