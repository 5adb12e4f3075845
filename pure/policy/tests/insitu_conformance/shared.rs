//! What brings several processes' writes to one file together: `aggregate`, `single-writer`, and one on the
//! other. Each description stands for a process.

use super::*;

/// With parameters that make their corners frequent.
const STACKS: [&[&str]; 5] = [
    &["aggregate:block=16,buffer=100"],
    &["aggregate:block=64,buffer=1k"],
    &["single-writer:buffer=100"],
    &["single-writer:buffer=1k"],
    &["aggregate:block=16,buffer=100", "single-writer:buffer=200"],
];

/// The lengths of all writes that reached the file.
fn lengths(host: &Host) -> Vec<u64> {
    host.bottom.commands.iter().filter_map(written).collect()
}

fn write_at(host: &mut Host, handle: Handle, offset: u64, bytes: &[u8]) {
    let call = Call::Write { at: At::Offset(offset), length: bytes.len() as u64 };
    assert_eq!(host.call(handle, call, &mut bytes.to_vec()), Ok(bytes.len() as u64));
}

/// Descriptions of processes, each opened as that.
fn opened(host: &mut Host, accesses: &[Access]) -> Vec<Handle> {
    let open = |(number, &access)| {
        let handle = Handle(number as u32);
        host.bottom.below.positions.insert(handle, (0, access));
        let call = Call::Open { access, file_bytes: 0, position: 0 };
        assert_eq!(host.call(handle, call, &mut []), Ok(0));
        handle
    };
    accesses.iter().enumerate().map(open).collect()
}

#[test]
fn interleaved_pieces_of_four_processes_go_out_as_full_blocks_at_once() {
    let mut host = Host::new(&["aggregate:block=256,buffer=64k"]);
    let ranks = opened(&mut host, &[ACCESSES[0]; 4]);
    for step in 0..64_u64 {
        for rank in [2, 0, 3, 1] {
            write_at(&mut host, ranks[rank], (step * 4 + rank as u64) * 16, &[rank as u8; 16]);
        }
        let full = (step + 1) * 64 / 256;
        assert_eq!(lengths(&host).len() as u64, full, "after step {step}");
    }
    assert_eq!(lengths(&host), [256; 16]);
    let offsets = host.bottom.commands.iter().filter_map(|command| match command {
        Command::Perform { call: Call::Write { at: At::Offset(offset), .. }, .. } => Some(*offset),
        _ => None,
    });
    assert!(offsets.eq((0..16).map(|block| block * 256)), "each begins at an edge, in order");
    assert_eq!(host.stack.held_bytes(), 0);
    let expected: Vec<u8> = (0..256).flat_map(|piece: u32| [(piece % 4) as u8; 16]).collect();
    assert_eq!(host.bottom.below.bytes, expected);
}

#[test]
fn a_ragged_end_waits_for_a_sync_or_a_close_of_anybody() {
    for ending in [Call::Sync { data_only: true }, Call::Close] {
        let mut host = Host::new(&["aggregate:block=256,buffer=64k"]);
        let ranks = opened(&mut host, &[ACCESSES[0]; 2]);
        write_at(&mut host, ranks[0], 200, &[1; 100]);
        assert_eq!(lengths(&host), [0; 0]);
        assert_eq!(host.call(ranks[1], ending, &mut []), Ok(0));
        assert_eq!(lengths(&host), [56, 44], "no write crosses an edge");
    }
}

#[test]
fn a_read_of_what_is_partly_held_sends_out_its_own_blocks_alone() {
    let mut host = Host::new(&["aggregate:block=256,buffer=64k"]);
    let ranks = opened(&mut host, &[ACCESSES[0]; 2]);
    write_at(&mut host, ranks[0], 0, &[1; 2048]);
    for offset in [10, 300, 600, 1500] {
        write_at(&mut host, ranks[0], offset, &[2; 20]);
    }
    let before = lengths(&host).len();
    let mut seen = [0; 200];
    let read = Call::Read { at: At::Offset(310), length: 200 };
    assert_eq!(host.call(ranks[1], read, &mut seen), Ok(200));
    assert_eq!((seen[9], seen[10]), (2, 1));
    assert_eq!(lengths(&host)[before..], [20]);
    assert_eq!(host.stack.held_bytes(), 60);
}

#[test]
fn records_that_several_append_go_out_together_in_the_order_in_which_they_came() {
    for strategy in ["aggregate:block=64,buffer=1k", "single-writer:buffer=1k"] {
        let mut host = Host::new(&[strategy]);
        let processes = opened(&mut host, &[ACCESSES[1]; 4]);
        let mut expected = Vec::new();
        for record in 0..40_u8 {
            let process = processes[usize::from(record) * 7 % 4];
            let call = Call::Write { at: At::Position, length: 10 };
            assert_eq!(host.call(process, call, &mut [record; 10]), Ok(10));
            expected.extend([record; 10]);
        }
        for &process in &processes {
            assert_eq!(host.call(process, Call::Close, &mut []), Ok(0));
        }
        assert_eq!(host.bottom.below.bytes, expected, "{strategy}");
        assert!(lengths(&host).len() <= 7, "{strategy}: {:?}", lengths(&host));
    }
}

#[test]
fn work_goes_over_the_file_in_order_of_offset_as_an_elevator_does() {
    let mut host = Host::new(&["single-writer:buffer=1k"]);
    let ranks = opened(&mut host, &[ACCESSES[0]; 2]);
    let finish = |host: &mut Host| {
        host.begin_work();
        let outcome = host.bottom.work_ended();
        host.stack.ended(outcome);
    };
    for offset in [300, 100, 200] {
        write_at(&mut host, ranks[0], offset, &[1; 10]);
    }
    finish(&mut host);
    write_at(&mut host, ranks[1], 0, &[2; 10]);
    write_at(&mut host, ranks[1], 210, &[2; 10]);
    for _ in 0..3 {
        finish(&mut host);
    }
    host.begin_work();
    assert!(host.bottom.work.is_none(), "nothing is held any more");
    let places = host.bottom.commands.iter().filter_map(|command| match command {
        Command::Perform { call: Call::Write { at: At::Offset(at), length }, .. } => {
            Some((*at, *length))
        }
        _ => None,
    });
    assert_eq!(places.collect::<Vec<_>>(), [(100, 10), (200, 20), (300, 10), (0, 10)]);
}

#[test]
fn a_write_beside_what_is_on_its_way_does_not_wait_and_one_into_it_does() {
    let mut host = Host::new(&["single-writer:buffer=1k"]);
    let ranks = opened(&mut host, &[ACCESSES[0]; 2]);
    write_at(&mut host, ranks[0], 0, &[1; 100]);
    host.begin_work();
    write_at(&mut host, ranks[1], 100, &[2; 100]);
    let mut seen = [0; 200];
    let read = Call::Read { at: At::Offset(0), length: 200 };
    assert_eq!(host.call(ranks[1], read, &mut seen), Ok(200));
    assert_eq!((seen[0], seen[199]), (1, 2), "what is on its way is read from memory");
    assert!(host.bottom.work.is_some(), "it waited");
    write_at(&mut host, ranks[1], 50, &[3; 100]);
    assert!(host.bottom.work.is_none(), "it did not wait");
    assert_eq!(host.call(ranks[0], Call::Close, &mut []), Ok(0));
    let expected: Vec<u8> = [[1; 50].as_slice(), &[3; 100], &[2; 50]].concat();
    assert_eq!(host.bottom.below.bytes, expected);
}

/// A failure of work is told once, by the next write, sync or close, and the bytes stay for another try.
#[test]
fn work_that_fails_is_told_once_and_loses_nothing() {
    let endings = [
        Call::Write { at: At::Offset(50), length: 10 },
        Call::Sync { data_only: false },
        Call::Close,
    ];
    for ending in endings {
        let mut host = Host::new(&["single-writer:buffer=1k"]);
        let ranks = opened(&mut host, &[ACCESSES[0]; 2]);
        write_at(&mut host, ranks[0], 0, &[1; 10]);
        host.bottom.below.capacity = Some(5);
        host.begin_work();
        let outcome = host.bottom.work_ended();
        host.stack.ended(outcome);
        host.begin_work();
        assert!(host.bottom.work.is_none(), "no work before somebody was told");
        let mut seen = [0; 10];
        let read = Call::Read { at: At::Offset(0), length: 10 };
        assert_eq!(host.call(ranks[1], read, &mut seen), Ok(10), "a read is none of these");
        host.bottom.below.capacity = None;
        let mut memory = vec![2; ending.transfer_bytes() as usize];
        assert_eq!(host.call(ranks[0], ending, &mut memory), Err(ENOSPC), "{ending:?}");
        assert_eq!(host.call(ranks[1], Call::Close, &mut []), Ok(0), "{ending:?}");
        assert_eq!(host.bottom.below.bytes, [1; 10], "{ending:?}");
    }
}

/// Random calls of two to four processes, one write below fails once: what was told to be written is there in
/// the end, what was not is not, and the failure was told once: by an error, or where a write was short.
#[test]
fn whichever_write_fails_once_somebody_is_told_once_and_nothing_is_lost() {
    for stack in STACKS {
        let mut failed_count = 0;
        for seed in 0..400 {
            let mut host = Host::new(stack);
            host.leisure = (seed % 2 == 0).then(|| Random::new(Seed(seed)));
            let mut random = Random::new(Seed(seed ^ 0xfa11));
            let accesses: Vec<Access> =
                (0..2 + random.below(3)).map(|_| ACCESSES[random.below(2) as usize]).collect();
            host.bottom.below.fails_at = Some(random.below(20));
            let processes = opened(&mut host, &accesses);
            let positions = host.bottom.below.positions.clone();
            let mut plain = File { positions, ..File::default() };
            let (mut told, mut was_short) = (0, false);
            for number in 0..60 {
                host.work_at_leisure();
                let process = processes[random.below(processes.len() as u64) as usize];
                let call = random_call(&mut random);
                let mut memory: Vec<u8> =
                    (0..call.transfer_bytes()).map(|_| random.below(256) as u8).collect();
                let mut expected = memory.clone();
                let scene = format!("{stack:?}, seed {seed}, call {number}: {call:?}");
                let outcome = host.call(process, call, &mut memory);
                if outcome == Err(ENOSPC) {
                    told += 1;
                    continue;
                }
                // A write that some of was taken of, before what was in its way failed.
                if let (Call::Write { at, length }, Ok(taken)) = (call, outcome)
                    && taken < length
                {
                    was_short = true;
                    let call = Call::Write { at, length: taken };
                    expected.truncate(taken as usize);
                    assert_eq!(plain.carry_out(process, call, &mut expected), Ok(taken), "{scene}");
                    continue;
                }
                assert_eq!(plain.carry_out(process, call, &mut expected), outcome, "{scene}");
                assert_eq!(memory, expected, "{scene}");
            }
            let closed: Vec<Outcome> =
                processes.iter().map(|&it| host.call(it, Call::Close, &mut [])).collect();
            told += closed.iter().filter(|outcome| **outcome == Err(ENOSPC)).count();
            let has_failed = host.bottom.below.fails_at.is_none();
            failed_count += usize::from(has_failed);
            assert!(told <= 1, "{stack:?}, seed {seed}: told {told} times");
            assert_eq!(told == 1 || was_short, has_failed, "{stack:?}, seed {seed}");
            if closed.last() == Some(&Ok(0)) {
                assert_eq!(host.bottom.below.bytes, plain.bytes, "{stack:?}, seed {seed}");
            }
        }
        assert!(failed_count > 200, "{stack:?}: {failed_count}");
    }
}
