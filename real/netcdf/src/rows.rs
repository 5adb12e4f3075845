//! The record of a call: which object it is on, and how many bytes it asks for.

use crate::ask::{Asked, Variable};
use crate::calls::Row;
use crate::objects::{self, Known, On, STATE};
use crate::requests::Posted;
use iolab_layer::recorder::{Recorder, Times, record};
use iolab_trace::Class;
use iolab_trace::spool::{Record, layer};
use std::ffi::{CStr, c_int};

pub(crate) static RECORDER: Recorder = Recorder::of(layer::NETCDF);

/// `NC_ERANGE`: some values do not fit the type, all others were moved.
const RANGE: i32 = -60;

/// What a call does, and so what its arguments are. The first one is the file or group in all but the first.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum What {
    /// Creates or opens the file whose name stands at this place; where its identifier goes stands last.
    Open(usize),
    /// Something with a file that moves no data of its own.
    On,
    /// Defines a variable, which is no row.
    Define,
    /// Gives an identifier back.
    Close,
    /// Variable, name, perhaps its type, and its length at that place; bytes of an element in memory, 0 for as many as
    /// in the file.
    PutAttribute { length: usize, bytes: i64 },
    /// Variable and name.
    GetAttribute { bytes: i64 },
    /// Variable and what its shape says; bytes of an element in memory, 0 for as many as in the file.
    Access(Shape, i64),
    /// The same, done later; where the number of the request goes stands last.
    Post(Shape, i64),
    /// How many variables, their numbers, and lists of what their shape says.
    AccessSeveral(Shape, i64),
    /// A count of requests and their numbers.
    Wait,
    /// The same, of requests that are to be forgotten.
    Cancel,
}

/// Which elements of a variable an access is to.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Shape {
    /// All of them.
    Whole,
    /// One.
    Element,
    /// Where it begins, and how many in each dimension.
    Part,
    /// How many parts, where they begin, how many elements each has.
    Parts,
    /// As a datatype of MPI says.
    Unknown,
}

/// A call while it is made.
pub(crate) struct Call<'a> {
    row: &'static Row,
    words: &'a [usize],
    asked: Asked,
    /// Requests that it is for, which the library forgets.
    posted: Vec<Posted>,
}

impl<'a> Call<'a> {
    /// Before it is made.
    pub(crate) fn of(row: &'static Row, words: &'a [usize], asked: Asked) -> Call<'a> {
        let mut call = Call { row, words, asked, posted: Vec::new() };
        if let What::Wait | What::Cancel = row.what {
            let count = call.int(1);
            let list = call.word(2) as *const c_int;
            let listed = if list.is_null() { 0 } else { usize::try_from(count).unwrap_or(0) };
            // SAFETY: the guest's list of so many requests, which the library is about to read.
            let number = |at: usize| unsafe { *list.add(at) };
            let ids: Vec<c_int> = (0..listed).map(number).collect();
            call.posted =
                STATE.lock().requests.done(asked.library.key(), call.file_id(), count, &ids);
        }
        call
    }

    fn word(&self, at: usize) -> usize {
        self.words.get(at).copied().unwrap_or(0)
    }

    fn int(&self, at: usize) -> c_int {
        self.word(at) as c_int
    }

    /// The identifier of the file or group.
    fn file_id(&self) -> c_int {
        self.int(0)
    }

    fn name(&self, at: usize) -> &[u8] {
        match self.word(at) {
            0 => b"",
            // SAFETY: the name that the library has just read.
            address => unsafe { CStr::from_ptr(address as *const _) }.to_bytes(),
        }
    }

    /// The record of the call after its answer; none when there is nothing to tell.
    pub(crate) fn record(&self, times: Times, answer: i32) -> Option<Record> {
        let moves = self.row.function.class().moves_data();
        if answer != 0 && !(answer == RANGE && moves) {
            return self.of_failed(times, answer);
        }
        let mut bytes = -1;
        let on = match self.row.what {
            What::Open(name) => {
                let last = self.words.last().copied().filter(|last| *last != 0)?;
                // SAFETY: the place where the library has just put the identifier.
                let id = unsafe { *(last as *const c_int) };
                On { file: objects::opened(self.asked, id, self.name(name)), text: 0 }
            }
            What::On | What::Close => self.on_file(),
            What::PutAttribute { length, bytes: each } => {
                let each = if each > 0 { each } else { self.type_bytes(3) };
                bytes = (self.word(length) as i64).saturating_mul(each);
                self.attribute()
            }
            What::GetAttribute { bytes: each } => {
                bytes = self.asked.attribute_bytes(self.int(0), self.int(1), self.word(2), each);
                self.attribute()
            }
            What::Access(shape, each) => {
                let known = objects::of(self.asked, self.int(0), self.int(1))?;
                bytes = self.bytes(shape, each, &known.variable);
                known.on
            }
            What::Post(shape, each) => {
                let known = objects::of(self.asked, self.int(0), self.int(1))?;
                bytes = self.bytes(shape, each, &known.variable);
                self.post(&known, bytes)
            }
            What::AccessSeveral(shape, each) => {
                let (on, all) = self.several(shape, each);
                bytes = all;
                on
            }
            What::Wait => {
                bytes = self.posted.iter().fold(0, |all, it| all.saturating_add(it.bytes.max(0)));
                self.waited()
            }
            What::Cancel | What::Define => return None,
        };
        let result = if moves { bytes.max(0) } else { 0 };
        Some(self.on(times, on, bytes, result))
    }

    fn on(&self, times: Times, on: On, length: i64, result: i64) -> Record {
        Record {
            length,
            result,
            number: on.file,
            argument: if on.text == 0 { -1 } else { i64::from(on.text) },
            ..record(self.row.function, times)
        }
    }

    /// NetCDF hands on the system's error numbers, which are positive; its own stand for `EIO`.
    fn of_failed(&self, times: Times, answer: i32) -> Option<Record> {
        let on = match self.row.what {
            What::Cancel | What::Define => return None,
            What::Open(name) => {
                On { file: objects::unopened(self.asked, self.name(name)), text: 0 }
            }
            What::Access(..) | What::Post(..) => {
                let known = objects::known(self.asked, self.int(0), self.int(1));
                known.map_or_else(|| self.on_file(), |known| known.on)
            }
            _ => self.on_file(),
        };
        let number = if answer > 0 { answer } else { libc::EIO };
        Some(self.on(times, on, -1, -i64::from(number)))
    }

    fn on_file(&self) -> On {
        On { file: objects::file(self.asked, self.file_id()), text: 0 }
    }

    fn attribute(&self) -> On {
        objects::attribute(self.asked, self.int(0), self.int(1), self.name(2))
    }

    fn type_bytes(&self, at: usize) -> i64 {
        self.asked.type_bytes(self.file_id(), self.int(at))
    }

    /// Bytes of an access; -1 where they are not known.
    fn bytes(&self, shape: Shape, each: i64, variable: &Variable) -> i64 {
        let each = if each > 0 { each } else { variable.element_bytes };
        let elements = match shape {
            Shape::Unknown => return -1,
            Shape::Whole => self.all(variable),
            Shape::Element => 1,
            Shape::Part => self.part(variable, self.word(2), self.word(3)),
            Shape::Parts => {
                let (starts, counts) = (self.word(3), self.word(4));
                let parts = 0..usize::try_from(self.int(2)).unwrap_or(0);
                let of_part = |at| self.part(variable, entry(starts, at), entry(counts, at));
                // Without counts each is of one element.
                match counts {
                    0 => parts.len() as i64,
                    _ => parts.fold(0, |all: i64, at| all.saturating_add(of_part(at))),
                }
            }
        };
        elements.saturating_mul(each)
    }

    /// Elements of the whole variable.
    fn all(&self, variable: &Variable) -> i64 {
        let lengths = variable.dimensions.iter();
        lengths.fold(1, |all: i64, it| all.saturating_mul(self.asked.length(self.file_id(), *it)))
    }

    /// Elements of a part that begins at `start` and has `count`, lists of a number for each dimension. Without `count`
    /// it goes to the end.
    fn part(&self, variable: &Variable, start: usize, count: usize) -> i64 {
        let dimensions = variable.dimensions.iter().enumerate();
        dimensions.fold(1, |all: i64, (at, dimension)| {
            let side = match count {
                0 => self.asked.length(self.file_id(), *dimension) - number(start, at),
                _ => number(count, at),
            };
            all.saturating_mul(side.max(0))
        })
    }

    /// What an access to several variables is on, and its bytes.
    fn several(&self, shape: Shape, each: i64) -> (On, i64) {
        let (mut bytes, mut paths, mut on) = (0i64, Vec::<Vec<u8>>::new(), self.on_file());
        let (varids, starts, counts) = (self.word(2), self.word(3), self.word(4));
        for at in 0..usize::try_from(self.int(1)).unwrap_or(0) {
            // SAFETY: the guest's list of so many variables, with which the call succeeded.
            let variable = unsafe { *(varids as *const c_int).add(at) };
            let Some(known) = objects::of(self.asked, self.file_id(), variable) else { continue };
            let each = if each > 0 { each } else { known.variable.element_bytes };
            let elements = match shape {
                Shape::Whole => self.all(&known.variable),
                Shape::Part => self.part(&known.variable, entry(starts, at), entry(counts, at)),
                _ => 1,
            };
            bytes = bytes.saturating_add(elements.saturating_mul(each));
            on = known.on;
            if !paths.contains(&known.path) {
                paths.push(known.path);
            }
        }
        match paths.len() {
            0 | 1 => (on, bytes),
            _ => (objects::several(on.file, &paths), bytes),
        }
    }

    fn post(&self, known: &Known, bytes: i64) -> On {
        let place = self.words.last().copied().unwrap_or(0) as *const c_int;
        // SAFETY: the place where the library has just put the number of the request, if there is one.
        let id = (!place.is_null()).then(|| unsafe { *place });
        let is_read = self.row.function.class() == Class::Read;
        let posted = Posted { on: known.on, path: known.path.clone(), bytes, is_read };
        STATE.lock().requests.post(self.asked.library.key(), self.file_id(), id, posted);
        known.on
    }

    /// What a wait is on: the one variable of its requests, or several.
    fn waited(&self) -> On {
        let mut paths: Vec<Vec<u8>> = Vec::new();
        for posted in &self.posted {
            if !paths.contains(&posted.path) {
                paths.push(posted.path.clone());
            }
        }
        match (self.posted.first(), paths.len()) {
            (None, _) => self.on_file(),
            (Some(first), 1) => first.on,
            (Some(first), _) => objects::several(first.on.file, &paths),
        }
    }
}

/// Number `at` of a list of 64-bit numbers, 0 without one.
fn number(list: usize, at: usize) -> i64 {
    match list {
        0 => 0,
        // SAFETY: the guest's list for as many dimensions as the variable has, with which the call succeeded.
        _ => unsafe { *(list as *const i64).add(at) },
    }
}

/// List `at` of a list of them.
fn entry(lists: usize, at: usize) -> usize {
    match lists {
        0 => 0,
        // SAFETY: the guest's list of as many lists as the access has parts, with which the call succeeded.
        _ => unsafe { *(lists as *const usize).add(at) },
    }
}
