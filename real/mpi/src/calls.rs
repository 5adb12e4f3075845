//! Every function of MPI that is seen, and what happens around a call of it.
//!
//! A row: the function and its profiling twin, the arguments, what is noted before the call and what
//! is kept after it; then the same with large counts (`…_c`) and which of its arguments are counts.

use crate::call::Call;
use crate::collectives as coll;
use crate::communicators;
use crate::completion as end;
use crate::exchange::{self, Part};
use crate::family::Family;
use crate::files::{
    self,
    Place::{Explicit, Own, Shared},
};
use crate::messages as msg;
use crate::next::{Next, file_of};
use crate::pfs::{self, Work};
use crate::profiling::comm_rank;
use crate::recorder::{Times, door, leave_out, push, record};
use crate::stages;
use iolab_layer::inside::Inside;
use iolab_trace::Function as F;
use iolab_trace::spool::{LeftOut, Record};
use std::cell::Cell;
use std::ffi::CStr;
use std::sync::OnceLock;

/// What MPI answers when a count does not fit (`MPI_ERR_COUNT`, in every family).
const COUNT_TOO_LARGE: i32 = 2;
/// What a function that this MPI does not have answers.
const NO_SUCH_FUNCTION: i32 = 16;

thread_local! {
    /// Where this thread is in a call of MPI.
    static FRAME: Cell<usize> = const { Cell::new(0) };
}

/// One row of the table.
struct Row {
    next: Next,
    /// Its profiling twin, if it is not one itself.
    twin: Next,
    /// Whether another tool has this function, and looks for its twin behind it.
    is_for_tool: OnceLock<bool>,
    /// The same function with usual counts, where this one has large ones, and which those are.
    usual: Option<(Next, &'static [usize])>,
    before: fn(&mut Call<'_>),
    /// What is noted before is noted inside of other calls, too: a handle goes.
    is_noted_inside: bool,
    after: fn(&mut Call<'_>),
    /// The recorder has to do with it.
    is_recorded: bool,
    /// How it is carried out on files of the parallel file system.
    work: Option<Work>,
    /// What it has to do with collective accesses of the program's other files.
    part: Option<Part>,
}

impl Row {
    /// Whether another tool comes between the program and its MPI: it sees calls on files of ours as well, and asks the
    /// twin for them, which is carried out. Its function is not where the library's twin is.
    fn is_for_tool(&self) -> bool {
        *self.is_for_tool.get_or_init(|| match (self.next.get(), self.twin.get()) {
            (Some(next), Some(twin)) => file_of(next) != file_of(twin),
            _ => false,
        })
    }
}

/// # Safety
/// The arguments are the guest's own; `perform` calls a function that takes them.
#[inline(never)]
unsafe fn around(
    row: &'static Row,
    arguments: &mut [usize],
    perform: &mut dyn FnMut(usize, &[usize]) -> i32,
) -> i32 {
    let has_large_counts = row.usual.is_some();
    // The answer, and whether counts were large in the function that gave it.
    let mut carry_out = |arguments: &mut [usize]| {
        let ours = row
            .work
            .filter(|_| pfs::is_on() && !row.is_for_tool())
            .and_then(|work| pfs::carry_out(work, row.next.name(), arguments, has_large_counts));
        match ours {
            Some(answer) => (answer, has_large_counts),
            None => by_library(row, arguments, &mut |address, words| {
                pfs::completed(row.work, row.next.name(), words, &mut |words| {
                    stages::around(row.part, words, has_large_counts, &mut |words| {
                        exchange::around(row.part, words, has_large_counts, &mut || {
                            perform(address, words)
                        })
                    })
                })
            }),
        }
    };
    if !row.is_recorded {
        return carry_out(arguments).0;
    }
    let Some(door) = door() else { return carry_out(arguments).0 };
    let inside = Inside::enter(&FRAME);
    let family = Family::here();
    let times = Times { start: 0, end: 0 };
    let (noted, scratch) = (Vec::new(), [0; 8]);
    let mut call = Call { arguments, has_large_counts, family, times, noted, scratch };
    if inside.is_none() {
        if row.is_noted_inside {
            (row.before)(&mut call);
        }
        return carry_out(call.arguments).0;
    }
    (row.before)(&mut call);
    call.times.start = (door.now)();
    let answer;
    (answer, call.has_large_counts) = carry_out(call.arguments);
    call.times.end = (door.now)();
    match answer {
        0 => (row.after)(&mut call),
        _ => {
            leave_out(LeftOut::FailedMpi);
            end::forget(&call);
        }
    }
    answer
}

/// Has the library carry out a call: its answer, and whether it has the function with large counts.
fn by_library(
    row: &Row,
    arguments: &[usize],
    perform: &mut dyn FnMut(usize, &[usize]) -> i32,
) -> (i32, bool) {
    if let Some(address) = row.next.get() {
        return (perform(address, arguments), row.usual.is_some());
    }
    let Some((usual, counts)) = &row.usual else { return (NO_SUCH_FUNCTION, false) };
    let fits = |&at: &usize| i32::try_from(arguments[at] as i64).is_ok();
    match usual.get() {
        None => (NO_SUCH_FUNCTION, false),
        Some(_) if !counts.iter().all(fits) => (COUNT_TOO_LARGE, false),
        Some(address) => (perform(address, arguments), false),
    }
}

fn nothing(_call: &mut Call<'_>) {}

/// `MPI_Init`: from now on this process knows its rank, without a launcher too.
fn begin(call: &mut Call<'_>) {
    let mut rank = -1i32;
    // SAFETY: MPI has just been initialised; there is room for the answer.
    unsafe { comm_rank(call.family.world, &raw mut rank as usize) };
    push(Record { argument: i64::from(rank), ..record(F::MPI_INIT, call.times) });
}

fn finish(call: &mut Call<'_>) {
    push(record(F::MPI_FINALIZE, call.times));
}

pub(crate) const fn name(text: &'static str) -> &'static CStr {
    match CStr::from_bytes_with_nul(text.as_bytes()) {
        Ok(name) => name,
        Err(_) => panic!("a name of the table has no end"),
    }
}

macro_rules! wrappers {
    ($inside:literal $recorded:literal $($name:ident $twin:ident $arguments:tt $before:expr => $after:expr
       $(, $large:ident $large_twin:ident [$($count:literal)*])?;)*) => { $(
        wrappers! { one $inside $recorded $name $arguments None, $before, $after }
        wrappers! { one $inside $recorded $twin $arguments None, $before, $after }
        $(
            wrappers! { one $inside $recorded $large $arguments
                Some((Next::new(name(concat!(stringify!($name), "\0"))), &[$($count),*])), $before, $after }
            wrappers! { one $inside $recorded $large_twin $arguments
                Some((Next::new(name(concat!(stringify!($twin), "\0"))), &[$($count),*])), $before, $after }
        )?
    )* };
    (one $inside:literal $recorded:literal $name:ident ($($argument:ident)*) $usual:expr, $before:expr, $after:expr) => {
        /// # Safety
        /// The arguments must be what MPI's function of this name demands.
        #[unsafe(no_mangle)]
        #[allow(non_snake_case, reason = "MPI's name")]
        unsafe extern "C-unwind" fn $name($($argument: usize),*) -> i32 {
            static ROW: Row = Row {
                next: Next::new(name(concat!(stringify!($name), "\0"))),
                twin: Next::new(name(concat!("P", stringify!($name), "\0"))),
                is_for_tool: OnceLock::new(),
                usual: $usual,
                before: $before,
                is_noted_inside: $inside,
                after: $after,
                is_recorded: $recorded,
                work: pfs::work(stringify!($name)),
                part: exchange::part(stringify!($name)),
            };
            let mut perform = |address: usize, words: &[usize]| {
                let &[$($argument),*] = words else { return NO_SUCH_FUNCTION };
                // SAFETY: the function of this name, which takes as many words.
                unsafe {
                    let function: unsafe extern "C-unwind" fn($(wrappers!(word $argument)),*) -> i32 =
                        std::mem::transmute(address);
                    function($($argument),*)
                }
            };
            // SAFETY: the guest's own arguments.
            unsafe { around(&ROW, &mut [$($argument),*], &mut perform) }
        }
    };
    (word $argument:ident) => { usize };
}

wrappers! { true true
    MPI_Comm_free PMPI_Comm_free (a) communicators::before_free => nothing;
    MPI_Comm_disconnect PMPI_Comm_disconnect (a) communicators::before_free => nothing;
}

wrappers! { false true
    MPI_Init PMPI_Init (a b) nothing => begin;
    MPI_Init_thread PMPI_Init_thread (a b c d) nothing => begin;
    MPI_Finalize PMPI_Finalize () nothing => finish;
    MPI_Send PMPI_Send (a b c d e f) nothing => msg::send, MPI_Send_c PMPI_Send_c [1];
    MPI_Bsend PMPI_Bsend (a b c d e f) nothing => msg::send, MPI_Bsend_c PMPI_Bsend_c [1];
    MPI_Ssend PMPI_Ssend (a b c d e f) nothing => msg::send, MPI_Ssend_c PMPI_Ssend_c [1];
    MPI_Rsend PMPI_Rsend (a b c d e f) nothing => msg::send, MPI_Rsend_c PMPI_Rsend_c [1];
    MPI_Recv PMPI_Recv (a b c d e f g) nothing => msg::receive, MPI_Recv_c PMPI_Recv_c [1];
    MPI_Sendrecv PMPI_Sendrecv (a b c d e f g h i j k l) nothing => msg::exchange, MPI_Sendrecv_c PMPI_Sendrecv_c [1 6];
    MPI_Sendrecv_replace PMPI_Sendrecv_replace (a b c d e f g h i) nothing => msg::exchange_in_place, MPI_Sendrecv_replace_c PMPI_Sendrecv_replace_c [1];
    MPI_Isend PMPI_Isend (a b c d e f g) nothing => msg::start_send, MPI_Isend_c PMPI_Isend_c [1];
    MPI_Ibsend PMPI_Ibsend (a b c d e f g) nothing => msg::start_send, MPI_Ibsend_c PMPI_Ibsend_c [1];
    MPI_Issend PMPI_Issend (a b c d e f g) nothing => msg::start_send, MPI_Issend_c PMPI_Issend_c [1];
    MPI_Irsend PMPI_Irsend (a b c d e f g) nothing => msg::start_send, MPI_Irsend_c PMPI_Irsend_c [1];
    MPI_Irecv PMPI_Irecv (a b c d e f g) nothing => msg::start_receive, MPI_Irecv_c PMPI_Irecv_c [1];
    MPI_Send_init PMPI_Send_init (a b c d e f g) nothing => msg::prepare_send, MPI_Send_init_c PMPI_Send_init_c [1];
    MPI_Bsend_init PMPI_Bsend_init (a b c d e f g) nothing => msg::prepare_send, MPI_Bsend_init_c PMPI_Bsend_init_c [1];
    MPI_Ssend_init PMPI_Ssend_init (a b c d e f g) nothing => msg::prepare_send, MPI_Ssend_init_c PMPI_Ssend_init_c [1];
    MPI_Rsend_init PMPI_Rsend_init (a b c d e f g) nothing => msg::prepare_send, MPI_Rsend_init_c PMPI_Rsend_init_c [1];
    MPI_Recv_init PMPI_Recv_init (a b c d e f g) nothing => msg::prepare_receive, MPI_Recv_init_c PMPI_Recv_init_c [1];
    MPI_Start PMPI_Start (a) nothing => msg::start_prepared;
    MPI_Startall PMPI_Startall (a b) nothing => msg::start_all_prepared;
    MPI_Wait PMPI_Wait (a b) end::note_one => end::ended_all;
    MPI_Waitall PMPI_Waitall (a b c) end::note_all => end::ended_all;
    MPI_Waitany PMPI_Waitany (a b c d) end::note_all => end::ended_any;
    MPI_Waitsome PMPI_Waitsome (a b c d e) end::note_all => end::ended_some;
    MPI_Test PMPI_Test (a b c) end::note_one => end::tested_one;
    MPI_Testall PMPI_Testall (a b c d) end::note_all => end::tested_all;
    MPI_Testany PMPI_Testany (a b c d e) end::note_all => end::tested_any;
    MPI_Testsome PMPI_Testsome (a b c d e) end::note_all => end::ended_some;
    MPI_Mprobe PMPI_Mprobe (a b c d e) nothing => msg::found;
    MPI_Improbe PMPI_Improbe (a b c d e f) nothing => msg::found_perhaps;
    MPI_Mrecv PMPI_Mrecv (a b c d e) msg::note_message => msg::receive_found, MPI_Mrecv_c PMPI_Mrecv_c [1];
    MPI_Imrecv PMPI_Imrecv (a b c d e) msg::note_message => msg::start_receive_found, MPI_Imrecv_c PMPI_Imrecv_c [1];
    MPI_Cancel PMPI_Cancel (a) end::note_one => end::cancelled;
    MPI_Request_free PMPI_Request_free (a) end::note_one => end::freed;
    MPI_Barrier PMPI_Barrier (a) nothing => coll::barrier;
    MPI_Bcast PMPI_Bcast (a b c d e) nothing => coll::broadcast, MPI_Bcast_c PMPI_Bcast_c [1];
    MPI_Reduce PMPI_Reduce (a b c d e f g) nothing => coll::reduce, MPI_Reduce_c PMPI_Reduce_c [2];
    MPI_Allreduce PMPI_Allreduce (a b c d e f) nothing => coll::allreduce, MPI_Allreduce_c PMPI_Allreduce_c [2];
    MPI_Gather PMPI_Gather (a b c d e f g h) nothing => coll::gather, MPI_Gather_c PMPI_Gather_c [1 4];
    MPI_Gatherv PMPI_Gatherv (a b c d e f g h i) nothing => coll::gather_parts;
    MPI_Scatter PMPI_Scatter (a b c d e f g h) nothing => coll::scatter, MPI_Scatter_c PMPI_Scatter_c [1 4];
    MPI_Scatterv PMPI_Scatterv (a b c d e f g h i) nothing => coll::scatter_parts;
    MPI_Allgather PMPI_Allgather (a b c d e f g) nothing => coll::allgather, MPI_Allgather_c PMPI_Allgather_c [1 4];
    MPI_Allgatherv PMPI_Allgatherv (a b c d e f g h) nothing => coll::allgather_parts;
    MPI_Alltoall PMPI_Alltoall (a b c d e f g) nothing => coll::alltoall, MPI_Alltoall_c PMPI_Alltoall_c [1 4];
    MPI_Alltoallv PMPI_Alltoallv (a b c d e f g h i) nothing => coll::alltoall_parts;
    MPI_Scan PMPI_Scan (a b c d e f) nothing => coll::scan, MPI_Scan_c PMPI_Scan_c [2];
    MPI_Exscan PMPI_Exscan (a b c d e f) nothing => coll::scan, MPI_Exscan_c PMPI_Exscan_c [2];
    MPI_Reduce_scatter PMPI_Reduce_scatter (a b c d e f) nothing => coll::reduce_scatter_parts;
    MPI_Reduce_scatter_block PMPI_Reduce_scatter_block (a b c d e f) nothing => coll::reduce_scatter, MPI_Reduce_scatter_block_c PMPI_Reduce_scatter_block_c [2];
    MPI_Ibarrier PMPI_Ibarrier (a b) nothing => coll::leave_out;
    MPI_Ibcast PMPI_Ibcast (a b c d e f) nothing => coll::leave_out;
    MPI_Ireduce PMPI_Ireduce (a b c d e f g h) nothing => coll::leave_out;
    MPI_Iallreduce PMPI_Iallreduce (a b c d e f g) nothing => coll::leave_out;
    MPI_Igather PMPI_Igather (a b c d e f g h i) nothing => coll::leave_out;
    MPI_Igatherv PMPI_Igatherv (a b c d e f g h i j) nothing => coll::leave_out;
    MPI_Iscatter PMPI_Iscatter (a b c d e f g h i) nothing => coll::leave_out;
    MPI_Iscatterv PMPI_Iscatterv (a b c d e f g h i j) nothing => coll::leave_out;
    MPI_Iallgather PMPI_Iallgather (a b c d e f g h) nothing => coll::leave_out;
    MPI_Iallgatherv PMPI_Iallgatherv (a b c d e f g h i) nothing => coll::leave_out;
    MPI_Ialltoall PMPI_Ialltoall (a b c d e f g h) nothing => coll::leave_out;
    MPI_Ialltoallv PMPI_Ialltoallv (a b c d e f g h i j) nothing => coll::leave_out;
    MPI_Alltoallw PMPI_Alltoallw (a b c d e f g h i) nothing => coll::leave_out;
    MPI_Neighbor_alltoall PMPI_Neighbor_alltoall (a b c d e f g) nothing => coll::leave_out;
    MPI_Neighbor_allgather PMPI_Neighbor_allgather (a b c d e f g) nothing => coll::leave_out;
    MPI_Iscan PMPI_Iscan (a b c d e f g) nothing => coll::leave_out;
    MPI_Iexscan PMPI_Iexscan (a b c d e f g) nothing => coll::leave_out;
    MPI_Ireduce_scatter PMPI_Ireduce_scatter (a b c d e f g) nothing => coll::leave_out;
    MPI_Ireduce_scatter_block PMPI_Ireduce_scatter_block (a b c d e f g) nothing => coll::leave_out;
    MPI_Fetch_and_op PMPI_Fetch_and_op (a b c d e f g) nothing => coll::leave_out;
    MPI_Compare_and_swap PMPI_Compare_and_swap (a b c d e f g) nothing => coll::leave_out;
    MPI_Put PMPI_Put (a b c d e f g h) nothing => coll::leave_out, MPI_Put_c PMPI_Put_c [1 5];
    MPI_Get PMPI_Get (a b c d e f g h) nothing => coll::leave_out, MPI_Get_c PMPI_Get_c [1 5];
    MPI_Accumulate PMPI_Accumulate (a b c d e f g h i) nothing => coll::leave_out, MPI_Accumulate_c PMPI_Accumulate_c [1 5];
    MPI_Rput PMPI_Rput (a b c d e f g h i) nothing => coll::leave_out, MPI_Rput_c PMPI_Rput_c [1 5];
    MPI_Rget PMPI_Rget (a b c d e f g h i) nothing => coll::leave_out, MPI_Rget_c PMPI_Rget_c [1 5];
    MPI_Raccumulate PMPI_Raccumulate (a b c d e f g h i j) nothing => coll::leave_out, MPI_Raccumulate_c PMPI_Raccumulate_c [1 5];
    MPI_Get_accumulate PMPI_Get_accumulate (a b c d e f g h i j k l) nothing => coll::leave_out, MPI_Get_accumulate_c PMPI_Get_accumulate_c [1 4 8];
    MPI_File_open PMPI_File_open (a b c d e) nothing => files::open;
    MPI_File_close PMPI_File_close (a) files::note_file => files::close;
    MPI_File_set_view PMPI_File_set_view (a b c d e f) nothing => files::set_view;
    MPI_File_seek PMPI_File_seek (a b c) nothing => files::seek;
    MPI_File_seek_shared PMPI_File_seek_shared (a b c) nothing => files::seek_shared;
    MPI_File_sync PMPI_File_sync (a) nothing => files::sync;
    MPI_File_set_size PMPI_File_set_size (a b) nothing => files::set_size;
    MPI_File_preallocate PMPI_File_preallocate (a b) nothing => files::preallocate;
    MPI_File_read PMPI_File_read (a b c d e) files::want_status => |call| files::moved(call, F::MPI_FILE_READ, Own), MPI_File_read_c PMPI_File_read_c [2];
    MPI_File_read_at PMPI_File_read_at (a b c d e f) files::want_status => |call| files::moved(call, F::MPI_FILE_READ, Explicit), MPI_File_read_at_c PMPI_File_read_at_c [3];
    MPI_File_iread PMPI_File_iread (a b c d e) nothing => |call| files::started(call, F::MPI_FILE_IREAD, Own), MPI_File_iread_c PMPI_File_iread_c [2];
    MPI_File_iread_at PMPI_File_iread_at (a b c d e f) nothing => |call| files::started(call, F::MPI_FILE_IREAD, Explicit), MPI_File_iread_at_c PMPI_File_iread_at_c [3];
    MPI_File_read_all PMPI_File_read_all (a b c d e) files::want_status => |call| files::moved(call, F::MPI_FILE_READ_ALL, Own), MPI_File_read_all_c PMPI_File_read_all_c [2];
    MPI_File_read_at_all PMPI_File_read_at_all (a b c d e f) files::want_status => |call| files::moved(call, F::MPI_FILE_READ_ALL, Explicit), MPI_File_read_at_all_c PMPI_File_read_at_all_c [3];
    MPI_File_iread_all PMPI_File_iread_all (a b c d e) nothing => |call| files::started(call, F::MPI_FILE_IREAD_ALL, Own), MPI_File_iread_all_c PMPI_File_iread_all_c [2];
    MPI_File_iread_at_all PMPI_File_iread_at_all (a b c d e f) nothing => |call| files::started(call, F::MPI_FILE_IREAD_ALL, Explicit), MPI_File_iread_at_all_c PMPI_File_iread_at_all_c [3];
    MPI_File_read_shared PMPI_File_read_shared (a b c d e) files::want_status => |call| files::moved(call, F::MPI_FILE_READ, Shared), MPI_File_read_shared_c PMPI_File_read_shared_c [2];
    MPI_File_iread_shared PMPI_File_iread_shared (a b c d e) nothing => |call| files::started(call, F::MPI_FILE_IREAD, Shared), MPI_File_iread_shared_c PMPI_File_iread_shared_c [2];
    MPI_File_read_ordered PMPI_File_read_ordered (a b c d e) files::want_status => |call| files::moved(call, F::MPI_FILE_READ_ALL, Shared), MPI_File_read_ordered_c PMPI_File_read_ordered_c [2];
    MPI_File_read_all_begin PMPI_File_read_all_begin (a b c d) nothing => |call| files::begun(call, F::MPI_FILE_IREAD_ALL, Own), MPI_File_read_all_begin_c PMPI_File_read_all_begin_c [2];
    MPI_File_read_all_end PMPI_File_read_all_end (a b c) nothing => files::completed;
    MPI_File_read_at_all_begin PMPI_File_read_at_all_begin (a b c d e) nothing => |call| files::begun(call, F::MPI_FILE_IREAD_ALL, Explicit), MPI_File_read_at_all_begin_c PMPI_File_read_at_all_begin_c [3];
    MPI_File_read_at_all_end PMPI_File_read_at_all_end (a b c) nothing => files::completed;
    MPI_File_read_ordered_begin PMPI_File_read_ordered_begin (a b c d) nothing => |call| files::begun(call, F::MPI_FILE_IREAD_ALL, Shared), MPI_File_read_ordered_begin_c PMPI_File_read_ordered_begin_c [2];
    MPI_File_read_ordered_end PMPI_File_read_ordered_end (a b c) nothing => files::completed;
    MPI_File_write PMPI_File_write (a b c d e) files::want_status => |call| files::moved(call, F::MPI_FILE_WRITE, Own), MPI_File_write_c PMPI_File_write_c [2];
    MPI_File_write_at PMPI_File_write_at (a b c d e f) files::want_status => |call| files::moved(call, F::MPI_FILE_WRITE, Explicit), MPI_File_write_at_c PMPI_File_write_at_c [3];
    MPI_File_iwrite PMPI_File_iwrite (a b c d e) nothing => |call| files::started(call, F::MPI_FILE_IWRITE, Own), MPI_File_iwrite_c PMPI_File_iwrite_c [2];
    MPI_File_iwrite_at PMPI_File_iwrite_at (a b c d e f) nothing => |call| files::started(call, F::MPI_FILE_IWRITE, Explicit), MPI_File_iwrite_at_c PMPI_File_iwrite_at_c [3];
    MPI_File_write_all PMPI_File_write_all (a b c d e) files::want_status => |call| files::moved(call, F::MPI_FILE_WRITE_ALL, Own), MPI_File_write_all_c PMPI_File_write_all_c [2];
    MPI_File_write_at_all PMPI_File_write_at_all (a b c d e f) files::want_status => |call| files::moved(call, F::MPI_FILE_WRITE_ALL, Explicit), MPI_File_write_at_all_c PMPI_File_write_at_all_c [3];
    MPI_File_iwrite_all PMPI_File_iwrite_all (a b c d e) nothing => |call| files::started(call, F::MPI_FILE_IWRITE_ALL, Own), MPI_File_iwrite_all_c PMPI_File_iwrite_all_c [2];
    MPI_File_iwrite_at_all PMPI_File_iwrite_at_all (a b c d e f) nothing => |call| files::started(call, F::MPI_FILE_IWRITE_ALL, Explicit), MPI_File_iwrite_at_all_c PMPI_File_iwrite_at_all_c [3];
    MPI_File_write_shared PMPI_File_write_shared (a b c d e) files::want_status => |call| files::moved(call, F::MPI_FILE_WRITE, Shared), MPI_File_write_shared_c PMPI_File_write_shared_c [2];
    MPI_File_iwrite_shared PMPI_File_iwrite_shared (a b c d e) nothing => |call| files::started(call, F::MPI_FILE_IWRITE, Shared), MPI_File_iwrite_shared_c PMPI_File_iwrite_shared_c [2];
    MPI_File_write_ordered PMPI_File_write_ordered (a b c d e) files::want_status => |call| files::moved(call, F::MPI_FILE_WRITE_ALL, Shared), MPI_File_write_ordered_c PMPI_File_write_ordered_c [2];
    MPI_File_write_all_begin PMPI_File_write_all_begin (a b c d) nothing => |call| files::begun(call, F::MPI_FILE_IWRITE_ALL, Own), MPI_File_write_all_begin_c PMPI_File_write_all_begin_c [2];
    MPI_File_write_all_end PMPI_File_write_all_end (a b c) nothing => files::completed;
    MPI_File_write_at_all_begin PMPI_File_write_at_all_begin (a b c d e) nothing => |call| files::begun(call, F::MPI_FILE_IWRITE_ALL, Explicit), MPI_File_write_at_all_begin_c PMPI_File_write_at_all_begin_c [3];
    MPI_File_write_at_all_end PMPI_File_write_at_all_end (a b c) nothing => files::completed;
    MPI_File_write_ordered_begin PMPI_File_write_ordered_begin (a b c d) nothing => |call| files::begun(call, F::MPI_FILE_IWRITE_ALL, Shared), MPI_File_write_ordered_begin_c PMPI_File_write_ordered_begin_c [2];
    MPI_File_write_ordered_end PMPI_File_write_ordered_end (a b c) nothing => files::completed;
}

// What has to do with files and their requests, and has no row of the recorder's.
wrappers! { false false
    MPI_Request_get_status PMPI_Request_get_status (a b c) nothing => nothing;
    MPI_Request_get_status_all PMPI_Request_get_status_all (a b c d) nothing => nothing;
    MPI_Request_get_status_any PMPI_Request_get_status_any (a b c d e) nothing => nothing;
    MPI_Request_get_status_some PMPI_Request_get_status_some (a b c d e) nothing => nothing;
    MPI_Session_init PMPI_Session_init (a b c) nothing => nothing;
    MPI_Session_finalize PMPI_Session_finalize (a) nothing => nothing;
    MPI_File_delete PMPI_File_delete (a b) nothing => nothing;
    MPI_File_get_size PMPI_File_get_size (a b) nothing => nothing;
    MPI_File_get_group PMPI_File_get_group (a b) nothing => nothing;
    MPI_File_get_amode PMPI_File_get_amode (a b) nothing => nothing;
    MPI_File_set_info PMPI_File_set_info (a b) nothing => nothing;
    MPI_File_get_info PMPI_File_get_info (a b) nothing => nothing;
    MPI_File_get_view PMPI_File_get_view (a b c d e) nothing => nothing;
    MPI_File_get_position PMPI_File_get_position (a b) nothing => nothing;
    MPI_File_get_position_shared PMPI_File_get_position_shared (a b) nothing => nothing;
    MPI_File_get_byte_offset PMPI_File_get_byte_offset (a b c) nothing => nothing;
    MPI_File_get_type_extent PMPI_File_get_type_extent (a b c) nothing => nothing, MPI_File_get_type_extent_c PMPI_File_get_type_extent_c [];
    MPI_File_set_atomicity PMPI_File_set_atomicity (a b) nothing => nothing;
    MPI_File_get_atomicity PMPI_File_get_atomicity (a b) nothing => nothing;
    MPI_File_set_errhandler PMPI_File_set_errhandler (a b) nothing => nothing;
    MPI_File_get_errhandler PMPI_File_get_errhandler (a b) nothing => nothing;
    MPI_File_call_errhandler PMPI_File_call_errhandler (a b) nothing => nothing;
    MPI_File_create_errhandler PMPI_File_create_errhandler (a b) nothing => nothing;
}

/// A function that turns one handle of a file into another: not one of MPI's that answer a code.
macro_rules! conversions {
    ($($name:ident $argument:ty => $result:ty, $ours:path, $else:expr;)*) => { $(
        /// # Safety
        /// The argument must be what MPI's function of this name demands.
        #[unsafe(no_mangle)]
        #[allow(non_snake_case, reason = "MPI's name")]
        unsafe extern "C-unwind" fn $name(file: $argument) -> $result {
            static NEXT: Next = Next::new(name(concat!(stringify!($name), "\0")));
            if let Some(ours) = $ours(file) {
                return ours;
            }
            let Some(address) = NEXT.get() else { return $else };
            // SAFETY: the function of this name.
            unsafe {
                let function: unsafe extern "C-unwind" fn($argument) -> $result =
                    std::mem::transmute(address);
                function(file)
            }
        }
    )* };
}

conversions! {
    MPI_File_c2f usize => i32, pfs::fortran_of, -1;
    PMPI_File_c2f usize => i32, pfs::fortran_of, -1;
    MPI_File_toint usize => i32, pfs::fortran_of, -1;
    PMPI_File_toint usize => i32, pfs::fortran_of, -1;
    MPI_File_f2c i32 => usize, pfs::of_fortran, 0;
    PMPI_File_f2c i32 => usize, pfs::of_fortran, 0;
    MPI_File_fromint i32 => usize, pfs::of_fortran, 0;
    PMPI_File_fromint i32 => usize, pfs::of_fortran, 0;
}
