//! Error handlers of files that programs make in Fortran: MPI calls them with numbers where those of C get
//! handles, and some libraries make them past the function of C.

use super::file;
use super::numbers::Numbers;
use super::trouble::{self, Made};
use crate::family::Family;
use crate::next::Next;

/// C's handle of Fortran's number of a handler.
///
/// # Safety
/// It must be one.
unsafe fn handler_of(number: i32) -> Option<usize> {
    if Family::here().has_short_handles {
        return Some(number as u32 as usize);
    }
    static NEXT: Next = Next::new(c"PMPI_Errhandler_f2c");
    // SAFETY: the function of that name.
    unsafe {
        let handle: unsafe extern "C" fn(i32) -> usize = std::mem::transmute(NEXT.get()?);
        Some(handle(number))
    }
}

/// Fortran's number of a file, ours or the null one.
pub(super) fn number_of(handle: usize) -> i32 {
    if let Some(number) = file::fortran_of(handle) {
        return number;
    }
    static NEXT: Next = Next::new(c"PMPI_File_c2f");
    let Some(address) = NEXT.get() else { return 0 };
    // SAFETY: the function of that name, and a file that is always there.
    unsafe {
        let number: unsafe extern "C" fn(usize) -> i32 = std::mem::transmute(address);
        number(Numbers::here().no_file)
    }
}

/// # Safety
/// The arguments must be what `MPI_FILE_CREATE_ERRHANDLER` demands.
unsafe fn made(next: &Next, function: usize, handler: *mut i32, error: *mut i32) {
    let Some(address) = next.get() else { return };
    // SAFETY: the function of that name, with the program's arguments; it has filled them.
    unsafe {
        let make: unsafe extern "C-unwind" fn(usize, *mut i32, *mut i32) =
            std::mem::transmute(address);
        make(function, handler, error);
        if (error.is_null() || *error == 0)
            && let Some(handle) = handler_of(*handler)
        {
            trouble::keep_function(handle, Made::InFortran(function));
        }
    }
}

/// The names that compilers give `MPI_FILE_CREATE_ERRHANDLER`.
macro_rules! makers {
    ($($name:ident)*) => { $(
        /// # Safety
        /// The arguments must be what MPI's function of this name demands.
        #[unsafe(no_mangle)]
        #[allow(non_snake_case, reason = "MPI's name")]
        unsafe extern "C-unwind" fn $name(function: usize, handler: *mut i32, error: *mut i32) {
            const NAME: &str = concat!(stringify!($name), "\0");
            static NEXT: Next = Next::new(crate::calls::name(NAME));
            // SAFETY: the program's own arguments.
            unsafe { made(&NEXT, function, handler, error) }
        }
    )* };
}

makers! {
    mpi_file_create_errhandler mpi_file_create_errhandler_ mpi_file_create_errhandler__
    pmpi_file_create_errhandler pmpi_file_create_errhandler_ pmpi_file_create_errhandler__
    MPI_FILE_CREATE_ERRHANDLER PMPI_FILE_CREATE_ERRHANDLER
    mpi_file_create_errhandler_f08_ pmpi_file_create_errhandler_f08_
}
