//! Files that a trace has under several names for one place: `d/../f` is `f`.

use crate::scratch::relative;
use iolab_trace::Trace;
use iolab_vocab::FileId;
use std::borrow::Cow;
use std::collections::BTreeMap;

/// The trace with one file for each place.
pub(crate) fn resolved(trace: &Trace) -> Cow<'_, Trace> {
    let files = &trace.header.files;
    let mut first = BTreeMap::new();
    let stands_for = files.iter().zip(0_u32..).map(|(entry, file)| match relative(&entry.path) {
        Some(place) => *first.entry(place).or_insert(file),
        None => file,
    });
    let stands_for: Vec<u32> = stands_for.collect();
    if stands_for.iter().zip(0..).all(|(&to, file)| to == file) {
        return Cow::Borrowed(trace);
    }
    let to = |file: FileId| file.index().and_then(|file| stands_for.get(file)).copied();
    let mut trace = trace.clone();
    for event in &mut trace.events {
        if let Some(second) = to(event.second_file()) {
            event.argument = i64::from(second);
        }
        event.file = to(event.file).map_or(event.file, FileId);
    }
    Cow::Owned(trace)
}

#[cfg(test)]
mod tests {
    use super::*;
    use iolab_trace::{Event, FileEntry, Function};

    #[test]
    fn names_of_one_place_become_one_file_also_where_they_come_second() {
        let mut trace = Trace::default();
        let paths = ["/d/f", "/d/e/../f", "/other", "pipe:[1]", "pipe:[1]"];
        trace.header.files =
            paths.map(|path| FileEntry { path: path.into(), ..FileEntry::default() }).to_vec();
        let stat = |file| Event { file: FileId(file), ..Event::of(Function::STAT) };
        let rename = Event { file: FileId(2), argument: 1, ..Event::of(Function::RENAME) };
        trace.events = vec![stat(0), stat(1), rename, stat(4), Event::of(Function::SYNC)];
        let resolved = resolved(&trace);
        let files: Vec<FileId> = resolved.events.iter().map(|event| event.file).collect();
        assert_eq!(files, [FileId(0), FileId(0), FileId(2), FileId(4), FileId::NONE]);
        assert_eq!(resolved.events[2].second_file(), FileId(0));
        trace.events.clear();
        trace.header.files.truncate(1);
        assert!(matches!(super::resolved(&trace), Cow::Borrowed(_)));
    }
}
