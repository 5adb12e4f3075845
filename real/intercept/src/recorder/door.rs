//! The way in for a library that sees calls of another layer in the same process (`real/mpi`, `real/hdf5`,
//! `real/netcdf`).

use crate::mode::{self, Mode};
use crate::moment::{Moment, moment};
use iolab_trace::spool::{DOOR_VERSION, Door, LeftOut, Record, layer};

static DOOR: Door = Door { now, number, name, push, left_out };

/// The recorder of this process, null where calls of that layer are not recorded or the caller knows
/// another version of it.
#[unsafe(no_mangle)]
pub(crate) extern "C" fn iolab_recorder_door(version: u32, layer: u32) -> *const Door {
    let wanted = match layer {
        layer::MPI => Mode::RECORD_MPI,
        layer::HDF5 => Mode::RECORD_HDF5,
        layer::NETCDF => Mode::RECORD_NETCDF,
        _ => Mode::NOTHING,
    };
    let is_open = version == DOOR_VERSION && mode::get().has(wanted);
    if is_open { &raw const DOOR } else { std::ptr::null() }
}

/// Whether this is a moment to record: not in a child that runs on its parent's memory.
fn is_usual() -> bool {
    let above = Mode(Mode::RECORD_MPI.0 | Mode::RECORD_HDF5.0 | Mode::RECORD_NETCDF.0);
    moment() == Moment::Usual && mode::get().has(above)
}

extern "C" fn now() -> u64 {
    super::now()
}

extern "C" fn number() -> u32 {
    super::new_number()
}

extern "C" fn name(number: u32, text: *const u8, length: usize) {
    if is_usual() && !text.is_null() {
        // SAFETY: the caller's text, of that length.
        super::name(number, unsafe { std::slice::from_raw_parts(text, length) });
    }
}

extern "C" fn push(record: &Record) {
    if is_usual() {
        super::push(*record);
    }
}

extern "C" fn left_out(reason: usize) {
    if let (true, Some(reason)) = (is_usual(), LeftOut::from_index(reason)) {
        super::left_out(reason);
    }
}
