//! What went wrong with a file of ours, as MPI tells it: a class, the file's error handler, and one line
//! on standard error.

use super::file::File;
use super::names::shown;
use super::numbers::{Class, Numbers};
use crate::profiling;
use iolab_pfs::Code;
use iolab_pfs::client::Failure;
use iolab_vocab::Refusal;
use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

/// An error on its way to the program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Trouble {
    pub(crate) class: Class,
    /// One line for people; empty if another rank has told it.
    pub(crate) text: String,
}

impl Trouble {
    pub(crate) fn new(class: Class, text: impl Into<String>) -> Trouble {
        Trouble { class, text: text.into() }
    }

    /// The same, told by another rank.
    pub(crate) fn told(self) -> Trouble {
        Trouble { text: String::new(), ..self }
    }

    /// What other ranks of a collective call are given.
    pub(super) fn code(&self) -> Code {
        match self.class {
            Class::NoSuchFile => Code::NO_ENTRY,
            Class::FileExists => Code::EXISTS,
            Class::Access => Code::ACCESS,
            Class::NoSpace => Code::NO_SPACE,
            Class::Quota => Code::QUOTA,
            Class::NoMem => Code::NO_MEMORY,
            Class::NotSame => Code::NOT_SAME,
            Class::BadFile => Code::NOT_DIRECTORY,
            Class::Io | Class::Other => Code::IO,
            _ => Code::INVALID,
        }
    }
}

impl From<Failure> for Trouble {
    fn from(failure: Failure) -> Trouble {
        Trouble::new(class_of(failure.code), failure.text)
    }
}

impl From<Refusal> for Trouble {
    fn from(refusal: Refusal) -> Trouble {
        Trouble::new(Class::Arg, refusal.message)
    }
}

/// The class of what the file system says.
fn class_of(code: Code) -> Class {
    match i32::from(code.0) {
        libc::ENOENT => Class::NoSuchFile,
        libc::EEXIST => Class::FileExists,
        libc::EACCES | libc::EPERM => Class::Access,
        libc::ENOSPC => Class::NoSpace,
        libc::EDQUOT => Class::Quota,
        libc::EROFS => Class::ReadOnly,
        libc::EBUSY | libc::ETXTBSY => Class::FileInUse,
        libc::ENOTDIR | libc::EISDIR | libc::ENAMETOOLONG | libc::ELOOP => Class::BadFile,
        libc::EINVAL => Class::Arg,
        libc::ENOMEM => Class::NoMem,
        _ if code == Code::NOT_SAME => Class::NotSame,
        _ => Class::Io,
    }
}

/// What is done about errors of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Handler {
    /// The call returns its code.
    Return,
    /// The program ends: all processes, or those of the file.
    Fatal { handle: usize },
    /// A function of the program's own.
    Own { function: usize },
}

/// Functions by the handles that were made of them: MPI does not tell.
static FUNCTIONS: Mutex<BTreeMap<usize, usize>> = Mutex::new(BTreeMap::new());

fn functions<T>(work: impl FnOnce(&mut BTreeMap<usize, usize>) -> T) -> T {
    work(&mut FUNCTIONS.lock().unwrap_or_else(PoisonError::into_inner))
}

/// A handle was made of a function.
pub(super) fn keep_function(handle: usize, function: usize) {
    functions(|functions| functions.insert(handle, function));
}

impl Handler {
    /// What a handle stands for. One whose function is not known returns codes.
    pub(super) fn of(handle: usize) -> Handler {
        let numbers = Numbers::here();
        if handle == numbers.errors_are_fatal || handle == numbers.errors_abort {
            return Handler::Fatal { handle };
        }
        match functions(|functions| functions.get(&handle).copied()) {
            Some(function) if handle != numbers.errors_return => Handler::Own { function },
            _ => Handler::Return,
        }
    }

    /// That of files which are opened next.
    pub(super) fn usual() -> Handler {
        let mut handle = 0usize;
        // SAFETY: the null file has a handler, and there is room for its handle.
        let answer = unsafe {
            profiling::file_get_errhandler(Numbers::here().no_file, &raw mut handle as usize)
        };
        if answer == 0 { Handler::of(handle) } else { Handler::Return }
    }
}

/// Tells a line, unless nobody wants to hear it.
pub(crate) fn say(line: &str) {
    iolab_pfs_node::say_in_guest(line);
}

/// Tells of an error, and does what the handler says; the answer of the call.
pub(super) fn raise(file: Option<&File>, function: &str, trouble: &Trouble) -> i32 {
    if !trouble.text.is_empty() {
        match file {
            Some(file) => say(&format!("{function} of {}: {}", shown(&file.path), trouble.text)),
            None => say(&format!("{function}: {}", trouble.text)),
        }
    }
    let handler = file.map_or_else(Handler::usual, File::handler);
    let mut code = Numbers::here().code(trouble.class);
    let mut handle = file.map_or(Numbers::here().no_file, File::handle);
    call(handler, &mut handle, &mut code);
    code
}

/// Calls a handler about an error.
pub(super) fn call(handler: Handler, handle: &mut usize, code: &mut i32) {
    match handler {
        Handler::Return => {}
        Handler::Fatal { .. } => {
            say("the program ends: its error handler is MPI_ERRORS_ARE_FATAL or MPI_ERRORS_ABORT");
            let world = crate::family::Family::here().world;
            // SAFETY: MPI is initialised, and does not come back.
            unsafe { profiling::abort(world, *code as usize) };
        }
        Handler::Own { function } => {
            // SAFETY: the program gave this function for it; it takes more arguments, which only
            // the library that calls it knows.
            unsafe {
                let function: unsafe extern "C-unwind" fn(*mut usize, *mut i32, ...) =
                    std::mem::transmute(function);
                function(handle, code, 0usize);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_file_system_says_has_the_class_that_mpi_has_for_it() {
        let of = |code: i32| class_of(Code(code as u16));
        assert_eq!(class_of(Code::NO_ENTRY), Class::NoSuchFile);
        assert_eq!(class_of(Code::TIMED_OUT), Class::Io);
        assert_eq!(class_of(Code::SESSION_LOST), Class::Io);
        assert_eq!(of(libc::EDQUOT), Class::Quota);
        assert_eq!(of(libc::EROFS), Class::ReadOnly);
        assert_eq!(of(libc::EISDIR), Class::BadFile);
    }

    #[test]
    fn a_class_that_goes_round_the_ranks_stays_the_same() {
        for class in
            [Class::NotSame, Class::NoSpace, Class::Quota, Class::FileExists, Class::Io, Class::Arg]
        {
            assert_eq!(class_of(Trouble::new(class, "").code()), class);
        }
    }
}
