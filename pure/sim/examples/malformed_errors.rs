//! Writes the expected errors of the malformed corpus anew: `tests/malformed/KIND/NAME.error`.
#![allow(clippy::disallowed_methods, reason = "the corpus is a directory of files")]

#[path = "../tests/refusal/mod.rs"]
mod refusal;

fn main() -> std::io::Result<()> {
    for (kind, refuse) in refusal::KINDS {
        for path in refusal::corpus(kind) {
            std::fs::write(path.with_extension("error"), refusal::refused(&path, refuse))?;
        }
    }
    Ok(())
}
