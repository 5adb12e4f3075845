//! From a platform to a world.
//!
//! Hops are numbered: the switches, then per node its NIC out, its NIC in, the switch port towards it
//! and its inside, then each cable both ways.

use super::calendar::Calendar;
use super::cpu::Cpu;
use super::device::Device;
use super::event::Event;
use super::fault::ActiveFaults;
use super::hop::{Hop, Role};
use super::message::Content;
use super::network::Network;
use super::packet::NONE;
use super::{Node, NodeId, Order, Slab, World};
use crate::platform::{NodeGroup, Platform, Switch};
use crate::queue::EventQueue;
use iolab_vocab::{Nanos, Refusal};
use std::collections::VecDeque;

impl<Q: EventQueue<Event>, C: Content> World<Q, C> {
    /// The world of a platform that was checked; `queue` comes empty.
    pub(crate) fn build(
        platform: &Platform,
        order: Order,
        queue: Q,
    ) -> Result<World<Q, C>, Refusal> {
        let mut world = World {
            calendar: Calendar { now: Nanos::ZERO, queue, late: None },
            order,
            network: Network::new(),
            messages: Slab::new(),
            payloads: Slab::new(),
            nodes: Vec::new(),
            devices: Vec::new(),
            transfers: Slab::new(),
            target_node: Vec::new(),
            packet_bytes: platform.transport.packet_bytes.0 as u32,
            active_faults: ActiveFaults::none(),
            first_cable_hop: 0,
            computing: None,
            event_count: 0,
            event_hash: 0,
            recorder: None,
        };
        let switches = world.add_switches(platform);
        world.add_nodes(platform, &switches)?;
        world.add_routes(platform, &switches)?;
        Ok(world)
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
        let add = |(index, switch): (usize, &Switch)| {
            self.network.routes.push(Vec::new());
            self.add_hop(Role::Switch, switch.rate.0, switch.latency.0, index as u32)
        };
        platform.switches.iter().enumerate().map(add).collect()
    }

    /// Nodes group by group; a group's servers have a node each.
    fn add_nodes(&mut self, platform: &Platform, switches: &[u32]) -> Result<(), Refusal> {
        let (mut clients, mut servers) = (Vec::new(), Vec::new());
        for group in &platform.nodes {
            let switch = switches[platform.switch_of(group)?];
            for _ in 0..group.count {
                let node = self.add_node(group, switch);
                clients.extend((0..group.clients).map(|_| node));
                if let Some(server) = &group.server {
                    servers.push(node);
                    self.devices.push(Device::new(server.device.build()));
                }
            }
        }
        self.target_node = clients;
        self.target_node.extend(servers);
        Ok(())
    }

    fn add_node(&mut self, group: &NodeGroup, switch: u32) -> NodeId {
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
        NodeId(node)
    }

    /// Shortest paths between switches, in cables; those that are equally short are used alike.
    fn add_routes(&mut self, platform: &Platform, switches: &[u32]) -> Result<(), Refusal> {
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
            let route = |&NodeId(node): &NodeId| {
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
