//! What a target begins with: files of the repository as they are, and the words in them.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

/// Values at the ends of what numbers and units can be.
const EXTREMES: [&str; 22] = [
    "0",
    "1",
    "-1",
    "255",
    "65535",
    "65536",
    "2147483647",
    "2147483648",
    "4294967295",
    "4294967296",
    "9007199254740993",
    "9223372036854775807",
    "-9223372036854775808",
    "9223372036854775808",
    "18446744073709551615",
    "18446744073709551616",
    "1e308",
    "1e-308",
    "nan",
    "inf",
    "-inf",
    "8191t",
];
/// libFuzzer takes no longer word.
const WORD_BYTES_MAX: usize = 60;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// Every file with one of the endings in these directories of the repository, and below them.
pub(crate) fn files(directories: &[&str], endings: &[&str]) -> Vec<Vec<u8>> {
    let mut paths = Vec::new();
    for directory in directories {
        walk(&root().join(directory), &mut paths);
    }
    paths.sort();
    let is_wanted =
        |path: &&PathBuf| endings.iter().any(|end| path.extension().is_some_and(|it| it == *end));
    let found: Vec<_> = paths.iter().filter(is_wanted).map(|path| read(path)).collect();
    assert!(!found.is_empty(), "no {endings:?} in {directories:?}");
    found
}

/// One file of the repository.
pub(crate) fn file(name: &str) -> Vec<u8> {
    read(&root().join(name))
}

fn walk(directory: &Path, paths: &mut Vec<PathBuf>) {
    let entries = fs::read_dir(directory).unwrap_or_else(|error| panic!("{directory:?}: {error}"));
    for path in entries.map(|entry| entry.expect("an entry").path()) {
        match path.is_dir() {
            true => walk(&path, paths),
            false => paths.push(path),
        }
    }
}

fn read(path: &Path) -> Vec<u8> {
    fs::read(path).unwrap_or_else(|error| panic!("{path:?}: {error}"))
}

pub(crate) fn texts<T: AsRef<str>>(texts: impl IntoIterator<Item = T>) -> Vec<Vec<u8>> {
    texts.into_iter().map(|text| text.as_ref().as_bytes().to_vec()).collect()
}

/// Writes seeds by number, and beside the directory a `dictionary` of their words.
pub(crate) fn write(directory: &Path, seeds: &[Vec<u8>]) {
    fs::create_dir_all(directory).expect("a directory for seeds");
    for (number, seed) in seeds.iter().enumerate() {
        fs::write(directory.join(format!("{number:04}")), seed).expect("a seed written");
    }
    let mut words: BTreeSet<&str> = EXTREMES.into();
    for text in seeds.iter().filter_map(|seed| std::str::from_utf8(seed).ok()) {
        words.extend(words_of(text));
    }
    let lines: String = words.iter().map(|word| format!("\"{word}\"\n")).collect();
    fs::write(directory.with_file_name("dictionary"), lines).expect("a dictionary written");
}

fn words_of(text: &str) -> impl Iterator<Item = &str> {
    let is_part = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.');
    text.split(move |c| !is_part(c))
        .filter(|word| (2..WORD_BYTES_MAX).contains(&word.len()))
        .filter(|word| !word.starts_with(|c: char| c.is_ascii_digit()))
}
