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
    /// A file that is being opened, by its name.
    Opened(Option<String>),
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

    /// Of an open: the kernel's number of the description.
    fn description(&self) -> Option<u64> {
        None
    }
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

    fn description(&self) -> Option<u64> {
        Some(self.number)
    }
}

impl Returned for (std::sync::Arc<crate::tree::Inode>, rustix::fs::Stat, crate::open::Grant) {
    fn number(&self) -> i64 {
        self.2.number()
    }

    fn description(&self) -> Option<u64> {
        self.2.description()
    }
}

impl Hosted {
    /// Does it, and tells of it where somebody listens: by the names that there were before.
    pub(crate) fn told<T: Returned>(
        &self,
        request: &Request,
        row: impl FnOnce() -> Row,
        work: impl FnOnce() -> Answer<T>,
    ) -> Answer<T> {
        let Some(teller) = &self.teller else { return work() };
        let row = row();
        let start = teller.now();
        let answer = work();
        let end = teller.now();
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
            Place::Opened(path) => {
                teller.look_at(thread);
                record.number = name(path);
                let description = answer.as_ref().ok().and_then(Returned::description);
                if let Some(open) = description.and_then(|number| self.files.get(number).ok()) {
                    record.length = open.inode.stat().map_or(-1, |stat| stat.st_size);
                    open.told.store(record.number, Ordering::Relaxed);
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

    /// What programs call a file, by the name by which a thread has come if it still has that.
    pub(crate) fn name_of(&self, inode: u64, thread: u32) -> Option<String> {
        let inode = self.tree.get(inode).ok()?;
        // Memory has no path; a member's is that of its name.
        let member = self.members.as_ref().and_then(|members| members.place_of(&inode));
        match member {
            Some(place) => self.seen_name(&place),
            None => self.places_of(&inode, thread).iter().find_map(|place| self.seen_name(place)),
        }
    }

    /// What programs call a name in a directory.
    pub(crate) fn name_in(&self, directory: u64, name: &OsStr) -> Option<String> {
        self.seen_name(&self.place_in(directory, name)?)
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
