//! From numbers to files: every open and every call by path got a number of its own; those of one
//! path are one file.

use super::gather::Gathered;
use crate::spool::NO_PATH;
use crate::{Class, Event, FileEntry, Function, Header};
use iolab_vocab::FileId;
use std::collections::BTreeMap;

/// Files by number; numbers are handed out densely from 1.
#[derive(Debug, Default)]
struct Numbers {
    files: Vec<FileId>,
}

impl Numbers {
    fn get(&self, number: i64) -> FileId {
        usize::try_from(number)
            .ok()
            .and_then(|at| self.files.get(at))
            .copied()
            .unwrap_or(FileId::NONE)
    }
}

/// Puts files into the header and into the events. `Event::file` keeps the description's number
/// until `positions` has used it; what it stands for is in `Gathered::file_of`.
pub(super) fn resolve(gathered: &mut Gathered, header: &mut Header) {
    let mut by_path: BTreeMap<String, FileId> = BTreeMap::new();
    let mut numbers = Numbers::default();
    for (&number, parts) in &mut gathered.names {
        let name = whole(parts);
        if let Some(text) = name.strip_prefix(NO_PATH as char) {
            gathered.texts.insert(number, text.to_owned());
            continue;
        }
        let id = intern(tidy(&name), &mut by_path, header);
        let at = number as usize;
        if at >= numbers.files.len() && at <= gathered.events.len().saturating_add(1 << 20) * 4 {
            numbers.files.resize(at + 1, FileId::NONE);
        }
        if let Some(file) = numbers.files.get_mut(at) {
            *file = id;
        }
    }
    gathered.names.clear();
    gathered.events.iter_mut().for_each(|event| resolve_argument(event, &numbers));
    gathered.file_of = numbers.files;
}

fn whole(parts: &mut [(usize, Vec<u8>)]) -> String {
    parts.sort_by_key(|(index, _)| *index);
    let bytes: Vec<u8> = parts.iter().flat_map(|(_, text)| text.iter().copied()).collect();
    String::from_utf8_lossy(&bytes).into_owned()
}

/// The path without `.` and doubled slashes; `..` stays, since only the kernel knows where it leads.
fn tidy(path: &str) -> String {
    if !path.starts_with('/') {
        return path.to_owned();
    }
    let parts: Vec<_> = path.split('/').filter(|part| !part.is_empty() && *part != ".").collect();
    format!("/{}", parts.join("/"))
}

fn intern(path: String, by_path: &mut BTreeMap<String, FileId>, header: &mut Header) -> FileId {
    if let Some(&id) = by_path.get(&path) {
        return id;
    }
    let id = FileId(header.files.len() as u32);
    let file_system = file_system(&path, &header.mounts);
    header.files.push(FileEntry { path: path.clone(), file_system });
    by_path.insert(path, id);
    id
}

/// Type of the file system a path is on: that of the longest mount point above it.
fn file_system(path: &str, mounts: &BTreeMap<String, String>) -> String {
    let above = |mount: &str| {
        mount == "/"
            || path.strip_prefix(mount).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    };
    let longest =
        mounts.iter().filter(|(mount, _)| above(mount)).max_by_key(|(mount, _)| mount.len());
    longest.map_or(String::new(), |(_, kind)| kind.clone())
}

/// Where the argument names another file, the file takes the place of its number. The target of a
/// copy stays a number until its position has been followed.
fn resolve_argument(event: &mut Event, numbers: &Numbers) {
    if event.function.class() == Class::Rename {
        event.argument = as_argument(numbers.get(event.argument));
    }
}

/// A file as the argument of an event, -1 for none.
pub(super) fn as_argument(file: FileId) -> i64 {
    file.index().map_or(-1, |index| index as i64)
}

/// Whether an event's number is a name of its own and no description.
pub(super) fn is_by_path(function: Function) -> bool {
    function.row().is_some_and(|row| row.arguments.contains(&"path"))
        && function.class() != Class::Open
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_tidied_but_not_guessed_at() {
        assert_eq!(tidy("/a//b/./c/"), "/a/b/c");
        assert_eq!(tidy("/a/../b"), "/a/../b");
        assert_eq!(tidy("ls"), "ls");
    }

    #[test]
    fn the_longest_mount_point_above_a_file_counts() {
        let mounts = [("/", "ext4"), ("/tmp", "tmpfs"), ("/tmpx", "xfs")];
        let mounts = mounts.map(|(point, kind)| (point.to_owned(), kind.to_owned())).into();
        assert_eq!(file_system("/tmp/a", &mounts), "tmpfs");
        assert_eq!(file_system("/tmpfile", &mounts), "ext4");
    }
}
