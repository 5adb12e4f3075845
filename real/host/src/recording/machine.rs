//! What the launcher knows about the machine and the command.

use iolab_trace::finish::Launch;
use iolab_trace::spool::{VARIABLES, control};
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::{env, fs};

pub(super) fn launch(command: &[OsString], strategies: &[String]) -> Launch {
    Launch {
        command: command.iter().map(|word| word.to_string_lossy().into_owned()).collect(),
        working_directory: env::current_dir()
            .map(|path| path.to_string_lossy().into_owned())
            .unwrap_or_default(),
        host: host(),
        environment: environment(),
        mounts: mounts(&fs::read_to_string("/proc/self/mounts").unwrap_or_default()),
        strategies: strategies.to_vec(),
        pid: 0,
        machine: boot(),
        mounted_over: Vec::new(),
    }
}

/// What this node calls itself.
pub fn host() -> String {
    fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default().trim().to_owned()
}

/// This machine since it was started: equal for all that share its monotonic clock.
pub(crate) fn boot() -> String {
    let boot = fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
    boot.trim().to_owned()
}

/// How far the wall clock is from the right time at most, as the system states it ([`control::UNIX_BOUND`]).
pub(super) fn unix_bound() -> u64 {
    // SAFETY: plain numbers, of which those that say what to change are 0; filled by the call.
    let (state, time) = unsafe {
        let mut time = std::mem::zeroed::<libc::timex>();
        (libc::adjtimex(&mut time), time)
    };
    control::unix_bound(state.into(), time.maxerror)
}

fn environment() -> BTreeMap<String, String> {
    let text = |it: OsString| it.to_string_lossy().into_owned();
    mattering(env::vars_os().map(|(name, value)| (text(name), text(value))))
}

/// Those of variables that matter to I/O and parallel launchers.
pub(super) fn mattering(
    variables: impl IntoIterator<Item = (String, String)>,
) -> BTreeMap<String, String> {
    let matters = |name: &str| VARIABLES.iter().any(|start| name.starts_with(start));
    variables.into_iter().filter(|(name, _)| matters(name)).collect()
}

/// Mount points of file systems that hold files, with their type.
pub(super) fn mounts(table: &str) -> BTreeMap<String, String> {
    const NO_FILES: [&str; 9] = [
        "proc",
        "sysfs",
        "cgroup",
        "cgroup2",
        "devpts",
        "mqueue",
        "securityfs",
        "debugfs",
        "tracefs",
    ];
    table
        .lines()
        .filter_map(|line| {
            let mut fields = line.split(' ').skip(1);
            Some((fields.next()?, fields.next()?))
        })
        .filter(|(_, kind)| !NO_FILES.contains(kind))
        .map(|(point, kind)| (point.replace("\\040", " "), kind.to_owned()))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mount_points_keep_their_spaces_and_kernel_trees_are_left_out() {
        let table = "a / ext4 rw 0 0\nb /my\\040disk xfs rw 0 0\nproc /proc proc rw 0 0\n";
        let mounts = mounts(table);
        assert_eq!(mounts.len(), 2);
        assert_eq!(mounts["/my disk"], "xfs");
    }
}
