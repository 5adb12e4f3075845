//! What a file is beside its data: length, group, mode, hints, atomicity, durability, error handler.

use super::file::{self, File, mode};
use super::numbers::{Class, Numbers};
use super::session;
use super::trouble::{self, Handler, Made, Trouble};
use super::view::put_offset;
use super::{Answer, Carried};
use crate::call::Call;
use crate::profiling;
use iolab_pattern::Nest;
use iolab_pfs::client;
use iolab_pfs_node::Memory;
use iolab_vocab::Direction;
use std::sync::Arc;

/// `MPI_File_get_size(file, size)`.
pub(super) fn get_size(file: &File, call: &Call<'_>) -> Result<(), Trouble> {
    put_offset(call, 1, file.size()?);
    Ok(())
}

/// `MPI_File_set_size(file, size)`: the file has that length.
pub(super) fn set_size(file: &File, call: &Call<'_>) -> Result<(), Trouble> {
    resized(file, call, |bytes| resize(file, bytes))
}

/// `MPI_File_preallocate(file, size)`: the file has at least that length, and what is new of it has its room. Servers give
/// room to bytes that are written, so zeros are, as MPI libraries do.
pub(super) fn preallocate(file: &File, call: &Call<'_>) -> Result<(), Trouble> {
    resized(file, call, |bytes| {
        let size = file.size()?;
        if size >= bytes {
            return Ok(());
        }
        let (direction, view) = (Direction::Write, Arc::new(Nest::WHOLE_FILE));
        let (from, to, collective) = (size, bytes, false);
        let access =
            client::Call::Access { file: file.number, direction, view, from, to, collective };
        let written = session::access(access, &mut Zeros);
        if written.is_err() {
            // What there is no room for does not stay in part.
            let _ = resize(file, size);
        }
        written.map(drop)
    })
}

fn resize(file: &File, bytes: u64) -> Result<(), Trouble> {
    session::call(client::Call::Resize { file: file.number, bytes }).map(drop)
}

/// Memory that holds nothing but zeros.
struct Zeros;

impl Memory for Zeros {
    fn row(&self, _at: u64, _bytes: usize) -> Option<&[u8]> {
        None
    }

    fn gather(&self, _at: u64, to: &mut [u8]) {
        to.fill(0);
    }

    fn scatter(&mut self, _at: u64, _from: &[u8]) {}

    fn zero(&mut self, _at: u64, _bytes: u64) {}
}

/// Rank 0 gives the file another length, by `work`, where all ranks mean the same.
fn resized(
    file: &File,
    call: &Call<'_>,
    work: impl FnOnce(u64) -> Result<(), Trouble>,
) -> Result<(), Trouble> {
    let checked = match u64::try_from(call.word(1) as i64) {
        _ if file.is(mode::READ_ONLY) => {
            Err(Trouble::new(Class::ReadOnly, "the file is open for reading"))
        }
        _ if file.is(mode::SEQUENTIAL) => {
            Err(Trouble::new(Class::UnsupportedOperation, "the file is sequential"))
        }
        Err(_) => Err(Trouble::new(Class::Arg, "the size is negative")),
        Ok(bytes) => Ok(bytes),
    };
    // What ranks have written before lies before it.
    file.settle();
    file.agree(checked.as_ref().map(drop).map_err(Clone::clone))?;
    let bytes = checked?;
    file.group.check_same([bytes], "the size")?;
    file.agree(if file.group.rank == 0 { work(bytes) } else { Ok(()) })
}

/// `MPI_File_sync(file)`.
pub(super) fn sync(file: &File, _call: &Call<'_>) -> Result<(), Trouble> {
    file.settle();
    let synced = session::call(client::Call::Sync { file: file.number });
    file.agree(synced.map(drop))
}

/// `MPI_File_get_group(file, group)`.
pub(super) fn get_group(file: &File, call: &Call<'_>) -> Result<(), Trouble> {
    // SAFETY: the program's room for a handle.
    unsafe { file.group.give(call.word(1)) }
}

/// `MPI_File_get_amode(file, mode)`.
pub(super) fn get_amode(file: &File, call: &Call<'_>) -> Result<(), Trouble> {
    put_int(call, 1, file.mode_said);
    Ok(())
}

/// `MPI_File_set_info(file, info)`.
pub(super) fn set_info(file: &File, call: &Call<'_>) -> Result<(), Trouble> {
    // SAFETY: the program's hints.
    let given = unsafe { super::hints::of_info(call.handle(1)) };
    file.state().hints.take(given);
    Ok(())
}

/// `MPI_File_get_info(file, info)`.
pub(super) fn get_info(file: &File, call: &Call<'_>) -> Result<(), Trouble> {
    // SAFETY: the program's room for a handle.
    match unsafe { file.state().hints.give(call.word(1)) } {
        0 => Ok(()),
        code => Err(Trouble::new(Class::Other, format!("MPI_Info_create fails with code {code}"))),
    }
}

/// `MPI_File_set_atomicity(file, flag)`, by all ranks.
pub(super) fn set_atomicity(file: &File, call: &Call<'_>) -> Result<(), Trouble> {
    let is_wished = call.int(1) != 0;
    file.group.check_same([u64::from(is_wished)], "whether the file is atomic")?;
    session::call(client::Call::SetAtomic { file: file.number, atomic: is_wished })?;
    file.state().is_atomic = is_wished;
    Ok(())
}

/// `MPI_File_get_atomicity(file, flag)`.
pub(super) fn get_atomicity(file: &File, call: &Call<'_>) -> Result<(), Trouble> {
    put_int(call, 1, i32::from(file.state().is_atomic));
    Ok(())
}

fn put_int(call: &Call<'_>, at: usize, number: i32) {
    // SAFETY: the program's room for it.
    unsafe { (call.word(at) as *mut i32).write_unaligned(number) };
}

/// `MPI_File_set_errhandler(file, handler)`.
pub(super) fn set_errhandler(file: &File, call: &Call<'_>) -> Result<(), Trouble> {
    let handle = call.handle(1);
    if handle == Numbers::here().no_handler {
        return Err(Trouble::new(Class::Arg, "the handler is MPI_ERRHANDLER_NULL"));
    }
    file.set_handler(Handler::of(handle)?);
    Ok(())
}

/// `MPI_File_get_errhandler(file, handler)`.
pub(super) fn get_errhandler(file: &File, call: &Call<'_>) -> Result<(), Trouble> {
    let to = call.word(1);
    match file.handler() {
        // SAFETY: the program's room for a handle.
        Handler::Return => unsafe { file.group.give_handler(Numbers::here().errors_return, to) },
        // SAFETY: as above.
        Handler::Fatal { handle } => unsafe { file.group.give_handler(handle, to) },
        // SAFETY: as above.
        Handler::Own(held) => unsafe { held.give(to) },
    }
}

/// `MPI_File_call_errhandler(file, code)`.
pub(super) fn call_errhandler(call: &Call<'_>) -> Answer {
    let file = file::find(call.word(0))?;
    let (mut handle, mut code) = (file.handle(), call.int(1));
    trouble::call(&file.handler(), &mut handle, &mut code);
    Some(Carried { file: None, result: Ok(()) })
}

/// `MPI_File_create_errhandler(function, handler)`: made by MPI, and its function noted.
pub(super) fn create_errhandler(call: &Call<'_>) -> Answer {
    // SAFETY: the program's function, and its room for a handle.
    let made = unsafe {
        let answer = profiling::file_create_errhandler(call.word(0), call.word(1));
        (answer == 0).then(|| call.family.handle_at(call.word(1)))
    };
    trouble::keep_function(made?, Made::InC(call.word(0)));
    Some(Carried { file: None, result: Ok(()) })
}
