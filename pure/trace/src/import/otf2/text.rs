//! Records as `otf2-print` writes them: a kind, numbers in columns, then `Name: value` pairs.
//!
//! Names are not escaped. Pairs are therefore looked for from the right, where numbers and words are, and
//! names are taken from the definitions of strings by the number behind them.

/// A record, as far as all are alike.
pub(super) struct Record<'a> {
    pub kind: &'a str,
    /// The number of a definition, or the location of an event.
    pub id: Option<u64>,
    pub said: Fields<'a>,
}

/// An event.
pub(super) struct Event<'a> {
    pub kind: &'a str,
    pub location: u64,
    /// In ticks of the archive's clock.
    pub ticks: u64,
    pub said: Fields<'a>,
    /// Its additional attributes, empty for none.
    pub added: &'a str,
}

/// `Name: value, Name: value`.
#[derive(Clone, Copy)]
pub(super) struct Fields<'a>(pub &'a str);

const ADDED: &str = "ADDITIONAL ATTRIBUTES: ";

/// Definitions that have no number.
const UNNUMBERED: [&str; 2] = ["CLOCK_PROPERTIES", "IO_PRE_CREATED_HANDLE_STATE"];

/// Whether a line is the first one of a record or a section.
pub(super) fn begins_record(line: &[u8]) -> bool {
    let is_kind = |byte: &u8| byte.is_ascii_uppercase() || byte.is_ascii_digit() || *byte == b'_';
    let kind = line.iter().take_while(|byte| is_kind(byte)).count();
    let rest = &line[kind..];
    let spaces = rest.iter().take_while(|byte| **byte == b' ').count();
    let is_numbered = spaces > 0 && rest.get(spaces).is_some_and(u8::is_ascii_digit);
    let is_unnumbered = UNNUMBERED.iter().any(|name| name.as_bytes() == &line[..kind]);
    line.starts_with(b"=== ")
        || line.starts_with(b"==ERROR==")
        || (kind > 0 && spaces > 0 && (is_numbered || is_unnumbered))
}

impl<'a> Record<'a> {
    /// None for what is no record: a heading, an empty line.
    pub(super) fn parse(text: &'a str) -> Option<Record<'a>> {
        let (kind, rest) = text.split_once(' ')?;
        if UNNUMBERED.contains(&kind) {
            return Some(Record { kind, id: None, said: Fields(rest.trim_start()) });
        }
        let (id, rest) = leading_number(rest.trim_start_matches(' '))?;
        Some(Record { kind, id: Some(id), said: Fields(rest.strip_prefix("  ").unwrap_or(rest)) })
    }

    /// As an event: behind the location stands its time.
    pub(super) fn event(&self) -> Option<Event<'a>> {
        let (ticks, rest) = leading_number(self.said.0.trim_start_matches(' '))?;
        let (said, added) = rest.rsplit_once(ADDED).unwrap_or((rest, ""));
        let said = Fields(said.trim());
        Some(Event { kind: self.kind, location: self.id?, ticks, said, added })
    }
}

impl<'a> Fields<'a> {
    /// The values of these names, which stand in this order; empty where one is missing.
    pub(super) fn split<const N: usize>(self, names: [&str; N]) -> [&'a str; N] {
        let mut values = [""; N];
        let mut rest = self.0;
        for (index, name) in names.iter().enumerate().rev() {
            let is_name = |at: &usize| {
                let before = &rest[..*at];
                rest[at + name.len()..].starts_with(": ")
                    && (before.is_empty() || before.ends_with(", "))
            };
            let first = rest.starts_with(name).then_some(0).filter(|_| index == 0);
            let found = first
                .filter(is_name)
                .or_else(|| rest.rmatch_indices(name).map(|(at, _)| at).find(is_name));
            if let Some(at) = found {
                values[index] = &rest[at + name.len() + 2..];
                rest = rest[..at].strip_suffix(", ").unwrap_or("");
            }
        }
        values
    }

    /// The value of one name.
    pub(super) fn value(self, name: &str) -> &'a str {
        let [value] = self.split([name]);
        value
    }
}

/// The number at the beginning, and what is behind it.
pub(super) fn leading_number(text: &str) -> Option<(u64, &str)> {
    let end = text.find(|sign: char| !sign.is_ascii_digit()).unwrap_or(text.len());
    Some((text[..end].parse().ok()?, &text[end..]))
}

/// What a value `"name" <7>` refers to; none for `UNDEFINED`.
pub(super) fn reference(value: &str) -> Option<u64> {
    let (_, behind) = value.rsplit_once('<')?;
    behind.split('>').next()?.parse().ok()
}

/// A number; none for the one that stands for unknown.
pub(super) fn number(value: &str) -> Option<u64> {
    value.trim().parse().ok().filter(|number| *number != u64::MAX)
}

/// Whether a set `{ONE, OTHER}` has a flag.
pub(super) fn has(set: &str, flag: &str) -> bool {
    set.trim().trim_matches(['{', '}']).split(", ").any(|word| word == flag)
}

/// The numbers in `"name" <1>, "name" <2>`.
pub(super) fn references(list: &str) -> Vec<u64> {
    let pieces = list.split("\" <").skip(1);
    pieces.filter_map(|piece| leading_number(piece).map(|(number, _)| number)).collect()
}

/// The first numbers of `0 ("name" <1>), 1 ("name" <2>)`.
pub(super) fn numbers(list: &str) -> Vec<u64> {
    let pieces = list.split(">), ").flat_map(|piece| match piece.contains('(') {
        true => vec![piece],
        false => piece.split(", ").collect(),
    });
    pieces.filter_map(|piece| leading_number(piece).map(|(number, _)| number)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pairs_are_found_behind_names_that_look_like_pairs() {
        let text = "Handle: \"a, Mode: READ <9>, b\" <3>, Mode: WRITE, Bytes Request: 7";
        let [handle, mode, bytes] = Fields(text).split(["Handle", "Mode", "Bytes Request"]);
        assert_eq!((reference(handle), mode, number(bytes)), (Some(3), "WRITE", Some(7)));
        let [handle, other, mode] = Fields(text).split(["Handle", "Missing", "Mode"]);
        assert_eq!((reference(handle), other), (Some(3), ""));
        assert!(mode.starts_with("WRITE"));
    }

    #[test]
    fn records_are_told_from_what_goes_on_with_one() {
        for line in [
            "STRING     0  \"\"",
            "ENTER   0    5  Region",
            "CLOCK_PROPERTIES   Ticks",
            "=== Events =",
        ] {
            assert!(begins_record(line.as_bytes()), "{line}");
        }
        for line in [
            "",
            "b \"q\" <7>",
            "     ADDITIONAL ATTRIBUTES: ()",
            "ENTER",
            "ENTER the room",
            "Event  Location",
        ] {
            assert!(!begins_record(line.as_bytes()), "{line}");
        }
        let event =
            Record::parse("ENTER    12    99  Region: INVALID <4>").unwrap().event().unwrap();
        assert_eq!(
            (event.location, event.ticks, reference(event.said.value("Region"))),
            (12, 99, Some(4))
        );
    }

    #[test]
    fn members_are_counted_with_and_without_names() {
        assert_eq!(
            references("\"Master thread\" <0>, \"Master thread\" <4294967296>"),
            [0, 1 << 32]
        );
        assert_eq!(numbers("0 (\"Master thread\" <5>), 3 (\"x\" <6>)"), [0, 3]);
        assert_eq!(numbers("0, 1, 2"), [0, 1, 2]);
        assert!(numbers("").is_empty() && references("UNDEFINED").is_empty());
    }
}
