//! Views: which bytes of the file a process sees, and in which units it counts them.

use super::external;
use super::file::{File, mode};
use super::numbers::{Class, Numbers, improper_view, view_of_nothing};
use super::trouble::Trouble;
use super::typemap;
use crate::call::Call;
use crate::family::Family;
use crate::profiling;
use iolab_pattern::{Datatype, Nest};
use std::ffi::CStr;
use std::sync::Arc;

/// A datatype that a view has, for as long as it does.
pub(super) struct Kept {
    handle: usize,
    /// A duplicate of ours, which is given back.
    is_own: bool,
}

impl Kept {
    fn of(datatype: usize) -> Result<Kept, Trouble> {
        if typemap::is_named(datatype) {
            return Ok(Kept { handle: datatype, is_own: false });
        }
        Ok(Kept { handle: duplicate(datatype)?, is_own: true })
    }

    /// A handle for the program: of its own, where it has to give it back.
    fn give(&self) -> Result<usize, Trouble> {
        if self.is_own { duplicate(self.handle) } else { Ok(self.handle) }
    }
}

impl Drop for Kept {
    fn drop(&mut self) {
        if self.is_own && profiling::is_at_work() {
            // SAFETY: a datatype of ours.
            unsafe { profiling::type_free(&raw mut self.handle as usize) };
        }
    }
}

fn duplicate(datatype: usize) -> Result<usize, Trouble> {
    let mut handle = 0usize;
    // SAFETY: a valid datatype, and room for a handle.
    match unsafe { profiling::type_dup(datatype, &raw mut handle as usize) } {
        0 => Ok(handle),
        code => Err(Trouble::new(Class::Type, format!("MPI_Type_dup fails with code {code}"))),
    }
}

/// What a process sees of a file.
pub(super) struct View {
    displacement: u64,
    etype: Kept,
    filetype: Kept,
    /// Bytes of the etype.
    pub(super) unit: u64,
    pub(super) nest: Arc<Nest>,
    /// The first tile alone, where only a second one would go back or overlap: a program that made its
    /// filetype for one access, as libraries do, never comes to it.
    first: Option<Arc<Nest>>,
    representation: &'static CStr,
}

fn arg(text: impl Into<String>) -> Trouble {
    Trouble::new(Class::Arg, text)
}

impl View {
    /// As every file begins.
    pub(super) fn of_bytes() -> View {
        let byte = || Kept { handle: Family::here().byte, is_own: false };
        View {
            displacement: 0,
            etype: byte(),
            filetype: byte(),
            unit: 1,
            nest: Arc::new(Nest::WHOLE_FILE),
            first: None,
            representation: c"native",
        }
    }

    /// Whether numbers have another form in the file than in memory.
    pub(super) fn is_external(&self) -> bool {
        self.representation == external::NAME
    }

    /// Where an offset in etypes begins, as the view counts bytes.
    pub(super) fn bytes_before(&self, offset: u64) -> Result<u64, Trouble> {
        let bytes = offset.checked_mul(self.unit).filter(|&bytes| bytes <= i64::MAX as u64);
        bytes.ok_or_else(|| arg(format!("offset {offset} is behind the largest file")))
    }

    /// What an access to the view's bytes below `to` goes through.
    pub(super) fn below(&self, to: u64) -> Arc<Nest> {
        let first = self.first.as_ref().filter(|first| to <= first.size());
        first.unwrap_or(&self.nest).clone()
    }

    /// How many etypes begin before a byte of the file.
    fn units_before(&self, x: u64) -> u64 {
        // Views that go back and forth have no order in the file: runs are counted one by one.
        let bytes = self.nest.rank(x).unwrap_or_else(|| {
            let cut = self.nest.cut(0, self.nest.root().size());
            let tiles =
                x.saturating_sub(self.nest.displacement()).div_ceil(self.nest.extent().max(1));
            let before = cut.runs().filter(|run| run.offset < x).map(|run| run.length).sum::<u64>();
            if tiles > 1 { tiles * self.nest.root().size() } else { before }
        });
        bytes.div_ceil(self.unit)
    }
}

/// `MPI_File_set_view(file, displacement, etype, filetype, representation, info)`.
pub(super) fn set_view(file: &File, call: &Call<'_>) -> Result<(), Trouble> {
    if file.is(mode::SEQUENTIAL) {
        // The view begins at the shared pointer: nobody moves it any more.
        file.agree(Ok(()))?;
    }
    let made = made(file, call);
    let result = made.as_ref().map(drop).map_err(Clone::clone);
    file.agree(result)?;
    let view = made?;
    // SAFETY: the program's hints.
    let given = unsafe { super::hints::of_info(call.handle(5)) };
    let mut state = file.state();
    state.hints.take(given);
    state.view = view;
    state.pointer = 0;
    state.shared.put(0);
    Ok(())
}

fn made(file: &File, call: &Call<'_>) -> Result<View, Trouble> {
    let displacement = call.word(1) as i64;
    let is_current = displacement == call.family.displacement_current;
    if file.is(mode::SEQUENTIAL) != is_current {
        return Err(arg(
            "a sequential file, and no other, has displacement MPI_DISPLACEMENT_CURRENT",
        ));
    }
    let displacement = match is_current {
        true => {
            let pointer = file.advance(0)?;
            let state = file.state();
            state.view.nest.at(state.view.bytes_before(pointer)?).unwrap_or(0)
        }
        false => u64::try_from(displacement).map_err(|_| arg("the displacement is negative"))?,
    };
    if file.state().begun.is_some() {
        return Err(Trouble::new(Class::Io, "a split collective call has not ended"));
    }
    let representation = representation(call.word(4))?;
    let (etype, filetype) = (call.handle(2), call.handle(3));
    let no_datatype = Numbers::here().no_datatype;
    if etype == no_datatype || filetype == no_datatype {
        let class = view_of_nothing(Family::here().kind);
        return Err(Trouble::new(class, "a datatype of the view is MPI_DATATYPE_NULL"));
    }
    let in_file = |datatype| match representation == external::NAME {
        true => typemap::of_file(datatype).map(Arc::new),
        false => typemap::of(datatype),
    };
    let (unit, tile) = (in_file(etype)?, in_file(filetype)?);
    check_offsets(file, &unit, "an etype")?;
    check_offsets(file, &tile, "a filetype")?;
    let unit = unit.size();
    if unit == 0 || tile.size() % unit != 0 {
        let sizes = format!("{} bytes is no multiple of the etype's {unit}", tile.size());
        return Err(arg(format!("a filetype of {sizes}")));
    }
    let nest = tile.view(displacement)?;
    let first = Nest::new(nest.displacement(), 0, nest.root().clone())?;
    let first = (first.proper() && !nest.proper()).then(|| Arc::new(first));
    let (etype, filetype) = (Kept::of(etype)?, Kept::of(filetype)?);
    Ok(View { displacement, etype, filetype, unit, nest: Arc::new(nest), first, representation })
}

/// What MPI demands of etypes and filetypes: offsets from 0 on that never go back, and do not overlap where the file may
/// be written. It is demanded of a datatype's own offsets, not of those of several tiles.
fn check_offsets(file: &File, datatype: &Datatype, what: &str) -> Result<(), Trouble> {
    let (begin, offsets) = datatype.buffer(1)?;
    if begin < 0 {
        let text = format!("{what} begins {} bytes before its displacement", begin.unsigned_abs());
        return Err(Trouble::new(Class::Io, text));
    }
    let checked = match file.is(mode::READ_ONLY) {
        true => offsets.check_ordered(),
        false => offsets.check_proper(),
    };
    let class = improper_view(Family::here().kind);
    checked.map_err(|refusal| Trouble::new(class, format!("{what}: {}", refusal.message)))
}

fn representation(address: usize) -> Result<&'static CStr, Trouble> {
    if address == 0 {
        return Err(arg("there is no data representation"));
    }
    // SAFETY: the program's text.
    let name = unsafe { CStr::from_ptr(address as *const _) };
    let known = [c"native", c"internal", external::NAME].into_iter();
    let found =
        known.into_iter().find(|known| name.to_bytes().eq_ignore_ascii_case(known.to_bytes()));
    found.ok_or_else(|| {
        let name = name.to_string_lossy();
        let known = "native, internal and external32 are known";
        Trouble::new(Class::UnsupportedDatarep, format!("data representation `{name}`: {known}"))
    })
}

/// `MPI_File_get_view(file, displacement, etype, filetype, representation)`.
pub(super) fn get_view(file: &File, call: &Call<'_>) -> Result<(), Trouble> {
    let state = file.state();
    let (etype, filetype) = (state.view.etype.give()?, state.view.filetype.give()?);
    let text = state.view.representation.to_bytes_with_nul();
    // SAFETY: the program's room for each of them.
    unsafe {
        (call.word(1) as *mut i64).write_unaligned(state.view.displacement as i64);
        call.family.put_handle(call.word(2), etype);
        call.family.put_handle(call.word(3), filetype);
        (call.word(4) as *mut u8).copy_from(text.as_ptr(), text.len());
    }
    Ok(())
}

/// `MPI_File_seek(file, offset, whence)`.
pub(super) fn seek(file: &File, call: &Call<'_>) -> Result<(), Trouble> {
    check_seekable(file)?;
    let pointer = file.state().pointer;
    let offset = sought(file, call, pointer)?;
    file.state().pointer = offset;
    Ok(())
}

/// `MPI_File_seek_shared(file, offset, whence)`, by all ranks.
pub(super) fn seek_shared(file: &File, call: &Call<'_>) -> Result<(), Trouble> {
    check_seekable(file)?;
    // What other ranks have moved and written lies before it.
    file.agree(Ok(()))?;
    let sought = file.advance(0).and_then(|pointer| sought(file, call, pointer));
    file.agree(sought.as_ref().map(drop).map_err(Clone::clone))?;
    let to = sought?;
    let said = [call.word(1) as u64, call.int(2) as u64, to];
    file.group.check_same(said, "where the shared pointer goes")?;
    file.state().shared.put(to);
    Ok(())
}

fn check_seekable(file: &File) -> Result<(), Trouble> {
    match file.is(mode::SEQUENTIAL) {
        true => Err(Trouble::new(Class::UnsupportedOperation, "the file is sequential")),
        false => Ok(()),
    }
}

/// Where a pointer comes to.
fn sought(file: &File, call: &Call<'_>, pointer: u64) -> Result<u64, Trouble> {
    let whence = call.int(2);
    let base = if whence == Numbers::here().seek_set {
        0
    } else if whence == call.family.seek_current {
        pointer
    } else if whence == call.family.seek_end {
        let size = file.size()?;
        file.state().view.units_before(size)
    } else {
        return Err(arg(format!("whence {whence} is none of SET, CUR and END")));
    };
    let offset = (base as i64).checked_add(call.word(1) as i64);
    let offset = offset.and_then(|offset| u64::try_from(offset).ok());
    offset.ok_or_else(|| arg("the pointer would be before the view"))
}

/// `MPI_File_get_position(file, offset)`.
pub(super) fn get_position(file: &File, call: &Call<'_>) -> Result<(), Trouble> {
    put_offset(call, 1, file.state().pointer);
    Ok(())
}

/// `MPI_File_get_position_shared(file, offset)`.
pub(super) fn get_position_shared(file: &File, call: &Call<'_>) -> Result<(), Trouble> {
    check_seekable(file)?;
    put_offset(call, 1, file.advance(0)?);
    Ok(())
}

/// `MPI_File_get_byte_offset(file, offset, displacement)`.
pub(super) fn get_byte_offset(file: &File, call: &Call<'_>) -> Result<(), Trouble> {
    let Ok(offset) = u64::try_from(call.word(1) as i64) else {
        return Err(arg("the offset is negative"));
    };
    let state = file.state();
    let at = state.view.nest.at(state.view.bytes_before(offset)?);
    let Some(at) = at else { return Err(arg(format!("offset {offset} is behind the view"))) };
    put_offset(call, 2, at);
    Ok(())
}

/// `MPI_File_get_type_extent(file, datatype, extent)`: as in the file.
pub(super) fn get_type_extent(file: &File, call: &Call<'_>) -> Result<(), Trouble> {
    let extent = match file.state().view.is_external() {
        true => typemap::of_file(call.handle(1))?.extent(),
        false => typemap::of(call.handle(1))?.extent(),
    };
    put_offset(call, 2, extent as u64);
    Ok(())
}

/// Writes an answer of 8 bytes.
pub(super) fn put_offset(call: &Call<'_>, at: usize, offset: u64) {
    // SAFETY: the program's room for it.
    unsafe { (call.word(at) as *mut i64).write_unaligned(offset as i64) };
}

#[cfg(test)]
mod tests {
    use super::*;

    fn view(nest: &str, unit: u64) -> View {
        View { unit, nest: Arc::new(nest.parse().unwrap()), ..View::of_bytes() }
    }

    #[test]
    fn the_end_of_a_file_is_the_first_etype_that_does_not_begin_before_it() {
        assert_eq!(view("4 every 4 from 1", 4).units_before(10), 3);
        assert_eq!(view("1 x2/2 every 4", 1).units_before(10), 5);
        assert_eq!(view("1 every 1", 1).units_before(10), 10);
        assert_eq!(view("4 every 16 from 100", 4).units_before(10), 0);
    }

    #[test]
    fn offsets_beyond_all_files_are_refused() {
        let view = view("8 every 8", 8);
        assert_eq!(view.bytes_before(3), Ok(24));
        assert_eq!(view.bytes_before(1 << 61).unwrap_err().class, Class::Arg);
    }
}
