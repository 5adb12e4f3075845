//! From a platform, a configuration and programs to a file system ready to run.

use super::cache::Cache;
use super::clients::{FileClients, Job, path_of};
use super::costs::Costs;
use super::device::Device;
use super::manager::Manager;
use super::parcel::Addresses;
use super::places::{CachePlace, caches_of, metadata_target};
use super::server::Server;
use super::store::Store;
use super::thread::Thread;
use super::{Configuration, Durability, FileSystem, Machines, World};
use crate::platform::{NodeGroup, Platform};
use crate::process::{Parts, Processes};
use crate::program::Program;
use crate::queue::EventQueue;
use crate::slab::Id;
use crate::world::{Event, NodeId, Order, ServerId, Target};
use iolab_pfs::io_server::Subfile;
use iolab_pfs::{cache_manager, client};
use iolab_policy::collective::CollectiveSelection;
use iolab_policy::placement::catalog as placement;
use iolab_policy::write_policy::catalog as write_policy;
use iolab_vocab::{FileId, Nanos, Refusal};
use std::collections::BTreeMap;
use std::sync::Arc;

/// What runs on the platform.
pub struct Setup<'p> {
    /// The instance.
    pub configuration: Configuration,
    /// What handling bytes costs.
    pub costs: Costs,
    /// Which algorithm carries out which collective command; accesses to files are the machines' affair.
    pub collectives: CollectiveSelection,
    /// Name and size at the start of each file.
    pub files: Vec<(String, u64)>,
    /// Where these bytes are.
    pub before: Before,
    /// The applications. Their processes fill the platform's clients in order.
    pub programs: Vec<Box<dyn Program + 'p>>,
}

/// Where the bytes are that files have at the start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Before {
    /// On the devices.
    OnDevices,
    /// In the servers' memory, too.
    InMemory,
}

/// A server of the platform.
#[derive(Clone, Copy)]
struct Found<'a> {
    server: ServerId,
    group: &'a NodeGroup,
}

impl<'p, Q: EventQueue<Event>> FileSystem<'p, Q> {
    /// Builds it; `queue` comes empty.
    pub fn build(
        platform: &Platform,
        setup: Setup<'p>,
        queue: Q,
    ) -> Result<FileSystem<'p, Q>, Refusal> {
        platform.check()?;
        let Setup { configuration, costs, collectives, files, before, programs } = setup;
        let world: World<Q> = World::build(platform, Order::Documented, queue)?;
        let found = servers_of(platform, &configuration)?;
        let process_count = programs.iter().map(|program| program.rank_count()).sum::<u32>();
        let ids: Vec<ServerId> = found.iter().map(|found| found.server).collect();
        let cache_places = caches_of(platform, &configuration, &world, &ids)?;
        let addresses = Arc::new(Addresses {
            client_count: process_count.min(world.client_count()),
            servers: ids.iter().map(|id| world.target_of(*id)).collect(),
            caches: cache_places.iter().map(|place| place.target).collect(),
            metadata: metadata_target(platform, &configuration, &world, ids[0])?,
        });
        let layout = configuration.layout(found.len() as u32)?;
        let durability = configuration.instance.durability;
        let speeds = Speeds::of(platform);
        let class = (costs, durability);
        let threads = client_threads(&world, &addresses, &speeds);
        let schedule = configuration.schedule()?;
        let placement = configuration.placement()?;
        let write_policy = configuration.write_policy()?;
        let server_count = addresses.servers.len() as u32;
        let settings = client::Settings {
            caches: addresses.caches.len() as u32,
            placement,
            write_policy,
            schedule,
            ..client::Settings::usual(server_count)
        };
        let clients = FileClients::new((threads, settings), &files, addresses.clone(), class);
        let policies = (placement, write_policy);
        let caches = caches(&world, (&cache_places, policies), &addresses, &speeds, costs);
        let memory = ServerMemory::beside(&world, &cache_places);
        let mut servers = servers(&world, (&found, &memory), &addresses, platform, class);
        let (mut manager, journal_at) =
            manager(&world, &addresses, &speeds, layout, class, &servers)?;
        files_before((&files, before), &mut manager, &mut servers);
        let own = Box::new(());
        let parts = Parts { order: Order::Documented, clients, collectives, own, costs: None };
        let processes = Processes::place(&world, platform, programs, parts)?;
        let mut at_server = vec![None; world.server_count()];
        for (index, found) in found.iter().enumerate() {
            at_server[found.server.index()] = Some(index);
        }
        let machines = Machines {
            processes,
            servers,
            manager,
            caches,
            at_server,
            journal_at,
            last_progress: Nanos::ZERO,
            is_stuck: false,
        };
        Ok(FileSystem { world, machines })
    }
}

/// Instructions per second of each node.
struct Speeds(Vec<f64>);

impl Speeds {
    fn of(platform: &Platform) -> Speeds {
        let speeds = platform
            .nodes
            .iter()
            .flat_map(|group| (0..group.count).map(|_| group.instructions_per_second));
        Speeds(speeds.collect())
    }
}

/// The servers of the platform that a configuration means, in its order; all, if it names none.
fn servers_of<'a>(
    platform: &'a Platform,
    configuration: &Configuration,
) -> Result<Vec<Found<'a>>, Refusal> {
    let all = all_servers(platform);
    if all.is_empty() {
        return Refusal::refuse(
            format!("platform `{}` has no server", platform.name),
            "give a group of nodes a `server`",
        );
    }
    if configuration.servers.is_empty() {
        return Ok(all.into_iter().map(|(_, found)| found).collect());
    }
    let named: Vec<&String> =
        configuration.servers.iter().filter_map(|one| one.hosts.as_ref()).flatten().collect();
    let is_named = |name: &str, found: &Found| {
        named.iter().any(|host| **host == name || **host == found.group.name)
    };
    let mut free = all.iter().filter(|(name, found)| !is_named(name, found));
    let mut chosen: Vec<Found> = Vec::new();
    for one in &configuration.servers {
        let Some(hosts) = &one.hosts else {
            let Some((_, found)) = free.next() else {
                return Refusal::refuse(
                    format!("more [[servers]] than platform `{}` has servers", platform.name),
                    format!("it has {}", all.len()),
                );
            };
            chosen.push(*found);
            continue;
        };
        for host in hosts {
            chosen.extend(servers_named(&all, host)?);
        }
    }
    for (index, found) in chosen.iter().enumerate() {
        if chosen[..index].iter().any(|other| other.server == found.server) {
            let (name, _) = &all[found.server.index()];
            return Refusal::refuse(
                format!("[[servers]] name host `{name}` twice"),
                "a node of a platform has one server",
            );
        }
    }
    Ok(chosen)
}

/// A node of that name, or all of a group.
fn servers_named<'a>(all: &[(String, Found<'a>)], host: &str) -> Result<Vec<Found<'a>>, Refusal> {
    let meant = all.iter().filter(|(name, found)| *name == host || found.group.name == host);
    let meant: Vec<Found> = meant.map(|(_, found)| *found).collect();
    match meant.is_empty() {
        false => Ok(meant),
        true => {
            let names: Vec<_> = all.iter().map(|(name, _)| name.as_str()).collect();
            Refusal::refuse(
                format!("[[servers]] name host `{host}`, which has no server of the platform"),
                format!("it has servers on {}, or name a group of nodes", names.join(", ")),
            )
        }
    }
}

fn all_servers(platform: &Platform) -> Vec<(String, Found<'_>)> {
    let mut all = Vec::new();
    for group in platform.nodes.iter().filter(|group| group.server.is_some()) {
        for index in 0..group.count {
            let found = Found { server: ServerId::of(all.len()), group };
            all.push((group.node_name(index), found));
        }
    }
    all
}

fn client_threads<Q: EventQueue<Event>>(
    world: &World<Q>,
    addresses: &Addresses,
    speeds: &Speeds,
) -> Vec<Thread<Job>> {
    let thread = |client: u32| {
        let node = world.node_of(Target(client));
        Thread::new(client as usize, node, speeds.0[node.index()])
    };
    (0..addresses.client_count).map(thread).collect()
}

/// What servers have left of the memory of their nodes.
struct ServerMemory(BTreeMap<NodeId, u64>);

impl ServerMemory {
    /// Cache managers have theirs.
    fn beside<Q: EventQueue<Event>>(world: &World<Q>, caches: &[CachePlace]) -> ServerMemory {
        let of = |place: &CachePlace| (world.node_of(place.target), place.memory_bytes);
        ServerMemory(caches.iter().map(of).collect())
    }

    fn of(&self, node: NodeId, all: u64) -> u64 {
        all - self.0.get(&node).copied().unwrap_or(0)
    }
}

/// What all cache managers and clients have to agree on.
type Policies = (&'static placement::Row, &'static write_policy::Row);

/// The cache managers, whose threads are counted behind all others.
fn caches<Q: EventQueue<Event>>(
    world: &World<Q>,
    (places, (placement, write_policy)): (&[CachePlace], Policies),
    addresses: &Arc<Addresses>,
    speeds: &Speeds,
    costs: Costs,
) -> Vec<Cache> {
    let servers = addresses.servers.len() as u32;
    let first = (addresses.client_count + servers) as usize + 1;
    let cache = |(index, place): (usize, &CachePlace)| {
        let node = world.node_of(place.target);
        let thread = Thread::new(first + index, node, speeds.0[node.index()]);
        let usual = cache_manager::Settings::usual(index as u32, places.len() as u32, servers);
        // Nobody has to ask for room on devices that are never full.
        let grant_bytes = 0;
        let settings = cache_manager::Settings {
            memory: place.memory_bytes,
            placement,
            replacement: place.replacement,
            write_policy,
            grant_bytes,
            ..usual
        };
        Cache::new(settings, thread, addresses.clone(), costs)
    };
    places.iter().enumerate().map(cache).collect()
}

fn servers<Q: EventQueue<Event>>(
    world: &World<Q>,
    (found, memory): (&[Found], &ServerMemory),
    addresses: &Arc<Addresses>,
    platform: &Platform,
    class: (Costs, Durability),
) -> Vec<Server> {
    let server = |(number, found): (usize, &Found)| {
        let (id, group) = (found.server, found.group);
        let node = world.node_of(world.target_of(id));
        let place = addresses.client_count as usize + number;
        let thread = Thread::new(place, node, group.instructions_per_second);
        let model = group.server.as_ref().expect("it was found as a server").device;
        let access_bytes = platform.access_bytes_of(group);
        let device = Device::new(id, access_bytes, model.build().queue_depth() as usize);
        let store = Store::new(memory.of(node, group.memory_bytes.0));
        Server::new(number as u32, thread, (device, store), addresses.clone(), class)
    };
    found.iter().enumerate().map(server).collect()
}

/// The manager, and which server's device has its journal.
fn manager<Q: EventQueue<Event>>(
    world: &World<Q>,
    addresses: &Arc<Addresses>,
    speeds: &Speeds,
    layout: iolab_pfs::Layout,
    (costs, durability): (Costs, Durability),
    servers: &[Server],
) -> Result<(Manager, Option<usize>), Refusal> {
    let node = world.node_of(addresses.metadata);
    let place = addresses.client_count as usize + servers.len();
    let thread = Thread::new(place, node, speeds.0[node.index()]);
    let beside = servers.iter().position(|server| server.thread.node == node);
    let journal_at = beside.filter(|_| durability == Durability::Device);
    let has_device = journal_at.is_some();
    Ok((Manager::new(layout, thread, addresses.clone(), costs, has_device)?, journal_at))
}

/// Files that have bytes at the start were made before the run, and lie on the devices.
fn files_before(
    (files, before): (&[(String, u64)], Before),
    manager: &mut Manager,
    servers: &mut [Server],
) {
    for (place, (name, bytes)) in files.iter().enumerate().filter(|(_, (_, bytes))| *bytes > 0) {
        let (inode, layout) = manager.create(path_of(name), place as u64);
        for index in 0..layout.subfiles() {
            let server = layout.server_of(index, servers.len() as u32);
            let store = &mut servers[server as usize].store;
            store.name(inode, FileId(place as u32));
            let subfile = Subfile { inode, index };
            store.found(subfile, layout.bytes_below(index, *bytes));
            if before == Before::InMemory {
                store.remember(subfile);
            }
        }
    }
}
