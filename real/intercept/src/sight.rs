//! The first sight of a descriptor: what it is when the table says nothing yet. It stands above the
//! recorder and the stage, which are told of a file that was open before.

use crate::descriptor::{self, Entry};
use crate::{path, recorder, scope, stage, system};

/// The entry of a descriptor, after a look at it if it was unknown. A regular file opened before
/// this library could see it becomes an `inherited` event.
#[cold]
#[inline(never)]
pub(crate) fn look(fd: usize) -> Entry {
    let known = descriptor::get(fd);
    if known != Entry::UNKNOWN {
        return known;
    }
    let fd = fd as i32;
    let Ok(status) = system::status(fd) else { return Entry::UNKNOWN };
    if let Some(reason) = scope::kind_left_out(status.st_mode) {
        descriptor::set(fd, Entry::left_out(reason));
        return Entry::left_out(reason);
    }
    first_sight(fd, &status)
}

fn first_sight(fd: i32, status: &libc::stat) -> Entry {
    let (mut buffer, mut other) = (path::Buffer::new(), path::Buffer::new());
    let name = name(fd, &mut buffer, &mut other);
    if let Some(reason) = scope::left_out(name) {
        descriptor::set(fd, Entry::left_out(reason));
        stage::inherited(fd, status);
        return Entry::left_out(reason);
    }
    // SAFETY: both only ask about a descriptor.
    let (flags, position) = unsafe {
        (
            system::raw3(libc::SYS_fcntl, fd as usize, libc::F_GETFL as usize, 0),
            system::raw3(libc::SYS_lseek, fd as usize, 0, libc::SEEK_CUR as usize),
        )
    };
    let entry = Entry::tracked(recorder::new_number(), flags.max(0) as u32);
    descriptor::set(fd, entry);
    recorder::inherited(fd, entry, name, position as i64, status.st_size);
    stage::inherited(fd, status);
    entry
}

/// What the file behind a descriptor is called, wherever its bytes lie at the moment.
fn name<'a>(fd: i32, buffer: &'a mut path::Buffer, other: &'a mut path::Buffer) -> &'a [u8] {
    match stage::name_behind(fd, other) {
        Some(name) => name,
        None => path::of_descriptor(fd, buffer),
    }
}

/// The name of the regular file to which a name below `/dev` or `/proc` has led (`/dev/stdout`, `/proc/self/fd/3`),
/// if it is followed and there still.
pub(crate) fn led_to<'a>(
    fd: i32,
    buffer: &'a mut path::Buffer,
    other: &'a mut path::Buffer,
) -> Option<&'a [u8]> {
    let name = name(fd, buffer, other);
    (scope::left_out(name).is_none() && !name.ends_with(b" (deleted)")).then_some(name)
}
