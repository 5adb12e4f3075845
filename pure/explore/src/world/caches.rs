//! Drivers of the cache managers: blocks as bytes, which a crash takes.

use super::network::Heard;
use super::{Happening, Node, World};
use crate::marks::Mark;
use crate::plan::Plan;
use iolab_pfs::cache_manager::{
    Action, BlockNumber, CacheManager, Event, Operation, Place, Row, ServingSettings, Settings,
};
use iolab_pfs::recording::Recorded;
use iolab_pfs::{
    Buffer, Message, PartyAction, PartyEvent, Peer, PeerAction, PeerEvent, Request, SessionId,
};
use iolab_policy::Machine;
use std::collections::{BTreeMap, BTreeSet};

/// A cache manager and its driver.
pub(super) struct Cache {
    machine: Recorded<CacheManager>,
    settings: Settings,
    pub(super) up: bool,
    pub(super) life: u32,
    blocks: BTreeMap<BlockNumber, Vec<u8>>,
    buffers: BTreeMap<u64, Vec<u8>>,
    gathered: BTreeMap<Operation, Vec<u8>>,
    pub(super) sessions: BTreeSet<SessionId>,
}

impl Cache {
    pub(super) fn new(plan: &Plan, index: u32) -> Cache {
        let usual = Settings::usual(index, plan.caches, plan.servers);
        let view_bytes_max = plan.view_bytes_max;
        let settings = Settings {
            memory: plan.cache_memory,
            block_bytes: plan.block_bytes,
            placement: plan.placement,
            replacement: plan.replacement,
            write_policy: plan.write_policy,
            grant_bytes: plan.grant_bytes,
            serving: ServingSettings { view_bytes_max, ..usual.serving },
            ..usual
        };
        Cache {
            machine: Recorded::of(CacheManager::new(settings), None),
            settings,
            up: false,
            life: 0,
            blocks: BTreeMap::new(),
            buffers: BTreeMap::new(),
            gathered: BTreeMap::new(),
            sessions: BTreeSet::new(),
        }
    }

    /// A new life: what was in memory is gone.
    pub(super) fn start(&mut self, is_recorded: bool) {
        let origin = is_recorded.then_some(&self.settings);
        self.machine = Recorded::of(CacheManager::new(self.settings), origin);
        self.up = true;
        self.life += 1;
        self.blocks.clear();
        self.buffers.clear();
        self.gathered.clear();
        self.sessions.clear();
    }

    /// Whether it has bytes that servers do not.
    pub(super) fn has_unsaved(&self) -> bool {
        self.machine.counts().unsaved_bytes > 0
    }

    /// What is left that nobody will need.
    pub(super) fn left_over(&self) -> Option<String> {
        let (buffers, gathered) = (self.buffers.len(), self.gathered.len());
        let unsaved = self.machine.counts().unsaved_bytes;
        let granted = self.machine.counts().granted_bytes;
        (buffers + gathered > 0 || unsaved + granted > 0).then(|| {
            format!(
                "{buffers} buffers, {gathered} gathered replies, {unsaved} bytes unsaved, \
                 {granted} bytes granted left"
            )
        })
    }

    fn block(&mut self, number: BlockNumber) -> Result<&mut Vec<u8>, String> {
        self.blocks.get_mut(&number).ok_or_else(|| format!("there is no {number:?}"))
    }

    fn scatter(&mut self, from: Buffer, at: u64, to: &Place) -> Result<(), String> {
        let bytes = (to.to - to.from) as usize;
        let buffer = self.buffers.get(&from.0).ok_or_else(|| format!("no buffer {from}"))?;
        let packed = buffer.get(at as usize..at as usize + bytes);
        let packed = packed.ok_or_else(|| format!("buffer {from} ends before {at} + {bytes}"))?;
        let packed = packed.to_vec();
        let cut = to.view.cut(to.from, to.to);
        let block = self.block(to.block)?;
        cut.scatter(&packed, block, to.base).map_err(|refusal| refusal.to_string())
    }

    fn gather(&mut self, operation: Operation, from: &Place) -> Result<(), String> {
        let mut packed = vec![0; (from.to - from.from) as usize];
        let cut = from.view.cut(from.from, from.to);
        let block = self.block(from.block)?;
        cut.gather(block, from.base, &mut packed).map_err(|refusal| refusal.to_string())?;
        self.gathered.entry(operation).or_default().extend(packed);
        Ok(())
    }

    fn fill(
        &mut self,
        block: BlockNumber,
        from: Option<Buffer>,
        bytes: u32,
        runs: Vec<(u32, u32)>,
    ) -> Result<(), String> {
        let told = match from {
            Some(buffer) => self.buffers.remove(&buffer.0).ok_or("a buffer that is not there")?,
            None => Vec::new(),
        };
        if told.len() != bytes as usize {
            return Err(format!("{bytes} bytes were told of, and {} have come", told.len()));
        }
        let block = self.block(block)?;
        for at in runs.into_iter().flat_map(|(from, to)| from..to) {
            let place = block.get_mut(at as usize).ok_or("a run leaves its block")?;
            *place = told.get(at as usize).copied().unwrap_or(0);
        }
        Ok(())
    }

    fn row(&mut self, row: Row) -> Result<Vec<u8>, String> {
        let bytes = self.block(row.block)?.get(row.from as usize..row.to as usize);
        bytes.map(<[u8]>::to_vec).ok_or_else(|| format!("{row:?} leaves its block"))
    }
}

impl World {
    /// A request for a cache manager has arrived.
    pub(super) fn cache_asked(
        &mut self,
        at: u32,
        peer: Peer,
        (request, message): (Request, Message),
        payload: Option<Vec<u8>>,
    ) {
        if let Message::Resize { inode, .. } = message {
            self.spoil_fetches(at, inode);
        }
        let payload = payload.map(|bytes| {
            let (buffer, count) = (self.fresh(), bytes.len() as u64);
            self.caches[at as usize].buffers.insert(buffer, bytes);
            (Buffer(buffer), count)
        });
        self.tell_cache(at, Event::Peer(PeerEvent::Asked { peer, request, message, payload }));
    }

    /// A server's answer for a cache manager has arrived.
    pub(super) fn cache_hears(&mut self, at: u32, from: iolab_pfs::Party, heard: Heard) {
        let Heard { request, message, payload } = heard;
        let payload = payload.map(|bytes| {
            let buffer = self.fresh();
            self.caches[at as usize].buffers.insert(buffer, bytes);
            Buffer(buffer)
        });
        self.tell_cache(at, Event::Party(PartyEvent::Replied { from, request, message, payload }));
    }

    /// What processes have left in caches that flush nothing by themselves is brought to servers.
    pub(super) fn end_caches(&mut self) {
        if !self.plan.write_policy.flushes_all {
            (0..self.plan.caches).for_each(|at| self.tell_cache(at, Event::Ending));
        }
    }

    pub(super) fn tell_cache(&mut self, at: u32, event: Event) {
        if !self.caches[at as usize].up {
            return;
        }
        self.tell(&|| format!("cache {at} hears {event:?}"));
        let before = self.caches[at as usize].machine.counts();
        let mut actions = Vec::new();
        let it = &mut self.caches[at as usize];
        it.machine.step(self.now, event, &mut actions);
        let (life, rows, counts) = (it.life, it.machine.take(), it.machine.counts());
        self.keep(&|| format!("cache-{at}-{life}"), rows);
        if counts.fetches > before.fetches {
            self.meet(Mark::BlockFetched);
        }
        if counts.flushes > before.flushes {
            self.meet(Mark::BlockFlushed);
        }
        for action in actions {
            self.tell(&|| format!("cache {at} wants {action:?}"));
            if let Err(what) = self.carry_out_for_cache(at, action) {
                self.fail(format!("cache {at}: {what}"));
            }
        }
    }

    fn carry_out_for_cache(&mut self, at: u32, action: Action) -> Result<(), String> {
        let node = Node::Cache(at);
        let cache = &mut self.caches[at as usize];
        match action {
            Action::Peer(PeerAction::Welcome { peer, known }) => self.welcome(node, peer, known),
            Action::Peer(PeerAction::Reply { peer, request, message, payload }) => {
                let payload = match payload {
                    None => None,
                    Some((operation, bytes)) => {
                        let gathered = cache.gathered.remove(&operation);
                        let mut gathered = gathered.ok_or("a reply of bytes that are not there")?;
                        if (gathered.len() as u64) < bytes {
                            return Err(format!("{bytes} bytes of {} gathered", gathered.len()));
                        }
                        gathered.truncate(bytes as usize);
                        Some(gathered)
                    }
                };
                let is_change = message == Message::Done;
                self.reply(node, peer, request, message, payload);
                if is_change && self.trouble(self.plan.rates.answer) {
                    self.later(1, Happening::Ends { cache: at });
                }
            }
            Action::Peer(PeerAction::Drop { peer, why }) => self.drop_peer(node, peer, why),
            Action::Party(PartyAction::Connect { to }) => self.connect(node, to),
            Action::Party(PartyAction::Disconnect { from }) => self.disconnect(node, from),
            Action::Party(PartyAction::Ask { to, request, message, payload }) => {
                let payload = payload.map(|row| cache.row(row)).transpose()?;
                self.ask(node, to, request, message, payload);
            }
            Action::Take { block, bytes } => {
                cache.blocks.insert(block, vec![0xCC; bytes as usize]);
                let used: usize = cache.blocks.values().map(Vec::len).sum();
                let memory = cache.settings.memory.max(8 * cache.settings.block_bytes);
                if used as u64 > memory {
                    return Err(format!("{used} bytes of blocks in a memory of {memory}"));
                }
            }
            Action::Free { block } => {
                cache.blocks.remove(&block).ok_or("a block is freed that is not there")?;
            }
            Action::Scatter { from, at, to } => cache.scatter(from, at, &to)?,
            Action::Gather { operation, from } => cache.gather(operation, &from)?,
            Action::Forget { operation } => drop(cache.gathered.remove(&operation)),
            Action::Fill { block, from, bytes, runs } => cache.fill(block, from, bytes, runs)?,
            Action::Release { buffer } => {
                cache.buffers.remove(&buffer.0).ok_or("a buffer is given back twice")?;
            }
            Action::WakeAt(when) => self.wake_at(node, when),
        }
        Ok(())
    }

    /// A cache manager crashes, and starts again then: what servers do not have is lost.
    pub(super) fn crash_cache(&mut self, at: u32, until: u64) {
        if !self.caches[at as usize].up {
            return;
        }
        if self.caches[at as usize].has_unsaved() {
            self.meet(Mark::DataLost);
        }
        self.meet(Mark::CacheCrashed);
        self.caches[at as usize].up = false;
        let tick = self.tick();
        self.shadow.cache_crashed(at, tick);
        if self.plan.outlives_caches() {
            self.look_at_disks();
        }
        self.break_all(Node::Cache(at));
        self.at(until, Happening::Starts { node: Node::Cache(at) });
    }
}
