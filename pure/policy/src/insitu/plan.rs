//! Plans of reads: where a recorded run read its files, in order, in a form that a program's library maps as
//! it is. Bytes that are no such plan are refused; a file's reads are decoded when it is opened.
//!
//! A *lane* is what one descriptor of one recorded process read of one file: runs of bytes, one behind the
//! other. Reads that follow each other are one run, so a run that is read again with buffers of another size
//! is the same.
//!
//! Layout: [`MAGIC`], then for each file the length of its path, the path, the number of its lanes, and for
//! each lane its length in bytes and its runs: distance from the end of the run before and length. Numbers are
//! LEB128, distances zigzag.

mod follower;

pub(super) use follower::Follower;

use iolab_trace::{Class, Event, Layer, Trace};
use iolab_vocab::{Extent, FileId, Refusal, varint};
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;

/// "iolabpl", and the version of what follows.
const MAGIC: &[u8; 8] = b"iolabpl1";

/// Runs of bytes of one file, in the order in which they were read.
pub type Lane = Arc<[Extent]>;

/// See the module.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Plan {
    bytes: Cow<'static, [u8]>,
    /// By path: where the file's lanes begin.
    files: BTreeMap<String, usize>,
}

impl Plan {
    /// The plan that a recorded run makes.
    ///
    /// # Errors
    /// That it reads no file.
    pub fn of(trace: &Trace) -> Result<Plan, Refusal> {
        let mut lanes: BTreeMap<(FileId, u32, i32), Vec<Extent>> = BTreeMap::new();
        for event in trace.events.iter().filter(|event| is_read(event)) {
            let lane = lanes.entry((event.file, event.process, event.fd)).or_default();
            let read = Extent::new(event.offset as u64, event.result as u64);
            match lane.last_mut().filter(|last| last.end() == read.offset) {
                Some(last) => last.length += read.length,
                None => lane.push(read),
            }
        }
        let mut by_file: BTreeMap<&str, Vec<Vec<Extent>>> = BTreeMap::new();
        for ((file, ..), lane) in lanes {
            if let Some(entry) = file.index().and_then(|file| trace.header.files.get(file)) {
                by_file.entry(&entry.path).or_default().push(lane);
            }
        }
        // Many processes may have read a file alike.
        for lanes in by_file.values_mut() {
            lanes.sort_unstable();
            lanes.dedup();
        }
        if by_file.is_empty() {
            return Err(Refusal {
                message: "the recorded run reads no file by system calls".to_owned(),
                hint: "record the program that reads: `iolab record -o RUN.iot -- COMMAND`".into(),
            });
        }
        Plan::read(encoded(&by_file).into())
    }

    /// Reads what [`Plan::bytes`] gave.
    ///
    /// # Errors
    /// That these bytes are no plan, or a damaged one.
    pub fn read(bytes: Cow<'static, [u8]>) -> Result<Plan, Refusal> {
        let refusal = |what: &str| Refusal {
            message: format!("this is no plan of reads: {what}"),
            hint: "plans are made by `iolab run` from the trace that plan= names".to_owned(),
        };
        let Some(mut rest) = bytes.strip_prefix(MAGIC) else {
            return Err(refusal("it does not begin as one"));
        };
        let mut files = BTreeMap::new();
        while !rest.is_empty() {
            let (path, lanes) = take_file(&mut rest).ok_or_else(|| refusal("it is damaged"))?;
            files.insert(path.to_owned(), bytes.len() - lanes.len());
        }
        Ok(Plan { bytes, files })
    }

    /// As it travels to another process.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// How many files the recorded run read.
    pub fn file_count(&self) -> usize {
        self.files.len()
    }

    /// What the recorded run read of a file of that name. A run in another directory reads files of other
    /// names: then it is the one recorded file that has most of the last names of the path in common, its own
    /// name at least.
    pub fn lanes(&self, path: &str) -> Vec<Lane> {
        let exact = self.files.get(path);
        let Some(&at) = exact.or_else(|| self.alike(path)) else { return Vec::new() };
        lanes(&self.bytes[at..]).unwrap_or_default()
    }

    fn alike(&self, path: &str) -> Option<&usize> {
        let common = |other: &str| {
            let pairs = path.rsplit('/').zip(other.rsplit('/'));
            pairs.take_while(|(one, other)| one == other && !one.is_empty()).count()
        };
        let alike = self.files.iter().map(|(other, at)| (common(other), at));
        let most = alike.clone().map(|it| it.0).max().filter(|&most| most > 0)?;
        let mut best = alike.filter(|it| it.0 == most);
        let (_, at) = best.next()?;
        best.next().is_none().then_some(at)
    }
}

fn is_read(event: &Event) -> bool {
    event.function.class() == Class::Read
        && event.function.layer() == Layer::Posix
        && event.offset >= 0
        && event.result > 0
        && event.offset.checked_add(event.result).is_some()
}

fn encoded(files: &BTreeMap<&str, Vec<Vec<Extent>>>) -> Vec<u8> {
    let mut bytes = MAGIC.to_vec();
    for (path, lanes) in files {
        put_piece(path.as_bytes(), &mut bytes);
        varint::put(lanes.len() as u64, &mut bytes);
        for lane in lanes {
            let (mut runs, mut end) = (Vec::new(), 0);
            for run in lane {
                let distance = run.offset.wrapping_sub(end) as i64;
                varint::put(varint::zigzag(distance), &mut runs);
                varint::put(run.length, &mut runs);
                end = run.end();
            }
            put_piece(&runs, &mut bytes);
        }
    }
    bytes
}

fn put_piece(piece: &[u8], bytes: &mut Vec<u8>) {
    varint::put(piece.len() as u64, bytes);
    bytes.extend_from_slice(piece);
}

/// Path of the file that the rest begins with, and the bytes that begin with its lanes.
fn take_file<'b>(rest: &mut &'b [u8]) -> Option<(&'b str, &'b [u8])> {
    let path = std::str::from_utf8(take_piece(rest)?).ok()?;
    let lanes = *rest;
    for _ in 0..varint::take(rest)? {
        take_piece(rest)?;
    }
    Some((path, lanes))
}

fn lanes(mut rest: &[u8]) -> Option<Vec<Lane>> {
    let count = varint::take(&mut rest)?;
    (0..count).map(|_| lane(take_piece(&mut rest)?)).collect()
}

fn lane(mut rest: &[u8]) -> Option<Lane> {
    let (mut runs, mut end) = (Vec::new(), 0u64);
    while !rest.is_empty() {
        let distance = varint::unzigzag(varint::take(&mut rest)?);
        let (offset, length) = (end.wrapping_add_signed(distance), varint::take(&mut rest)?);
        end = offset.checked_add(length).filter(|_| length > 0)?;
        runs.push(Extent::new(offset, length));
    }
    Some(runs.into())
}

/// As many bytes as the number before them says.
fn take_piece<'b>(rest: &mut &'b [u8]) -> Option<&'b [u8]> {
    let length = usize::try_from(varint::take(rest)?).ok()?;
    let (piece, after) = rest.split_at_checked(length)?;
    *rest = after;
    Some(piece)
}

#[cfg(test)]
mod tests {
    use super::*;
    use iolab_trace::{FileEntry, Function, Header};

    fn read(process: u32, file: u32, offset: i64, length: i64) -> Event {
        let file = FileId(file);
        Event { process, file, fd: 3, offset, result: length, ..Event::of(Function::PREAD) }
    }

    fn trace(paths: &[&str], events: Vec<Event>) -> Trace {
        let entry = |path: &&str| FileEntry { path: (*path).to_owned(), ..FileEntry::default() };
        let files = paths.iter().map(entry).collect();
        Trace { header: Header { files, ..Header::default() }, events, ..Trace::default() }
    }

    fn lanes_of(plan: &Plan, path: &str) -> Vec<Vec<(u64, u64)>> {
        let runs = |lane: &Lane| lane.iter().map(|run| (run.offset, run.length)).collect();
        plan.lanes(path).iter().map(runs).collect()
    }

    #[test]
    fn each_descriptors_reads_are_a_lane_and_those_that_follow_each_other_a_run() {
        let failed = Event { result: -5, ..read(0, 0, 0, 0) };
        let events = vec![
            read(0, 0, 100, 10),
            read(1, 0, 0, 5),
            failed,
            read(0, 0, 110, 10),
            read(0, 1, 7, 1),
            read(0, 0, 0, 20),
            Event { fd: 4, ..read(0, 0, 50, 1) },
            read(2, 0, 0, 5),
        ];
        let plan = Plan::of(&trace(&["/d/a", "/d/b"], events)).unwrap();
        let again = Plan::read(plan.bytes().to_vec().into()).unwrap();
        assert_eq!(again, plan);
        let expected = [vec![(0, 5)], vec![(50, 1)], vec![(100, 20), (0, 20)]];
        assert_eq!(lanes_of(&plan, "/d/a"), expected);
        assert_eq!(lanes_of(&plan, "/d/b"), [[(7, 1)]]);
        assert_eq!((plan.file_count(), plan.lanes("/d/c").len()), (2, 0));
    }

    #[test]
    fn a_file_is_known_by_the_end_of_its_path_where_only_one_is_like_it() {
        let events = (0..4).map(|file| read(0, file, i64::from(file), 1)).collect();
        let paths = ["/old/run/in/a", "/old/run/out/a", "/old/b", "/old/c"];
        let plan = Plan::of(&trace(&paths, events)).unwrap();
        assert_eq!(lanes_of(&plan, "/new/in/a"), [[(0, 1)]]);
        assert_eq!(lanes_of(&plan, "/new/x/b"), [[(2, 1)]]);
        assert!(plan.lanes("/new/a").is_empty(), "one of two");
        assert!(plan.lanes("/new/d").is_empty());
        assert!(plan.lanes("").is_empty());
    }

    #[test]
    fn what_is_no_plan_or_cut_short_is_refused() {
        assert!(Plan::of(&trace(&["/a"], vec![])).unwrap_err().message.contains("reads no file"));
        let plan = Plan::of(&trace(&["/d/a"], vec![read(0, 0, 1 << 40, 300)])).unwrap();
        let whole = plan.bytes();
        for length in (0..whole.len()).filter(|&length| length != MAGIC.len()) {
            assert!(
                Plan::read(whole[..length].to_vec().into()).is_err(),
                "{length} of {}",
                whole.len()
            );
        }
        let mut huge = MAGIC.to_vec();
        huge.extend([0xff; 9]);
        assert!(Plan::read(huge.into()).is_err());
        for place in MAGIC.len()..whole.len() {
            let mut damaged = whole.to_vec();
            damaged[place] ^= 0x55;
            if let Ok(plan) = Plan::read(damaged.into()) {
                let _ = plan.lanes("/d/a");
            }
        }
    }
}
