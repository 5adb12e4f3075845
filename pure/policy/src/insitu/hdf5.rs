//! Stages of the layer HDF5: with which properties a program's files are opened.
//!
//! A user who writes a property here wants it, so it stands in place of the program's own. Nothing is decided
//! when bytes move: HDF5 reads properties once, when it creates or opens a file. What they change is where
//! the library puts bytes and which calls it makes of them; what a program finds in the file stays.

pub use super::opened::{Account, Effect, Line};

use super::parameter::{Parameters, answer, size_in, size_text, unknown};
use iolab_vocab::Refusal;

/// Objects smaller than this lie anywhere, where a user says no `threshold`.
const THRESHOLD: u64 = 64 << 10;
/// What offsets and buffers of a file may sensibly be, at most.
const BYTES_MAX: u64 = 1 << 40;
/// Chunks of a cache are found by a hash: its table has a slot for so many bytes of the cache. HDF5 advises a hundred
/// slots per chunk; chunks are rarely below 400 KiB where somebody wants a larger cache.
const BYTES_PER_SLOT: u64 = 4 << 10;
/// HDF5's own.
const SLOTS_MIN: u64 = 521;
const SLOTS_MAX: u64 = 1_000_003;

/// One property of the list with which a file is opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Property {
    /// Objects of `threshold` bytes or more begin at multiples of `bytes` (`H5Pset_alignment`).
    Alignment {
        /// In bytes.
        bytes: u64,
        /// In bytes.
        threshold: u64,
    },
    /// The library takes room for metadata in blocks of so many bytes (`H5Pset_meta_block_size`).
    MetaBlock(u64),
    /// Bytes of the cache for chunks that each dataset gets which does not ask for its own (`H5Pset_cache`).
    ChunkCache(u64),
    /// Whether the ranks read and write metadata together (`H5Pset_all_coll_metadata_ops`,
    /// `H5Pset_coll_metadata_write`).
    CollectiveMetadata(bool),
}

impl Property {
    /// As a user writes it.
    pub fn text(self) -> String {
        match self {
            Property::Alignment { bytes, threshold } => {
                format!("alignment={},threshold={}", size_text(bytes), size_text(threshold))
            }
            Property::MetaBlock(bytes) => format!("meta-block={}", size_text(bytes)),
            Property::ChunkCache(bytes) => format!("chunk-cache={}", size_text(bytes)),
            Property::CollectiveMetadata(wanted) => {
                format!("coll-metadata={}", if wanted { "yes" } else { "no" })
            }
        }
    }
}

/// The properties of a stage `h5`, at least one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Properties {
    wanted: Vec<Property>,
}

impl Properties {
    /// Reads `alignment=1m,threshold=64k,meta-block=1m,chunk-cache=64m,coll-metadata=yes`, any of them.
    pub fn parse(parameters: &Parameters) -> Result<Properties, Refusal> {
        let (mut alignment, mut threshold, mut others) = (None, None, Vec::new());
        for (key, value) in parameters {
            match key.as_str() {
                "alignment" => alignment = Some(size_in(key, value, 1..=BYTES_MAX)?),
                "threshold" => threshold = Some(size_in(key, value, 0..=BYTES_MAX)?),
                "meta-block" => {
                    others.push(Property::MetaBlock(size_in(key, value, 1..=BYTES_MAX)?))
                }
                "chunk-cache" => {
                    others.push(Property::ChunkCache(size_in(key, value, 0..=BYTES_MAX)?))
                }
                "coll-metadata" => others.push(Property::CollectiveMetadata(answer(key, value)?)),
                _ => {
                    const KNOWN: &str = "alignment, threshold, meta-block, chunk-cache, coll-metadata, paths, exclude";
                    return Err(unknown(key, KNOWN));
                }
            }
        }
        let mut wanted = Vec::new();
        match (alignment, threshold) {
            (Some(bytes), threshold) => {
                let threshold = threshold.unwrap_or(THRESHOLD);
                wanted.push(Property::Alignment { bytes, threshold });
            }
            (None, Some(_)) => {
                return Err(Refusal {
                    message: "threshold says what is aligned, and there is no alignment".to_owned(),
                    hint: "for example h5:alignment=1m,threshold=64k".to_owned(),
                });
            }
            (None, None) => {}
        }
        wanted.append(&mut others);
        if wanted.is_empty() {
            return Err(Refusal {
                message: "no property is given".to_owned(),
                hint: "for example h5:alignment=1m,chunk-cache=64m".to_owned(),
            });
        }
        Ok(Properties { wanted })
    }

    /// Each of them.
    pub fn wanted(&self) -> &[Property] {
        &self.wanted
    }
}

/// Slots of the table of a cache for chunks of so many bytes: a prime number, as the hash wants it.
pub fn slots(cache_bytes: u64) -> u64 {
    let least = (cache_bytes / BYTES_PER_SLOT).clamp(SLOTS_MIN, SLOTS_MAX);
    let is_prime = |number: &u64| {
        (2..)
            .take_while(|divisor| divisor * divisor <= *number)
            .all(|it| !number.is_multiple_of(it))
    };
    (least..).find(is_prime).unwrap_or(SLOTS_MIN)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::insitu::StrategySpec;

    fn wanted(text: &str) -> Result<Vec<Property>, Refusal> {
        let properties = StrategySpec::parse(text)?.hdf5();
        Ok(properties.expect("a stage of HDF5").wanted().to_vec())
    }

    #[test]
    fn properties_are_read_in_any_order_and_written_as_they_are_read() {
        let text = "h5:coll-metadata=yes,threshold=4k,chunk-cache=64m,alignment=1m,paths=*.h5";
        let properties = [
            Property::Alignment { bytes: 1 << 20, threshold: 4096 },
            Property::CollectiveMetadata(true),
            Property::ChunkCache(64 << 20),
        ];
        assert_eq!(wanted(text).unwrap(), properties);
        let again: Vec<String> = properties.iter().map(|it| it.text()).collect();
        assert_eq!(wanted(&format!("h5:{}", again.join(","))).unwrap(), properties);
        let alone = wanted("h5:alignment=1m").unwrap();
        assert_eq!(alone, [Property::Alignment { bytes: 1 << 20, threshold: 64 << 10 }]);
    }

    #[test]
    fn what_is_no_property_is_refused_and_named() {
        for (text, offender) in [
            ("h5", "no property is given"),
            ("h5:paths=*.h5", "no property is given"),
            ("h5:threshold=64k", "no alignment"),
            ("h5:alignment=0", "alignment: 0 bytes"),
            ("h5:meta-block=-1", "meta-block"),
            ("h5:chunk-cache=2t", "chunk-cache"),
            ("h5:coll-metadata=perhaps", "`perhaps`"),
            ("h5:sieve=1m", "`sieve`"),
            ("h5:alignment=1m,alignment=2m", "given twice"),
        ] {
            let refused = wanted(text).unwrap_err();
            assert!(refused.message.contains(offender), "{text}: {refused}");
        }
    }

    #[test]
    fn tables_of_caches_have_a_prime_number_of_slots_within_bounds() {
        assert_eq!([0, 1 << 20].map(slots), [521, 521]);
        assert_eq!(slots(64 << 20), 16_411);
        assert_eq!(slots(1 << 40), 1_000_003);
    }
}
