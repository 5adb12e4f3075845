//! A window of a file in memory, from which small reads of a stream are answered without a call:
//! the machine of `read-ahead:via=buffer` (contiguous streams, either way) and of `data-sieve` (streams
//! with small holes, which are read over).
//!
//! The window begins with 16 KiB, doubles when it was used up, and is halved when the stream leaves it
//! early; one description has it at a time. *Each byte of it answers one read*: what was read, and what
//! was skipped, is gone, and the end of the file is always asked for below. So a program that reads the
//! same place again, to see whether it has changed, sees the file.
//!
//! File positions of descriptions that are read by live here, so seeks cost nothing below, and so does the end of
//! the file as far as it is known. Others pass (and those with append), unheard while nobody reads.
//!
//! Coherence: any write, truncation, allocation, record lock or map of this process drops the window, and so
//! does any open of the file, for whatever, in another process of the run (`keeps_bytes`). Who is outside
//! of the run is not seen, which is why the parameter `outsiders=none` has to say that nobody there
//! writes to the file.

use super::descriptions::{Descriptions, seek_target};
use super::known_size::KnownSize;
use super::null::memory_of;
use super::parameter::Parameters;
use super::stream::{Course, Stream};
use super::{Action, At, Call, Event, Handle, Interest, Outcome, Place, Strategy, Whence};
use crate::machine::Machine;
use iolab_vocab::{Extent, Nanos, Refusal};

mod settings;

pub(super) use settings::{Kinds, Settings};

/// What a window begins with.
const FIRST_BYTES: u64 = 16 << 10;

/// Reads `hole=2k,window=256k,largest=16k,outsiders=none`. From where on a hole costs more to read over
/// than a call saves depends on the storage; 2 KiB are copied in less time than the quickest call.
pub(super) fn data_sieve(parameters: &Parameters) -> Result<Window, Refusal> {
    let kinds = Kinds::Strided { hole_bytes: 2 << 10 };
    Ok(Window::new(Settings::parse("data-sieve", kinds, parameters)?))
}

/// See the module.
#[derive(Clone, Debug)]
pub struct Window {
    settings: Settings,
    descriptions: Descriptions,
    readers: Vec<Reader>,
    /// What staging memory has of the file and nobody has read; empty for nothing.
    kept: Extent,
    /// Where its first byte lies.
    kept_at: u64,
    /// It is read from its end.
    backward: bool,
    /// Who reads from it.
    owner: Handle,
    file_bytes: KnownSize,
    task: Task,
}

/// One description that is read by.
#[derive(Clone, Copy, Debug)]
struct Reader {
    handle: Handle,
    stream: Stream,
    /// How much was fetched the last time; 0 at first.
    window: u64,
    /// That was for the stream it is in.
    is_fed: bool,
}

#[derive(Clone, Copy, Debug)]
enum Task {
    Idle,
    /// The program's own call.
    Passed {
        handle: Handle,
        call: Call,
    },
    /// The position below is being made true for a settle.
    Positioning {
        handle: Handle,
    },
    /// `window` is being read for a read at `at` of `extent`, of which `done` bytes are answered.
    Fetching {
        handle: Handle,
        at: At,
        extent: Extent,
        done: u64,
        window: Extent,
    },
    /// The rest of a read of which `done` bytes are answered.
    Completing {
        handle: Handle,
        at: At,
        done: u64,
    },
}

impl Window {
    /// For one file.
    pub(super) fn new(settings: Settings) -> Window {
        Window {
            settings,
            descriptions: Descriptions::default(),
            readers: Vec::new(),
            kept: Extent::new(0, 0),
            kept_at: 0,
            backward: false,
            owner: Handle(0),
            file_bytes: KnownSize::default(),
            task: Task::Idle,
        }
    }

    fn arrived(&mut self, handle: Handle, call: Call, out: &mut Vec<Action>) {
        match call {
            Call::Open { access, file_bytes, position } => {
                self.descriptions.open(handle, access, position);
                self.file_bytes.set(file_bytes);
                if access.read && !access.append && !access.synchronous {
                    let stream = Stream::default();
                    self.readers.push(Reader { handle, stream, window: 0, is_fed: false });
                }
            }
            Call::Read { at, length } => return self.read(handle, at, length, out),
            Call::Seek { offset, whence } => return self.seek(handle, offset, whence, out),
            Call::Write { .. } | Call::Truncate { .. } | Call::Allocate { .. } | Call::Flush => {
                self.drop_window();
            }
            Call::Settle => {
                self.drop_window();
                return self.settle(handle, out);
            }
            Call::Close if handle == self.owner => self.drop_window(),
            Call::Close | Call::Sync { .. } | Call::Advise { .. } => {}
        }
        self.pass(handle, call, out);
    }

    fn drop_window(&mut self) {
        self.kept.length = 0;
    }

    fn pass(&mut self, handle: Handle, call: Call, out: &mut Vec<Action>) {
        self.task = Task::Passed { handle, call };
        let below = match self.is_reader(handle) {
            true => self.descriptions.placed(handle, call),
            false => call,
        };
        out.push(Action::Perform { handle, call: below, memory: memory_of(below) });
    }

    /// Whether its position lives here.
    fn is_reader(&self, handle: Handle) -> bool {
        self.readers.iter().any(|reader| reader.handle == handle)
    }

    fn seek(&mut self, handle: Handle, offset: i64, whence: Whence, out: &mut Vec<Action>) {
        let is_reader = self.is_reader(handle);
        let description = self.descriptions.get(handle);
        let knows_end = whence != Whence::End || self.file_bytes.get().is_some();
        let end = self.file_bytes.get().unwrap_or(0);
        match seek_target(description.position, end, offset, whence) {
            Some(target) if knows_end && is_reader => {
                if let Ok(position) = target {
                    description.position = position;
                }
                out.push(Action::Answer(target));
            }
            _ => self.pass(handle, Call::Seek { offset, whence }, out),
        }
    }

    fn settle(&mut self, handle: Handle, out: &mut Vec<Action>) {
        let description = *self.descriptions.get(handle);
        if !self.is_reader(handle) || description.position == description.below {
            return self.pass(handle, Call::Settle, out);
        }
        self.task = Task::Positioning { handle };
        let call = Call::Seek { offset: description.position as i64, whence: Whence::Start };
        out.push(Action::Perform { handle, call, memory: Place::Nowhere });
    }

    /// The extent of a small read that may be answered from memory, and the number of its reader.
    #[inline]
    fn small(&mut self, handle: Handle, at: At, length: u64) -> Option<(usize, Extent)> {
        if length == 0 || length > self.settings.largest_bytes {
            return None;
        }
        let reader = self.readers.iter().position(|reader| reader.handle == handle)?;
        let offset = match at {
            At::Offset(offset) => offset,
            At::Position => self.descriptions.get(handle).position,
        };
        let end = offset.checked_add(length).filter(|end| *end <= i64::MAX as u64);
        end.map(|_| (reader, Extent::new(offset, length)))
    }

    fn read(&mut self, handle: Handle, at: At, length: u64, out: &mut Vec<Action>) {
        let Some((index, extent)) = self.small(handle, at, length) else {
            return self.pass(handle, Call::Read { at, length }, out);
        };
        let is_owner = handle == self.owner && !self.kept.is_empty();
        let left = if is_owner { self.kept.length } else { 0 };
        let done = if is_owner { self.available(extent) } else { 0 };
        let reader = &mut self.readers[index];
        if reader.stream.note(extent) && done == 0 {
            reader.left(left);
        }
        if done > 0 {
            let (from, to) = (Place::Staging(self.take(extent, done)), Place::Caller(0));
            out.push(Action::Copy { from, to, length: done });
        }
        if done == length {
            return self.answer(handle, at, done, out);
        }
        let is_others = handle != self.owner && !self.kept.is_empty();
        let window = if is_others { None } else { self.next_window(index, extent, done) };
        if !is_others {
            self.drop_window();
        }
        let (offset, length, memory) = match window {
            Some(window) => {
                self.task = Task::Fetching { handle, at, extent, done, window };
                (window.offset, window.length, Place::Staging(0))
            }
            None if done > 0 => {
                self.task = Task::Completing { handle, at, done };
                (extent.offset + done, length - done, Place::Caller(done))
            }
            None => return self.pass(handle, Call::Read { at, length }, out),
        };
        let call = Call::Read { at: At::Offset(offset), length };
        out.push(Action::Perform { handle, call, memory });
    }

    /// How many bytes of a read, from its first, are in the window.
    #[inline]
    fn available(&self, extent: Extent) -> u64 {
        if self.backward {
            return if self.kept.contains(extent) { extent.length } else { 0 };
        }
        let begins_inside = extent.offset >= self.kept.offset && extent.offset < self.kept.end();
        if begins_inside { extent.length.min(self.kept.end() - extent.offset) } else { 0 }
    }

    /// Where the first `length` bytes of a read lie, which are in the window. They are gone from it,
    /// and so is what the reader went past.
    #[inline]
    fn take(&mut self, extent: Extent, length: u64) -> u64 {
        let before = extent.offset - self.kept.offset;
        let at = self.kept_at + before;
        if self.backward {
            self.kept.length = before;
        } else {
            self.kept = Extent::new(extent.offset + length, self.kept.length - before - length);
            self.kept_at = at + length;
        }
        at
    }

    /// What is read below for a read of which `done` bytes are answered; `None` if it is in no stream.
    fn next_window(&mut self, index: usize, extent: Extent, done: u64) -> Option<Extent> {
        let Settings { window_bytes, kinds, .. } = self.settings;
        let reader = &mut self.readers[index];
        self.backward = match (reader.stream.course()?, kinds) {
            (Course::Forward, Kinds::Contiguous) => false,
            (Course::Backward, Kinds::Contiguous) => true,
            (Course::Strided(step), Kinds::Strided { hole_bytes })
                if step.unsigned_abs() <= extent.length.saturating_add(hole_bytes) =>
            {
                step < 0
            }
            _ => return None,
        };
        if self.backward && done > 0 {
            return None;
        }
        let bytes = reader.next_bytes(window_bytes).max(extent.length);
        let (start, end) = match self.backward {
            true => (extent.end().saturating_sub(bytes), extent.end()),
            false => (extent.offset + done, (extent.offset + done).saturating_add(bytes)),
        };
        Some(Extent::new(start, end.min(i64::MAX as u64) - start))
    }

    #[inline]
    fn answer(&mut self, handle: Handle, at: At, moved: u64, out: &mut Vec<Action>) {
        if at == At::Position {
            self.descriptions.get(handle).position += moved;
        }
        out.push(Action::Answer(Ok(moved)));
    }

    fn performed(&mut self, outcome: Outcome, out: &mut Vec<Action>) {
        match std::mem::replace(&mut self.task, Task::Idle) {
            Task::Passed { handle, call } => self.passed(handle, call, outcome, out),
            Task::Positioning { handle } => {
                if let Ok(position) = outcome {
                    self.descriptions.get(handle).below = position;
                }
                self.pass(handle, Call::Settle, out);
            }
            Task::Fetching { handle, at, extent, done, window } => match outcome {
                Ok(moved) => self.fetched(handle, at, extent, done, (window, moved), out),
                Err(_) if done > 0 => self.answer(handle, at, done, out),
                // It may be what is ahead that cannot be read.
                Err(_) => self.pass(handle, Call::Read { at, length: extent.length }, out),
            },
            Task::Completing { handle, at, done } => {
                self.answer(handle, at, done + outcome.unwrap_or(0), out);
            }
            Task::Idle => unreachable!("nothing was asked of the stage below"),
        }
    }

    /// `moved` bytes of a window have come.
    fn fetched(
        &mut self,
        handle: Handle,
        at: At,
        extent: Extent,
        done: u64,
        (window, moved): (Extent, u64),
        out: &mut Vec<Action>,
    ) {
        (self.owner, self.kept, self.kept_at) = (handle, Extent::new(window.offset, moved), 0);
        let rest = Extent::new(extent.offset + done, extent.length - done);
        let length = self.available(rest);
        if length > 0 {
            let (from, to) = (Place::Staging(self.take(rest, length)), Place::Caller(done));
            out.push(Action::Copy { from, to, length });
        } else if self.backward {
            // It is not known whether the file ends there.
            self.drop_window();
            return self.pass(handle, Call::Read { at, length: extent.length }, out);
        }
        self.answer(handle, at, done + length, out);
    }

    /// The program's own call came back.
    fn passed(&mut self, handle: Handle, call: Call, outcome: Outcome, out: &mut Vec<Action>) {
        let description = *self.descriptions.get(handle);
        match call {
            // Where that is has not been heard of all the while.
            Call::Write { at: At::Position, .. } if !self.is_reader(handle) => {
                self.file_bytes.forget()
            }
            _ => self.file_bytes.learn(description, call, outcome),
        }
        if let Ok(value) = outcome {
            self.descriptions.moved(handle, call, value);
        }
        if call == Call::Close {
            self.descriptions.close(handle);
            self.readers.retain(|reader| reader.handle != handle);
        }
        out.push(Action::Answer(outcome));
    }
}

impl Reader {
    /// How much to fetch: twice as much as the last time in a stream that wants more.
    fn next_bytes(&mut self, most: u64) -> u64 {
        self.window = match self.is_fed {
            true => self.window.saturating_mul(2),
            false => self.window.max(FIRST_BYTES),
        }
        .min(most);
        if self.is_fed {
            self.stream.was_used();
        }
        self.is_fed = true;
        self.window
    }

    /// Its stream broke off, with `left` bytes unread.
    fn left(&mut self, left: u64) {
        if self.is_fed {
            if left > self.window / 2 {
                self.stream.was_wasted();
            }
            self.window /= 2;
            self.is_fed = false;
        }
    }
}

impl Machine for Window {
    type Event = Event;
    type Action = Action;

    fn step(&mut self, _now: Nanos, event: Event, out: &mut Vec<Action>) {
        match event {
            Event::Arrived { handle, call } => self.arrived(handle, call, out),
            Event::Performed(outcome) => self.performed(outcome, out),
            Event::Woke | Event::Ended(_) => unreachable!("a window never asks to be woken"),
        }
    }
}

impl Strategy for Window {
    fn staging_bytes(&self) -> u64 {
        self.settings.window_bytes
    }

    /// Nothing is kept, and no position lives here, while nobody reads.
    fn interest(&self) -> Interest {
        match self.readers.is_empty() {
            true => Interest::DESCRIPTIONS,
            false => Interest::EVERYTHING,
        }
    }

    fn keeps_bytes(&self) -> bool {
        true
    }

    fn drained(&mut self, file_bytes: u64) {
        self.drop_window();
        self.file_bytes.set(file_bytes);
    }

    #[inline]
    fn serve(&mut self, handle: Handle, at: At, length: u64) -> Option<u64> {
        let is_small = (1..=self.settings.largest_bytes).contains(&length);
        if handle != self.owner || self.kept.length < length || !is_small {
            return None;
        }
        let offset = match at {
            At::Offset(offset) => offset,
            At::Position => self.descriptions.get(handle).position,
        };
        let extent = Extent::new(offset, length);
        if self.available(extent) < length {
            return None;
        }
        let reader = self.readers.iter_mut().find(|reader| reader.handle == handle);
        reader.expect("who has the window is a reader").stream.note(extent);
        if at == At::Position {
            self.descriptions.get(handle).position += length;
        }
        Some(self.take(extent, length))
    }
}
