//! Strategies that cut, join, fetch or keep data, beyond what every strategy is held to.

use super::{ACCESSES, Host, compare, open};
use iolab_policy::insitu::{
    Access, At, Call, Command, Errno, Handle, Selection, StrategySpec, Whence,
};
use iolab_vocab::{Random, Seed};
use std::collections::BTreeMap;

/// Sequential, appended, random and long writes under align: the file ends up equal (that is what the
/// suite above holds), and no write that came out crosses an edge.
#[test]
fn under_align_no_write_crosses_an_edge() {
    for seed in 0..2000 {
        let mut sizes: BTreeMap<Handle, Access> = BTreeMap::new();
        for command in compare(&["align:block=64"], seed, 60) {
            let Command::Perform { handle, call, .. } = command else { continue };
            match call {
                Call::Open { access, .. } => drop(sizes.insert(handle, access)),
                Call::Write { at: At::Offset(offset), length }
                    if sizes[&handle].write && !sizes[&handle].append =>
                {
                    assert!(offset % 64 + length <= 64, "seed {seed}: {call:?}");
                }
                _ => {}
            }
        }
    }
}

#[test]
fn a_stream_of_odd_writes_goes_out_as_whole_blocks_but_for_its_ends() {
    for (access, at) in [(ACCESSES[0], At::Position), (ACCESSES[1], At::Position)] {
        let mut host = Host::new(&["align:block=64,buffer=256"]);
        let handle = open(&mut host, access);
        let mut random = Random::new(Seed(5));
        let mut bytes = 0;
        for number in 0..300 {
            // One is too long for the buffer.
            let length = if number == 100 { 1000 } else { 1 + random.below(150) };
            let call = Call::Write { at, length };
            assert_eq!(
                host.call(handle, call, &mut vec![number as u8; length as usize]),
                Ok(length)
            );
            bytes += length;
        }
        assert_eq!(host.call(handle, Call::Close, &mut []), Ok(0));
        let written: Vec<u64> = host
            .bottom
            .commands
            .iter()
            .filter_map(|command| match command {
                Command::Perform { call: Call::Write { length, .. }, .. } => Some(*length),
                _ => None,
            })
            .collect();
        assert_eq!(written.iter().sum::<u64>(), bytes);
        let ragged = written.iter().filter(|length| **length != 64).count();
        assert!(ragged <= 2, "the ends of what there is: {written:?}");
    }
}

/// A host over a file of that content.
fn host_on(strategies: &[&str], bytes: Vec<u8>) -> (Host, Handle) {
    let mut host = Host::new(strategies);
    let file_bytes = bytes.len() as u64;
    host.bottom.below.bytes = bytes;
    let handle = Handle(0);
    host.bottom.below.positions.insert(handle, (0, ACCESSES[0]));
    let call = Call::Open { access: ACCESSES[0], file_bytes, position: 0 };
    assert_eq!(host.call(handle, call, &mut []), Ok(0));
    (host, handle)
}

/// What came out below: reads and their bytes, and ranges advised.
fn read_below(host: &Host) -> (u64, u64, Vec<(u64, u64)>) {
    let (mut reads, mut bytes, mut advised) = (0, 0, Vec::new());
    for command in &host.bottom.commands {
        match command {
            Command::Perform { call: Call::Read { length, .. }, .. } => {
                (reads, bytes) = (reads + 1, bytes + length);
            }
            Command::Perform { call: Call::Advise { offset, length }, .. } => {
                advised.push((*offset, *length));
            }
            _ => {}
        }
    }
    (reads, bytes, advised)
}

fn pattern(bytes: u64) -> Vec<u8> {
    (0..bytes).map(|at| (at * 7 + at / 251) as u8).collect()
}

const BUFFERED: &str = "read-ahead:via=buffer,outsiders=none";

#[test]
fn a_thousand_small_reads_of_a_stream_become_a_few_large_ones() {
    let bytes = pattern(64_000);
    for (strategy, reads_most) in [(BUFFERED, 10), ("data-sieve:outsiders=none", 20)] {
        for forwards in [true, false] {
            let (mut host, handle) = host_on(&[strategy], bytes.clone());
            let step = if strategy == BUFFERED { 64 } else { 128 };
            for number in 0..64_000 / step {
                let number = if forwards { number } else { 64_000 / step - 1 - number };
                let (at, mut memory) = (At::Offset(number * step), [0; 64]);
                let call = Call::Read { at, length: 64 };
                assert_eq!(host.call(handle, call, &mut memory), Ok(64));
                let from = (number * step) as usize;
                assert_eq!(memory, bytes[from..from + 64], "{strategy}, read {number}");
            }
            let (reads, read_bytes, _) = read_below(&host);
            assert!(reads <= reads_most, "{strategy}: {reads} reads below");
            assert!(read_bytes <= 2 * 64_000, "{strategy}: {read_bytes} B read below");
        }
    }
}

#[test]
fn seeks_and_reads_inside_a_window_cost_no_call() {
    let (mut host, handle) = host_on(&[BUFFERED], pattern(16_000));
    let read = Call::Read { at: At::Position, length: 10 };
    for _ in 0..4 {
        assert_eq!(host.call(handle, read, &mut [0; 10]), Ok(10));
    }
    let before = read_below(&host).0;
    for _ in 0..100 {
        let seek = Call::Seek { offset: 5, whence: Whence::Current };
        host.call(handle, seek, &mut []).unwrap();
        assert_eq!(host.call(handle, read, &mut [0; 10]), Ok(10));
        let end = Call::Seek { offset: 0, whence: Whence::End };
        assert_eq!(host.call(handle, end, &mut []), Ok(16_000));
        let back = Call::Seek { offset: 40 + 15, whence: Whence::Start };
        host.call(handle, back, &mut []).unwrap();
    }
    let (reads, ..) = read_below(&host);
    // Each second round reads what is gone from the window.
    assert!(reads - before <= 100, "{reads}");
    let seeks = host
        .bottom
        .commands
        .iter()
        .filter(|command| matches!(command, Command::Perform { call: Call::Seek { .. }, .. }));
    assert_eq!(seeks.count(), 0);
}

/// Whoever looks at the same place again and again waits for somebody else to change it.
#[test]
fn what_was_read_once_is_read_below_the_next_time() {
    let (mut host, handle) = host_on(&[BUFFERED], pattern(4000));
    for offset in [0, 10, 20, 30] {
        host.call(handle, Call::Read { at: At::Offset(offset), length: 10 }, &mut [0; 10]).unwrap();
    }
    host.bottom.below.bytes[30] = 99;
    let mut memory = [0; 10];
    host.call(handle, Call::Read { at: At::Offset(30), length: 10 }, &mut memory).unwrap();
    assert_eq!(memory[0], 99);
}

#[test]
fn random_readers_with_short_streams_read_less_than_one_percent_more() {
    let file_bytes = 4 << 20;
    for strategy in ["read-ahead", BUFFERED, "data-sieve:outsiders=none"] {
        let (mut host, handle) = host_on(&[strategy], vec![1; file_bytes as usize]);
        let mut random = Random::new(Seed(11));
        let (mut asked, mut memory) = (0, vec![0; 1024]);
        while asked < 64 << 20 {
            // A record of four fields, or with gaps between them, or before each other.
            let (record, step) =
                (random.below(file_bytes - 8192), [1024, 1200, -1024][random.below(3) as usize]);
            for field in 0..4 {
                let at = At::Offset((record as i64 + 4096 + step * field) as u64);
                host.call(handle, Call::Read { at, length: 1024 }, &mut memory).unwrap();
                asked += 1024;
            }
        }
        let (_, bytes, advised) = read_below(&host);
        let ahead: u64 = advised.iter().map(|(_, length)| length).sum();
        assert!(bytes + ahead <= asked + asked / 100, "{strategy}: {bytes} + {ahead} of {asked}");
    }
}

/// Each byte of a stream is asked for once, before it is read, whatever way the stream goes.
#[test]
fn read_ahead_asks_for_what_a_stream_will_read_and_for_nothing_else() {
    let file_bytes: u64 = 40 << 20;
    let streams: [(u64, i64, u64); 5] = [
        (0, 64 << 10, 64 << 10),
        (file_bytes - (64 << 10), -(64 << 10), 64 << 10),
        (0, 256 << 10, 16 << 10),
        (file_bytes - (16 << 10), -(256 << 10), 16 << 10),
        (0, 5000, 4096),
    ];
    for (start, step, length) in streams {
        let (mut host, handle) = host_on(&["read-ahead:window=8m"], vec![0; file_bytes as usize]);
        let (mut at, mut read, mut late) = (start as i64, Vec::new(), 0);
        let mut memory = vec![0; length as usize];
        while at >= 0 && at as u64 + length <= file_bytes {
            let (_, _, advised) = read_below(&host);
            let is_there = advised
                .iter()
                .any(|(from, bytes)| *from <= at as u64 && at as u64 + length <= from + bytes);
            late += u32::from(!is_there);
            let call = Call::Read { at: At::Offset(at as u64), length };
            assert_eq!(host.call(handle, call, &mut memory), Ok(length));
            read.push(at as u64);
            at += step;
        }
        let (_, _, advised) = read_below(&host);
        assert!(late <= 3 + advised.len() as u32, "{step}: {late} of {} late", read.len());
        let asked: u64 = advised.iter().map(|(_, bytes)| bytes).sum();
        let wanted = read.len() as u64 * if step == 5000 { 5000 } else { length };
        assert!(asked <= wanted, "{step}: {asked} B asked for, {wanted} B read");
        assert!(asked * 10 >= wanted * 9, "{step}: {asked} B asked for, {wanted} B read");
    }
}

/// Short reads and failures below: what is answered is what the file has, and an end is the end.
#[test]
fn windows_survive_short_and_failed_reads_below_them() {
    let bytes = pattern(3000);
    for strategy in [
        "read-ahead:via=buffer,outsiders=none,window=500,largest=100",
        "data-sieve:outsiders=none,hole=30,window=500,largest=100",
        "read-ahead",
    ] {
        for seed in 0..300 {
            let cruel = format!("cruel:seed={seed},short=40,fail=10,errno=5");
            let (mut host, handle) = host_on(&[strategy, &cruel], bytes.clone());
            let step = [20, 25, -20, -30][seed as usize % 4];
            let mut at: i64 = if step > 0 { 0 } else { 2980 };
            while (0..3200).contains(&at) {
                let mut memory = [0; 20];
                let call = Call::Read { at: At::Offset(at as u64), length: 20 };
                match host.call(handle, call, &mut memory) {
                    Ok(0) => assert!(at >= 3000, "seed {seed}: no end at {at}"),
                    Ok(moved) => {
                        let (from, moved) = (at as usize, moved as usize);
                        assert_eq!(memory[..moved], bytes[from..from + moved], "seed {seed}");
                    }
                    Err(errno) => assert_eq!(errno, Errno(5)),
                }
                at += step;
            }
        }
    }
}

/// Another process has come: nothing of what was kept is answered from then on.
#[test]
fn what_was_kept_is_gone_after_somebody_else_was_at_the_file() {
    for call in [None, Some(Call::Settle), Some(Call::Truncate { length: 4000 })] {
        let (mut host, handle) = host_on(&[BUFFERED], pattern(4000));
        for offset in [0, 10, 20, 30] {
            let call = Call::Read { at: At::Offset(offset), length: 10 };
            host.call(handle, call, &mut [0; 10]).unwrap();
        }
        match call {
            None => host.stack.drained(4000),
            Some(call) => drop(host.call(handle, call, &mut [])),
        }
        host.bottom.below.bytes[40] = 99;
        let mut memory = [0; 10];
        host.call(handle, Call::Read { at: At::Offset(40), length: 10 }, &mut memory).unwrap();
        assert_eq!(memory[0], 99, "{call:?}");
    }
}

#[test]
fn what_keeps_bytes_asks_for_the_users_word_and_slips_are_named() {
    for (text, offender) in [
        ("read-ahead:via=buffer", "outside of the run"),
        ("data-sieve", "outside of the run"),
        ("data-sieve:outsiders=some", "`some`"),
        ("data-sieve:outsiders=none,hole=1m", "hole"),
        ("read-ahead:via=both", "`both`"),
        ("read-ahead:window=1", "window"),
        ("read-ahead:largest=4k", "via=kernel"),
        ("read-ahead:via=buffer,outsiders=none,window=4k,largest=8k", "largest"),
        ("seek-elide:outsiders=few", "`few`"),
        ("align:block=auto", "block"),
        ("align:block=1m,buffer=1m", "buffer"),
    ] {
        let error = StrategySpec::parse(text).unwrap_err();
        assert!(error.message.contains(offender), "{text}: {error}");
    }
    let block_of = |selection: &Selection| match selection.paths.is_empty() {
        true => None,
        false => Some(4 << 20),
    };
    let texts = ["null + align:block=auto,paths=*.chk,age=2s"];
    let specs = StrategySpec::parse_each_on(&texts, &block_of).unwrap();
    assert_eq!(specs[1].text, "align:block=4194304,age=2s,paths=*.chk");
    assert_eq!(specs[1].build().holding_bytes(), 16 << 20);
    assert!(StrategySpec::parse_each_on(&["align:block=auto"], &block_of).is_err());
    let keeps = |text: &str| StrategySpec::parse(text).unwrap().build().keeps_bytes();
    assert!(keeps("read-ahead:via=buffer,outsiders=none") && keeps("seek-elide:outsiders=none"));
    assert!(!keeps("read-ahead") && !keeps("seek-elide") && !keeps("align"));
}
