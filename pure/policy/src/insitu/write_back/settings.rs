//! What a user says about write-back, and about align, which is write-back with edges.

use crate::insitu::parameter::{Parameters, duration, in_range, size, unknown};
use iolab_vocab::{Nanos, Refusal};

/// Parameters of write-back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Settings {
    /// Bytes held back per file at most.
    pub buffer_bytes: u64,
    /// Writes above this many bytes go straight through.
    pub largest_bytes: u64,
    /// Held bytes older than this are written out by the next call on the file.
    pub age: Option<Nanos>,
    /// No write below crosses a multiple of this many bytes.
    pub edge_bytes: Option<u64>,
}

impl Default for Settings {
    fn default() -> Settings {
        Settings { buffer_bytes: 1 << 20, largest_bytes: 16 << 10, age: None, edge_bytes: None }
    }
}

/// Each file of a program has a buffer, so one of more than this is a slip.
const BUFFERS: std::ops::RangeInclusive<u64> = 1..=1 << 30;
/// Four of them make a buffer.
const BLOCKS: std::ops::RangeInclusive<u64> = 8..=1 << 28;
/// Writes above are not small.
const LARGEST: std::ops::RangeInclusive<u64> = 0..=1 << 30;

impl Settings {
    /// Reads `block=1m,buffer=4m,age=2s`, of align.
    pub fn parse_align(parameters: &Parameters) -> Result<Settings, Refusal> {
        let (mut block_bytes, mut buffer_bytes, mut age) = (1 << 20, None, None);
        for (key, value) in parameters {
            match (key.as_str(), value.as_str()) {
                ("block", "auto") => {
                    return Err(Refusal {
                        message: "block: `auto` needs storage to look at, and there is none here"
                            .to_owned(),
                        hint: "give its stripe or block size, for example block=1m".to_owned(),
                    });
                }
                ("block", _) => block_bytes = size(key, value)?,
                ("buffer", _) => buffer_bytes = Some(size(key, value)?),
                ("age", _) => age = Some(duration(key, value)?),
                _ => return Err(unknown(key, "block, buffer, age, paths, exclude")),
            }
        }
        in_range("block", block_bytes, BLOCKS)?;
        let buffer_bytes = buffer_bytes.unwrap_or(4 * block_bytes);
        in_range("buffer", buffer_bytes, 2 * block_bytes..=*BUFFERS.end())?;
        let edge_bytes = Some(block_bytes);
        Ok(Settings { buffer_bytes, largest_bytes: buffer_bytes, age, edge_bytes })
    }

    /// Reads `buffer=1m,largest=16k,age=2s`.
    pub fn parse(parameters: &Parameters) -> Result<Settings, Refusal> {
        let mut settings = Settings::default();
        for (key, value) in parameters {
            match key.as_str() {
                "buffer" => settings.buffer_bytes = size(key, value)?,
                "largest" => settings.largest_bytes = size(key, value)?,
                "age" => settings.age = Some(duration(key, value)?),
                _ => return Err(unknown(key, "buffer, largest, age, paths, exclude")),
            }
        }
        if !BUFFERS.contains(&settings.buffer_bytes) {
            return Err(Refusal {
                message: format!(
                    "buffer: {} bytes per file are out of range",
                    settings.buffer_bytes
                ),
                hint: "choose between 1 byte and 1g; 1m is a good start".into(),
            });
        }
        if !LARGEST.contains(&settings.largest_bytes) {
            return Err(Refusal {
                message: format!("largest: {} bytes are out of range", settings.largest_bytes),
                hint: "choose up to 1g; 16k is a good start".into(),
            });
        }
        Ok(settings)
    }
}
