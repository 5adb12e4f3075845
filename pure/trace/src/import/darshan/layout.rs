//! Where counters stand in a record, by module and version of the module.
//!
//! Places are those of the latest version; of an older one a table says which counters it did not have
//! yet, and which it had more. Source: the headers `darshan-*-log-format.h` and what the readers of
//! Darshan do about older versions.

use super::module::Module;
use super::stream::Fields;

/// Number and rank stand in front of every record.
const HEAD: usize = 16;

/// How records of a module and a version are laid out.
#[derive(Clone, Copy, Debug)]
pub(super) struct Layout {
    /// Bytes in front of the counters.
    head: usize,
    /// Whole numbers in a record.
    counters: usize,
    /// Times and variances behind them.
    times: usize,
    /// Places of the latest version that this one does not have.
    no_counters: &'static [usize],
    /// The same of times.
    no_times: &'static [usize],
    /// Counters that the latest version does not have: behind which place, and how many.
    more: (usize, usize),
}

/// A record, in which counters are found by their places in the latest version.
pub(super) struct Counters<'a> {
    layout: Layout,
    fields: Fields<'a>,
}

const NO_MORE: (usize, usize) = (usize::MAX, 0);
/// What POSIX did not have before version 4: FILENOS, DUPS, RENAME_SOURCES, RENAME_TARGETS, RENAMED_FROM.
const POSIX_4: &[usize] = &[1, 2, 10, 11, 12];
/// CLOSE_START and OPEN_END: first opens and last closes had one moment only.
const ONE_MOMENT: &[usize] = &[3, 4];

impl Layout {
    /// The layout of that version, if anybody knows it.
    pub(super) fn of(module: Module, version: u32) -> Option<Layout> {
        let of = |counters: usize, times: usize| Layout {
            head: HEAD,
            counters,
            times,
            no_counters: &[],
            no_times: &[],
            more: NO_MORE,
        };
        let posix = |times| Layout { no_counters: POSIX_4, ..of(64, times) };
        Some(match (module, version) {
            (Module::Posix, 4) => of(69, 17),
            (Module::Posix, 3) => posix(17),
            (Module::Posix, 2) => Layout { no_times: ONE_MOMENT, ..posix(15) },
            // Four counters of streams behind MMAPS.
            (Module::Posix, 1) => {
                Layout { counters: 68, no_times: ONE_MOMENT, more: (7, 4), ..posix(15) }
            }
            (Module::MpiIo, 3) => of(51, 17),
            (Module::MpiIo, 1 | 2) => Layout { no_times: ONE_MOMENT, ..of(51, 15) },
            (Module::Stdio, 2) => of(14, 15),
            // No FDOPENS.
            (Module::Stdio, 1) => Layout { no_counters: &[1], ..of(13, 15) },
            (Module::H5File, 3) => of(3, 5),
            // No FLUSHES, USE_MPIIO and META_TIME.
            (Module::H5File, 2) => Layout { no_counters: &[1, 2], no_times: &[4], ..of(1, 4) },
            (Module::H5File, 1) => {
                Layout { no_counters: &[1, 2], no_times: &[1, 2, 4], ..of(1, 2) }
            }
            // The number of the file in front of the counters.
            (Module::H5Dataset, 2) => Layout { head: HEAD + 8, ..of(94, 17) },
            (Module::H5Dataset, 1) => of(94, 17),
            (Module::PnetcdfFile, 3) => of(9, 8),
            // INDEP_OPENS and COLL_OPENS in place of CREATES and OPENS, which they come to as well.
            (Module::PnetcdfFile, 2) => {
                Layout { no_counters: &[2, 3, 4, 5, 6, 7, 8], no_times: &[2, 5, 6, 7], ..of(2, 4) }
            }
            (Module::PnetcdfFile, 1) => Layout {
                no_counters: &[2, 3, 4, 5, 6, 7, 8],
                no_times: &[1, 2, 3, 5, 6, 7],
                ..of(2, 2)
            },
            (Module::PnetcdfVariable, 1) => Layout { head: HEAD + 8, ..of(120, 17) },
            _ => return None,
        })
    }

    /// Length of a record.
    pub(super) fn bytes(&self) -> usize {
        self.head + 8 * (self.counters + self.times)
    }

    /// The record in these bytes.
    pub(super) fn read<'a>(&self, fields: Fields<'a>) -> Counters<'a> {
        Counters { layout: *self, fields }
    }
}

/// Where a place of the latest version is found.
fn place(latest: usize, missing: &[usize]) -> Option<usize> {
    let before = missing.iter().filter(|other| **other < latest).count();
    (!missing.contains(&latest)).then_some(latest - before)
}

impl Counters<'_> {
    /// The number of its file.
    pub(super) fn file(&self) -> u64 {
        self.fields.u64(0)
    }

    /// The rank; −1 for all of them together.
    pub(super) fn rank(&self) -> i64 {
        self.fields.i64(8)
    }

    /// A counter, by its place in the latest version; −1 where the version has none.
    pub(super) fn counter(&self, latest: usize) -> i64 {
        let (behind, more) = self.layout.more;
        let shift = if latest > behind { more } else { 0 };
        match place(latest, self.layout.no_counters) {
            Some(place) if place + shift < self.layout.counters => {
                self.fields.i64(self.layout.head + 8 * (place + shift))
            }
            _ => -1,
        }
    }

    /// A time in seconds or a variance, likewise.
    pub(super) fn time(&self, latest: usize) -> f64 {
        match place(latest, self.layout.no_times) {
            Some(place) if place < self.layout.times => {
                self.fields.f64(self.layout.head + 8 * (self.layout.counters + place))
            }
            _ => -1.0,
        }
    }

    /// Opens of streams, which version 1 of POSIX counted among its own calls.
    pub(super) fn stream_opens(&self) -> i64 {
        match self.layout.more {
            NO_MORE => 0,
            (behind, _) => {
                let first = place(behind, self.layout.no_counters).unwrap_or(0) + 1;
                self.fields.i64(self.layout.head + 8 * first)
            }
        }
    }
}
