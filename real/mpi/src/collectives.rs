//! Collective calls: what each rank gives, in bytes, and whose the root is.
//!
//! A rank that works in place passes no type of its own, so bytes are those of the side that every
//! rank of its role passes. Where parts differ (`…v`), a record has this rank's part.

use crate::call::Call;
use crate::datatypes;
use crate::handle::Communicator;
use crate::recorder::{keep, record};
use iolab_trace::Function;
use iolab_trace::spool::Record;

fn collective(
    call: &Call<'_>,
    function: Function,
    communicator: usize,
    root: Option<usize>,
    bytes: impl FnOnce(&Call<'_>, &Communicator, bool) -> Option<i64>,
) {
    keep(call.with(|state| {
        let communicator = state.communicator(call.handle(communicator))?;
        let root_rank = root.map(|at| call.int(at));
        let is_root = root_rank == Some(communicator.rank);
        let root = match root_rank {
            None => -1,
            Some(rank) => i64::from(communicator.member(rank)?),
        };
        let length = bytes(call, communicator, is_root)?;
        let fd = communicator.number as i32;
        Some(Record { argument: root, length, fd, ..record(function, call.times) })
    }));
}

/// Bytes of `count` elements, by the places of both arguments.
fn bytes(call: &Call<'_>, count: usize, datatype: usize) -> Option<i64> {
    datatypes::bytes(call.count(count), call.handle(datatype))
}

/// Bytes of the part of one rank, by the places of the list of counts and of the datatype.
fn part(call: &Call<'_>, counts: usize, datatype: usize, rank: i32) -> Option<i64> {
    let rank = usize::try_from(rank).ok()?;
    // SAFETY: the guest's list has a count for each rank.
    let count = unsafe { call.count_in(counts, rank) };
    datatypes::bytes(count, call.handle(datatype))
}

/// `MPI_Barrier`.
pub(crate) fn barrier(call: &mut Call<'_>) {
    collective(call, Function::MPI_BARRIER, 0, None, |_, _, _| Some(0));
}

/// `MPI_Bcast`.
pub(crate) fn broadcast(call: &mut Call<'_>) {
    collective(call, Function::MPI_BCAST, 4, Some(3), |call, _, _| bytes(call, 1, 2));
}

/// `MPI_Reduce`.
pub(crate) fn reduce(call: &mut Call<'_>) {
    collective(call, Function::MPI_REDUCE, 6, Some(5), |call, _, _| bytes(call, 2, 3));
}

/// `MPI_Allreduce`.
pub(crate) fn allreduce(call: &mut Call<'_>) {
    collective(call, Function::MPI_ALLREDUCE, 5, None, |call, _, _| bytes(call, 2, 3));
}

/// `MPI_Gather`.
pub(crate) fn gather(call: &mut Call<'_>) {
    collective(call, Function::MPI_GATHER, 7, Some(6), |call, _, is_root| match is_root {
        true => bytes(call, 4, 5),
        false => bytes(call, 1, 2),
    });
}

/// `MPI_Gatherv`.
pub(crate) fn gather_parts(call: &mut Call<'_>) {
    collective(call, Function::MPI_GATHER, 8, Some(7), |call, group, is_root| match is_root {
        true => part(call, 4, 6, group.rank),
        false => bytes(call, 1, 2),
    });
}

/// `MPI_Scatter`.
pub(crate) fn scatter(call: &mut Call<'_>) {
    collective(call, Function::MPI_SCATTER, 7, Some(6), |call, _, is_root| match is_root {
        true => bytes(call, 1, 2),
        false => bytes(call, 4, 5),
    });
}

/// `MPI_Scatterv`.
pub(crate) fn scatter_parts(call: &mut Call<'_>) {
    collective(call, Function::MPI_SCATTER, 8, Some(7), |call, group, is_root| match is_root {
        true => part(call, 1, 3, group.rank),
        false => bytes(call, 5, 6),
    });
}

/// `MPI_Allgather`.
pub(crate) fn allgather(call: &mut Call<'_>) {
    collective(call, Function::MPI_ALLGATHER, 6, None, |call, _, _| bytes(call, 4, 5));
}

/// `MPI_Allgatherv`.
pub(crate) fn allgather_parts(call: &mut Call<'_>) {
    collective(call, Function::MPI_ALLGATHER, 7, None, |call, group, _| {
        part(call, 4, 6, group.rank)
    });
}

/// `MPI_Alltoall`.
pub(crate) fn alltoall(call: &mut Call<'_>) {
    collective(call, Function::MPI_ALLTOALL, 6, None, |call, _, _| bytes(call, 4, 5));
}

/// `MPI_Alltoallv`: the mean of what comes from each rank.
pub(crate) fn alltoall_parts(call: &mut Call<'_>) {
    collective(call, Function::MPI_ALLTOALL, 8, None, |call, group, _| {
        let ranks = group.members.len().max(1);
        let parts = (0..ranks).map(|rank| part(call, 5, 7, rank as i32));
        Some(parts.sum::<Option<i64>>()? / ranks as i64)
    });
}

/// `MPI_Scan`, `MPI_Exscan`.
pub(crate) fn scan(call: &mut Call<'_>) {
    collective(call, Function::MPI_SCAN, 5, None, |call, _, _| bytes(call, 2, 3));
}

/// `MPI_Reduce_scatter_block`.
pub(crate) fn reduce_scatter(call: &mut Call<'_>) {
    collective(call, Function::MPI_REDUCE_SCATTER, 5, None, |call, _, _| bytes(call, 2, 3));
}

/// `MPI_Reduce_scatter`.
pub(crate) fn reduce_scatter_parts(call: &mut Call<'_>) {
    collective(call, Function::MPI_REDUCE_SCATTER, 5, None, |call, group, _| {
        part(call, 2, 3, group.rank)
    });
}

/// What has no row: non-blocking collective calls, one-sided ones, of neighbours.
pub(crate) fn leave_out(_call: &mut Call<'_>) {
    keep(None);
}
