//! Sizes as people write them: `4k`, `1m`, `2GiB`. Suffixes are binary, as in the field's tools.

use std::fmt;

/// Why a size could not be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SizeError {
    /// What was written.
    pub text: String,
}

impl fmt::Display for SizeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{}` is not a size; write bytes or 4k, 1m, 2g, 1t (powers of 1024)", self.text)
    }
}

impl std::error::Error for SizeError {}

/// Reads a size: digits, then optionally k, m, g or t (any case), then optionally `b` or `ib`.
///
/// ```
/// use iolab_vocab::parse_bytes;
/// assert_eq!(parse_bytes("4k"), Ok(4096));
/// assert_eq!(parse_bytes("1MiB"), Ok(1 << 20));
/// assert!(parse_bytes("-1").is_err());
/// ```
pub fn parse_bytes(text: &str) -> Result<u64, SizeError> {
    let error = || SizeError { text: text.to_owned() };
    let trimmed = text.trim();
    let digits = trimmed.find(|c: char| !c.is_ascii_digit()).unwrap_or(trimmed.len());
    let number: u64 = trimmed[..digits].parse().map_err(|_| error())?;
    let factor: u64 = match trimmed[digits..].trim().to_ascii_lowercase().as_str() {
        "" | "b" => 1,
        "k" | "kb" | "kib" => 1 << 10,
        "m" | "mb" | "mib" => 1 << 20,
        "g" | "gb" | "gib" => 1 << 30,
        "t" | "tb" | "tib" => 1 << 40,
        _ => return Err(error()),
    };
    number.checked_mul(factor).ok_or_else(error)
}

/// Writes a size for people: exact bytes below 1 KiB, else three significant digits.
///
/// ```
/// use iolab_vocab::format_bytes;
/// assert_eq!(format_bytes(512), "512 B");
/// assert_eq!(format_bytes(1 << 20), "1 MiB");
/// assert_eq!(format_bytes(1_500_000), "1.43 MiB");
/// ```
pub fn format_bytes(bytes: u64) -> String {
    const UNITS: [&str; 5] = ["B", "KiB", "MiB", "GiB", "TiB"];
    let mut value = bytes as f64;
    let mut unit = 0;
    // What would be rounded up to the next unit, or to one digit more, is told as that.
    while value >= if unit == 0 { 1024.0 } else { 1023.5 } && unit + 1 < UNITS.len() {
        value /= 1024.0;
        unit += 1;
    }
    let digits = match value {
        _ if value.fract() == 0.0 => 0,
        v if v < 9.995 => 2,
        v if v < 99.95 => 1,
        _ => 0,
    };
    format!("{value:.digits$} {}", UNITS[unit])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_size_that_overflows_or_has_an_unknown_suffix_is_refused() {
        for text in ["", "k", "12q", "1.5m", "99999999999t", "1 2"] {
            let error = parse_bytes(text).unwrap_err();
            assert!(error.to_string().contains(text), "{error}");
        }
    }

    #[test]
    fn every_unit_has_its_factor_however_it_is_written() {
        let sizes = [("7", 7), ("7b", 7), ("3k", 3 << 10), ("3 KB", 3 << 10), ("3kib", 3 << 10)];
        let large = [("2m", 2 << 20), ("2Mb", 2 << 20), ("5g", 5 << 30), ("5GiB", 5 << 30)];
        let largest = [("6t", 6 << 40), ("6tb", 6 << 40), (" 6tib ", 6 << 40)];
        for (text, bytes) in sizes.into_iter().chain(large).chain(largest) {
            assert_eq!(parse_bytes(text), Ok(bytes), "{text}");
        }
    }

    #[test]
    fn sizes_are_told_in_three_digits_of_the_unit_that_fits() {
        let told = [
            (0, "0 B"),
            (1023, "1023 B"),
            (1024, "1 KiB"),
            (1500, "1.46 KiB"),
            (10_000, "9.77 KiB"),
            (10 << 10, "10 KiB"),
            (10_235, "10.0 KiB"),
            (10_300, "10.1 KiB"),
            (102_350, "100 KiB"),
            (102_600, "100 KiB"),
            (150_000, "146 KiB"),
            ((1 << 20) - 100, "1.00 MiB"),
            (3 << 30, "3 GiB"),
            (5 << 40, "5 TiB"),
            (5 << 50, "5120 TiB"),
        ];
        for (bytes, text) in told {
            assert_eq!(format_bytes(bytes), text, "{bytes}");
        }
    }
}
