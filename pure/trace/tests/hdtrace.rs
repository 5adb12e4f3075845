//! Projects of HDTrace as traces: the real one of 2009, small ones with every oddity, broken ones.

use iolab_trace::import::hdtrace::{HdtraceError, Project, TraceFile};
use iolab_trace::{Class, Event, Function, Origin, Trace};
use iolab_vocab::Nanos;

macro_rules! sample {
    ($name:literal) => {
        include_bytes!(concat!("../../../samples/traces/hdtrace/partdiff-2009/", $name)).as_slice()
    };
}

const PARTDIFF: &[u8] = sample!("partdiff-par.proj");
const RANKS: [&[u8]; 5] = [
    sample!("partdiff-par_node05_0_0.trc"),
    sample!("partdiff-par_node09_1_0.trc"),
    sample!("partdiff-par_node08_2_0.trc"),
    sample!("partdiff-par_node07_3_0.trc"),
    sample!("partdiff-par_node06_4_0.trc"),
];

fn partdiff(ranks: [&[u8]; 5]) -> Result<Trace, HdtraceError> {
    let project = Project::parse("partdiff-par.proj", PARTDIFF)?;
    let names = project.trace_names("partdiff-par");
    let file = |(name, bytes)| TraceFile { name, bytes };
    project.import(&names.iter().map(String::as_str).zip(ranks).map(file).collect::<Vec<_>>())
}

fn count(trace: &Trace, function: Function) -> usize {
    trace.events.iter().filter(|event| event.function == function).count()
}

#[test]
fn the_real_trace_of_2009_has_every_call_its_program_made() {
    let project = Project::parse("partdiff-par.proj", PARTDIFF).unwrap();
    assert_eq!(project.trace_names("p")[0], "p_node05_0_0.trc");
    assert_eq!(project.trace_names("p")[4], "p_node06_4_0.trc");
    let trace = partdiff(RANKS).unwrap();
    assert_eq!(trace.header.origin, Origin::Imported);
    assert_eq!(trace.header.files.len(), 3);
    assert_eq!(trace.header.processes.len(), 5);
    assert_eq!(trace.header.processes[4].host, "node06");
    assert_eq!(trace.header.communicators.len(), 53);
    // As counted in the files by other means.
    let rows = [
        (Function::MPI_SENDRECV, 4861),
        (Function::MPI_BCAST, 770),
        (Function::MPI_FILE_OPEN, 255),
        (Function::MPI_FILE_CLOSE, 255),
        (Function::MPI_FILE_WRITE, 554),
        (Function::MPI_REDUCE, 5),
    ];
    rows.iter().for_each(|&(function, wanted)| {
        assert_eq!(count(&trace, function), wanted, "{function:?}");
    });
    assert_eq!(trace.header.losses.left_out_calls["Type_commit"], 261);
    let written: u64 = trace.events.iter().map(Event::moved_bytes).sum();
    assert_eq!(written, 262_116_444, "the sum of the published bytes of its five servers");
}

#[test]
fn clocks_of_the_hosts_are_put_on_one_axis() {
    let trace = partdiff(RANKS).unwrap();
    // The fourth rank's file counts from 60 ms later than the others.
    let first = |rank: i32| trace.events.iter().find(|event| event.rank == rank).unwrap();
    let starts: Vec<_> = (0..5).map(|rank| first(rank).start).collect();
    assert!(starts.iter().all(|start| *start < Nanos(30_000_000)), "{starts:?}");
    assert_eq!(starts.iter().min(), Some(&Nanos::ZERO));
    assert_eq!(trace.header.clock.zero_unix_ns / 1_000_000_000, 1_247_131_125);
}

#[test]
fn what_a_call_did_inside_has_it_as_parent() {
    let trace = partdiff(RANKS).unwrap();
    for (row, event) in trace.events.iter().enumerate() {
        let Ok(parent) = usize::try_from(event.parent) else { continue };
        let outer = &trace.events[parent];
        assert_eq!(outer.process, event.process, "row {row}");
        assert!(outer.start <= event.start && event.end <= outer.end, "row {row}: {event:?}");
    }
    let open = trace.events.iter().position(|e| e.function == Function::MPI_FILE_OPEN).unwrap();
    let inside = trace.events.iter().filter(|event| event.parent == open as i64);
    assert!(inside.count() > 5, "ROMIO opens with many messages");
}

const SMALL: &str = r#"<?xml version="1.0"?>
<Application name="small">
 <FileList><File name="f"><InitialSize>1K</InitialSize></File></FileList>
 <Topology>
  <Level type="Hostname"><Level type="Rank"><Level type="Thread"/></Level></Level>
  <Node name="h"><Node name="0"><Node name="0" /></Node></Node>
 </Topology>
 <CommunicatorList><Communicator name="WORLD"><Rank global="0" local="0" cid="0"/></Communicator>
 </CommunicatorList>
 <Datatypes><Rank name="0" thread="0">
  <NAMED id="0" name="MPI_INT" />
  <VECTOR id="1" name="" count="3" blocklength="2" stride="4" oldType="0" />
  <CONTIGUOUS id="2" name="" count="5" oldType="0" />
  <STRUCT id="3" name="" count="2" >
   <Type id="0" displacement="0" blocklen="1"/><Type id="0" displacement="8" blocklen="1"/>
  </STRUCT>
  <DARRAY id="4" name="" />
 </Rank></Datatypes>
</Application>"#;

const OPEN: &str = "<File_open cid='0' name='f' flags='2' fid='7' time='1.0' end='1.1'/>";

fn small(calls: &str) -> Result<Trace, HdtraceError> {
    let project = Project::parse("small.proj", SMALL.as_bytes())?;
    let text = format!("<Program timeAdjustment='100.5'>\n{calls}\n</Program>\n");
    project.import(&[TraceFile { name: "small_h_0_0.trc", bytes: text.as_bytes() }])
}

fn pieces(calls: &str) -> Vec<(i64, i64)> {
    let trace = small(&format!("{OPEN}\n{calls}")).unwrap();
    let pieces = trace.events.iter().filter(|event| event.function.class() == Class::Piece);
    pieces.map(|piece| (piece.offset, piece.length)).collect()
}

#[test]
fn an_access_through_a_view_names_its_pieces() {
    let view = "<File_set_view fid='7' offset='100' etid='0' filetid='1' time='2.0' end='2.1'/>";
    // Position 1 counts ints of the view: the second int of the first block.
    let at = "<File_read_at fid='7' offset='1' size='16' time='3.0' end='3.1'/>";
    assert_eq!(pieces(&format!("{view}{at}")), [(104, 4), (116, 8), (132, 4)]);
    // Without `at` the recorder had the place in the file: the second block.
    let next = "<File_write fid='7' offset='116' size='12' time='3.0' end='3.1'/>";
    assert_eq!(pieces(&format!("{view}{next}")), [(116, 8), (132, 4)]);
    let whole = "<File_set_view fid='7' offset='8' etid='0' filetid='2' time='2.0' end='2.1'/>";
    assert_eq!(pieces(&format!("{whole}{at}")), [], "one extent needs no pieces");
}

#[test]
fn a_view_of_a_struct_has_its_members_where_the_project_displaces_them() {
    let view = "<File_set_view fid='7' offset='100' etid='0' filetid='3' time='2.0' end='2.1'/>";
    let write = "<File_write_at fid='7' offset='0' size='16' time='3.0' end='3.1'/>";
    // A word at 0 and one at 8; the next struct begins where the first one ends, at 12.
    assert_eq!(pieces(&format!("{view}{write}")), [(100, 4), (108, 8), (120, 4)]);
}

#[test]
fn calls_on_a_file_name_it_by_number_and_say_its_size_or_place() {
    let calls = format!(
        "{OPEN}\n<File_set_size fid='7' size='4096' time='2.0' end='2.1'/>\n\
         <File_seek fid='7' offset='12' time='3.0' end='3.1'/>\n\
         <File_sync fid='7' time='4.0' end='4.1'/>\n\
         <File_close fid='7' time='5.0' end='5.1'/>"
    );
    let rows = small(&calls).unwrap().events;
    let said: Vec<_> = rows.iter().map(|row| (row.function.name(), row.fd)).collect();
    let names = ["open", "set_size", "seek", "sync", "close"];
    assert_eq!(
        said,
        names
            .map(|name| (format!("MPI_File_{name}"), 7))
            .each_ref()
            .map(|(name, fd)| (name.as_str(), *fd))
    );
    let open = rows[0];
    assert_eq!((open.length, open.argument, open.result, open.offset), (1024, 2, 7, 0));
    assert_eq!([rows[1].length, rows[3].length, rows[4].length], [4096, -1, -1]);
    assert_eq!(rows[2].offset, 12);
    assert!(rows.iter().all(|row| row.file.0 == 0), "{rows:?}");
}

#[test]
fn a_view_of_an_unknown_or_missing_type_is_refused_by_line() {
    for (type_id, why) in [(4, "kind `DARRAY`"), (9, "no datatype 9")] {
        let view = format!(
            "{OPEN}\n<File_set_view fid='7' offset='0' etid='0' filetid='{type_id}' time='2' \
             end='2'/>"
        );
        let error = small(&view).unwrap_err();
        assert_eq!((error.file.as_str(), error.line), ("small_h_0_0.trc", 3), "{error}");
        assert!(error.what.contains(why), "{error}");
    }
}

#[test]
fn messages_say_partner_tag_and_communicator() {
    let calls = "<Sendrecv size='10' toRank='3' toTag='5' fromRank='2' fromTag='6' cid='0' \
                 time='1' end='2'/>";
    let event = small(calls).unwrap().events[0];
    assert_eq!((event.argument, event.offset), (3 << 32 | 5, 2 << 32 | 6));
    assert_eq!((event.fd, event.length), (0, 10));
}

#[test]
fn a_wait_names_every_request_and_null_partners_are_nobody() {
    let calls = "<Irecv fromRank='-2' fromTag='-1' cid='0' rid='4' time='1' end='1'/>\n\
                 <Isend size='3' toRank='-1' toTag='1' cid='0' rid='5' time='1' end='1'/>\n\
                 <Waitall time='2' end='3'><For rid='4' /><For rid='5' /></Waitall>";
    let rows = small(calls).unwrap().events;
    assert_eq!((rows[0].offset, rows[0].argument), (0x7fff_ffff_ffff_ffff, 4));
    assert_eq!((rows[1].offset, rows[1].argument), (5, -1));
    let waits: Vec<_> = rows[2..].iter().map(|row| (row.function, row.argument)).collect();
    assert_eq!(waits, [(Function::MPI_WAIT, 4), (Function::MPI_WAIT, 5)]);
}

#[test]
fn unknown_calls_are_left_out_and_counted_with_all_inside_them() {
    let calls = "<Nested><Send size='1' toRank='0' toTag='0' cid='0' time='1' end='1'/></Nested>\n\
                 <Win_fence time='1' end='2'/><Win_fence time='3' end='4'/>";
    let trace = small(calls).unwrap();
    assert!(trace.events.is_empty());
    let left_out = &trace.header.losses.left_out_calls;
    assert_eq!((left_out["Win_fence"], left_out["Send"]), (2, 1));
}

#[test]
fn broken_calls_are_refused_by_file_line_and_what() {
    let cases = [
        ("<Send size='1' toRank='x' toTag='0' cid='0' time='1' end='2'/>", "toRank='x'"),
        ("<Send size='-1' toRank='0' toTag='0' cid='0' time='1' end='2'/>", "size is negative"),
        ("<Send size='1' cid='0' time='1' end='2'/>", "without a partner"),
        ("<Barrier time='1' end='2'/>", "cid is missing"),
        ("<Barrier cid='0' time='2' end='1'/>", "ends before it begins"),
        ("<Barrier cid='0' time='soon' end='1'/>", "`soon` is no time"),
        ("<File_write fid='7' offset='0' size='1' time='1' end='2'/>", "not open"),
        ("<Barrier cid='0' time='1' end='2'></Wrong>", "Wrong"),
        ("<Barrier cid='0' cid='0' time='1' end='2'/>", "Barrier"),
    ];
    for (call, why) in cases {
        let error = small(call).unwrap_err();
        assert_eq!((error.file.as_str(), error.line), ("small_h_0_0.trc", 2), "{call}: {error}");
        assert!(error.what.contains(why), "{call}: {error}");
    }
}

#[test]
fn a_file_cut_anywhere_is_refused_by_its_name() {
    for length in (0..RANKS[0].len() - 20).step_by(4_999) {
        let mut ranks = RANKS;
        ranks[0] = &ranks[0][..length];
        let error = partdiff(ranks).unwrap_err();
        assert_eq!(error.file, "partdiff-par_node05_0_0.trc", "cut at {length}");
    }
    for length in (0..PARTDIFF.len() - 20).step_by(999) {
        let error = Project::parse("cut.proj", &PARTDIFF[..length]).unwrap_err();
        assert_eq!(error.file, "cut.proj", "cut at {length}: {error}");
    }
}

#[test]
fn what_is_no_hdtrace_is_said() {
    let error = Project::parse("x.proj", b"<html></html>").unwrap_err();
    assert!(error.what.contains("not a project of HDTrace"), "{error}");
    assert!(Project::parse("x.proj", b"hello").is_err());
    let deep = "<a>".repeat(100_000);
    let nested = format!("<Application>{deep}");
    let error = Project::parse("x.proj", nested.as_bytes()).unwrap_err();
    assert!(error.what.contains("deeper"), "{error}");
}

/// Every byte that is changed gives a trace or an error, never a panic or an endless loop.
#[test]
fn damaged_files_are_read_or_refused() {
    let calls = format!(
        "<Program timeAdjustment='100.5'>\n{OPEN}\n\
         <File_set_view fid='7' offset='100' etid='0' filetid='1' time='2.0' end='2.1'/>\n\
         <Nested><Send size='1' toRank='0' toTag='0' cid='0' time='3' end='3'/></Nested>\n\
         <File_read_at fid='7' offset='1' size='160' time='3.0' end='3.1'/>\n\
         <File_close fid='7' time='4' end='4'/>\n</Program>\n"
    );
    let mut random = iolab_vocab::Random::new(iolab_vocab::Seed(7));
    let mut outcomes = [0_u32; 2];
    for _ in 0..4000 {
        let mut project = SMALL.as_bytes().to_vec();
        let mut trace = calls.as_bytes().to_vec();
        for _ in 0..=random.below(3) {
            let file = if random.below(2) == 0 { &mut project } else { &mut trace };
            let at = random.below(file.len() as u64) as usize;
            match random.below(3) {
                0 => file[at] = random.below(256) as u8,
                1 => file[at] = b'0' + random.below(10) as u8,
                _ => drop(file.remove(at)),
            }
        }
        let read = Project::parse("small.proj", &project).and_then(|project| {
            let count = project.trace_names("small").len();
            let file = || TraceFile { name: "small_h_0_0.trc", bytes: &trace };
            project.import(&(0..count).map(|_| file()).collect::<Vec<_>>())
        });
        outcomes[usize::from(read.is_ok())] += 1;
    }
    assert!(outcomes.iter().all(|count| *count > 400), "{outcomes:?}");
}

#[test]
fn times_that_no_clock_shows_are_refused_by_line() {
    let error = small("<Init time='9223372036' end='9223372036.9'/>").unwrap_err();
    assert!(error.what.contains("`9223372036` is no time"), "{error}");
}
