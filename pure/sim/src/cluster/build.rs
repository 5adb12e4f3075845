//! From a platform and programs to a cluster ready to run.

use super::client::Clients;
use super::overrides::PolicyOverrides;
use super::server::Servers;
use super::{Cluster, FileState, Machines, Order};
use crate::platform::{NodeGroup, Platform};
use crate::process::{Parts, Processes};
use crate::program::Program;
use crate::queue::EventQueue;
use crate::world::{Event, World};
use iolab_device::DeviceModel;
use iolab_policy::cache::{self, Cache, Settings, Tails};
use iolab_policy::collective::{CollectiveSelection, Costs};
use iolab_vocab::Refusal;

/// What runs on the platform.
pub struct Setup<'p> {
    /// Which order decides among equals.
    pub order: Order,
    /// Cache layer of every server; by itself each server has the platform's.
    pub cache: Option<String>,
    /// Which algorithm carries out which collective command.
    pub collectives: CollectiveSelection,
    /// The files, each with its size at the start.
    pub files: Vec<FileState>,
    /// The applications. Their processes fill the platform's clients in order.
    pub programs: Vec<Box<dyn Program + 'p>>,
}

/// Distance that counts as near when a cache layer orders jobs for a device without positions.
const NEAR_BYTES: u64 = 5 << 20;

impl<'p, Q: EventQueue<Event>> Cluster<'p, Q> {
    /// Builds the cluster; `queue` comes empty.
    pub fn build(
        platform: &Platform,
        setup: Setup<'p>,
        queue: Q,
    ) -> Result<Cluster<'p, Q>, Refusal> {
        Cluster::build_with(platform, setup, queue, Box::new(()))
    }

    /// The same, with what parts `own` makes in place of the catalogues'.
    pub fn build_with(
        platform: &Platform,
        setup: Setup<'p>,
        queue: Q,
        own: Box<dyn PolicyOverrides>,
    ) -> Result<Cluster<'p, Q>, Refusal> {
        platform.check()?;
        let Setup { order, cache, collectives, files, programs } = setup;
        let world = World::build(platform, order, queue)?;
        let layers = layers_of(platform, order, cache.as_deref(), own.as_ref())?;
        let invites: Vec<bool> = layers.iter().map(|layer| layer.invites).collect();
        let stripe_bytes = platform.files.stripe_bytes.0;
        let clients = Clients::new(files, stripe_bytes, order, &invites, world.client_count());
        let costs = costs_of(platform, cache.as_deref());
        let parts = Parts { order, clients, collectives, own, costs };
        let processes = Processes::place(&world, platform, programs, parts)?;
        let layers = layers.into_iter().map(|layer| (layer.cache, layer.access_bytes));
        let servers = Servers::new(layers.collect());
        Ok(Cluster { world, machines: Machines { processes, servers } })
    }
}

/// A server's cache layer.
struct Layer {
    cache: Box<dyn Cache>,
    invites: bool,
    /// Largest single access.
    access_bytes: u64,
}

/// Those of all servers, in the order of the platform's nodes.
fn layers_of(
    platform: &Platform,
    order: Order,
    cache: Option<&str>,
    own: &dyn PolicyOverrides,
) -> Result<Vec<Layer>, Refusal> {
    let mut layers = Vec::new();
    for group in &platform.nodes {
        let Some(server) = &group.server else { continue };
        let settings = cache_settings(platform, group, server.device, order);
        let access_bytes = settings.access_bytes;
        for _ in 0..group.count {
            let (cache, invites) = match own.cache(settings) {
                Some(cache) => (cache, false),
                None => {
                    let row = find_cache(cache.unwrap_or(&server.cache))?;
                    (row.make(settings), row.invites)
                }
            };
            layers.push(Layer { cache, invites, access_bytes });
        }
    }
    Ok(layers)
}

fn cache_settings(
    platform: &Platform,
    group: &NodeGroup,
    device: DeviceModel,
    order: Order,
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
        tails: match order {
            Order::Documented => Tails::Kept,
            Order::Published => Tails::Lost,
        },
        ..Settings::default()
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

fn find_cache(name: &str) -> Result<&'static cache::catalog::Row, Refusal> {
    cache::find(name).map_err(|error| Refusal {
        message: error.to_string(),
        hint: "name one in the platform's server or by --cache".to_owned(),
    })
}
