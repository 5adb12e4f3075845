//! Messages between two processes: blocking, started, and started again and again.

use crate::call::Call;
use crate::datatypes;
use crate::family::Family;
use crate::handle::{Communicator, Found, Message, Persistent};
use crate::recorder::{Times, keep, push, record};
use crate::state::State;
use iolab_trace::spool::Record;
use iolab_trace::{Function, Partner};

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
    let communicator = communicator.number as i32;
    // With the null process, MPI looks at nothing else.
    let bytes = if partner < 0 { 0 } else { size(call, at)? };
    Some(Message { communicator, partner, bytes })
}

fn size(call: &Call<'_>, at: Places) -> Option<i64> {
    datatypes::bytes(call.count(at.count), call.handle(at.datatype))
}

/// The other side, in ranks of the whole program; none if there is no such rank.
fn partner(family: &Family, communicator: &Communicator, rank: i32, tag: i32) -> Option<i64> {
    if rank == family.null_process {
        return Some(Partner::to_field(None));
    }
    let rank = match rank == family.any_source {
        true => None,
        false => Some(communicator.member(rank)?),
    };
    let tag = (tag != family.any_tag).then_some(tag as u32);
    Some(Partner::to_field(Some(Partner { rank, tag })))
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
    let message = call.with(|state| message(call, state, USUAL));
    keep(message.map(|message| sent(Function::MPI_SEND, call.times, message)));
}

/// `MPI_Recv`.
pub(crate) fn receive(call: &mut Call<'_>) {
    let message = call.with(|state| message(call, state, USUAL));
    keep(message.map(|message| received(Function::MPI_RECV, call.times, message)));
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
    keep(call.with(|state| {
        let message = message(call, state, USUAL)?;
        Some(started(state, request, Persistent { message, receives }, call.times))
    }));
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
    keep(both.map(|(send, receive)| {
        let row = sent(Function::MPI_SENDRECV, call.times, send);
        Record { offset: receive.partner, ..row }
    }));
}

/// `MPI_Mprobe(source, tag, communicator, message, status)`.
pub(crate) fn found(call: &mut Call<'_>) {
    note_found(call, 3);
}

/// `MPI_Improbe(source, tag, communicator, flag, message, status)`.
pub(crate) fn found_perhaps(call: &mut Call<'_>) {
    if call.int_at(3) != 0 {
        note_found(call, 4);
    }
}

fn note_found(call: &Call<'_>, message: usize) {
    // SAFETY: the call has just put a handle there.
    let handle = unsafe { call.family.handle_at(call.word(message)) };
    call.with(|state| {
        let family = state.family;
        let Some(communicator) = state.communicator(call.handle(2)) else { return };
        if let Some(partner) = partner(family, communicator, call.int(0), call.int(1)) {
            let communicator = communicator.number as i32;
            state.found.insert(handle, Found(Message { communicator, partner, bytes: -1 }));
        }
    });
}

/// Before `MPI_Mrecv` and `MPI_Imrecv` `(buffer, count, datatype, message, …)`, which overwrite the
/// message.
pub(crate) fn note_message(call: &mut Call<'_>) {
    // SAFETY: the guest's own pointer to a handle, which MPI is about to follow.
    call.noted = vec![unsafe { call.family.handle_at(call.word(3)) }];
}

/// `MPI_Mrecv`.
pub(crate) fn receive_found(call: &mut Call<'_>) {
    let found = call.with(|state| state.found.remove(call.noted.first()?));
    keep(found.map(|Found(message)| received(Function::MPI_RECV, call.times, message)));
}

/// `MPI_Imrecv`.
pub(crate) fn start_receive_found(call: &mut Call<'_>) {
    // SAFETY: the call has just put a handle there.
    let request = unsafe { call.family.handle_at(call.word(4)) };
    keep(call.with(|state| {
        let Found(message) = state.found.remove(call.noted.first()?)?;
        Some(started(state, request, Persistent { message, receives: true }, call.times))
    }));
}
