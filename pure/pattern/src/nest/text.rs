//! The text form of a nest, for configurations, tests and error messages.
//!
//! ```text
//! nest = node [ "every" size ] [ "from" size ]         extent and displacement, 0 when left out
//! node = ( size | "[" offset ":" node { "," offset ":" node } "]" ) { "x" count "/" stride }
//! ```
//!
//! `2 x8/4 x4/64 every 256 from 0` is 2 bytes, 8 times every 4, that 4 times every 64, as a tile of
//! 256 bytes; `[0: 4, 10: 2 x3/4]` has two parts. Sizes may have suffixes, as in `64k`; blanks are
//! free. Display writes bare numbers, and leaves out an extent or displacement of 0.
//!
//! Promises: what was displayed parses to an equal nest; what cannot be read names the place.
//! Costs: O(length); recursion ends at [`NEST_DEPTH`].

use super::node::{Form, NEST_DEPTH, Node};
use super::{Nest, fold::Fold};
use iolab_vocab::{Refusal, parse_bytes};
use std::{fmt, str::FromStr};

impl fmt::Display for Node {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Form::Bytes(length) => write!(f, "{length}"),
            Form::Repeat(r) => write!(f, "{} x{}/{}", r.body, r.count, r.stride),
            Form::Sequence(sequence) => {
                for (index, part) in sequence.parts.iter().enumerate() {
                    let before = if index == 0 { "[" } else { ", " };
                    write!(f, "{before}{}: {}", part.offset, part.node)?;
                }
                write!(f, "]")
            }
        }
    }
}

impl fmt::Debug for Node {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl fmt::Debug for super::Part {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.offset, self.node)
    }
}

impl fmt::Display for Nest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.root)?;
        if self.extent > 0 {
            write!(f, " every {}", self.extent)?;
        }
        if self.displacement > 0 {
            write!(f, " from {}", self.displacement)?;
        }
        Ok(())
    }
}

impl fmt::Debug for Nest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl FromStr for Nest {
    type Err = Refusal;

    fn from_str(text: &str) -> Result<Nest, Refusal> {
        let mut reader = Reader { text, at: 0 };
        let (lowest, root) = reader.node(1)?;
        let extent = if reader.takes("every") { reader.size()? } else { 0 };
        let displacement = if reader.takes("from") { reader.size()? } else { 0 };
        if reader.rest().is_empty() {
            Nest::of_parts(displacement, extent, [(lowest, root)])
        } else {
            Err(reader.wrong("`x`, `every`, `from` or the end"))
        }
    }
}

struct Reader<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> Reader<'a> {
    /// What is still to be read, without leading blanks.
    fn rest(&mut self) -> &'a str {
        let rest = self.text[self.at..].trim_start();
        self.at = self.text.len() - rest.len();
        rest
    }

    fn takes(&mut self, word: &str) -> bool {
        let found = self.rest().starts_with(word);
        self.at += if found { word.len() } else { 0 };
        found
    }

    fn wants(&mut self, word: &str) -> Result<(), Refusal> {
        if self.takes(word) { Ok(()) } else { Err(self.wrong(&format!("`{word}`"))) }
    }

    /// Digits and the letters of a size's suffix; none of them begins a word of the form.
    fn size(&mut self) -> Result<u64, Refusal> {
        let rest = self.rest();
        let digits = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
        let suffix = &rest[digits..];
        let letters = suffix.find(|c: char| !"bkmgtiBKMGTI".contains(c)).unwrap_or(suffix.len());
        let size = parse_bytes(&rest[..digits + letters]).map_err(|_| self.wrong("a size"))?;
        self.at += digits + letters;
        Ok(size)
    }

    /// The node from here on, and where in it the lowest byte is.
    fn node(&mut self, depth: usize) -> Result<(u64, Node), Refusal> {
        if depth > NEST_DEPTH {
            return Err(self.wrong(&format!("at most {NEST_DEPTH} levels of brackets")));
        }
        let (lowest, mut node) =
            if self.takes("[") { self.sequence(depth)? } else { (0, Node::bytes(self.size()?)?) };
        while self.takes("x") {
            let count = self.size()?;
            self.wants("/")?;
            node = node.repeated(count, self.size()?)?;
        }
        Ok((lowest, node))
    }

    fn sequence(&mut self, depth: usize) -> Result<(u64, Node), Refusal> {
        let mut fold = Fold::new();
        loop {
            let offset = self.size()?;
            self.wants(":")?;
            let (lowest, node) = self.node(depth + 1)?;
            let place = offset.checked_add(lowest);
            fold.push(place.ok_or_else(|| self.wrong("a smaller offset"))?, &node)?;
            if !self.takes(",") {
                self.wants("]")?;
                return fold.finish();
            }
        }
    }

    fn wrong(&mut self, wanted: &str) -> Refusal {
        let rest = self.rest();
        let offender: String = rest.chars().take(12).collect();
        let offender = if rest.is_empty() { "the end".to_owned() } else { format!("`{offender}`") };
        Refusal::new(
            format!("{offender} at {} of a nest stands where {wanted} is wanted", self.at),
            "write a nest as `2 x8/4 x4/64 every 256 from 0` or `[0: 4, 10: 2 x3/4]`",
        )
    }
}
