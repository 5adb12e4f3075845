//! A cell of the evaluation: one program, one way, so many servers; run, with what every part did.

use super::program::{CellProgram, Method, Spent};
use super::work::Work;
use crate::cluster::{Event, LinkKind};
use crate::file_system::{Configuration, Costs, FileSystem, Setup};
use crate::program::Program;
use crate::queue::Ordered;
use iolab_device::{DeviceModel, Rate, Size};
use iolab_pfs::configuration::{Durability, Servers};
use iolab_policy::collective::CollectiveSelection;
use iolab_policy::schedule::catalog as schedule;
use iolab_vocab::{Direction, Extent, Refusal, Seed};

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
    /// Leaves the read out.
    pub writes_only: bool,
}

/// Bytes that moved.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Traffic {
    /// Payload between ranks, those to themselves left out.
    pub exchanged_bytes: u64,
    /// Payload that servers got from clients, wherever these are.
    pub received_bytes: u64,
    /// Payload that servers sent to clients.
    pub sent_bytes: u64,
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
    /// Until all is in the servers' memory.
    pub write_seconds: f64,
    /// From then on until all is on the devices.
    pub sync_seconds: f64,
    /// Until all ranks have it again.
    pub read_seconds: f64,
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
            writes_only: false,
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
        let both = [Direction::Write, Direction::Read];
        let directions = if self.writes_only { &both[..1] } else { &both[..] };
        let mut program = CellProgram::new(self.work, self.method, self.costs, directions);
        let (traffic, event_hash) = {
            let setup = Setup {
                configuration: self.configuration(),
                costs: self.costs,
                collectives: CollectiveSelection::default(),
                files: vec![("data".to_owned(), 0)],
                programs: vec![Box::new(&mut program) as Box<dyn Program + '_>],
            };
            let mut run = FileSystem::build(&platform, setup, Ordered::new(tie_seed))?;
            run.start();
            while run.advance(u64::MAX) {}
            run.verdict()?;
            (traffic(&run), run.event_hash())
        };
        if let Some(refusal) = program.failed() {
            return Err(refusal.clone());
        }
        let [write, sync, read]: [Spent; 3] = program.spent();
        Ok(Outcome {
            write_seconds: write.seconds,
            sync_seconds: sync.seconds,
            read_seconds: read.seconds,
            write_shuffle_seconds: write.shuffle_seconds,
            read_shuffle_seconds: read.shuffle_seconds,
            traffic: Traffic { exchanged_bytes: program.exchanged_bytes(), ..traffic },
            event_hash,
        })
    }

    fn configuration(&self) -> Configuration {
        let mut configuration = Configuration::default();
        configuration.instance.durability = Durability::Device;
        configuration.layout.default = "stripe:unit=64k".to_owned();
        configuration.layout.schedule = self.schedule.name.to_owned();
        let hosts = (0..self.servers).map(|server| format!("node{server}")).collect();
        configuration.servers = vec![Servers { hosts: Some(hosts) }];
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
    for totals in run.server_totals() {
        traffic.device_read_bytes += totals.device.read_bytes;
        traffic.device_written_bytes += totals.device.written_bytes;
    }
    let links = run.link_totals().filter(|(kind, _)| *kind == LinkKind::NicOut);
    traffic.nic_bytes = links.map(|(_, totals)| totals.bytes).sum();
    traffic
}
