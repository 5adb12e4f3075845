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
    let is_chosen = |path: &[u8]| {
        let mut globs = globs.lines().filter(|glob| !glob.is_empty());
        globs.any(|glob| fast_glob::glob_match(glob, path))
    };
    // A file that has several names over links is one file, where both are chosen.
    let path =
        Some(real(&path)).filter(|real| is_chosen(real)).or(is_chosen(&path).then_some(path));
    path.map(|path| Name { path, only_here: false })
}

/// The path over no links, of a file that may only come to be.
fn real(path: &[u8]) -> Vec<u8> {
    let path = Path::new(OsStr::from_bytes(path));
    let parent = || Some(path.parent()?.canonicalize().ok()?.join(path.file_name()?));
    let real = path.canonicalize().ok().or_else(parent);
    real.unwrap_or_else(|| path.to_owned()).into_os_string().into_vec()
}

/// A path without what the file system's paths have not.
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
    #[test]
    fn a_file_has_one_name_over_links_where_both_are_chosen() {
        let folder = tempfile::tempdir().unwrap();
        let place = folder.path().canonicalize().unwrap();
        std::fs::create_dir(place.join("real")).unwrap();
        std::os::unix::fs::symlink("real", place.join("link")).unwrap();
        let [real, link] = ["real", "link"].map(|name| format!("{}/{name}/x", place.display()));
        let all = format!("{}/**", place.display());
        assert_eq!(path(&link, &all), Some(real.clone()));
        assert_eq!(path(&real, &all), Some(real.clone()));
        assert_eq!(path(&link, &link), Some(link));
    }
}
