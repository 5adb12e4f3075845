//! What goes wrong, and how it ends.

use super::servers::Server;
use super::{Happening, Node, World};
use crate::marks::Mark;
use crate::plan::{Event, What};
use crate::shadow::{By, Scope};
use iolab_pfs::{Inode, SessionId};

impl World {
    pub(super) fn is_up(&self, node: Node) -> bool {
        match node {
            Node::Client(client) => self.processes[client].alive,
            Node::Server(server) => self.servers[server as usize].up,
            Node::Cache(cache) => self.caches[cache as usize].up,
            Node::Metadata => self.manager.up,
        }
    }

    pub(super) fn life_of(&self, node: Node) -> u32 {
        match node {
            Node::Client(_) => 0,
            Node::Server(server) => self.servers[server as usize].life,
            Node::Cache(cache) => self.caches[cache as usize].life,
            Node::Metadata => self.manager.life,
        }
    }

    /// Who a client, or the manager or a cache manager in this life, is to servers.
    pub(super) fn session_of(&self, node: Node) -> SessionId {
        match node {
            Node::Client(client) => SessionId(1000 + client as u128),
            Node::Cache(cache) => {
                let life = self.caches[cache as usize].life;
                SessionId((u128::from(cache) + 1) << 64 | u128::from(life))
            }
            _ => SessionId(u128::from(self.manager.life)),
        }
    }

    /// Lets happen what is due.
    pub(super) fn make_trouble(&mut self) {
        while let Some(event) = self.plan.events.get(self.events_done).copied()
            && event.at <= self.steps
            && self.calm_since.is_none()
        {
            self.events_done += 1;
            self.trouble_begins(event);
        }
    }

    fn trouble_begins(&mut self, event: Event) {
        let until = self.now.0 + event.for_ns;
        self.tell(&|| format!("TROUBLE {event:?}"));
        match event.what {
            What::Crash { server } => self.crash_server(server, until),
            What::CrashMetadata => self.crash_metadata(until),
            What::PowerCut => self.cut_power(until),
            What::CrashCache { cache } => self.crash_cache(cache, until),
            What::EndCache { cache } => {
                self.tell_cache(cache, iolab_pfs::cache_manager::Event::Ending);
                self.at(until, Happening::Ends { cache });
            }
            What::PauseCache { cache } => drop(self.paused.insert(Node::Cache(cache), until)),
            What::PartitionCache { cache, server, ways } => {
                let (cache, server) = (Node::Cache(cache), Node::Server(server));
                self.break_between(cache, server);
                let pairs = [(cache, server), (server, cache)];
                for (pair, _) in pairs.into_iter().zip(ways).filter(|(_, cut)| *cut) {
                    self.cut.insert(pair, until);
                }
            }
            What::Pause { party, client } => {
                let party = party.map_or(Node::Metadata, Node::Server);
                let node = client.map_or(party, |client| Node::Client(client as usize));
                self.paused.insert(node, until);
            }
            What::Partition { client, server, ways, breaks } => {
                let client = Node::Client(client as usize);
                let party = server.map_or(Node::Metadata, Node::Server);
                if breaks {
                    self.break_between(client, party);
                }
                let pairs = [(client, party), (party, client)];
                for (pair, _) in pairs.into_iter().zip(ways).filter(|(_, cut)| *cut) {
                    self.cut.insert(pair, until);
                }
            }
            What::Death { client } => self.die(client as usize),
        }
    }

    /// The manager crashes, and starts again then.
    pub(super) fn crash_metadata(&mut self, until: u64) {
        if self.manager.up {
            self.tell(&|| "the manager crashes".to_owned());
            self.crash_manager();
            self.break_all(Node::Metadata);
            self.at(until, Happening::Starts { node: Node::Metadata });
        }
    }

    /// A server crashes, and starts again then.
    pub(super) fn crash_server(&mut self, server: u32, until: u64) {
        if !self.servers[server as usize].up {
            return;
        }
        self.crash_works(server);
        self.servers[server as usize].up = false;
        if std::mem::take(&mut self.servers[server as usize].disk.has_failed) {
            // They share a process: of what they have brought to a server that could not sync it, nobody
            // else would tell.
            let soon = self.now.0 + 1_000_000;
            (0..self.plan.caches).for_each(|cache| self.crash_cache(cache, soon));
            for subfile in self.servers[server as usize].disk.drop_cached() {
                self.shadow.unsynced(subfile);
            }
        }
        let tick = self.tick();
        self.shadow.crashed(server, tick);
        self.break_all(Node::Server(server));
        self.at(until, Happening::Starts { node: Node::Server(server) });
    }

    /// The power goes some time after a sync, unless nothing goes wrong any more.
    pub(super) fn cut_power_if_on(&mut self) {
        if self.calm_since.is_none() && self.power_cuts_left > 0 {
            self.power_cuts_left -= 1;
            let pause = self.dice.magnitude(1_000, 2_000_000_000);
            self.cut_power(self.now.0 + pause);
        }
    }

    /// The power goes, and comes again then.
    fn cut_power(&mut self, until: u64) {
        self.meet(Mark::PowerCut);
        for server in 0..self.plan.servers {
            self.crash_server(server, until);
        }
        (0..self.plan.caches).for_each(|cache| self.crash_cache(cache, until));
        self.crash_metadata(until);
        let World { servers, dice, .. } = self;
        let cut: Vec<bool> = servers.iter_mut().map(|server| server.disk.cut(dice)).collect();
        if cut.contains(&true) {
            self.meet(Mark::UnsyncedLost);
        }
        self.shadow.power_cut();
        self.look_at_disks();
    }

    /// What must have outlived a crash is looked for at once, before others write over what is missing. Bytes that
    /// devices have changed are for readers to find.
    pub(super) fn look_at_disks(&mut self) {
        if self.plan.rates.rot > 0 {
            return;
        }
        for inode in self.stored() {
            let Some(layout) = self.shadow.layout(inode) else { continue };
            let seen = self.on_disks(inode, layout);
            let (now, end) = (self.tick(), seen.len() as u64);
            let result = self.shadow.look((inode, layout), (&seen, Some(end)), (now, now + 1));
            self.check(result);
        }
    }

    /// Nothing goes wrong any more, and what is wrong ends.
    pub(super) fn calm_down(&mut self) {
        if self.calm_since.is_some() {
            return;
        }
        for server in 0..self.plan.servers {
            let it = &self.servers[server as usize];
            if it.up && it.disk.has_failed {
                self.crash_server(server, self.now.0 + 1_000_000);
            }
        }
        if self.manager.has_failed {
            self.crash_metadata(self.now.0 + 1_000_000);
        }
        self.servers.iter_mut().for_each(Server::heal);
        self.calm_since = Some(self.now);
        self.cut.clear();
        let waits = std::mem::take(&mut self.queue);
        let (now, paused) = (self.now.0, std::mem::take(&mut self.paused));
        for ((at, number), happening) in waits {
            let is_paused = self.place_of(&happening).is_some_and(|at| paused.contains_key(&at));
            let starts = matches!(happening, Happening::Starts { .. });
            // A wake that comes before its time is none: nobody would wish for it again.
            let is_paused = is_paused && !matches!(happening, Happening::Wakes { .. });
            let at = if is_paused || starts { at.min(now + 1_000_000) } else { at };
            self.queue.insert((at, number), happening);
        }
    }

    /// A party begins a life.
    pub(super) fn start(&mut self, node: Node) {
        match node {
            Node::Server(server) => {
                self.servers[server as usize].start(self.recordings.is_some());
                self.tell_server(server, iolab_pfs::io_server::Event::Woke);
            }
            Node::Cache(cache) => {
                self.caches[cache as usize].start(self.recordings.is_some());
                self.tell_cache(cache, iolab_pfs::cache_manager::Event::Woke);
            }
            _ => self.start_manager(),
        }
    }

    /// Nothing is left over when all is over: no buffers, no work, no subfiles of files that are no more.
    pub(super) fn left_over(&self) -> Result<(), String> {
        // What a full server does not take any more, as it has forgotten that it had room for it, stays.
        let forgets = || (0..self.plan.servers).any(|server| self.has_forgotten_grants(server));
        let stays = self.plan.rates.is_small() && forgets();
        for (at, server) in self.servers.iter().enumerate() {
            let (buffers, works) = (server.buffers.len(), server.works.len());
            if buffers + works > 0 {
                return Err(format!("server {at} has {buffers} buffers and {works} works left"));
            }
            let granted = server.granted_bytes();
            if granted > 0 && !stays {
                return Err(format!("server {at} keeps {granted} bytes that nobody uses"));
            }
        }
        for (at, cache) in self.caches.iter().enumerate().filter(|_| !stays) {
            if let Some(left) = cache.left_over() {
                return Err(format!("cache manager {at} has {left}"));
            }
        }
        // Ranks whose first has died, with the open it held, may write to a file that was removed meanwhile:
        // its subfiles come into being once more.
        let left =
            |inode: &&Inode| !self.found.contains(inode) && !self.shadow.is_discarded(**inode);
        match self.stored().iter().find(left) {
            Some(inode) => Err(format!("file {inode} has no name, but subfiles on disks")),
            None => Ok(()),
        }
    }

    /// What is on the disks is what may be there.
    pub(super) fn disks_are_right(&mut self) -> Result<(), String> {
        // Where that is none of what is left over, a full server does not take it.
        for at in 0..self.plan.caches {
            if self.caches[at as usize].has_unsaved() {
                let tick = self.tick();
                self.shadow.cache_crashed(at, tick);
            }
        }
        for inode in self.stored() {
            let Some(layout) = self.shadow.layout(inode) else { continue };
            let seen = self.on_disks(inode, layout);
            let now = self.tick();
            let end = seen.len() as u64;
            let by = By { process: usize::MAX, scope: Scope::Block };
            self.shadow.read((inode, layout), (seen, Some(end)), by, (now, now + 1))?;
        }
        Ok(())
    }
}
