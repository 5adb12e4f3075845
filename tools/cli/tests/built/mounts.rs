//! Whether this machine mounts.

use std::fs;
use std::process::Command;

/// Whether a command can have a mount of its own; `iolab` starts the one of this build. Where everything is there that it
/// needs, it must.
pub(crate) fn can_mount(mut iolab: Command) -> bool {
    let place = tempfile::tempdir().unwrap();
    iolab.args(["run", "--via", "mount", "--apply", "null", "--over"]).arg(place.path());
    let output = iolab.args(["--", "true"]).output().unwrap();
    if !output.status.success() {
        let why = String::from_utf8_lossy(&output.stderr);
        assert!(!is_set_up_for_mounts(), "a mount fails where it should not: {why}");
        eprintln!("SKIPPED through a mount: {why}");
    }
    output.status.success()
}

fn is_set_up_for_mounts() -> bool {
    let fuse = fs::OpenOptions::new().read(true).write(true).open("/dev/fuse");
    let namespace = Command::new("unshare").args(["-m", "true"]).output();
    fuse.is_ok() && namespace.is_ok_and(|it| it.status.success())
}
