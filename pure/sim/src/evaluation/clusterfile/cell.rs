//! A cell of the evaluation: one program, one way, so many servers; run, with what every part did.

use super::program::{CellProgram, Method, Spent, Stage};
use super::work::Work;
use crate::cluster::{Event, LinkKind};
use crate::file_system::{Before, Configuration, Costs, FileSystem, Setup};
use crate::platform::Platform;
use crate::program::Program;
use crate::queue::Ordered;
use iolab_device::{DeviceModel, Rate, Size};
use iolab_pfs::configuration::{Caches, Durability, Servers};
use iolab_policy::collective::CollectiveSelection;
use iolab_policy::schedule::catalog as schedule;
use iolab_vocab::{Extent, Refusal, Seed};

/// What handling bytes costs on a machine of today; the model's own figures.
pub const MEMORY_OF_TODAY: Costs =
    Costs { byte_seconds: 0.04e-9, run_seconds: 0.12e-9, copy_rate: 10e9 };

/// How many times slower the same must be for class A to be written in the published time: the one fit.
pub const FIT: f64 = 1626.5;

/// What handling bytes must cost for the file system's own way to write class A of the block-tridiagonal
/// benchmark in the published 7.7 s. Nothing else was fitted.
pub fn fitted() -> Costs {
    let Costs { byte_seconds, run_seconds, copy_rate } = MEMORY_OF_TODAY;
    Costs {
        byte_seconds: byte_seconds * FIT,
        run_seconds: run_seconds * FIT,
        copy_rate: copy_rate / FIT,
    }
}

/// Which way data goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ways {
    /// It is written, then read.
    Both,
    /// It is written.
    Write,
    /// It is there, in the servers' memory, and read.
    Read,
}

/// What cache managers have when a collective access begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Buffers {
    /// Nothing: a collective write ends when servers have it, and what is read is in the servers' memory alone.
    /// It is read twice, the second time from what the first one left.
    Cold,
    /// What collective accesses before have left.
    Warm,
}

/// Cache managers between ranks and servers, on the first nodes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cooperation {
    /// How many.
    pub caches: u32,
    /// What they begin with.
    pub buffers: Buffers,
}

/// One cell.
#[derive(Clone, Debug)]
pub struct Cell {
    /// What is written and read.
    pub work: Work,
    /// How.
    pub method: Method,
    /// I/O servers, on the first nodes.
    pub servers: u32,
    /// Bytes per second of a disk.
    pub disk_rate: f64,
    /// Memory of a node.
    pub memory_bytes: u64,
    /// In which order clients come to servers.
    pub schedule: &'static schedule::Row,
    /// What handling bytes costs.
    pub costs: Costs,
    /// Cache managers, if there are any.
    pub cooperation: Option<Cooperation>,
    /// What is left out.
    pub ways: Ways,
}

/// Bytes that moved.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Traffic {
    /// Payload between ranks, those to themselves left out.
    pub exchanged_bytes: u64,
    /// Payload that servers got from clients or cache managers, wherever these are.
    pub received_bytes: u64,
    /// Payload that servers sent to them.
    pub sent_bytes: u64,
    /// Payload that cache managers fetched from servers.
    pub fetched_bytes: u64,
    /// All that left a node through its NIC, headers included.
    pub nic_bytes: u64,
    /// Bytes that devices have read.
    pub device_read_bytes: u64,
    /// Bytes that devices have written.
    pub device_written_bytes: u64,
}

/// What a cell came to.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Outcome {
    /// Until all is in the servers' memory, or in that of warm cache managers.
    pub write_seconds: f64,
    /// From then on until all is on the devices.
    pub sync_seconds: f64,
    /// Until all ranks have it again.
    pub read_seconds: f64,
    /// Until they have it once more, of cold cache managers that the first read has warmed.
    pub again_seconds: f64,
    /// Of the write, in the exchange among ranks, mean over ranks.
    pub write_shuffle_seconds: f64,
    /// Of the read.
    pub read_shuffle_seconds: f64,
    /// What moved.
    pub traffic: Traffic,
    /// Hash over all events with their times.
    pub event_hash: u64,
}

impl Outcome {
    /// Until what is written is on the devices.
    pub fn disk_write_seconds(&self) -> f64 {
        self.write_seconds + self.sync_seconds
    }

    /// A write and a read in runs of their own.
    fn and(self, read: Outcome) -> Outcome {
        let (one, other) = (self.traffic, read.traffic);
        Outcome {
            write_seconds: self.write_seconds,
            sync_seconds: self.sync_seconds,
            write_shuffle_seconds: self.write_shuffle_seconds,
            traffic: Traffic {
                exchanged_bytes: one.exchanged_bytes + other.exchanged_bytes,
                received_bytes: one.received_bytes + other.received_bytes,
                sent_bytes: one.sent_bytes + other.sent_bytes,
                fetched_bytes: one.fetched_bytes + other.fetched_bytes,
                nic_bytes: one.nic_bytes + other.nic_bytes,
                device_read_bytes: one.device_read_bytes + other.device_read_bytes,
                device_written_bytes: one.device_written_bytes + other.device_written_bytes,
            },
            event_hash: self.event_hash.rotate_left(1) ^ read.event_hash,
            ..read
        }
    }
}

impl Cell {
    /// With as many servers, disks of 25 MB/s, 1 GiB of memory, the usual schedule and memory of today.
    pub fn new(work: Work, method: Method, servers: u32) -> Cell {
        Cell {
            work,
            method,
            servers,
            disk_rate: super::DISK_RATES[1],
            memory_bytes: 1 << 30,
            schedule: schedule::USUAL,
            costs: MEMORY_OF_TODAY,
            cooperation: None,
            ways: Ways::Both,
        }
    }

    /// Runs it; `tie_seed` shuffles simultaneous events.
    ///
    /// # Errors
    /// What is wrong with the cell.
    pub fn run(&self, tie_seed: Seed) -> Result<Outcome, Refusal> {
        let mut platform = super::platform();
        for group in &mut platform.nodes {
            group.memory_bytes = Size(self.memory_bytes);
            if let Some(DeviceModel::Hdd(disk)) = group.server.as_mut().map(|one| &mut one.device) {
                disk.rate = Rate(self.disk_rate);
            }
        }
        let is_cold =
            self.cooperation.is_some_and(|cooperation| cooperation.buffers == Buffers::Cold);
        let (process, device) = (Durability::Process, Durability::Device);
        let flushed: &[Stage] = &[Stage::Write { is_flushed: true }];
        let written: &[Stage] = &[Stage::Write { is_flushed: false }, Stage::Sync];
        let both: &[Stage] = &[Stage::Write { is_flushed: false }, Stage::Sync, Stage::Read];
        let read: &[Stage] = &[Stage::Read, Stage::ReadAgain];
        let run = |class, stages| self.stages(&platform, (class, stages), tie_seed);
        match (self.ways, is_cold) {
            (Ways::Both, false) => run(device, both),
            (Ways::Write, false) => run(device, written),
            (Ways::Write, true) => run(process, flushed),
            (Ways::Read, _) => run(device, read),
            (Ways::Both, true) => Ok(run(process, flushed)?.and(run(device, read)?)),
        }
    }

    /// One run, of these stages.
    fn stages(
        &self,
        platform: &Platform,
        (durability, stages): (Durability, &[Stage]),
        tie_seed: Seed,
    ) -> Result<Outcome, Refusal> {
        let mut program = CellProgram::new(self.work, self.method, self.costs, stages);
        let is_there = stages.first() == Some(&Stage::Read);
        let (traffic, event_hash) = {
            let setup = Setup {
                configuration: self.configuration(durability),
                costs: self.costs,
                collectives: CollectiveSelection::default(),
                files: vec![("data".to_owned(), if is_there { self.work.bytes() } else { 0 })],
                before: Before::InMemory,
                programs: vec![Box::new(&mut program) as Box<dyn Program + '_>],
            };
            let mut run = FileSystem::build(platform, setup, Ordered::new(tie_seed))?;
            run.start();
            while run.advance(u64::MAX) {}
            run.verdict()?;
            (traffic(&run), run.event_hash())
        };
        if let Some(refusal) = program.failed() {
            return Err(refusal.clone());
        }
        let [write, sync, read, again]: [Spent; 4] = program.spent();
        Ok(Outcome {
            write_seconds: write.seconds,
            sync_seconds: sync.seconds,
            read_seconds: read.seconds,
            again_seconds: again.seconds,
            write_shuffle_seconds: write.shuffle_seconds,
            read_shuffle_seconds: read.shuffle_seconds,
            traffic: Traffic { exchanged_bytes: program.exchanged_bytes(), ..traffic },
            event_hash,
        })
    }

    fn configuration(&self, durability: Durability) -> Configuration {
        let mut configuration = Configuration::default();
        configuration.instance.durability = durability;
        configuration.layout.default = "stripe:unit=64k".to_owned();
        configuration.layout.schedule = self.schedule.name.to_owned();
        let hosts = |count: u32| Some((0..count).map(|node| format!("node{node}")).collect());
        configuration.servers = vec![Servers { hosts: hosts(self.servers) }];
        let caches =
            self.cooperation.map(|one| Caches { hosts: hosts(one.caches), ..Caches::default() });
        configuration.caches = caches.into_iter().collect();
        configuration
    }

    /// Payload that has to leave its node if each byte goes straight from its rank to its server: counted
    /// from the sets of the program alone.
    ///
    /// # Errors
    /// If there is no such set.
    pub fn direct_remote_bytes(&self) -> Result<u64, Refusal> {
        let mut remote = 0;
        for call in 0..self.work.calls() {
            for rank in 0..super::RANKS {
                let part = self.work.part(rank, call)?;
                let extent = self.work.extent(call);
                let mut at = extent.offset;
                while at < extent.end() {
                    let end = (at / STRIPE_BYTES + 1) * STRIPE_BYTES;
                    let stripe = Extent::new(at, end.min(extent.end()) - at);
                    // Behind the root, the first file of an instance has inode 2: its stripes begin on server 2.
                    let server = (at / STRIPE_BYTES + 2) % u64::from(self.servers);
                    if server != u64::from(rank) {
                        remote += part.within(stripe).0;
                    }
                    at = end;
                }
            }
        }
        Ok(remote)
    }
}

/// The stripe unit of files.
const STRIPE_BYTES: u64 = 64 << 10;

fn traffic(run: &FileSystem<'_, Ordered<Event>>) -> Traffic {
    let mut traffic = Traffic::default();
    for (_, totals) in run.traffic() {
        traffic.received_bytes += totals.received_bytes;
        traffic.sent_bytes += totals.sent_bytes;
    }
    traffic.fetched_bytes = run.cache_totals().map(|(_, totals)| totals.fetched_bytes).sum();
    for totals in run.server_totals() {
        traffic.device_read_bytes += totals.device.read_bytes;
        traffic.device_written_bytes += totals.device.written_bytes;
    }
    let links = run.link_totals().filter(|(kind, _)| *kind == LinkKind::NicOut);
    traffic.nic_bytes = links.map(|(_, totals)| totals.bytes).sum();
    traffic
}
