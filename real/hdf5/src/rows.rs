//! The record of a call: which object it is on, and how many bytes it asks for.

use crate::ask;
use crate::library::Hdf5;
use crate::objects::{self, Known};
use iolab_layer::library::Library;
use iolab_layer::recorder::{Recorder, Times, record};
use iolab_trace::Function;
use iolab_trace::spool::{Record, layer};
use std::ffi::CStr;

pub(crate) static RECORDER: Recorder = Recorder::of(layer::HDF5);

/// The result of a call that failed: HDF5 has no error numbers, so each is `EIO`.
const FAILED: i64 = -(libc::EIO as i64);

/// What a call does, and so what its arguments are; places count from its first own one.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum What {
    /// Creates or opens the file of that name.
    OpenFile,
    /// Creates or opens an object; the answer is its identifier.
    Open,
    /// The same for an attribute.
    OpenAttribute,
    /// Something with an object that moves no data of its own.
    On,
    /// Gives an identifier back.
    Close,
    /// Gives a reference of anything back; the answer is how many are left.
    Release,
    /// Dataset, type and space in memory, space in the file.
    Transfer,
    /// A count, and lists of the same.
    TransferSeveral,
    /// An attribute and the type in memory.
    TransferAttribute,
    /// Dataset, list of properties, place of the chunk.
    ReadChunk,
    /// Dataset, list of properties, filters, place of the chunk, bytes.
    WriteChunk,
}

/// A call while it is made.
pub(crate) struct Call<'a> {
    pub(crate) function: Function,
    pub(crate) what: What,
    /// Its own arguments: without the three that say where an `…_async` call stands.
    pub(crate) words: &'a [usize],
    pub(crate) library: &'static Library,
    /// What it is on, as far as known before.
    known: Option<Known>,
}

impl<'a> Call<'a> {
    pub(crate) fn of(
        function: Function,
        what: What,
        words: &'a [usize],
        library: &'static Library,
    ) -> Call<'a> {
        let known = match what {
            What::OpenFile | What::Open | What::OpenAttribute | What::TransferSeveral => None,
            _ => words.first().and_then(|word| objects::known(library, library.id(*word))),
        };
        if let (What::Close | What::Release, Some(known)) = (what, known) {
            // The last moment to ask.
            objects::say_name(library, library.id(words[0]), known);
        }
        Call { function, what, words, library, known }
    }

    fn word(&self, at: usize) -> usize {
        self.words.get(at).copied().unwrap_or(0)
    }

    fn id(&self, at: usize) -> i64 {
        self.library.id(self.word(at))
    }

    /// Identifier number `index` of a list.
    ///
    /// # Safety
    /// The guest's list, with which the call succeeded, has as many.
    unsafe fn id_in(&self, at: usize, index: usize) -> i64 {
        // SAFETY: the caller's promise.
        unsafe {
            match self.library.has_short_ids() {
                true => i64::from(*(self.word(at) as *const i32).add(index)),
                false => *(self.word(at) as *const i64).add(index),
            }
        }
    }

    fn name(&self) -> &[u8] {
        match self.word(0) {
            0 => b"",
            // SAFETY: the name that the library has just read.
            address => unsafe { CStr::from_ptr(address as *const _) }.to_bytes(),
        }
    }

    /// The record of the call after its answer; none when there is nothing to tell.
    pub(crate) fn record(&self, times: Times, answer: usize) -> Option<Record> {
        let opens = matches!(self.what, What::OpenFile | What::Open | What::OpenAttribute);
        let answer = if opens { self.library.id(answer) } else { i64::from(answer as i32) };
        if answer < 0 {
            return self.of_failed(times);
        }
        let mut bytes = -1;
        let on = match self.what {
            What::OpenFile => Some(objects::opened(self.library, answer, self.name())),
            What::Open => Some(objects::of(self.library, answer, false)),
            What::OpenAttribute => Some(objects::of(self.library, answer, true)),
            What::Release if self.known.is_none() || answer > 0 => return None,
            What::Close | What::Release => {
                objects::forget(self.library, self.id(0));
                self.known
            }
            What::On => Some(objects::of(self.library, self.id(0), false)),
            What::Transfer => {
                let points = ask::points(self.library, self.id(0), self.id(2), self.id(3));
                bytes = product(points, ask::type_bytes(self.library, self.id(1)));
                Some(objects::of(self.library, self.id(0), false))
            }
            What::TransferAttribute => {
                let points = ask::attribute_points(self.library, self.id(0));
                bytes = product(points, ask::type_bytes(self.library, self.id(1)));
                Some(objects::of(self.library, self.id(0), true))
            }
            What::TransferSeveral => {
                let (of_all, on) = self.several();
                bytes = of_all;
                on
            }
            What::ReadChunk => {
                bytes = ask::stored_chunk(self.library, self.id(0), self.word(2));
                Some(objects::of(self.library, self.id(0), false))
            }
            What::WriteChunk => {
                bytes = self.word(4) as i64;
                Some(objects::of(self.library, self.id(0), false))
            }
        };
        Some(Record {
            length: bytes,
            result: bytes.max(0),
            number: on.map_or(0, |on| on.file),
            argument: on.map_or(-1, |on| i64::from(on.text)),
            ..record(self.function, times)
        })
    }

    /// Bytes of an access to several datasets, and the one it is on: several are none.
    fn several(&self) -> (i64, Option<Known>) {
        let mut bytes: i64 = 0;
        for index in 0..self.word(0) {
            // SAFETY: the call succeeded with lists of that length.
            let [dataset, datatype, memory, file] =
                [1, 2, 3, 4].map(|at| unsafe { self.id_in(at, index) });
            let points = ask::points(self.library, dataset, memory, file);
            let part = product(points, ask::type_bytes(self.library, datatype));
            bytes = bytes.saturating_add(part);
        }
        let on = (self.word(0) > 0).then(|| {
            // SAFETY: as above.
            let known = objects::of(self.library, unsafe { self.id_in(1, 0) }, false);
            if self.word(0) == 1 { known } else { known.of_several() }
        });
        (bytes, on)
    }

    fn of_failed(&self, times: Times) -> Option<Record> {
        let number = match self.what {
            What::Release => return None,
            What::OpenFile => objects::unopened(self.name()),
            _ => self.known.map_or(0, |known| known.file),
        };
        Some(Record {
            result: FAILED,
            number,
            argument: self.known.map_or(-1, |known| i64::from(known.text)),
            ..record(self.function, times)
        })
    }
}

fn product(points: i64, bytes: i64) -> i64 {
    points.max(0).saturating_mul(bytes.max(0))
}
