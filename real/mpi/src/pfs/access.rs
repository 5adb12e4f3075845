//! Calls that move data: blocking, started, and in two halves; independent and collective.
//!
//! An offset in etypes and an amount are an interval of the view, which the file system is given as it
//! is. What is started is carried out at once, and so is the first half of a call in two. A rank that
//! fails in a collective call before any data moves still comes to the end of it, or the others would
//! wait.

use super::buffer::Buffer;
use super::file::{Begun, File, mode};
use super::numbers::Class;
use super::request;
use super::session;
use super::status::set_status;
use super::trouble::Trouble;
use crate::call::Call;
use iolab_pattern::Nest;
use iolab_pfs::client;
use iolab_vocab::Direction;
use std::sync::Arc;

/// Where a call gets its offset from.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Place {
    /// The argument after the file.
    Explicit,
    /// This process's pointer.
    Own,
    /// Behind the lower ranks, from the shared pointer on.
    Ordered,
    /// From the shared pointer on, without the other ranks.
    Shared,
}

/// Who takes part.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Together {
    Alone,
    All,
}

/// What a call asks for.
#[derive(Clone, Copy)]
pub(super) struct Wish {
    pub(super) direction: Direction,
    pub(super) place: Place,
    pub(super) together: Together,
}

/// A part of the file, and of memory.
struct Transfer {
    view: Arc<Nest>,
    from: u64,
    to: u64,
    buffer: Buffer,
}

/// A blocking call: `(file, offset if explicit, buffer, count, datatype, status)`.
pub(super) fn moved(file: &File, call: &Call<'_>, wish: Wish) -> Result<(), Trouble> {
    let bytes = carried_out(file, call, wish)?;
    // SAFETY: the program's status.
    unsafe { set_status(call.word(call.last()), bytes) };
    Ok(())
}

/// A call that goes on: `(…, request)`. Other ranks are not waited for.
pub(super) fn started(file: &File, call: &Call<'_>, wish: Wish) -> Result<(), Trouble> {
    let bytes = carried_out(file, call, Wish { together: Together::Alone, ..wish })?;
    // SAFETY: the program's room for a request.
    unsafe { request::completed(call.word(call.last()), bytes) }
}

/// The first half of a split collective call: `(file, offset if explicit, buffer, count, datatype)`.
pub(super) fn begun(
    file: &File,
    call: &Call<'_>,
    wish: Wish,
    kind: &'static str,
) -> Result<(), Trouble> {
    if file.state().begun.is_some() {
        let trouble = Trouble::new(Class::Io, "another split collective call has not ended");
        return Err(trouble);
    }
    let bytes = carried_out(file, call, Wish { together: Together::All, ..wish })?;
    file.state().begun = Some(Begun { kind, bytes });
    Ok(())
}

/// The second half: `(file, buffer, status)`.
pub(super) fn ended(file: &File, call: &Call<'_>, kind: &'static str) -> Result<(), Trouble> {
    let mut state = file.state();
    match state.begun.filter(|begun| begun.kind == kind) {
        None => Err(Trouble::new(Class::Io, "no such split collective call has begun")),
        Some(begun) => {
            state.begun = None;
            // SAFETY: the program's status.
            unsafe { set_status(call.word(2), begun.bytes) };
            Ok(())
        }
    }
}

/// Moves the data; how many bytes.
fn carried_out(file: &File, call: &Call<'_>, wish: Wish) -> Result<u64, Trouble> {
    let collective = wish.together == Together::All && file.group.size > 1;
    let prepared = prepared(file, call, wish);
    let transfer = match prepared {
        Ok(transfer) => transfer,
        Err(trouble) if collective => {
            let _ = file.agree(Err(trouble.clone()));
            return Err(trouble);
        }
        Err(trouble) => return Err(trouble),
    };
    let (from, to) = (transfer.from, transfer.to);
    let moved = transferred(file, wish.direction, transfer, collective);
    if wish.place == Place::Own {
        let mut state = file.state();
        let bytes = *moved.as_ref().unwrap_or(&(to - from));
        state.pointer += bytes.div_ceil(state.view.unit);
    }
    moved
}

fn transferred(
    file: &File,
    direction: Direction,
    mut transfer: Transfer,
    collective: bool,
) -> Result<u64, Trouble> {
    let Transfer { view, from, to, .. } = transfer;
    if from == to && !collective {
        return Ok(0);
    }
    // Nothing of a view needs no view.
    let view = if from == to { Arc::new(Nest::WHOLE_FILE) } else { view };
    let (from, to) = if from == to { (0, 0) } else { (from, to) };
    let access = client::Call::Access { file: file.number, direction, view, from, to, collective };
    session::access(access, &mut transfer.buffer)
}

/// What a call is about, if it may be carried out.
fn prepared(file: &File, call: &Call<'_>, wish: Wish) -> Result<Transfer, Trouble> {
    let wanted = wanted(file, call, wish);
    if wish.together == Together::Alone {
        // Nobody waits for a rank that fails alone.
        wanted.as_ref().map_err(Clone::clone)?;
    }
    let offset = match wish.place {
        Place::Own => file.state().pointer,
        Place::Explicit => u64::try_from(call.word(1) as i64)
            .map_err(|_| Trouble::new(Class::Arg, "the offset is negative"))?,
        Place::Ordered | Place::Shared => {
            let unit = file.state().view.unit;
            let units = wanted.as_ref().map(|buffer| buffer.bytes() / unit);
            match (units, wish.place) {
                (Ok(units), Place::Shared) => file.advance(units)?,
                (units, _) => in_order(file, units.map_err(Clone::clone))?,
            }
        }
    };
    let buffer = wanted?;
    let state = file.state();
    let from = state.view.bytes_before(offset)?;
    let (to, end) = (from.saturating_add(buffer.bytes()), state.view.nest.size());
    let view = state.view.below(to);
    match wish.direction {
        Direction::Write if to > end => {
            Err(Trouble::new(Class::Io, "the view has no place for so many bytes"))
        }
        _ => Ok(Transfer { from: from.min(end), to: to.min(end), view, buffer }),
    }
}

/// The memory of a call, if the call may be made: whole etypes.
fn wanted(file: &File, call: &Call<'_>, wish: Wish) -> Result<Buffer, Trouble> {
    check_mode(file, wish)?;
    let at = if wish.place == Place::Explicit { 2 } else { 1 };
    let Ok(count) = u64::try_from(call.count(at + 1)) else {
        return Err(Trouble::new(Class::Count, format!("a count of {}", call.count(at + 1))));
    };
    // SAFETY: the program's memory, as the call describes it.
    let buffer = unsafe { Buffer::new(call.word(at), count, call.handle(at + 2))? };
    let (bytes, unit) = (buffer.bytes(), file.state().view.unit);
    if bytes % unit != 0 {
        return Err(Trouble::new(
            Class::Io,
            format!("{bytes} bytes are no whole etypes of {unit}"),
        ));
    }
    Ok(buffer)
}

/// Where this rank's etypes begin if all ranks take theirs in order from the shared pointer on, which
/// moves behind them. Each rank learns the others' numbers by MPI.
fn in_order(file: &File, units: Result<u64, Trouble>) -> Result<u64, Trouble> {
    let all = file.group.gather(*units.as_ref().unwrap_or(&u64::MAX))?;
    units?;
    if all.contains(&u64::MAX) {
        return Err(Trouble::new(Class::Io, "another rank failed").told());
    }
    let start = file.group.found_by_first(|| file.advance(all.iter().sum()))?;
    Ok(start + all[..file.group.rank as usize].iter().sum::<u64>())
}

fn check_mode(file: &File, wish: Wish) -> Result<(), Trouble> {
    if file.is(mode::SEQUENTIAL) && matches!(wish.place, Place::Explicit | Place::Own) {
        return Err(Trouble::new(Class::UnsupportedOperation, "the file is sequential"));
    }
    match wish.direction {
        Direction::Write if file.is(mode::READ_ONLY) => {
            Err(Trouble::new(Class::ReadOnly, "the file is open for reading"))
        }
        Direction::Read if file.is(mode::WRITE_ONLY) => {
            Err(Trouble::new(Class::Access, "the file is open for writing"))
        }
        _ => Ok(()),
    }
}
