//! The whole text of a report, as people see it. When the change is meant, replace the file.

mod programs;

use iolab_report::text::{Style, write};
use iolab_report::{csv, report_page};
use iolab_trace::{Function, Trace};
use programs::Program;

const KIB: u64 = 1 << 10;

/// Four ranks write strided records into a shared checkpoint; rank 2 is slow and also keeps a log,
/// which it syncs after each line.
fn checkpointing() -> Program {
    let mut program = Program::ranks(4);
    let header = program.header();
    header.host = "node7".to_owned();
    header.command = vec!["./solver".to_owned(), "--steps=100".to_owned()];
    header.losses.left_out_calls.insert("/proc".to_owned(), 12);
    header.losses.unseen.push("stores through mmap of /data/table".to_owned());
    for rank in 0..4 {
        let p = program.on(rank);
        p.call_ns = if rank == 2 { 30_000 } else { 10_000 };
        p.opens("/data/checkpoint.bin", 0o101);
        for step in 0..400 {
            let offset = rank as u64 * 2 * KIB + step * 8 * KIB;
            p.seeks("/data/checkpoint.bin", offset);
            p.writes("/data/checkpoint.bin", offset, 2 * KIB).computes(5_000);
        }
        p.closes("/data/checkpoint.bin");
    }
    for line in 0..40 {
        program
            .on(2)
            .writes("/data/solver.log", line * 80, 80)
            .calls(Function::FSYNC, "/data/solver.log");
    }
    for block in 0..4 {
        program.on(0).reads("/data/input.nc", block * 1024 * KIB, 1024 * KIB);
    }
    program
}

#[test]
fn the_text_of_a_report_is_this() {
    let text = write(&checkpointing().report(), Style::default());
    let wanted = include_str!("golden/report.txt");
    assert!(text == wanted, "the text is now:\n{text}\nand should be:\n{wanted}");
}

#[test]
fn the_table_of_files_has_one_line_per_file_and_a_heading() {
    let table = csv::files(&checkpointing().report());
    let mut reader = ::csv::Reader::from_reader(table.as_bytes());
    assert_eq!(reader.headers().unwrap().len(), 15);
    let rows: Vec<_> = reader.records().collect::<Result<_, _>>().unwrap();
    assert_eq!((rows.len(), &rows[0][0]), (3, "/data/checkpoint.bin"));
}

#[test]
fn a_report_without_events_is_still_a_report() {
    let text = write(&Program::new().report(), Style::default());
    assert!(text.contains("Findings\n  ✔ none"), "{text}");
}

#[test]
fn the_page_holds_the_findings_and_jumps_into_the_timeline() {
    let program = checkpointing();
    let trace: Trace = program.trace();
    let page = String::from_utf8(report_page(&program.report(), &trace)).unwrap();
    assert!(page.contains("seek before each transfer"));
    assert!(page.contains("Bandwidth over time"));
    assert!(page.contains("stores through mmap of /data/table"));
}
