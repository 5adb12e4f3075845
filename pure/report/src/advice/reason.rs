//! What each strategy finds to do in a trace, and which of its parameters are worth trying.

use super::above::Above;
use crate::facts::FileFacts;
use crate::pattern::Pattern;
use crate::stream::{Calls, Stream, Transfers};
use crate::thousands::grouped;
use iolab_vocab::Direction;
use std::collections::BTreeMap;

/// Fewer calls than this are no reason for a strategy, whatever they are.
const HABIT_CALLS: u64 = 100;
/// A sync may wait for a device: a few are a reason.
const DEAR_HABIT_CALLS: u64 = 4;
/// Bytes of new files that are worth a fast place.
const STAGED_BYTES: u64 = 1 << 20;
/// Files up to this size are kept in a container; its own default.
const SMALL_FILE_BYTES: u64 = 1 << 20;
/// What several processes write to one file is brought together up to this size.
const JOINED_BYTES: u64 = 1 << 20;

/// One way to apply a strategy. What is in no row is never advised: it makes nothing faster.
pub(super) struct Rule {
    /// Name in the catalogue.
    pub(super) strategy: &'static str,
    /// Parameters worth trying, the plainest first; what stands in braces is brought by who asks ([`Means`](super::Means)).
    pub(super) trials: &'static [&'static str],
    /// Calls on this file that it would act on.
    pub(super) calls: fn(&Seen) -> u64,
    /// So many make it worth a try.
    pub(super) habit: u64,
    /// Fewer on a file only make the choice of files longer.
    pub(super) least: u64,
    /// What these calls are, after their number.
    pub(super) noun: &'static str,
    /// The same data lie elsewhere in files.
    pub(super) moves_bytes: bool,
}

impl Rule {
    /// A row that calls by the hundred give reason to.
    const HABIT: Rule = Rule {
        strategy: "",
        trials: &[""],
        calls: |_| 0,
        habit: HABIT_CALLS,
        least: HABIT_CALLS / 16,
        noun: "",
        moves_bytes: false,
    };
    /// A row that a few calls give reason to.
    const DEAR: Rule = Rule { habit: DEAR_HABIT_CALLS, least: 1, ..Rule::HABIT };
}

/// One file with all that is known of it.
pub(super) struct Seen<'f, 'a> {
    /// By calls of POSIX and streams.
    pub(super) file: &'f FileFacts<'a>,
    /// By calls of the layers above.
    pub(super) above: Above,
    /// Several processes use it at once: nothing of it is held in any of them.
    pub(super) is_shared: bool,
}

impl Seen<'_, '_> {
    /// Calls that one process may hold back or serve by itself.
    fn of_one(&self, calls: impl Fn(&FileFacts) -> u64) -> u64 {
        if self.is_shared { 0 } else { calls(self.file) }
    }
}

/// All of them.
pub(super) const RULES: &[Rule] = &[
    Rule {
        strategy: "seek-elide",
        calls: |it| it.file.sum(|stream| stream.seeks).count,
        noun: "seeks",
        ..Rule::HABIT
    },
    Rule {
        strategy: "seek-elide",
        trials: &["outsiders=none"],
        calls: |it| it.file.sum(|stream| stream.seeks).count,
        noun: "seeks",
        ..Rule::HABIT
    },
    Rule {
        strategy: "write-back",
        trials: &["", "buffer=256k", "buffer=4m", "buffer=16m", "largest=64k,buffer=4m"],
        calls: |it| it.of_one(|file| of(file, Direction::Write, tiny)),
        noun: "writes of less than 16 KiB",
        ..Rule::HABIT
    },
    Rule {
        strategy: "align",
        trials: &["", "block=64k", "block=256k", "block=4m"],
        calls: |it| it.of_one(|file| of(file, Direction::Write, ragged)),
        noun: "writes that are no whole 4 KiB blocks",
        ..Rule::HABIT
    },
    Rule {
        strategy: "read-ahead",
        trials: &["", "window=1m", "window=32m"],
        calls: |it| reads_in(it.file, is_stream, |reads| reads.all),
        noun: "reads in streams",
        ..Rule::HABIT
    },
    Rule {
        strategy: "read-ahead",
        trials: &[
            "via=buffer,outsiders=none",
            "via=buffer,outsiders=none,window=1m",
            "via=buffer,outsiders=none,window=1m,largest=64k",
        ],
        calls: |it| reads_in(it.file, is_contiguous, tiny),
        noun: "reads of less than 16 KiB that follow each other",
        ..Rule::HABIT
    },
    Rule {
        strategy: "prefetch",
        trials: &["plan={recorded}", "window=32m,plan={recorded}"],
        calls: |it| reads_in(it.file, |pattern| !is_contiguous(pattern), |reads| reads.all),
        noun: "reads in an order that the kernel does not foresee",
        ..Rule::HABIT
    },
    Rule {
        strategy: "data-sieve",
        trials: &[
            "outsiders=none",
            "outsiders=none,window=1m",
            "outsiders=none,hole=16k,window=1m",
        ],
        calls: |it| reads_in(it.file, has_holes, tiny),
        noun: "reads of less than 16 KiB with holes between them",
        ..Rule::HABIT
    },
    Rule {
        strategy: "fsync-relax",
        trials: &["", "every=1s", "every=100ms"],
        calls: |it| it.file.sum(|stream| stream.syncs).count,
        noun: "syncs",
        ..Rule::DEAR
    },
    Rule {
        strategy: "fsync-relax",
        trials: &["join=1ms", "join=10ms"],
        calls: |it| syncs_of_threads(it.file),
        noun: "syncs by several threads of a process",
        ..Rule::DEAR
    },
    Rule {
        strategy: "collect",
        trials: &["", "slow=0", "buffer=64m"],
        calls: |it| if it.above.rank_count > 1 { it.above.small_independent_writes } else { 0 },
        noun: "independent writes of less than 64 KiB by the ranks of a file",
        ..Rule::HABIT
    },
    Rule {
        strategy: "demote",
        calls: |it| it.above.collective,
        noun: "collective accesses of MPI-IO",
        ..Rule::DEAR
    },
    Rule {
        strategy: "hints",
        trials: &[
            "romio_cb_write=enable,romio_cb_read=enable,collective_buffering=true",
            "romio_cb_write=disable,romio_cb_read=disable,collective_buffering=false",
            "cb_buffer_size=67108864",
        ],
        calls: |it| it.above.collective,
        noun: "collective accesses of MPI-IO",
        ..Rule::DEAR
    },
    Rule {
        strategy: "hints",
        trials: &["romio_ds_write=disable,romio_ds_read=disable"],
        calls: |it| it.above.scattered,
        noun: "independent accesses of MPI-IO that a view scatters",
        ..Rule::DEAR
    },
    Rule {
        strategy: "h5",
        trials: &["chunk-cache=16m", "chunk-cache=256m"],
        calls: |it| it.above.repeated_chunks,
        noun: "accesses of datasets that move chunks more than once",
        ..Rule::DEAR
    },
    Rule {
        strategy: "h5",
        trials: &["coll-metadata=yes"],
        calls: |it| if it.above.rank_count > 1 { it.above.dataset_accesses } else { 0 },
        noun: "accesses of datasets by several ranks",
        ..Rule::DEAR
    },
    Rule {
        strategy: "h5",
        trials: &["meta-block=64k", "meta-block=1m"],
        moves_bytes: true,
        calls: |it| it.above.metadata_between,
        noun: "small writes of HDF5's own metadata between those of data",
        ..Rule::HABIT
    },
    Rule {
        strategy: "h5",
        trials: &["alignment=64k", "alignment=1m"],
        moves_bytes: true,
        calls: |it| match it.above.dataset_accesses {
            0 => 0,
            _ => of(it.file, Direction::Write, |all| all.unaligned),
        },
        noun: "writes of HDF5 that begin inside a 4 KiB block",
        ..Rule::HABIT
    },
    Rule {
        strategy: "nc",
        trials: &["chunk-cache=16m", "chunk-cache=256m"],
        calls: |it| it.above.repeated_variable_chunks,
        noun: "accesses of variables that move chunks more than once",
        ..Rule::DEAR
    },
    Rule {
        strategy: "nc",
        trials: &["header-pad=64k"],
        moves_bytes: true,
        calls: |it| it.above.redefinitions,
        noun: "returns to the definitions of a file of NetCDF",
        ..Rule::DEAR
    },
    Rule {
        strategy: "nc",
        trials: &["nofill=yes"],
        moves_bytes: true,
        calls: |it| it.above.variable_writes,
        noun: "writes of variables of NetCDF, which are filled before",
        ..Rule::DEAR
    },
    Rule {
        strategy: "aggregate",
        trials: &["", "block=4m"],
        calls: |it| joint_writes(it.file),
        noun: "writes of less than 1 MiB that several processes make to one file",
        ..Rule::HABIT
    },
    Rule {
        strategy: "single-writer",
        calls: |it| match it.file.process_count(Direction::Write) {
            0 | 1 => 0,
            _ => it.file.all(Direction::Write).count,
        },
        noun: "writes that several processes make to one file",
        ..Rule::HABIT
    },
    Rule {
        strategy: "stage",
        trials: &["to={fast}"],
        calls: |it| match is_new(it.file) && it.file.sum(|stream| stream.syncs).count <= 1 {
            true => it.file.all(Direction::Write).bytes / STAGED_BYTES,
            false => 0,
        },
        habit: 1,
        noun: "MiB of new files that are not synced",
        ..Rule::DEAR
    },
    Rule { strategy: "defer-close", calls: new_small_files, noun: "new small files", ..NEW_FILES },
    Rule {
        strategy: "defer-close",
        trials: &["exclusive=yes"],
        calls: new_small_files,
        noun: "new small files, in directories that are the run's own",
        ..NEW_FILES
    },
];

const NEW_FILES: Rule = Rule { least: 1, ..Rule::HABIT };

fn is_new(file: &FileFacts) -> bool {
    file.sum(|stream| stream.creates).count > 0
}

fn new_small_files(it: &Seen) -> u64 {
    let bytes = it.file.all(Direction::Write).bytes;
    u64::from(is_new(it.file) && (1..=SMALL_FILE_BYTES).contains(&bytes))
}

fn joint_writes(file: &FileFacts) -> u64 {
    let writes = file.all(Direction::Write);
    let is_small = writes.bytes < JOINED_BYTES.saturating_mul(writes.count);
    let is_joint = file.process_count(Direction::Write) > 1;
    if is_joint && is_small { writes.count } else { 0 }
}

/// Syncs of processes of which more than one thread syncs the file.
fn syncs_of_threads(file: &FileFacts) -> u64 {
    let mut by_process: BTreeMap<u32, (usize, u64)> = BTreeMap::new();
    for (key, stream) in file.streams.iter().filter(|(_, stream)| stream.syncs.count > 0) {
        let (threads, syncs) = by_process.entry(key.process).or_default();
        (*threads, *syncs) = (*threads + 1, syncs.saturating_add(stream.syncs.count));
    }
    let of_several = by_process.values().filter(|(threads, _)| *threads > 1);
    of_several.map(|(_, syncs)| *syncs).fold(0, u64::saturating_add)
}

fn of(file: &FileFacts, direction: Direction, calls: fn(&Transfers) -> Calls) -> u64 {
    let sum = |stream: &Stream| stream.transfers(direction).map_or(Calls::default(), calls);
    file.sum(sum).count
}

/// Of the reads of whoever reads in one of these patterns, those.
fn reads_in(file: &FileFacts, test: fn(Pattern) -> bool, calls: fn(&Transfers) -> Calls) -> u64 {
    let of =
        |stream: &Stream| stream.patterned(Direction::Read, test).map_or(Calls::default(), calls);
    file.sum(of).count
}

fn ragged(all: &Transfers) -> Calls {
    all.unaligned.and(tiny(all))
}

fn tiny(all: &Transfers) -> Calls {
    all.tiny_consecutive.and(all.tiny_scattered)
}

fn is_contiguous(pattern: Pattern) -> bool {
    matches!(pattern, Pattern::Consecutive | Pattern::Backward)
}

fn has_holes(pattern: Pattern) -> bool {
    matches!(
        pattern,
        Pattern::SimpleStrided { .. } | Pattern::NestedStrided { .. } | Pattern::Sequential
    )
}

fn is_stream(pattern: Pattern) -> bool {
    is_contiguous(pattern) || has_holes(pattern)
}

/// The files a rule has something to do in, worst first, and how many calls that are; nothing where
/// they are no reason.
pub(super) fn seen<'f, 'a>(
    rule: &Rule,
    files: &[Seen<'f, 'a>],
) -> Option<(u64, Vec<&'f FileFacts<'a>>)> {
    let mut hits: Vec<(u64, &FileFacts)> =
        files.iter().map(|seen| ((rule.calls)(seen), seen.file)).collect();
    hits.retain(|(calls, _)| *calls >= rule.least);
    hits.sort_by_key(|(calls, file)| (std::cmp::Reverse(*calls), file.index));
    let all = hits.iter().map(|(calls, _)| *calls).fold(0, u64::saturating_add);
    (all >= rule.habit).then(|| (all, hits.into_iter().map(|(_, file)| file).collect()))
}

/// The reason as a phrase.
pub(super) fn words(rule: &Rule, calls: u64, files: &[&FileFacts]) -> String {
    let calls = format!("{} {}", grouped(calls), rule.noun);
    match files {
        [file] => format!("{}: {calls} of {}", rule.strategy, file.path),
        _ => format!("{}: {calls} of {} files", rule.strategy, grouped(files.len() as u64)),
    }
}
