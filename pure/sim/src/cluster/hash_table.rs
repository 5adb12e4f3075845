//! The order in which the hash tables of Java 6 give their keys back.
//!
//! The published evaluation addressed servers and woke processes in this order. A table starts with
//! 16 buckets; a new key goes to the head of its bucket's chain. With the thirteenth key (in
//! general: with the first above three quarters of the buckets) the table doubles: its chains are
//! walked from the head, bucket by bucket, and each key goes to the head of its new chain, which
//! reverses what stays together.

const BUCKETS: usize = 16;

/// Where a key's hash leads, as Java 6 spreads it.
fn bucket(key: u32, buckets: usize) -> usize {
    let spread = key ^ (key >> 20) ^ (key >> 12);
    (spread ^ (spread >> 7) ^ (spread >> 4)) as usize & (buckets - 1)
}

/// The places of `keys`, which differ and are put in one after the other, as the table gives them
/// back.
pub(crate) fn order(keys: &[u32]) -> Vec<usize> {
    // Of each chain the head stands last.
    let mut chains: Vec<Vec<usize>> = vec![Vec::new(); BUCKETS];
    for (place, &key) in keys.iter().enumerate() {
        let at = bucket(key, chains.len());
        chains[at].push(place);
        if (place + 1) * 4 > chains.len() * 3 {
            let mut grown = vec![Vec::new(); chains.len() * 2];
            for place in chains.iter().flat_map(|chain| chain.iter().rev()) {
                let at = bucket(keys[*place], grown.len());
                grown[at].push(*place);
            }
            chains = grown;
        }
    }
    chains.iter().flat_map(|chain| chain.iter().rev().copied()).collect()
}

/// Where the order of a request's servers can depend on which of them it touches, and how.
pub(super) const STEADY_SERVERS: usize = 12;

/// The servers of one request, named in the order in which its bytes touch them, in the order in
/// which they are addressed: they pass through a table by index, then through one by component.
pub(crate) fn servers_of_request(touched: &[u32], component: impl Fn(u32) -> u32) -> Vec<u32> {
    let by_index: Vec<u32> = order(touched).into_iter().map(|place| touched[place]).collect();
    let components: Vec<u32> = by_index.iter().map(|server| component(*server)).collect();
    order(&components).into_iter().map(|place| by_index[place]).collect()
}

/// The ancestor's number of a component: processes are 12, 22, 32, …, servers go on from there.
pub(crate) fn component(target: u32) -> u32 {
    12 + 10 * target
}

#[cfg(test)]
mod tests {
    use super::*;

    fn components(targets: impl IntoIterator<Item = u32>) -> Vec<u32> {
        targets.into_iter().map(component).collect()
    }

    #[test]
    fn ten_servers_are_addressed_in_the_published_order() {
        assert_eq!(order(&components(10..20)), [4, 9, 6, 3, 0, 5, 7, 8, 2, 1]);
    }

    #[test]
    fn ranks_leave_the_opening_barrier_in_the_published_order() {
        let arrived = [5, 6, 9, 0, 4, 8, 3, 1, 2];
        let left = order(&components(arrived)).into_iter().map(|place| arrived[place]);
        assert_eq!(left.collect::<Vec<_>>(), [9, 2, 1, 4, 3, 8, 0, 6, 5]);
    }

    #[test]
    fn chains_are_reversed_when_the_thirteenth_key_makes_the_table_grow() {
        // 0 and 32 share a bucket of 16 and of 32; the spread of 32 is 34, so 2 shares it instead.
        let mut keys = vec![2, 32];
        assert_eq!(order(&keys), [1, 0]);
        keys.extend(3..14);
        assert_eq!(keys.len(), 13);
        assert_eq!(order(&keys)[..2], [0, 1], "walked from the head, put in at the head");
    }

    #[test]
    fn which_servers_a_request_touches_first_matters_only_beyond_sixteen() {
        let of = |touched: &[u32]| servers_of_request(touched, |server| component(10 + server));
        assert_eq!(of(&[8, 9, 0, 1, 2, 3]), of(&[0, 1, 2, 3, 8, 9]));
        assert_eq!(of(&[8, 9, 0, 1, 2, 3]), [9, 3, 0, 8, 2, 1]);
        // These two share a chain in both tables.
        assert_ne!(of(&[5, 20]), of(&[20, 5]));
    }
}
