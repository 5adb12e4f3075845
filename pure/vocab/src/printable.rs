//! Names that others have given, for a line of text on a terminal.

use std::borrow::Cow;

/// The text with each character that would end the line, move the cursor or turn the direction of writing
/// as an escape: `\n`, `\u{1b}`. Whoever names a file does not write our lines.
///
/// ```
/// assert_eq!(iolab_vocab::printable("a\nb\u{1b}[31m/µ\\"), "a\\nb\\u{1b}[31m/µ\\");
/// ```
pub fn printable(text: &str) -> Cow<'_, str> {
    if !text.contains(is_unprintable) {
        return Cow::Borrowed(text);
    }
    let escaped = |c: char| match is_unprintable(c) {
        true => c.escape_default().to_string(),
        false => c.to_string(),
    };
    Cow::Owned(text.chars().map(escaped).collect())
}

/// Controls, separators of lines, and the marks of Unicode that embed or override a direction (UAX #9).
fn is_unprintable(c: char) -> bool {
    c.is_control() || matches!(c, '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_stays_on_its_line_and_an_ordinary_one_as_it_is() {
        assert_eq!(printable("a\r\nb\u{202e}\u{85}"), "a\\r\\nb\\u{202e}\\u{85}");
        assert!(matches!(printable("/data/é 1\\n.dat"), Cow::Borrowed("/data/é 1\\n.dat")));
    }
}
