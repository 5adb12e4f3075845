//! Directories with many small files, for rules about calls and about counters alike.

use std::collections::BTreeMap;

/// So many of them in a directory are too many.
const MANY_FILES: usize = 100;
/// A file below this costs more to open than to read or write.
pub(crate) const SMALL_FILE_BYTES: u64 = 64 << 10;

/// The directory that most of these files are in, with them, if they are many.
pub(crate) fn crowded_directory<'a, T>(
    files: impl Iterator<Item = &'a T>,
    path: impl Fn(&'a T) -> &'a str,
) -> Option<(&'a str, Vec<&'a T>)> {
    let mut directories: BTreeMap<&str, Vec<&T>> = BTreeMap::new();
    for file in files {
        let directory = path(file).rsplit_once('/').map_or("", |(directory, _)| directory);
        directories.entry(directory).or_default().push(file);
    }
    let fullest = directories.into_iter().max_by_key(|(_, files)| files.len());
    fullest.filter(|(_, files)| files.len() >= MANY_FILES)
}
