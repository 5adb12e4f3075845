//! The views of all ranks. They are told to each other when they are set, so that a call has only to say
//! from where to where it goes, and no list of pieces ever travels.

use super::file;
use super::told;
use crate::call::Call;
use crate::pfs::group::Group;
use crate::pfs::numbers::Numbers;
use crate::pfs::typemap;
use iolab_pattern::Nest;
use std::ffi::CStr;
use std::sync::Arc;

/// Largest description of one rank's view: of one that is a list, each rank has those of all.
const DESCRIPTION_BYTES: u64 = 16 << 20;

/// What a rank sees of the file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct View {
    /// Bytes of the etype.
    pub(crate) unit: u64,
    pub(crate) nest: Arc<Nest>,
}

impl View {
    /// As every file begins.
    pub(crate) fn of_bytes() -> View {
        View { unit: 1, nest: Arc::new(Nest::WHOLE_FILE) }
    }

    fn encoded(&self) -> Vec<u8> {
        let mut bytes = self.unit.to_le_bytes().to_vec();
        self.nest.encode(&mut bytes);
        bytes
    }

    fn decoded(bytes: &[u8]) -> Option<View> {
        let (unit, nest) = bytes.split_first_chunk::<8>()?;
        let (nest, _padding) = Nest::decode_first(nest).ok()?;
        Some(View { unit: u64::from_le_bytes(*unit), nest: Arc::new(nest) })
    }
}

/// After `MPI_File_set_view(file, displacement, etype, filetype, representation, info)`, which all ranks
/// call: also those whose view the library refused.
pub(super) fn was_set(call: &Call<'_>, answer: i32) {
    let Some(file) = file::find(call.word(0)) else { return };
    let own = match answer {
        0 => of_call(call),
        _ => Err("a rank's view was refused"),
    };
    let views = told(&file.group, own.as_ref().ok());
    if let (None, Err(why)) = (&views, &own) {
        told::is_out(&file, why);
    } else if views.is_none() {
        told::is_out(&file, "a rank's view cannot be followed");
    }
    let mut state = file.state();
    state.views = views;
    state.begun = None;
}

/// All ranks' views, if each has one.
pub(super) fn told(group: &Group, own: Option<&View>) -> Option<Vec<View>> {
    let mut bytes = own.map(View::encoded).unwrap_or_default();
    let all = group.gather(bytes.len() as u64).ok()?;
    let longest = *all.iter().max()?;
    if all.contains(&0) || longest > DESCRIPTION_BYTES {
        return None;
    }
    bytes.resize(longest as usize, 0);
    let mut views = vec![own.cloned(); all.len()];
    let gathered = group.gather_bytes(&bytes, |rank, bytes| views[rank] = View::decoded(bytes));
    gathered.ok()?;
    views.into_iter().collect()
}

/// This rank's view, or what it is that cannot be followed.
pub(crate) fn of_call(call: &Call<'_>) -> Result<View, &'static str> {
    let displacement = u64::try_from(call.word(1) as i64).map_err(|_| "its view has no place")?;
    // SAFETY: the text that MPI has just read.
    let representation = unsafe { CStr::from_ptr(call.word(4) as *const _) };
    if !representation.to_bytes().eq_ignore_ascii_case(b"native") {
        return Err("its data representation is not native");
    }
    let opaque = "MPI does not tell what a datatype of its view is made of";
    let unit = typemap::of(call.handle(2)).map_err(|_| opaque)?.size();
    let tile = typemap::of(call.handle(3)).map_err(|_| opaque)?;
    let nest = tile.view(displacement).map_err(|_| "the offsets of its view are too large")?;
    if !nest.proper() || unit == 0 {
        return Err("the offsets of its view do not ascend without overlap");
    }
    Ok(View { unit, nest: Arc::new(nest) })
}

/// After `MPI_File_set_atomicity(file, flag)`.
pub(super) fn atomicity_was_set(call: &Call<'_>, answer: i32) {
    if let (Some(file), 0) = (file::find(call.word(0)), answer) {
        file.state().is_atomic = call.int(1) != 0;
    }
}

/// Where this process's pointer of an open file is, in etypes.
pub(crate) fn pointer(handle: usize) -> Option<u64> {
    let mut position = 0i64;
    let place = &raw mut position as usize;
    // SAFETY: an open file, and room for the answer.
    match unsafe { crate::profiling::file_position(handle, place) } {
        0 => u64::try_from(position).ok(),
        _ => None,
    }
}

/// Puts this process's pointer somewhere.
pub(crate) fn seek(handle: usize, units: u64) {
    let from_the_start = Numbers::here().seek_set as usize;
    // SAFETY: an open file.
    unsafe { crate::profiling::file_seek(handle, units as usize, from_the_start) };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_view_is_on_another_rank_what_it_is_here_however_long_that_of_a_third() {
        let nest = Arc::new("3 x5/7 every 64 from 11".parse().unwrap());
        let view = View { unit: 3, nest };
        let mut bytes = view.encoded();
        bytes.resize(bytes.len() + 100, 0);
        assert_eq!(View::decoded(&bytes), Some(view));
        assert_eq!(View::decoded(&bytes[..7]), None);
    }
}
