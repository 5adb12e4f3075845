//! What a running program leaves behind, damaged in any way: a trace is made of it, which can be kept.

use crate::table::Numbers;
use crate::{Target, kept, seeds};
use iolab_trace::finish::{Launch, Side, Spools, finish};
use iolab_trace::spool::{
    CHUNK_BYTES, CONTROL_BYTES, CONTROL_MAGIC, Drained, PROCESS_MAGIC, RECORD_BYTES, Record,
    SPOOL_VERSION, TEXT, chunk, control, encode_drained, encode_head, process, state, take_drained,
};
use iolab_trace::{Function, function::TABLE};
use std::sync::LazyLock;

fn put(bytes: &mut [u8], at: usize, value: &[u8]) {
    bytes[at..at + value.len()].copy_from_slice(value);
}

static CONTROL: LazyLock<Vec<u8>> = LazyLock::new(|| {
    let mut page = vec![0; CONTROL_BYTES];
    put(&mut page, control::MAGIC, &CONTROL_MAGIC.to_le_bytes());
    put(&mut page, control::VERSION, &SPOOL_VERSION.to_le_bytes());
    for (index, value) in [1000u64, 50_000, 7, 3000, 51_000, 8].iter().enumerate() {
        put(&mut page, control::CALIBRATION + index * 8, &value.to_le_bytes());
    }
    page
});

/// The file `drained`, byte by byte.
pub(crate) const DRAINED: Target = Target {
    name: "drained",
    seeds: || {
        let records = [
            text_record(1, b"/data/./file"),
            call(Function::OPEN, 1, 1000),
            call(Function::WRITE, 1, 1200),
            call(Function::LSEEK, 1, 1400),
        ];
        let mut file = Vec::new();
        encode_head(&process_file(0, &[])[..256], &mut file);
        encode_drained(0, 0, 1, &chunk_of(&records)[..6 * RECORD_BYTES], &mut file);
        vec![file]
    },
    bytes_max: 2_000,
    run: |bytes| {
        let mut rest = bytes;
        while let Some(frame) = take_drained(&mut rest) {
            if let Some(frame) = frame {
                frame.records.iter().filter(|it| it.is_text()).for_each(|it| drop(it.text()));
            }
        }
        assert_eq!(Drained::peek(rest), None);
        made_of(&Spools { control: &CONTROL, drained: bytes, ..Spools::default() });
    },
};

/// Records that a process file holds, and fields of `control` and of the file's head.
pub(crate) const SPOOL: Target = Target {
    name: "spool",
    seeds: || {
        let rows = |codes: &[u8]| -> Vec<u8> {
            let calls = codes.iter().zip(0..).flat_map(|(&code, at): (_, u8)| {
                [code, 0, 0, 9, 11, 7, 24, 8, 20 + at * 4, 12, 24]
            });
            [&[0, 0][..], b"\xf0\x05/data", &calls.collect::<Vec<u8>>()].concat()
        };
        let every: Vec<u8> = (0..TABLE.len() as u8).collect();
        let mut all: Vec<_> = every.chunks(12).map(rows).collect();
        all.extend(seeds::texts(["\u{0}\u{0}\u{f0}\u{8}/a\u{f0}\u{e}\u{0}view 1 vector("]));
        all
    },
    bytes_max: 1_200,
    run: |bytes| {
        let mut numbers = Numbers(bytes);
        let mut control = CONTROL.clone();
        let mut fields = Vec::new();
        // How many words of control and of the head are other than they should be.
        for _ in 0..numbers.byte() % 4 {
            let at = usize::from(numbers.byte()) * 4;
            let value = numbers.number() as u32;
            put(&mut control, at, &value.to_le_bytes());
        }
        for _ in 0..numbers.byte() % 4 {
            fields.push((usize::from(numbers.byte()) * 4, numbers.number() as u32));
        }
        let mut records = Vec::new();
        while !numbers.is_empty() && records.len() < 60 {
            any_record(&mut numbers, &mut records);
        }
        let mut file = process_file(0, &records);
        for (at, value) in fields {
            put(&mut file, at, &value.to_le_bytes());
        }
        let mut drained = Vec::new();
        encode_drained(
            1,
            0,
            1,
            &chunk_of(&records)[..(records.len() + 1) * RECORD_BYTES],
            &mut drained,
        );
        let launch = Launch { command: vec!["a".into()], ..Launch::default() };
        let told = &drained;
        let processes = vec![&file[..]];
        made_of(&Spools { control: &control, processes, drained: &drained, told, launch });
    },
};

fn made_of(spools: &Spools) {
    for side in [Side::Program, Side::Below] {
        match finish(spools, side) {
            Err(error) => assert!(!error.to_string().is_empty()),
            Ok(trace) => {
                kept::keeps(&trace);
                crate::trace::explain(&trace);
            }
        }
    }
}

fn any_record(numbers: &mut Numbers, records: &mut Vec<Record>) {
    let code = numbers.byte();
    if code >= 0xf0 {
        let name: Vec<u8> = (0..numbers.byte() % 120).map(|_| numbers.byte()).collect();
        let number = u32::from(code & 0xf) + 1;
        records.extend((0..3).map_while(|part| Record::of_text(number, &name, part)));
        return;
    }
    let function = match usize::from(code) {
        known if known < TABLE.len() => TABLE[known].function,
        _ => Function(numbers.number() as u16),
    };
    let below = numbers.byte();
    let thread = u16::from(numbers.byte() % 3);
    let [number, fd, offset, length, argument, start, duration, result] =
        std::array::from_fn(|_| numbers.number());
    records.push(Record {
        start: start as u64,
        end: (start as u64).wrapping_add(duration as u64),
        offset,
        length,
        argument,
        result,
        number: number as u32,
        fd: fd as i32,
        function: function.0 | if below == 1 { iolab_trace::spool::BELOW } else { 0 },
        thread,
        tag: 1,
    });
}

fn text_record(number: u32, name: &[u8]) -> Record {
    let record = Record::of_text(number, name, 0).expect("a name");
    assert_eq!(record.function, TEXT);
    record
}

fn call(function: Function, number: u32, start: u64) -> Record {
    Record {
        start,
        end: start + 100,
        offset: -1,
        length: 10,
        result: 10,
        number,
        fd: 3,
        function: function.0,
        ..Record::default()
    }
}

fn process_file(index: u32, records: &[Record]) -> Vec<u8> {
    let mut file = vec![0; CHUNK_BYTES];
    put(&mut file, process::MAGIC, &PROCESS_MAGIC.to_le_bytes());
    let words = [
        (process::VERSION, SPOOL_VERSION),
        (process::CHUNK_BYTES, CHUNK_BYTES as u32),
        (process::PID, 100 + index),
        (process::RANK, u32::MAX),
        (process::INDEX, index),
        (process::CHUNKS, 1),
    ];
    words.iter().for_each(|(at, value)| put(&mut file, *at, &value.to_le_bytes()));
    put(&mut file, process::PROGRAM, b"/bin/guest");
    file[process::STATES] = state::OWNED;
    file.extend(chunk_of(records));
    file
}

fn chunk_of(records: &[Record]) -> Vec<u8> {
    let mut bytes = vec![0; CHUNK_BYTES];
    put(&mut bytes, chunk::TAG, &1u32.to_le_bytes());
    for (record, slot) in records.iter().zip(1..) {
        let at = slot * RECORD_BYTES;
        let words = [
            record.start,
            record.end,
            record.offset as u64,
            record.length as u64,
            record.argument as u64,
            record.result as u64,
            u64::from(record.number) | u64::from(record.fd as u32) << 32,
            u64::from(record.function) | u64::from(record.thread) << 16 | 1 << 32,
        ];
        for (index, word) in words.iter().enumerate() {
            put(&mut bytes, at + index * 8, &word.to_le_bytes());
        }
    }
    bytes
}
