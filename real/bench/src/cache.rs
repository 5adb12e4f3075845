//! The state of the page cache before a timed read: wanted, brought about, and looked at.
//!
//! Cold means: everything written is on the device and dropped from the cache. `posix_fadvise`
//! does that for clean pages nobody maps; as root the whole cache can be dropped as well, which is
//! not done, as it would disturb everyone on the machine. What came of it is not believed but
//! looked at: a read that may not wait (RWF_NOWAIT) of some places tells what is cached.

use rustix::fs::{Advice, fadvise};
use rustix::io::{Errno, ReadWriteFlags, preadv2};
use serde::{Deserialize, Serialize};
use std::fs::File;
use std::io::IoSliceMut;
use std::num::NonZeroU64;
use std::path::Path;

/// What the caches hold before a timed read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum CacheState {
    /// Nothing of the file.
    Cold,
    /// All of it, as far as it fits.
    Warm,
    /// Does not matter: transfers go around it.
    Direct,
}

/// Brings the file into the state, as far as the system lets us, and says what was found.
pub(crate) fn prepare(path: &Path, wanted: CacheState) -> String {
    let Ok(file) = File::open(path) else { return "no file".to_owned() };
    let bytes = file.metadata().map(|metadata| metadata.len()).unwrap_or(0);
    match wanted {
        CacheState::Direct => return "around the cache".to_owned(),
        CacheState::Warm => read_all(&file, bytes),
        CacheState::Cold => {
            let _ = file.sync_all();
            let _ = fadvise(&file, 0, NonZeroU64::new(bytes), Advice::DontNeed);
        }
    }
    found(&file, bytes)
}

fn read_all(file: &File, bytes: u64) {
    use std::os::unix::fs::FileExt;
    let mut buffer = vec![0; 1 << 20];
    let mut offset = 0;
    while offset < bytes {
        match file.read_at(&mut buffer, offset) {
            Ok(read) if read > 0 => offset += read as u64,
            _ => return,
        }
    }
}

/// Looks at some places: how many of them are in the cache.
fn found(file: &File, bytes: u64) -> String {
    const PLACES: u64 = 64;
    let mut cached = 0;
    let mut byte = [0u8; 1];
    let places = PLACES.min(bytes);
    for place in 0..places {
        let offset = (u128::from(bytes) * u128::from(place) / u128::from(places)) as u64;
        let mut slices = [IoSliceMut::new(&mut byte)];
        match preadv2(file, &mut slices, offset, ReadWriteFlags::NOWAIT) {
            Ok(_) => cached += 1,
            Err(Errno::AGAIN) => {}
            Err(_) => return "unknown".to_owned(),
        }
    }
    match (cached, places) {
        (_, 0) => "empty".to_owned(),
        (0, _) => "cold".to_owned(),
        (all, _) if all == places => "warm".to_owned(),
        _ => format!("{} % cached", cached * 100 / places),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_just_read_is_found_warm_and_a_missing_one_is_no_file() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("data");
        std::fs::write(&path, vec![1; 1 << 20]).expect("written");
        let found = prepare(&path, CacheState::Warm);
        assert!(found == "warm" || found == "unknown", "{found}");
        assert_eq!(prepare(&folder.path().join("none"), CacheState::Cold), "no file");
    }
}
