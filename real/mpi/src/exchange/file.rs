//! The program's files whose collective accesses are carried out here, by the library's handles.

use super::storage::{Plain, path_of_open};
use super::told;
use super::view::View;
use crate::call::Call;
use crate::open_files::{self, OpenFiles};
use crate::pfs::group::Group;
use std::sync::atomic::{AtomicBool, AtomicU64};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// An open file of the library's.
pub(super) struct File {
    pub(super) handle: usize,
    pub(super) plain: Plain,
    pub(super) group: Group,
    pub(super) state: Mutex<State>,
    pub(super) has_told: AtomicBool,
    /// Collective calls that were carried out, that went to the library, and bytes to other ranks.
    pub(super) carried: AtomicU64,
    pub(super) passed: AtomicU64,
    pub(super) exchanged: AtomicU64,
}

/// What changes while it is open.
pub(super) struct State {
    /// The views of all ranks; none if one of them cannot be followed.
    pub(super) views: Option<Vec<View>>,
    pub(super) is_atomic: bool,
    /// The first half of a split call that was carried out: which, and what the second half says.
    pub(super) begun: Option<(&'static str, u64)>,
    /// Memory for the next call.
    pub(super) spare: Vec<Vec<u8>>,
}

impl File {
    pub(super) fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

static FILES: OpenFiles<File> = OpenFiles::new();

/// The file of a handle, if its collective accesses are carried out here.
pub(super) fn find(handle: usize) -> Option<Arc<File>> {
    FILES.find(handle)
}

/// After `MPI_File_open(communicator, name, mode, info, file)`: the ranks find out whether all of them
/// can take part. One that could not open the file comes here, too.
pub(super) fn opened(call: &Call<'_>, answer: i32) {
    let Some(group) = Group::of_open(call) else { return };
    let plain = match answer {
        0 => Plain::of(call),
        _ => Err(""),
    };
    let Ok(all) = group.gather(u64::from(plain.is_err())) else { return };
    let first = all.iter().position(|&is_out| is_out != 0);
    let plain = match (plain, first) {
        (Ok(plain), None) => plain,
        (Err(why), Some(first)) if first == group.rank as usize && answer == 0 => {
            return told::stays(&path_of_open(call), why);
        }
        _ => return,
    };
    let handle = open_files::opened(call);
    let views = (0..group.size).map(|_| View::of_bytes()).collect();
    let state = State { views: Some(views), is_atomic: false, begun: None, spare: Vec::new() };
    let [carried, passed, exchanged] = [0; 3].map(AtomicU64::new);
    let has_told = AtomicBool::new(false);
    let state = Mutex::new(state);
    let file = File { handle, plain, group, state, has_told, carried, passed, exchanged };
    FILES.keep(handle, file);
}

/// Before `MPI_File_close(file)`, which all ranks call.
pub(super) fn closing(call: &Call<'_>) {
    if let Some(file) = FILES.closing(call) {
        told::at_the_end(&file);
    }
}
