//! Logs of Darshan, as traces and as what they count: as they are, and unpacked, so that what is changed in them is what is read.

use crate::{Target, kept, seeds};
use flate2::read::ZlibDecoder;
use iolab_report::{CountedReport, counted_csv, counted_page, counted_text, text::Style};
use iolab_sim::workload::{Workload, reconstruct};
use iolab_trace::import::counted::Counted;
use iolab_trace::import::{darshan, darshan_counted};
use std::io::Read;

/// Header, name map, module maps and their number, of the formats before 3.41 and of that one.
const LAYOUTS: [(usize, usize, usize, usize); 2] = [(360, 24, 40, 16), (1328, 32, 48, 64)];
const COMPRESSION: usize = 16;
const UNCOMPRESSED: u8 = 2;
const BYTES_MAX: usize = 8_192;

pub(crate) const DARSHAN: Target = Target {
    name: "darshan",
    seeds: || {
        let logs = seeds::files(&["samples/darshan"], &["darshan"]);
        let small: Vec<_> = logs.into_iter().filter(|log| log.len() <= BYTES_MAX).collect();
        let unpacked: Vec<_> = small.iter().filter_map(|log| unpacked(log)).collect();
        assert!(!unpacked.is_empty());
        [small, unpacked].concat()
    },
    bytes_max: BYTES_MAX,
    run: |bytes| {
        match darshan(bytes) {
            Err(error) => assert!(!error.to_string().is_empty() && !error.hint().is_empty()),
            Ok(trace) => kept::keeps(&trace),
        }
        if let Ok(counted) = darshan_counted(bytes) {
            explain(&counted);
        }
    },
};

/// Ranks up to which a workload is read back: each of its commands has a list of them.
const RANKS_MAX: u32 = 4_096;

/// Everything that is made of what a log counts.
fn explain(counted: &Counted) {
    let report = CountedReport::of(counted);
    serde_json::to_string(&report).expect("JSON");
    let _ = (counted_csv(&report), counted_text(&report, Style { colour: true, view: None }));
    assert!(!counted_page(&report).is_empty());
    let made = reconstruct(counted, "fuzzed");
    if let Ok(text) = made.as_ref()
        && counted.ranks <= RANKS_MAX
        && let Err(error) = Workload::parse(text)
    {
        panic!("{} in\n{text}", error.message);
    }
}

/// A little-endian log without compression, if that is short enough.
fn unpacked(log: &[u8]) -> Option<Vec<u8>> {
    let word = |at: usize| Some(u64::from_le_bytes(*log.get(at..)?.first_chunk()?) as usize);
    if log[8] == 0 || log[COMPRESSION] != 0 {
        return None;
    }
    let (header, names, maps, modules) = LAYOUTS[usize::from(log.starts_with(b"3.41"))];
    let places = (0..modules).map(|module| maps + 16 * module).chain([names]);
    let mut regions = Vec::new();
    for place in places {
        if let (start, length @ 1..) = (word(place)?, word(place + 8)?) {
            regions.push((Some(place), start, length));
        }
    }
    let first = regions.iter().map(|region| region.1).min()?;
    regions.insert(0, (None, header, first.checked_sub(header)?));
    let mut made = log.get(..header)?.to_vec();
    made[COMPRESSION] = UNCOMPRESSED;
    for (place, start, length) in regions {
        let begins = made.len();
        let mut rest = log.get(start..start.checked_add(length)?)?;
        while !rest.is_empty() {
            let mut decoder = ZlibDecoder::new(rest);
            decoder.read_to_end(&mut made).ok()?;
            rest = &rest[decoder.total_in() as usize..];
        }
        if let Some(place) = place {
            let length = made.len() - begins;
            made[place..place + 8].copy_from_slice(&(begins as u64).to_le_bytes());
            made[place + 8..place + 16].copy_from_slice(&(length as u64).to_le_bytes());
        }
    }
    (made.len() <= BYTES_MAX).then_some(made)
}
