//! Stages of the layer NetCDF: what a program's files of NetCDF and PnetCDF get that it did not ask for.
//!
//! As with HDF5, a user who writes a property wants it, and nothing is decided when bytes move: NetCDF reads them when a
//! file is created or opened and when definitions end. What they change is where bytes lie and how often they move;
//! what a program reads of what it has written stays.

pub use super::opened::{Account, Effect, Line};

use super::parameter::{Parameters, answer, size_in, size_text, unknown};
use iolab_vocab::Refusal;

/// What a cache may sensibly be, at most.
const CACHE_MAX: u64 = 1 << 40;
/// What room in a file may sensibly be, at most.
const ROOM_MAX: u64 = 1 << 30;

/// The parameter that leaves elements undefined which a program has not written.
pub const NO_FILL: &str = "nofill";

/// One property of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Property {
    /// Bytes of the cache for chunks that each variable of NetCDF-4 gets which does not ask for its own
    /// (`nc_set_chunk_cache`).
    ChunkCache(u64),
    /// Bytes left free behind the header of a classic file when its definitions end, so that later ones move no data
    /// (`h_minfree` of `nc__enddef` and `ncmpi__enddef`).
    HeaderPad(u64),
    /// Whether new variables are left without the values that stand for elements nobody has written (`nc_set_fill`).
    NoFill(bool),
}

impl Property {
    /// As a user writes it.
    pub fn text(self) -> String {
        match self {
            Property::ChunkCache(bytes) => format!("chunk-cache={}", size_text(bytes)),
            Property::HeaderPad(bytes) => format!("header-pad={}", size_text(bytes)),
            Property::NoFill(wanted) => format!("{NO_FILL}={}", if wanted { "yes" } else { "no" }),
        }
    }
}

/// The properties of a stage `nc`, at least one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Properties {
    wanted: Vec<Property>,
}

impl Properties {
    /// Reads `chunk-cache=64m,header-pad=64k,nofill=yes`, any of them.
    pub fn parse(parameters: &Parameters) -> Result<Properties, Refusal> {
        let mut wanted = Vec::new();
        for (key, value) in parameters {
            wanted.push(match key.as_str() {
                "chunk-cache" => Property::ChunkCache(size_in(key, value, 0..=CACHE_MAX)?),
                "header-pad" => Property::HeaderPad(size_in(key, value, 1..=ROOM_MAX)?),
                NO_FILL => Property::NoFill(answer(key, value)?),
                _ => return Err(unknown(key, "chunk-cache, header-pad, nofill, paths, exclude")),
            });
        }
        if wanted.is_empty() {
            return Err(Refusal {
                message: "no property is given".to_owned(),
                hint: "for example nc:chunk-cache=64m,header-pad=64k".to_owned(),
            });
        }
        Ok(Properties { wanted })
    }

    /// Each of them.
    pub fn wanted(&self) -> &[Property] {
        &self.wanted
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::insitu::StrategySpec;
    use crate::insitu::stacking::{self, Consent, Setting};

    fn wanted(text: &str) -> Result<Vec<Property>, Refusal> {
        let properties = StrategySpec::parse(text)?.netcdf();
        Ok(properties.expect("a stage of NetCDF").wanted().to_vec())
    }

    #[test]
    fn properties_are_read_in_any_order_and_written_as_they_are_read() {
        let text = "nc:nofill=yes,header-pad=64k,chunk-cache=64m,paths=*.nc";
        let properties =
            [Property::NoFill(true), Property::HeaderPad(64 << 10), Property::ChunkCache(64 << 20)];
        assert_eq!(wanted(text).unwrap(), properties);
        let again: Vec<String> = properties.iter().map(|it| it.text()).collect();
        assert_eq!(wanted(&format!("nc:{}", again.join(","))).unwrap(), properties);
    }

    #[test]
    fn what_is_no_property_is_refused_and_named() {
        for (text, offender) in [
            ("nc", "no property is given"),
            ("nc:paths=*.nc", "no property is given"),
            ("nc:header-pad=0", "header-pad: 0 bytes"),
            ("nc:chunk-cache=2t", "chunk-cache"),
            ("nc:header-pad=2g", "header-pad"),
            ("nc:nofill=perhaps", "`perhaps`"),
            ("nc:alignment=1m", "`alignment`"),
            ("nc:nofill=yes,nofill=no", "given twice"),
        ] {
            let refused = wanted(text).unwrap_err();
            assert!(refused.message.contains(offender), "{text}: {refused}");
        }
    }

    #[test]
    fn only_what_leaves_elements_undefined_has_to_be_asked_for() {
        let checked = |text: &str, words: &[&str]| {
            let words: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
            let specs = StrategySpec::parse_all(text).unwrap();
            stacking::check(&specs, Setting::Loaded, Consent::of(&words, false, false).unwrap())
        };
        assert!(checked("nc:chunk-cache=64m,header-pad=64k", &[]).is_ok());
        assert!(checked("nc:nofill=no", &[]).is_ok());
        let refused = checked("nc:nofill=yes,paths=*.nc", &[]).unwrap_err();
        assert!(refused.hint.contains("--allow undefined-bytes"), "{refused}");
        let refused = checked("nc:nofill=yes", &["undefined-bytes"]).unwrap_err();
        assert!(refused.hint.contains("paths="), "{refused}");
        assert!(checked("nc:nofill=yes,paths=*.nc", &["undefined-bytes"]).is_ok());
    }
}
