//! What the parts of a platform are called in results, in the order in which a cluster has them.

use super::Platform;

impl Platform {
    /// Instructions per second of the node of each client process.
    pub fn client_speeds(&self) -> impl Iterator<Item = f64> + '_ {
        let speeds = |group: &super::NodeGroup| {
            let count = u64::from(group.count) * u64::from(group.clients);
            (0..count).map({
                let speed = group.instructions_per_second;
                move |_| speed
            })
        };
        self.nodes.iter().flat_map(speeds)
    }

    /// Every node: the name of its group and its number there, which a lone node lacks.
    pub fn node_names(&self) -> impl Iterator<Item = String> + '_ {
        self.nodes.iter().flat_map(|group| (0..group.count).map(|index| group.node_name(index)))
    }

    /// The node of each client process.
    pub fn client_names(&self) -> Vec<String> {
        let mut names = Vec::new();
        for group in &self.nodes {
            for index in 0..group.count {
                names.extend((0..group.clients).map(|_| group.node_name(index)));
            }
        }
        names
    }

    /// The node of each server.
    pub fn server_names(&self) -> Vec<String> {
        let groups = self.nodes.iter().filter(|group| group.server.is_some());
        let names = |group: &super::NodeGroup| {
            (0..group.count).map(|index| group.node_name(index)).collect::<Vec<_>>()
        };
        groups.flat_map(names).collect()
    }

    /// Every part of the network, in the order of `Cluster::link_totals`.
    pub fn link_names(&self) -> Vec<String> {
        let mut names: Vec<String> =
            self.switches.iter().map(|switch| switch.name.clone()).collect();
        for node in self.node_names() {
            for part in ["nic out", "nic in", "switch port", "internal"] {
                names.push(format!("{node} {part}"));
            }
        }
        for link in &self.links {
            names.push(format!("{} -> {}", link.from, link.to));
            names.push(format!("{} -> {}", link.to, link.from));
        }
        names
    }
}

impl super::NodeGroup {
    /// What its node of that number is called.
    pub fn node_name(&self, index: u32) -> String {
        if self.count == 1 { self.name.clone() } else { format!("{}{index}", self.name) }
    }
}
