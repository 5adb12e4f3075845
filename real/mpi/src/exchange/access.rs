//! One collective call of the program's: what the ranks tell each other before and after, and what the
//! program is told.

use super::file::{self, File};
use super::rounds::Rounds;
use super::storage::Plain;
use super::wire::Messages;
use super::{Place, told, view};
use crate::call::Call;
use crate::pfs::buffer::Buffer;
use crate::pfs::group::Group;
use crate::pfs::numbers::{Class, Numbers};
use crate::pfs::status::set_status;
use crate::pfs::trouble::Trouble;
use iolab_pattern::Nest;
use iolab_policy::collective::{
    Access, BUFFER_BYTES, CollectiveSelection, DirectAccess, FileCall, Wanted,
};
use iolab_vocab::Direction;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

/// Pieces of memory that are kept from call to call: what two buffers take, and messages for them.
const SPARE_COUNT: usize = 6;

/// What keeps a rank from taking part in a call.
enum Halt {
    /// The library can do it, perhaps.
    Pass(&'static str),
    /// Nobody can.
    Wrong(Trouble),
}

impl From<Trouble> for Halt {
    fn from(trouble: Trouble) -> Halt {
        Halt::Wrong(trouble)
    }
}

/// This rank's part in a call.
struct Own {
    buffer: Buffer,
    /// Where it begins, in etypes.
    offset: u64,
    from: u64,
    to: u64,
}

/// A rank's part in a call, as all know it.
pub(super) struct Part {
    pub(super) view: Arc<Nest>,
    pub(super) from: u64,
    pub(super) to: u64,
}

/// What came of a call, on this rank.
enum Done {
    Passed,
    Moved(u64),
    Failed(Trouble),
}

/// A blocking call: `(file, offset if explicit, buffer, count, datatype, status)`; none: it is the library's.
pub(super) fn carried_out(
    selection: &CollectiveSelection,
    call: &Call<'_>,
    direction: Direction,
    place: Place,
) -> Option<i32> {
    let file = file::find(call.word(0))?;
    match moved(selection, &file, call, direction, place) {
        Done::Passed => None,
        Done::Moved(bytes) => {
            // SAFETY: the program's status.
            unsafe { set_status(call.word(call.last()), bytes) };
            Some(0)
        }
        Done::Failed(trouble) => Some(told::raise(&file.plain.path, file.handle, &trouble)),
    }
}

/// The first half of a split call: `(file, offset if explicit, buffer, count, datatype)`. All is done here.
pub(super) fn begun(
    selection: &CollectiveSelection,
    call: &Call<'_>,
    direction: Direction,
    place: Place,
    kind: &'static str,
) -> Option<i32> {
    let file = file::find(call.word(0))?;
    match moved(selection, &file, call, direction, place) {
        Done::Passed => None,
        Done::Moved(bytes) => {
            file.state().begun = Some((kind, bytes));
            Some(0)
        }
        Done::Failed(trouble) => Some(told::raise(&file.plain.path, file.handle, &trouble)),
    }
}

/// The second half: `(file, buffer, status)`.
pub(super) fn ended(call: &Call<'_>, kind: &'static str) -> Option<i32> {
    let file = file::find(call.word(0))?;
    let (_, bytes) = file.state().begun.take_if(|(begun, _)| *begun == kind)?;
    // SAFETY: the program's status.
    unsafe { set_status(call.word(2), bytes) };
    Some(0)
}

fn moved(
    selection: &CollectiveSelection,
    file: &File,
    call: &Call<'_>,
    direction: Direction,
    place: Place,
) -> Done {
    if file.state().views.is_none() {
        // All ranks know, and told it when the view was set.
        file.passed.fetch_add(1, Relaxed);
        return Done::Passed;
    }
    let own = prepared(file, call, direction, place);
    let together = together(file, &own, direction);
    let parts = match together {
        Ok(parts) => parts,
        Err(Halt::Pass(why)) => {
            told::passes(file, why);
            return Done::Passed;
        }
        Err(Halt::Wrong(trouble)) => return Done::Failed(trouble),
    };
    // What `together` says no to is no part of it.
    let Ok(mut own) = own else { return Done::Passed };
    let Part { from, to, .. } = parts[file.group.rank as usize];
    file.carried.fetch_add(1, Relaxed);
    let ranks = (&file.group, &file.plain);
    let spare = std::mem::take(&mut file.state().spare);
    let (result, bytes, spare) =
        exchanged(selection, ranks, direction, parts, &mut own.buffer, spare);
    file.exchanged.fetch_add(bytes, Relaxed);
    file.state().spare = spare;
    let result = agreed(&file.group, result);
    if place == Place::Own {
        let unit =
            file.state().views.as_ref().map_or(1, |views| views[file.group.rank as usize].unit);
        let bytes = if result.is_ok() { to - from } else { own.to - own.from };
        view::seek(file.handle, own.offset + bytes.div_ceil(unit));
    }
    match result {
        Ok(()) => Done::Moved(to - from),
        Err(trouble) => Done::Failed(trouble),
    }
}

/// What this rank is about, if it can take part.
fn prepared(file: &File, call: &Call<'_>, direction: Direction, place: Place) -> Result<Own, Halt> {
    let at = if place == Place::Explicit { 2 } else { 1 };
    let state = file.state();
    let views = state.views.as_ref().ok_or(Halt::Pass("a rank's view cannot be followed"))?;
    let view = &views[file.group.rank as usize];
    if state.is_atomic {
        return Err(Halt::Pass("it is in atomic mode"));
    }
    if state.begun.is_some() {
        return Err(Trouble::new(Class::Io, "a split collective call has not ended").into());
    }
    file.plain.check(direction == Direction::Write)?;
    let Ok(count) = u64::try_from(call.count(at + 1)) else {
        return Err(Trouble::new(Class::Count, format!("a count of {}", call.count(at + 1))).into());
    };
    let datatype = call.handle(at + 2);
    if datatype == Numbers::here().no_datatype {
        return Err(Trouble::new(Class::Type, "the datatype is MPI_DATATYPE_NULL").into());
    }
    let offset = match place {
        Place::Own => view::pointer(file.handle).ok_or(Halt::Pass("its pointer is not known"))?,
        Place::Explicit => u64::try_from(call.word(1) as i64)
            .map_err(|_| Trouble::new(Class::Arg, "the offset is negative"))?,
    };
    // SAFETY: the program's memory, as the call describes it.
    let buffer = unsafe { Buffer::new(call.word(at), count, datatype) };
    let buffer =
        buffer.map_err(|_| Halt::Pass("MPI does not tell what a datatype of a call is made of"))?;
    if buffer.bytes() % view.unit != 0 {
        let text = format!("{} bytes are no whole etypes of {}", buffer.bytes(), view.unit);
        return Err(Trouble::new(Class::Io, text).into());
    }
    let end = view.nest.size();
    let from = offset.checked_mul(view.unit).filter(|&from| from <= i64::MAX as u64);
    let from = from.ok_or_else(|| {
        Trouble::new(Class::Arg, format!("offset {offset} is behind the largest file"))
    })?;
    let to = from.saturating_add(buffer.bytes());
    match direction {
        Direction::Write if to > end => {
            Err(Trouble::new(Class::Io, "the view has no place for so many bytes").into())
        }
        _ => Ok(Own { buffer, offset, from: from.min(end), to: to.min(end) }),
    }
}

/// What the ranks tell each other before a call: `[0, from, to, size]`, or that one passes, or its error.
fn together(file: &File, own: &Result<Own, Halt>, direction: Direction) -> Result<Vec<Part>, Halt> {
    let size = if direction == Direction::Read { file.plain.size() } else { u64::MAX };
    let words = match own {
        Ok(own) => [0, own.from, own.to, size],
        Err(Halt::Pass(_)) => [1, 0, 0, 0],
        Err(Halt::Wrong(trouble)) => [2, trouble.class as u64, 0, 0],
    };
    let all = file.group.gather_words(words)?;
    if all.iter().any(|words| words[0] == 1) {
        return Err(Halt::Pass(match own {
            Err(Halt::Pass(why)) => why,
            _ => "another rank cannot take part",
        }));
    }
    if let Some(rank) = all.iter().position(|words| words[0] == 2) {
        return Err(Halt::Wrong(first_of(&file.group, own.as_ref().err(), rank, all[rank][1])));
    }
    let size = all.iter().map(|words| words[3]).max().unwrap_or(0);
    let state = file.state();
    let views = state.views.as_ref().ok_or(Halt::Pass("a rank's view cannot be followed"))?;
    let part = |(words, view): (&[u64; 4], &view::View)| {
        let &[_, from, to, _] = words;
        // Offsets ascend, so what the file has of it is its beginning.
        let to = view.nest.rank(size).map_or(to, |before| to.min(before.max(from)));
        Part { view: view.nest.clone(), from, to }
    };
    Ok(all.iter().zip(views).map(part).collect())
}

/// The error of the lowest rank that has one: its own, or what it said.
fn first_of(group: &Group, own: Option<&Halt>, rank: usize, class: u64) -> Trouble {
    let class = Class::ALL.get(class as usize).copied().unwrap_or(Class::Other);
    match own {
        Some(Halt::Wrong(trouble)) if rank == group.rank as usize => trouble.clone(),
        _ => Trouble::new(class, ""),
    }
}

/// The machine's rounds, with memory of calls before this one: what came of it, bytes that went to other ranks, and
/// memory for the next call.
pub(super) fn exchanged(
    selection: &CollectiveSelection,
    (group, plain): (&Group, &Plain),
    direction: Direction,
    parts: Vec<Part>,
    buffer: &mut Buffer,
    spare: Vec<Vec<u8>>,
) -> (Result<(), Trouble>, u64, Vec<Vec<u8>>) {
    let rank = group.rank;
    let wanted = parts.iter().map(|it| Wanted::of_view(it.view.clone(), it.from, it.to));
    let Some(wanted) = wanted.collect::<Option<Vec<_>>>() else {
        let strange = Trouble::new(Class::Other, "a view whose offsets do not ascend");
        return (Err(strange), 0, spare);
    };
    let access = Arc::new(Access { direction, wanted });
    let call = FileCall { access, rank, buffer_bytes: BUFFER_BYTES, costs: None };
    let access = call.access.clone();
    let machine = match access.is_interleaved() {
        true => selection.build_file(call),
        // As in the simulated cluster: nobody has anything for others.
        false => Box::new(DirectAccess::new(call)),
    };
    let wire = Messages::of(group);
    let from = parts[rank as usize].from;
    let mut rounds = Rounds::of((access, rank, from), buffer, wire, plain, spare);
    let result = rounds.run(machine);
    let (bytes, mut spare) = rounds.end();
    spare.retain(|it| it.capacity() as u64 <= BUFFER_BYTES);
    spare.truncate(SPARE_COUNT);
    (result, bytes, spare)
}

/// All ranks end with the same result: that of the lowest one that failed.
pub(super) fn agreed(group: &Group, own: Result<(), Trouble>) -> Result<(), Trouble> {
    let class = own.as_ref().map_or_else(|trouble| trouble.class as u64 + 1, |()| 0);
    let all = group.gather(class)?;
    match all.iter().position(|&class| class != 0) {
        None => Ok(()),
        Some(rank) => {
            let own = own.err().map(Halt::Wrong);
            Err(first_of(group, own.as_ref(), rank, all[rank] - 1))
        }
    }
}
