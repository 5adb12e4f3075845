//! By chance, the same for everybody: each manager draws a number for the stripe, the highest has it
//! (highest random weight; Thaler and Ravishankar, IEEE/ACM Transactions on Networking 6, 1998). Where one more
//! manager comes, only what it wins moves; where one goes, only what it had. Patterns whose stride is a multiple of
//! the managers, which `modulo` brings to one of them, are spread.

use super::Place;
use iolab_vocab::{Random, Seed};

/// Who draws most. O(n) for n managers.
pub(super) fn manager(place: &Place, stripe: u64) -> u32 {
    let drawn = |manager: &u32| {
        // Files that begin at different servers are spread differently.
        let file = u64::from(place.start).rotate_left(48);
        Random::new(Seed(stripe ^ file ^ u64::from(*manager).rotate_left(32))).bits()
    };
    (0..place.managers).max_by_key(drawn).unwrap_or(0)
}
