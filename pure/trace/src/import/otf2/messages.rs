//! Events of MPI: messages, their completion, collective calls.

use super::calls::{Calls, Request};
use super::definitions::{Definitions, rank_in};
use super::text::{self, Fields, number, reference};
use crate::{CallView, Class, Event, Function, Partner};
use iolab_vocab::Nanos;

impl Calls {
    pub(super) fn communicate(
        &mut self,
        definitions: &Definitions,
        lane: usize,
        now: Nanos,
        event: &text::Event,
    ) {
        let said = event.said;
        let process = self.lanes[lane].process;
        match event.kind {
            "MPI_SEND" => {
                let row = self.message_row(lane, now, Function::MPI_SEND);
                self.send(definitions, row, said, None);
            }
            "MPI_ISEND" => {
                let row = self.message_row(lane, now, Function::MPI_ISEND);
                let request = self.begin_request(process, said, row);
                self.send(definitions, row, said, request);
            }
            "MPI_RECV" => {
                let row = self.message_row(lane, now, Function::MPI_RECV);
                self.receive(definitions, row, said);
            }
            "MPI_IRECV_REQUEST" => {
                let row = self.message_row(lane, now, Function::MPI_IRECV);
                if let Some(request) = self.begin_request(process, said, row) {
                    self.rows[row].argument = request;
                }
            }
            "MPI_IRECV" | "MPI_ISEND_COMPLETE" | "MPI_REQUEST_CANCELLED" => {
                let key = (process, number(said.value("Request")).unwrap_or(0));
                let Some(Request { number, row }) = self.requests.remove(&key) else {
                    return self.leave_out("ends of messages that did not begin");
                };
                // Who it was from is known only now.
                if event.kind == "MPI_IRECV" && self.rows[row].function == Function::MPI_IRECV {
                    self.receive(definitions, row, said);
                }
                self.completed(lane, now, number);
            }
            "MPI_COLLECTIVE_BEGIN" => self.lanes[lane].collective_begun = Some(now),
            "MPI_COLLECTIVE_END" => self.collective(definitions, lane, now, said),
            "MPI_REQUEST_TEST" => {}
            other => self.leave_out(other),
        }
    }

    /// The row of the call around that sends or receives so, or one of its own.
    fn message_row(&mut self, lane: usize, now: Nanos, function: Function) -> usize {
        let is_both = matches!(function, Function::MPI_SEND | Function::MPI_RECV);
        let found = self
            .fitting(lane, |call| call == function || (is_both && call == Function::MPI_SENDRECV));
        found.unwrap_or_else(|| {
            self.noticed.outside = true;
            self.push(lane, now, function)
        })
    }

    fn begin_request(&mut self, process: u32, said: Fields, row: usize) -> Option<i64> {
        let id = number(said.value("Request"))?;
        let request = Request { number: self.new_request(process), row };
        let number = request.number;
        self.requests.insert((process, id), request);
        Some(number)
    }

    fn partner(
        &mut self,
        definitions: &Definitions,
        [who, communicator, tag]: [&str; 3],
    ) -> (Option<Partner>, i64) {
        let id = reference(communicator);
        let members = id.and_then(|id| definitions.communicator(id));
        // The null process is undefined; what a tag says beyond 31 bits no program of MPI may.
        let rank = rank_in(members, who).filter(|rank| *rank < i32::MAX as u32);
        let tag = number(tag).and_then(|tag| u32::try_from(tag).ok());
        let partner = rank.map(|rank| Partner { rank: Some(rank), tag });
        (partner, self.communicator(definitions, id))
    }

    fn send(&mut self, definitions: &Definitions, row: usize, said: Fields, request: Option<i64>) {
        let [who, communicator, tag, bytes, _] =
            said.split(["Receiver", "Communicator", "Tag", "Length", "Request"]);
        let (to, communicator) = self.partner(definitions, [who, communicator, tag]);
        let bytes = number(bytes).unwrap_or(0);
        let event = self.rows[row];
        let from = match CallView::of(&event) {
            Some(CallView::Message { from, .. }) => from,
            _ => None,
        };
        let view = CallView::Message { to, bytes, from, communicator, request };
        self.rows[row] = view.on(event.function, event);
    }

    fn receive(&mut self, definitions: &Definitions, row: usize, said: Fields) {
        let [who, communicator, tag, _, _] =
            said.split(["Sender", "Communicator", "Tag", "Length", "Request"]);
        let (from, communicator) = self.partner(definitions, [who, communicator, tag]);
        let event = self.rows[row];
        let (to, bytes, request) = match CallView::of(&event) {
            Some(CallView::Message { to, bytes, request, .. }) => (to, bytes, request),
            _ => (None, 0, None),
        };
        let is_sent = event.function == Function::MPI_SENDRECV && event.length >= 0;
        let view = CallView::Message { to, bytes, from, communicator, request };
        let row_of = view.on(event.function, event);
        let length = if is_sent { row_of.length } else { -1 };
        self.rows[row] = Event { length, ..row_of };
    }

    /// A request is complete: a row of `MPI_Wait`, as recorded traces have one for each.
    pub(super) fn completed(&mut self, lane: usize, now: Nanos, request: i64) {
        let waiting = self.fitting(lane, |function| function == Function::MPI_WAIT);
        let row = match waiting {
            Some(row) if self.rows[row].argument < 0 => row,
            _ => {
                let start = self.test_begun(lane).unwrap_or(now);
                let row = self.push(lane, start, Function::MPI_WAIT);
                self.rows[row].end = now;
                row
            }
        };
        self.rows[row].argument = request;
    }

    fn collective(&mut self, definitions: &Definitions, lane: usize, now: Nanos, said: Fields) {
        let begun = self.lanes[lane].collective_begun.take().unwrap_or(now);
        let [operation, communicator, root, sent, received] =
            said.split(["Operation", "Communicator", "Root", "Sent", "Received"]);
        let Some(function) = function(operation) else {
            return self.leave_out(&format!("collective {operation}"));
        };
        let row = self.fitting(lane, |call| call.class() == Class::Collective);
        let row = row.unwrap_or_else(|| {
            self.noticed.outside = true;
            let row = self.push(lane, begun, function);
            self.rows[row].end = now;
            row
        });
        let id = reference(communicator);
        let members = id.and_then(|id| definitions.communicator(id));
        let event = self.rows[row];
        let root = match root {
            "SELF" | "THIS_GROUP" => u32::try_from(event.rank).ok(),
            root => rank_in(members, root),
        };
        let ranks = members.map_or(1, |members| members.len().max(1) as u64);
        let (sent, received) = (number(sent).unwrap_or(0), number(received).unwrap_or(0));
        let bytes = bytes(event.function, sent, received, ranks);
        self.noticed.collective_bytes |= bytes.is_some();
        let communicator = self.communicator(definitions, id);
        let view = CallView::Collective { root, bytes, communicator };
        self.rows[row] = view.on(event.function, event);
    }
}

/// The row of a collective operation, as OTF2 names it.
fn function(operation: &str) -> Option<Function> {
    Some(match operation {
        "BARRIER" => Function::MPI_BARRIER,
        "BCAST" => Function::MPI_BCAST,
        "GATHER" | "GATHERV" => Function::MPI_GATHER,
        "SCATTER" | "SCATTERV" => Function::MPI_SCATTER,
        "ALLGATHER" | "ALLGATHERV" => Function::MPI_ALLGATHER,
        "ALLTOALL" | "ALLTOALLV" | "ALLTOALLW" => Function::MPI_ALLTOALL,
        "ALLREDUCE" => Function::MPI_ALLREDUCE,
        "REDUCE" => Function::MPI_REDUCE,
        "REDUCE_SCATTER" | "REDUCE_SCATTER_BLOCK" => Function::MPI_REDUCE_SCATTER,
        "SCAN" | "EXSCAN" => Function::MPI_SCAN,
        _ => return None,
    })
}

/// Bytes of a rank. Score-P counts what goes to each other rank: a root sends and receives as often as there
/// are ranks, and so does everybody where all get from all.
fn bytes(function: Function, sent: u64, received: u64, ranks: u64) -> Option<u64> {
    match function {
        Function::MPI_BARRIER => None,
        Function::MPI_BCAST | Function::MPI_SCATTER => {
            Some(if received > 0 { received } else { sent / ranks })
        }
        Function::MPI_REDUCE | Function::MPI_GATHER | Function::MPI_REDUCE_SCATTER => {
            Some(if sent > 0 { sent } else { received / ranks })
        }
        _ => Some(sent / ranks),
    }
}
