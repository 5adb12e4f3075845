//! Text of Recorder: what its lines come to, and that no text is too bad.

mod rows;

use iolab_trace::import::{Recorder, RecorderError, is_recorder};
use iolab_trace::{Function, Trace};
use rows::only;

/// As `recorder2text` of Recorder 3 writes it: arguments by `lib/recorder-posix.c` and `lib/recorder-mpi-io.c`.
const TEXT: &str = "\
0.000100 0.000200 MPI_File_open 0 1 ( MPI_COMM_WORLD /data/shared file 9 0x1 0-0 )
0.000120 0.000180 open64 1 0 ( /data/shared file 66 420 )
0.000300 0.000500 MPI_File_write_at_all 0 1 ( 0-0 8192 0x7ff 512 MPI_DOUBLE [0,0,0] )
0.000350 0.000450 pwrite64 1 0 ( /data/shared file 0x7ff 4096 8192 )
0.000600 0.000700 MPI_File_read 0 1 ( 0-0 0x7ff 10 MPI_TYPE_UNKNOWN [0,0,0] )
0.000800 0.000900 MPI_File_close 0 1 ( 0-0 )
0.001000 0.001100 open 0 0 ( /data/a 66 420 )
0.001200 0.001300 write 0 0 ( /data/a 0x7ff 100 )
0.001400 0.001500 writev 0 0 ( /data/a 60 3 )
0.001600 0.001700 lseek 0 0 ( /data/a -10 1 )
0.001800 0.001900 read 0 0 ( /data/a 0x7ff 30 )
0.002000 0.002100 close 0 0 ( /data/a )
0.002200 0.002300 fopen 0 0 ( /data/b w )
0.002400 0.002500 fwrite 0 0 ( 0x7ff 8 16 /data/b )
0.002600 0.002700 fclose 0 0 ( /data/b )
0.002800 0.002900 MPI_Barrier 0 2 ( MPI_COMM_WORLD )
0.003000 0.003100 __xstat 0 0 ( 1 /data/b 0x7ff )
";

fn imported(texts: &[&str]) -> Result<Trace, RecorderError> {
    let mut run = Recorder::default();
    for (rank, text) in (0..).zip(texts) {
        run.rank(rank, text.as_bytes())?;
    }
    run.finish()
}

#[test]
fn arguments_are_those_of_c_and_positions_follow_from_calls_before() {
    let trace = imported(&[TEXT]).unwrap();
    let place = |function| {
        let event = only(&trace, function);
        let path = trace.header.files[event.file.index().unwrap()].path.clone();
        (path, event.offset, event.length, event.result)
    };
    let of = |path: &str, offset, bytes| (path.to_owned(), offset, bytes, bytes);
    assert_eq!(place(Function::WRITE), of("/data/a", 0, 100));
    assert_eq!(place(Function::WRITEV), of("/data/a", 100, 60));
    assert_eq!(place(Function::READ), of("/data/a", 150, 30));
    assert_eq!(place(Function::FWRITE), of("/data/b", 0, 128));
    assert_eq!(place(Function::PWRITE), of("/data/shared file", 8192, 4096));
    assert_eq!(place(Function::MPI_FILE_WRITE_ALL), of("/data/shared file", 8192, 4096));
    let unknown = ("/data/shared file".to_owned(), -1, -1, 0);
    assert_eq!(place(Function::MPI_FILE_READ), unknown);
    assert_eq!(place(Function::STAT).0, "/data/b");
    let write = only(&trace, Function::PWRITE);
    assert_eq!(trace.events[write.parent as usize].function, Function::MPI_FILE_WRITE_ALL);
    assert_eq!((write.start.0, write.end.0), (350_000, 450_000));
    assert_eq!(trace.header.losses.left_out_calls["MPI_Barrier"], 1);
    assert!(trace.header.losses.lost_calls.is_empty());
}

#[test]
fn calls_and_bytes_of_each_rank_are_those_of_its_lines() {
    let other = "0.5 0.6 write 0 0 ( /data/a 0x1 7 )\n".repeat(300);
    let trace = imported(&[TEXT, &other]).unwrap();
    let rank = |rank| {
        let events = trace.events.iter().filter(move |event| event.rank == rank);
        events.fold((0, 0), |sum: (u64, u64), event| (sum.0 + 1, sum.1 + event.moved_bytes()))
    };
    // A line of MPI that no row is kept of; what MPI-IO moved counts as well as what POSIX did for it.
    assert_eq!(rank(0), (16, 4096 + 4096 + 100 + 60 + 30 + 128));
    assert_eq!(rank(1), (300, 2_100));
}

#[test]
fn a_text_is_told_by_its_first_line_and_one_without_calls_is_refused() {
    assert!(is_recorder(TEXT.as_bytes()));
    for other in ["", "hello", "0.1 0.2 name", "1 2 write 0 0 ( )", "0.2 0.1 write 0 0 ( )"] {
        assert!(!is_recorder(other.as_bytes()), "{other}");
    }
    assert!(matches!(imported(&[""]), Err(RecorderError::NoCalls)));
    assert!(matches!(imported(&["0.1 0.2 H5Dwrite 0 3 ( 1 )"]), Err(RecorderError::NoCalls)));
}

#[test]
fn no_text_is_too_bad() {
    let mut bad: Vec<String> = (0..TEXT.len()).step_by(7).map(|at| TEXT[..at].to_owned()).collect();
    for (from, to) in [
        ("0.00", "99999999999999999999.00"),
        ("0.00", "4611686018.99999999999999"),
        ("0.00", "-0.00"),
        (" 100 ", " 9223372036854775807 "),
        (" 8 16 ", " 9223372036854775807 9223372036854775807 "),
        (" 8 16 ", " -8 -16 "),
        (" -10 1", " -9223372036854775808 1"),
        (" -10 1", " 9223372036854775807 0"),
        ("0-0", ""),
        ("MPI_DOUBLE", ""),
        ("512 MPI", "MPI_DOUBLE MPI"),
        ("/data", ""),
        (" ", "  "),
        ("open", "close"),
        ("(", "(("),
        (" )", ""),
        ("\n", "\r\n"),
        ("a", "\u{e9}"),
    ] {
        bad.push(TEXT.replace(from, to));
    }
    assert!(bad.len() > 100);
    for text in &bad {
        match imported(&[text]) {
            Ok(trace) => {
                for (row, event) in trace.events.iter().enumerate() {
                    assert!(event.file.index().unwrap() < trace.header.files.len());
                    assert!(event.start <= event.end && event.parent < row as i64);
                }
            }
            Err(error) => assert!(!error.to_string().is_empty() && !error.hint().is_empty()),
        }
    }
}
