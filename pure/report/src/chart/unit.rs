//! Units: how a value is written.

use iolab_vocab::format_bytes;

/// How values are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// A bare number; thousands become k, M, G.
    Plain,
    /// Seconds, written as ns, µs, ms or s.
    Seconds,
    /// Bytes, written with binary prefixes.
    Bytes,
    /// Bytes per second, with binary prefixes.
    BytesPerSecond,
    /// A share: 0.5 is written 50 %.
    Percent,
}

impl Unit {
    /// A value as people read it.
    ///
    /// ```
    /// use iolab_report::chart::Unit;
    /// assert_eq!(Unit::Seconds.format(0.00125), "1.25 ms");
    /// assert_eq!(Unit::Bytes.format(65536.0), "64 KiB");
    /// assert_eq!(Unit::Plain.format(12000.0), "12k");
    /// ```
    pub fn format(self, value: f64) -> String {
        match self {
            Unit::Plain => scaled(value, &[(1e9, "G"), (1e6, "M"), (1e3, "k"), (1.0, "")]),
            Unit::Seconds => {
                scaled(value, &[(1.0, " s"), (1e-3, " ms"), (1e-6, " µs"), (1e-9, " ns")])
            }
            Unit::Bytes => format_bytes(value.max(0.0).round() as u64),
            Unit::BytesPerSecond => format!("{}/s", format_bytes(value.max(0.0).round() as u64)),
            Unit::Percent => format!("{} %", digits(value * 100.0)),
        }
    }

    /// Whether round values are powers of two.
    pub(super) fn is_binary(self) -> bool {
        matches!(self, Unit::Bytes | Unit::BytesPerSecond)
    }
}

/// The value in the largest unit it reaches, or the smallest one.
fn scaled(value: f64, units: &[(f64, &str)]) -> String {
    if value == 0.0 {
        return "0".to_owned();
    }
    let reached = units.iter().find(|(size, _)| value.abs() >= size * 0.999_999);
    let &(size, name) = reached.or(units.last()).unwrap_or(&(1.0, ""));
    format!("{}{name}", digits(value / size))
}

/// Three significant digits, no trailing zeros.
fn digits(value: f64) -> String {
    let decimals = match value.abs() {
        v if v >= 100.0 => 0,
        v if v >= 10.0 => 1,
        v if v >= 1.0 => 2,
        _ => 3,
    };
    let text = format!("{value:.decimals$}");
    match text.contains('.') {
        true => text.trim_end_matches('0').trim_end_matches('.').to_owned(),
        false => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn small_durations_are_written_in_small_units() {
        assert_eq!(Unit::Seconds.format(4.2e-7), "420 ns");
        assert_eq!(Unit::Seconds.format(0.0), "0");
        assert_eq!(Unit::Percent.format(0.123), "12.3 %");
    }

    #[test]
    fn three_digits_are_written_wherever_the_point_is() {
        let written = [0.012_345, 0.123_45, 1.2345, 12.345, 123.45, 12_345.0, 1.2e7, 3e9];
        let wanted = ["0.012", "0.123", "1.23", "12.3", "123", "12.3k", "12M", "3G"];
        assert_eq!(written.map(|value| Unit::Plain.format(value)), wanted);
        assert_eq!(Unit::Plain.format(-1500.0), "-1.5k");
        assert_eq!(Unit::BytesPerSecond.format(1048576.0), "1 MiB/s");
    }
}
