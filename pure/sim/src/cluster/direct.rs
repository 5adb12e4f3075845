//! Direct file access: split a list over servers, one request to each.

use super::event::Event;
use super::hash_table::{self, STEADY_SERVERS};
use super::packet::Kind;
use super::server::Request;
use super::{Cluster, EventQueue, NONE, Order};
use crate::program::{Command, FileOperation};

/// Fixed part of a request's wire size.
const REQUEST_BYTES: u64 = 20;
/// Wire size of each piece in a request.
const PIECE_BYTES: u64 = 8;

impl<Q: EventQueue<Event>> Cluster<Q> {
    /// Asks the servers for the task's list, cropped to the file, and awaits the data.
    pub(super) fn request_reads(&mut self, id: u32, file: u32) {
        self.split(id, file, false);
        let requests = std::mem::take(&mut self.tasks.get_mut(id).requests);
        // Of a collective read the ranks have been told when they met.
        let command = self.tasks.get(id).command;
        let is_alone = |command: &Command| command.is(FileOperation::Read);
        if command.as_ref().is_some_and(is_alone) {
            let bytes = requests.iter().map(|&request| self.requests.get(request).bytes).sum();
            self.tell_got(id, bytes);
        }
        for &request in &requests {
            self.tasks.get_mut(id).pending += 1;
            self.send_request(id, request);
        }
        self.tasks.get_mut(id).requests = requests;
    }

    /// Announces the task's list to the servers. Where these invite, the data and its answer
    /// are awaited from now on, for the invitation may come at any time.
    pub(super) fn request_writes(&mut self, id: u32, file: u32) {
        self.split(id, file, true);
        let mut requests = std::mem::take(&mut self.tasks.get_mut(id).requests);
        for &request in &requests {
            self.send_request(id, request);
            self.tasks.get_mut(id).pending += if self.awaits_invitation(request) { 2 } else { 0 };
        }
        requests.retain(|request| !self.awaits_invitation(*request));
        self.tasks.get_mut(id).requests = requests;
    }

    /// Tells program and recorder how much of a read the file has.
    pub(super) fn tell_got(&mut self, id: u32, bytes: u64) {
        let number = self.tasks.get(id).process;
        let process = &self.processes[number as usize];
        self.programs[process.program as usize].got(process.rank, bytes);
        let is_in_background = id != number;
        if let Some(recorder) = self.recorder.as_mut().filter(|_| !is_in_background) {
            recorder.got(number, bytes);
        }
    }

    fn awaits_invitation(&self, request: u32) -> bool {
        self.servers[self.requests.get(request).server as usize].invites
    }

    /// A server wants the data of a write now.
    pub(super) fn invitation_arrived(&mut self, request: u32) {
        let &Request { server, bytes, client, task, .. } = self.requests.get(request);
        let target = self.servers[server as usize].target;
        let node = self.processes[client as usize].node;
        self.send(node, target, task, bytes, Kind::WriteData { request });
    }

    /// Sends the data of what was announced, and awaits each server's answer.
    pub(super) fn send_write_data(&mut self, id: u32) {
        let requests = std::mem::take(&mut self.tasks.get_mut(id).requests);
        let node = self.node_of(id);
        for &request in &requests {
            let &Request { server, bytes, .. } = self.requests.get(request);
            let target = self.servers[server as usize].target;
            self.tasks.get_mut(id).pending += 2;
            self.send(node, target, id, bytes, Kind::WriteData { request });
        }
        self.tasks.get_mut(id).requests = requests;
    }

    /// The file is at least as long as what the task wrote.
    pub(super) fn grow_file(&mut self, id: u32, file: u32) {
        let end = self.tasks.get(id).list.iter().map(|extent| extent.end()).max().unwrap_or(0);
        let state = &mut self.files[file as usize];
        state.bytes = state.bytes.max(end);
    }

    fn send_request(&mut self, id: u32, request: u32) {
        let held = self.requests.get(request);
        let bytes = REQUEST_BYTES + PIECE_BYTES * held.pieces.len() as u64;
        let target = self.servers[held.server as usize].target;
        let node = self.node_of(id);
        self.tasks.get_mut(id).pending += 1;
        self.send(node, target, id, bytes, Kind::Request { request });
    }

    /// Lays the task's list over the servers: one request to each that has a part of it.
    fn split(&mut self, id: u32, file: u32, is_write: bool) {
        let file_bytes = if is_write { u64::MAX } else { self.files[file as usize].bytes };
        let list = std::mem::take(&mut self.tasks.get_mut(id).list);
        self.touched.clear();
        for extent in &list {
            let end = extent.end().min(file_bytes);
            let mut at = extent.offset;
            while at < end {
                let stripe = at / self.stripe_bytes;
                let within = at - stripe * self.stripe_bytes;
                let length = (self.stripe_bytes - within).min(end - at);
                let server_count = self.servers.len() as u64;
                let (server, row) = ((stripe % server_count) as u32, stripe / server_count);
                let request = self.request_to(server, id, file, is_write);
                let place = row * self.stripe_bytes + within;
                self.requests.get_mut(request).add_piece(place, length);
                at += length;
            }
        }
        self.address_in_order(id);
        self.tasks.get_mut(id).list = list;
    }

    fn request_to(&mut self, server: u32, id: u32, file: u32, is_write: bool) -> u32 {
        if self.request_of[server as usize] == NONE {
            let request = self.requests.take_slot(Request::empty);
            let client = self.tasks.get(id).process;
            self.requests.get_mut(request).reset(server, file, is_write, id, client);
            self.request_of[server as usize] = request;
            self.touched.push(server);
        }
        self.request_of[server as usize]
    }

    fn address_in_order(&mut self, id: u32) {
        let mut touched = std::mem::take(&mut self.touched);
        match self.order {
            Order::Published if self.servers.len() > STEADY_SERVERS => {
                let target = |server: u32| self.servers[server as usize].target;
                let number = |server| hash_table::component(target(server));
                touched = hash_table::servers_of_request(&touched, number);
            }
            _ => touched.sort_unstable_by_key(|server| self.server_place[*server as usize]),
        }
        let requests = &mut self.tasks.get_mut(id).requests;
        requests.clear();
        for &server in &touched {
            requests.push(std::mem::replace(&mut self.request_of[server as usize], NONE));
        }
        self.touched = touched;
    }
}
