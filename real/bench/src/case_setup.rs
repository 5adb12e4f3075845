//! What a case needs before anything is timed: pattern, memory, back end, files and caches.

use crate::cache;
use crate::content::Content;
use crate::failure::{BenchError, agree, told};
use crate::names::Name;
use crate::plan::Case;
use crate::runner::Runner;
use crate::source::{Needs, Source, is_contiguous};
use crate::steps::Act;
use crate::surroundings::enough_room;
use iolab_backend::{Arena, Backend, Identity};
use iolab_pattern::Pattern;
use iolab_vocab::Rank;
use std::fs::{File, Metadata, OpenOptions};
use std::os::unix::fs::{FileExt, FileTypeExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

/// What stays the same during one repetition of a case on one rank.
pub(crate) struct CaseSetup<'a> {
    pub(crate) case: &'a Case,
    pub(crate) pattern: Box<dyn Pattern>,
    /// Every rank has a file of its own.
    pub(crate) own_file: bool,
    pub(crate) backend: Box<dyn Backend>,
    pub(crate) source: Source,
    pub(crate) depth: usize,
    /// Some operation of some rank is not contiguous.
    pub(crate) noncontiguous: bool,
    /// The version of the first generation of the content: no two repetitions of two cases share one.
    pub(crate) version: u64,
    /// Which version is in the files before the next phase; none when they are to be made.
    pub(crate) before: Option<u64>,
    /// What lies where no operation wrote is not defined: an MPI library filled the file from nothing.
    pub(crate) undefined_gaps: bool,
}

/// Versions of content are made of the case, the repetition and the generation within them.
pub(crate) fn first_version(case: usize, repetition: u32) -> u64 {
    (case as u64) << 40 | u64::from(repetition) << 8
}

impl CaseSetup<'_> {
    /// Which version is there after a phase.
    pub(crate) fn after(&self, work: &[Act], generation: u32) -> u64 {
        match self.before {
            Some(before) if work == [Act::Read] => before,
            _ => self.version + u64::from(generation),
        }
    }

    /// Whether the method may put anything where nobody wrote to a file that it fills from nothing: MPI
    /// promises no content there, and ROMIO writes whole ranges with what lay in its memory.
    pub(crate) fn may_fill_gaps(&self) -> bool {
        self.case.method.needs == iolab_backend::Needs::Mpi
    }

    pub(crate) fn together(&self) -> bool {
        self.case.together(self.noncontiguous)
    }
}

impl Runner<'_> {
    pub(crate) fn scene<'a>(
        &self,
        case: &'a Case,
        version: u64,
    ) -> Result<CaseSetup<'a>, (String, String)> {
        let pattern = case
            .pattern(self.comm.size(), self.plan.seed)
            .map_err(|error| (error.message, error.hint))?;
        let writes = case.temporal.writes();
        let own_file = case.own_file(pattern.as_ref());
        let exact = self.plan.verify && case.method.keeps_data;
        let depth = case.depth.max(1);
        let rank = self.pattern_rank(case, false);
        let needs = Needs { writes, data: case.method.keeps_data, exact, depth };
        let source = Source::plan(pattern.as_ref(), rank, needs)
            .map_err(|why| (why, "make the pattern smaller, or leave --verify".to_owned()))?;
        let files = if own_file { u64::from(self.comm.size()) } else { 1 };
        let wanted = (pattern.file_bytes().saturating_add(case.header)).saturating_mul(files);
        if case.method.keeps_data && self.files.existing() {
            let rank = self.comm.rank().0;
            let name = if own_file { Name::Own(rank) } else { Name::Shared };
            self.files.hold_enough(name, case.header.saturating_add(pattern.file_bytes()))?;
        } else if case.method.keeps_data {
            enough_room(&self.plan.target, &case.spatial.text(), wanted)?;
        }
        let arena = Arena::new(source.bytes);
        let backend = (case.method.make)(arena, depth).map_err(|error| told(&error))?;
        let noncontiguous = !is_contiguous(pattern.as_ref(), rank);
        let before = None;
        Ok(CaseSetup {
            case,
            pattern,
            own_file,
            backend,
            source,
            depth,
            noncontiguous,
            version,
            before,
            undefined_gaps: false,
        })
    }

    /// The rank of the pattern that this rank plays; a neighbour's when reading reordered.
    pub(crate) fn pattern_rank(&self, case: &Case, reading: bool) -> Rank {
        case.rank(self.played(case, reading))
    }

    pub(crate) fn played(&self, case: &Case, reading: bool) -> Rank {
        case.player(self.comm.rank(), self.comm.size(), reading)
    }

    pub(crate) fn name(&self, scene: &CaseSetup, rank: Rank) -> Name {
        if scene.own_file { Name::Own(rank.0) } else { Name::Shared }
    }

    pub(crate) fn path(&self, scene: &CaseSetup, rank: Rank) -> PathBuf {
        self.files.path(self.name(scene, rank))
    }

    pub(crate) fn content(&self, scene: &CaseSetup, rank: Rank, version: u64) -> Content {
        let file = if scene.own_file { rank.0 + 1 } else { 0 };
        Content::new(self.plan.seed, file, version)
    }

    /// Writes generation 0, every rank its share, with plain large writes.
    pub(crate) fn setup(&self, scene: &mut CaseSetup) -> Result<(), BenchError> {
        let rank = self.comm.rank();
        let made = self.write_share(scene, rank).map_err(|error| {
            let path = self.path(scene, rank);
            let message = format!("cannot prepare {}: {error}", path.display());
            (message, "choose a target that you may write to, with enough room".to_owned())
        });
        agree(self.comm, made)?;
        let rank = self.comm.rank();
        let opening = self.opening(scene, rank, self.pattern_rank(scene.case, false), true, false);
        let taken = scene.backend.take_in(&opening, self.comm);
        agree(self.comm, taken.map_err(|error| told(&error)))
    }

    fn write_share(&self, scene: &CaseSetup, rank: Rank) -> std::io::Result<()> {
        let bytes = scene.pattern.file_bytes();
        let range = match scene.own_file {
            true => (0, bytes),
            false => share(bytes, u64::from(rank.0), u64::from(self.comm.size())),
        };
        let content = self.content(scene, rank, scene.version);
        let (path, identity) =
            (self.path(scene, rank), self.files.identity(self.name(scene, rank)));
        let header = scene.case.header;
        write_range(&path, identity, content, header, range)?;
        // What another case left behind the end is not this one's.
        cut_to(&path, identity, header + bytes)
    }

    pub(crate) fn caches(&self, scene: &CaseSetup) -> Result<String, BenchError> {
        let mut found = String::new();
        if scene.case.method.needs == iolab_backend::Needs::FileSystem {
            return Ok("at the servers".to_owned());
        }
        self.comm.barrier()?;
        if scene.own_file || self.comm.rank().0 == 0 {
            found = cache::prepare(&self.path(scene, self.comm.rank()), self.plan.cache);
        }
        self.comm.barrier()?;
        Ok(found)
    }
}

/// Writes what belongs into the range (from, to) of the pattern, with plain large writes, into the
/// file that is known, if one is.
pub(crate) fn write_range(
    path: &Path,
    identity: Option<Identity>,
    content: Content,
    header: u64,
    range: (u64, u64),
) -> std::io::Result<()> {
    const CHUNK: u64 = 1 << 20;
    let (mut offset, end) = range;
    let (file, facts) = open_known(path, identity)?;
    let mut chunk = vec![0; CHUNK as usize];
    while offset < end {
        let length = CHUNK.min(end - offset);
        content.fill(offset, &mut chunk[..length as usize]);
        file.write_all_at(&chunk[..length as usize], header + offset)?;
        offset += length;
    }
    if facts.file_type().is_char_device() { Ok(()) } else { file.sync_data() }
}

/// Makes a regular file that long. Of ranks that share it, all say the same.
fn cut_to(path: &Path, identity: Option<Identity>, bytes: u64) -> std::io::Result<()> {
    let (file, facts) = open_known(path, identity)?;
    match facts.is_file() {
        true => file.set_len(bytes),
        false => Ok(()),
    }
}

/// The file to write to, which must be the one that is known, if one is.
fn open_known(path: &Path, identity: Option<Identity>) -> std::io::Result<(File, Metadata)> {
    let follow = if identity.is_some() { libc::O_NOFOLLOW } else { 0 };
    let file = OpenOptions::new().write(true).custom_flags(follow).open(path)?;
    let facts = file.metadata()?;
    match identity.is_some_and(|identity| !identity.is(&facts)) {
        true => Err(std::io::Error::other("it is no longer the file that this run made")),
        false => Ok((file, facts)),
    }
}

/// The part of `bytes` that is the `index`-th of `count`, on whole MiB where there are enough.
pub(crate) fn share(bytes: u64, index: u64, count: u64) -> (u64, u64) {
    let each = bytes.div_ceil(count).next_multiple_of(1 << 20);
    ((each * index).min(bytes), (each * (index + 1)).min(bytes))
}
