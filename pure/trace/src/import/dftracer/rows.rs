//! Events of DFTracer as rows of a trace: fields by class, positions, and numbers of streams.

use super::line::{Arguments, number, text};
use super::{Class, Event, Function, Header, Layer, Nanos, TIME_END_NS, is_of_a_file};
use crate::open_flags::{APPEND, TRUNCATE};
use crate::{event, function};
use iolab_vocab::FileId;
use std::collections::BTreeMap;

/// Why a call failed is not kept: a number that no error has.
const UNKNOWN_ERROR: i64 = -4_095;

/// Streams, and descriptors that are not told, are numbered from here on: no descriptor of a program is.
const FIRST_MADE_UP: i32 = 1 << 24;

/// An event on its way to a row.
pub(super) struct Row {
    pub event: Event,
    pub start_us: u64,
    took_us: u64,
}

/// The function whose wrapper DFTracer named, if rows of its class say something.
pub(super) fn function(name: &str) -> Option<Function> {
    let row = function::TABLE.iter().find(|row| row.symbols.contains(&name))?;
    let is_taken = is_of_a_file(row.class) || row.class == Class::Map;
    is_taken.then_some(row.function)
}

impl Row {
    pub(super) fn of(function: Function, start_us: u64, took_us: u64, said: &Arguments) -> Row {
        let ret = number(said.ret.as_ref());
        let size = |scalar| number(scalar).filter(|&size: &i64| size >= 0).unwrap_or(-1);
        let failed = |ret: i64| if ret < 0 { UNKNOWN_ERROR } else { ret };
        let fd = number(said.fd.as_ref()).and_then(|fd| i32::try_from(fd).ok()).unwrap_or(-1);
        let of = Event { fd: fd.max(-1), ..Event::of(function) };
        let is_stdio = function.layer() == Layer::Stdio;
        let event = match function.class() {
            Class::Open if is_stdio => {
                Event { argument: text(said.mode.as_ref()).map_or(-1, |mode| flags(&mode)), ..of }
            }
            Class::Open => {
                const CREAT: i64 = 0o1101;
                let flags = number(said.flags.as_ref());
                let result = failed(ret.unwrap_or(0));
                let fd = ret.and_then(|ret| i32::try_from(ret).ok()).unwrap_or(-1).max(-1);
                Event { argument: flags.unwrap_or(CREAT), fd, result, ..of }
            }
            Class::Read | Class::Write if is_stdio => {
                let item = number(said.size.as_ref()).filter(|&size| size > 0).unwrap_or(1);
                let bytes = |items: i64| if items < 0 { -1 } else { items.saturating_mul(item) };
                let length = number(said.count.as_ref()).map_or(-1, bytes);
                Event { length, result: ret.map_or(length.max(0), bytes).max(0), ..of }
            }
            Class::Read | Class::Write => {
                let length = size(said.count.as_ref());
                let offset = size(said.offset.as_ref());
                Event { length, offset, result: failed(ret.unwrap_or(length.max(0))), ..of }
            }
            Class::Seek => Event {
                offset: number(said.offset.as_ref()).unwrap_or(-1),
                argument: number(said.whence.as_ref())
                    .filter(|it| (0..8).contains(it))
                    .unwrap_or(-1),
                result: failed(ret.unwrap_or(0)),
                ..of
            },
            Class::Truncate => Event { length: size(said.length.as_ref()), ..of },
            Class::Map => {
                let flags = number(said.flags.as_ref()).unwrap_or(0) & 0xffff_ffff;
                let argument = (flags & 0x7fff_ffff) << 32;
                Event {
                    length: size(said.length.as_ref()),
                    offset: size(said.offset.as_ref()),
                    argument,
                    ..of
                }
            }
            _ => Event { result: ret.map_or(0, failed), ..of },
        };
        Row { event, start_us, took_us }
    }

    /// Sets its times, counted from time zero; false when they cannot be.
    pub(super) fn place(&mut self, zero_us: u64) -> bool {
        let start = self.start_us.checked_sub(zero_us).and_then(|time| time.checked_mul(1_000));
        let took = self.took_us.checked_mul(1_000);
        let (Some(start), Some(took)) = (start, took) else { return false };
        if start >= TIME_END_NS || took >= TIME_END_NS {
            return false;
        }
        self.event.start = Nanos(start);
        self.event.end = Nanos(start + took);
        true
    }
}

/// Flags of `open` that a mode of `fopen` stands for.
pub(in crate::import) fn flags(mode: &str) -> i64 {
    let is_both = mode.contains('+');
    match (mode.chars().next(), is_both) {
        (Some('w'), false) => 0o1101,
        (Some('w'), true) => 0o1102,
        (Some('a'), false) => 0o2101,
        (Some('a'), true) => 0o2102,
        (_, true) => 0o2,
        (_, false) => 0,
    }
}

/// An open file of a process.
struct Description {
    fd: i32,
    thread: u32,
    file: FileId,
    /// None when it cannot be told, as after opening an existing file to append.
    position: Option<i64>,
}

/// The open files of each process.
#[derive(Default)]
struct Open {
    descriptors: BTreeMap<u32, Vec<Description>>,
    /// The next number that is made up.
    next: BTreeMap<u32, i32>,
}

/// Whether rows of `lseek` have the position it came to as their result.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(in crate::import) enum Seeks {
    Told,
    Untold,
}

/// Rows in the order of traces, with the positions that calls before them led to.
pub(in crate::import) fn followed(
    mut events: Vec<Event>,
    header: &Header,
    seeks: Seeks,
) -> Vec<Event> {
    events.sort_by_key(|event| (event.process, event.start, event.end));
    let mut open = Open::default();
    for event in &mut events {
        event.rank = header.processes[event.process as usize].rank;
        open.follow(event, seeks);
    }
    event::sort(&mut events);
    events
}

impl Open {
    fn follow(&mut self, event: &mut Event, seeks: Seeks) {
        let is_stdio = event.function.layer() == Layer::Stdio;
        if event.function.class() == Class::Open {
            return self.opened(event, is_stdio);
        }
        let Some(at) = self.at(event) else { return };
        let of_process = self.descriptors.entry(event.process).or_default();
        let description = &mut of_process[at];
        event.fd = description.fd;
        match event.function.class() {
            Class::Close => drop(of_process.remove(at)),
            Class::Read | Class::Write if !event.function.is_positioned() => {
                event.offset = description.position.unwrap_or(-1);
                description.position = description
                    .position
                    .map(|position| position.saturating_add(event.result.max(0)));
            }
            Class::Seek if event.result >= 0 => {
                let is_told = !is_stdio && seeks == Seeks::Told;
                description.position = match (is_told, event.argument) {
                    // A stream's seek says no more than that it succeeded.
                    (true, _) => Some(event.result),
                    (false, 0) => Some(event.offset).filter(|&offset| offset >= 0),
                    (false, 1) => description.position.and_then(|at| at.checked_add(event.offset)),
                    (false, _) => None,
                };
                if !is_told {
                    event.result = description.position.unwrap_or(0);
                }
            }
            _ => {}
        }
    }

    fn opened(&mut self, event: &mut Event, is_stdio: bool) {
        if event.result < 0 {
            return;
        }
        if is_stdio || event.fd < 0 {
            let next = self.next.entry(event.process).or_insert(FIRST_MADE_UP);
            event.fd = *next;
            event.result = i64::from(*next);
            *next = next.saturating_add(1);
        }
        let is_told = event.argument & (APPEND | TRUNCATE) != APPEND;
        let of_process = self.descriptors.entry(event.process).or_default();
        // A close that was not seen must have been before.
        of_process.retain(|other| (other.fd, other.thread) != (event.fd, event.thread));
        of_process.push(Description {
            fd: event.fd,
            thread: event.thread,
            file: event.file,
            position: is_told.then_some(0),
        });
    }

    /// The open file that a call is on: by its number and file, that of the same thread first (processes
    /// that DFTracer took for threads share no numbers); where no number is told, the last one opened.
    fn at(&self, event: &Event) -> Option<usize> {
        let of_process = self.descriptors.get(&event.process)?;
        let fits = |other: &Description| {
            other.file == event.file
                && match event.fd {
                    0.. => other.fd == event.fd,
                    _ => other.fd >= FIRST_MADE_UP,
                }
        };
        let same_thread = of_process.iter().rposition(|it| fits(it) && it.thread == event.thread);
        same_thread.or_else(|| of_process.iter().rposition(fits))
    }
}
