//! Standard error of a process of ours: remarks, progress and what is wrong.
//!
//! It may be a file on a full disk, or a pipe that nobody reads any more. That there is nobody to tell is no
//! reason to end in the middle of a run and to lose how its program ended, as `std::eprintln!` does.

use std::fmt::Arguments;
use std::io::Write;

/// What [`eprintln!`](crate::eprintln) does: writes a line as far as it is taken.
pub fn line(words: Arguments<'_>) {
    let mut line = words.to_string();
    line.push('\n');
    let _nobody_to_tell = std::io::stderr().write_all(line.as_bytes());
}

/// As `std::eprintln!`, but standard error that cannot be written is no reason to panic.
#[macro_export]
macro_rules! eprintln {
    () => { $crate::standard_error::line(format_args!("")) };
    ($($words:tt)*) => { $crate::standard_error::line(format_args!($($words)*)) };
}
