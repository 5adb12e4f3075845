//! Archives of OTF2 as lines: what each row comes to, and that no rows are too bad.

use iolab_trace::{CallView, Event, FileEntry, Function, Header, Partner, ProcessEntry, export};
use iolab_vocab::{FileId, Nanos};
use std::collections::BTreeMap;

fn header() -> Header {
    let process =
        |rank| ProcessEntry { name: "solver".to_owned(), rank, ..ProcessEntry::default() };
    let file = FileEntry { path: "/data/a\nb\\c".to_owned(), ..FileEntry::default() };
    Header { processes: vec![process(0), process(-1)], files: vec![file], ..Header::default() }
}

fn row(function: Function, start: u64, end: u64) -> Event {
    let event = Event { file: FileId(0), fd: 3, ..Event::of(function) };
    Event { start: Nanos(start), end: Nanos(end), ..event }
}

fn lines(rows: &[Event]) -> (Vec<String>, u64) {
    let mut text = Vec::new();
    let left_out = export::otf2(&header(), rows.iter().copied(), &mut text).unwrap();
    (String::from_utf8(text).unwrap().lines().map(str::to_owned).collect(), left_out)
}

/// Lines from the first location on, without texts.
fn events(rows: &[Event]) -> Vec<String> {
    let (lines, _) = lines(rows);
    let first = lines.iter().position(|line| line.starts_with("location")).unwrap();
    let is_of_all =
        |line: &str| ["string", "ranks", "communicator"].iter().any(|word| line.starts_with(word));
    lines[first..].iter().filter(|line| !is_of_all(line)).cloned().collect()
}

#[test]
fn calls_are_regions_with_what_they_did_inside() {
    let fwrite = Event { length: 8, result: 8, offset: 0, ..row(Function::FWRITE, 10, 90) };
    let write =
        Event { length: 8, result: 8, offset: 0, parent: 0, ..row(Function::WRITE, 20, 90) };
    let read = Event { length: 5, result: -5, ..row(Function::READ, 90, 95) };
    let told = events(&[fwrite, write, read]);
    let number = |function: Function| function.0;
    let (f, w, r) = (number(Function::FWRITE), number(Function::WRITE), number(Function::READ));
    let wanted = [
        "location 0 NAME 0".to_owned(),
        format!("enter 0 10 {f}"),
        "handle 0 0 1".to_owned(),
        "begin 0 10 0 1 0 8 1 0".to_owned(),
        format!("enter 0 20 {w}"),
        "handle 1 0 0".to_owned(),
        "begin 0 20 1 1 0 8 2 0".to_owned(),
        "complete 0 90 1 8 2".to_owned(),
        format!("leave 0 90 {w}"),
        "complete 0 90 0 8 1".to_owned(),
        format!("leave 0 90 {f}"),
        format!("enter 0 90 {r}"),
        "begin 0 90 1 0 0 5 3 -1".to_owned(),
        "cancel 0 95 1 3".to_owned(),
        format!("leave 0 95 {r}"),
        "close 0".to_owned(),
        "clock 95 0".to_owned(),
        "end".to_owned(),
    ];
    assert_eq!(told[0].split(' ').next(), Some("location"));
    assert_eq!(told[1..], wanted[1..]);
}

#[test]
fn names_stay_on_their_lines_and_what_servers_did_is_counted() {
    let server = row(Function::SERVE_READ, 0, 5);
    let (lines, left_out) = lines(&[server, row(Function::READ, 1, 2)]);
    assert_eq!(left_out, 1);
    assert!(lines.iter().any(|line| line.ends_with(r" /data/a\nb\\c")));
    for name in ["MPI Rank 0", "solver", "pwrite", "MPI_File_write_all", "POSIX", "ISOC", "MPI-IO"]
    {
        let suffix = format!(" {name}");
        assert!(lines.iter().any(|line| line.ends_with(&suffix)), "{name}");
    }
}

#[test]
fn a_partner_is_named_by_its_place_in_the_communicator() {
    let process = |rank| ProcessEntry { rank, ..ProcessEntry::default() };
    let told = |processes: Vec<ProcessEntry>| {
        let header = Header { processes, communicators: vec![vec![2, 0]], ..Header::default() };
        let partner = |rank| Some(Partner { rank: Some(rank), tag: Some(5) });
        let message = |to, from, communicator| CallView::Message {
            to,
            bytes: 64,
            from,
            communicator,
            request: None,
        };
        let rows = [
            (Function::MPI_SEND, message(partner(2), None, 0)),
            // In no communicator that was declared: among all.
            (Function::MPI_RECV, message(None, partner(2), -1)),
            // From whoever came, and to who is not in the communicator.
            (Function::MPI_RECV, message(None, Some(Partner { rank: None, tag: None }), 0)),
            (Function::MPI_SEND, message(partner(1), None, 0)),
        ];
        let rows = (0_u64..).zip(rows).map(|(at, (function, view))| {
            let event = Event { rank: 0, process: 0, ..row(function, 10 * at, 10 * at + 5) };
            view.on(function, event)
        });
        let mut text = Vec::new();
        export::otf2(&header, rows, &mut text).unwrap();
        let text = String::from_utf8(text).unwrap();
        let is_told = |line: &&str| {
            ["send ", "receive ", "ranks ", "communicator "]
                .iter()
                .any(|word| line.starts_with(word))
        };
        let words = |line: &str| line.split(' ').map(str::to_owned).collect::<Vec<_>>();
        // Names are other lines.
        let plain = |line: &str| match words(line).as_slice() {
            [word, id, _, rest @ ..] if word == "ranks" || word == "communicator" => {
                format!("{word} {id} {}", rest.join(" "))
            }
            _ => line.to_owned(),
        };
        text.lines().filter(is_told).map(plain).collect::<Vec<_>>()
    };
    let wanted = [
        "send 0 0 0 0 5 64 -1",
        "receive 0 15 2 1 5 0 -1",
        "ranks 0 0 -1 -1",
        "ranks 1 2 0",
        "communicator 0 1",
        "ranks 2 0 1 2",
        "communicator 1 2",
    ];
    assert_eq!(told(vec![process(0), process(1), process(2)]), wanted);
    // Two programs with ranks of the same numbers: nobody knows whom a message is for.
    assert_eq!(told(vec![process(0), process(0)]), Vec::<String>::new());
}

/// Whatever rows there are: on each location time does not run back, and what is entered is left.
#[test]
fn no_rows_are_too_bad() {
    let mut random = iolab_vocab::Random::new(iolab_vocab::Seed(7));
    for round in 0..200 {
        let mut rows = Vec::new();
        for at in 0..40 {
            let start = random.below(60);
            let function = [
                Function::READ,
                Function::FWRITE,
                Function::OPEN,
                Function::CLOSE,
                Function::STAT,
                Function::MPI_SENDRECV,
                Function::MPI_IRECV,
                Function::MPI_WAIT,
                Function::MPI_REDUCE,
            ][random.below(9) as usize];
            rows.push(Event {
                process: random.below(3) as u32,
                thread: random.below(2) as u32,
                file: FileId(random.below(3) as u32),
                parent: random.below(at + 2) as i64 - 1,
                length: random.below(9) as i64 - 1,
                result: random.below(9) as i64 - 4,
                rank: random.below(3) as i32 - 1,
                fd: random.below(4) as i32 - 1,
                argument: [-1, 0, 1, 1 << 40][random.below(4) as usize],
                offset: [-1, 0, 3, i64::MAX][random.below(4) as usize],
                ..row(function, start, start + random.below(20))
            });
        }
        if round % 2 == 0 {
            iolab_trace::sort(&mut rows);
        }
        let (lines, left_out) = lines(&rows);
        assert_eq!(left_out, rows.iter().filter(|row| row.process == 2).count() as u64);
        let mut open: BTreeMap<u64, (u64, Vec<u64>)> = BTreeMap::new();
        let mut entered = 0;
        for line in &lines {
            let mut words = line.split(' ');
            let word = words.next().unwrap();
            if matches!(
                word,
                "string"
                    | "node"
                    | "region"
                    | "paradigm"
                    | "file"
                    | "group"
                    | "handle"
                    | "ranks"
                    | "communicator"
            ) {
                continue;
            }
            let numbers: Vec<i64> = words.map(|word| word.parse().unwrap()).collect();
            match word {
                "location" => assert!(open.insert(numbers[0] as u64, (0, Vec::new())).is_none()),
                "close" => assert!(open.remove(&(numbers[0] as u64)).unwrap().1.is_empty()),
                "clock" | "end" => {}
                _ => {
                    let (now, calls) = open.get_mut(&(numbers[0] as u64)).unwrap();
                    assert!(numbers[1] as u64 >= *now, "{line}");
                    *now = numbers[1] as u64;
                    match word {
                        "enter" => {
                            entered += 1;
                            calls.push(numbers[2] as u64);
                        }
                        "leave" => assert_eq!(calls.pop(), Some(numbers[2] as u64)),
                        _ => assert!(!calls.is_empty(), "{line}"),
                    }
                }
            }
        }
        assert!(open.is_empty());
        assert_eq!(entered + left_out as usize, rows.len());
    }
}
