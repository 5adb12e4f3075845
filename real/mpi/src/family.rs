//! What must be known of a family of MPI: how wide handles are, and numbers that stand for something.
//!
//! From the headers of MPICH 4.0 (the same in its successors of one ABI: Intel, Cray, MVAPICH), Open
//! MPI 4.1 and the standard ABI of MPI 5.0 (`mpi_abi.h`).

use crate::next;
use iolab_layer::loader;
use std::sync::OnceLock;

/// Which family it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Mpich,
    OpenMpi,
    Standard,
}

/// Numbers of one family.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Family {
    pub(crate) kind: Kind,
    /// Handles (of communicators, datatypes, requests) are 4 bytes wide; files are pointers everywhere.
    pub(crate) has_short_handles: bool,
    pub(crate) world: usize,
    /// `MPI_BYTE`.
    pub(crate) byte: usize,
    /// The name of a file may begin with the kind of its file system (ROMIO).
    pub(crate) names_have_kinds: bool,
    pub(crate) null_process: i32,
    pub(crate) any_source: i32,
    pub(crate) any_tag: i32,
    pub(crate) seek_current: i32,
    pub(crate) seek_end: i32,
    /// What each bit of the mode of an open is where everybody else has it; empty: there.
    modes: &'static [i32],
    /// The displacement of a view that is where the shared file pointer is.
    pub(crate) displacement_current: i64,
    pub(crate) order_c: i32,
    pub(crate) distribute_block: i32,
    pub(crate) distribute_cyclic: i32,
    pub(crate) default_argument: i32,
    /// Names of combiners by number, from `first_combiner` on; empty for those that are basic types.
    pub(crate) first_combiner: i32,
    pub(crate) combiners: &'static [&'static str],
}

const MPICH: Family = Family {
    kind: Kind::Mpich,
    has_short_handles: true,
    world: 0x4400_0000,
    byte: 0x4c00_010d,
    names_have_kinds: true,
    null_process: -1,
    any_source: -2,
    any_tag: -1,
    seek_current: 602,
    seek_end: 604,
    modes: &[],
    displacement_current: -54_278_278,
    order_c: 56,
    distribute_block: 121,
    distribute_cyclic: 122,
    default_argument: -49_767,
    first_combiner: 1,
    combiners: &CLASSIC_COMBINERS,
};

const OPEN_MPI: Family = Family {
    kind: Kind::OpenMpi,
    has_short_handles: false,
    world: 0,
    byte: 0,
    names_have_kinds: false,
    null_process: -2,
    any_source: -1,
    order_c: 0,
    distribute_block: 0,
    distribute_cyclic: 1,
    default_argument: -1,
    first_combiner: 0,
    ..MPICH
};

const STANDARD: Family = Family {
    kind: Kind::Standard,
    has_short_handles: false,
    world: 0x101,
    byte: 0x247,
    names_have_kinds: true,
    null_process: -3,
    any_source: -1,
    any_tag: -2,
    seek_current: 401,
    seek_end: 402,
    modes: &[APPEND, 1, 16, 64, 2, 8, 256, 32, 4],
    displacement_current: -1,
    order_c: 12,
    distribute_block: 17,
    distribute_cyclic: 18,
    default_argument: 19,
    first_combiner: 101,
    combiners: &STANDARD_COMBINERS,
};

/// The mode of an open whose pointers begin at the end, in the numbers of all older families.
pub(crate) const APPEND: i32 = 128;

/// What cannot be written down.
pub(crate) const OPAQUE: &str = "opaque";

/// In the order of MPI 2; those with displacements in Fortran's integers (`…_integer`) went with MPI 3.
const CLASSIC_COMBINERS: [&str; 19] = [
    "",
    "dup",
    "contiguous",
    "vector",
    OPAQUE,
    "hvector",
    "indexed",
    OPAQUE,
    "hindexed",
    "indexed_block",
    OPAQUE,
    "struct",
    "subarray",
    "darray",
    "",
    "",
    "",
    "resized",
    "hindexed_block",
];

const STANDARD_COMBINERS: [&str; 16] = [
    "",
    "dup",
    "contiguous",
    "vector",
    "hvector",
    "indexed",
    "hindexed",
    "indexed_block",
    "hindexed_block",
    "struct",
    "subarray",
    "darray",
    "",
    "",
    "",
    "resized",
];

impl Family {
    /// The family of this process.
    pub(crate) fn here() -> &'static Family {
        static FAMILY: OnceLock<Family> = OnceLock::new();
        FAMILY.get_or_init(|| {
            let symbol = |name| loader::anywhere(name).or_else(|| next::in_library(name));
            if let (Some(world), Some(byte)) =
                (symbol(c"ompi_mpi_comm_world"), symbol(c"ompi_mpi_byte"))
            {
                return Family { world, byte, ..OPEN_MPI };
            }
            // A function that no tool between the program and its MPI defines.
            let address = symbol(c"PMPI_Type_size_x").unwrap_or(0);
            match next::file_of(address).contains("libmpi_abi") {
                true => STANDARD,
                false => MPICH,
            }
        })
    }

    /// The mode of an open, in the numbers of all older families.
    pub(crate) fn mode(&self, mode: i32) -> i32 {
        if self.modes.is_empty() {
            return mode;
        }
        let bits = self.modes.iter().enumerate().filter(|(bit, _)| mode & 1 << bit != 0);
        bits.map(|(_, known)| known).sum()
    }

    /// Bytes of a handle in memory.
    pub(crate) fn handle_bytes(&self) -> usize {
        if self.has_short_handles { 4 } else { 8 }
    }

    /// A handle as a number, from the word it was passed in.
    pub(crate) fn handle(&self, word: usize) -> usize {
        if self.has_short_handles { word as u32 as usize } else { word }
    }

    /// The handle at an address.
    ///
    /// # Safety
    /// There must be one.
    pub(crate) unsafe fn handle_at(&self, address: usize) -> usize {
        // SAFETY: the caller's promise; arrays of MPI may be unaligned for nobody, but reads may.
        unsafe {
            match self.has_short_handles {
                true => (address as *const u32).read_unaligned() as usize,
                false => (address as *const usize).read_unaligned(),
            }
        }
    }

    /// Writes a handle to an address.
    ///
    /// # Safety
    /// There must be room for one.
    pub(crate) unsafe fn put_handle(&self, address: usize, handle: usize) {
        // SAFETY: the caller's promise.
        unsafe {
            match self.has_short_handles {
                true => (address as *mut u32).write_unaligned(handle as u32),
                false => (address as *mut usize).write_unaligned(handle),
            }
        }
    }

    /// Handle number `index` of an array.
    ///
    /// # Safety
    /// There must be as many.
    pub(crate) unsafe fn handle_in(&self, array: usize, index: usize) -> usize {
        // SAFETY: the caller's promise.
        unsafe { self.handle_at(array + index * self.handle_bytes()) }
    }

    /// Name of a combiner, empty for basic types; none if the family has no such.
    pub(crate) fn combiner(&self, number: i32) -> Option<&'static str> {
        let at = usize::try_from(number.checked_sub(self.first_combiner)?).ok()?;
        self.combiners.get(at).copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn modes_and_combiners_of_all_families_mean_the_same() {
        // `MPI_MODE_CREATE | MPI_MODE_RDWR | MPI_MODE_APPEND`
        assert_eq!(STANDARD.mode(2 | 32 | 1), MPICH.mode(1 | 8 | 128));
        let known = [(&MPICH, 13), (&OPEN_MPI, 12), (&STANDARD, 111)];
        assert!(known.iter().all(|(family, number)| family.combiner(*number) == Some("subarray")));
        let basic = [(&MPICH, 1), (&OPEN_MPI, 0), (&STANDARD, 101)];
        assert!(basic.iter().all(|(family, number)| family.combiner(*number) == Some("")));
        assert!([0, 20, i32::MIN].iter().all(|number| MPICH.combiner(*number).is_none()));
    }

    #[test]
    fn handles_are_as_wide_as_the_family_has_them() {
        let array = [0x1_0000_0002u64, 3];
        let at = array.as_ptr() as usize;
        // SAFETY: two words are there.
        let read = |family: &Family| unsafe { [0, 1].map(|index| family.handle_in(at, index)) };
        assert_eq!(read(&MPICH), [2, 1]);
        assert_eq!(read(&OPEN_MPI), [0x1_0000_0002, 3]);
        assert_eq!(MPICH.handle(0xffff_ffff_4400_0000), MPICH.world);
    }
}
