//! Which file system a directory is on, by the magic number the kernel gives it.

use std::ffi::CString;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// Magic numbers of `statfs(2)`, those one meets on machines that compute.
const NAMES: &[(i64, &str)] = &[
    (0xEF53, "ext4"),
    (0x0102_1994, "tmpfs"),
    (0x5846_5342, "xfs"),
    (0x9123_683E, "btrfs"),
    (0x794C_7630, "overlay"),
    (0x6969, "nfs"),
    (0x0BD0_0BD0, "lustre"),
    (0x2FC1_2FC1, "zfs"),
    (0x6573_5546, "fuse"),
    (0xF2F5_2010, "f2fs"),
];

/// Name of the file system `path` is on; its magic number in hexadecimal when it has no name here.
pub fn file_system_of(path: &Path) -> io::Result<String> {
    let path = CString::new(path.as_os_str().as_bytes())?;
    // SAFETY: a statfs is plain numbers, for which zero is a value.
    let mut status: libc::statfs = unsafe { std::mem::zeroed() };
    // SAFETY: the path ends with a zero byte and `status` is a statfs of this frame.
    if unsafe { libc::statfs(path.as_ptr(), &mut status) } != 0 {
        return Err(io::Error::last_os_error());
    }
    let magic = status.f_type as i64 & 0xFFFF_FFFF;
    let known = NAMES.iter().find(|(number, _)| *number == magic);
    Ok(known.map_or_else(|| format!("{magic:#x}"), |(_, name)| (*name).to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_directory_that_does_not_exist_is_on_no_file_system() {
        assert!(file_system_of(Path::new("/nowhere/at/all")).is_err());
        assert!(!file_system_of(Path::new("/")).unwrap().is_empty());
    }
}
