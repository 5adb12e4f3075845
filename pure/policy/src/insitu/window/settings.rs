//! What a user says about a window of a file in memory.

use crate::insitu::parameter::{Parameters, in_range, parse_outsiders, size, unknown};
use iolab_vocab::Refusal;
use std::ops::RangeInclusive;

const WINDOWS: RangeInclusive<u64> = 64..=1 << 30;

/// Which streams are answered from a window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::insitu) enum Kinds {
    /// Without holes.
    Contiguous,
    /// With holes of at most this many bytes.
    Strided { hole_bytes: u64 },
}

/// Parameters of a window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::insitu) struct Settings {
    /// Bytes of a file in memory at most.
    pub(in crate::insitu) window_bytes: u64,
    /// Reads above this many bytes pass.
    pub(in crate::insitu) largest_bytes: u64,
    pub(in crate::insitu) kinds: Kinds,
}

impl Settings {
    /// Reads `window=256k,largest=16k,outsiders=none`, and `hole=2k` for strided streams.
    pub(in crate::insitu) fn parse(
        what: &str,
        kinds: Kinds,
        parameters: &Parameters,
    ) -> Result<Settings, Refusal> {
        let mut settings = Settings { window_bytes: 256 << 10, largest_bytes: 16 << 10, kinds };
        let mut is_alone = false;
        for (key, value) in parameters {
            match (key.as_str(), &mut settings.kinds) {
                ("window", _) => settings.window_bytes = size(key, value)?,
                ("largest", _) => settings.largest_bytes = size(key, value)?,
                ("outsiders", _) => {
                    parse_outsiders(key, value)?;
                    is_alone = true;
                }
                ("hole", Kinds::Strided { hole_bytes }) => *hole_bytes = size(key, value)?,
                (_, Kinds::Strided { .. }) => {
                    return Err(unknown(key, "hole, window, largest, outsiders, paths, exclude"));
                }
                _ => return Err(unknown(key, "via, window, largest, outsiders, paths, exclude")),
            }
        }
        in_range("window", settings.window_bytes, WINDOWS)?;
        in_range("largest", settings.largest_bytes, 1..=settings.window_bytes)?;
        if let Kinds::Strided { hole_bytes } = settings.kinds {
            in_range("hole", hole_bytes, 1..=settings.window_bytes / 2)?;
        }
        if !is_alone {
            return Err(Refusal {
                message: format!(
                    "{what} answers from memory, and a process outside of the run may have written \
                     to the file meanwhile"
                ),
                hint: "add outsiders=none if no such process writes to these files".to_owned(),
            });
        }
        Ok(settings)
    }
}
