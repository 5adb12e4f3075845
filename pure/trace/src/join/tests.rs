//! Headers of parts, joined.

use super::missing::NO_PART;
use super::*;
use crate::{FileEntry, Function, Part, Partner};
use iolab_vocab::Nanos;

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
    header.environment = [("PMI_RANK".into(), rank.to_string()), ("A".into(), "b".into())].into();
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
    let object = |file, path: &str| ObjectEntry { file, path: path.into(), ..Default::default() };
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
    let mut parts =
        [part(0, "n1", "m1", &["/tmp/x", "/w/y"], 0), part(1, "n2", "m2", &["/tmp/x", "/w/y"], 0)];
    for header in &mut parts {
        header.files[1].file_system = "lustre".into();
    }
    let (joined, seats) = headers(&parts);
    let paths: Vec<_> = joined.files.iter().map(|it| it.path.as_str()).collect();
    assert_eq!(paths, ["/tmp/x", "/w/y", "/n2:/tmp/x"]);
    assert_eq!(seats[1].files, [FileId(2), FileId(1)]);
    assert!(joined.inferred[0].contains("2 machines"));
}

const SECOND: u64 = 1_000_000_000;

/// Two ranks on two machines that say something to each other every 10 ms. The second clock is 1 s ahead and
/// runs 50 ppm fast; what takes 100 us is there after as long.
fn met(wanted: impl Fn(&Event) -> bool) -> ([Header; 2], [Vec<Event>; 2]) {
    let mut parts = [part(0, "n1", "m1", &[], 10 * SECOND), part(1, "n2", "m2", &[], 0)];
    parts[1].clock.zero_unix_ns = parts[0].clock.zero_unix_ns + SECOND;
    let mut rows = [Vec::new(), Vec::new()];
    for rank in [0, 1] {
        parts[rank].communicators = vec![vec![0, 1]];
        let other = Partner::to_field(Some(Partner { rank: Some(1 - rank as u32), tag: Some(7) }));
        for number in 0..1000 {
            let right = number * 10_000_000;
            let shown = |right: u64| match rank {
                0 => Nanos(right),
                _ => Nanos(right + right * 50 / 1_000_000),
            };
            let row = |function, from, to| Event {
                rank: rank as i32,
                fd: 0,
                start: shown(right + from),
                end: shown(right + to),
                ..Event::of(function)
            };
            let all = [
                Event { argument: other, length: 8, ..row(Function::MPI_SEND, 0, 2000) },
                Event { offset: other, ..row(Function::MPI_RECV, 3000, 100_000) },
                row(Function::MPI_BARRIER, 110_000 + 50_000 * rank as u64, 200_000),
            ];
            rows[rank].extend(all.into_iter().filter(|row| wanted(row)));
        }
        parts[rank].processes[0].end_ns = 10 * SECOND;
    }
    (parts, rows)
}

/// The joined header, and how far each effect lies before its cause: nothing, if it does not.
fn joined(parts: &[Header; 2], rows: &[Vec<Event>; 2]) -> (Header, u64) {
    let mut joining = Joining::of(parts);
    assert!(joining.wants_rows());
    for (part, rows) in rows.iter().enumerate() {
        rows.iter().for_each(|row| joining.see(part, row));
    }
    let (header, seats) = joining.finish();
    let carried = |part: usize, function: Function| -> Vec<Event> {
        let of_function = rows[part].iter().filter(move |row| row.function == function);
        of_function.map(|row| seats[part].carry(row, 0)).collect()
    };
    let mut early = 0;
    for (one, other) in [(0, 1), (1, 0)] {
        let causes = [
            (Function::MPI_SEND, Function::MPI_RECV),
            (Function::MPI_BARRIER, Function::MPI_BARRIER),
        ];
        for (cause, effect) in causes {
            for (cause, effect) in carried(one, cause).iter().zip(carried(other, effect)) {
                early = early.max(cause.start.0.saturating_sub(effect.end.0));
            }
        }
    }
    (header, early)
}

#[test]
fn clocks_apart_are_aligned_by_messages_and_no_effect_lies_before_its_cause() {
    let kinds: [fn(&Event) -> bool; 3] = [
        |_| true,
        |row| row.function != Function::MPI_BARRIER,
        |row| row.function == Function::MPI_BARRIER,
    ];
    for wanted in kinds {
        let (parts, rows) = met(wanted);
        let (header, early) = joined(&parts, &rows);
        let clock = &header.clocks[1];
        let bound = clock.bound_ns.unwrap();
        assert!(early <= bound && bound < 150_000, "{early} ns, stated {bound}");
        assert!(clock.by_messages && (clock.offset_ns + SECOND as i64).unsigned_abs() <= bound);
        assert!((clock.rate_ppm + 50.0).abs() < 10.0, "{clock:?}");
        assert_eq!(header.clocks[0].bound_ns, Some(0));
        assert!(header.inferred[0].contains("2 machines, aligned by"), "{:?}", header.inferred);
        assert!(header.processes[1].start_ns < 150_000, "it began with the other one");
    }
}

#[test]
fn messages_that_cannot_be_matched_tell_nothing() {
    let (parts, mut rows) = met(|row| row.function != Function::MPI_BARRIER);
    let any = Partner::to_field(Some(Partner { rank: None, tag: Some(7) }));
    for row in rows.iter_mut().flatten().filter(|row| row.function == Function::MPI_RECV) {
        row.offset = any;
    }
    let (header, _) = joined(&parts, &rows);
    assert!(!header.clocks[1].by_messages && header.clocks[1].bound_ns.is_none());
    let (parts, mut rows) = met(|row| row.function != Function::MPI_BARRIER);
    for rows in &mut rows {
        let first = rows.iter().position(|row| row.function == Function::MPI_RECV).unwrap();
        rows.remove(first);
    }
    assert!(!joined(&parts, &rows).0.clocks[1].by_messages, "one receive is missing");
}

#[test]
fn parts_without_a_common_event_keep_their_wall_clocks_and_say_so() {
    let (mut parts, _) = met(|_| true);
    let (header, seats) = headers(&parts);
    assert_eq!(seats[1].carry(&Event::of(Function::WRITE), 0).start, Nanos(SECOND));
    assert_eq!(
        header.inferred,
        [
            "times between 2 machines, aligned by their wall clocks alone: by how much they are wrong is not known"
        ]
    );
    parts.iter_mut().for_each(|part| part.clock.unix_bound_ns = Some(2_000_000));
    let told = headers(&parts).0.inferred;
    assert!(told[0].ends_with("wall clocks alone: right within 4000 us"), "{told:?}");
}

#[test]
fn parts_of_one_machine_share_its_clock_also_where_there_are_others() {
    let mut parts = [
        part(0, "n1", "m1", &[], 5 * SECOND),
        part(1, "n1", "m1", &[], 6 * SECOND),
        part(2, "n2", "m2", &[], SECOND),
    ];
    // The wall clock was set back by an hour between the first two.
    parts[0].clock.zero_unix_ns = 7200 * SECOND;
    parts[1].clock.zero_unix_ns = 3600 * SECOND;
    parts[2].clock.zero_unix_ns = 7200 * SECOND;
    let (header, seats) = headers(&parts);
    let zeros =
        seats.iter().map(|seat| seat.carry(&Event::of(Function::WRITE), 0).start.0 / SECOND);
    assert_eq!(zeros.collect::<Vec<_>>(), [0, 1, 0]);
    assert_eq!(header.clock.zero_unix_ns, 7200 * SECOND);
}

#[test]
fn nodes_of_a_step_that_left_no_part_are_told() {
    let mut parts = [part(0, "n1", "m1", &[], 0), part(1, "n2", "m2", &[], 0)];
    for header in &mut parts {
        header.parts[0].size = 2;
        header.environment.insert("SLURM_STEP_NUM_NODES".into(), "3".into());
    }
    let unseen = headers(&parts).0.losses.unseen;
    assert_eq!(unseen, [format!("all but n1, n2 of 3 nodes {NO_PART}")]);
}
