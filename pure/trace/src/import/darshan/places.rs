//! Which counter stands where, by module: places in the latest version of its records.

use super::module::Module;

/// Where the counters of a module stand. What a module does not count has no place.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Places {
    /// Of reads and of writes.
    pub(super) ways: [Way; 2],
    pub(super) opens: &'static [usize],
    pub(super) collective_opens: &'static [usize],
    pub(super) seeks: &'static [usize],
    pub(super) stats: &'static [usize],
    pub(super) maps: &'static [usize],
    pub(super) syncs: &'static [usize],
    pub(super) switches: &'static [usize],
    pub(super) misaligned: &'static [usize],
    pub(super) alignment: &'static [usize],
    /// Values, and the first of their counts.
    pub(super) common: Option<([usize; 4], usize)>,
    pub(super) strides: Option<([usize; 4], usize)>,
    /// Fastest rank, its bytes, slowest rank, its bytes.
    pub(super) ranks: Option<usize>,
    /// Times of both, then the variances of times and bytes.
    pub(super) rank_times: Option<usize>,
    pub(super) meta: Option<usize>,
    pub(super) opened: Option<usize>,
    pub(super) closed: Option<usize>,
    /// A flag.
    pub(super) is_collective: Option<usize>,
}

/// Where the counters of reads or writes stand.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Way {
    pub(super) calls: &'static [usize],
    pub(super) bytes: &'static [usize],
    pub(super) collective: &'static [usize],
    pub(super) nonblocking: &'static [usize],
    pub(super) consecutive: &'static [usize],
    pub(super) sequential: &'static [usize],
    /// The highest byte.
    pub(super) end: Option<usize>,
    /// The first of ten bins.
    pub(super) sizes: Option<usize>,
    pub(super) time: Option<usize>,
    pub(super) longest: Option<usize>,
    pub(super) first: Option<usize>,
    pub(super) last: Option<usize>,
}

/// Times of reads and writes, where all modules but STDIO have them.
const READS: Way = Way {
    time: Some(8),
    longest: Some(11),
    first: Some(1),
    last: Some(5),
    calls: &[],
    bytes: &[],
    collective: &[],
    nonblocking: &[],
    consecutive: &[],
    sequential: &[],
    end: None,
    sizes: None,
};
const WRITES: Way =
    Way { time: Some(9), longest: Some(12), first: Some(2), last: Some(6), ..READS };

/// The places of a module that counts calls on files.
pub(super) fn of(module: Module) -> Option<Places> {
    let usual = Places {
        meta: Some(10),
        opened: Some(0),
        closed: Some(7),
        rank_times: Some(13),
        ..Places::default()
    };
    Some(match module {
        Module::Posix => Places {
            ways: [
                Way {
                    calls: &[3],
                    bytes: &[14],
                    end: Some(16),
                    consecutive: &[18],
                    sequential: &[20],
                    sizes: Some(29),
                    ..READS
                },
                Way {
                    calls: &[4],
                    bytes: &[15],
                    end: Some(17),
                    consecutive: &[19],
                    sequential: &[21],
                    sizes: Some(39),
                    ..WRITES
                },
            ],
            opens: &[0],
            seeks: &[5],
            stats: &[6],
            maps: &[7],
            syncs: &[8, 9],
            switches: &[22],
            misaligned: &[25],
            alignment: &[26],
            strides: Some(([49, 50, 51, 52], 53)),
            common: Some(([57, 58, 59, 60], 61)),
            ranks: Some(65),
            ..usual
        },
        // Independent, collective, split collective and non-blocking ones.
        Module::MpiIo => Places {
            ways: [
                Way {
                    calls: &[2, 4, 6, 8],
                    bytes: &[14],
                    collective: &[4, 6],
                    nonblocking: &[6, 8],
                    sizes: Some(19),
                    ..READS
                },
                Way {
                    calls: &[3, 5, 7, 9],
                    bytes: &[15],
                    collective: &[5, 7],
                    nonblocking: &[7, 9],
                    sizes: Some(29),
                    ..WRITES
                },
            ],
            opens: &[0, 1],
            collective_opens: &[1],
            syncs: &[10],
            switches: &[16],
            common: Some(([39, 40, 41, 42], 43)),
            ranks: Some(47),
            ..usual
        },
        Module::Stdio => Places {
            ways: [
                Way {
                    calls: &[2],
                    bytes: &[7],
                    end: Some(8),
                    time: Some(2),
                    longest: None,
                    first: Some(6),
                    last: Some(10),
                    ..READS
                },
                Way {
                    calls: &[3],
                    bytes: &[6],
                    end: Some(9),
                    time: Some(1),
                    longest: None,
                    first: Some(5),
                    last: Some(9),
                    ..WRITES
                },
            ],
            opens: &[0],
            seeks: &[4],
            syncs: &[5],
            ranks: Some(10),
            rank_times: Some(11),
            meta: Some(0),
            opened: Some(3),
            closed: Some(8),
            ..usual
        },
        Module::H5File => Places {
            opens: &[0],
            syncs: &[1],
            meta: Some(4),
            opened: Some(0),
            closed: Some(3),
            ..Places::default()
        },
        Module::H5Dataset => Places {
            ways: [
                Way { calls: &[1], bytes: &[4], sizes: Some(12), ..READS },
                Way { calls: &[2], bytes: &[5], sizes: Some(22), ..WRITES },
            ],
            opens: &[0],
            syncs: &[3],
            switches: &[6],
            common: Some(([32, 43, 54, 65], 76)),
            ranks: Some(90),
            is_collective: Some(88),
            ..usual
        },
        Module::PnetcdfFile => Places {
            ways: [Way { bytes: &[6], ..Way::default() }, Way { bytes: &[7], ..Way::default() }],
            opens: &[0, 1],
            syncs: &[5],
            meta: Some(6),
            opened: Some(0),
            closed: Some(4),
            ..Places::default()
        },
        Module::PnetcdfVariable => Places {
            ways: [
                Way {
                    calls: &[1, 3, 5],
                    bytes: &[7],
                    collective: &[3],
                    nonblocking: &[5],
                    sizes: Some(44),
                    ..READS
                },
                Way {
                    calls: &[2, 4, 6],
                    bytes: &[8],
                    collective: &[4],
                    nonblocking: &[6],
                    sizes: Some(54),
                    ..WRITES
                },
            ],
            opens: &[0],
            switches: &[9],
            common: Some(([64, 75, 86, 97], 108)),
            ranks: Some(116),
            ..usual
        },
        _ => return None,
    })
}
