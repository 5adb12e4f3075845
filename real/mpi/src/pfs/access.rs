//! Calls that move data: blocking, started, and in two halves; independent and collective.
//!
//! An offset in etypes and an amount are an interval of the view, which the file system is given as it
//! is. What is started goes on beside the program, as does the first half of a call in two; whether it may
//! be made, and where its bytes lie, is found before it returns. A rank that fails in a collective call before
//! any data moves still comes to the end of it, or the others would wait.

use super::buffer::Buffer;
use super::external::External;
use super::file::{self, Begun, File, mode};
use super::numbers::Class;
use super::ongoing::Ongoing;
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
    data: Data,
}

/// The program's memory of a call.
enum Data {
    /// As the file has it.
    Same(Buffer),
    /// In another form.
    External(External),
}

impl Data {
    /// How many bytes it has in the file.
    fn bytes(&self) -> u64 {
        match self {
            Data::Same(buffer) => buffer.bytes(),
            Data::External(external) => external.bytes(),
        }
    }
}

/// A blocking call: `(file, offset if explicit, buffer, count, datatype, status)`.
pub(super) fn moved(file: &File, call: &Call<'_>, wish: Wish) -> Result<(), Trouble> {
    let bytes = carried_out(file, call, wish)?;
    // SAFETY: the program's status.
    unsafe { set_status(call.word(call.last()), bytes) };
    Ok(())
}

/// A call that goes on: `(…, request)`.
pub(super) fn started(file: &File, call: &Call<'_>, wish: Wish) -> Result<(), Trouble> {
    let ongoing = set_going(file, call, wish)?;
    // SAFETY: the program's room for a request.
    unsafe { request::make(call.word(call.last()), ongoing) }
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
    let ongoing = set_going(file, call, wish)?;
    file.state().begun = Some(Begun { kind, ongoing });
    Ok(())
}

/// The second half: `(file, buffer, status)`.
pub(super) fn ended(file: &File, call: &Call<'_>, kind: &'static str) -> Result<(), Trouble> {
    let begun = file.state().begun.take_if(|begun| begun.kind == kind);
    let Some(Begun { ongoing, .. }) = begun else {
        return Err(Trouble::new(Class::Io, "no such split collective call has begun"));
    };
    let bytes = ongoing.wait()?;
    // SAFETY: the program's status.
    unsafe { set_status(call.word(2), bytes) };
    Ok(())
}

/// Moves the data; how many bytes.
fn carried_out(file: &File, call: &Call<'_>, wish: Wish) -> Result<u64, Trouble> {
    let mut transfer = match prepared(file, call, wish) {
        Err(trouble) if wish.is_collective(file) => {
            // All ranks come to the class of the lowest that has failed.
            let agreed = file.agree(Err(trouble.clone()));
            return Err(agreed.err().unwrap_or(trouble));
        }
        prepared => prepared?,
    };
    let moved = match (transfer.access(file, wish), &mut transfer.data) {
        (None, _) => Ok(0),
        (Some(access), Data::Same(buffer)) => session::access(access, buffer),
        (Some(access), Data::External(external)) => {
            session::access(access, &mut external.packed.clone())
        }
    };
    if wish.place == Place::Own {
        file.state().go_on(*moved.as_ref().unwrap_or(&transfer.bytes()));
    }
    match transfer.data {
        Data::Same(_) => moved,
        Data::External(mut external) => external.moved(moved?),
    }
}

/// Has the data moved while the program goes on.
fn set_going(file: &File, call: &Call<'_>, wish: Wish) -> Result<Arc<Ongoing>, Trouble> {
    let prepared = prepared(file, call, wish);
    if wish.is_collective(file)
        && let Err(trouble) = &prepared
    {
        file.agree_later(trouble);
    }
    let transfer = prepared?;
    let open =
        file::find(file.handle()).ok_or_else(|| Trouble::new(Class::File, "no open file"))?;
    if wish.place == Place::Own {
        file.state().go_on(transfer.bytes());
    }
    let Some(access) = transfer.access(file, wish) else { return Ok(Ongoing::nothing(open)) };
    match transfer.data {
        Data::Same(buffer) => Ongoing::start(open, access, buffer, None),
        Data::External(external) => {
            Ongoing::start(open, access, external.packed.clone(), Some(external))
        }
    }
}

impl Wish {
    /// Whether ranks wait for each other.
    fn is_collective(&self, file: &File) -> bool {
        self.together == Together::All && file.group.size > 1
    }
}

impl Transfer {
    fn bytes(&self) -> u64 {
        self.to - self.from
    }

    /// What the file system is asked for, if anything.
    fn access(&self, file: &File, wish: Wish) -> Option<client::Call> {
        let collective = wish.is_collective(file);
        let (view, from, to) = match self.bytes() {
            0 if !collective => return None,
            // Nothing of a view needs no view.
            0 => (Arc::new(Nest::WHOLE_FILE), 0, 0),
            _ => (self.view.clone(), self.from, self.to),
        };
        let direction = wish.direction;
        Some(client::Call::Access { file: file.number, direction, view, from, to, collective })
    }
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
            let units = wanted.as_ref().map(|data| data.bytes() / unit);
            match (units, wish.place) {
                (Ok(units), Place::Shared) => file.advance(units)?,
                (units, _) => in_order(file, units.map_err(Clone::clone))?,
            }
        }
    };
    let data = wanted?;
    let state = file.state();
    let from = state.view.bytes_before(offset)?;
    let (to, end) = (from.saturating_add(data.bytes()), state.view.nest.size());
    let view = state.view.below(to);
    match wish.direction {
        Direction::Write if to > end => {
            Err(Trouble::new(Class::Io, "the view has no place for so many bytes"))
        }
        _ => Ok(Transfer { from: from.min(end), to: to.min(end), view, data }),
    }
}

/// The memory of a call, if the call may be made: whole etypes.
fn wanted(file: &File, call: &Call<'_>, wish: Wish) -> Result<Data, Trouble> {
    check_mode(file, wish)?;
    let at = if wish.place == Place::Explicit { 2 } else { 1 };
    let Ok(count) = u64::try_from(call.count(at + 1)) else {
        return Err(Trouble::new(Class::Count, format!("a count of {}", call.count(at + 1))));
    };
    let is_external = file.state().view.is_external();
    let (address, datatype) = (call.word(at), call.handle(at + 2));
    // SAFETY: the program's memory, as the call describes it.
    let data = unsafe {
        match is_external && count > 0 {
            true => Data::External(External::new(address, count, datatype, wish.direction)?),
            false => Data::Same(Buffer::new(address, count, datatype)?),
        }
    };
    let (bytes, unit) = (data.bytes(), file.state().view.unit);
    if bytes % unit != 0 {
        return Err(Trouble::new(
            Class::Io,
            format!("{bytes} bytes are no whole etypes of {unit}"),
        ));
    }
    Ok(data)
}

/// Where this rank's etypes begin if all ranks take theirs in order from the shared pointer on, which
/// moves behind them. Each rank learns the others' numbers by MPI.
fn in_order(file: &File, units: Result<u64, Trouble>) -> Result<u64, Trouble> {
    let all = file.group.found_by_all(units)?;
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
