//! Sizes, rates and durations as a platform file writes them.

use iolab_vocab::{parse_bytes, parse_seconds};
use serde::de::{Error, Unexpected};
use serde::{Deserialize, Deserializer};

/// A number of bytes: `102400` or `"100k"` (powers of 1024).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Size(pub u64);

/// Bytes per second: `52428800` or `"50m"` (MiB/s).
#[derive(Clone, Copy, Debug, PartialEq, PartialOrd)]
pub struct Rate(pub f64);

/// A duration in seconds: `0.0002` or `"200us"` (s, ms, us, ns).
#[derive(Clone, Copy, Debug, Default, PartialEq, PartialOrd)]
pub struct Time(pub f64);

#[derive(Deserialize)]
#[serde(untagged)]
enum Written {
    Whole(i64),
    Real(f64),
    Text(String),
}

impl<'de> Deserialize<'de> for Size {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Size, D::Error> {
        match Written::deserialize(deserializer)? {
            Written::Whole(bytes) => u64::try_from(bytes).map(Size).map_err(|_| {
                D::Error::invalid_value(Unexpected::Signed(bytes), &"a size that is not negative")
            }),
            Written::Real(bytes) => {
                Err(D::Error::invalid_type(Unexpected::Float(bytes), &"a whole number of bytes"))
            }
            Written::Text(text) => parse_bytes(&text).map(Size).map_err(D::Error::custom),
        }
    }
}

impl<'de> Deserialize<'de> for Rate {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Rate, D::Error> {
        let rate = match Written::deserialize(deserializer)? {
            Written::Whole(bytes) => bytes as f64,
            Written::Real(bytes) => bytes,
            Written::Text(text) => {
                let bytes = text.trim().strip_suffix("/s").unwrap_or(&text);
                parse_bytes(bytes).map_err(D::Error::custom)? as f64
            }
        };
        if rate.is_finite() && rate > 0.0 {
            return Ok(Rate(rate));
        }
        Err(D::Error::invalid_value(Unexpected::Float(rate), &"a rate above 0 bytes per second"))
    }
}

impl<'de> Deserialize<'de> for Time {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Time, D::Error> {
        let seconds = match Written::deserialize(deserializer)? {
            Written::Whole(seconds) => seconds as f64,
            Written::Real(seconds) => seconds,
            Written::Text(text) => parse_seconds(&text).ok_or_else(|| {
                D::Error::custom(format!("`{text}` is not a duration; write 200us, 5ms or 1.5s"))
            })?,
        };
        if (0.0..1e9).contains(&seconds) {
            return Ok(Time(seconds));
        }
        Err(D::Error::invalid_value(Unexpected::Float(seconds), &"0 to 1e9 seconds"))
    }
}
