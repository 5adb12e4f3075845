//! What must hold of a platform before a cluster can be built from it.

use super::{NodeGroup, Platform};
use iolab_vocab::Refusal;
use std::collections::BTreeSet;

/// What takes longer than that cannot be written as a time either.
const SECONDS_MAX: f64 = 1e9;

/// Components are numbered with 24 bits in the event order; this many nodes leave room.
const NODES_MAX: u64 = 1_000_000;

impl Platform {
    /// Refuses what cannot be simulated as a cluster.
    pub fn check(&self) -> Result<(), Refusal> {
        self.check_names()?;
        self.check_sizes()?;
        self.check_rates()?;
        for group in &self.nodes {
            self.check_group(group)?;
        }
        self.check_links()?;
        if self.client_count() == 0 {
            return Refusal::refuse(
                "no node runs a client".to_owned(),
                "give a group `clients = 1`",
            );
        }
        let count: u64 = self.nodes.iter().map(|group| u64::from(group.count)).sum();
        if count > NODES_MAX || self.client_count() > NODES_MAX {
            let message = format!("{count} nodes with {} clients", self.client_count());
            return Refusal::refuse(message, "at most 1,000,000 of each can be simulated");
        }
        Ok(())
    }

    fn check_names(&self) -> Result<(), Refusal> {
        let mut seen = BTreeSet::new();
        let groups = self.nodes.iter().map(|group| &group.name);
        for name in groups.chain(self.switches.iter().map(|switch| &switch.name)) {
            if name.is_empty() || !seen.insert(name) {
                let message = format!("the name `{name}` is empty or used twice");
                return Refusal::refuse(
                    message,
                    "give every node group and switch a name of its own",
                );
            }
        }
        Ok(())
    }

    fn check_sizes(&self) -> Result<(), Refusal> {
        let sizes = [
            ("transport.packet_bytes", self.transport.packet_bytes),
            ("transport.access_bytes", self.transport.access_bytes),
            ("files.stripe_bytes", self.files.stripe_bytes),
        ];
        for (key, size) in sizes {
            if size.0 == 0 || size.0 > u64::from(u32::MAX) {
                let message = format!("{key} is {}", size.0);
                return Refusal::refuse(message, "give a size from 1 byte to 4 GiB - 1");
            }
        }
        Ok(())
    }

    /// A packet, an access or an instruction that takes longer than any time one can write down is
    /// a slip of the pen.
    fn check_rates(&self) -> Result<(), Refusal> {
        let packet = self.transport.packet_bytes.0 as f64;
        let switches = self.switches.iter().map(|one| (format!("switch `{}`", one.name), one.rate));
        let cables = self.links.iter();
        let cables =
            cables.map(|one| (format!("link `{}` - `{}`", one.from, one.to), one.wire.rate));
        let nics = self.nodes.iter().flat_map(|one| {
            let part = |what: &str| format!("nodes `{}`: {what}", one.name);
            [(part("nic"), one.nic.rate), (part("internal_rate"), one.internal_rate)]
        });
        for (part, rate) in switches.chain(cables).chain(nics) {
            let seconds = packet / rate.0;
            if seconds.is_nan() || seconds >= SECONDS_MAX {
                let message = format!("{part}: a packet of {packet} B takes {seconds:e} s");
                return Refusal::refuse(
                    message,
                    "give a higher rate: at most 1e9 s (32 years) can be simulated",
                );
            }
        }
        for group in &self.nodes {
            let Some(server) = &group.server else { continue };
            let access = self.access_bytes_of(group) as f64;
            let seconds = access / server.device.figures().rate.0;
            if seconds.is_nan() || seconds >= SECONDS_MAX {
                let name = &group.name;
                let message =
                    format!("nodes `{name}`: an access of {access} B takes {seconds:e} s");
                return Refusal::refuse(message, "give its device a higher rate");
            }
        }
        Ok(())
    }

    fn check_group(&self, group: &NodeGroup) -> Result<(), Refusal> {
        let packet_bytes = self.transport.packet_bytes.0;
        if group.server.is_some() && group.memory_bytes.0 <= 2 * packet_bytes {
            let (name, memory) = (&group.name, group.memory_bytes.0);
            let message = format!("servers `{name}` have {memory} B of memory");
            return Refusal::refuse(
                message,
                "memory must hold more than two packets of `transport`",
            );
        }
        let name = &group.name;
        if group.cpus == 0 || group.count == 0 {
            let message =
                format!("nodes `{name}` have count {} and cpus {}", group.count, group.cpus);
            return Refusal::refuse(message, "give at least 1 of each, or leave the group out");
        }
        let speed = group.instructions_per_second;
        if !(speed.is_finite() && speed > 0.0) {
            let message = format!("nodes `{name}`: instructions_per_second = {speed}");
            return Refusal::refuse(message, "give a speed above 0");
        }
        if speed * SECONDS_MAX <= 1.0 {
            let message = format!("nodes `{name}`: an instruction takes {:e} s", 1.0 / speed);
            return Refusal::refuse(message, "give a higher instructions_per_second");
        }
        if let Some(server) = &group.server
            && let Err(error) = server.device.check()
        {
            return Refusal::refuse(format!("nodes `{name}`: device: {error}"), "see docs/models");
        }
        self.switch_of(group).map(|_| ())
    }

    /// Index of the switch that a group hangs on.
    pub(crate) fn switch_of(&self, group: &NodeGroup) -> Result<usize, Refusal> {
        match &group.switch {
            Some(name) => self.switch_index(name, &format!("nodes `{}`", group.name)),
            None if self.switches.len() == 1 => Ok(0),
            None => {
                let message = format!("nodes `{}` are not connected to a switch", group.name);
                Refusal::refuse(message, "give the group `switch = NAME`")
            }
        }
    }

    /// Index of the switch called `name`, which `user` mentions.
    pub(crate) fn switch_index(&self, name: &str, user: &str) -> Result<usize, Refusal> {
        match self.switches.iter().position(|switch| switch.name == name) {
            Some(index) => Ok(index),
            None => Refusal::refuse(
                format!("{user}: there is no switch `{name}`"),
                "name one of the [[switches]] of this platform",
            ),
        }
    }

    fn check_links(&self) -> Result<(), Refusal> {
        let mut group_of: Vec<usize> = (0..self.switches.len()).collect();
        for link in &self.links {
            let user = format!("link `{}` - `{}`", link.from, link.to);
            let from = self.switch_index(&link.from, &user)?;
            let to = self.switch_index(&link.to, &user)?;
            let (old, new) = (group_of[from], group_of[to]);
            group_of.iter_mut().filter(|group| **group == old).for_each(|group| *group = new);
        }
        let mut home = None;
        for group in &self.nodes {
            let island = group_of[self.switch_of(group)?];
            if *home.get_or_insert(island) != island {
                let message = format!("nodes `{}` cannot reach the first group", group.name);
                return Refusal::refuse(message, "connect their switches by [[links]]");
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TWO_ISLANDS: &str = "
        switches = [{ name = 'a' }, { name = 'b' }]
        nodes = [{ name = 'c', clients = 1, switch = 'a' }, { name = 's', switch = 'b' }]";

    #[test]
    fn nodes_on_switches_without_a_link_are_named() {
        let error = Platform::parse(TWO_ISLANDS).unwrap().check().unwrap_err();
        assert!(error.message.contains("`s` cannot reach"), "{error}");
        let linked = format!("{TWO_ISLANDS}\nlinks = [{{ from = 'a', to = 'b' }}]");
        Platform::parse(&linked).unwrap().check().unwrap();
    }

    #[test]
    fn a_node_without_a_switch_among_several_is_named() {
        let text = TWO_ISLANDS.replace(", switch = 'b'", "");
        let error = Platform::parse(&text).unwrap().check().unwrap_err();
        assert!(error.message.contains("`s` are not connected"), "{error}");
    }
}
