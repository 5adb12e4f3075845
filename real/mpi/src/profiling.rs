//! MPI's profiling interface (`PMPI_…`): what is asked of MPI itself, past every wrapper's record.

use crate::next::Next;

/// Whether there is a communicator of all processes now.
pub(crate) fn has_world() -> bool {
    let (mut begun, mut over) = (0i32, 1i32);
    // SAFETY: both may be asked at any time; there is room for the answers.
    let answers =
        unsafe { [initialized(&raw mut begun as usize), finalized(&raw mut over as usize)] };
    answers == [0, 0] && begun != 0 && over == 0
}

macro_rules! asked {
    ($($(#[$doc:meta])* $name:ident = $symbol:literal ($($argument:ident)*);)*) => { $(
        $(#[$doc])*
        ///
        /// # Safety
        /// As MPI has it; the answer is MPI's code, not 0 for a failure.
        #[allow(clippy::too_many_arguments, reason = "MPI has them")]
        pub(crate) unsafe fn $name($($argument: usize),*) -> i32 {
            static NEXT: Next = Next::new($symbol);
            let Some(address) = NEXT.get() else { return -1 };
            // SAFETY: the function of that name takes as many words.
            unsafe {
                let function: unsafe extern "C" fn($(asked!(word $argument)),*) -> i32 =
                    std::mem::transmute(address);
                function($($argument),*)
            }
        }
    )* };
    (word $argument:ident) => { usize };
}

/// Whether this MPI knows large counts. One that does calls it an error to ask for the contents of
/// a type with large counts by the old function.
pub(crate) fn has_large_counts() -> bool {
    static NEXT: Next = Next::new(c"PMPI_Type_get_contents_c");
    NEXT.get().is_some()
}

// What is asked of MPI itself, past every wrapper's record (we are inside of a call).
asked! {
    /// Whether `MPI_Init` was called; without it, sessions know no world.
    initialized = c"PMPI_Initialized" (flag);
    /// Whether `MPI_Finalize` was.
    finalized = c"PMPI_Finalized" (flag);
    /// Bytes of a datatype.
    type_size = c"PMPI_Type_size_x" (datatype size);
    /// Lower bound and extent of a datatype.
    type_extent = c"PMPI_Type_get_extent" (datatype lower extent);
    /// How a datatype was made.
    type_envelope = c"PMPI_Type_get_envelope" (datatype integers addresses types combiner);
    /// Of what it was made.
    type_contents = c"PMPI_Type_get_contents"
        (datatype max_integers max_addresses max_types integers addresses types);
    /// As `type_envelope`, for types with large counts, too (since MPI 4).
    large_type_envelope = c"PMPI_Type_get_envelope_c"
        (datatype integers addresses large_counts types combiner);
    /// As `type_contents`, for types with large counts, too (since MPI 4).
    large_type_contents = c"PMPI_Type_get_contents_c"
        (datatype max_integers max_addresses max_large_counts max_types
         integers addresses large_counts types);
    /// Gives a datatype back.
    type_free = c"PMPI_Type_free" (datatype);
    /// Number of elements that a status tells.
    get_elements = c"PMPI_Get_elements_x" (status datatype count);
    /// Whether a communicator has two groups.
    is_inter = c"PMPI_Comm_test_inter" (communicator flag);
    /// The group of a communicator.
    comm_group = c"PMPI_Comm_group" (communicator group);
    /// Ranks in it.
    group_size = c"PMPI_Group_size" (group size);
    /// The same ranks as another group counts them.
    group_translate = c"PMPI_Group_translate_ranks" (group count ranks other other_ranks);
    /// Gives a group back.
    group_free = c"PMPI_Group_free" (group);
    /// Own rank.
    comm_rank = c"PMPI_Comm_rank" (communicator rank);
    /// Where the individual pointer of a file is.
    file_position = c"PMPI_File_get_position" (file position);
    /// Where the shared one is.
    file_position_shared = c"PMPI_File_get_position_shared" (file position);
}
