//! What the viewer's tests read about ranges is what Rust computes.

#![allow(clippy::disallowed_methods, reason = "the golden ranges are files")]

#[path = "sample/ranges.rs"]
mod ranges;

#[test]
fn the_ranges_the_viewer_is_held_to_are_those_that_are_computed() {
    let golden = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tools/viewer/test/golden");
    for (name, bytes) in ranges::files() {
        let filed = std::fs::read(format!("{golden}/{name}")).unwrap_or_default();
        assert!(
            filed == bytes,
            "{name} has changed; if that is meant, \
             run `cargo run -p iolab-report --example golden_ranges -- tools/viewer/test/golden`"
        );
    }
}
