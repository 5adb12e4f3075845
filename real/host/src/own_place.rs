//! A directory that is this user's alone, for what must not be read or replaced by others.
//!
//! Shared places (`/dev/shm`, `/tmp`) let anybody make names first. So a name counts only when what
//! it stands for is a directory, not a link, owned by this user and closed to everyone else;
//! otherwise the next place is tried. What is made inside needs no secret name.

use std::fs::{self, DirBuilder, Permissions};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::{env, io};

/// The user's own directory below `parent`, made when it is not there.
///
/// # Errors
/// What the system says, or that somebody else has the name.
pub fn below(parent: &Path) -> io::Result<PathBuf> {
    // SAFETY: takes nothing and cannot fail.
    let user = unsafe { libc::geteuid() };
    let directory = parent.canonicalize()?.join(format!("iolab-{user}"));
    match DirBuilder::new().mode(0o700).create(&directory) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
        _ => {}
    }
    let found = fs::symlink_metadata(&directory)?;
    if !found.is_dir() || found.uid() != user {
        let problem = format!("{} belongs to somebody else", directory.display());
        return Err(io::Error::new(io::ErrorKind::PermissionDenied, problem));
    }
    if found.mode() & 0o777 != 0o700 {
        // The user's own directory, so its mode is ours to set.
        fs::set_permissions(&directory, Permissions::from_mode(0o700))?;
    }
    Ok(directory)
}

/// The same in the first place of this node where there may be one.
///
/// # Errors
/// What the last of them says.
pub fn on_this_node() -> io::Result<PathBuf> {
    let home = env::var_os("HOME").map(|home| PathBuf::from(home).join(".cache"));
    let runtime = env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from);
    let places = ["/dev/shm", "/tmp", "/var/tmp"].map(PathBuf::from);
    let mut last = Err(io::Error::from(io::ErrorKind::NotFound));
    for place in places.into_iter().chain(runtime).chain(home) {
        last = below(&place);
        if last.is_ok() {
            break;
        }
    }
    last
}

/// Makes a directory below `parent` with a name nobody can foresee, closed to others.
///
/// # Errors
/// What the system says.
pub fn make(parent: &Path, name: &str) -> io::Result<PathBuf> {
    let parent = parent.canonicalize()?;
    for _ in 0..64 {
        let directory = parent.join(format!("{name}-{:016x}", random()?));
        match DirBuilder::new().mode(0o700).create(&directory) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            made => return made.map(|()| directory),
        }
    }
    Err(io::Error::from(io::ErrorKind::AlreadyExists))
}

fn random() -> io::Result<u64> {
    let mut bytes = [0; 8];
    // SAFETY: eight bytes of this frame; so few come whole once the system is up.
    let got = unsafe { libc::getrandom(bytes.as_mut_ptr().cast(), bytes.len(), 0) };
    if got == bytes.len() as isize {
        Ok(u64::from_ne_bytes(bytes))
    } else {
        Err(io::Error::last_os_error())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    #[test]
    fn the_own_directory_is_closed_and_found_again() {
        let parent = tempfile::tempdir().unwrap();
        let first = below(parent.path()).unwrap();
        assert_eq!(fs::metadata(&first).unwrap().mode() & 0o777, 0o700);
        fs::set_permissions(&first, Permissions::from_mode(0o755)).unwrap();
        assert_eq!(below(parent.path()).unwrap(), first);
        assert_eq!(fs::metadata(&first).unwrap().mode() & 0o777, 0o700);
    }

    #[test]
    fn a_link_or_a_file_of_that_name_is_not_followed() {
        let parent = tempfile::tempdir().unwrap();
        let elsewhere = tempfile::tempdir().unwrap();
        let name = below(parent.path()).unwrap();
        fs::remove_dir(&name).unwrap();
        symlink(elsewhere.path(), &name).unwrap();
        assert!(below(parent.path()).is_err());
        fs::remove_file(&name).unwrap();
        fs::write(&name, "").unwrap();
        assert!(below(parent.path()).is_err());
    }

    #[test]
    fn names_that_are_made_differ() {
        let parent = tempfile::tempdir().unwrap();
        let (a, b) = (make(parent.path(), "x").unwrap(), make(parent.path(), "x").unwrap());
        assert_ne!(a, b);
        assert_eq!(fs::metadata(&a).unwrap().mode() & 0o777, 0o700);
    }
}
