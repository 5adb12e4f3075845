//! What a user says about write-back; about align, which is write-back with edges; about aggregate and
//! single-writer, which do not wait until a call needs it before held bytes go out.

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
    /// What sends held bytes out before a call needs it.
    pub sends: Sends,
}

/// What sends held bytes out before a call needs it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sends {
    /// Nothing does. Descriptions opened with append do not join.
    Nothing,
    /// A block that has become full, between two edges.
    FullBlocks,
    /// That nothing else is on its way: work between calls ([`crate::insitu::Strategy::begin`]).
    Leisure,
}

impl Default for Settings {
    fn default() -> Settings {
        Settings {
            buffer_bytes: 1 << 20,
            largest_bytes: 16 << 10,
            age: None,
            edge_bytes: None,
            sends: Sends::Nothing,
        }
    }
}

/// Each file of a program has a buffer, so one of more than this is a slip.
const BUFFERS: std::ops::RangeInclusive<u64> = 1..=1 << 30;
/// Four of them make a buffer.
const BLOCKS: std::ops::RangeInclusive<u64> = 8..=1 << 28;
/// Writes above are not small.
const LARGEST: std::ops::RangeInclusive<u64> = 0..=1 << 30;
/// What several processes write to one file is held by one buffer.
const SHARED_BUFFER_BYTES: u64 = 64 << 20;
/// What goes out in one piece, where nothing else bounds it: enough that a call's latency is small beside its
/// bytes on the slowest storage that `throttle` is tried with (1 ms, 100 MB/s), and no more than a call
/// may wait for.
const PIECE_BYTES: u64 = 4 << 20;

impl Settings {
    /// Reads `block=1m,buffer=4m,age=2s`, of align.
    pub fn parse_align(parameters: &Parameters) -> Result<Settings, Refusal> {
        Settings::parse_blocks(parameters, |block_bytes| 4 * block_bytes)
    }

    /// Reads `block=1m,buffer=64m,age=2s`, of aggregate.
    pub fn parse_aggregate(parameters: &Parameters) -> Result<Settings, Refusal> {
        let usual = |block_bytes: u64| SHARED_BUFFER_BYTES.max(2 * block_bytes);
        let settings = Settings::parse_blocks(parameters, usual)?;
        Ok(Settings { sends: Sends::FullBlocks, ..settings })
    }

    /// Reads `buffer=64m`, of single-writer. How many writers there are is the driver's.
    pub fn parse_single_writer(parameters: &Parameters) -> Result<Settings, Refusal> {
        let mut buffer_bytes = SHARED_BUFFER_BYTES;
        for (key, value) in parameters {
            match key.as_str() {
                "buffer" => buffer_bytes = size(key, value)?,
                WRITERS => _ = writers(value)?,
                _ => return Err(unknown(key, "writers, buffer, paths, exclude")),
            }
        }
        in_range("buffer", buffer_bytes, BUFFERS)?;
        let sends = Sends::Leisure;
        Ok(Settings { buffer_bytes, largest_bytes: buffer_bytes, sends, ..Settings::default() })
    }

    /// The most that goes out in one piece.
    pub(super) fn piece_bytes(&self) -> u64 {
        let piece_bytes = match self.sends {
            Sends::Leisure => PIECE_BYTES,
            Sends::Nothing | Sends::FullBlocks => u64::MAX,
        };
        self.buffer_bytes.min(piece_bytes).min(self.edge_bytes.unwrap_or(u64::MAX))
    }

    fn parse_blocks(
        parameters: &Parameters,
        usual_buffer_bytes: impl Fn(u64) -> u64,
    ) -> Result<Settings, Refusal> {
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
        let buffer_bytes = buffer_bytes.unwrap_or_else(|| usual_buffer_bytes(block_bytes));
        in_range("buffer", buffer_bytes, 2 * block_bytes..=*BUFFERS.end())?;
        let edge_bytes = Some(block_bytes);
        let sends = Sends::Nothing;
        Ok(Settings { buffer_bytes, largest_bytes: buffer_bytes, age, edge_bytes, sends })
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

/// The parameter that says how many threads of an agent write.
pub(in crate::insitu) const WRITERS: &str = "writers";
/// More of them are not one writer any more.
const MOST_WRITERS: usize = 64;

/// How many threads of an agent write at a time.
pub(in crate::insitu) fn writers(value: &str) -> Result<usize, Refusal> {
    match value.parse() {
        Ok(writers) if (1..=MOST_WRITERS).contains(&writers) => Ok(writers),
        _ => Err(Refusal {
            message: format!("{WRITERS}: `{value}` is no number of threads"),
            hint: format!("choose between 1 and {MOST_WRITERS}; 1 is a good start"),
        }),
    }
}
