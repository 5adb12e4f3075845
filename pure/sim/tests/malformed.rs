//! Malformed platforms, workloads and fault scenarios: each is refused, with the error that stands beside it.
//!
//! `malformed/KIND/NAME.toml` is the input, `NAME.error` what the user reads. A new case is a new
//! file; `cargo run -p iolab-sim --example malformed_errors` writes the errors anew, and the diff
//! shows what users will read from now on.
#![allow(clippy::disallowed_methods, reason = "the corpus is a directory of files")]

mod refusal;

use refusal::{KINDS, corpus, refused};

#[test]
fn every_malformed_file_is_refused_with_the_error_beside_it() {
    let mut count = 0;
    let mut wrong = Vec::new();
    for (kind, refuse) in KINDS {
        for path in corpus(kind) {
            let wanted = std::fs::read_to_string(path.with_extension("error")).unwrap_or_default();
            let told = refused(&path, refuse);
            if told != wanted {
                wrong.push(format!("{}:\n{told}instead of\n{wanted}", path.display()));
            }
            count += 1;
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(count >= 200, "{count} files");
}

#[test]
fn every_error_has_a_hint_and_none_speaks_of_the_machinery() {
    for (kind, refuse) in KINDS {
        for path in corpus(kind) {
            let told = refused(&path, refuse);
            let (message, hint) = told.rsplit_once("\nhint: ").expect("a hint");
            assert!(message.len() > 5 && hint.len() > 5, "{}: {told}", path.display());
            for word in ["untagged", "Option", "struct ", "unwrap", "panicked"] {
                assert!(!told.contains(word), "{}: {told}", path.display());
            }
        }
    }
}
