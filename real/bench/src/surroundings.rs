//! Where a run took place: host, kernel, file system. For the result document.

use crate::prices::prices;
use iolab_report::bench::Surroundings;
use iolab_vocab::format_bytes;
use std::fs;
use std::path::Path;

/// Looks around.
pub(crate) fn surroundings(target: &Path) -> Surroundings {
    let line = |path: &str| fs::read_to_string(path).unwrap_or_default().trim().to_owned();
    let (file_system, mount_point, mount_options) = mount_of(&directory_of(target));
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    Surroundings {
        host: line("/proc/sys/kernel/hostname"),
        kernel: line("/proc/sys/kernel/osrelease"),
        processors: processors(),
        file_system,
        mount_point,
        mount_options,
        started: since.map(|since| since.as_secs()).unwrap_or(0),
        prices: Some(prices()),
    }
}

/// Which clock this rank reads: the same on two ranks when their stamps can be compared.
pub(crate) fn clock_identity() -> String {
    let boot = fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
    let namespace = fs::read_link("/proc/self/ns/time").unwrap_or_default();
    format!("{} {}", boot.trim(), namespace.display())
}

/// Processors of this host. Not those of this process: a launcher may have bound it to one.
pub(crate) fn processors() -> usize {
    let lines = fs::read_to_string("/proc/stat").unwrap_or_default();
    let one = |line: &&str| line.starts_with("cpu") && !line.starts_with("cpu ");
    lines.lines().filter(one).count().max(1)
}

/// The directory that holds the target, as an absolute path.
pub(crate) fn directory_of(target: &Path) -> std::path::PathBuf {
    let parent = match target.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    };
    fs::canonicalize(parent).unwrap_or_else(|_| parent.to_owned())
}

/// Type, mount point and options of the mount with the longest matching path.
fn mount_of(directory: &Path) -> (String, String, String) {
    let table = fs::read_to_string("/proc/self/mounts").unwrap_or_default();
    let rows = table.lines().filter_map(|line| {
        let mut words = line.split(' ').skip(1);
        Some((words.next()?, words.next()?, words.next()?))
    });
    let inside = rows.filter(|(point, _, _)| directory.starts_with(point));
    let longest = inside.max_by_key(|(point, _, _)| point.len());
    longest.map_or_else(
        || ("unknown".to_owned(), String::new(), String::new()),
        |(point, kind, options)| (kind.to_owned(), point.to_owned(), options.to_owned()),
    )
}

/// Bytes that may still be written where the target lies.
fn room(target: &Path) -> Option<u64> {
    let numbers = rustix::fs::statvfs(directory_of(target)).ok()?;
    Some(numbers.f_bavail.saturating_mul(numbers.f_frsize))
}

/// Whether what is wanted fits where the target lies; else the message and the way out.
pub(crate) fn enough_room(target: &Path, what: &str, wanted: u64) -> Result<(), (String, String)> {
    let Some(room) = room(target).filter(|room| *room < wanted) else { return Ok(()) };
    let (wanted, room) = (format_bytes(wanted), format_bytes(room));
    Err((
        format!("{what} needs {wanted}, but {} has room for {room}", target.display()),
        "choose a target with more room, or a smaller pattern".to_owned(),
    ))
}
