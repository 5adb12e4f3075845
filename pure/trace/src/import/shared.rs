//! What importers have in common.

use crate::{Class, Event, FileEntry, Header};
use iolab_vocab::FileId;
use std::collections::BTreeMap;

/// Times and durations are below this, 146 years: what is made of two of them is a time of a trace.
pub(super) const TIME_END_NS: u64 = 1 << 62;

/// Rows that are taken at once.
pub(super) const ROWS_MAX: usize = 1 << 28;

/// A line of a call is shorter: its longest parts are paths.
pub(super) const LINE_BYTES_MAX: u64 = 1 << 20;

/// Whether these bytes are of a line that is longer than any. Where nothing was understood before, it is no text,
/// and a device of zeros would give such lines for ever.
pub(super) fn has_no_end(line: &[u8]) -> bool {
    line.len() as u64 == LINE_BYTES_MAX && !line.ends_with(b"\n")
}

/// Why calls are left out of which no file is told.
pub(super) const WITHOUT_FILE: &str = "calls on what has no name";

/// The files of a header by their paths.
#[derive(Default)]
pub(super) struct Files(BTreeMap<String, FileId>);

impl Files {
    /// The number of a file, which is entered when it is met for the first time.
    pub(super) fn id(&mut self, header: &mut Header, path: String) -> FileId {
        *self.0.entry(path).or_insert_with_key(|path| {
            header.files.push(FileEntry { path: path.clone(), ..FileEntry::default() });
            FileId(header.files.len() as u32 - 1)
        })
    }
}

/// Counts calls that no rows are kept of.
pub(super) fn leave_out(header: &mut Header, rule: &str, calls: u64) {
    *header.losses.left_out_calls.entry(rule.to_owned()).or_default() += calls;
}

/// Processes end no earlier than their last call.
pub(super) fn end_processes(header: &mut Header, events: &[Event]) {
    for event in events {
        let process = &mut header.processes[event.process as usize];
        process.end_ns = process.end_ns.max(event.end.0);
    }
}

/// Whether tools that name the wrapped function tell enough of calls of that class for a row.
pub(super) fn is_of_a_file(class: Class) -> bool {
    matches!(
        class,
        Class::Open
            | Class::Close
            | Class::Read
            | Class::Write
            | Class::Seek
            | Class::Sync
            | Class::Flush
            | Class::Truncate
            | Class::Attribute
            | Class::Stat
            | Class::Unlink
            | Class::MakeDirectory
            | Class::RemoveDirectory
            | Class::ListDirectory
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Function, ProcessEntry};
    use iolab_vocab::Nanos;

    #[test]
    fn a_process_ends_with_its_last_call_or_when_it_is_said_to() {
        let end_ns = |end_ns| ProcessEntry { end_ns, ..ProcessEntry::default() };
        let mut header =
            Header { processes: vec![end_ns(0), end_ns(900), end_ns(3)], ..Header::default() };
        let call = |process, end| Event { process, end: Nanos(end), ..Event::of(Function::READ) };
        end_processes(&mut header, &[call(0, 70), call(1, 80), call(0, 50)]);
        let ends: Vec<u64> = header.processes.iter().map(|process| process.end_ns).collect();
        assert_eq!(ends, [70, 900, 3]);
    }

    #[test]
    fn a_path_is_entered_once() {
        let (mut header, mut files) = (Header::default(), Files::default());
        let ids = ["/a", "/b", "/a"].map(|path| files.id(&mut header, path.to_owned()).0);
        assert_eq!((ids, header.files.len()), ([0, 1, 0], 2));
    }
}
