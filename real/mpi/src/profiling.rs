//! MPI's profiling interface (`PMPI_…`): what is asked of MPI itself, past every wrapper's record.

use crate::next::Next;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Sessions of the program's that go on.
static SESSIONS: AtomicUsize = AtomicUsize::new(0);

/// A session has begun (`MPI_Session_init`).
pub(crate) fn session_begun() {
    SESSIONS.fetch_add(1, Ordering::AcqRel);
}

/// A session ends (`MPI_Session_finalize`).
pub(crate) fn session_ends() {
    let less = |sessions: usize| sessions.checked_sub(1);
    // One that began before us was not counted.
    let _ = SESSIONS.fetch_update(Ordering::AcqRel, Ordering::Acquire, less);
}

/// Whether there is a communicator of all processes now.
pub(crate) fn has_world() -> bool {
    let (mut begun, mut over) = (0i32, 1i32);
    // SAFETY: both may be asked at any time; there is room for the answers.
    let answers =
        unsafe { [initialized(&raw mut begun as usize), finalized(&raw mut over as usize)] };
    answers == [0, 0] && begun != 0 && over == 0
}

/// Whether a session of the program's goes on.
pub(crate) fn is_in_session() -> bool {
    SESSIONS.load(Ordering::Acquire) > 0
}

/// Whether functions of MPI may be called now: in its world, or in a session.
pub(crate) fn is_at_work() -> bool {
    is_in_session() || has_world()
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
    /// Ranks of a communicator.
    comm_size = c"PMPI_Comm_size" (communicator size);
    /// The error handler of a communicator.
    comm_get_errhandler = c"PMPI_Comm_get_errhandler" (communicator handler);
    /// Gives a communicator an error handler.
    comm_set_errhandler = c"PMPI_Comm_set_errhandler" (communicator handler);
    /// Begins a duplicate of a communicator.
    comm_dup = c"PMPI_Comm_dup" (communicator duplicate);
    comm_idup = c"PMPI_Comm_idup" (communicator duplicate request);
    /// Gives a communicator back.
    comm_free = c"PMPI_Comm_free" (communicator);
    /// Begins to give all ranks what one of them has.
    ibcast = c"PMPI_Ibcast" (buffer count datatype root communicator request);
    /// Begins to give all ranks what each of them has.
    iallgather = c"PMPI_Iallgather"
        (from from_count from_type to to_count to_type communicator request);
    /// Begins to send a message.
    isend = c"PMPI_Isend" (buffer count datatype to tag communicator request);
    /// Begins to receive one.
    irecv = c"PMPI_Irecv" (buffer count datatype from tag communicator request);
    /// Whether a request is done.
    test = c"PMPI_Test" (request flag status);
    /// Whether one of several requests is done.
    test_any = c"PMPI_Testany" (count requests index flag status);
    /// Which of several requests are done.
    test_some = c"PMPI_Testsome" (count requests ended indices statuses);
    /// Whether there is a message to receive.
    iprobe = c"PMPI_Iprobe" (source tag communicator flag status);
    /// Ends the program.
    abort = c"PMPI_Abort" (communicator code);
    /// Packs elements.
    pack = c"PMPI_Pack" (from count datatype to bytes position communicator);
    /// Converts elements to external32.
    pack_external = c"PMPI_Pack_external"
        (representation from count datatype to bytes position);
    /// Converts elements from external32.
    unpack_external = c"PMPI_Unpack_external"
        (representation from bytes position to count datatype);
    /// Another handle of the same datatype.
    type_dup = c"PMPI_Type_dup" (datatype duplicate);
    /// A key for attributes of datatypes.
    type_create_keyval = c"PMPI_Type_create_keyval" (copy delete key extra);
    /// An attribute of a datatype.
    type_get_attr = c"PMPI_Type_get_attr" (datatype key value flag);
    /// Keeps an attribute with a datatype.
    type_set_attr = c"PMPI_Type_set_attr" (datatype key value);
    /// Says in a status how many elements there were.
    status_set_elements = c"PMPI_Status_set_elements_x" (status datatype count);
    /// Says in a status whether there was a call at all.
    status_set_cancelled = c"PMPI_Status_set_cancelled" (status flag);
    /// A request that somebody else than MPI completes.
    grequest_start = c"PMPI_Grequest_start" (query free cancel extra request);
    /// Completes it.
    grequest_complete = c"PMPI_Grequest_complete" (request);
    /// A new set of hints.
    info_create = c"PMPI_Info_create" (info);
    /// Adds a hint.
    info_set = c"PMPI_Info_set" (info key value);
    /// Another set with the same hints.
    info_dup = c"PMPI_Info_dup" (info duplicate);
    /// Gives a set of hints back.
    info_free = c"PMPI_Info_free" (info);
    /// How many hints there are.
    info_get_nkeys = c"PMPI_Info_get_nkeys" (info count);
    /// The name of one of them.
    info_get_nthkey = c"PMPI_Info_get_nthkey" (info index key);
    /// The value of a hint.
    info_get = c"PMPI_Info_get" (info key length value flag);
    /// The value of a hint (since MPI 4).
    info_get_string = c"PMPI_Info_get_string" (info key length value flag);
    /// The hints of a file that the library tells of.
    file_get_info = c"PMPI_File_get_info" (file info);
    /// Which library it is.
    library_version = c"PMPI_Get_library_version" (text length);
    /// The error handler of a file.
    file_get_errhandler = c"PMPI_File_get_errhandler" (file handler);
    /// Gives a file an error handler.
    file_set_errhandler = c"PMPI_File_set_errhandler" (file handler);
    /// Gives back a reference to an error handler.
    errhandler_free = c"PMPI_Errhandler_free" (handler);
    /// An error handler of a function.
    file_create_errhandler = c"PMPI_File_create_errhandler" (function handler);
    /// Tells the error handler of a file of an error.
    file_call_errhandler = c"PMPI_File_call_errhandler" (file code);
    /// Puts the individual pointer of a file somewhere.
    file_seek = c"PMPI_File_seek" (file offset whence);
    /// Where the individual pointer of a file is.
    file_position = c"PMPI_File_get_position" (file position);
    /// Where the shared one is.
    file_position_shared = c"PMPI_File_get_position_shared" (file position);
}
