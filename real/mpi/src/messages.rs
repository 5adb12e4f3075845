//! Messages between two processes: blocking, started, and started again and again.

use crate::calls::Call;
use crate::communicators::Communicator;
use crate::datatypes;
use crate::family::Family;
use crate::recorder::{Times, push, record};
use crate::state::State;
use iolab_trace::spool::Record;
use iolab_trace::{Event, Function};

/// A message that `MPI_Start` will start.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Persistent {
    message: Message,
    receives: bool,
}

/// A message, or half of it, as a record has it.
#[derive(Clone, Copy, Debug)]
struct Message {
    communicator: i32,
    /// Rank and tag, −1 for the null process.
    partner: i64,
    bytes: i64,
}

/// Where the arguments of a message are.
#[derive(Clone, Copy)]
struct Places {
    count: usize,
    datatype: usize,
    rank: usize,
    tag: usize,
    communicator: usize,
}

const USUAL: Places = Places { count: 1, datatype: 2, rank: 3, tag: 4, communicator: 5 };

fn message(call: &Call<'_>, state: &mut State, at: Places) -> Option<Message> {
    let family = state.family;
    let communicator = state.communicator(call.handle(at.communicator))?;
    let partner = partner(family, communicator, call.int(at.rank), call.int(at.tag))?;
    let bytes = datatypes::size(call.handle(at.datatype))? * call.count(at.count);
    Some(Message { communicator: communicator.number as i32, partner, bytes })
}

/// The other side, in ranks of the whole program; none if there is no such rank.
fn partner(family: &Family, communicator: &Communicator, rank: i32, tag: i32) -> Option<i64> {
    if rank == family.null_process {
        return Some(-1);
    }
    let rank = match rank == family.any_source {
        true => Event::ANY_RANK,
        false => i64::from(communicator.member(rank)?),
    };
    let tag = if tag == family.any_tag { u32::MAX } else { tag as u32 };
    Some(rank << 32 | i64::from(tag))
}

fn sent(function: Function, times: Times, message: Message) -> Record {
    Record {
        argument: message.partner,
        length: message.bytes,
        fd: message.communicator,
        ..record(function, times)
    }
}

fn received(function: Function, times: Times, message: Message) -> Record {
    Record { offset: message.partner, fd: message.communicator, ..record(function, times) }
}

/// `MPI_Send` and its kinds.
pub(crate) fn send(call: &mut Call<'_>) {
    if let Some(message) = call.with(|state| message(call, state, USUAL)) {
        push(sent(Function::MPI_SEND, call.times, message));
    }
}

/// `MPI_Recv`.
pub(crate) fn receive(call: &mut Call<'_>) {
    if let Some(message) = call.with(|state| message(call, state, USUAL)) {
        push(received(Function::MPI_RECV, call.times, message));
    }
}

/// `MPI_Isend` and its kinds.
pub(crate) fn start_send(call: &mut Call<'_>) {
    start(call, false);
}

/// `MPI_Irecv`.
pub(crate) fn start_receive(call: &mut Call<'_>) {
    start(call, true);
}

fn start(call: &Call<'_>, receives: bool) {
    // SAFETY: the call has just put a handle there.
    let request = unsafe { call.family.handle_at(call.word(6)) };
    call.with(|state| {
        if let Some(message) = message(call, state, USUAL) {
            push(started(state, request, Persistent { message, receives }, call.times));
        }
    });
}

/// A message that has begun under a request.
fn started(state: &mut State, request: usize, what: Persistent, times: Times) -> Record {
    let number = i64::from(state.begin(request));
    match what.receives {
        false => Record { offset: number, ..sent(Function::MPI_ISEND, times, what.message) },
        true => Record { argument: number, ..received(Function::MPI_IRECV, times, what.message) },
    }
}

/// `MPI_Send_init` and its kinds.
pub(crate) fn prepare_send(call: &mut Call<'_>) {
    prepare(call, false);
}

/// `MPI_Recv_init`.
pub(crate) fn prepare_receive(call: &mut Call<'_>) {
    prepare(call, true);
}

fn prepare(call: &Call<'_>, receives: bool) {
    // SAFETY: the call has just put a handle there.
    let request = unsafe { call.family.handle_at(call.word(6)) };
    call.with(|state| {
        if let Some(message) = message(call, state, USUAL) {
            state.persistent.insert(request, Persistent { message, receives });
        }
    });
}

/// `MPI_Start`.
pub(crate) fn start_prepared(call: &mut Call<'_>) {
    start_all(call, 1, call.word(0));
}

/// `MPI_Startall`.
pub(crate) fn start_all_prepared(call: &mut Call<'_>) {
    start_all(call, call.int(0), call.word(1));
}

fn start_all(call: &Call<'_>, count: i32, array: usize) {
    for index in 0..usize::try_from(count).unwrap_or(0) {
        // SAFETY: the guest's array of as many handles.
        let request = unsafe { call.family.handle_in(array, index) };
        call.with(|state| {
            if let Some(what) = state.persistent.get(&request).copied() {
                push(started(state, request, what, call.times));
            }
        });
    }
}

/// `MPI_Sendrecv`.
pub(crate) fn exchange(call: &mut Call<'_>) {
    let send = Places { rank: 3, tag: 4, communicator: 10, ..USUAL };
    let receive = Places { count: 6, datatype: 7, rank: 8, tag: 9, communicator: 10 };
    both(call, send, receive);
}

/// `MPI_Sendrecv_replace`.
pub(crate) fn exchange_in_place(call: &mut Call<'_>) {
    let send = Places { communicator: 7, ..USUAL };
    both(call, send, Places { rank: 5, tag: 6, ..send });
}

fn both(call: &Call<'_>, send: Places, receive: Places) {
    let both = call.with(|state| message(call, state, send).zip(message(call, state, receive)));
    if let Some((send, receive)) = both {
        let row = sent(Function::MPI_SENDRECV, call.times, send);
        push(Record { offset: receive.partner, ..row });
    }
}
