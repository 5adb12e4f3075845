//! Writes the ranges that the viewer's statistics are tested with:
//! `cargo run -p iolab-report --example golden_ranges -- tools/viewer/test/golden`.

#![allow(clippy::disallowed_methods, clippy::disallowed_macros, reason = "an example is a program")]

#[path = "../tests/sample/ranges.rs"]
mod ranges;

fn main() {
    let Some(directory) = std::env::args().nth(1) else {
        eprintln!("usage: golden_ranges DIRECTORY");
        std::process::exit(2);
    };
    for (name, bytes) in ranges::files() {
        std::fs::write(format!("{directory}/{name}"), bytes).expect("DIRECTORY can be written");
    }
}
