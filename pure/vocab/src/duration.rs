//! Durations as people write them: `200us`, `5ms`, `1.5s`.

/// Reads a duration in seconds: a number, then s, ms, us or ns. Nothing for anything else.
///
/// ```
/// use iolab_vocab::parse_seconds;
/// assert_eq!(parse_seconds("200us"), Some(0.0002));
/// assert_eq!(parse_seconds("1e-3s"), Some(0.001));
/// assert_eq!(parse_seconds("7"), None);
/// ```
pub fn parse_seconds(text: &str) -> Option<f64> {
    let text = text.trim();
    let unit_at = text.find(|c: char| c.is_ascii_alphabetic() && c != 'e').unwrap_or(text.len());
    let number: f64 = text[..unit_at].trim().parse().ok()?;
    // Divided, not multiplied by 1e-6: 200us must be the same double as 0.0002.
    match &text[unit_at..] {
        "s" => Some(number),
        "ms" => Some(number / 1e3),
        "us" => Some(number / 1e6),
        "ns" => Some(number / 1e9),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_the_doubles_one_would_write() {
        assert_eq!(parse_seconds("200us"), Some(0.0002));
        assert_eq!(parse_seconds("1 ms"), Some(0.001));
        assert_eq!(parse_seconds("1e-3s"), Some(0.001));
        assert_eq!(parse_seconds("30ns"), Some(30e-9));
        assert_eq!(parse_seconds("7"), None);
        assert_eq!(parse_seconds("fast"), None);
    }
}
