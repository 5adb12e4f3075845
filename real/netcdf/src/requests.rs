//! Accesses that PnetCDF was told to do later: what moves when they are waited for.

use crate::objects::On;
use std::collections::BTreeMap;
use std::ffi::c_int;

/// `NC_REQ_ALL`, `NC_GET_REQ_ALL`, `NC_PUT_REQ_ALL`: not a count of requests but all of a kind.
const ALL: c_int = -1;
const ALL_READS: c_int = -2;
const ALL_WRITES: c_int = -3;

/// An access that is posted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Posted {
    pub(crate) on: On,
    pub(crate) path: Vec<u8>,
    pub(crate) bytes: i64,
    pub(crate) is_read: bool,
}

/// By library, file and number of the request. One without a number is done with the first that waits for all.
#[derive(Debug)]
pub(crate) struct Requests(BTreeMap<(usize, c_int), OfFile>);

/// Those of one file, with their numbers.
type OfFile = Vec<(Option<c_int>, Posted)>;

impl Requests {
    pub(crate) const fn none() -> Requests {
        Requests(BTreeMap::new())
    }

    pub(crate) fn post(&mut self, library: usize, file: c_int, id: Option<c_int>, posted: Posted) {
        let of_file = self.0.entry((library, file)).or_default();
        // A number is given out again when its request is done.
        of_file.retain(|(known, _)| id.is_none() || *known != id);
        of_file.push((id, posted));
    }

    /// Those that a call is for which waits for `count` of the numbers `ids`. They are gone.
    pub(crate) fn done(
        &mut self,
        library: usize,
        file: c_int,
        count: c_int,
        ids: &[c_int],
    ) -> Vec<Posted> {
        let Some(of_file) = self.0.get_mut(&(library, file)) else { return Vec::new() };
        let is_done = |id: Option<c_int>, posted: &Posted| match count {
            ALL => true,
            ALL_READS => posted.is_read,
            ALL_WRITES => !posted.is_read,
            _ => id.is_some_and(|id| ids.contains(&id)),
        };
        of_file.extract_if(.., |(id, posted)| is_done(*id, posted)).map(|it| it.1).collect()
    }

    pub(crate) fn forget(&mut self, library: usize, file: c_int) {
        self.0.remove(&(library, file));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn posted(bytes: i64, is_read: bool) -> Posted {
        Posted { on: On { file: 1, text: 2 }, path: b"/a".to_vec(), bytes, is_read }
    }

    #[test]
    fn a_wait_is_for_the_requests_it_names_or_for_all_of_a_kind() {
        let mut requests = Requests::none();
        for (id, is_read) in [(0, false), (1, true), (2, false), (3, true)] {
            requests.post(7, 1, Some(id), posted(10 + i64::from(id), is_read));
        }
        requests.post(7, 2, Some(0), posted(99, false));
        let bytes = |done: Vec<Posted>| done.iter().map(|it| it.bytes).collect::<Vec<_>>();
        assert_eq!(bytes(requests.done(7, 1, 2, &[2, 5])), [12]);
        assert_eq!(bytes(requests.done(7, 1, ALL_READS, &[])), [11, 13]);
        assert_eq!(bytes(requests.done(7, 1, ALL_WRITES, &[])), [10]);
        assert_eq!(bytes(requests.done(7, 1, ALL, &[])), [0i64; 0]);
        requests.post(7, 1, Some(0), posted(1, false));
        requests.post(7, 1, Some(0), posted(2, false));
        requests.post(7, 1, None, posted(3, false));
        assert_eq!(bytes(requests.done(7, 1, 1, &[0])), [2], "the later of one number");
        requests.post(7, 1, Some(4), posted(4, false));
        assert_eq!(bytes(requests.done(7, 1, ALL, &[])), [3, 4]);
        assert_eq!(bytes(requests.done(7, 2, 1, &[0])), [99], "another file's are its own");
    }
}
