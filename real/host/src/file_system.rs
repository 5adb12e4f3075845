//! Which file system a directory is on, by the magic number the kernel gives it.

use std::ffi::CString;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// Magic numbers of `statfs(2)`, those one meets on machines that compute: of linux/magic.h, and for file
/// systems outside the kernel as `stat -f` of GNU coreutils knows them.
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
    (0x4750_4653, "gpfs"),
    (0x1983_0326, "beegfs"),
    (0x00C3_6400, "ceph"),
    (0x2003_0528, "orangefs"),
    (0xAAD7_AAEA, "panfs"),
    (0x0116_1970, "gfs2"),
    (0xFE53_4D42, "smb2"),
    (0xFF53_4D42, "cifs"),
    (0x0102_1997, "9p"),
    (0x7371_7368, "squashfs"),
];

/// What is free for this user on the file system that `path` is on, in bytes; `None` where the system does not tell.
pub(crate) fn free_bytes(path: &Path) -> Option<u64> {
    let path = CString::new(path.as_os_str().as_bytes()).ok()?;
    // SAFETY: plain numbers, filled by the call for a terminated path.
    unsafe {
        let mut status = std::mem::zeroed::<libc::statvfs>();
        let asked = libc::statvfs(path.as_ptr(), &mut status);
        (asked == 0).then(|| status.f_bavail.saturating_mul(status.f_frsize))
    }
}

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
