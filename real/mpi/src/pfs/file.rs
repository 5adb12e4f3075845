//! Open files of ours, and the handles programs know them by.
//!
//! A handle of MPI is a pointer in every family; ours points to the file's own object, so that it is no
//! handle of the library's while the file is open. Fortran has numbers instead, which begin far behind
//! the library's.

use super::group::Group;
use super::hints::Hints;
use super::names::{Name, shown};
use super::ongoing::Ongoing;
use super::request;
use super::session;
use super::trouble::{Handler, Trouble};
use super::view::View;
use iolab_pfs::Code;
use iolab_pfs::client::{Call, Done, FileNumber};
use iolab_pfs_node::NoMemory;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};

/// The first number that Fortran knows a file of ours by.
const FORTRAN_FIRST: i32 = 0x4000_0000;

/// Modes of an open, as older families number them.
pub(super) mod mode {
    pub(in super::super) const CREATE: i32 = 1;
    pub(in super::super) const READ_ONLY: i32 = 2;
    pub(in super::super) const WRITE_ONLY: i32 = 4;
    pub(in super::super) const READ_WRITE: i32 = 8;
    pub(in super::super) const DELETE_ON_CLOSE: i32 = 16;
    pub(in super::super) const EXCLUSIVE: i32 = 64;
    pub(in super::super) const APPEND: i32 = crate::family::APPEND;
    pub(in super::super) const SEQUENTIAL: i32 = 256;
}

/// A file of ours that is open.
pub(crate) struct File {
    pub(super) name: Name,
    pub(super) number: FileNumber,
    pub(super) group: Group,
    /// As older families number it.
    pub(super) mode: i32,
    /// As the program said it.
    pub(super) mode_said: i32,
    state: Mutex<State>,
    handler: Mutex<Handler>,
}

/// What changes while a file is open.
pub(super) struct State {
    pub(super) view: View,
    /// The individual pointer, in etypes.
    pub(super) pointer: u64,
    pub(super) shared: Shared,
    pub(super) hints: Hints,
    /// What `MPI_File_set_atomicity` has said.
    pub(super) is_atomic: bool,
    /// A split collective call that has begun.
    pub(super) begun: Option<Begun>,
}

/// What a rank knows of the shared pointer; where it is, the file system knows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Shared {
    /// How often all ranks have put it somewhere.
    setting: u64,
    /// Where they have put it last, in etypes.
    from: u64,
}

impl Shared {
    /// All ranks put it there.
    pub(super) fn put(&mut self, to: u64) {
        *self = Shared { setting: self.setting + 1, from: to };
    }
}

impl State {
    /// So many bytes behind the individual pointer are passed.
    pub(super) fn go_on(&mut self, bytes: u64) {
        self.pointer += bytes.div_ceil(self.view.unit);
    }
}

/// The first half of a split collective call.
pub(super) struct Begun {
    /// Which of the calls it is.
    pub(super) kind: &'static str,
    pub(super) ongoing: Arc<Ongoing>,
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl File {
    pub(super) fn new(
        name: Name,
        number: FileNumber,
        group: Group,
        (mode, mode_said): (i32, i32),
        hints: Hints,
    ) -> File {
        let state = State {
            view: View::of_bytes(),
            pointer: 0,
            shared: Shared::default(),
            hints,
            is_atomic: false,
            begun: None,
        };
        let handler = Mutex::new(Handler::usual());
        let state = Mutex::new(state);
        File { name, number, group, mode, mode_said, state, handler }
    }

    pub(super) fn state(&self) -> MutexGuard<'_, State> {
        locked(&self.state)
    }

    pub(super) fn handler(&self) -> Handler {
        locked(&self.handler).clone()
    }

    pub(super) fn set_handler(&self, handler: Handler) {
        *locked(&self.handler) = handler;
    }

    /// What programs know it by.
    pub(super) fn handle(&self) -> usize {
        std::ptr::from_ref(self) as usize
    }

    pub(super) fn is(&self, bit: i32) -> bool {
        self.mode & bit != 0
    }

    /// Its length.
    pub(super) fn size(&self) -> Result<u64, Trouble> {
        match session::call(Call::Size { file: self.number })? {
            Done::Size(bytes) => Ok(bytes),
            other => Err(session::strange(&other)),
        }
    }

    /// Moves the shared pointer by so many etypes, from wherever it is; where it was.
    pub(super) fn advance(&self, by: u64) -> Result<u64, Trouble> {
        let Shared { setting, from } = self.state().shared;
        match session::call(Call::Advance { file: self.number, setting, from, by })? {
            Done::Position(units) => Ok(units),
            other => Err(session::strange(&other)),
        }
    }

    /// All ranks come together; all fail if one has, with the class of the lowest that has.
    pub(super) fn agree(&self, own: Result<(), Trouble>) -> Result<(), Trouble> {
        if self.group.size == 1 {
            return own;
        }
        let result = own.as_ref().map_or_else(Trouble::code, |()| Code::OK);
        let agreed = session::agree(self.number, result);
        match (own, agreed) {
            (Err(own), Err(agreed)) => Err(own.of_all(agreed.class)),
            (own, agreed) => own.and(agreed),
        }
    }

    /// The other ranks hear of a failure when they come to this call; it is not waited for them.
    pub(super) fn agree_later(&self, own: &Trouble) {
        let agree = Call::Agree { file: self.number, result: own.code() };
        // Nobody hears what comes of it.
        drop(session::start(agree, NoMemory));
    }

    /// Waits for all that goes on.
    pub(super) fn settle(&self) {
        let begun = self.state().begun.as_ref().map(|begun| begun.ongoing.clone());
        if let Some(ongoing) = begun {
            let _ = ongoing.wait();
        }
        request::settle(self.handle());
    }
}

impl std::fmt::Display for File {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&shown(&self.name.path))
    }
}

struct Table {
    files: BTreeMap<usize, (Arc<File>, i32)>,
    opened: i32,
}

static TABLE: RwLock<Table> = RwLock::new(Table { files: BTreeMap::new(), opened: 0 });
/// Files in the table: calls on the library's own files look no further while there are none.
static OPEN: AtomicUsize = AtomicUsize::new(0);

/// The file of a handle, if it is one of ours.
pub(super) fn find(handle: usize) -> Option<Arc<File>> {
    if OPEN.load(Ordering::Acquire) == 0 {
        return None;
    }
    let table = TABLE.read().unwrap_or_else(PoisonError::into_inner);
    table.files.get(&handle).map(|(file, _)| file.clone())
}

/// A file is open from now on; its handle.
pub(super) fn insert(file: File) -> usize {
    let file = Arc::new(file);
    let handle = file.handle();
    let mut table = TABLE.write().unwrap_or_else(PoisonError::into_inner);
    let fortran = FORTRAN_FIRST + table.opened;
    table.opened = (table.opened + 1) & 0x0fff_ffff;
    table.files.insert(handle, (file, fortran));
    OPEN.store(table.files.len(), Ordering::Release);
    handle
}

/// A file is not open any more.
pub(super) fn remove(handle: usize) {
    let mut table = TABLE.write().unwrap_or_else(PoisonError::into_inner);
    table.files.remove(&handle);
    OPEN.store(table.files.len(), Ordering::Release);
}

/// Fortran's number of a file of ours.
pub(crate) fn fortran_of(handle: usize) -> Option<i32> {
    find(handle)?;
    let table = TABLE.read().unwrap_or_else(PoisonError::into_inner);
    table.files.get(&handle).map(|&(_, fortran)| fortran)
}

/// The file of ours that Fortran knows by a number.
pub(crate) fn of_fortran(number: i32) -> Option<usize> {
    if number < FORTRAN_FIRST || OPEN.load(Ordering::Acquire) == 0 {
        return None;
    }
    let table = TABLE.read().unwrap_or_else(PoisonError::into_inner);
    let mut files = table.files.iter();
    files.find(|(_, (_, fortran))| *fortran == number).map(|(handle, _)| *handle)
}
