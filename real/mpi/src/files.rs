//! MPI-IO: files, views, and the calls that move data.
//!
//! A record has what the program said: offsets and pointers count in units of the view, whose
//! datatypes stand in a text of their own. Where bytes lie in the file is found out afterwards.

use crate::call::Call;
use crate::completion::wait;
use crate::datatypes;
use crate::family::{APPEND, Family};
use crate::handle::File;
use crate::pfs;
use crate::profiling::{file_position, file_position_shared, get_elements};
use crate::recorder::{number, push, record};
use iolab_trace::Function;
use iolab_trace::spool::{Record, SHARED_POINTER};
use std::ffi::CStr;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// Where a call gets its offset from.
#[derive(Clone, Copy)]
pub(crate) enum Place {
    /// The argument after the file.
    Explicit,
    /// This process's own pointer.
    Own,
    /// The pointer that all who opened the file share.
    Shared,
}

impl Place {
    /// How many arguments stand before the buffer.
    fn before_buffer(self) -> usize {
        match self {
            Place::Explicit => 2,
            Place::Own | Place::Shared => 1,
        }
    }
}

fn row(call: &Call<'_>, file: File, function: Function) -> Record {
    Record { number: file.number, fd: file.number as i32, ..record(function, call.times) }
}

/// The file a call is on.
fn file_of(call: &Call<'_>) -> Option<File> {
    call.with(|state| state.files.get(&call.word(0)).copied())
}

/// `MPI_File_open(communicator, name, mode, info, file)`.
pub(crate) fn open(call: &mut Call<'_>) {
    let communicator = call.with(|state| {
        let communicator = state.communicator(call.handle(0));
        communicator.map_or(0, |communicator| communicator.number)
    });
    // SAFETY: the name MPI has just read, and the handle it has just written.
    let (name, handle) = unsafe {
        let name = CStr::from_ptr(call.word(1) as *const _).to_bytes();
        (path_of(name, call.family), (call.word(4) as *const usize).read_unaligned())
    };
    let file = File { number: number(&name), begun: None };
    let mode = call.family.mode(call.int(2));
    let mut length = -1;
    if mode & APPEND != 0 {
        // The view is one of bytes yet.
        length = position(handle, c"MPI_File_get_position", file_position);
    }
    push(Record {
        offset: i64::from(communicator),
        length,
        argument: i64::from(mode),
        result: i64::from(file.number),
        ..row(call, file, Function::MPI_FILE_OPEN)
    });
    call.with(|state| state.files.insert(handle, file));
}

/// Kinds of file systems that ROMIO and its relatives know before a name, those of old versions too.
const KINDS: &str = "ufs nfs xfs panfs pvfs pvfs2 gpfs lustre daos ime quobyte testfs pfs piofs hfs sfs bgl \
    bglockless zoidfs plfs ntfs gridftp";

/// The path a name stands for: absolute, without the kind of file system that some families take
/// before it (`ufs:out`). What else stands before a colon belongs to the name (`step_12:00:00`).
pub(crate) fn path_of(name: &[u8], family: &Family) -> Vec<u8> {
    let kind = name.split(|&byte| byte == b':').next().unwrap_or_default();
    let has_kind = family.names_have_kinds
        && kind.len() < name.len()
        && KINDS.split_ascii_whitespace().any(|known| known.as_bytes().eq_ignore_ascii_case(kind));
    let name = if has_kind { &name[kind.len() + 1..] } else { name };
    let path = Path::new(std::ffi::OsStr::from_bytes(name));
    let absolute = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    absolute.as_os_str().as_bytes().to_vec()
}

/// Before `MPI_File_close(file)`, which overwrites the handle.
pub(crate) fn note_file(call: &mut Call<'_>) {
    // SAFETY: the guest's own pointer to a handle, which MPI is about to follow.
    call.noted = vec![unsafe { (call.word(0) as *const usize).read_unaligned() }];
}

/// `MPI_File_close(file)`.
pub(crate) fn close(call: &mut Call<'_>) {
    let file = call.with(|state| state.files.remove(call.noted.first()?));
    if let Some(file) = file {
        push(row(call, file, Function::MPI_FILE_CLOSE));
    }
}

/// `MPI_File_set_view(file, displacement, etype, filetype, representation, info)`.
pub(crate) fn set_view(call: &mut Call<'_>) {
    let Some(file) = file_of(call) else { return };
    let unit = datatypes::text(call.family, call.handle(2));
    let tile = datatypes::text(call.family, call.handle(3));
    let displacement = match call.word(1) as i64 {
        current if current == call.family.displacement_current => SHARED_POINTER,
        displacement => displacement,
    };
    let text = format!("\0view {unit} {tile}");
    push(Record {
        offset: displacement,
        argument: i64::from(number(text.as_bytes())),
        ..row(call, file, Function::MPI_FILE_SET_VIEW)
    });
}

/// `MPI_File_seek(file, offset, whence)`.
pub(crate) fn seek(call: &mut Call<'_>) {
    sought(call, -1, (c"MPI_File_get_position", file_position));
}

/// `MPI_File_seek_shared(file, offset, whence)`.
pub(crate) fn seek_shared(call: &mut Call<'_>) {
    let ask = (c"MPI_File_get_position_shared", file_position_shared as Ask);
    sought(call, SHARED_POINTER, ask);
}

/// Asks the library where a pointer of a file is.
type Ask = unsafe fn(usize, usize) -> i32;

/// Where a pointer of a file is, by the function of that name: ours for files of ours, which the library
/// does not know.
fn position(handle: usize, name: &'static CStr, ask: Ask) -> i64 {
    let mut position = -1i64;
    let room = &raw mut position as usize;
    let work = name.to_str().ok().and_then(pfs::work);
    let ours = work.and_then(|work| pfs::carry_out(work, name, &mut [handle, room], false));
    if ours.is_none() {
        // SAFETY: a valid handle, and room for the answer.
        unsafe { ask(handle, room) };
    }
    position
}

fn sought(call: &Call<'_>, pointer: i64, (name, ask): (&'static CStr, Ask)) {
    let Some(file) = file_of(call) else { return };
    let position = position(call.word(0), name, ask);
    let whence = match call.int(2) {
        current if current == call.family.seek_current => 1,
        end if end == call.family.seek_end => 2,
        _ => 0,
    };
    push(Record {
        offset: call.word(1) as i64,
        length: pointer,
        argument: whence,
        result: position,
        ..row(call, file, Function::MPI_FILE_SEEK)
    });
}

/// `MPI_File_sync(file)`.
pub(crate) fn sync(call: &mut Call<'_>) {
    if let Some(file) = file_of(call) {
        push(row(call, file, Function::MPI_FILE_SYNC));
    }
}

/// `MPI_File_set_size(file, size)`.
pub(crate) fn set_size(call: &mut Call<'_>) {
    sized(call, Function::MPI_FILE_SET_SIZE);
}

/// `MPI_File_preallocate(file, size)`.
pub(crate) fn preallocate(call: &mut Call<'_>) {
    sized(call, Function::MPI_FILE_PREALLOCATE);
}

fn sized(call: &Call<'_>, function: Function) {
    if let Some(file) = file_of(call) {
        let offset = if function == Function::MPI_FILE_PREALLOCATE { 0 } else { -1 };
        push(Record { offset, length: call.word(1) as i64, ..row(call, file, function) });
    }
}

/// Before a call that fills a status: one of ours, where the guest wants none.
pub(crate) fn want_status(call: &mut Call<'_>) {
    let last = call.last();
    if call.word(last) <= 1 {
        let room = call.scratch.as_mut_ptr() as usize;
        call.set(last, room);
    }
}

/// A blocking call: `(file, offset if explicit, buffer, count, datatype, status)`.
pub(crate) fn moved(call: &mut Call<'_>, function: Function, place: Place) {
    let Some(record) = data(call, function, place) else { return };
    let mut count = -1i64;
    let (status, byte) = (call.word(call.last()), call.family.byte);
    // SAFETY: the status of this call, guest's or ours, a valid datatype, room for the answer.
    let answer = unsafe { get_elements(status, byte, &raw mut count as usize) };
    let result = if answer == 0 && count >= 0 { count } else { record.length };
    push(Record { result, ..record });
}

/// A call that has begun: `(…, request)`.
pub(crate) fn started(call: &mut Call<'_>, function: Function, place: Place) {
    let Some(record) = data(call, function, place) else { return };
    // SAFETY: the call has just put a handle there.
    let request = unsafe { call.family.handle_at(call.word(call.last())) };
    let argument = i64::from(call.with(|state| state.begin(request)));
    push(Record { argument, result: record.length, ..record });
}

/// The first half of a split collective call.
pub(crate) fn begun(call: &mut Call<'_>, function: Function, place: Place) {
    let Some(record) = data(call, function, place) else { return };
    let number = call.with(|state| {
        let number = state.next_request();
        if let Some(file) = state.files.get_mut(&call.word(0)) {
            file.begun = Some(number);
        }
        number
    });
    push(Record { argument: i64::from(number), result: record.length, ..record });
}

/// Its second half, which waits.
pub(crate) fn completed(call: &mut Call<'_>) {
    let begun = call.with(|state| state.files.get_mut(&call.word(0))?.begun.take());
    if let Some(number) = begun {
        push(wait(call, number));
    }
}

fn data(call: &Call<'_>, function: Function, place: Place) -> Option<Record> {
    let file = file_of(call)?;
    let at = place.before_buffer();
    let bytes = datatypes::bytes(call.count(at + 1), call.handle(at + 2))?;
    let offset = match place {
        Place::Explicit => call.word(1) as i64,
        Place::Own => -1,
        Place::Shared => SHARED_POINTER,
    };
    Some(Record { offset, length: bytes, ..row(call, file, function) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kind_of_a_file_system_before_a_name_goes_where_a_family_takes_it() {
        let with_kinds = Family::here();
        assert!(with_kinds.names_have_kinds, "no MPI is loaded here");
        assert_eq!(path_of(b"ufs:/tmp/x", with_kinds), b"/tmp/x");
        assert_eq!(path_of(b"/tmp/a:b", with_kinds), b"/tmp/a:b");
        assert!(path_of(b"x", with_kinds).starts_with(b"/"));
    }
}
