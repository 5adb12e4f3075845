//! Which plain names live in the file system: those that a run's globs choose.

use crate::files::name_of;
use std::env;
use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Component, Path, PathBuf};

/// Globs of files that live in the file system, one in a line.
pub const GLOBS: &str = "IOLAB_FS_FILES";
/// Links that the kernel follows from one name.
const LINKS_MAX: u32 = 40;

/// The names that are chosen.
#[derive(Clone, Debug, Default)]
pub struct Chosen(String);

impl Chosen {
    /// Those that globs choose, one in a line.
    pub fn by(globs: impl Into<String>) -> Chosen {
        Chosen(globs.into())
    }

    /// Those of the run that this process belongs to.
    pub fn here() -> Chosen {
        let globs = env::var_os(GLOBS).map(OsStringExt::into_vec).unwrap_or_default();
        Chosen(String::from_utf8_lossy(&globs).into_owned())
    }

    /// Whether an absolute path is chosen.
    pub fn holds(&self, path: &[u8]) -> bool {
        let mut globs = self.0.lines().filter(|glob| !glob.is_empty());
        globs.any(|glob| fast_glob::glob_match(glob, path))
    }

    /// The name in the file system of a plain file, if it is chosen. One that has several names over links
    /// is one file, where both are chosen.
    pub fn name(&self, plain: &Path) -> Option<Vec<u8>> {
        self.first_of(plain, real)
    }

    /// The same where the name itself is meant, also that of a link.
    pub fn name_itself(&self, plain: &Path) -> Option<Vec<u8>> {
        self.first_of(plain, |path| {
            let real = || Some(path.parent()?.canonicalize().ok()?.join(path.file_name()?));
            real().unwrap_or_else(|| path.to_owned())
        })
    }

    fn first_of(&self, plain: &Path, real: impl FnOnce(&Path) -> PathBuf) -> Option<Vec<u8>> {
        let path = name_of(&climbed(plain), Path::new("/"));
        let real = real(Path::new(OsStr::from_bytes(&path))).into_os_string().into_vec();
        [real, path].into_iter().find(|path| self.holds(path))
    }
}

/// A path without what the file system's paths have not.
pub fn normal(path: &Path) -> Vec<u8> {
    name_of(path, &env::current_dir().unwrap_or_else(|_| "/".into()))
}

/// The same path, absolute, without `..`: where that leads behind a link is the kernel's to say.
fn climbed(path: &Path) -> PathBuf {
    let whole = env::current_dir().unwrap_or_else(|_| "/".into()).join(path);
    let up = |it: &Component<'_>| *it == Component::ParentDir;
    let names: Vec<_> = whole.components().collect();
    let Some(last) = names.iter().rposition(up) else { return whole };
    let (way, rest) = names.split_at(last + 1);
    match way.iter().collect::<PathBuf>().canonicalize() {
        Ok(place) => place.join(rest.iter().collect::<PathBuf>()),
        Err(_) => whole,
    }
}

/// The path over no links, of a file that may only come to be.
fn real(path: &Path) -> PathBuf {
    let mut path = path.to_owned();
    for _ in 0..LINKS_MAX {
        if let Ok(real) = path.canonicalize() {
            return real;
        }
        let (Some(parent), Some(name)) = (path.parent(), path.file_name()) else { return path };
        let Ok(parent) = parent.canonicalize() else { return path };
        match fs::read_link(&path) {
            Ok(target) => path = parent.join(target),
            Err(_) => return parent.join(name),
        }
    }
    path
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    fn path(name: &str, globs: &str) -> Option<String> {
        Chosen::by(globs).name(Path::new(name)).map(|path| String::from_utf8(path).unwrap())
    }

    #[test]
    fn a_file_has_one_name_over_links_where_both_are_chosen() {
        let folder = tempfile::tempdir().unwrap();
        let place = folder.path().canonicalize().unwrap();
        fs::create_dir(place.join("real")).unwrap();
        symlink("real", place.join("link")).unwrap();
        let [real, link] = ["real", "link"].map(|name| format!("{}/{name}/x", place.display()));
        let all = format!("{}/**", place.display());
        assert_eq!(path(&link, &all), Some(real.clone()));
        assert_eq!(path(&real, &all), Some(real.clone()));
        assert_eq!(path(&link, &link), Some(link));
        // The file is made where the link leads, so that is its name before it is there, too.
        symlink("real/x", place.join("ahead")).unwrap();
        assert_eq!(path(&format!("{}/ahead", place.display()), &all), Some(real));
    }

    #[test]
    fn a_way_up_behind_a_link_leads_where_the_kernel_goes() {
        let folder = tempfile::tempdir().unwrap();
        let place = folder.path().canonicalize().unwrap();
        fs::create_dir_all(place.join("deep/inner")).unwrap();
        symlink("deep/inner", place.join("link")).unwrap();
        let at = |name: &str| format!("{}/{name}", place.display());
        let all = at("**");
        assert_eq!(path(&at("link/../x"), &all), Some(at("deep/x")));
        assert_eq!(path(&at("link/../x"), &at("*")), None);
        assert_eq!(path(&at("deep/inner/../../x"), &all), Some(at("x")));
        assert_eq!(path(&at("gone/../x"), &all), Some(at("x")));
    }
}
