//! Verification: what was written is there and nowhere else, and what was read is what was there.
//! Nothing of it is timed.
//!
//! After every phase four things are held to the content, each of which finds what the others cannot:
//!
//! 1. what the *timed* reads brought, kept in a buffer each (of very long phases an even sample);
//! 2. every operation's place, read back with the same method;
//! 3. every operation's place, read past the method by plain reads: a method that remembers what it never
//!    wrote is no witness of its own;
//! 4. all of the file: what no operation wrote is as it was before, and nothing lies behind the end. MPI
//!    promises nothing of bytes that nobody wrote to a file without content; of such a file, the end
//!    and the header are looked at.
//!
//! Every phase that writes writes a version of its own, so data of an earlier phase, repetition or case is
//! wrong wherever it is found.

use crate::case_setup::{CaseSetup, share};
use crate::content::{Content, check, check_access};
use crate::failure::{BenchError, agree, told};
use crate::runner::Runner;
use crate::work::Work;
use iolab_backend::Direction;
use iolab_pattern::{Access, Contract};
use iolab_report::bench::Measurement;
use iolab_vocab::Rank;
use std::fs::File;
use std::os::unix::fs::FileExt;

/// What a phase did, and what should be there now.
pub(crate) struct Checks<'a> {
    /// Whose data it handled.
    pub(crate) player: Rank,
    /// The rank of the pattern that it played.
    pub(crate) rank: Rank,
    pub(crate) works: &'a [Work],
    /// What the phase wrote, if it wrote.
    pub(crate) new: Content,
    /// What was in the file before; nothing when it was made.
    pub(crate) old: Option<Content>,
    /// The file was cut to nothing first.
    pub(crate) fresh: bool,
    /// How many operations there were.
    pub(crate) reached: u64,
}

impl Checks<'_> {
    fn writes(&self) -> bool {
        self.works.iter().any(|work| *work != Work::One(Direction::Read))
    }
}

impl Runner<'_> {
    /// Checks everything; what is wrong makes the result invalid.
    pub(crate) fn verify(
        &self,
        scene: &mut CaseSetup,
        checks: &Checks,
        result: &mut Measurement,
    ) -> Result<(), BenchError> {
        let timed = self.check_timed_reads(scene, checks);
        let opening = self.opening(scene, checks.player, checks.rank, false, false);
        let opened = scene.backend.open(&opening, self.comm);
        agree(self.comm, opened.map_err(|error| told(&error)))?;
        let same_method = self.read_back(scene, checks);
        let closed = scene.backend.close().map_err(|error| told(&error));
        let given = scene.backend.give_out(&opening, self.comm).map_err(|error| told(&error));
        let closed = closed.and(given);
        let past_it = self.read_past(scene, checks).and_then(|()| self.audit(scene, checks));
        let outcome = timed.and_then(|timed| {
            let bytes = same_method?;
            past_it.map(|()| timed + bytes)
        });
        let said = serde_json::to_vec(&outcome).unwrap_or_default();
        let mut verified = 0;
        for (rank, text) in self.comm.gather(&said)?.iter().enumerate() {
            match serde_json::from_slice::<Result<u64, String>>(text) {
                Ok(Ok(bytes)) => verified += bytes,
                Ok(Err(why)) => _ = result.invalid.get_or_insert(format!("rank {rank}: {why}")),
                Err(error) => _ = result.invalid.get_or_insert(error.to_string()),
            }
        }
        agree(self.comm, closed)?;
        result.verified = Some(verified);
        Ok(())
    }

    /// Which way an operation of a work went: as the timed loop decided it.
    fn way(&self, scene: &CaseSetup, checks: &Checks, work: Work, index: u64) -> Option<Direction> {
        work.way_of(if scene.together() { Rank(0) } else { checks.rank }, index)
    }

    /// Whether ranks, or operations of one, meet at the same bytes: then a read may see either side.
    fn meets(&self, scene: &CaseSetup) -> bool {
        match scene.pattern.contract() {
            Contract::ExactlyOnce | Contract::AtMostOnce => false,
            Contract::OncePerRank => !scene.own_file,
            Contract::Any => true,
        }
    }

    /// What may be at the place of an operation after the phase.
    fn after(&self, scene: &CaseSetup, checks: &Checks, index: u64) -> Vec<Content> {
        let wrote = |work: &Work| self.way(scene, checks, *work, index) != Some(Direction::Read);
        match (checks.works.iter().any(wrote), checks.old) {
            (true, _) => vec![checks.new],
            (false, Some(old)) if checks.writes() && self.meets(scene) => vec![old, checks.new],
            (false, old) => vec![old.unwrap_or(checks.new)],
        }
    }

    fn check_timed_reads(&self, scene: &mut CaseSetup, checks: &Checks) -> Result<u64, String> {
        let own = scene.pattern.operations(checks.rank).min(checks.reached);
        let Some(old) = checks.old else { return Ok(0) };
        let either = checks.writes() && self.meets(scene);
        let allowed = if either { vec![old, checks.new] } else { vec![old] };
        let (mut access, mut checked) = (Access::new(), 0);
        for index in 0..own {
            let read =
                |work: &Work| self.way(scene, checks, *work, index) != Some(Direction::Write);
            let Some(at) = scene.source.kept_at(index) else { continue };
            if !checks.works.iter().any(read) {
                continue;
            }
            scene.pattern.place(checks.rank, index, &mut access);
            let memory = &scene.backend.arena()[at..];
            check_access(&allowed, &access, memory)
                .map_err(|wrong| format!("the timed read of operation {index} brought {wrong}"))?;
            checked += access.bytes();
        }
        Ok(checked)
    }

    fn read_back(&self, scene: &mut CaseSetup, checks: &Checks) -> Result<u64, String> {
        let own = scene.pattern.operations(checks.rank).min(checks.reached);
        let mut access = Access::new();
        let (mut verified, mut first) = (0, Ok(()));
        for index in 0..checks.reached {
            match index < own {
                true => scene.pattern.place(checks.rank, index, &mut access),
                false => access.clear(),
            }
            let at = scene.source.slot_at(0);
            let length = scene.pattern.memory_bytes() as usize;
            scene.backend.arena()[at..at + length].fill(0x6B);
            let read = scene.backend.run(Direction::Read, &access, at);
            let allowed = self.after(scene, checks, index);
            let checked = read.map_err(|error| error.to_string()).and_then(|moved| {
                let memory = &scene.backend.arena()[at..];
                let same = check_access(&allowed, &access, memory);
                same.map(|()| moved.bytes).map_err(|mismatch| mismatch.to_string())
            });
            match checked {
                Ok(bytes) => verified += bytes,
                Err(why) => first = first.and(Err(why)),
            }
            if first.is_err() && !scene.together() {
                break;
            }
        }
        first.map(|()| verified)
    }

    /// The places of all operations, by plain reads. A file that only the method can open is left to it.
    fn read_past(&self, scene: &CaseSetup, checks: &Checks) -> Result<(), String> {
        let Some(file) = self.plain_file(scene, checks) else { return Ok(()) };
        let own = scene.pattern.operations(checks.rank).min(checks.reached);
        let (mut access, mut buffer) = (Access::new(), Vec::new());
        for index in 0..own {
            scene.pattern.place(checks.rank, index, &mut access);
            let allowed = self.after(scene, checks, index);
            for piece in access.pieces() {
                buffer.resize(piece.length as usize, 0);
                let offset = scene.case.header + piece.file;
                file.read_exact_at(&mut buffer, offset)
                    .map_err(|error| format!("nothing to be read at {offset}: {error}"))?;
                check(&allowed, piece.file, &buffer)
                    .map_err(|wrong| format!("the file itself is wrong {wrong}"))?;
            }
        }
        Ok(())
    }

    fn plain_file(&self, scene: &CaseSetup, checks: &Checks) -> Option<File> {
        let file = File::open(self.path(scene, checks.player)).ok()?;
        file.metadata().is_ok_and(|metadata| metadata.is_file()).then_some(file)
    }

    /// This rank's share of all the file: every byte is as the phase wrote it or as it was before.
    fn audit(&self, scene: &CaseSetup, checks: &Checks) -> Result<(), String> {
        const CHUNK: u64 = 1 << 20;
        // What surrounds it in a file of somebody else is not ours to judge.
        if self.files.existing() {
            return Ok(());
        }
        let Some(file) = self.plain_file(scene, checks) else { return Ok(()) };
        let (header, bytes) = (scene.case.header, scene.pattern.file_bytes());
        let length = file.metadata().map_err(|error| error.to_string())?.len();
        if length > header + bytes {
            return Err(format!(
                "the file has {length} bytes, the pattern ends at {}",
                header + bytes
            ));
        }
        let (mut from, end) = match scene.own_file {
            true => (0, bytes),
            false => share(bytes, self.comm.rank().0.into(), self.comm.size().into()),
        };
        let allowed: Vec<Content> = std::iter::once(checks.new).chain(checks.old).collect();
        // What was written is held to its content already, by the rank that wrote it.
        let judged = if scene.undefined_gaps { 0 } else { length.saturating_sub(header) };
        let end = end.min(judged);
        let mut buffer = Vec::new();
        while from < end {
            buffer.resize(CHUNK.min(end - from) as usize, 0);
            file.read_exact_at(&mut buffer, header + from).map_err(|error| error.to_string())?;
            // Bytes that nobody wrote are zeros of a file that was made, or holes of one before.
            let gaps = checks.fresh || scene.pattern.contract() != Contract::ExactlyOnce;
            outside(&allowed, from, &buffer, gaps)?;
            from += buffer.len() as u64;
        }
        self.header_is_untouched(scene, checks, &file)
    }

    fn header_is_untouched(
        &self,
        scene: &CaseSetup,
        checks: &Checks,
        file: &File,
    ) -> Result<(), String> {
        if !checks.fresh || self.comm.rank().0 != 0 {
            return Ok(());
        }
        let mut header = vec![0; scene.case.header.min(1 << 20) as usize];
        let read = file.read_at(&mut header, 0).unwrap_or(0);
        match header[..read].iter().position(|byte| *byte != 0) {
            None => Ok(()),
            Some(at) => Err(format!("byte {at} of the header was written to")),
        }
    }
}

/// Whether each word of a range is of an allowed version, or nothing where there may be gaps.
fn outside(allowed: &[Content], offset: u64, got: &[u8], gaps: bool) -> Result<(), String> {
    if check(&allowed[..1], offset, got).is_ok() {
        return Ok(());
    }
    let at = |index: usize| offset + index as u64;
    let known = |index: usize| {
        (gaps && got[index] == 0) || allowed.iter().any(|one| one.byte(at(index)) == got[index])
    };
    match (0..got.len()).find(|index| !known(*index)) {
        None => Ok(()),
        Some(index) => Err(format!(
            "at {} lies {:#04x}, which neither this phase nor what was there before put there",
            at(index),
            got[index]
        )),
    }
}
