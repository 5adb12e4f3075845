//! What the system says of a file, in the words of FUSE and back.

use fuser::{FileAttr, FileType, INodeNo, TimeOrNow};
use rustix::fs::{Stat, Timespec, UTIME_NOW, UTIME_OMIT};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// The attributes of a file under that number.
pub(crate) fn attributes(stat: &Stat, number: u64) -> FileAttr {
    let changed = time(stat.st_ctime, stat.st_ctime_nsec);
    FileAttr {
        ino: INodeNo(number),
        size: stat.st_size as u64,
        blocks: stat.st_blocks as u64,
        atime: time(stat.st_atime, stat.st_atime_nsec),
        mtime: time(stat.st_mtime, stat.st_mtime_nsec),
        ctime: changed,
        crtime: changed,
        kind: kind(rustix::fs::FileType::from_raw_mode(stat.st_mode)),
        perm: (stat.st_mode & 0o7777) as u16,
        nlink: stat.st_nlink as u32,
        uid: stat.st_uid,
        gid: stat.st_gid,
        rdev: device_number(stat.st_rdev),
        blksize: stat.st_blksize as u32,
        flags: 0,
    }
}

/// What the line of a directory alone says of a file: its number and type.
pub(crate) fn unknown(number: u64, kind: FileType) -> FileAttr {
    FileAttr {
        ino: INodeNo(number),
        size: 0,
        blocks: 0,
        atime: UNIX_EPOCH,
        mtime: UNIX_EPOCH,
        ctime: UNIX_EPOCH,
        crtime: UNIX_EPOCH,
        kind,
        perm: 0,
        nlink: 1,
        uid: 0,
        gid: 0,
        rdev: 0,
        blksize: 0,
        flags: 0,
    }
}

/// The type of a file; what the system has no name for is shown as a regular file.
pub(crate) fn kind(of: rustix::fs::FileType) -> FileType {
    match of {
        rustix::fs::FileType::Directory => FileType::Directory,
        rustix::fs::FileType::Symlink => FileType::Symlink,
        rustix::fs::FileType::Fifo => FileType::NamedPipe,
        rustix::fs::FileType::Socket => FileType::Socket,
        rustix::fs::FileType::CharacterDevice => FileType::CharDevice,
        rustix::fs::FileType::BlockDevice => FileType::BlockDevice,
        _ => FileType::RegularFile,
    }
}

fn time(seconds: i64, nanoseconds: u64) -> SystemTime {
    let fraction = Duration::from_nanos(nanoseconds);
    match seconds {
        0.. => UNIX_EPOCH + Duration::from_secs(seconds as u64) + fraction,
        _ => UNIX_EPOCH - Duration::from_secs(seconds.unsigned_abs()) + fraction,
    }
}

/// A time to set. Before 1970, `fuser` hands over seconds and nanoseconds both counted backwards.
pub(crate) fn timespec(time: Option<TimeOrNow>) -> Timespec {
    let (tv_sec, tv_nsec) = match time {
        None => (0, UTIME_OMIT),
        Some(TimeOrNow::Now) => (0, UTIME_NOW),
        Some(TimeOrNow::SpecificTime(time)) => match time.duration_since(UNIX_EPOCH) {
            Ok(after) => (after.as_secs() as i64, i64::from(after.subsec_nanos())),
            Err(before) => {
                let before = before.duration();
                (-(before.as_secs() as i64), i64::from(before.subsec_nanos()))
            }
        },
    };
    Timespec { tv_sec, tv_nsec }
}

/// Device numbers travel in 32 bits: 12 of the major number between 8 and 12 of the minor.
fn device_number(device: u64) -> u32 {
    let (major, minor) = (rustix::fs::major(device), rustix::fs::minor(device));
    (minor & 0xff) | (major << 8) | ((minor & !0xff) << 12)
}

/// The device number the system takes.
pub(crate) fn device(number: u32) -> u64 {
    let (major, minor) = ((number >> 8) & 0xfff, (number & 0xff) | ((number >> 12) & 0xf_ff00));
    rustix::fs::makedev(major, minor)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn device_numbers_survive_the_way_to_the_kernel_and_back() {
        for (major, minor) in [(1, 3), (8, 255), (259, 70_000), (4095, 1_048_575)] {
            let there = rustix::fs::makedev(major, minor);
            assert_eq!(device(device_number(there)), there, "{major}:{minor}");
        }
    }

    #[test]
    fn times_before_1970_keep_their_fraction() {
        let before = time(-2, 750_000_000);
        assert_eq!(UNIX_EPOCH.duration_since(before).unwrap(), Duration::from_millis(1250));
        // As `fuser` reads (-2 s, 750 ms) off the wire.
        let wire = UNIX_EPOCH - Duration::new(2, 750_000_000);
        let spec = timespec(Some(TimeOrNow::SpecificTime(wire)));
        assert_eq!((spec.tv_sec, spec.tv_nsec), (-2, 750_000_000));
    }
}
