//! MPI through a table of functions, loaded at run time.
//!
//! The other side is `real/comm/adapter/iolab_mpi.c`, compiled by the site's mpicc: it keeps every
//! handle and status of the MPI library to itself. This side keeps the promises about memory: a
//! transfer under way points into an [`Arena`] that is owned here, never moves, cannot be reached
//! until the transfer is done, and is not freed before.

use crate::arena::Arena;
use crate::shared::give_way;
use std::collections::VecDeque;
use std::ffi::{CString, c_char, c_int, c_void};
use std::path::Path;
use std::sync::Arc;

const ABI: i64 = 1;

/// The table of the adapter, field by field.
#[repr(C)]
#[derive(Clone, Copy)]
struct Table {
    abi: i64,
    size: i64,
    init: unsafe extern "C" fn(*mut i64, *mut i64) -> c_int,
    finalize: unsafe extern "C" fn() -> c_int,
    version: unsafe extern "C" fn(*mut c_char, i64) -> c_int,
    error_text: unsafe extern "C" fn(i64, *mut c_char, i64) -> c_int,
    barrier: unsafe extern "C" fn() -> c_int,
    gather: unsafe extern "C" fn(*const c_void, i64, *mut c_void) -> c_int,
    type_make: unsafe extern "C" fn(i64, *const i64, *mut i64) -> c_int,
    type_free: unsafe extern "C" fn(i64) -> c_int,
    open: unsafe extern "C" fn(*const c_char, i64, i64, i64, *const c_char, i64, *mut i64) -> c_int,
    close: unsafe extern "C" fn(i64) -> c_int,
    sync: unsafe extern "C" fn(i64) -> c_int,
    view: unsafe extern "C" fn(i64, i64, i64) -> c_int,
    transfer: Transfer,
    start: Transfer,
    test: unsafe extern "C" fn(i64, *mut i64, *mut i64) -> c_int,
}

type Transfer = unsafe extern "C" fn(i64, i64, i64, i64, *mut c_void, i64, i64, *mut i64) -> c_int;

/// An MPI library, initialised; finalised when the last owner lets go.
pub struct Mpi {
    table: Table,
    /// This process's rank.
    pub rank: u32,
    /// How many ranks there are.
    pub size: u32,
    // Unloaded last; MPI libraries do not like to be unloaded at all, so it never is.
    _library: std::mem::ManuallyDrop<libloading::Library>,
}

// SAFETY: the library was initialised with MPI_THREAD_MULTIPLE (`load` refuses less), so any thread
// may call it; the table is constant.
unsafe impl Send for Mpi {}
// SAFETY: as above.
unsafe impl Sync for Mpi {}

/// Nested-strided sets as the adapter reads them: per set offset, block, depth, then count and
/// stride per level, innermost first.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Sets {
    count: i64,
    text: Vec<i64>,
    end: i64,
}

impl Sets {
    /// Forgets all sets.
    pub fn clear(&mut self) {
        (self.count, self.end) = (0, 0);
        self.text.clear();
    }

    /// Adds a set. Levels are (count, stride), innermost first.
    pub fn push(&mut self, offset: u64, block: u64, levels: impl Iterator<Item = (u64, u64)>) {
        let number = |value: u64| i64::try_from(value).unwrap_or(i64::MAX);
        self.text.extend([number(offset), number(block), 0]);
        let depth = self.text.len() - 1;
        let mut end = number(offset).saturating_add(number(block));
        for (count, stride) in levels {
            self.text.extend([number(count), number(stride)]);
            self.text[depth] += 1;
            let span = number(count.saturating_sub(1)).saturating_mul(number(stride));
            end = end.saturating_add(span);
        }
        self.count += 1;
        self.end = self.end.max(end);
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }
}

impl Mpi {
    /// Loads the adapter and initialises the library.
    ///
    /// # Errors
    /// What the loader or the library says.
    pub fn load(adapter: &Path) -> Result<Arc<Mpi>, String> {
        // SAFETY: the adapter is our own C file, compiled from the source in this program; its
        // only initialisers are those of the MPI library.
        let library = unsafe { libloading::Library::new(adapter) }.map_err(|e| e.to_string())?;
        // SAFETY: the symbol is a `struct table`; abi and size are compared before anything else.
        let table: Table = unsafe {
            let symbol = library.get::<*const Table>(b"iolab_mpi_table\0");
            let start = *symbol.map_err(|error| error.to_string())?;
            if (*start).abi != ABI || (*start).size != size_of::<Table>() as i64 {
                return Err(format!("{} is of another version of iolab", adapter.display()));
            }
            *start
        };
        let (mut rank, mut size) = (0, 0);
        // SAFETY: both numbers live on this stack; this runs once, before any other MPI call.
        let code = unsafe { (table.init)(&raw mut rank, &raw mut size) };
        if code != 0 {
            return Err(format!("MPI_Init_thread(MPI_THREAD_MULTIPLE) failed with code {code}"));
        }
        let _library = std::mem::ManuallyDrop::new(library);
        Ok(Arc::new(Mpi { table, rank: rank as u32, size: size as u32, _library }))
    }

    fn check(&self, code: c_int) -> Result<(), String> {
        if code == 0 {
            return Ok(());
        }
        let mut text = [0u8; 512];
        // SAFETY: the adapter writes at most the given number of bytes.
        unsafe { (self.table.error_text)(code.into(), text.as_mut_ptr().cast(), 512) };
        let text = until_zero(&text);
        Err(if text.is_empty() { format!("error {code}") } else { text })
    }

    /// What the library calls itself, in one line.
    pub fn version(&self) -> String {
        let mut text = [0u8; 256];
        // SAFETY: as in `check`.
        unsafe { (self.table.version)(text.as_mut_ptr().cast(), 256) };
        let text = until_zero(&text);
        let line = text.split(['\n', ',']).next().unwrap_or_default();
        line.split_whitespace().collect::<Vec<_>>().join(" ")
    }

    /// Returns when every rank has come here.
    pub fn barrier(&self) -> Result<(), String> {
        // SAFETY: no arguments.
        self.check(unsafe { (self.table.barrier)() })
    }

    /// The same number of bytes of every rank, by rank.
    pub fn gather(&self, own: &[u8]) -> Result<Vec<u8>, String> {
        let mut all = vec![0u8; own.len() * self.size as usize];
        let (from, bytes, to) = (own.as_ptr().cast(), own.len() as i64, all.as_mut_ptr().cast());
        // SAFETY: every rank gives `own.len()` bytes, so `all` has room for those of all.
        self.check(unsafe { (self.table.gather)(from, bytes, to) })?;
        Ok(all)
    }
}

fn until_zero(text: &[u8]) -> String {
    let end = text.iter().position(|&byte| byte == 0).unwrap_or(text.len());
    String::from_utf8_lossy(&text[..end]).into_owned()
}

impl Drop for Mpi {
    fn drop(&mut self) {
        // SAFETY: files hold an `Arc` of this, so nothing is open any more.
        unsafe { (self.table.finalize)() };
    }
}

/// How ranks take part in a transfer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Kind {
    Independent,
    Collective,
    SplitCollective,
}

/// One transfer: where in the file (relative to the view), where in the arena, how much.
#[derive(Clone, Copy, Debug)]
pub struct Part<'a> {
    /// To the file.
    pub write: bool,
    /// Bytes from the start of the view.
    pub offset: u64,
    /// Start of the buffer in the arena.
    pub at: usize,
    /// Sets of the buffer; empty when it is contiguous.
    pub memory: &'a Sets,
    /// How many bytes.
    pub bytes: u64,
}

/// How a file is to be opened through MPI-IO.
#[derive(Clone, Copy, Debug)]
pub struct MpiOpening<'a> {
    /// Where it lies.
    pub path: &'a Path,
    /// For writing as well as reading.
    pub write: bool,
    /// Made when it is not there.
    pub create: bool,
    /// Made only where nothing is.
    pub exclusive: bool,
    /// Cut to nothing first.
    pub truncate: bool,
    /// Together with all ranks.
    pub shared: bool,
    /// Passed to the library.
    pub hints: &'a [(String, String)],
}

struct Open {
    mpi: Arc<Mpi>,
    handle: i64,
}

/// A datatype with the sets it was made from, kept because the next operation often has the same.
#[derive(Default)]
struct Datatype {
    handle: i64,
    sets: Sets,
}

/// A file opened through MPI-IO, with the memory its transfers use.
pub struct MpiFile {
    arena: Arena,
    open: Option<Open>,
    under_way: VecDeque<(u64, i64)>,
    memory_type: Datatype,
    view_type: Datatype,
}

impl MpiFile {
    /// No file yet, but the memory.
    pub fn new(arena: Arena) -> MpiFile {
        MpiFile {
            arena,
            open: None,
            under_way: VecDeque::new(),
            memory_type: Datatype::default(),
            view_type: Datatype::default(),
        }
    }

    /// The memory. Waits for what is under way first.
    pub fn arena(&mut self) -> &mut Arena {
        while self.finish().is_ok_and(|finished| finished.is_some()) {}
        &mut self.arena
    }

    /// The bytes of the memory while transfers go on: the caller changes nothing that one of them uses.
    pub fn spare(&mut self) -> &mut [u8] {
        &mut self.arena
    }

    /// Opens a file, together with all ranks if `shared`.
    pub fn open(&mut self, mpi: &Arc<Mpi>, opening: &MpiOpening) -> Result<(), String> {
        let no_zero = |_| "a zero byte in a path or hint".to_owned();
        // Open MPI opens no shared file whose name is without a folder.
        let bare = opening.path.parent().is_none_or(|folder| folder.as_os_str().is_empty());
        let path = if bare { Path::new(".").join(opening.path) } else { opening.path.to_owned() };
        let path = CString::new(path.as_os_str().as_encoded_bytes()).map_err(no_zero)?;
        let mut pairs = Vec::new();
        for text in opening.hints.iter().flat_map(|(key, value)| [key, value]) {
            pairs.extend(CString::new(text.as_str()).map_err(no_zero)?.into_bytes_with_nul());
        }
        pairs.push(0);
        let mut handle = 0;
        // SAFETY: both texts are terminated and outlive the call; the handle is on this stack.
        mpi.check(unsafe {
            (mpi.table.open)(
                path.as_ptr(),
                match (opening.write, opening.create, opening.exclusive) {
                    (false, ..) => 0,
                    (true, false, _) => 1,
                    (true, true, false) => 2,
                    (true, true, true) => 3,
                },
                opening.truncate.into(),
                opening.shared.into(),
                pairs.as_ptr().cast(),
                opening.hints.len() as i64,
                &raw mut handle,
            )
        })?;
        self.open = Some(Open { mpi: Arc::clone(mpi), handle });
        Ok(())
    }

    fn opened(&self) -> Result<&Open, String> {
        self.open.as_ref().ok_or_else(|| "no file is open".to_owned())
    }

    /// Sets the view: these sets of bytes from `displacement` on. Together with all ranks.
    pub fn view(&mut self, displacement: u64, sets: &Sets) -> Result<(), String> {
        let open = self.open.as_ref().ok_or("no file is open")?;
        let datatype = datatype(&open.mpi, &mut self.view_type, sets)?;
        // SAFETY: the file is open, the datatype committed or 0 for plain bytes.
        let code = unsafe { (open.mpi.table.view)(open.handle, displacement as i64, datatype) };
        open.mpi.check(code)
    }

    /// The address of a buffer, checked to lie within the arena to its end.
    fn address(&mut self, part: &Part) -> Result<*mut c_void, String> {
        let length = if part.memory.is_empty() { part.bytes } else { part.memory.end as u64 };
        let end = (part.at as u64).checked_add(length);
        if end.is_none_or(|end| end > self.arena.len() as u64) {
            return Err(format!("a buffer of {length} bytes at {} leaves the memory", part.at));
        }
        Ok(self.arena[part.at..].as_mut_ptr().cast())
    }

    /// Transfers and waits. Gives the bytes moved.
    pub fn transfer(&mut self, kind: Kind, part: Part) -> Result<u64, String> {
        let memory = self.address(&part)?;
        let open = self.open.as_ref().ok_or("no file is open")?;
        let datatype = datatype(&open.mpi, &mut self.memory_type, part.memory)?;
        let (way, kind, offset) = (part.write.into(), kind as i64, part.offset as i64);
        let mut moved = 0;
        // SAFETY: the buffer was checked to lie within the arena, which outlives the call.
        open.mpi.check(unsafe {
            (open.mpi.table.transfer)(
                open.handle,
                way,
                kind,
                offset,
                memory,
                datatype,
                part.bytes as i64,
                &raw mut moved,
            )
        })?;
        Ok(moved as u64)
    }

    /// Starts a transfer. Its buffer belongs to the library until it is finished.
    pub fn start(&mut self, collective: bool, part: Part, tag: u64) -> Result<(), String> {
        let memory = self.address(&part)?;
        let open = self.open.as_ref().ok_or("no file is open")?;
        let datatype = datatype(&open.mpi, &mut self.memory_type, part.memory)?;
        let mut started = 0;
        // SAFETY: as in `transfer`; until it is done the arena is neither handed out nor freed.
        open.mpi.check(unsafe {
            (open.mpi.table.start)(
                open.handle,
                part.write.into(),
                collective.into(),
                part.offset as i64,
                memory,
                datatype,
                part.bytes as i64,
                &raw mut started,
            )
        })?;
        self.under_way.push_back((tag, started));
        Ok(())
    }

    /// Looks once at the oldest transfer under way; gives it when it is done.
    pub fn test(&mut self) -> Result<Option<(u64, u64)>, String> {
        let Some(&(tag, started)) = self.under_way.front() else { return Ok(None) };
        let open = self.opened()?;
        let (mut done, mut moved) = (0, 0);
        // SAFETY: the request is one that `start` made and that was not done yet.
        let code = unsafe { (open.mpi.table.test)(started, &raw mut done, &raw mut moved) };
        let checked = open.mpi.check(code);
        if done != 0 {
            self.under_way.pop_front();
        }
        checked.map(|()| (done != 0).then_some((tag, moved as u64)))
    }

    /// Waits for the oldest transfer under way; `None` when there is none.
    pub fn finish(&mut self) -> Result<Option<(u64, u64)>, String> {
        while !self.under_way.is_empty() {
            if let Some(done) = self.test()? {
                return Ok(Some(done));
            }
            give_way();
        }
        Ok(None)
    }

    /// How many transfers are under way.
    pub fn under_way(&self) -> usize {
        self.under_way.len()
    }

    /// Brings what was written to the device; together with all ranks that share the file.
    pub fn sync(&mut self) -> Result<(), String> {
        let open = self.opened()?;
        // SAFETY: the file is open.
        open.mpi.check(unsafe { (open.mpi.table.sync)(open.handle) })
    }

    /// Waits for everything and closes, together with all ranks that share the file.
    pub fn close(&mut self) -> Result<(), String> {
        while self.finish().is_ok_and(|finished| finished.is_some()) {}
        let Some(open) = self.open.take() else { return Ok(()) };
        for datatype in [&mut self.memory_type, &mut self.view_type] {
            release(&open.mpi, datatype);
        }
        // SAFETY: the file is open, and its handle is forgotten with this.
        open.mpi.check(unsafe { (open.mpi.table.close)(open.handle) })
    }
}

impl Drop for MpiFile {
    fn drop(&mut self) {
        // A failed partner cannot be waited for; what is under way must be, as it uses our memory.
        while !self.under_way.is_empty() {
            let _ = self.finish();
        }
    }
}

/// The handle of the datatype of these sets: 0 for none, the kept one when it is the same.
fn datatype(mpi: &Mpi, kept: &mut Datatype, sets: &Sets) -> Result<i64, String> {
    if sets.is_empty() {
        return Ok(0);
    }
    if kept.handle != 0 && kept.sets == *sets {
        return Ok(kept.handle);
    }
    release(mpi, kept);
    let mut handle = 0;
    // SAFETY: the text describes `count` sets as the adapter reads them.
    mpi.check(unsafe { (mpi.table.type_make)(sets.count, sets.text.as_ptr(), &raw mut handle) })?;
    *kept = Datatype { handle, sets: sets.clone() };
    Ok(handle)
}

fn release(mpi: &Mpi, kept: &mut Datatype) {
    if kept.handle != 0 {
        // SAFETY: made by `datatype` and freed once. MPI keeps it alive for transfers under way.
        unsafe { (mpi.table.type_free)(kept.handle) };
        kept.handle = 0;
    }
}
