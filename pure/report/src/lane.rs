//! One thread of one process: which call is the outermost, and where its descriptors stand.

use crate::stream::Calls;
use iolab_trace::{Class, Event, Layer};
use std::collections::BTreeMap;

const SEEK_CUR: i64 = 1;

/// State of a thread while its calls go by.
#[derive(Clone, Debug, Default)]
pub(crate) struct Lane {
    /// Layer of the last call that was not made inside another one.
    pub(crate) outer_layer: Option<Layer>,
    descriptors: BTreeMap<i32, Descriptor>,
}

#[derive(Clone, Debug, Default)]
struct Descriptor {
    position: Option<i64>,
    /// A seek nothing has used yet, with the row it stands in.
    unused_seek: Option<(u64, Event)>,
    /// How the thread opened it; none where another one did.
    flags: Option<i64>,
}

impl Lane {
    /// Follows the file positions; hands back seeks that turn out to have been for nothing.
    pub(crate) fn redundant_seek(&mut self, row: u64, event: &Event) -> Calls {
        let mut redundant = Calls::default();
        if event.fd < 0 || event.result < 0 {
            return redundant;
        }
        match event.function.class() {
            Class::Open => self.opened(event),
            Class::Close => drop(self.descriptors.remove(&event.fd)),
            Class::Read | Class::Write if !event.function.is_positioned() => {
                let descriptor = self.descriptors.entry(event.fd).or_default();
                descriptor.unused_seek = None;
                let end = event.offset.saturating_add(event.result);
                descriptor.position = (event.offset >= 0).then_some(end);
            }
            Class::Seek => {
                let descriptor = self.descriptors.entry(event.fd).or_default();
                descriptor.seek(row, event, &mut redundant);
            }
            _ => {}
        }
        redundant
    }

    /// The flags with which this thread opened the descriptor, if it did.
    pub(crate) fn flags(&self, fd: i32) -> Option<i64> {
        self.descriptors.get(&fd)?.flags
    }

    fn opened(&mut self, event: &Event) {
        let position = if event.offset >= 0 { event.offset } else { 0 };
        let opened =
            Descriptor { position: Some(position), unused_seek: None, flags: Some(event.argument) };
        self.descriptors.insert(event.fd, opened);
    }
}

impl Descriptor {
    fn seek(&mut self, row: u64, event: &Event, redundant: &mut Calls) {
        let asks_only = event.argument == SEEK_CUR && event.offset == 0;
        if asks_only || self.position == Some(event.result) {
            redundant.add(row, event);
        } else if let Some((row, unused)) = self.unused_seek.replace((row, *event)) {
            redundant.add(row, &unused);
        }
        self.position = Some(event.result);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use iolab_trace::Function;

    fn seek(offset: i64, whence: i64, result: i64) -> Event {
        Event { fd: 3, offset, argument: whence, result, ..Event::of(Function::LSEEK) }
    }

    fn read(offset: i64, result: i64) -> Event {
        Event { fd: 3, offset, length: result, result, ..Event::of(Function::READ) }
    }

    fn redundant(events: &[Event]) -> u64 {
        let mut lane = Lane::default();
        events.iter().map(|event| lane.redundant_seek(0, event).count).sum()
    }

    #[test]
    fn a_seek_to_where_the_position_is_is_redundant() {
        assert_eq!(redundant(&[read(0, 100), seek(100, 0, 100), read(100, 100)]), 1);
        assert_eq!(redundant(&[read(0, 100), seek(0, SEEK_CUR, 100)]), 1);
    }

    #[test]
    fn a_read_beyond_the_end_of_numbers_is_followed_to_there() {
        assert_eq!(redundant(&[read(100, i64::MAX), seek(0, SEEK_CUR, i64::MAX)]), 1);
    }

    #[test]
    fn a_seek_undone_by_the_next_is_redundant() {
        assert_eq!(redundant(&[read(0, 100), seek(0, 2, 5000), seek(300, 0, 300)]), 1);
    }

    #[test]
    fn a_seek_that_leads_somewhere_is_not() {
        let events = [read(0, 100), seek(300, 0, 300), read(300, 100), seek(0, 0, 0), read(0, 1)];
        assert_eq!(redundant(&events), 0);
    }
}
