//! The finisher on spools made by hand.

use super::*;
use crate::Function;
use crate::spool::{
    CHUNK_BYTES, PROCESS_MAGIC, RECORD_BYTES, Record, chunk, encode_drained, encode_head, process,
    state,
};
use iolab_vocab::FileId;

fn put(bytes: &mut [u8], at: usize, value: &[u8]) {
    bytes[at..at + value.len()].copy_from_slice(value);
}

fn control_page() -> Vec<u8> {
    let mut page = vec![0; CONTROL_BYTES];
    put(&mut page, control::MAGIC, &CONTROL_MAGIC.to_le_bytes());
    put(&mut page, control::VERSION, &SPOOL_VERSION.to_le_bytes());
    for (index, value) in [1000u64, 50_000, 7].iter().enumerate() {
        put(&mut page, control::CALIBRATION + index * 8, &value.to_le_bytes());
    }
    // Two clock units are one nanosecond.
    for (index, value) in [3000u64, 51_000, 8].iter().enumerate() {
        put(&mut page, control::LATEST + index * 8, &value.to_le_bytes());
    }
    page
}

fn process_file(index: u32, records: &[Record]) -> Vec<u8> {
    let mut file = vec![0; 2 * CHUNK_BYTES];
    put(&mut file, process::MAGIC, &PROCESS_MAGIC.to_le_bytes());
    let words = [
        (process::VERSION, SPOOL_VERSION),
        (process::CHUNK_BYTES, CHUNK_BYTES as u32),
        (process::PID, 100 + index),
        (process::RANK, u32::MAX),
        (process::INDEX, index),
        (process::CHUNKS, 1),
    ];
    for (at, value) in words {
        put(&mut file, at, &value.to_le_bytes());
    }
    put(&mut file, process::PROGRAM, b"/bin/guest");
    file[process::STATES] = state::OWNED;
    put(&mut file, CHUNK_BYTES + chunk::TAG, &1u32.to_le_bytes());
    for (slot, record) in records.iter().enumerate() {
        put(&mut file, CHUNK_BYTES + (slot + 1) * RECORD_BYTES, &bytes_of(record));
    }
    file
}

fn bytes_of(r: &Record) -> Vec<u8> {
    let words =
        [r.start, r.end, r.offset as u64, r.length as u64, r.argument as u64, r.result as u64];
    let mut bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
    bytes.extend(r.number.to_le_bytes());
    bytes.extend(r.fd.to_le_bytes());
    bytes.extend(r.function.to_le_bytes());
    bytes.extend(r.thread.to_le_bytes());
    bytes.extend(1u32.to_le_bytes());
    bytes
}

fn record(function: Function, number: u32, times: (u64, u64), result: i64) -> Record {
    Record {
        start: times.0,
        end: times.1,
        offset: -1,
        length: -1,
        argument: 0,
        result,
        number,
        fd: 3,
        function: function.0,
        thread: 0,
        tag: 1,
    }
}

fn named(number: u32, path: &str) -> Record {
    Record::of_text(number, path.as_bytes(), 0).unwrap()
}

fn finish_one(records: &[Record]) -> Trace {
    let (control, file) = (control_page(), process_file(0, records));
    let spools = Spools { control: &control, processes: vec![&file], ..Spools::default() };
    finish(&spools, Side::Program).unwrap()
}

#[test]
fn the_offsets_of_plain_reads_and_writes_follow_the_file_position() {
    let trace = finish_one(&[
        named(1, "/data/./file"),
        record(Function::OPEN, 1, (1000, 1100), 3),
        record(Function::WRITE, 1, (1200, 1300), 10),
        record(Function::LSEEK, 1, (1400, 1500), 4),
        record(Function::READ, 1, (1600, 1700), 6),
        record(Function::WRITE, 1, (1800, 1900), 5),
    ]);
    let offsets: Vec<_> = trace.events.iter().map(|event| event.offset).collect();
    assert_eq!(offsets, [-1, 0, -1, 4, 10]);
    assert_eq!(trace.header.files[0].path, "/data/file");
    assert_eq!((trace.events[0].start, trace.events[0].end), (Nanos(0), Nanos(50)));
}

#[test]
fn an_append_goes_where_another_description_left_the_end() {
    let append = Record { argument: 0o2001, ..record(Function::OPEN, 2, (1100, 1110), 4) };
    let trace = finish_one(&[
        named(1, "/log"),
        named(2, "/log"),
        Record { length: 100, ..record(Function::OPEN, 1, (1000, 1010), 3) },
        Record { length: 100, ..append },
        Record { offset: 100, ..record(Function::PWRITE, 1, (1200, 1210), 50) },
        record(Function::WRITE, 2, (1300, 1310), 7),
    ]);
    assert_eq!(trace.header.files.len(), 1);
    assert_eq!(trace.events[3].offset, 150);
}

#[test]
fn an_append_goes_to_the_end_whoever_asks_for_it_and_by_whatever_call() {
    let (once, not) = (crate::APPENDS_ONCE, crate::APPENDS_NOT);
    let flagged = |function, at, offset, argument| Record {
        offset,
        argument,
        ..record(function, 1, (at, at + 10), 10)
    };
    let set = |at, argument| Record { argument, ..record(Function::FCNTL_SETFL, 1, (at, at), 0) };
    let trace = finish_one(&[
        named(1, "/f"),
        Record { argument: 2, length: 100, ..record(Function::OPEN, 1, (1000, 1010), 3) },
        flagged(Function::PWRITEV2, 1100, 2, once),
        flagged(Function::WRITEV, 1200, -1, once),
        flagged(Function::PWRITE, 1300, 5, -1),
        set(1400, 0o2002),
        flagged(Function::PWRITE, 1500, 5, -1),
        flagged(Function::PWRITEV2, 1600, 7, not),
        flagged(Function::WRITE, 1700, -1, -1),
        set(1800, 2),
        record(Function::READ, 1, (1900, 1910), 0),
    ]);
    let moved = trace.events.iter().filter(|event| event.function.class().moves_data());
    let places: Vec<_> = moved.map(|event| event.offset).collect();
    assert_eq!(places, [100, 110, 5, 120, 7, 130, 140]);
}

#[test]
fn appends_of_threads_share_no_byte_whatever_an_open_between_them_tells() {
    let offsets = |waiting: Record, opening: Record| {
        let first =
            Record { argument: 0o2001, length: 100, ..record(Function::OPEN, 1, (1000, 1010), 3) };
        let trace = finish_one(&[
            named(1, "/log"),
            named(2, "/log"),
            first,
            waiting,
            Record { argument: 0o2001, ..opening },
            record(Function::WRITE, 2, (1600, 1610), 7),
            record(Function::WRITE, 1, (1700, 1710), 7),
        ]);
        let writes = trace.events.iter().filter(|event| event.function == Function::WRITE);
        writes.map(|event| event.offset).collect::<Vec<_>>()
    };
    let write = |start, end| record(Function::WRITE, 1, (start, end), 7);
    let open = |start, end, length| Record { length, ..record(Function::OPEN, 2, (start, end), 4) };
    // The open does not see what an append that began before it has yet to write; or it sees one that began after it.
    assert_eq!(offsets(write(1100, 1500), open(1200, 1300, 100)), [100, 107, 114]);
    assert_eq!(offsets(write(1250, 1260), open(1200, 1300, 107)), [100, 107, 114]);
    // Somebody outside has made the file shorter, or longer.
    assert_eq!(offsets(write(1100, 1150), open(1200, 1300, 40)), [100, 40, 47]);
    assert_eq!(offsets(write(1100, 1150), open(1200, 1300, 500)), [100, 500, 507]);
}

#[test]
fn the_write_inside_fwrite_has_it_as_parent_and_the_next_one_does_not() {
    let trace = finish_one(&[
        named(1, "/f"),
        record(Function::OPEN, 1, (1000, 1010), 3),
        record(Function::WRITE, 1, (1120, 1180), 4096),
        record(Function::FWRITE, 1, (1100, 1200), 8192),
        record(Function::WRITE, 1, (1300, 1400), 1),
    ]);
    let parents: Vec<_> = trace.events.iter().map(|e| (e.function.name(), e.parent)).collect();
    assert_eq!(parents, [("open", -1), ("fwrite", -1), ("write", 1), ("write", -1)]);
}

#[test]
fn what_was_drained_is_not_read_twice_and_an_ended_process_needs_no_file() {
    let records = [named(1, "/f"), record(Function::OPEN, 1, (1000, 1010), 3)];
    let file = process_file(0, &records);
    let gone = process_file(1, &records);
    let mut drained = Vec::new();
    encode_drained(0, 0, 1, &file[CHUNK_BYTES..], &mut drained);
    encode_drained(1, 0, 1, &gone[CHUNK_BYTES..], &mut drained);
    encode_head(&gone[..process::STATES], &mut drained);
    let control = control_page();
    let spools = Spools {
        control: &control,
        processes: vec![&file],
        drained: &drained,
        ..Spools::default()
    };
    let trace = finish(&spools, Side::Program).unwrap();
    assert_eq!(trace.events.len(), 2);
    let names: Vec<_> =
        trace.header.processes.iter().map(|it| (it.pid, it.name.as_str())).collect();
    assert_eq!(names, [(100, "guest"), (101, "guest")]);
}

#[test]
fn a_spool_cut_at_any_byte_gives_a_trace_or_an_error_and_never_a_panic() {
    let records = [named(1, "/f"), record(Function::OPEN, 1, (1000, 1010), 3)];
    let (control, file) = (control_page(), process_file(0, &records));
    for cut in (0..file.len()).step_by(61) {
        let spools =
            Spools { control: &control, processes: vec![&file[..cut]], ..Spools::default() };
        let trace = finish(&spools, Side::Program).unwrap();
        assert!(trace.events.len() <= 1);
    }
    for cut in (0..control.len()).step_by(7) {
        let spools = Spools { control: &control[..cut], ..Spools::default() };
        assert_eq!(finish(&spools, Side::Program), Err(FinishError::NoControl));
    }
}

#[test]
fn a_program_that_was_started_and_never_seen_is_named_as_absent() {
    let exec = Record { argument: 555, fd: -1, ..record(Function::EXEC, 1, (1000, 1000), 0) };
    let failed = Record { argument: 556, fd: -1, ..record(Function::EXEC, 2, (1100, 1100), 0) };
    let answer = Record { argument: 556, fd: -1, ..record(Function::EXEC, 0, (1200, 1200), -2) };
    let trace = finish_one(&[named(1, "/bin/static"), named(2, "/bin/none"), exec, failed, answer]);
    let unseen = trace.header.losses.unseen.join("\n");
    assert!(unseen.contains("/bin/static did not load"), "{unseen}");
    assert!(!unseen.contains("/bin/none"), "{unseen}");
}

#[test]
fn what_the_head_of_a_process_says_is_in_the_header() {
    let flagged = |index: u32, flags: u32| {
        let mut file = process_file(index, &[]);
        put(&mut file, process::FLAGS, &flags.to_le_bytes());
        put(&mut file, process::PARENT, &7_u32.to_le_bytes());
        put(&mut file, process::HOST, b"node05");
        put(&mut file, process::COMMAND, b"./guest\0-n\0two words\0");
        file
    };
    let header = |flags: [u32; 2]| {
        let files = [flagged(0, flags[0]), flagged(1, flags[1])];
        let (control, processes) = (control_page(), files.iter().map(Vec::as_slice).collect());
        let spools = Spools { control: &control, processes, ..Spools::default() };
        finish(&spools, Side::Program).unwrap().header
    };
    let said = header([process::ENDED | process::PATCHED, process::PATCHED]);
    let first = &said.processes[0];
    assert_eq!((first.pid, first.parent_pid, first.rank), (100, 7, -1));
    assert_eq!((first.host.as_str(), first.name.as_str()), ("node05", "guest"));
    assert_eq!(first.command, ["./guest", "-n", "two words"]);
    let endings: Vec<_> = said.processes.iter().map(|it| it.ending.as_str()).collect();
    assert_eq!(endings, ["exited", "cut"]);
    assert_eq!(said.interposer, "entry-patch");
    let one_unpatched = header([process::PATCHED, process::ENDED | process::FORKED]);
    assert_eq!(one_unpatched.interposer, "plt-only");
}

#[test]
fn a_file_that_is_no_spool_of_this_version_is_damaged() {
    let control = control_page();
    let good = process_file(0, &[named(1, "/f")]);
    let losses = |file: &[u8]| {
        let processes = vec![file];
        let spools = Spools { control: &control, processes, ..Spools::default() };
        finish(&spools, Side::Program).unwrap().header.losses.lost_calls
    };
    assert_eq!(losses(&good).get("damaged spool file"), None);
    for at in [process::MAGIC, process::VERSION, process::CHUNK_BYTES] {
        let mut bad = good.clone();
        bad[at] ^= 1;
        assert_eq!(losses(&bad).get("damaged spool file"), Some(&1), "byte {at}");
    }
    // Nothing was ever written into it: its process was ended before it had made it.
    assert_eq!(losses(&vec![0; 2 * CHUNK_BYTES]).get("damaged spool file"), None);
}

#[test]
fn a_program_is_absent_unless_an_image_of_its_process_began_after_the_start() {
    // At 1200 units of the clock process 101 is to become another program.
    let exec = Record { argument: 101, fd: -1, ..record(Function::EXEC, 1, (1200, 1200), 0) };
    let parent = process_file(0, &[named(1, "/bin/child"), exec]);
    let unseen = |flags: u32, start: u64| {
        let mut child = process_file(1, &[]);
        put(&mut child, process::START, &start.to_le_bytes());
        put(&mut child, process::FLAGS, &flags.to_le_bytes());
        let control = control_page();
        let processes = vec![parent.as_slice(), &child];
        let spools = Spools { control: &control, processes, ..Spools::default() };
        finish(&spools, Side::Program).unwrap().header.losses.unseen
    };
    assert_eq!(unseen(0, 1300), [""; 0]);
    assert_eq!(unseen(0, 1200), [""; 0]);
    // What called exec is the copy that fork made, not the program.
    for (flags, start) in [(0, 1100), (process::FORKED, 1300)] {
        let told = unseen(flags, start);
        assert_eq!(told.len(), 1, "{told:?}");
        assert!(told[0].starts_with("/bin/child did not load the library"), "{told:?}");
    }
}

#[test]
fn a_program_is_absent_for_the_reason_that_was_seen_when_it_was_started() {
    use crate::program::{Foreseen, Missed};
    let told = |foreseen: Foreseen, function: Function| {
        let start = record(function, 1, (1200, 1200), 0);
        let start = Record { argument: 101, offset: foreseen.code(), ..start };
        let trace = finish_one(&[named(1, "/bin/child"), start]);
        assert_eq!(trace.events[0].offset, -1);
        trace.header.losses.unseen[0].clone()
    };
    for (foreseen, why) in [
        (Foreseen::Misses(Missed::Static), "(statically linked)"),
        (Foreseen::Misses(Missed::OtherMachine), "(of 32 bits or for another processor)"),
        (Foreseen::Misses(Missed::Environment), "(started without the variables of the run)"),
        (Foreseen::Loads, "(ended before it could, or its loader left it out)"),
        (Foreseen::Unknown, "(static, set-uid, or without its environment)"),
    ] {
        let line = format!("/bin/child did not load the library {why}");
        assert_eq!(told(foreseen, Function::EXEC), line);
        assert_eq!(told(foreseen, Function::POSIX_SPAWN), line);
    }
    assert_eq!(Foreseen::of_code(77), Foreseen::Unknown);
}

#[test]
fn the_command_itself_may_be_absent() {
    let (control, file) = (control_page(), process_file(0, &[]));
    let unseen = |pid| {
        let launch = Launch { pid, command: vec!["./still".to_owned()], ..Launch::default() };
        let spools =
            Spools { control: &control, processes: vec![&file], launch, ..Spools::default() };
        finish(&spools, Side::Program).unwrap().header.losses.unseen.join("")
    };
    assert_eq!([unseen(0), unseen(100)], ["", ""]);
    assert!(unseen(55).starts_with("./still did not load"), "{}", unseen(55));
}

#[test]
fn sizes_and_positions_are_those_of_calls_that_succeeded() {
    let named_two = [named(1, "/f"), named(2, "/f")];
    let open = record(Function::OPEN, 1, (1000, 1010), 3);
    let append = Record { argument: 0o2001, ..record(Function::OPEN, 2, (1020, 1030), 4) };
    // Where an append goes, after a call in between.
    let end_after = |between: Record| {
        let write = record(Function::WRITE, 2, (1300, 1310), 7);
        let rows =
            [Record { length: 100, ..open }, Record { length: 100, ..append }, between, write];
        let trace = finish_one(&[&named_two[..], &rows].concat());
        trace.events.last().unwrap().offset
    };
    let truncate =
        |result| Record { length: 40, ..record(Function::FTRUNCATE, 1, (1200, 1210), result) };
    assert_eq!([0, -22].map(|result| end_after(truncate(result))), [40, 100]);
    let allocate = |result| Record {
        offset: 90,
        length: 60,
        ..record(Function::POSIX_FALLOCATE, 1, (1200, 1210), result)
    };
    assert_eq!([0, -28].map(|result| end_after(allocate(result))), [150, 100]);
    let failed_seek = record(Function::LSEEK, 1, (1200, 1210), -22);
    let write = record(Function::WRITE, 1, (1300, 1310), 5);
    let trace = finish_one(&[
        named(1, "/f"),
        open,
        failed_seek,
        write,
        Record { start: 1400, end: 1410, ..write },
    ]);
    let offsets: Vec<_> = trace.events.iter().map(|event| event.offset).collect();
    assert_eq!(offsets[2..], [0, 5]);
}

#[test]
fn a_copy_moves_the_positions_that_no_offset_was_given_for() {
    let rows = |source: i64, target: i64, number: u32| {
        let copy = Record {
            offset: source,
            argument: number.into(),
            length: 10,
            ..record(Function::COPY_FILE_RANGE, 1, (1100, 1110), 10)
        };
        let into = Record { offset: target, number, function: Function::COPY_TARGET.0, ..copy };
        let open = |number, time| record(Function::OPEN, number, (time, time + 5), 3);
        let read = record(Function::READ, 1, (1200, 1210), 1);
        let write = record(Function::WRITE, 2, (1300, 1310), 1);
        let names = [named(1, "/from"), named(2, "/to")];
        let events = [open(1, 1000), open(2, 1010), into, copy, read, write];
        let trace = finish_one(&[&names[..], &events].concat());
        let to = trace.copy_target(2).unwrap();
        let events = &trace.events;
        ([2, 4, 5].map(|row: usize| events[row].offset), events[2].argument, to.file, to.offset)
    };
    // Offsets of the copy and of the accesses behind it; the copy's file id; where the bytes went.
    assert_eq!(rows(-1, -1, 2), ([0, 10, 10], 1, FileId(1), 0));
    assert_eq!(rows(50, -1, 2), ([50, 0, 10], 1, FileId(1), 0));
    assert_eq!(rows(-1, 70, 2), ([0, 10, 0], 1, FileId(1), 70));
    assert_eq!(rows(50, 70, 2), ([50, 0, 0], 1, FileId(1), 70));
    assert_eq!(rows(-1, -1, 0), ([0, 10, 0], -1, FileId::NONE, -1), "a target that is no file");
}

#[test]
fn counted_calls_are_nobodys_parent_and_the_stream_goes_on_behind_them() {
    let put = |times, argument, result| Record {
        argument,
        length: result,
        ..record(Function::FPUTC, 1, times, result)
    };
    let trace = finish_one(&[
        named(1, "/f"),
        record(Function::OPEN, 1, (1000, 1010), 3),
        put((1100, 1100), 4095, 4095),
        record(Function::WRITE, 1, (1200, 1300), 4096),
        put((1200, 1320), -1, 1),
        put((1400, 1400), 7, 7),
    ]);
    let rows: Vec<_> =
        trace.events.iter().map(|e| (e.offset, e.calls(), e.is_counted(), e.parent)).collect();
    let expected = [
        (-1, 1, false, -1),
        (0, 4095, true, -1),
        (4095, 1, false, -1),
        (0, 1, false, 2),
        (4096, 7, true, -1),
    ];
    assert_eq!(rows, expected);
}

#[test]
fn where_counted_calls_lie_between_others_no_offset_is_made_up() {
    let count = |function, time, offset, argument, result| Record {
        offset,
        argument,
        length: result,
        ..record(function, 1, (time, time), result)
    };
    let seek = |time, argument, offset| Record {
        offset,
        argument,
        ..record(Function::FSEEK, 1, (time, time + 1), 0)
    };
    let trace = finish_one(&[
        named(1, "/f"),
        record(Function::OPEN, 1, (1000, 1010), 3),
        count(Function::FPUTC, 1100, -1, 10, 10),
        count(Function::FPRINTF, 1102, crate::spool::MIXED, 10, 50),
        count(Function::FPUTC, 1200, -1, 3, 3),
        seek(1300, 5 << 8, -1),
        count(Function::FGETC, 1400, -1, 5, 5),
        seek(1500, 1, 4),
        count(Function::FGETC, 1600, -1, 5, 5),
        seek(1700, 0, 9),
        count(Function::FGETC, 1800, -1, 5, 5),
    ]);
    let data = trace.events.iter().filter(|event| event.function.class().moves_data());
    let offsets: Vec<_> = data.map(|event| event.offset).collect();
    assert_eq!(offsets, [0, -1, 60, -1, -1, 9]);
    let seeks = trace.events.iter().filter(|event| event.function == Function::FSEEK);
    assert_eq!(seeks.map(Event::calls).collect::<Vec<_>>(), [5, 1, 1]);
}

/// A record of MPI-IO on the open file 1, of a time that only orders it.
fn on_file(function: Function, at: u64, offset: i64, bytes: i64) -> Record {
    Record {
        offset,
        length: bytes,
        argument: -1,
        ..record(function, 1, (1000 + at * 100, 1050 + at * 100), bytes.max(0))
    }
}

fn places(trace: &Trace, function: Function) -> Vec<(i64, i64)> {
    let rows = trace.events.iter().filter(|event| event.function == function);
    rows.map(|event| (event.offset, event.length)).collect()
}

#[test]
fn accesses_of_mpi_io_lie_where_the_view_and_the_pointers_put_them() {
    let view = "\0view 4 resized(;0,32;contiguous(4;;4))";
    let set = Record { argument: 2, ..on_file(Function::MPI_FILE_SET_VIEW, 2, 100, -1) };
    let sought = Record { argument: 0, result: 6, ..on_file(Function::MPI_FILE_SEEK, 5, 6, -1) };
    let trace = finish_one(&[
        named(1, "/f"),
        named(2, view),
        on_file(Function::MPI_FILE_OPEN, 0, 9, -1),
        on_file(Function::MPI_FILE_WRITE, 1, -1, 8),
        set,
        on_file(Function::MPI_FILE_WRITE_ALL, 3, -1, 24),
        on_file(Function::MPI_FILE_WRITE, 4, -1, 8),
        sought,
        on_file(Function::MPI_FILE_WRITE, 6, -1, 4),
        on_file(Function::MPI_FILE_READ, 7, 4, 16),
        on_file(Function::MPI_FILE_READ, 8, crate::spool::SHARED_POINTER, 16),
        on_file(Function::MPI_FILE_READ, 9, crate::spool::SHARED_POINTER, 16),
        on_file(Function::MPI_FILE_CLOSE, 10, -1, -1),
        on_file(Function::MPI_FILE_READ, 11, 4, 16),
    ]);
    assert_eq!(places(&trace, Function::MPI_FILE_WRITE), [(0, 8), (140, 8), (140, 4)]);
    assert_eq!(places(&trace, Function::MPI_FILE_WRITE_ALL), [(100, 24)]);
    assert_eq!(places(&trace, Function::VIEW_PIECE), [(100, 16), (132, 8)]);
    let reads = [(132, 16), (100, 16), (132, 16), (-1, 16)];
    assert_eq!(places(&trace, Function::MPI_FILE_READ), reads, "the last one after the close");
    let parents: Vec<_> =
        trace.events.iter().filter(|it| it.function == Function::VIEW_PIECE).collect();
    for piece in parents {
        let parent = trace.events[piece.parent as usize];
        assert_eq!(parent.function, Function::MPI_FILE_WRITE_ALL);
    }
    let inferred = trace.header.inferred.join("\n");
    assert!(
        inferred.contains("shared pointers, taken in the order in which calls began (2)")
            && inferred
                .contains("1 accesses of MPI-IO have no offset: a file whose opening is lost"),
        "{inferred}"
    );
    assert_eq!(trace.header.files.len(), 1, "a view is no file");
}

#[test]
fn ordered_calls_lie_in_the_order_of_ranks_and_a_new_opening_begins_at_its_start() {
    let of = |rank: u32, records: &[Record]| {
        let mut file = process_file(rank, records);
        put(&mut file, process::RANK, &rank.to_le_bytes());
        file
    };
    let shared = crate::spool::SHARED_POINTER;
    let on = |number: u32, record: Record| Record { number, fd: number as i32, ..record };
    // Rank 1 comes first.
    let one = [
        named(3, "/f"),
        on(3, on_file(Function::MPI_FILE_OPEN, 0, 9, -1)),
        on(3, on_file(Function::MPI_FILE_WRITE_ALL, 1, shared, 20)),
        on(3, on_file(Function::MPI_FILE_WRITE_ALL, 5, shared, 2)),
        on(3, on_file(Function::MPI_FILE_CLOSE, 6, -1, -1)),
    ];
    let zero = [
        named(1, "/f"),
        on(1, on_file(Function::MPI_FILE_OPEN, 0, 9, -1)),
        on(1, on_file(Function::MPI_FILE_WRITE_ALL, 3, shared, 10)),
        on(1, on_file(Function::MPI_FILE_WRITE_ALL, 4, shared, 1)),
        on(1, on_file(Function::MPI_FILE_CLOSE, 6, -1, -1)),
        named(2, "/f"),
        on(2, on_file(Function::MPI_FILE_OPEN, 7, 9, -1)),
        on(2, on_file(Function::MPI_FILE_WRITE, 8, shared, 4)),
    ];
    let (control, files) = (control_page(), [of(0, &zero), of(1, &one)]);
    let processes = files.iter().map(Vec::as_slice).collect();
    let spools = Spools { control: &control, processes, ..Spools::default() };
    let trace = finish(&spools, Side::Program).unwrap();
    assert_eq!(places(&trace, Function::MPI_FILE_WRITE_ALL), [(0, 10), (30, 1), (10, 20), (31, 2)]);
    assert_eq!(places(&trace, Function::MPI_FILE_WRITE), [(0, 4)]);
}

#[test]
fn a_file_that_is_opened_for_appending_begins_at_its_end() {
    let open = Record { argument: 128 | 4, ..on_file(Function::MPI_FILE_OPEN, 0, 9, 300) };
    let write = on_file(Function::MPI_FILE_WRITE, 1, -1, 8);
    let trace = finish_one(&[named(1, "/f"), open, write]);
    assert_eq!(places(&trace, Function::MPI_FILE_WRITE), [(300, 8)]);
}

#[test]
fn a_view_that_cannot_be_followed_leaves_no_offset_and_is_told() {
    for (view, why) in [
        ("\0view 4 opaque(;4,0,4;)", "too long"),
        ("\0view 4 sphere(;;4)", "sphere"),
        ("\0view 4", "without datatypes"),
    ] {
        let set = Record { argument: 2, ..on_file(Function::MPI_FILE_SET_VIEW, 1, 0, -1) };
        let trace = finish_one(&[
            named(1, "/f"),
            named(2, view),
            on_file(Function::MPI_FILE_OPEN, 0, 9, -1),
            set,
            on_file(Function::MPI_FILE_WRITE, 2, -1, 8),
        ]);
        assert_eq!(places(&trace, Function::MPI_FILE_WRITE), [(-1, 8)]);
        let inferred = trace.header.inferred.join("\n");
        assert!(
            inferred.contains("1 accesses of MPI-IO have no offset") && inferred.contains(why),
            "{inferred}"
        );
    }
}

#[test]
fn communicators_of_the_same_ranks_are_one_and_messages_name_it() {
    let message = |communicator, at| Record {
        fd: communicator,
        ..record(Function::MPI_BARRIER, 0, (at, at + 10), 0)
    };
    let init = Record { argument: 3, fd: -1, ..record(Function::MPI_INIT, 0, (1000, 1001), 0) };
    let trace = finish_one(&[
        named(5, "\0communicator 0 1 2 3"),
        named(6, "\0communicator 3 1"),
        named(7, "\0communicator 3 1"),
        init,
        message(6, 1100),
        message(5, 1200),
        message(7, 1300),
        message(99, 1400),
    ]);
    assert_eq!(trace.header.communicators, [vec![0, 1, 2, 3], vec![3, 1]]);
    let named: Vec<_> = trace.events.iter().map(|event| (event.rank, event.fd)).collect();
    assert_eq!(named, [(3, -1), (3, 1), (3, 0), (3, 1), (3, -1)], "its rank is from MPI");
}

#[test]
fn what_mpi_does_below_is_inside_of_its_call_and_says_how_large_the_file_was() {
    let open = Record { fd: 4, length: 500, ..record(Function::OPEN, 2, (1010, 1020), 4) };
    let write = Record { offset: 7, length: 5, ..record(Function::PWRITE, 2, (1110, 1120), 5) };
    let trace = finish_one(&[
        named(1, "/f"),
        named(2, "/f"),
        on_file(Function::MPI_FILE_OPEN, 0, 9, -1),
        open,
        on_file(Function::MPI_FILE_WRITE, 1, 7, 5),
        write,
    ]);
    let rows: Vec<_> =
        trace.events.iter().map(|e| (e.function.name(), e.length, e.parent)).collect();
    let expected =
        [("MPI_File_open", 500, -1), ("open", 500, 0), ("MPI_File_write", 5, -1), ("pwrite", 5, 2)];
    assert_eq!(rows, expected);
}

#[test]
fn calls_of_hdf5_name_their_object_and_hold_what_they_cause_in_all_layers_below() {
    let text = |number, text: &[u8]| Record::of_text(number, text, 0).unwrap();
    let on = |function: Function, times, object| Record {
        argument: object,
        length: 64,
        ..record(function, 1, times, 64)
    };
    let trace = finish_one(&[
        named(1, "/f.h5"),
        named(2, "/f.h5"),
        named(3, "/f.h5"),
        text(8, b"\0object dataset 8 64x128 /d"),
        text(9, b"\0object dataset 8 64x128 /d"),
        on(Function::H5D_WRITE, (1000, 1500), 8),
        Record { number: 2, fd: 2, ..on(Function::MPI_FILE_WRITE, (1010, 1100), -1) },
        record(Function::PWRITE, 3, (1020, 1030), 64),
        record(Function::PWRITE, 3, (1200, 1210), 10),
        on(Function::H5D_CLOSE, (2000, 2100), 9),
        on(Function::H5D_CLOSE, (2200, 2300), 99),
    ]);
    let rows: Vec<_> = trace.events.iter().map(|e| (e.function.name(), e.parent)).collect();
    let expected = [
        ("H5Dwrite", -1),
        ("MPI_File_write", 0),
        ("pwrite", 1),
        ("pwrite", 0),
        ("H5Dclose", -1),
        ("H5Dclose", -1),
    ];
    assert_eq!(rows, expected);
    let events = &trace.events;
    let outermost = events.iter().map(|event| event.is_outermost_but_for_objects(events));
    assert!(outermost.eq([true, true, false, true, true, true]));
    let [object] = trace.header.objects.as_slice() else { panic!("{:?}", trace.header.objects) };
    assert_eq!((object.path.as_str(), object.chunk.as_slice()), ("/d", [64, 128].as_slice()));
    let objects =
        [0, 4, 5].map(|row: usize| (trace.events[row].argument, trace.events[row].file.0));
    assert_eq!(
        objects,
        [(0, 0), (0, 0), (-1, 0)],
        "one object under two numbers, and an unknown one"
    );
}

#[test]
fn calls_of_netcdf_hold_those_of_hdf5_and_all_below() {
    let text = |number, text: &[u8]| Record::of_text(number, text, 0).unwrap();
    let on = |function: Function, times, object| Record {
        argument: object,
        length: 64,
        ..record(function, 1, times, 64)
    };
    let trace = finish_one(&[
        named(1, "/f.nc"),
        text(8, b"\0object variable 4 - /t"),
        text(9, b"\0object dataset 4 - /t"),
        on(Function::NC_PUT_VARA, (1000, 1500), 8),
        on(Function::H5D_WRITE, (1010, 1400), 9),
        record(Function::PWRITE, 1, (1020, 1030), 64),
        record(Function::PWRITE, 1, (1450, 1460), 4),
        on(Function::H5D_WRITE, (1600, 1700), 9),
        on(Function::NC_CLOSE, (2000, 2100), -1),
        record(Function::PWRITE, 1, (2010, 2020), 4),
    ]);
    let events = &trace.events;
    let rows: Vec<_> = events.iter().map(|e| (e.function.name(), e.parent, e.argument)).collect();
    let expected = [
        ("nc_put_vara", -1, 0),
        ("H5Dwrite", 0, 1),
        ("pwrite", 1, 0),
        ("pwrite", 0, 0),
        ("H5Dwrite", -1, 1),
        ("nc_close", -1, -1),
        ("pwrite", 5, 0),
    ];
    assert_eq!(rows, expected);
    assert!(events.iter().all(|event| event.is_outermost_but_for_objects(events)));
    let mut once = crate::Once::default();
    let counted: Vec<_> = events.iter().map(|event| once.counts(event)).collect();
    // The first access is counted where nothing is known of the system's calls on the file yet.
    assert_eq!(counted, [true, false, false, false, false, false, true]);
}

#[test]
fn records_of_no_function_are_counted_and_do_not_spoil_the_others() {
    let trace = finish_one(&[
        named(1, "/f"),
        record(Function::OPEN, 1, (1000, 1010), 3),
        record(Function(34), 1, (1100, 1110), 3),
        record(Function::WRITE, 1, (1200, 1210), 3),
    ]);
    let names: Vec<_> = trace.events.iter().map(|event| event.function.name()).collect();
    assert_eq!(names, ["open", "write"]);
    assert_eq!(trace.header.losses.lost_calls["damaged records"], 1);
}

#[test]
fn a_damaged_clock_is_no_overflow() {
    let mut control = control_page();
    put(&mut control, control::LATEST, &1001u64.to_le_bytes());
    put(&mut control, control::LATEST + 8, &u64::MAX.to_le_bytes());
    let file = process_file(0, &[named(1, "/f"), record(Function::OPEN, 1, (1000, u64::MAX), 3)]);
    let spools = Spools { control: &control, processes: vec![&file], ..Spools::default() };
    let trace = finish(&spools, Side::Program).unwrap();
    assert!(trace.events.is_empty());
    assert_eq!(trace.header.losses.lost_calls["damaged records"], 1);
}

#[test]
fn a_frame_that_claims_more_records_than_it_has_bytes_takes_no_memory_for_them() {
    let file = process_file(0, &[named(1, "/f"), record(Function::OPEN, 1, (1000, 1010), 3)]);
    let mut drained = Vec::new();
    encode_drained(0, 0, 1, &file[CHUNK_BYTES..], &mut drained);
    drained[20..24].copy_from_slice(&u32::MAX.to_le_bytes());
    let control = control_page();
    let drained = drained.repeat(1000);
    let spools = Spools { control: &control, drained: &drained, ..Spools::default() };
    assert!(finish(&spools, Side::Program).unwrap().events.is_empty());
}
