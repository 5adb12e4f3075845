//! The clients of all processes: they split a list over servers and make one request to each.
//!
//! What a client knows of files it knows at once, whoever changed it: metadata takes no time in this
//! model, but for the commands that say so.

use super::hash_table::{self, STEADY_SERVERS};
use super::message::Message;
use super::request::{Request, RequestId};
use super::{FileState, Order, World};
use crate::process::Caller;
use crate::program::File;
use crate::queue::EventQueue;
use crate::slab::Id;
use crate::world::{Event, NodeId, ServerId, TaskId};
use iolab_vocab::{Direction, Extent};

/// Fixed part of a request's wire size.
const REQUEST_BYTES: u64 = 20;
/// Wire size of each piece in a request.
const PIECE_BYTES: u64 = 8;
/// Wire size of a message to all servers about a file.
const FLUSH_BYTES: u64 = 20;

/// What clients know, and their scratch memory.
pub(super) struct Clients {
    pub(super) files: Vec<FileState>,
    stripe_bytes: u64,
    order: Order,
    servers: Vec<KnownServer>,
    /// Servers that the request in the making touches, in the order in which it does.
    touched: Vec<ServerId>,
}

/// What clients know of a server.
pub(super) struct KnownServer {
    /// It invites clients to send what they have announced.
    pub(super) invites: bool,
    /// Its place in the order in which a request's servers are addressed, as far as that is the same
    /// for all requests.
    place: u32,
    /// The request in the making to it.
    request: Option<RequestId>,
}

impl Clients {
    /// Of servers that invite or not, the first of which is behind so many clients.
    pub(super) fn new(
        files: Vec<FileState>,
        stripe_bytes: u64,
        order: Order,
        invites: &[bool],
        client_count: u32,
    ) -> Clients {
        let known = |(&invites, place): (&bool, u32)| KnownServer { invites, place, request: None };
        let mut servers: Vec<KnownServer> = invites.iter().zip(0..).map(known).collect();
        if order == Order::Published {
            let targets = client_count..client_count + servers.len() as u32;
            let numbers: Vec<_> = targets.map(hash_table::component).collect();
            for (place, server) in hash_table::order(&numbers).into_iter().enumerate() {
                servers[server].place = place as u32;
            }
        }
        Clients { files, stripe_bytes, order, servers, touched: Vec::new() }
    }

    /// How much of a list lies before the end of a file.
    fn file_bytes(&self, file: File, direction: Direction) -> u64 {
        match direction {
            Direction::Write => u64::MAX,
            Direction::Read => self.files[file as usize].bytes,
        }
    }

    /// Lays a list over the servers: one request to each that has a part of it. Of a read, what lies
    /// behind the file's end is left out. The requests are put into `requests` in the order in which
    /// they are sent.
    pub(super) fn split<Q: EventQueue<Event>>(
        &mut self,
        world: &mut World<Q>,
        from: Caller,
        file: File,
        direction: Direction,
        list: &[Extent],
        requests: &mut Vec<RequestId>,
    ) {
        let file_bytes = self.file_bytes(file, direction);
        let server_count = self.servers.len() as u64;
        self.touched.clear();
        for extent in list {
            let end = extent.end().min(file_bytes);
            let mut at = extent.offset;
            while at < end {
                let stripe = at / self.stripe_bytes;
                let within = at - stripe * self.stripe_bytes;
                let length = (self.stripe_bytes - within).min(end - at);
                let (server, row) = ((stripe % server_count) as u32, stripe / server_count);
                let request = self.request_to(world, ServerId(server), from, file, direction);
                let place = row * self.stripe_bytes + within;
                world.payloads.get_mut(request).add_piece(place, length);
                at += length;
            }
        }
        self.put_in_order(world, requests);
    }

    fn request_to<Q: EventQueue<Event>>(
        &mut self,
        world: &mut World<Q>,
        server: ServerId,
        from: Caller,
        file: File,
        direction: Direction,
    ) -> RequestId {
        let known = &mut self.servers[server.index()];
        if let Some(request) = known.request {
            return request;
        }
        let empty = || Request { server, file, direction, pieces: Vec::new(), bytes: 0, from };
        let id = world.payloads.take_used(empty);
        let request = world.payloads.get_mut(id);
        request.pieces.clear();
        let pieces = std::mem::take(&mut request.pieces);
        *request = Request { pieces, ..empty() };
        known.request = Some(id);
        self.touched.push(server);
        id
    }

    fn put_in_order<Q: EventQueue<Event>>(
        &mut self,
        world: &World<Q>,
        requests: &mut Vec<RequestId>,
    ) {
        match self.order {
            Order::Published if self.servers.len() > STEADY_SERVERS => {
                let number =
                    |server: u32| hash_table::component(world.target_of(ServerId(server)).0);
                let touched: Vec<u32> = self.touched.iter().map(|server| server.0).collect();
                let ordered = hash_table::servers_of_request(&touched, number);
                self.touched = ordered.into_iter().map(ServerId).collect();
            }
            _ => {
                let servers = &self.servers;
                self.touched.sort_unstable_by_key(|server| servers[server.index()].place);
            }
        }
        requests.clear();
        for server in &self.touched {
            requests.extend(self.servers[server.index()].request.take());
        }
    }

    /// Stripes that a list touches, as far as it is carried out.
    pub(super) fn stripe_count(&self, file: File, direction: Direction, list: &[Extent]) -> u64 {
        let file_bytes = self.file_bytes(file, direction);
        let stripes = |extent: &Extent| {
            let end = extent.end().min(file_bytes);
            match extent.offset < end {
                true => (end - 1) / self.stripe_bytes - extent.offset / self.stripe_bytes + 1,
                false => 0,
            }
        };
        list.iter().map(stripes).fold(0, u64::saturating_add)
    }

    pub(super) fn has_servers(&self) -> bool {
        !self.servers.is_empty()
    }

    /// Whether the server that gets it will say when it wants its data.
    pub(super) fn awaits_invitation<Q: EventQueue<Event>>(
        &self,
        world: &World<Q>,
        request: RequestId,
    ) -> bool {
        self.servers[world.payloads.get(request).server.index()].invites
    }

    /// A file is at least as long as what was written to it.
    pub(super) fn grow(&mut self, file: File, list: &[Extent]) {
        let end = list.iter().map(|extent| extent.end()).max().unwrap_or(0);
        let state = &mut self.files[file as usize];
        state.bytes = state.bytes.max(end);
    }
}

/// Sends a request; its task waits for the departure.
pub(super) fn send_request<Q: EventQueue<Event>>(
    world: &mut World<Q>,
    node: NodeId,
    id: RequestId,
) {
    let request = world.payloads.get(id);
    let bytes = REQUEST_BYTES + PIECE_BYTES * request.pieces.len() as u64;
    let (server, task) = (request.server, request.from.task);
    send(world, node, server, task, bytes, Message::Request { request: id });
}

/// Sends the data of a write that was announced; its task waits for the departure.
pub(super) fn send_write_data<Q: EventQueue<Event>>(
    world: &mut World<Q>,
    node: NodeId,
    id: RequestId,
) {
    let &Request { server, bytes, from, .. } = world.payloads.get(id);
    send(world, node, server, from.task, bytes, Message::WriteData { request: id });
}

/// A message of a task to all servers, whose departures it waits for.
pub(super) fn tell_servers<Q: EventQueue<Event>>(
    world: &mut World<Q>,
    node: NodeId,
    task: TaskId,
    message: Message,
) {
    for server in world.servers() {
        send(world, node, server, task, FLUSH_BYTES, message);
    }
}

fn send<Q: EventQueue<Event>>(
    world: &mut World<Q>,
    node: NodeId,
    server: ServerId,
    task: TaskId,
    bytes: u64,
    message: Message,
) {
    let target = world.target_of(server);
    world.send(node, target, Some(task), bytes, message);
}
