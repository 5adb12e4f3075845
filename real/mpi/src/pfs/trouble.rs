//! What went wrong with a file of ours, as MPI tells it: a class, the file's error handler, and one line
//! on standard error.

use super::file::File;
use super::fortran;
use super::group::{Group, check};
use super::names::shown;
use super::numbers::{Class, Numbers};
use crate::profiling;
use iolab_pfs::Code;
use iolab_pfs::client::Failure;
use iolab_vocab::Refusal;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

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

    /// The same of the class that all ranks have come to.
    pub(super) fn of_all(self, class: Class) -> Trouble {
        Trouble { class, ..self }
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
            Class::FileInUse => Code::BUSY,
            Class::ReadOnly => Code::READ_ONLY,
            Class::UnsupportedOperation => Code::NOT_SUPPORTED,
            Class::Io => Code::IO,
            Class::Arg => Code::INVALID,
            Class::Count => Code::COUNT,
            Class::Type => Code::DATATYPE,
            Class::Amode => Code::MODE,
            Class::UnsupportedDatarep => Code::REPRESENTATION,
            Class::Conversion => Code::CONVERSION,
            Class::File => Code::HANDLE,
            Class::Other => Code::OTHER,
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
    match code {
        Code::NOT_SAME => return Class::NotSame,
        Code::COUNT => return Class::Count,
        Code::DATATYPE => return Class::Type,
        Code::MODE => return Class::Amode,
        Code::REPRESENTATION => return Class::UnsupportedDatarep,
        Code::CONVERSION => return Class::Conversion,
        Code::HANDLE => return Class::File,
        Code::OTHER => return Class::Other,
        _ => {}
    }
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
        libc::EOPNOTSUPP => Class::UnsupportedOperation,
        _ => Class::Io,
    }
}

/// What is done about errors of a file.
#[derive(Clone, Debug)]
pub(super) enum Handler {
    /// The call returns its code.
    Return,
    /// The program ends: all processes, or those of the file.
    Fatal { handle: usize },
    /// One of the program's own.
    Own(Arc<Held>),
}

/// A handler of the program's, with a reference to it: the program may give its own back while files have it.
#[derive(Debug)]
pub(super) struct Held {
    handle: usize,
    function: Option<Made>,
}

/// The function of a handler, as its language calls it.
#[derive(Clone, Copy, Debug)]
pub(super) enum Made {
    InC(usize),
    InFortran(usize),
}

/// Functions by the handles that were made of them: MPI does not tell.
static FUNCTIONS: Mutex<BTreeMap<usize, Made>> = Mutex::new(BTreeMap::new());
/// Who changes the null file's handler, and puts back what it was.
static NULL_FILE: Mutex<()> = Mutex::new(());

fn functions<T>(work: impl FnOnce(&mut BTreeMap<usize, Made>) -> T) -> T {
    work(&mut FUNCTIONS.lock().unwrap_or_else(PoisonError::into_inner))
}

/// A handle was made of a function.
pub(super) fn keep_function(handle: usize, function: Made) {
    functions(|functions| functions.insert(handle, function));
}

/// Writes another reference to a handler of the program's to an address. MPI gives references to what files
/// have, and of its files the null one is always there.
///
/// # Safety
/// There must be room for a handle.
unsafe fn refer(handle: usize, to: usize) -> Result<(), Trouble> {
    let null = Numbers::here().no_file;
    let mut before = 0usize;
    let _turn = NULL_FILE.lock().unwrap_or_else(PoisonError::into_inner);
    // SAFETY: the null file has a handler, which it gets back; and the caller's promise.
    unsafe {
        let answer = profiling::file_get_errhandler(null, &raw mut before as usize);
        check(answer, "MPI_File_get_errhandler")?;
        let mut answer = profiling::file_set_errhandler(null, handle);
        if answer == 0 {
            answer = profiling::file_get_errhandler(null, to);
            profiling::file_set_errhandler(null, before);
        }
        if !Numbers::here().is_usual_handler(before) {
            profiling::errhandler_free(&raw mut before as usize);
        }
        check(answer, "MPI_File_set_errhandler")
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        if profiling::is_at_work() {
            // SAFETY: our own reference.
            unsafe { profiling::errhandler_free(&raw mut self.handle as usize) };
        }
    }
}

impl Held {
    /// What a reference of ours is one to.
    fn handler(handle: usize) -> Handler {
        let function = functions(|functions| functions.get(&handle).copied());
        Handler::Own(Arc::new(Held { handle, function }))
    }

    /// `MPI_File_get_errhandler`: writes a reference to an address.
    ///
    /// # Safety
    /// There must be room for a handle.
    pub(super) unsafe fn give(&self, to: usize) -> Result<(), Trouble> {
        // SAFETY: the caller's promise.
        unsafe { refer(self.handle, to) }
    }
}

impl Handler {
    /// What a handle stands for, if it is one of those that all programs have.
    fn of_usual(handle: usize) -> Option<Handler> {
        let numbers = Numbers::here();
        match handle {
            _ if handle == numbers.errors_return => Some(Handler::Return),
            _ if numbers.is_usual_handler(handle) => Some(Handler::Fatal { handle }),
            _ => None,
        }
    }

    /// What a handle of the program's stands for.
    pub(super) fn of(handle: usize) -> Result<Handler, Trouble> {
        if let Some(usual) = Handler::of_usual(handle) {
            return Ok(usual);
        }
        let mut own = 0usize;
        // SAFETY: there is room for a handle of any width.
        unsafe { refer(handle, &raw mut own as usize)? };
        Ok(Held::handler(own))
    }

    /// That of files which are opened next.
    pub(super) fn usual() -> Handler {
        let mut handle = 0usize;
        // SAFETY: the null file has a handler, and there is room for its handle.
        let answer = unsafe {
            profiling::file_get_errhandler(Numbers::here().no_file, &raw mut handle as usize)
        };
        match answer {
            0 => Handler::of_usual(handle).unwrap_or_else(|| Held::handler(handle)),
            _ => Handler::Return,
        }
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
            Some(file) => {
                say(&format!("{function} of {}: {}", shown(&file.name.path), trouble.text))
            }
            None => say(&format!("{function}: {}", trouble.text)),
        }
    }
    let handler = file.map_or_else(Handler::usual, File::handler);
    let mut code = Numbers::here().code(trouble.class);
    let mut handle = file.map_or(Numbers::here().no_file, File::handle);
    call(&handler, &mut handle, &mut code);
    code
}

/// Calls a handler about an error.
pub(super) fn call(handler: &Handler, handle: &mut usize, code: &mut i32) {
    match handler {
        Handler::Return => {}
        Handler::Fatal { .. } => {
            say("the program ends: its error handler is MPI_ERRORS_ARE_FATAL or MPI_ERRORS_ABORT");
            // SAFETY: MPI is at work, and does not come back.
            unsafe { profiling::abort(Group::everybody(), *code as usize) };
        }
        Handler::Own(held) => match held.function {
            // SAFETY: the program gave this function for it; it takes more arguments, which only
            // the library that calls it knows.
            Some(Made::InC(function)) => unsafe {
                let function: unsafe extern "C-unwind" fn(*mut usize, *mut i32, ...) =
                    std::mem::transmute(function);
                function(handle, code, 0usize);
            },
            // SAFETY: as above.
            Some(Made::InFortran(function)) => unsafe {
                let mut number = fortran::number_of(*handle);
                let function: unsafe extern "C-unwind" fn(*mut i32, *mut i32) =
                    std::mem::transmute(function);
                function(&mut number, code);
            },
            None => say("an error handler was made in a way that is not known: it is not called"),
        },
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
        for class in Class::ALL {
            assert_eq!(class_of(Trouble::new(class, "").code()), class);
        }
    }
}
