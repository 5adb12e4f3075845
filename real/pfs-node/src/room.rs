//! How much of its device a server's subfiles have, and how much there is left for them.
//!
//! What is used is what `du` says of the subfiles: it is looked up once, and then kept by what each change
//! has made of the file it was made to. What a device gives or takes by itself later, as when it has given a
//! growing file more than it needs, is seen when the servers start again.

use crate::subfiles::{Result, code};
use iolab_pfs::Party;
use iolab_pfs::io_server::Outcome;
use iolab_vocab::Extent;
use rustix::fd::AsFd;
use rustix::fs::{SeekFrom, Stat};
use rustix::io::Errno;
use std::collections::BTreeMap;
use std::fs::File;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// What of a device is left alone, so that the manager of names can still write its journal.
const KEPT_BYTES: u64 = 4 << 20;
/// In which units devices give space at least.
const UNIT_BYTES: u64 = 4096;

/// Bytes of the device that subfiles have, as the threads that write and remove them know it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Used(Arc<AtomicU64>);

impl Used {
    /// Looks at all files below a directory.
    pub(crate) fn below(directory: &Path) -> std::io::Result<Used> {
        let mut bytes = 0;
        for folder in std::fs::read_dir(directory)? {
            let folder = folder?;
            if folder.file_type()?.is_dir() {
                for file in std::fs::read_dir(folder.path())? {
                    bytes += std::os::unix::fs::MetadataExt::blocks(&file?.metadata()?) * 512;
                }
            }
        }
        Ok(Used(Arc::new(AtomicU64::new(bytes))))
    }

    /// A file has so many bytes now instead of others.
    pub(crate) fn changed(&self, before: u64, now: u64) {
        let sum = |bytes: u64| Some((bytes + now).saturating_sub(before));
        let _ = self.0.fetch_update(Ordering::Relaxed, Ordering::Relaxed, sum);
    }

    pub(crate) fn bytes(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// What the servers of a host keep of their devices for what is not written yet. Where they share a device, as they mostly
/// do, each of them sees all that is free there: they look and promise one after the other, and no two the same.
#[derive(Clone, Debug, Default)]
pub(crate) struct Promises(Arc<Mutex<BTreeMap<Whose, u64>>>);

/// A device, and a server on it.
type Whose = (u64, Party);

/// Those of one server.
#[derive(Debug)]
pub(crate) struct Promised {
    all: Promises,
    whose: Whose,
    bytes: u64,
}

impl Promises {
    /// Those of a server whose files are below a directory.
    pub(crate) fn of(&self, server: Party, directory: impl AsFd) -> std::io::Result<Promised> {
        let device = rustix::fs::fstat(directory)?.st_dev;
        Ok(Promised { all: self.clone(), whose: (device, server), bytes: 0 })
    }
}

impl Promised {
    /// Looks how much room there is without what the others keep, and has it promised; nobody else does meanwhile. `promise` says
    /// how much is kept after it.
    pub(crate) fn look(
        &mut self,
        look: impl FnOnce() -> Result<Outcome>,
        promise: impl FnOnce(Result<Outcome>) -> u64,
    ) {
        let mut all = self.all.0.lock().unwrap_or_else(PoisonError::into_inner);
        let (device, server) = self.whose;
        let others = all.iter().filter(|((on, who), _)| *on == device && *who != server);
        let others: u64 = others.map(|(_, bytes)| bytes).sum();
        self.bytes = promise(look().map(|found| match found {
            Outcome::Room { free, used, missing, unit } => {
                Outcome::Room { free: free.saturating_sub(others), used, missing, unit }
            }
            found => found,
        }));
        all.insert(self.whose, self.bytes);
    }

    /// So much is kept now.
    pub(crate) fn now(&mut self, bytes: u64) {
        if std::mem::replace(&mut self.bytes, bytes) != bytes {
            let mut all = self.all.0.lock().unwrap_or_else(PoisonError::into_inner);
            all.insert(self.whose, bytes);
        }
    }
}

/// Bytes of the device that a file has.
pub(crate) fn bytes_of(stat: &Stat) -> u64 {
    stat.st_blocks as u64 * 512
}

/// How much room there is below a directory, and how much it would take to write these extents of a file; of
/// one that is not there yet, all of them.
pub(crate) fn look(
    directory: impl AsFd,
    used: u64,
    file: Option<&File>,
    extents: &[Extent],
) -> Result<Outcome> {
    let device = rustix::fs::fstatvfs(directory).map_err(code)?;
    let unit = device.f_frsize.max(UNIT_BYTES);
    let free = (device.f_bavail * device.f_frsize).saturating_sub(KEPT_BYTES);
    let mut missing = 0;
    for extent in extents {
        missing += missing_of(file, *extent, unit)?;
    }
    Ok(Outcome::Room { free, used, missing, unit })
}

/// Bytes of the units of an extent that have no place on the device.
fn missing_of(file: Option<&File>, extent: Extent, unit: u64) -> Result<u64> {
    let end = extent.end().div_ceil(unit).saturating_mul(unit);
    let mut at = extent.offset / unit * unit;
    let Some(file) = file else { return Ok(end - at) };
    let seek = |to| match rustix::fs::seek(file, to) {
        // Behind the last data there is a hole.
        Err(Errno::NXIO) => Ok(end),
        found => found.map_err(code),
    };
    let mut missing = 0;
    while at < end {
        let data = seek(SeekFrom::Data(at))?.clamp(at, end);
        missing += data - at;
        at = if data < end { seek(SeekFrom::Hole(data))?.clamp(data + 1, end) } else { end };
    }
    Ok(missing)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::FileExt;

    #[test]
    fn servers_of_one_device_promise_nothing_twice() {
        let directory = tempfile::tempdir().unwrap();
        let door = File::open(directory.path()).unwrap();
        let all = Promises::default();
        let [mut one, mut other] =
            [0, 1].map(|server| all.of(Party::Server(server), &door).unwrap());
        let found = || Ok(Outcome::Room { free: 100, used: 7, missing: 3, unit: 1 });
        let ask = |who: &mut Promised, keeps: u64| {
            let mut seen = 0;
            who.look(found, |told| match told {
                Ok(Outcome::Room { free, used: 7, missing: 3, unit: 1 }) => {
                    seen = free;
                    keeps
                }
                other => panic!("{other:?}"),
            });
            seen
        };
        assert_eq!(ask(&mut one, 60), 100);
        assert_eq!(ask(&mut other, 30), 40);
        assert_eq!(ask(&mut one, 70), 70, "its own is not in its way");
        one.now(10);
        assert_eq!(ask(&mut other, 0), 90);
        assert_eq!(ask(&mut one, 0), 100);
    }

    #[test]
    fn what_has_no_place_yet_is_told_in_units_of_the_device() {
        let directory = tempfile::tempdir().unwrap();
        let folder = directory.path().join("00");
        std::fs::create_dir(&folder).unwrap();
        let file = File::options();
        let file = file.clone().read(true).write(true).create(true).open(folder.join("x")).unwrap();
        file.write_all_at(b"x", 20 * UNIT_BYTES).unwrap();
        let door = File::open(directory.path()).unwrap();
        let missing = |file: Option<&File>, extents: &[Extent]| match look(&door, 7, file, extents)
        {
            Ok(Outcome::Room { used: 7, missing, unit, .. }) => missing / unit,
            other => panic!("{other:?}"),
        };
        assert_eq!(missing(None, &[Extent::new(1, 1), Extent::new(2 * UNIT_BYTES - 1, 2)]), 3);
        assert_eq!(missing(Some(&file), &[Extent::new(20 * UNIT_BYTES + 7, 9)]), 0);
        assert_eq!(missing(Some(&file), &[Extent::new(19 * UNIT_BYTES, 3 * UNIT_BYTES)]), 2);
        assert_eq!(missing(Some(&file), &[Extent::new(90 * UNIT_BYTES, 1)]), 1);
        assert_eq!(missing(Some(&file), &[]), 0);
        let used = Used::below(directory.path()).unwrap();
        let bytes = used.bytes();
        assert!((1..20 * UNIT_BYTES).contains(&bytes), "a hole takes nothing: {bytes}");
        used.changed(bytes, 3);
        assert_eq!(used.bytes(), 3);
        used.changed(9, 0);
        assert_eq!(used.bytes(), 0);
    }
}
