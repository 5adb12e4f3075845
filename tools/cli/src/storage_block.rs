//! The block or stripe of the storage that files lie on, for `block=auto`: looked up once, by whoever
//! starts, so that all processes of a run have the same.

use crate::profile;
use iolab_policy::insitu::{Selection, StrategySpec};
use rustix::fs;
use std::path::Path;

/// How a user leaves it to the storage.
pub(crate) const ASKED: &str = "block=auto";
/// Where storage says nothing, and where it has blocks of pages only, whose edges cost nothing.
pub(crate) const USUAL_BYTES: u64 = 1 << 20;
/// Blocks up to this long are those of a page cache or of a local file system.
const PAGES_BYTES: u64 = 64 << 10;
/// Type of Lustre's file systems, as `statfs` tells.
const LUSTRE: u64 = 0x0bd0_0bd0;
/// How a plain layout of Lustre begins, versions 1 and 3; the stripe's size is at byte 24 of both.
const LAYOUTS: [u32; 2] = [0x0bd1_0bd0, 0x0bd3_0bd0];

/// The block of the storage that a selection's files lie on, relative globs counted from the working directory.
pub(crate) fn of_selection() -> impl Fn(&Selection) -> Option<u64> {
    // One that was removed lies somewhere all the same.
    let here = profile::working_directory().unwrap_or_else(|_| ".".to_owned());
    move |selection: &Selection| {
        let rooted = selection.rooted(&here);
        let named = rooted.paths.iter().filter_map(|glob| plain_directory(glob));
        Some(named.map(of_directory).max().unwrap_or_else(|| of_directory(&here)))
    }
}

/// The block of the storage that a directory lies on, or will lie on once it is made.
pub(crate) fn of_directory(directory: impl AsRef<Path>) -> u64 {
    let existing = directory.as_ref().ancestors().find(|it| it.exists()).unwrap_or(Path::new("."));
    let stripe = match fs::statfs(existing) {
        Ok(status) if status.f_type as u64 == LUSTRE => lustre_stripe(existing),
        _ => None,
    };
    let block = || fs::stat(existing).map_or(0, |status| status.st_blksize as u64);
    stripe.unwrap_or_else(|| judged(block()))
}

/// What block a strategy has, for the user who left it to the storage.
pub(crate) fn told(spec: &StrategySpec) -> Option<String> {
    let (_, block) = spec.parameters.iter().find(|(key, _)| key == "block")?;
    Some(format!("{}: block={block} bytes, by the storage of its files", spec.name))
}

/// What is to be made of the block a file system reports.
fn judged(reported: u64) -> u64 {
    if reported > PAGES_BYTES { reported } else { USUAL_BYTES }
}

/// The stripe that files of a directory get, where it has a plain layout of its own.
fn lustre_stripe(directory: &Path) -> Option<u64> {
    let mut layout = [0; 4096];
    let bytes = fs::getxattr(directory, c"lustre.lov", &mut layout).ok()?;
    stripe_of_layout(layout.get(..bytes)?)
}

fn stripe_of_layout(layout: &[u8]) -> Option<u64> {
    let word = |at: usize| {
        let bytes = layout.get(at..at + 4)?;
        Some(u32::from_ne_bytes(bytes.try_into().ok()?))
    };
    let stripe = word(24).filter(|&stripe| stripe > 0)?;
    LAYOUTS.contains(&word(0)?).then_some(u64::from(stripe))
}

/// The directory every path lies in that a glob matches, as far as it is plain text.
fn plain_directory(glob: &str) -> Option<&str> {
    let special = glob.find(['*', '?', '[', '{', '\\']).unwrap_or(glob.len());
    let end = glob[..special].rfind('/')?;
    glob.starts_with('/').then_some(&glob[..end.max(1)])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_of_pages_say_nothing_about_storage() {
        assert_eq!(judged(0), USUAL_BYTES);
        assert_eq!(judged(4096), USUAL_BYTES);
        assert_eq!(judged(512 << 10), 512 << 10);
        assert_eq!(judged(16 << 20), 16 << 20);
    }

    #[test]
    fn a_plain_layout_of_lustre_tells_its_stripe_and_others_nothing() {
        let layout = |magic: u32, stripe: u32| {
            let mut bytes = vec![0; 32];
            bytes[..4].copy_from_slice(&magic.to_ne_bytes());
            bytes[24..28].copy_from_slice(&stripe.to_ne_bytes());
            bytes
        };
        for magic in LAYOUTS {
            assert_eq!(stripe_of_layout(&layout(magic, 4 << 20)), Some(4 << 20));
            assert_eq!(stripe_of_layout(&layout(magic, 0)), None);
        }
        // A composite layout.
        assert_eq!(stripe_of_layout(&layout(0x0bd6_0bd0, 4 << 20)), None);
        assert_eq!(stripe_of_layout(&layout(LAYOUTS[0], 4 << 20)[..20]), None);
    }

    #[test]
    fn globs_say_where_their_files_lie() {
        assert_eq!(plain_directory("/a/b/*.chk"), Some("/a/b"));
        assert_eq!(plain_directory("/a/b"), Some("/a"));
        assert_eq!(plain_directory("/*.chk"), Some("/"));
        assert_eq!(plain_directory("**/x"), None);
        assert_eq!(plain_directory("*.chk"), None);
    }
}
