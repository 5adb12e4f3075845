//! Absolute offsets for calls that used the file position, by following every description and
//! every file size in the order of time.
//!
//! Exact for what the trace saw from the open on. What others do to a description unseen (an
//! inherited one that another process also uses) shows up as `inferred`; each seek and each first
//! sight sets the position right again.

use super::gather::Gathered;
use super::mpi::Accesses;
use super::names::{as_argument, is_by_path};
use super::sizes::Sizes;
use crate::open_flags::{APPEND, TRUNCATE};
use crate::spool::MIXED;
use crate::{Class, Event, Function, Header, Layer};
use iolab_vocab::FileId;

/// An open file description as far as it is known.
#[derive(Clone, Copy, Debug, Default)]
struct Description {
    known: bool,
    append: bool,
    position: i64,
    /// Where the stream above it is; libc reads ahead and writes behind.
    stream: i64,
    /// Seeks of the stream were counted, and nobody knows where to.
    adrift: bool,
}

struct Follower<'a> {
    files: &'a [FileId],
    descriptions: Vec<Description>,
    sizes: Sizes,
    inherited: u64,
    unknown: u64,
    accesses: Accesses,
}

pub(super) fn derive(gathered: &mut Gathered, header: &mut Header) {
    let mut follower = Follower {
        files: &gathered.file_of,
        descriptions: vec![Description::default(); gathered.file_of.len()],
        sizes: Sizes::new(header.files.len()),
        inherited: 0,
        unknown: 0,
        accesses: Accesses::new(std::mem::take(&mut gathered.texts)),
    };
    let (files, events) = (&gathered.file_of, &gathered.events);
    follower.accesses.look_ahead(events, |event| file_of(files, event));
    for event in &mut gathered.events {
        follower.follow(event);
    }
    gathered.events.extend(follower.accesses.end(header));
    if follower.inherited > 0 {
        let text =
            "offsets on inherited or sent descriptors, where another one may share the position";
        header.inferred.push(format!("{text} ({} of them)", follower.inherited));
    }
    if follower.unknown > 0 {
        let text = "calls on files whose name is lost have no offset";
        header.inferred.push(format!("{text} ({})", follower.unknown));
    }
}

/// The file of a row that still carries its number.
fn file_of(files: &[FileId], event: &Event) -> FileId {
    let number = event.file.0.wrapping_add(1) as usize;
    files.get(number).copied().unwrap_or(FileId::NONE)
}

impl Follower<'_> {
    fn follow(&mut self, event: &mut Event) {
        let number = event.file.0.wrapping_add(1) as usize;
        let file = file_of(self.files, event);
        event.file = file;
        if event.function.layer().names_objects() {
            return;
        }
        if event.function.layer() == Layer::Mpiio {
            return self.accesses.follow(event, number);
        }
        if event.function.class() == Class::Copy {
            return self.copy(event, number);
        }
        if number == 0 || file == FileId::NONE {
            self.unknown += u64::from(event.function.class().moves_data());
            return;
        }
        if is_by_path(event.function) {
            return self.by_path(event);
        }
        if event.function == Function::COPY_TARGET {
            return self.copy_target(event, number);
        }
        match (event.function.layer(), event.function.class()) {
            (_, Class::Open) => self.open(event, number),
            (Layer::Stdio, class) => self.stream(event, number, class),
            (_, Class::Read | Class::Write) => self.transfer(event, number),
            (_, Class::Seek) if event.result >= 0 => {
                self.descriptions[number].position = event.result;
            }
            _ if event.function == Function::FCNTL_SETFL && event.result >= 0 => {
                self.descriptions[number].append = event.argument & APPEND != 0;
            }
            _ if event.function == Function::SEND_DESCRIPTOR => self.inherited += 1,
            (_, Class::Truncate) if event.result == 0 => self.sizes.set(file, event.length),
            (_, Class::Allocate) if event.result == 0 => {
                self.reach(event, file, event.offset.saturating_add(event.length));
            }
            _ => {}
        }
    }

    fn open(&mut self, event: &Event, number: usize) {
        if event.result < 0 {
            return;
        }
        if event.function.layer() == Layer::Stdio {
            let description = &mut self.descriptions[number];
            (description.stream, description.adrift) = (description.position, false);
            return;
        }
        let inherited = event.function == Function::INHERITED;
        self.inherited += u64::from(inherited);
        let position = if inherited { event.offset.max(0) } else { 0 };
        let append = event.argument & APPEND != 0;
        self.descriptions[number] =
            Description { known: true, append, position, stream: position, adrift: false };
        match event.argument & TRUNCATE {
            0 => self.sizes.tell(event.file, event.start..event.end, event.length),
            _ => self.sizes.set(event.file, event.length),
        }
    }

    fn transfer(&mut self, event: &mut Event, number: usize) {
        let moved = event.result.max(0);
        let size = self.sizes.at(event.file, event.start);
        let description = &mut self.descriptions[number];
        let appends = event.appends(description.append);
        if event.offset < 0 {
            if !description.known {
                self.unknown += 1;
                return;
            }
            event.offset = if appends { size } else { description.position };
            description.position = event.offset.saturating_add(moved);
        } else if appends && event.result >= 0 {
            event.offset = size;
        }
        if event.function.class() == Class::Write {
            self.reach(event, event.file, event.offset.saturating_add(moved));
        }
    }

    fn stream(&mut self, event: &mut Event, number: usize, class: Class) {
        let size = self.sizes.at(event.file, event.start);
        let description = &mut self.descriptions[number];
        match class {
            Class::Read | Class::Write => {
                if class == Class::Write && description.append {
                    description.stream = description.stream.max(size);
                }
                let is_known = event.offset != MIXED && !description.adrift;
                event.offset = if is_known { description.stream } else { -1 };
                description.stream = description.stream.saturating_add(event.result.max(0));
            }
            Class::Seek if event.is_counted() => description.adrift = true,
            Class::Seek if event.function == Function::REWIND => {
                (description.stream, description.adrift) = (0, false);
            }
            Class::Seek if event.result == 0 => {
                description.adrift &= event.argument == 1;
                let from = match event.argument {
                    1 => description.stream,
                    2 => size.max(description.stream),
                    _ => 0,
                };
                description.stream = from.saturating_add(event.offset).max(0);
            }
            _ => {}
        }
    }

    fn copy(&mut self, event: &mut Event, number: usize) {
        if event.offset < 0 && event.file != FileId::NONE {
            self.advance(event, number);
        }
        let target = usize::try_from(event.argument).ok().filter(|&at| at < self.files.len());
        event.argument = target.map_or(-1, |at| as_argument(self.files[at]));
    }

    fn copy_target(&mut self, event: &mut Event, number: usize) {
        if event.offset < 0 {
            self.advance(event, number);
        }
        self.reach(event, event.file, event.offset.saturating_add(event.result.max(0)));
    }

    /// A copy began at the position of a description and moved it.
    fn advance(&mut self, event: &mut Event, number: usize) {
        if let Some(description) = self.descriptions.get_mut(number) {
            event.offset = description.position;
            description.position = event.offset.saturating_add(event.result.max(0));
        }
    }

    fn by_path(&mut self, event: &Event) {
        if event.result != 0 {
            return;
        }
        match event.function.class() {
            Class::Truncate => self.sizes.set(event.file, event.length),
            Class::Rename if event.argument >= 0 => {
                let size = self.sizes.at(event.file, event.start);
                if event.function.exchanges() {
                    let other = self.sizes.at(event.second_file(), event.start);
                    self.sizes.set(event.file, other);
                }
                self.sizes.set(event.second_file(), size);
            }
            Class::Unlink => self.sizes.set(event.file, 0),
            _ => {}
        }
    }

    fn reach(&mut self, event: &Event, file: FileId, end: i64) {
        self.sizes.reach(file, event.start..event.end, end);
    }
}
