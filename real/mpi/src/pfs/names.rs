//! Which names are files of the parallel file system.

use crate::family::Family;
use std::borrow::Cow;
use std::ffi::OsStr;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Component, Path, PathBuf};

/// What a name that says so itself begins with.
const PREFIX: &[u8] = b"iolab:";
/// Globs of files that live in the file system, one in a line.
const GLOBS: &str = "IOLAB_FS_FILES";

/// A file of the parallel file system.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Name {
    /// Its path: absolute, without `.`, `..` and empty names.
    pub(super) path: Vec<u8>,
    /// Its name said so itself: the host knows nothing of it.
    pub(super) only_here: bool,
}

/// The file a name stands for, if it is one of ours.
pub(super) fn ours(name: &[u8], family: &Family) -> Option<Name> {
    let globs = std::env::var_os(GLOBS).map(OsStringExt::into_vec).unwrap_or_default();
    chosen(name, &String::from_utf8_lossy(&globs), family)
}

fn chosen(name: &[u8], globs: &str, family: &Family) -> Option<Name> {
    if let Some(rest) = name.strip_prefix(PREFIX) {
        return Some(Name { path: normal(rest), only_here: true });
    }
    let path = normal(&crate::files::path_of(name, family));
    let is_chosen = globs
        .lines()
        .filter(|glob| !glob.is_empty())
        .any(|glob| fast_glob::glob_match(glob, path.as_slice()));
    is_chosen.then_some(Name { path, only_here: false })
}

/// A path without what the file system's paths have not. Links are not followed.
fn normal(path: &[u8]) -> Vec<u8> {
    let path = Path::new(OsStr::from_bytes(path));
    let absolute = std::path::absolute(path).unwrap_or_else(|_| Path::new("/").join(path));
    let mut normal = PathBuf::from("/");
    for component in absolute.components() {
        match component {
            Component::ParentDir => drop(normal.pop()),
            Component::Normal(name) => normal.push(name),
            _ => {}
        }
    }
    normal.into_os_string().into_vec()
}

/// A path for people.
pub(super) fn shown(path: &[u8]) -> Cow<'_, str> {
    String::from_utf8_lossy(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn path(name: &str, globs: &str) -> Option<String> {
        let name = chosen(name.as_bytes(), globs, Family::here())?;
        Some(String::from_utf8(name.path).unwrap())
    }

    #[test]
    fn names_are_ours_by_their_prefix_or_by_a_glob() {
        assert_eq!(path("iolab:/a//b/../c", ""), Some("/a/c".to_owned()));
        assert_eq!(path("/scratch/run/x.dat", ""), None);
        assert_eq!(path("/scratch/x", "/other/**\n/scratch/**"), Some("/scratch/x".to_owned()));
        assert_eq!(path("ufs:/scratch/./x", "/scratch/*"), Some("/scratch/x".to_owned()));
        assert_eq!(path("/scratch/run/x", "/scratch/*"), None);
        let here = std::env::current_dir().unwrap().join("x");
        assert_eq!(path("x", "**"), Some(here.to_str().unwrap().to_owned()));
    }
}
