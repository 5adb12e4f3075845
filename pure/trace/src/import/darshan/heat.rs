//! Heat maps: bytes that a rank read and wrote in each of equal stretches of time.

use super::DarshanError;
use super::log::{Log, damaged};
use super::module::Module;
use crate::import::shared::TIME_END_NS;
use std::collections::BTreeMap;

/// Number, rank, width of a bin, number of bins, and two addresses in a memory long gone.
const HEAD: usize = 48;
/// Darshan has 200 at most; a damaged log may say anything.
const MOST_BINS: i64 = 1 << 16;
/// So that the end of any bin is a time: 19 hours.
const MOST_BIN_NS: f64 = (TIME_END_NS / (MOST_BINS as u64 + 1)) as f64;

/// Bytes over time in a layer, over all ranks.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Heat {
    /// The module that saw them: `POSIX`, `MPIIO`, `STDIO`.
    pub module: String,
    /// How long a bin is.
    pub bin_ns: u64,
    /// Bytes read in each.
    pub read: Vec<u64>,
    /// Bytes written in each.
    pub written: Vec<u64>,
    /// Bytes of each rank that moved any.
    pub by_rank: BTreeMap<u32, u64>,
}

/// Reads the heat maps. Ranks whose bins are of another width than those of the first are spread over
/// its bins by their middles.
pub(super) fn read(log: &Log<'_>) -> Result<Vec<Heat>, DarshanError> {
    let mut maps: BTreeMap<u64, Heat> = BTreeMap::new();
    if log.version(Module::HeatMap) != Some(1) {
        return Ok(Vec::new());
    }
    let mut stream = log.records(Module::HeatMap)?;
    while let Some(head) = stream.take(HEAD)? {
        let (number, rank) = (head.u64(0), head.i64(8));
        let (width, count) = (head.f64(16), head.i64(24));
        if !(0..=MOST_BINS).contains(&count) {
            return Err(damaged(format!("a heat map of {count} bins")));
        }
        let count = count as usize;
        let mut bins = [Vec::new(), Vec::new()];
        for bin in &mut bins {
            let fields = stream.need(8 * count)?;
            bin.extend((0..count).map(|at| u64::try_from(fields.i64(8 * at)).unwrap_or(0)));
        }
        let bin_ns = width * 1e9;
        if count == 0 || !(1.0..MOST_BIN_NS).contains(&bin_ns) {
            continue;
        }
        let map = maps.entry(number).or_insert_with(|| {
            let name = log.names.get(&number).map_or("", String::as_str);
            let module = name.strip_prefix("heatmap:").unwrap_or(name).to_owned();
            Heat { module, bin_ns: bin_ns as u64, ..Heat::default() }
        });
        let [written, read] = bins;
        let moved = written.iter().chain(&read).fold(0, |sum: u64, it| sum.saturating_add(*it));
        if let Some(rank) = u32::try_from(rank).ok().filter(|_| moved > 0) {
            let own = map.by_rank.entry(rank).or_default();
            *own = own.saturating_add(moved);
        }
        let factor = bin_ns / map.bin_ns as f64;
        for (into, from) in [(&mut map.written, &written), (&mut map.read, &read)] {
            for (index, bytes) in from.iter().enumerate() {
                // One bin more or less than the others is a known slip of Darshan 3.4.0 to 3.4.3.
                let at = match (factor - 1.0).abs() < 1e-6 {
                    true => index,
                    false => (((index as f64 + 0.5) * factor) as usize).min(MOST_BINS as usize),
                };
                if into.len() <= at {
                    into.resize(at + 1, 0);
                }
                into[at] = into[at].saturating_add(*bytes);
            }
        }
    }
    for map in maps.values_mut() {
        let longest = map.read.len().max(map.written.len());
        map.read.resize(longest, 0);
        map.written.resize(longest, 0);
    }
    Ok(maps.into_values().collect())
}
