//! What requests came to, told to a recording as the calls of programs.
//!
//! The kernel splits large calls (1 MiB a request), keeps positions itself and answers from what it remembers: rows are
//! the requests it makes, reads and writes with their offset. Their time is what serving took, without the way
//! to the server and back.

use crate::open::Hosted;
use crate::tree::Answer;
use fuser::Request;
use iolab_trace::Function;
use iolab_trace::spool::Record;
use std::ffi::OsStr;
use std::sync::atomic::Ordering;

/// A request as a call.
pub(crate) struct Row {
    pub(crate) function: Function,
    pub(crate) place: Place,
    pub(crate) offset: i64,
    pub(crate) length: i64,
    pub(crate) argument: i64,
}

/// What a call is about.
pub(crate) enum Place {
    /// An open file, by the kernel's number for it.
    Open(u64),
    /// A file that is being opened: its name, the number it got, its size.
    Opened(Option<String>, Option<(u64, i64)>),
    /// A file by its name.
    Name(Option<String>),
    /// A file and its other name.
    Names(Option<String>, Option<String>),
}

impl Row {
    /// Without anything that need not be told.
    pub(crate) fn of(function: Function, place: Place) -> Row {
        Row { function, place, offset: -1, length: -1, argument: -1 }
    }

    /// About a stretch of an open file.
    pub(crate) fn stretch(function: Function, file: u64, offset: u64, length: u64) -> Row {
        let (offset, length) = (signed(offset), signed(length));
        Row { offset, length, ..Row::of(function, Place::Open(file)) }
    }
}

fn signed(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

/// What calls return, as far as it is told.
pub(crate) trait Returned {
    fn number(&self) -> i64;
}

impl Returned for usize {
    fn number(&self) -> i64 {
        signed(*self as u64)
    }
}

impl Returned for i64 {
    fn number(&self) -> i64 {
        *self
    }
}

/// All others return 0; an open the number of its description.
macro_rules! zero {
    ($($kind:ty),*) => {
        $(impl Returned for $kind {
            fn number(&self) -> i64 {
                0
            }
        })*
    };
}

zero!((), rustix::fs::Stat, crate::names::Entry);

impl Returned for crate::open::Grant {
    fn number(&self) -> i64 {
        signed(self.number)
    }
}

impl Returned for (std::sync::Arc<crate::tree::Inode>, rustix::fs::Stat, crate::open::Grant) {
    fn number(&self) -> i64 {
        self.2.number()
    }
}

impl Hosted {
    /// Does it, and tells of it where somebody listens.
    pub(crate) fn told<T: Returned>(
        &self,
        request: &Request,
        work: impl FnOnce() -> Answer<T>,
        row: impl FnOnce(&Answer<T>) -> Row,
    ) -> Answer<T> {
        let Some(teller) = &self.teller else { return work() };
        let start = teller.now();
        let answer = work();
        let end = teller.now();
        let row = row(&answer);
        let result = match &answer {
            Ok(value) => value.number(),
            Err(error) => -i64::from(error.raw_os_error()),
        };
        // The kernel's own: of mapped memory that it writes back. And a copy of a process that closes what it got from
        // there mostly is about to execute a program, when nobody may ask about it.
        let is_openers =
            request.pid() == 0 || row.function == Function::CLOSE && !teller.knows(request.pid());
        let opener = match row.place {
            Place::Open(file) if is_openers => self.files.get(file).ok().map(|open| open.opener),
            _ => None,
        };
        let thread = opener.unwrap_or(request.pid());
        let name = |path: Option<String>| path.map_or(0, |it| teller.name(thread, it.as_bytes()));
        let mut record = Record {
            start,
            end,
            offset: row.offset,
            length: row.length,
            argument: row.argument,
            result,
            fd: -1,
            function: row.function.0,
            ..Record::default()
        };
        match row.place {
            Place::Open(file) => {
                record.fd = i32::try_from(file).unwrap_or(i32::MAX);
                if let Ok(open) = self.files.get(file) {
                    record.number = open.told.load(Ordering::Relaxed);
                }
            }
            Place::Opened(path, file) => {
                teller.look_at(thread);
                record.number = name(path);
                if let Some((file, size)) = file {
                    record.length = size;
                    if let Ok(open) = self.files.get(file) {
                        open.told.store(record.number, Ordering::Relaxed);
                    }
                }
            }
            Place::Name(path) => record.number = name(path),
            Place::Names(path, other) => {
                record.number = name(path);
                record.argument = i64::from(name(other));
            }
        }
        teller.call(thread, record);
        answer
    }

    /// What programs call a file.
    pub(crate) fn name_of(&self, inode: u64) -> Option<String> {
        let inode = self.tree.get(inode).ok()?;
        // Memory has no path; a member's is that of its name.
        let place = self.members.as_ref().and_then(|members| members.place_of(&inode));
        self.seen_name(&place.or_else(|| Some(inode.place().ok()?.into()))?)
    }

    /// What programs call a name in a directory.
    pub(crate) fn name_in(&self, directory: u64, name: &OsStr) -> Option<String> {
        let place = self.tree.get(directory).ok()?.place().ok()?;
        self.seen_name(&std::path::Path::new(&place).join(name))
    }

    /// Writes down all that was told.
    pub(crate) fn tell_all(&self) {
        if let Some(teller) = &self.teller {
            teller.flush();
        }
    }

    /// The same when nobody is served any more.
    pub(crate) fn tell_the_end(&self) {
        if let Some(teller) = &self.teller {
            teller.end();
        }
    }
}
