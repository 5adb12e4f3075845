//! One trace of the parts that the ranks of a job recorded each for itself.
//!
//! Headers are joined first; they tell how the rows of each part are to be read ([`Seat`]): files of
//! one path are one file, processes follow each other, times count from the earliest start. Rows then
//! pass one by one, so that a directory of parts is read in the memory of its largest row group.
//!
//! Parts of one machine share its monotonic clock and its files. Parts of several machines are
//! aligned by their wall clocks, which the joined header says; a path on a file system that every
//! machine has for itself is a file per machine.

use crate::{
    Class, Event, FileEntry, Function, Header, Layer, ObjectEntry, PhaseEntry, ProcessEntry,
};
use iolab_vocab::{FileId, Nanos};
use std::collections::{BTreeMap, BTreeSet};

/// File systems that several machines may share; any other is each machine's own.
const SHARED_FILE_SYSTEMS: [&str; 14] = [
    "nfs", "lustre", "gpfs", "beegfs", "ceph", "panfs", "cifs", "smb", "orangefs", "pvfs", "9p",
    "fuse", "dvs", "afs",
];

/// What the joined header says of a rank that left no part.
const NO_PART: &str = "of its job, which left no part of this trace";

/// How a part's rows become rows of the joined trace.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Seat {
    files: Vec<FileId>,
    communicators: Vec<i64>,
    objects: Vec<i64>,
    first_process: u32,
    shift_ns: u64,
}

impl Seat {
    /// The row as one of the joined trace, in which the part begins at `first_row`.
    pub fn carry(&self, event: &Event, first_row: u64) -> Event {
        let file = |id: FileId| {
            id.index().and_then(|at| self.files.get(at)).copied().unwrap_or(FileId::NONE)
        };
        let names_file = matches!(event.function.class(), Class::Rename | Class::Copy);
        let argument = match event.argument {
            other if names_file && other >= 0 => {
                file(FileId(other as u32)).index().map_or(-1, |at| at as i64)
            }
            other => other,
        };
        let placed = |places: &[i64], index: i64| {
            let at = usize::try_from(index).ok();
            at.and_then(|at| places.get(at)).copied().unwrap_or(index)
        };
        let communicator = |index: i64| placed(&self.communicators, index);
        let argument = match event.function.layer() {
            Layer::Hdf5 => placed(&self.objects, argument),
            _ => argument,
        };
        let (mut fd, mut offset) = (event.fd, event.offset);
        if event.function.layer() == Layer::Mpi {
            fd = communicator(fd.into()) as i32;
        }
        if event.function == Function::MPI_FILE_OPEN {
            offset = communicator(offset);
        }
        Event {
            fd,
            offset,
            process: event.process + self.first_process,
            file: file(event.file),
            argument,
            start: Nanos(event.start.0 + self.shift_ns),
            end: Nanos(event.end.0 + self.shift_ns),
            parent: if event.parent < 0 { -1 } else { event.parent + first_row as i64 },
            ..*event
        }
    }
}

/// Joins the headers of parts, in the order in which their rows will follow each other.
pub fn headers(parts: &[Header]) -> (Header, Vec<Seat>) {
    let Some(first) = parts.first() else { return (Header::default(), Vec::new()) };
    if let [_] = parts {
        return (with_missing_ranks(first.clone()), vec![seat_of_the_only(first)]);
    }
    let one_machine = machines(parts).len() <= 1;
    let zero_of = |header: &Header| match one_machine {
        true => header.clock.zero_monotonic_ns,
        false => header.clock.zero_unix_ns,
    };
    let earliest = parts.iter().min_by_key(|header| zero_of(header)).unwrap_or(first);
    let mut joined = Header {
        clock: earliest.clock.clone(),
        environment: common_environment(parts),
        processes: Vec::new(),
        files: Vec::new(),
        communicators: Vec::new(),
        objects: Vec::new(),
        phases: Vec::new(),
        ..first.clone()
    };
    let mut files = Files { by_name: BTreeMap::new(), one_machine };
    let mut seats = Vec::new();
    for (at, part) in parts.iter().enumerate() {
        let shift_ns = zero_of(part) - zero_of(earliest);
        let machine = part.parts.first().map_or("", |it| it.host.as_str());
        let of_part: Vec<FileId> =
            part.files.iter().map(|it| files.place(it, machine, &mut joined)).collect();
        let in_joined = |object: &ObjectEntry| ObjectEntry {
            file: of_part.get(object.file as usize).map_or(u32::MAX, |file| file.0),
            ..object.clone()
        };
        seats.push(Seat {
            objects: (part.objects.iter())
                .map(|object| place_of(in_joined(object), &mut joined.objects))
                .collect(),
            files: of_part,
            communicators: (part.communicators.iter())
                .map(|members| place_of(members.clone(), &mut joined.communicators))
                .collect(),
            first_process: joined.processes.len() as u32,
            shift_ns,
        });
        joined.processes.extend(part.processes.iter().map(|it| later(it, shift_ns)));
        joined.phases.extend(part.phases.iter().map(|it| PhaseEntry {
            start_ns: it.start_ns + shift_ns,
            end_ns: it.end_ns + shift_ns,
            ..it.clone()
        }));
        if at > 0 {
            add(&mut joined, part);
        }
    }
    if !one_machine {
        let count = machines(parts).len();
        joined
            .inferred
            .push(format!("times between {count} machines, aligned by their wall clocks"));
    }
    (with_missing_ranks(joined), seats)
}

/// Communicators of the same ranks are one, and objects of one name in one file.
fn place_of<T: PartialEq>(one: T, joined: &mut Vec<T>) -> i64 {
    let known = joined.iter().position(|listed| *listed == one);
    known.unwrap_or_else(|| {
        joined.push(one);
        joined.len() - 1
    }) as i64
}

fn seat_of_the_only(header: &Header) -> Seat {
    Seat { files: (0..header.files.len() as u32).map(FileId).collect(), ..Seat::default() }
}

fn machines(parts: &[Header]) -> BTreeSet<&str> {
    parts.iter().flat_map(|header| &header.parts).map(|part| part.machine.as_str()).collect()
}

fn later(process: &ProcessEntry, shift_ns: u64) -> ProcessEntry {
    ProcessEntry {
        start_ns: process.start_ns + shift_ns,
        end_ns: process.end_ns + shift_ns,
        ..process.clone()
    }
}

/// Variables that all parts agree on; what differs is each rank's own (its number, its sockets).
fn common_environment(parts: &[Header]) -> BTreeMap<String, String> {
    let mut common = parts[0].environment.clone();
    common.retain(|name, value| parts.iter().all(|it| it.environment.get(name) == Some(value)));
    common
}

/// What is more in a later part.
fn add(joined: &mut Header, part: &Header) {
    for (point, kind) in &part.mounts {
        joined.mounts.entry(point.clone()).or_insert_with(|| kind.clone());
    }
    joined.clock.resolution_ns = joined.clock.resolution_ns.max(part.clock.resolution_ns);
    joined.overhead_ns = joined.overhead_ns.max(part.overhead_ns);
    if joined.interposer != part.interposer {
        joined.interposer = "plt-only".to_owned();
    }
    for (reason, count) in &part.losses.lost_calls {
        *joined.losses.lost_calls.entry(reason.clone()).or_default() += count;
    }
    for (reason, count) in &part.losses.left_out_calls {
        *joined.losses.left_out_calls.entry(reason.clone()).or_default() += count;
    }
    for unseen in &part.losses.unseen {
        if !joined.losses.unseen.contains(unseen) {
            joined.losses.unseen.push(unseen.clone());
        }
    }
    for fact in &part.inferred {
        if !joined.inferred.contains(fact) {
            joined.inferred.push(fact.clone());
        }
    }
    joined.parts.extend(part.parts.iter().cloned());
}

/// Says which ranks of the job are not there.
fn with_missing_ranks(mut header: Header) -> Header {
    header.losses.unseen.retain(|line| !line.ends_with(NO_PART));
    let size = header.parts.iter().map(|part| part.size).max().unwrap_or(0);
    let there: BTreeSet<u32> = header.parts.iter().map(|part| part.rank).collect();
    let missing: Vec<u32> = (0..size).filter(|rank| !there.contains(rank)).collect();
    if let (Some(first), Some(last)) = (missing.first(), missing.last()) {
        let ranks = match missing.len() as u32 {
            1 => format!("rank {first}"),
            count if count == last - first + 1 => format!("ranks {first} to {last}"),
            count => format!("{count} ranks between {first} and {last}"),
        };
        header.losses.unseen.push(format!("{ranks} of {size} {NO_PART}"));
    }
    header
}

/// Files of the joined trace by what makes two of them one.
struct Files {
    by_name: BTreeMap<(String, String), FileId>,
    one_machine: bool,
}

impl Files {
    fn place(&mut self, entry: &FileEntry, machine: &str, joined: &mut Header) -> FileId {
        let kind = entry.file_system.as_str();
        let shared = self.one_machine
            || kind.is_empty()
            || SHARED_FILE_SYSTEMS.iter().any(|it| kind.starts_with(it));
        let owner = if shared { "" } else { machine };
        let key = (owner.to_owned(), entry.path.clone());
        if let Some(&id) = self.by_name.get(&key) {
            return id;
        }
        let taken = joined.files.iter().any(|it| it.path == entry.path);
        let path = match taken {
            true => format!("/{owner}:{}", entry.path),
            false => entry.path.clone(),
        };
        let id = FileId(joined.files.len() as u32);
        joined.files.push(FileEntry { path, ..entry.clone() });
        self.by_name.insert(key, id);
        id
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Function, Part};

    fn part(rank: u32, host: &str, machine: &str, paths: &[&str], zero: u64) -> Header {
        let file = |path: &&str| FileEntry { path: (*path).into(), file_system: "ext4".into() };
        let mut header = Header {
            files: paths.iter().map(file).collect(),
            processes: vec![ProcessEntry { rank: rank as i32, ..ProcessEntry::default() }],
            parts: vec![Part {
                job: "j".into(),
                rank,
                size: 3,
                host: host.into(),
                machine: machine.into(),
            }],
            ..Header::default()
        };
        header.clock.zero_monotonic_ns = zero;
        header.clock.zero_unix_ns = 1000 + zero;
        header.environment =
            [("PMI_RANK".into(), rank.to_string()), ("A".into(), "b".into())].into();
        header
    }

    #[test]
    fn files_of_one_path_are_one_and_processes_follow_each_other() {
        let parts = [part(0, "n", "m", &["/a", "/b"], 50), part(1, "n", "m", &["/b", "/c"], 20)];
        let (joined, seats) = headers(&parts);
        let paths: Vec<_> = joined.files.iter().map(|it| it.path.as_str()).collect();
        assert_eq!(paths, ["/a", "/b", "/c"]);
        let event = Event { file: FileId(0), parent: 2, ..Event::of(Function::PWRITE) };
        let carried = seats[1].carry(&event, 10);
        assert_eq!((carried.file, carried.process, carried.parent), (FileId(1), 1, 12));
        assert_eq!(seats[0].carry(&event, 0).start, Nanos(30), "20 is the earlier zero");
        assert_eq!(joined.environment.len(), 1, "each rank's own variables are left out");
    }

    #[test]
    fn objects_of_one_name_in_one_file_are_one_in_all_parts() {
        let mut parts = [part(0, "n", "m", &["/a", "/b"], 0), part(1, "n", "m", &["/b", "/a"], 0)];
        let object =
            |file, path: &str| ObjectEntry { file, path: path.into(), ..Default::default() };
        parts[0].objects = vec![object(0, "/d"), object(1, "/d")];
        parts[1].objects = vec![object(0, "/d"), object(1, "/e")];
        let (joined, seats) = headers(&parts);
        assert_eq!(joined.objects, [object(0, "/d"), object(1, "/d"), object(0, "/e")]);
        let carried = |argument| {
            let write = Event { argument, ..Event::of(Function::H5D_WRITE) };
            seats[1].carry(&write, 0).argument
        };
        assert_eq!([0, 1, -1].map(carried), [1, 2, -1]);
    }

    #[test]
    fn communicators_of_the_same_ranks_are_one_in_all_parts() {
        let mut parts = [part(0, "n", "m", &[], 0), part(1, "n", "m", &[], 0)];
        parts[0].communicators = vec![vec![0, 1], vec![0]];
        parts[1].communicators = vec![vec![1], vec![0, 1]];
        let (joined, seats) = headers(&parts);
        assert_eq!(joined.communicators, [vec![0, 1], vec![0], vec![1]]);
        let barrier = Event { fd: 1, ..Event::of(Function::MPI_BARRIER) };
        assert_eq!(seats[1].carry(&barrier, 0).fd, 0);
        let open = Event { fd: 9, offset: 0, ..Event::of(Function::MPI_FILE_OPEN) };
        let carried = seats[1].carry(&open, 0);
        assert_eq!((carried.fd, carried.offset), (9, 2), "its descriptor stays");
    }

    #[test]
    fn a_rank_without_a_part_is_named_once_however_often_parts_are_joined() {
        let parts = [part(0, "n", "m", &[], 0), part(2, "n", "m", &[], 0)];
        let (joined, _) = headers(&parts);
        assert_eq!(joined.losses.unseen.len(), 1);
        assert!(joined.losses.unseen[0].starts_with("rank 1 of 3"), "{:?}", joined.losses);
        let (again, _) = headers(std::slice::from_ref(&joined));
        assert_eq!(again.losses, joined.losses);
        let (whole, _) = headers(&[joined, part(1, "n", "m", &[], 0)]);
        assert!(whole.losses.unseen.is_empty());
    }

    #[test]
    fn missing_ranks_in_a_row_are_told_as_a_row() {
        let told = |there: &[u32]| {
            let parts: Vec<Header> = there
                .iter()
                .map(|&rank| {
                    let mut header = part(rank, "n", "m", &[], 0);
                    header.parts[0].size = 6;
                    header
                })
                .collect();
            headers(&parts).0.losses.unseen.join("")
        };
        let lacking = |ranks: &str| format!("{ranks} of 6 {NO_PART}");
        assert_eq!(told(&[0, 1, 2, 4, 5]), lacking("rank 3"));
        assert_eq!(told(&[0, 4, 5]), lacking("ranks 1 to 3"));
        assert_eq!(told(&[0, 2, 4, 5]), lacking("2 ranks between 1 and 3"));
        assert_eq!(told(&[0, 1, 2, 3, 4, 5]), "");
    }

    #[test]
    fn the_second_file_of_a_rename_is_carried_along_and_flags_are_not() {
        let parts = [part(0, "n", "m", &["/a", "/b"], 0), part(1, "n", "m", &["/c", "/b"], 0)];
        let (_, seats) = headers(&parts);
        let carried = |function, argument| {
            let event = Event { file: FileId(0), argument, ..Event::of(function) };
            let carried = seats[1].carry(&event, 5);
            assert_eq!((carried.file, carried.parent), (FileId(2), -1));
            carried.argument
        };
        for function in [Function::RENAME, Function::COPY_FILE_RANGE] {
            assert_eq!([0, 1, 9, -1].map(|id| carried(function, id)), [2, 1, -1, -1]);
        }
        assert_eq!([0, 1, 9, -1].map(|flags| carried(Function::OPEN, flags)), [0, 1, 9, -1]);
    }

    #[test]
    fn what_all_parts_say_is_said_once_and_what_they_lost_is_added() {
        let mut parts = [part(0, "n", "m", &[], 0), part(1, "n", "m", &[], 0)];
        for (header, count) in parts.iter_mut().zip([3, 4]) {
            header.losses.lost_calls.insert("disk".into(), count);
            header.losses.left_out_calls.insert("pipe".into(), 10 * count);
            header.losses.unseen.push("raw system calls".into());
            header.inferred.push("offsets".into());
            header.overhead_ns = count;
            header.clock.resolution_ns = count;
            header.interposer = "entry-patch".into();
            header.mounts.insert(format!("/m{count}"), "ext4".into());
        }
        parts.iter_mut().for_each(|header| header.parts[0].size = 2);
        let (joined, _) = headers(&parts);
        assert_eq!(joined.environment, [("A".into(), "b".into())].into());
        assert_eq!(joined.losses.lost_calls, [("disk".into(), 7)].into());
        assert_eq!(joined.losses.left_out_calls, [("pipe".into(), 70)].into());
        assert_eq!(joined.losses.unseen, ["raw system calls"]);
        assert_eq!(joined.inferred, ["offsets"]);
        assert_eq!((joined.overhead_ns, joined.clock.resolution_ns), (4, 4));
        assert_eq!((joined.interposer.as_str(), joined.mounts.len()), ("entry-patch", 2));
        parts[1].interposer = "plt-only".into();
        assert_eq!(headers(&parts).0.interposer, "plt-only", "the least of them holds for all");
    }

    #[test]
    fn a_local_path_on_two_machines_is_two_files_and_a_shared_one_is_one() {
        let mut parts = [
            part(0, "n1", "m1", &["/tmp/x", "/w/y"], 0),
            part(1, "n2", "m2", &["/tmp/x", "/w/y"], 0),
        ];
        for header in &mut parts {
            header.files[1].file_system = "lustre".into();
        }
        let (joined, seats) = headers(&parts);
        let paths: Vec<_> = joined.files.iter().map(|it| it.path.as_str()).collect();
        assert_eq!(paths, ["/tmp/x", "/w/y", "/n2:/tmp/x"]);
        assert_eq!(seats[1].files, [FileId(2), FileId(1)]);
        assert!(joined.inferred[0].contains("2 machines"));
    }
}
