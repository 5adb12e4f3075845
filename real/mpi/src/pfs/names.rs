//! Which names are files of the parallel file system.

use crate::family::Family;
use iolab_pfs_node::chosen::{Chosen, normal};
use std::borrow::Cow;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

/// What a name that says so itself begins with.
const PREFIX: &[u8] = b"iolab:";

/// A file of the parallel file system.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Name {
    /// Its path: absolute, without `.`, `..` and empty names.
    pub(super) path: Vec<u8>,
    /// As the program said it, absolute: what a kernel would make of it, with its `..` and a slash at its end.
    pub(super) host: PathBuf,
    /// Its name said so itself: the host knows nothing of it.
    pub(super) only_here: bool,
}

/// The file a name stands for, if it is one of ours.
pub(super) fn ours(name: &[u8], family: &Family) -> Option<Name> {
    among(name, &Chosen::here(), family)
}

fn among(name: &[u8], chosen: &Chosen, family: &Family) -> Option<Name> {
    let path = |name| Path::new(OsStr::from_bytes(name));
    if let Some(rest) = name.strip_prefix(PREFIX) {
        return Some(Name { path: normal(path(rest)), host: PathBuf::new(), only_here: true });
    }
    let host = PathBuf::from(OsString::from_vec(crate::files::path_of(name, family)));
    let path = chosen.name(&host)?;
    Some(Name { path, host, only_here: false })
}

/// A path for people.
pub(super) fn shown(path: &[u8]) -> Cow<'_, str> {
    String::from_utf8_lossy(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn path(name: &str, globs: &str) -> Option<String> {
        let name = among(name.as_bytes(), &Chosen::by(globs), Family::here())?;
        Some(String::from_utf8(name.path).unwrap())
    }

    #[test]
    fn names_are_ours_by_their_prefix_or_by_a_glob() {
        assert_eq!(path("iolab:/a//b/../c", ""), Some("/a/c".to_owned()));
        assert_eq!(path("/scratch/run/x.dat", ""), None);
        assert_eq!(path("/scratch/x", "/other/**\n/scratch/**"), Some("/scratch/x".to_owned()));
        assert_eq!(path("ufs:/scratch/./x", "/scratch/*"), Some("/scratch/x".to_owned()));
        assert_eq!(path("/scratch/run/x", "/scratch/*"), None);
        // Names that differ before their last colon are two files.
        let there =
            |name: &str| path(name, "**").map(|path| path.rsplit('/').next().unwrap().to_owned());
        assert_eq!(there("12:00:00"), Some("12:00:00".to_owned()));
        assert_eq!(there("a_12:x"), Some("a_12:x".to_owned()));
        assert_eq!(there(":x"), Some(":x".to_owned()));
        assert_eq!(there("UFS:x:y"), Some("x:y".to_owned()));
        let here = std::env::current_dir().unwrap().join("x");
        assert_eq!(path("x", "**"), Some(here.to_str().unwrap().to_owned()));
    }
}
