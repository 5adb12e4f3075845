//! Processes that cannot reach what another one holds, or the file of one that was killed: they see
//! what a write returned for all the same.

use super::bench::{Way, guest, same_everywhere};

const STRATEGIES: &[Way] =
    &[Way::Run(&["write-back"]), Way::Run(&["seek-elide", "write-back:buffer=8k", "null"])];

#[test]
fn who_has_no_means_to_write_out_what_another_holds_sees_it_nonetheless() {
    let program = guest("lookers");
    for way in [
        "nothing",
        "descriptors",
        "root",
        "memory",
        "user",
        "filter",
        "size",
        "numbers",
        "mapping",
        "spawned",
        "thread",
    ] {
        same_everywhere(&format!("\"$GUEST\" {way}"), Some(&program), STRATEGIES);
    }
}

#[test]
fn a_killed_process_has_written_to_its_file_whatever_that_is_called_by_then() {
    let program = guest("lost_names");
    for way in ["file", "directory", "link", "removed", "again", "root", "mounts", "moved"] {
        same_everywhere(&format!("\"$GUEST\" {way}"), Some(&program), STRATEGIES);
    }
}
