//! Directory trees: copied, measured, compared: bytes, modes, owners, extended attributes, and the
//! times a program has set.

use std::collections::BTreeMap;
use std::fs::{self, File, FileTimes};
use std::io::{self, Read};
use std::os::unix::fs::{FileTypeExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// What is said of a file that the other tree has not.
pub(crate) const NEW: &str = "is new";

/// What a tree holds, for the decision whether it may be copied for every run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Extent {
    pub(crate) entries: u64,
    pub(crate) bytes: u64,
}

/// An error with the path it is about.
fn about(path: &Path) -> impl FnOnce(io::Error) -> io::Error + '_ {
    move |error| io::Error::new(error.kind(), format!("{}: {error}", path.display()))
}

/// Counts what is in `directory`, but stops when either limit is exceeded.
pub(crate) fn extent(directory: &Path, limit: Extent) -> io::Result<Extent> {
    let mut found = Extent::default();
    let mut pending = vec![directory.to_owned()];
    while let Some(next) = pending.pop() {
        for entry in fs::read_dir(&next).map_err(about(&next))? {
            let path = entry?.path();
            let metadata = fs::symlink_metadata(&path).map_err(about(&path))?;
            found.entries += 1;
            found.bytes += if metadata.is_file() { metadata.len() } else { 0 };
            if found.entries > limit.entries || found.bytes > limit.bytes {
                return Ok(found);
            }
            if metadata.is_dir() {
                pending.push(path);
            }
        }
    }
    Ok(found)
}

/// Copies a tree with modes and times; links stay links. `left_out` is not copied.
pub(crate) fn copy(from: &Path, to: &Path, left_out: Option<&Path>) -> io::Result<()> {
    let metadata = fs::symlink_metadata(from).map_err(about(from))?;
    fs::create_dir(to).map_err(about(to))?;
    for entry in fs::read_dir(from).map_err(about(from))? {
        let entry = entry.map_err(about(from))?;
        let (source, target) = (entry.path(), to.join(entry.file_name()));
        if left_out == Some(source.as_path()) {
            continue;
        }
        let kind = entry.file_type().map_err(about(&source))?;
        if kind.is_dir() {
            copy(&source, &target, left_out)?;
        } else if kind.is_symlink() {
            let goal = fs::read_link(&source).map_err(about(&source))?;
            std::os::unix::fs::symlink(goal, &target).map_err(about(&target))?;
        } else if kind.is_file() {
            copy_file(&source, &target)?;
        } else if !kind.is_socket() {
            let error = io::Error::other("a pipe or device cannot be copied");
            return Err(about(&source)(error));
        }
    }
    fs::set_permissions(to, metadata.permissions()).map_err(about(to))
}

fn copy_file(source: &Path, target: &Path) -> io::Result<()> {
    fs::copy(source, target).map_err(about(target))?;
    let metadata = fs::metadata(source).map_err(about(source))?;
    let times =
        FileTimes::new().set_accessed(metadata.accessed()?).set_modified(metadata.modified()?);
    // A file that is copied read-only cannot be opened for this; its times matter to nobody.
    let _ = File::options().write(true).open(target).and_then(|file| file.set_times(times));
    Ok(())
}

/// Removes a tree, also directories a program has taken the write permission from.
pub(crate) fn remove(tree: &Path) -> io::Result<()> {
    if fs::remove_dir_all(tree).is_ok() {
        return Ok(());
    }
    allow(tree);
    match fs::remove_dir_all(tree) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        other => other.map_err(about(tree)),
    }
}

fn allow(directory: &Path) {
    let _ = fs::set_permissions(directory, fs::Permissions::from_mode(0o700));
    for entry in fs::read_dir(directory).into_iter().flatten().flatten() {
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            allow(&entry.path());
        }
    }
}

/// The entries of a tree by their path relative to it.
fn listing(tree: &Path) -> io::Result<BTreeMap<PathBuf, fs::Metadata>> {
    let mut found = BTreeMap::new();
    let mut pending = vec![tree.to_owned()];
    while let Some(next) = pending.pop() {
        for entry in fs::read_dir(&next).map_err(about(&next))? {
            let path = entry.map_err(about(&next))?.path();
            let metadata = fs::symlink_metadata(&path).map_err(about(&path))?;
            if metadata.is_dir() {
                pending.push(path.clone());
            }
            let name = path.strip_prefix(tree).expect("entries lie below their tree");
            found.insert(name.to_owned(), metadata);
        }
    }
    Ok(found)
}

/// When a tree came about. A time in between is the clock's and says nothing; another one was set by
/// the program.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Span {
    pub(crate) since: SystemTime,
    pub(crate) until: SystemTime,
}

/// File systems take their times from a clock that ticks.
const TICK: Duration = Duration::from_millis(50);

impl Span {
    /// The modification time, if the program has set it.
    fn set_time(&self, metadata: &fs::Metadata) -> Option<SystemTime> {
        let time = metadata.modified().ok()?;
        (time < self.since - TICK || time > self.until + TICK).then_some(time)
    }
}

/// A tree that a run has left.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Left<'a> {
    pub(crate) tree: &'a Path,
    pub(crate) span: Span,
}

/// Every difference between two trees, by relative path: names, kinds, contents, and everything
/// else a program may have given its files.
pub(crate) fn differences(expected: Left, found: Left) -> io::Result<BTreeMap<PathBuf, String>> {
    let (old, mut new) = (listing(expected.tree)?, listing(found.tree)?);
    let mut differences = BTreeMap::new();
    for (name, before) in old {
        let difference = match new.remove(&name) {
            None => Some("is missing".to_owned()),
            Some(after) => {
                let paths = (expected.tree.join(&name), found.tree.join(&name));
                match entry_difference(&paths.0, &before, &paths.1, &after)? {
                    Some(difference) => Some(difference),
                    None => attribute_difference(&paths.0, &paths.1)
                        .or_else(|| time_difference(expected.span, &before, found.span, &after)),
                }
            }
        };
        if let Some(difference) = difference {
            differences.insert(name, difference);
        }
    }
    differences.extend(new.into_keys().map(|name| (name, NEW.to_owned())));
    Ok(differences)
}

fn entry_difference(
    old: &Path,
    before: &fs::Metadata,
    new: &Path,
    after: &fs::Metadata,
) -> io::Result<Option<String>> {
    if before.file_type() != after.file_type() {
        return Ok(Some("is of another kind".to_owned()));
    }
    if before.is_symlink() {
        let same = fs::read_link(old)? == fs::read_link(new)?;
        return Ok((!same).then(|| "links elsewhere".to_owned()));
    }
    if before.mode() != after.mode() {
        return Ok(Some(format!("has mode {:o} instead of {:o}", after.mode(), before.mode())));
    }
    if (before.uid(), before.gid()) != (after.uid(), after.gid()) {
        let owner = |it: &fs::Metadata| format!("{}:{}", it.uid(), it.gid());
        return Ok(Some(format!("belongs to {} instead of {}", owner(after), owner(before))));
    }
    if !before.is_file() {
        return Ok(None);
    }
    let place = first_difference(old, new)?;
    let sizes = || format!("{} bytes instead of {}", after.len(), before.len());
    Ok(match (before.len() == after.len(), place) {
        (true, None) => None,
        (true, Some(place)) => Some(format!("differs from byte {place} on")),
        (false, Some(place)) => Some(format!("has {}, differs from byte {place} on", sizes())),
        (false, None) => Some(format!("has {}", sizes())),
    })
}

fn time_difference(
    expected: Span,
    before: &fs::Metadata,
    found: Span,
    after: &fs::Metadata,
) -> Option<String> {
    let (old, new) = (expected.set_time(before), found.set_time(after));
    let shown = |time: Option<SystemTime>| match time.map(|it| it.duration_since(UNIX_EPOCH)) {
        None => "the clock's".to_owned(),
        Some(Ok(since)) => format!("{}.{:09}", since.as_secs(), since.subsec_nanos()),
        Some(Err(before)) => format!("-{:?}", before.duration()),
    };
    // A file that neither run touched has its time from before both.
    let is_untouched = before.modified().ok() == after.modified().ok();
    let same = old == new || is_untouched || before.is_symlink();
    (!same).then(|| format!("has modification time {} instead of {}", shown(new), shown(old)))
}

fn attribute_difference(old: &Path, new: &Path) -> Option<String> {
    let (before, after) = (attributes(old), attributes(new));
    let differs = |name: &&Vec<u8>| before.get(*name) != after.get(*name);
    let name = before.keys().chain(after.keys()).find(differs)?;
    Some(format!("differs in the attribute {}", String::from_utf8_lossy(name)))
}

/// Extended attributes by name; none where the file system has none.
fn attributes(path: &Path) -> BTreeMap<Vec<u8>, Vec<u8>> {
    let mut names = vec![0; 64 << 10];
    let length = rustix::fs::llistxattr(path, &mut names[..]).unwrap_or(0);
    let names = names[..length].split(|&byte| byte == 0).filter(|name| !name.is_empty());
    names
        .map(|name| {
            let mut value = vec![0; 64 << 10];
            let length = rustix::fs::lgetxattr(path, name, &mut value[..]).unwrap_or(0);
            value.truncate(length);
            (name.to_vec(), value)
        })
        .collect()
}

/// The first byte that differs within the common length.
fn first_difference(old: &Path, new: &Path) -> io::Result<Option<u64>> {
    let mut files = (File::open(old).map_err(about(old))?, File::open(new).map_err(about(new))?);
    let (mut ours, mut theirs) = (vec![0; 1 << 18], vec![0; 1 << 18]);
    let mut at = 0;
    loop {
        let (n, m) = (fill(&mut files.0, &mut ours)?, fill(&mut files.1, &mut theirs)?);
        let common = n.min(m);
        if ours[..common] != theirs[..common] {
            let place = ours.iter().zip(&theirs).position(|(a, b)| a != b);
            return Ok(place.map(|place| at + place as u64));
        }
        if common == 0 || n != m {
            return Ok(None);
        }
        at += common as u64;
    }
}

fn fill(file: &mut File, buffer: &mut [u8]) -> io::Result<usize> {
    let mut length = 0;
    while length < buffer.len() {
        match file.read(&mut buffer[length..]) {
            Ok(0) => break,
            Ok(more) => length += more,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(length)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Left by a run of these minutes.
    fn left(tree: &Path) -> Left<'_> {
        let minutes = Duration::from_secs(600);
        let now = SystemTime::now();
        Left { tree, span: Span { since: now - minutes, until: now + minutes } }
    }

    fn tree(files: &[(&str, &[u8])]) -> tempfile::TempDir {
        let tree = tempfile::tempdir().unwrap();
        for (name, content) in files {
            let path = tree.path().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, content).unwrap();
        }
        tree
    }

    #[test]
    fn a_copy_does_not_differ_from_its_original() {
        let original = tree(&[("a", b"1"), ("d/b", &[7; 600_000]), ("d/e/c", b"")]);
        fs::set_permissions(original.path().join("a"), fs::Permissions::from_mode(0o500)).unwrap();
        std::os::unix::fs::symlink("a", original.path().join("link")).unwrap();
        let place = tempfile::tempdir().unwrap();
        let copied = place.path().join("copy");
        copy(original.path(), &copied, Some(&original.path().join("d/e"))).unwrap();
        let found = differences(left(original.path()), left(&copied)).unwrap();
        assert_eq!(found.keys().collect::<Vec<_>>(), [Path::new("d/e"), Path::new("d/e/c")]);
    }

    #[test]
    fn a_file_no_run_touched_is_the_same_however_long_before_a_run_it_was_written() {
        let (old, new) = (tree(&[("mine", b"x")]), tree(&[("mine", b"x")]));
        let time = fs::metadata(old.path().join("mine")).unwrap().modified().unwrap();
        let file = File::options().write(true).open(new.path().join("mine")).unwrap();
        file.set_modified(time).unwrap();
        let begun = |since: SystemTime| Span { since, until: since + Duration::from_secs(600) };
        let first = Left { tree: old.path(), span: begun(time) };
        let second = Left { tree: new.path(), span: begun(time + Duration::from_secs(5)) };
        assert!(differences(first, second).unwrap().is_empty());
    }

    #[test]
    fn every_kind_of_difference_is_found_and_placed() {
        let mut large = vec![7; 600_000];
        let old =
            tree(&[("same", b"x"), ("gone", b"x"), ("longer", b"xy"), ("deep/large", &large)]);
        large[500_000] = 8;
        let new =
            tree(&[("same", b"x"), ("extra", b"x"), ("longer", b"xyz"), ("deep/large", &large)]);
        let found = differences(left(old.path()), left(new.path())).unwrap();
        let found: Vec<_> = found.iter().map(|(k, v)| (k.to_str().unwrap(), v.as_str())).collect();
        assert_eq!(
            found,
            [
                ("deep/large", "differs from byte 500000 on"),
                ("extra", "is new"),
                ("gone", "is missing"),
                ("longer", "has 3 bytes instead of 2"),
            ]
        );
    }

    #[test]
    fn times_a_program_has_set_are_compared_and_times_of_the_clock_are_not() {
        let names = ["same", "clock", "undone", "other"].map(|name| (name, &b"x"[..]));
        let (old, new) = (tree(&names), tree(&names));
        let set = |place: &tempfile::TempDir, name: &str, seconds: u64| {
            let time = UNIX_EPOCH + Duration::from_secs(seconds);
            let file = File::options().write(true).open(place.path().join(name)).unwrap();
            file.set_modified(time).unwrap();
        };
        set(&old, "same", 1_000_000_000);
        set(&new, "same", 1_000_000_000);
        set(&old, "undone", 1_000_000_000);
        set(&old, "other", 1_000_000_000);
        set(&new, "other", 1_000_000_001);
        let found = differences(left(old.path()), left(new.path())).unwrap();
        let found: Vec<_> = found.iter().map(|(k, v)| (k.to_str().unwrap(), v.as_str())).collect();
        assert_eq!(
            found,
            [
                (
                    "other",
                    "has modification time 1000000001.000000000 instead of 1000000000.000000000"
                ),
                ("undone", "has modification time the clock's instead of 1000000000.000000000"),
            ]
        );
    }

    #[test]
    fn counting_stops_at_the_limit() {
        let many = tree(&[("a", b"12"), ("b", b"34"), ("c", b"56")]);
        let limit = Extent { entries: 100, bytes: 3 };
        assert!(extent(many.path(), limit).unwrap().bytes > 3);
        let limit = Extent { entries: 100, bytes: 100 };
        assert_eq!(extent(many.path(), limit).unwrap(), Extent { entries: 3, bytes: 6 });
    }
}
