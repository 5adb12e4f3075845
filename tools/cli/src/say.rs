//! Standard output of the command: results, and nothing else. Beside it, `eprintln!` of the command, by the same name as
//! that of the language, so that none is forgotten.
//!
//! A reader that has seen enough (`| head`) is no failure, so what it no longer takes is dropped and
//! the work goes on to its end, which tidies up. Any other misfortune of standard output ends the
//! command with an error; results that nobody can read must not look like success.

use crate::failure::Failure;
use std::fmt::Arguments;
use std::io::{ErrorKind, Write};

/// As `std::eprintln!`, but standard error that cannot be written is no reason to panic.
macro_rules! eprintln {
    ($($words:tt)*) => { iolab_host::eprintln!($($words)*) };
}

/// Writes `text`; a closed pipe is fine.
pub(crate) fn text(text: &str) -> Result<(), Failure> {
    written(std::io::stdout().write_all(text.as_bytes()))
}

/// What [`say!`] and [`say_line!`] do: as [`text`], but the command ends here when it fails.
pub(crate) fn words(words: Arguments<'_>) {
    if let Err(failure) = written(std::io::stdout().write_fmt(words)) {
        eprintln!("{failure}");
        std::process::exit(1);
    }
}

/// What became of writing to standard output; that nobody reads it is fine.
pub(crate) fn written(result: std::io::Result<()>) -> Result<(), Failure> {
    match result {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => {
            Err(Failure::new(format!("standard output: {error}")))
        }
        _ => Ok(()),
    }
}

/// As `print!`, but a closed pipe is no reason to panic.
macro_rules! say {
    ($($words:tt)*) => { $crate::say::words(format_args!($($words)*)) };
}

/// As `println!`, but a closed pipe is no reason to panic.
macro_rules! say_line {
    () => { $crate::say::words(format_args!("\n")) };
    ($($words:tt)*) => {{
        $crate::say::words(format_args!($($words)*));
        $crate::say::words(format_args!("\n"));
    }};
}

/// `1 file`, `2 files`.
pub(crate) fn number_of(count: u64, one: &str, many: &str) -> String {
    format!("{count} {}", if count == 1 { one } else { many })
}
