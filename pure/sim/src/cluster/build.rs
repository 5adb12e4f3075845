//! From a platform and programs to a cluster ready to run.

use super::cpu::Cpu;
use super::event::Event;
use super::group::groups_of;
use super::hop::{Hop, Role};
use super::network::Network;
use super::overrides::PolicyOverrides;
use super::packet::{NONE, Slab};
use super::server::{Reads, Server, ServerTotals};
use super::task::{Process, Task};
use super::{Application, Calendar, Cluster, EventQueue, FileState, Node, Order, hash_table};
use crate::platform::{NodeGroup, Platform, PlatformError};
use crate::program::Program;
use iolab_device::DeviceModel;
use iolab_policy::cache::{self, Settings, Tails};
use iolab_policy::collective::{CollectiveSelection, Costs};
use iolab_vocab::Nanos;
use std::collections::VecDeque;

/// What runs on the platform.
pub struct Setup {
    /// Which order decides among equals.
    pub order: Order,
    /// Cache layer of every server; by itself each server has the platform's.
    pub cache: Option<String>,
    /// Which algorithm carries out which collective command.
    pub collectives: CollectiveSelection,
    /// The files, each with its size at the start.
    pub files: Vec<FileState>,
    /// The applications. Their processes fill the platform's clients in order.
    pub programs: Vec<Box<dyn Program>>,
}

/// Distance that counts as near when a cache layer orders jobs for a device without positions.
const NEAR_BYTES: u64 = 5 << 20;

impl<Q: EventQueue<Event>> Cluster<Q> {
    /// Builds the cluster; `queue` comes empty.
    pub fn build(platform: &Platform, setup: Setup, queue: Q) -> Result<Cluster<Q>, PlatformError> {
        Cluster::build_with(platform, setup, queue, Box::new(()))
    }

    /// The same, with what parts `own` makes in place of the catalogues'.
    pub fn build_with(
        platform: &Platform,
        setup: Setup,
        queue: Q,
        own: Box<dyn PolicyOverrides>,
    ) -> Result<Cluster<Q>, PlatformError> {
        platform.check()?;
        let mut cluster = Cluster::empty(platform, &setup, queue, own);
        let switches = cluster.add_switches(platform);
        cluster.add_nodes(platform, &setup, &switches)?;
        cluster.add_routes(platform, &switches)?;
        cluster.place_programs(platform, setup.programs)?;
        cluster.order_servers();
        Ok(cluster)
    }

    fn empty(
        platform: &Platform,
        setup: &Setup,
        queue: Q,
        own: Box<dyn PolicyOverrides>,
    ) -> Cluster<Q> {
        Cluster {
            calendar: Calendar { now: Nanos::ZERO, queue, late: None },
            order: setup.order,
            network: Network::new(),
            messages: Slab::new(),
            requests: Slab::new(),
            transfers: Slab::new(),
            nodes: Vec::new(),
            processes: Vec::new(),
            tasks: Slab::new(),
            servers: Vec::new(),
            target_node: Vec::new(),
            server_place: Vec::new(),
            files: setup.files.clone(),
            programs: Vec::new(),
            applications: Vec::new(),
            groups: Vec::new(),
            offers: Slab::new(),
            collectives: setup.collectives,
            own,
            eager_bytes: platform.transport.eager_bytes.0,
            costs: costs_of(platform, setup.cache.as_deref()),
            stripe_bytes: platform.files.stripe_bytes.0,
            packet_bytes: platform.transport.packet_bytes.0 as u32,
            event_count: 0,
            event_hash: 0,
            running_count: 0,
            active_faults: super::fault::ActiveFaults::none(),
            first_cable_hop: 0,
            refused: None,
            recorder: None,
            computing: NONE,
            actions: Vec::new(),
            moves: Vec::new(),
            touched: Vec::new(),
            request_of: Vec::new(),
        }
    }

    fn add_hop(&mut self, role: Role, rate: f64, latency: f64, next: u32) -> u32 {
        let mut hop = Hop::new(role, rate, latency, self.packet_bytes);
        if self.order == Order::Documented {
            hop.carry_fractions();
        }
        hop.next = next;
        self.network.hops.push(hop);
        self.network.hops.len() as u32 - 1
    }

    /// One hop per switch; returns them in the platform's order.
    fn add_switches(&mut self, platform: &Platform) -> Vec<u32> {
        let add = |(index, switch): (usize, &crate::platform::Switch)| {
            self.network.routes.push(Vec::new());
            self.add_hop(Role::Switch, switch.rate.0, switch.latency.0, index as u32)
        };
        platform.switches.iter().enumerate().map(add).collect()
    }

    fn add_nodes(
        &mut self,
        platform: &Platform,
        setup: &Setup,
        switches: &[u32],
    ) -> Result<(), PlatformError> {
        let mut clients = Vec::new();
        let mut servers = Vec::new();
        for group in &platform.nodes {
            let switch = switches[platform.switch_of(group)?];
            for _ in 0..group.count {
                let node = self.nodes.len() as u32;
                let (rate, latency) = (group.nic.rate.0, group.nic.latency.0);
                let departure = self.add_hop(Role::Departure, rate, latency, switch);
                let arrival = self.add_hop(Role::Arrival, f64::INFINITY, 0.0, node);
                let port = self.add_hop(Role::Port, rate, latency, arrival);
                let internal = self.add_hop(Role::Internal, group.internal_rate.0, 0.0, node);
                let mut cpu = Cpu::new(group.cpus, group.instructions_per_second);
                if self.order == Order::Documented {
                    cpu.carry_fractions();
                }
                self.nodes.push(Node { cpu, departure, arrival, internal, port, switch });
                clients.extend((0..group.clients).map(|_| node));
                if let Some(server) = &group.server {
                    let name = setup.cache.as_ref().unwrap_or(&server.cache);
                    let settings = self.cache_settings(platform, group, server.device);
                    let (cache, invites) = match self.own.cache(settings) {
                        Some(cache) => (cache, false),
                        None => {
                            let row = find_cache(name)?;
                            (row.make(settings), row.invites)
                        }
                    };
                    servers.push((node, cache, server.device, settings, invites));
                }
            }
        }
        self.target_node = clients;
        for (node, cache, device, settings, invites) in servers {
            let target = self.target_node.len() as u32;
            self.target_node.push(node);
            let (parked, totals) = (VecDeque::new(), ServerTotals::default());
            let device = device.build();
            self.servers.push(Server {
                cache,
                device,
                node,
                target,
                parked,
                syncs: Vec::new(),
                unawaited_count: 0,
                open_count: 0,
                access_bytes: settings.access_bytes,
                invites,
                totals,
                reads: Reads::default(),
                slowness: Vec::new(),
                stall_count: 0,
                held: Vec::new(),
            });
        }
        self.request_of = vec![NONE; self.servers.len()];
        Ok(())
    }

    fn cache_settings(
        &self,
        platform: &Platform,
        group: &NodeGroup,
        device: DeviceModel,
    ) -> Settings {
        let near_bytes = match device {
            DeviceModel::Hdd(model) => model.near_bytes.0,
            _ => NEAR_BYTES,
        };
        Settings {
            capacity_bytes: group.memory_bytes.0,
            access_bytes: platform.access_bytes_of(group),
            depth: device.build().queue_depth(),
            near_bytes,
            seek_bytes: device.figures().seek_bytes(),
            tails: match self.order {
                Order::Documented => Tails::Kept,
                Order::Published => Tails::Lost,
            },
            ..Settings::default()
        }
    }

    /// Shortest paths between switches, in cables; those that are equally short are used alike.
    fn add_routes(&mut self, platform: &Platform, switches: &[u32]) -> Result<(), PlatformError> {
        let count = switches.len();
        let mut cables = vec![Vec::new(); count];
        self.first_cable_hop = self.network.hops.len() as u32;
        for link in &platform.links {
            let ends = [
                platform.switch_index(&link.from, "link")?,
                platform.switch_index(&link.to, "link")?,
            ];
            for (from, to) in [(ends[0], ends[1]), (ends[1], ends[0])] {
                let wire = link.wire;
                let port = self.add_hop(Role::Port, wire.rate.0, wire.latency.0, switches[to]);
                cables[from].push((to, port));
            }
        }
        let home = |node: &Node| switches.iter().position(|at| *at == node.switch);
        for from in 0..count {
            let routes: Vec<u32> = first_ports(&cables, from)
                .iter()
                .map(|ports| match ports.as_slice() {
                    [] => NONE,
                    ports => self.network.route_among(ports),
                })
                .collect();
            let route = |&node: &u32| {
                let node = &self.nodes[node as usize];
                match home(node) {
                    Some(to) if to == from => node.port,
                    Some(to) => routes[to],
                    None => NONE,
                }
            };
            self.network.routes[from] = self.target_node.iter().map(route).collect();
        }
        Ok(())
    }

    fn place_programs(
        &mut self,
        platform: &Platform,
        programs: Vec<Box<dyn Program>>,
    ) -> Result<(), PlatformError> {
        let wanted: u64 = programs.iter().map(|program| u64::from(program.rank_count())).sum();
        if wanted > platform.client_count() {
            return Err(PlatformError {
                message: format!("{wanted} processes, but {} clients", platform.client_count()),
                hint: "give the platform more client nodes, or `clients` per node".to_owned(),
            });
        }
        for (index, program) in programs.iter().enumerate() {
            let first = self.processes.len() as u32;
            for rank in 0..program.rank_count() {
                let id = self.processes.len() as u32;
                let node = self.target_node[id as usize];
                self.processes.push(Process::new(node, rank, index as u32));
                self.tasks.add(Task::of(id));
            }
            let groups = groups_of(program.as_ref(), index, first)?;
            let (first_group, group_count) = (self.groups.len() as u32, groups.len() as u32);
            self.applications.push(Application { first_group, group_count, end: Nanos::ZERO });
            self.groups.extend(groups);
        }
        self.running_count = self.processes.len() as u32;
        self.programs = programs;
        Ok(())
    }

    fn order_servers(&mut self) {
        let clients = self.target_node.len() - self.servers.len();
        let targets = clients as u32..self.target_node.len() as u32;
        let numbers: Vec<_> = targets.map(hash_table::component).collect();
        self.server_place = (0..self.servers.len() as u32).collect();
        if self.order == Order::Published {
            for (place, server) in hash_table::order(&numbers).into_iter().enumerate() {
                self.server_place[server] = place as u32;
            }
        }
    }
}

/// By the first server's device and the first client's link: a rough estimate decides well enough.
fn costs_of(platform: &Platform, cache: Option<&str>) -> Option<Costs> {
    let server = platform.nodes.iter().find_map(|group| group.server.as_ref())?;
    let device = server.device.figures();
    let joins = cache::find(cache.unwrap_or(&server.cache)).is_ok_and(|row| row.joins);
    let client = platform.nodes.iter().find(|group| group.clients > 0)?;
    Some(Costs {
        server_count: platform.server_count() as u32,
        stripe_bytes: platform.files.stripe_bytes.0,
        near_seconds: device.near.0,
        far_seconds: device.far.0,
        device_rate: device.rate.0,
        join_bytes: joins.then_some(platform.transport.access_bytes.0),
        link_rate: client.nic.rate.0,
        link_seconds: client.nic.latency.0,
    })
}

fn find_cache(name: &str) -> Result<&'static cache::catalog::Row, PlatformError> {
    cache::find(name).map_err(|error| PlatformError {
        message: error.to_string(),
        hint: "name one in the platform's server or by --cache".to_owned(),
    })
}

/// Per switch, the ports out of `from` on shortest paths to it, as the links are written.
fn first_ports(cables: &[Vec<(usize, u32)>], from: usize) -> Vec<Vec<u32>> {
    let mut first: Vec<Vec<u32>> = vec![Vec::new(); cables.len()];
    let mut distance = vec![usize::MAX; cables.len()];
    distance[from] = 0;
    let mut queue = VecDeque::from([from]);
    while let Some(at) = queue.pop_front() {
        for &(to, port) in &cables[at] {
            if distance[to] == usize::MAX {
                distance[to] = distance[at] + 1;
                queue.push_back(to);
            }
            if distance[to] == distance[at] + 1 {
                let ports = if at == from { vec![port] } else { first[at].clone() };
                first[to].extend(ports);
                first[to].sort_unstable();
                first[to].dedup();
            }
        }
    }
    first
}
