//! Each stripe at the manager beside its server, so that what managers and servers tell each other stays on
//! their host: the cache map `at-servers` of Clusterfile. Manager k is beside server k; where there are fewer
//! managers than servers, they are shared. With as many managers as servers and subfiles it is `modulo`.

use super::Place;

/// The neighbour of the stripe's server. A few operations.
pub(super) fn manager(place: &Place, stripe: u64) -> u32 {
    let subfile = stripe % u64::from(place.subfiles);
    let server = (u64::from(place.start) + subfile) % u64::from(place.servers);
    (server % u64::from(place.managers)) as u32
}
