//! What a user says about `collect`.

use crate::insitu::parameter::{Parameters, duration, in_range, size, unknown};
use iolab_vocab::{Nanos, Refusal, Seed};

/// Which writes are held.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Holds {
    /// None.
    Nothing,
    /// All, where writes that pass take longer than that, beside what moving their bytes takes.
    IfSlower(Nanos),
    /// Some, by chance.
    ByChance(Seed),
}

/// Parameters of `collect`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Settings {
    /// Which writes are held.
    pub holds: Holds,
    /// Bytes that a rank holds of a file, at most.
    pub buffer_bytes: u64,
    /// Runs of that many bytes, on average, go out as they are.
    pub independent_bytes: u64,
}

/// Each open file of each rank has a buffer, so one of more than this is a slip; one of less holds hardly a call.
const BUFFERS: std::ops::RangeInclusive<u64> = 1 << 12..=1 << 30;
/// A run of no byte is none.
const RUNS: std::ops::RangeInclusive<u64> = 1..=1 << 30;

impl Default for Settings {
    /// Memory answers a call below 2 µs and the nearest network storage above 50 µs; between them there is nothing
    /// to lose. Runs of 1 MiB gain nothing by being merged (benchmarks/mpiio-layer).
    fn default() -> Settings {
        let holds = Holds::IfSlower(Nanos(20_000));
        Settings { holds, buffer_bytes: 16 << 20, independent_bytes: 1 << 20 }
    }
}

impl Settings {
    /// Reads `buffer=16m,independent=1m,slow=20us,when=slow|never`.
    pub fn parse(parameters: &Parameters) -> Result<Settings, Refusal> {
        let (mut settings, mut is_never) = (Settings::default(), false);
        for (key, value) in parameters {
            match (key.as_str(), value.as_str()) {
                ("buffer", _) => settings.buffer_bytes = size(key, value)?,
                ("independent", _) => settings.independent_bytes = size(key, value)?,
                ("slow", _) => settings.holds = Holds::IfSlower(duration(key, value)?),
                ("when", "never") => is_never = true,
                ("when", "slow") => is_never = false,
                ("when", _) => {
                    return Err(Refusal {
                        message: format!("when: `{value}` is neither `slow` nor `never`"),
                        hint: "for example when=slow; slow=0 holds always".to_owned(),
                    });
                }
                _ => {
                    let known = "buffer, independent, slow, when, paths, exclude";
                    return Err(unknown(key, known));
                }
            }
        }
        if is_never {
            settings.holds = Holds::Nothing;
        }
        settings.in_range()
    }

    /// Reads `seed=1,buffer=64k`, of the cruel member.
    pub fn parse_cruel(parameters: &Parameters) -> Result<Settings, Refusal> {
        let mut settings = Settings { buffer_bytes: 1 << 16, ..Settings::default() };
        let mut seed = Seed(1);
        for (key, value) in parameters {
            match (key.as_str(), value.parse()) {
                ("buffer", _) => settings.buffer_bytes = size(key, value)?,
                ("seed", Ok(number)) => seed = Seed(number),
                ("seed", Err(_)) => {
                    return Err(Refusal {
                        message: format!("seed: `{value}` is not a number"),
                        hint: "for example seed=1".to_owned(),
                    });
                }
                _ => return Err(unknown(key, "seed, buffer, paths, exclude")),
            }
        }
        Settings { holds: Holds::ByChance(seed), ..settings }.in_range()
    }

    fn in_range(self) -> Result<Settings, Refusal> {
        in_range("buffer", self.buffer_bytes, BUFFERS)?;
        in_range("independent", self.independent_bytes, RUNS)?;
        Ok(self)
    }
}
