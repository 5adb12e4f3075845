//! Arguments of a call as Recorder keeps them: in the order of C, which is that of the table of functions.

use super::super::dftracer::flags;
use crate::{Class, Function, Layer};

/// The words of a call, by what they are.
pub(super) struct Arguments<'a> {
    function: Function,
    named: Vec<(&'static str, String)>,
    words: &'a [&'a str],
}

/// What a call says.
pub(super) struct Said<'a> {
    pub file: Option<String>,
    /// What an open file of MPI-IO is called.
    pub handle: Option<&'a str>,
    pub offset: i64,
    pub length: i64,
    pub argument: i64,
}

/// Sizes of MPI's own datatypes on the machines that Recorder runs on.
const TYPES: [(&str, i64); 22] = [
    ("MPI_BYTE", 1),
    ("MPI_CHAR", 1),
    ("MPI_CHARACTER", 1),
    ("MPI_SIGNED_CHAR", 1),
    ("MPI_UNSIGNED_CHAR", 1),
    ("MPI_INT8_T", 1),
    ("MPI_UINT8_T", 1),
    ("MPI_SHORT", 2),
    ("MPI_UNSIGNED_SHORT", 2),
    ("MPI_INT", 4),
    ("MPI_UNSIGNED", 4),
    ("MPI_INTEGER", 4),
    ("MPI_FLOAT", 4),
    ("MPI_REAL", 4),
    ("MPI_LONG", 8),
    ("MPI_UNSIGNED_LONG", 8),
    ("MPI_LONG_LONG_INT", 8),
    ("MPI_LONG_LONG", 8),
    ("MPI_INT64_T", 8),
    ("MPI_UINT64_T", 8),
    ("MPI_DOUBLE", 8),
    ("MPI_DOUBLE_PRECISION", 8),
];

impl<'a> Arguments<'a> {
    pub(super) fn of(function: Function, symbol: &str, words: &'a [&'a str]) -> Arguments<'a> {
        let names: &[&'static str] = match symbol {
            // The sum of the vector stands where the vector was.
            "readv" | "writev" => &["fd", "length", "count"],
            "preadv" | "pwritev" | "preadv64" | "pwritev64" => &["fd", "length", "count", "offset"],
            "fprintf" | "vfprintf" => &["stream", "length"],
            "__xstat" | "__xstat64" | "__lxstat" | "__lxstat64" => &["version", "path", "status"],
            "__fxstat" | "__fxstat64" => &["version", "fd", "status"],
            _ => function.row().map_or(&[], |row| row.arguments),
        };
        // More words than arguments: the path has blanks.
        let more = words.len().saturating_sub(names.len());
        let mut rest = words.iter();
        let mut named = Vec::new();
        for &name in names {
            let count = if is_file(name) { more + 1 } else { 1 };
            let taken: Vec<&str> = rest.by_ref().take(count).copied().collect();
            if !taken.is_empty() {
                named.push((name, taken.join(" ")));
            }
        }
        Arguments { function, named, words }
    }

    fn text(&self, name: &str) -> Option<&str> {
        self.named.iter().find(|argument| argument.0 == name).map(|argument| argument.1.as_str())
    }

    fn number(&self, name: &str) -> Option<i64> {
        self.text(name)?.parse().ok()
    }

    pub(super) fn said(&self) -> Said<'a> {
        if self.function.layer() == Layer::Mpiio {
            return self.said_to_mpi();
        }
        let file = self.named.iter().find(|argument| is_file(argument.0));
        let file = file.map(|argument| argument.1.clone());
        let size = |name: &str| self.number(name).filter(|number| *number >= 0);
        let length = match (size("length"), size("size"), size("count")) {
            (Some(length), ..) => length,
            (None, Some(size), Some(count)) => size.saturating_mul(count),
            _ if matches!(self.function, Function::FPUTC | Function::FGETC) => 1,
            _ => -1,
        };
        let argument = match self.function.class() {
            Class::Open if self.function.layer() == Layer::Stdio => {
                self.text("mode_text").map_or(-1, flags)
            }
            Class::Open => self.number("flags").unwrap_or(0o1101),
            Class::Seek => self.number("whence").filter(|it| (0..8).contains(it)).unwrap_or(-1),
            _ => -1,
        };
        let offset = self.number("offset").unwrap_or(-1);
        Said { file, handle: None, offset, length, argument }
    }

    /// `( handle [offset] buffer count datatype … )`, of an open `( communicator path mode information handle )`.
    fn said_to_mpi(&self) -> Said<'a> {
        let words = self.words;
        let word = |at: usize| words.get(at).copied().unwrap_or("");
        let number = |at: usize| word(at).parse::<i64>().unwrap_or(-1);
        let none = Said { file: None, handle: None, offset: -1, length: -1, argument: -1 };
        match self.function.class() {
            Class::Open if words.len() >= 5 => {
                let last = words.len() - 1;
                let path = words[1..last - 2].join(" ");
                let argument = number(last - 2);
                Said { file: Some(path), handle: words.last().copied(), argument, ..none }
            }
            Class::Open => none,
            Class::Read | Class::Write => {
                let datatype = words.iter().position(|word| is_datatype(word));
                let size = |at: usize| TYPES.iter().find(|row| row.0 == word(at)).map(|row| row.1);
                let count = |at: usize| number(at).max(0);
                let length = datatype
                    .and_then(|at| Some(count(at.checked_sub(1)?).saturating_mul(size(at)?)));
                // With an offset the datatype is one word later.
                let offset = datatype.filter(|at| *at >= 4).map_or(-1, |_| number(1).max(-1));
                let length = length.unwrap_or(-1);
                Said { handle: words.first().copied(), offset, length, ..none }
            }
            Class::Truncate | Class::Allocate => {
                Said { handle: words.first().copied(), length: number(1).max(-1), ..none }
            }
            Class::Seek => {
                let offset = number(1);
                Said { handle: words.first().copied(), offset, ..none }
            }
            _ => Said { handle: words.first().copied(), ..none },
        }
    }
}

fn is_file(name: &str) -> bool {
    matches!(name, "path" | "fd" | "stream")
}

fn is_datatype(word: &str) -> bool {
    word.starts_with("MPI_")
}
