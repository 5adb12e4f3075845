//! A line of what is to be written, see `iolab_trace::export::otf2`.

use std::ffi::CString;

#[derive(Debug, PartialEq, Eq)]
pub(super) enum Line {
    String {
        id: u32,
        text: CString,
    },
    Node {
        id: u32,
        name: u32,
        class: u32,
        parent: u32,
    },
    Region {
        id: u32,
        name: u32,
        paradigm: u8,
        role: u8,
    },
    Paradigm {
        id: u8,
        identification: u32,
        name: u32,
        class: u8,
        flags: u32,
    },
    File {
        id: u32,
        name: u32,
        node: u32,
    },
    Group {
        id: u32,
        name: u32,
        node: u32,
    },
    Handle {
        id: u32,
        file: u32,
        paradigm: u8,
    },
    Location {
        id: u64,
        name: u32,
        group: u32,
    },
    Close {
        id: u64,
    },
    /// A location whose events are written: not read, but made of the two before.
    Counted {
        id: u64,
        name: u32,
        group: u32,
        events: u64,
    },
    Ranks {
        id: u32,
        name: u32,
        members: Vec<u64>,
    },
    Communicator {
        id: u32,
        name: u32,
        group: u32,
    },
    Clock {
        length: u64,
        unix_ns: u64,
    },
    Event {
        location: u64,
        time: u64,
        event: Event,
    },
    End,
}

#[derive(Debug, PartialEq, Eq)]
pub(super) enum Event {
    Enter { region: u32 },
    Leave { region: u32 },
    Create { handle: u32, access: u8, creation: u32, status: u32 },
    Destroy { handle: u32 },
    Begin { handle: u32, mode: u8, flags: u32, bytes: u64, id: u64, offset: Option<u64> },
    Complete { handle: u32, bytes: u64, id: u64 },
    Cancel { handle: u32, id: u64 },
    Seek { handle: u32, offset: i64, whence: u8, result: u64 },
    Delete { paradigm: u8, file: u32 },
    Send { to: u32, communicator: u32, tag: u32, bytes: u64, request: Option<u64> },
    Sent { request: u64 },
    Expect { request: u64 },
    Receive { from: u32, communicator: u32, tag: u32, bytes: u64, request: Option<u64> },
    Gather,
    Gathered { operation: u8, communicator: u32, root: u32, sent: u64, received: u64 },
}

/// Numbers behind the word of a line, taken one after the other.
struct Numbers<'a>(std::str::Split<'a, char>);

impl Numbers<'_> {
    fn next<T: TryFrom<i128>>(&mut self) -> Option<T> {
        T::try_from(self.0.next()?.parse::<i128>().ok()?).ok()
    }

    /// −1 is what is not known.
    fn known(&mut self) -> Option<Option<u64>> {
        match self.next::<i128>()? {
            -1 => Some(None),
            number => Some(Some(u64::try_from(number).ok()?)),
        }
    }

    /// A reference, −1 is `OTF2_UNDEFINED_…`, all bits set.
    fn reference(&mut self) -> Option<u32> {
        match self.known()? {
            Some(number) => u32::try_from(number).ok(),
            None => Some(u32::MAX),
        }
    }
}

impl Line {
    pub(super) fn parse(bytes: &[u8]) -> Option<Line> {
        let text = std::str::from_utf8(bytes.strip_suffix(b"\n")?).ok()?;
        let (word, rest) = text.split_once(' ').unwrap_or((text, ""));
        if word == "string" {
            let (id, text) = rest.split_once(' ')?;
            let text = CString::new(unescaped(text)).ok()?;
            return Some(Line::String { id: id.parse().ok()?, text });
        }
        let mut numbers = Numbers(rest.split(' '));
        let n = &mut numbers;
        let line = match word {
            "end" => return rest.is_empty().then_some(Line::End),
            "node" => Line::Node {
                id: n.next()?,
                name: n.next()?,
                class: n.next()?,
                parent: n.reference()?,
            },
            "region" => Line::Region {
                id: n.next()?,
                name: n.next()?,
                paradigm: n.next()?,
                role: n.next()?,
            },
            "paradigm" => Line::Paradigm {
                id: n.next()?,
                identification: n.next()?,
                name: n.next()?,
                class: n.next()?,
                flags: n.next()?,
            },
            "file" => Line::File { id: n.next()?, name: n.next()?, node: n.next()? },
            "group" => Line::Group { id: n.next()?, name: n.next()?, node: n.next()? },
            "handle" => Line::Handle { id: n.next()?, file: n.next()?, paradigm: n.next()? },
            "location" => Line::Location { id: n.next()?, name: n.next()?, group: n.next()? },
            "close" => Line::Close { id: n.next()? },
            "ranks" => {
                let (id, name) = (n.next()?, n.next()?);
                let mut members = Vec::new();
                for member in n.0.by_ref() {
                    // −1 is `OTF2_UNDEFINED_LOCATION`, all bits set.
                    let member: i64 = member.parse().ok().filter(|member| *member >= -1)?;
                    members.push(member as u64);
                }
                Line::Ranks { id, name, members }
            }
            "communicator" => {
                Line::Communicator { id: n.next()?, name: n.next()?, group: n.next()? }
            }
            "clock" => Line::Clock { length: n.next()?, unix_ns: n.next()? },
            _ => {
                let (location, time) = (n.next()?, n.next()?);
                Line::Event { location, time, event: Event::parse(word, n)? }
            }
        };
        numbers.0.next().is_none().then_some(line)
    }
}

impl Event {
    fn parse(word: &str, n: &mut Numbers) -> Option<Event> {
        Some(match word {
            "enter" => Event::Enter { region: n.next()? },
            "leave" => Event::Leave { region: n.next()? },
            "create" => Event::Create {
                handle: n.next()?,
                access: n.next()?,
                creation: n.next()?,
                status: n.next()?,
            },
            "destroy" => Event::Destroy { handle: n.next()? },
            "begin" => Event::Begin {
                handle: n.next()?,
                mode: n.next()?,
                flags: n.next()?,
                bytes: n.next()?,
                id: n.next()?,
                offset: n.known()?,
            },
            "complete" => Event::Complete { handle: n.next()?, bytes: n.next()?, id: n.next()? },
            "cancel" => Event::Cancel { handle: n.next()?, id: n.next()? },
            "seek" => Event::Seek {
                handle: n.next()?,
                offset: n.next()?,
                whence: n.next()?,
                result: n.next()?,
            },
            "delete" => Event::Delete { paradigm: n.next()?, file: n.next()? },
            "send" => Event::Send {
                to: n.next()?,
                communicator: n.next()?,
                tag: n.reference()?,
                bytes: n.next()?,
                request: n.known()?,
            },
            "sent" => Event::Sent { request: n.next()? },
            "expect" => Event::Expect { request: n.next()? },
            "receive" => Event::Receive {
                from: n.next()?,
                communicator: n.next()?,
                tag: n.reference()?,
                bytes: n.next()?,
                request: n.known()?,
            },
            "gather" => Event::Gather,
            "gathered" => Event::Gathered {
                operation: n.next()?,
                communicator: n.next()?,
                root: n.reference()?,
                sent: n.next()?,
                received: n.next()?,
            },
            _ => return None,
        })
    }
}

fn unescaped(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    let mut characters = text.chars();
    while let Some(character) = characters.next() {
        plain.push(match character {
            '\\' => match characters.next() {
                Some('n') => '\n',
                Some(other) => other,
                None => '\\',
            },
            other => other,
        });
    }
    plain
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_what_it_says_or_nothing() {
        let parse = |text: &str| Line::parse(text.as_bytes());
        let text = c"a \\ b\nc".to_owned();
        assert_eq!(parse("string 4 a \\\\ b\\nc\n"), Some(Line::String { id: 4, text }));
        let node = Line::Node { id: 0, name: 1, class: 2, parent: u32::MAX };
        assert_eq!(parse("node 0 1 2 -1\n"), Some(node));
        let begin = |offset| {
            let event = Event::Begin { handle: 3, mode: 1, flags: 0, bytes: 10, id: 9, offset };
            Some(Line::Event { location: 1, time: 2, event })
        };
        assert_eq!(parse("begin 1 2 3 1 0 10 9 -1\n"), begin(None));
        assert_eq!(parse("begin 1 2 3 1 0 10 9 5\n"), begin(Some(5)));
        assert_eq!(parse("end\n"), Some(Line::End));
        let ranks = Line::Ranks { id: 0, name: 3, members: vec![4, u64::MAX] };
        assert_eq!(parse("ranks 0 3 4 -1\n"), Some(ranks));
        let send =
            Event::Send { to: 1, communicator: 0, tag: u32::MAX, bytes: 9, request: Some(3) };
        let line = Line::Event { location: 7, time: 8, event: send };
        assert_eq!(parse("send 7 8 1 0 -1 9 3\n"), Some(line));
        for bad in [
            "",
            "\n",
            "end",
            "end 1\n",
            "node 0 1 2\n",
            "node 0 1 2 3 4\n",
            "node 0 1 2 -2\n",
            "file -1 0 0\n",
            "enter 0 0 4294967296\n",
            "begin 1 2 3 256 0 10 9 5\n",
            "string x a\n",
            "string 1 a\0b\n",
            "what 1 2 3\n",
            "ranks 0 3 4 -2\n",
            "gather 1 2 3\n",
        ] {
            assert_eq!(parse(bad), None, "{bad:?}");
        }
    }
}
