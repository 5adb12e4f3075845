//! Values of strategies' parameters, read with errors that name the parameter.

use iolab_vocab::{Nanos, Refusal, parse_bytes, parse_seconds};
use std::ops::RangeInclusive;

/// Parameters as written, in order.
pub(super) type Parameters = [(String, String)];

/// Bytes, as `4k` or `1m`.
pub(super) fn size(key: &str, value: &str) -> Result<u64, Refusal> {
    parse_bytes(value).map_err(|error| Refusal {
        message: format!("{key}: {error}"),
        hint: format!("for example {key}=1m"),
    })
}

/// Bytes as a user writes them, exactly.
pub(super) fn size_text(bytes: u64) -> String {
    let units = [(40, "t"), (30, "g"), (20, "m"), (10, "k")];
    let fits = |&&(bits, _): &&(u32, &str)| bytes > 0 && bytes.is_multiple_of(1 << bits);
    match units.iter().find(fits) {
        Some((bits, unit)) => format!("{}{unit}", bytes >> bits),
        None => bytes.to_string(),
    }
}

/// Refuses bytes outside of a range.
pub(super) fn in_range(key: &str, bytes: u64, range: RangeInclusive<u64>) -> Result<(), Refusal> {
    if range.contains(&bytes) {
        return Ok(());
    }
    Err(Refusal {
        message: format!("{key}: {bytes} bytes are out of range"),
        hint: format!("choose between {} and {} bytes", range.start(), range.end()),
    })
}

/// Bytes within a range.
pub(super) fn size_in(key: &str, value: &str, range: RangeInclusive<u64>) -> Result<u64, Refusal> {
    let bytes = size(key, value)?;
    in_range(key, bytes, range)?;
    Ok(bytes)
}

/// A duration below 30 years, as `5ms` or `2s`; without a unit it is of seconds.
pub(super) fn duration(key: &str, value: &str) -> Result<Nanos, Refusal> {
    let seconds = value.parse().ok().or_else(|| parse_seconds(value));
    match seconds.filter(|seconds| (0.0..1e9).contains(seconds)) {
        Some(seconds) => Ok(Nanos((seconds * 1e9).round() as u64)),
        None => Err(Refusal {
            message: format!("{key}: `{value}` is not a duration"),
            hint: format!("for example {key}=2s or {key}=5ms"),
        }),
    }
}

/// Yes or no.
pub(super) fn answer(key: &str, value: &str) -> Result<bool, Refusal> {
    match value {
        "yes" => Ok(true),
        "no" => Ok(false),
        _ => Err(Refusal {
            message: format!("{key}: `{value}` is neither yes nor no"),
            hint: format!("write {key}=yes or {key}=no"),
        }),
    }
}

/// That nobody outside of the run writes to the file is for the user to say, as `outsiders=none`.
pub(super) fn parse_outsiders(key: &str, value: &str) -> Result<(), Refusal> {
    match value {
        "none" => Ok(()),
        _ => Err(Refusal {
            message: format!("{key}: `{value}` is not known"),
            hint: "write outsiders=none if nobody outside of the run writes to these files".into(),
        }),
    }
}

/// For a parameter nobody knows.
pub(super) fn unknown(key: &str, known: &str) -> Refusal {
    Refusal { message: format!("no parameter `{key}`"), hint: format!("known are {known}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_written_as_they_are_read() {
        for (bytes, text) in
            [(0, "0"), (1023, "1023"), (65_536, "64k"), (3 << 20, "3m"), (1 << 40, "1t")]
        {
            assert_eq!(size_text(bytes), text);
            assert_eq!(size("size", text), Ok(bytes));
        }
    }

    #[test]
    fn durations_have_units_or_are_of_seconds() {
        assert_eq!(duration("age", "2"), Ok(Nanos(2_000_000_000)));
        assert_eq!(duration("age", "2s"), duration("age", "2"));
        assert_eq!(duration("age", "5ms"), Ok(Nanos(5_000_000)));
        for nonsense in ["", "5m", "-1s", "1e9", "soon", "NaN"] {
            let refused = duration("age", nonsense).unwrap_err();
            assert!(refused.message.contains(&format!("age: `{nonsense}`")), "{refused:?}");
        }
    }
}
