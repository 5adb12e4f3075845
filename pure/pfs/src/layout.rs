//! How a file is partitioned into subfiles, and which server has which.
//!
//! Subfile k of n has the stripes k, k + n, k + 2n, … of the file, one behind the other; it lies on server
//! (start + k) mod the number of servers.

use crate::plant::{Plant, is_planted};
use iolab_pattern::{Nest, Node};
use iolab_vocab::{Extent, Refusal, format_bytes, parse_bytes};
use std::fmt;

/// The smallest stripe: what an explored instance has.
pub const UNIT_BYTES_MIN: u64 = 16;
/// The largest stripe.
pub const UNIT_BYTES_MAX: u64 = 1 << 30;
/// The most subfiles of a file.
pub const SUBFILES_MAX: u32 = 4096;
/// The stripe that is taken if nobody asks for another.
const UNIT_BYTES: u64 = 256 << 10;

/// How a file is striped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Layout {
    unit_bytes: u64,
    subfiles: u32,
    start: u32,
}

impl Layout {
    /// `subfiles` subfiles with stripes of `unit_bytes`, the first of them on server `start`.
    pub fn striped(unit_bytes: u64, subfiles: u32, start: u32) -> Result<Layout, Refusal> {
        if !(UNIT_BYTES_MIN..=UNIT_BYTES_MAX).contains(&unit_bytes) {
            let range = format!("{UNIT_BYTES_MIN} and {}", format_bytes(UNIT_BYTES_MAX));
            return Refusal::refuse(
                format!("a stripe of {unit_bytes} bytes"),
                format!("give the stripe unit between {range}"),
            );
        }
        if !(1..=SUBFILES_MAX).contains(&subfiles) {
            return Refusal::refuse(
                format!("a file of {subfiles} subfiles"),
                format!("give a count between 1 and {SUBFILES_MAX}"),
            );
        }
        Ok(Layout { unit_bytes, subfiles, start })
    }

    /// What is taken where nobody asks for anything else: stripes of 256 KiB over all servers.
    pub fn usual(servers: u32) -> Layout {
        Layout { unit_bytes: UNIT_BYTES, subfiles: servers.clamp(1, SUBFILES_MAX), start: 0 }
    }

    /// Reads `stripe:unit=256k,count=4`, where either may be left out, or `one`; of so many servers.
    pub fn parse(text: &str, servers: u32) -> Result<Layout, Refusal> {
        let way_out = "write stripe:unit=SIZE,count=N, or one";
        let wrong = |what: &str| Refusal::new(format!("layout `{text}`: {what}"), way_out);
        let usual = Layout::usual(servers);
        let (kind, settings) = text.split_once(':').unwrap_or((text, ""));
        let (mut unit_bytes, mut subfiles) = (usual.unit_bytes, usual.subfiles);
        match kind {
            "one" => subfiles = 1,
            "stripe" => {}
            _ => return Err(wrong("no such kind")),
        }
        for setting in settings.split(',').filter(|setting| !setting.is_empty()) {
            match setting.split_once('=') {
                Some(("unit", size)) => {
                    unit_bytes = parse_bytes(size).map_err(|why| wrong(&why.to_string()))?;
                }
                Some(("count", count)) if kind == "stripe" => {
                    subfiles = count.parse().map_err(|_| wrong("count is no number"))?;
                }
                _ => return Err(wrong(&format!("`{setting}` is no setting of it"))),
            }
        }
        Layout::striped(unit_bytes, subfiles, 0)
    }

    /// The same on other servers: the first subfile on server `start`.
    pub fn starting_at(self, start: u32) -> Layout {
        Layout { start, ..self }
    }

    /// The same stripes over so many subfiles.
    pub(crate) fn with_subfiles(self, count: u32) -> Layout {
        Layout { subfiles: count.clamp(1, SUBFILES_MAX), ..self }
    }

    /// Bytes of a stripe.
    pub fn unit_bytes(self) -> u64 {
        self.unit_bytes
    }

    /// How many subfiles there are.
    pub fn subfiles(self) -> u32 {
        self.subfiles
    }

    /// The server of subfile 0.
    pub fn start(self) -> u32 {
        self.start
    }

    /// The server of a subfile, of so many.
    pub fn server_of(self, subfile: u32, servers: u32) -> u32 {
        ((u64::from(self.start) + u64::from(subfile)) % u64::from(servers)) as u32
    }

    /// The subfile that has byte `x` of the file.
    pub fn subfile_of(self, x: u64) -> u32 {
        (x / self.unit_bytes % u64::from(self.subfiles)) as u32
    }

    /// MAP: where byte `x` of the file lies in the subfile that has it.
    pub fn place_of(self, x: u64) -> u64 {
        x / (self.unit_bytes * u64::from(self.subfiles)) * self.unit_bytes + x % self.unit_bytes
    }

    /// MAP⁻¹: which byte of the file byte `y` of a subfile is; `None` beyond all files.
    pub fn byte_at(self, subfile: u32, y: u64) -> Option<u64> {
        let row = (y / self.unit_bytes).checked_mul(u64::from(self.subfiles))?;
        let stripe = row.checked_add(u64::from(subfile))?;
        stripe.checked_mul(self.unit_bytes)?.checked_add(y % self.unit_bytes)
    }

    /// How many bytes of a subfile lie before byte `x` of the file.
    pub fn bytes_below(self, subfile: u32, x: u64) -> u64 {
        let tile = self.unit_bytes * u64::from(self.subfiles);
        let within = (x % tile).saturating_sub(u64::from(subfile) * self.unit_bytes);
        let is_cut = 0 < within && within < self.unit_bytes;
        let short = u64::from(is_planted(Plant::LastStripeShort) && is_cut);
        x / tile * self.unit_bytes + within.min(self.unit_bytes) - short
    }

    /// How long a file is at least whose subfile has so many bytes.
    pub fn file_bytes(self, subfile: u32, bytes: u64) -> u64 {
        match bytes.checked_sub(1) {
            None => 0,
            Some(last) => self.byte_at(subfile, last).map_or(u64::MAX, |x| x + 1),
        }
    }

    /// The stripe that has byte `x` of the file.
    pub(crate) fn stripe_at(self, x: u64) -> Extent {
        Extent::new(x - x % self.unit_bytes, self.unit_bytes)
    }

    /// The bytes of a subfile, as a set in the file.
    pub fn subfile(self, subfile: u32) -> Nest {
        let unit = Node::bytes(self.unit_bytes).expect("a unit is in range");
        let tile = self.unit_bytes * u64::from(self.subfiles);
        Nest::new(u64::from(subfile) * self.unit_bytes, tile, unit).expect("a tile is in range")
    }
}

/// As [`Layout::parse`] reads it; where it starts is the file's affair.
impl fmt::Display for Layout {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "stripe:unit={},count={}", format_bytes(self.unit_bytes), self.subfiles)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn mappings_are_inverse_and_cover_the_file_once(
            unit in 16u64..100, subfiles in 1u32..9, x in 0u64..100_000,
        ) {
            let layout = Layout::striped(unit, subfiles, 0).unwrap();
            let k = layout.subfile_of(x);
            prop_assert_eq!(layout.byte_at(k, layout.place_of(x)), Some(x));
            prop_assert_eq!(layout.subfile(k).rank(x), Some(layout.place_of(x)));
            prop_assert_eq!(layout.subfile(k).at(layout.place_of(x)), Some(x));
            let below: u64 = (0..subfiles).map(|k| layout.bytes_below(k, x)).sum();
            prop_assert_eq!(below, x);
            prop_assert_eq!(layout.file_bytes(k, layout.place_of(x) + 1), x + 1);
        }
    }

    #[test]
    fn texts_are_read_and_the_wrong_ones_named() {
        let layout = Layout::parse("stripe:unit=64k,count=3", 8).unwrap();
        assert_eq!((layout.unit_bytes(), layout.subfiles()), (65536, 3));
        assert_eq!(Layout::parse(&layout.to_string(), 8), Ok(layout));
        assert_eq!(Layout::parse("stripe", 4).unwrap(), Layout::usual(4));
        assert_eq!(Layout::parse("one", 4).unwrap().subfiles(), 1);
        for wrong in ["", "strip", "one:count=2", "stripe:unit=0", "stripe:count=5000", "stripe:u"]
        {
            assert!(Layout::parse(wrong, 4).is_err(), "{wrong}");
        }
    }
}
