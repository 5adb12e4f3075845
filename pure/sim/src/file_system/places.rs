//! Where on a platform the metadata manager and the cache managers of a configuration are.

use super::{Configuration, World};
use crate::platform::{NodeGroup, Platform};
use crate::world::{ServerId, Target};
use iolab_pfs::cache_manager::MEMORY_MIN;
use iolab_pfs::configuration::Caches;
use iolab_policy::replacement::catalog as replacement;
use iolab_vocab::{Refusal, format_bytes};

/// A node where something of the platform runs.
struct Place<'a> {
    name: String,
    group: &'a NodeGroup,
    /// Where messages reach it.
    target: Target,
}

impl Place<'_> {
    /// Whether a host means it: by its own name or that of its group.
    fn is_named(&self, host: &str) -> bool {
        self.name == host || self.group.name == host
    }
}

/// All nodes where something runs, in the platform's order. Messages reach a server rather than a client.
fn places_of<'a, Q>(platform: &'a Platform, world: &World<Q>) -> Vec<Place<'a>> {
    let (mut clients, mut servers, mut places) = (0, 0, Vec::new());
    for group in &platform.nodes {
        for index in 0..group.count {
            let target = match group.server {
                Some(_) => Some(world.target_of(ServerId(servers))),
                None => (group.clients > 0).then_some(Target(clients)),
            };
            let name = group.node_name(index);
            places.extend(target.map(|target| Place { name, group, target }));
            clients += group.clients;
            servers += u32::from(group.server.is_some());
        }
    }
    places
}

/// Where messages reach the manager: on the node that is named, or that of the first server.
pub(super) fn metadata_target<Q>(
    platform: &Platform,
    configuration: &Configuration,
    world: &World<Q>,
    first_server: ServerId,
) -> Result<Target, Refusal> {
    let Some(host) = &configuration.metadata.host else {
        return Ok(world.target_of(first_server));
    };
    let found = places_of(platform, world).into_iter().find(|place| place.is_named(host));
    found.map(|place| place.target).ok_or_else(|| {
        Refusal::new(
            format!("[metadata] names host `{host}`, where nothing of the platform runs"),
            "name a node, or a group of nodes, with clients or a server",
        )
    })
}

/// Where a cache manager is, and how much memory it has.
#[derive(Clone, Copy, Debug)]
pub(super) struct CachePlace {
    pub(super) target: Target,
    pub(super) memory_bytes: u64,
    pub(super) replacement: &'static replacement::Row,
}

/// The cache managers of a configuration, in its order: on the hosts that it names, or beside the servers
/// that have none yet.
pub(super) fn caches_of<Q>(
    platform: &Platform,
    configuration: &Configuration,
    world: &World<Q>,
    servers: &[ServerId],
) -> Result<Vec<CachePlace>, Refusal> {
    let places = places_of(platform, world);
    let named: Vec<&String> =
        configuration.caches.iter().filter_map(|one| one.hosts.as_ref()).flatten().collect();
    let is_named = |place: &&Place| named.iter().any(|host| place.is_named(host));
    let beside = servers
        .iter()
        .filter_map(|&server| places.iter().find(|place| place.target == world.target_of(server)));
    let mut free = beside.filter(|place| !is_named(place));
    let mut chosen: Vec<(&Place, &Caches)> = Vec::new();
    for one in &configuration.caches {
        match &one.hosts {
            Some(hosts) => {
                for host in hosts {
                    let meant: Vec<_> =
                        places.iter().filter(|place| place.is_named(host)).collect();
                    if meant.is_empty() {
                        let nothing = "where nothing of the platform runs";
                        return Refusal::refuse(
                            format!("[[caches]] name host `{host}`, {nothing}"),
                            "name a node, or a group of nodes, with clients or a server",
                        );
                    }
                    chosen.extend(meant.into_iter().map(|place| (place, one)));
                }
            }
            None => {
                for _ in 0..one.count.unwrap_or(1) {
                    let Some(place) = free.next() else {
                        let count = servers.len();
                        return Refusal::refuse(
                            format!("more [[caches]] than the file system's {count} servers"),
                            "name `hosts` for those that are not beside a server",
                        );
                    };
                    chosen.push((place, one));
                }
            }
        }
    }
    let mut caches = Vec::with_capacity(chosen.len());
    for (index, (place, one)) in chosen.iter().enumerate() {
        if chosen[..index].iter().any(|(other, _)| other.name == place.name) {
            return Refusal::refuse(
                format!("[[caches]] name host `{}` twice", place.name),
                "a node of a platform has one cache manager",
            );
        }
        let memory_bytes = memory_of(place, one)?;
        let replacement = one.replacement()?;
        caches.push(CachePlace { target: place.target, memory_bytes, replacement });
    }
    Ok(caches)
}

/// What is said, or half of the node's.
fn memory_of(place: &Place, one: &Caches) -> Result<u64, Refusal> {
    let all = place.group.memory_bytes.0;
    let wanted = one.memory_bytes()?.unwrap_or((all / 2).max(MEMORY_MIN));
    match wanted <= all {
        true => Ok(wanted),
        false => Refusal::refuse(
            format!(
                "a cache manager with {} of memory on `{}`, which has {}",
                format_bytes(wanted),
                place.name,
                format_bytes(all)
            ),
            "give [[caches]] less `memory`, or the node more",
        ),
    }
}
