//! Remarks of servers, one line each, on standard error: mostly a log in the instance's own directory.
//!
//! That directory may be on the disk whose being full is what there is to say: a line that is not taken is lost,
//! where `std::eprintln!` would end the server.

use std::fmt::Arguments;
use std::io::Write;

pub(crate) fn remark(words: Arguments<'_>) {
    _ = std::io::stderr().write_all(format!("{words}\n").as_bytes());
}
