//! Each rule finds its fault in a small faulty program and is silent about the near miss.

mod programs;

use iolab_report::{ObjectRow, Severity};
use iolab_trace::{Event, Function, Layer};
use iolab_vocab::{Random, Seed};
use programs::Program;

const KIB: u64 = 1 << 10;
const MIB: u64 = 1 << 20;
const O_WRONLY_CREAT: i64 = 0o101;
const O_DSYNC: i64 = 0o10000;

/// A fault, and what looks like it but is none.
#[track_caller]
fn assert_told_apart(rule: &str, faulty: &Program, near_miss: &Program) {
    assert!(faulty.findings().contains(&rule), "missed: {:?}", faulty.findings());
    assert!(!near_miss.findings().contains(&rule), "false alarm: {:?}", near_miss.findings());
}

fn program(build: impl FnOnce(&mut Program)) -> Program {
    let mut program = Program::new();
    build(&mut program);
    program
}

fn ranks(count: i32, build: impl Fn(&mut Program, usize)) -> Program {
    let mut program = Program::ranks(count);
    (0..count as usize).for_each(|rank| build(program.on(rank), rank));
    program
}

#[test]
fn a_strategy_that_holds_bytes_is_no_remedy_where_several_processes_have_the_file_open() {
    let in_turn = |apart_ns: u64| {
        ranks(2, |p, rank| {
            p.computes(rank as u64 * apart_ns);
            (0..500).for_each(|i| {
                p.writes("/out", (rank as u64 * 500 + i) * 64, 64);
            });
        })
    };
    let remedy = |program: &Program| {
        program.finding("small-sequential-writes").remedy.expect("there is one")
    };
    let shared = remedy(&in_turn(0));
    assert_eq!(shared.strategy, None);
    assert!(shared.sentence.ends_with("which several processes have open at once"), "{shared:?}");
    // One after the other is each one's own; rank 0 takes 500 us.
    let apart = remedy(&in_turn(600_000));
    assert_eq!(apart.strategy.as_deref(), Some("write-back:paths=/out"));
    assert!(apart.sentence.ends_with("or write-back around it"), "{apart:?}");

    let mut mixed = in_turn(0);
    (0..300).for_each(|i| {
        mixed.on(0).writes("/own", i * 64, 64);
    });
    let mixed = remedy(&mixed);
    assert_eq!(mixed.strategy.as_deref(), Some("write-back:paths=/own"), "{mixed:?}");

    // What holds nothing helps there as well.
    let seeking = ranks(2, |p, _| {
        (0..300).for_each(|i| {
            p.seeks("/out", i * 128).writes("/out", i * 128, 64);
        });
    });
    let seeks = seeking.finding("seek-before-each-transfer").remedy.expect("there is one");
    assert_eq!(seeks.strategy.as_deref(), Some("seek-elide:paths=/out"));
}

#[test]
fn tiny_sequential_writes() {
    let writing = |count: u64, bytes: u64| {
        program(|p| {
            (0..count).for_each(|i| {
                p.writes("/out", i * bytes, bytes);
            })
        })
    };
    let faulty = writing(1000, 64);
    assert_told_apart("small-sequential-writes", &faulty, &writing(1000, 64 * KIB));
    assert_told_apart("small-sequential-writes", &faulty, &writing(20, 64));

    let finding = faulty.finding("small-sequential-writes");
    assert_eq!(finding.severity, Severity::High);
    assert_eq!((finding.evidence.calls, finding.evidence.bytes), (1000, 64_000));
    assert_eq!(finding.message, "1,000 writes of 64 B, each right after the one before");
    assert_eq!(finding.remedy.unwrap().strategy.unwrap(), "write-back:paths=/out");

    // No size is the usual one: 100 to 420 bytes, each once.
    let growing = program(|p| {
        let mut end = 0;
        (100..421).for_each(|bytes| {
            p.writes("/out", end, bytes);
            end += bytes;
        });
    });
    let message = growing.finding("small-sequential-writes").message;
    assert_eq!(message, "321 writes of 260 B on average, each right after the one before");
}

#[test]
fn tiny_random_writes() {
    let writing = |bytes: u64| {
        let mut random = Random::new(Seed(1));
        program(|p| {
            (0..500).for_each(|_| {
                p.writes("/db", random.below(1000) * MIB, bytes);
            })
        })
    };
    assert_told_apart("small-random-writes", &writing(100), &writing(MIB));
    assert_eq!(writing(100).finding("small-random-writes").evidence.rows, [1]);
}

#[test]
fn tiny_sequential_reads() {
    let reading = |bytes: u64| {
        program(|p| {
            (0..1000).for_each(|i| {
                p.reads("/in", i * bytes, bytes);
            })
        })
    };
    assert_told_apart("small-sequential-reads", &reading(512), &reading(MIB));
}

#[test]
fn tiny_random_reads() {
    let reading = |bytes: u64| {
        let mut random = Random::new(Seed(2));
        program(|p| {
            (0..500).for_each(|_| {
                p.reads("/in", random.below(1000) * MIB, bytes);
            })
        })
    };
    assert_told_apart("small-random-reads", &reading(100), &reading(MIB));
}

#[test]
fn strided_records_are_said_to_be_strided() {
    let faulty = program(|p| {
        (0..500).for_each(|i| {
            p.writes("/m", i * 4000, 100);
        })
    });
    let message = faulty.finding("small-random-writes").message;
    assert_eq!(
        message,
        "499 writes of 100 B, each at other offsets (simple strided, 100 B every 3.91 KiB)"
    );
}

#[test]
fn redundant_seeks() {
    let reading = |gap: u64| {
        program(|p| {
            for i in 0..300 {
                p.seeks("/in", i * (64 * KIB + gap)).reads("/in", i * (64 * KIB + gap), 64 * KIB);
            }
        })
    };
    assert_told_apart("redundant-seeks", &reading(0), &reading(512));
    let strategy = reading(0).finding("redundant-seeks").remedy.unwrap().strategy;
    assert_eq!(strategy.unwrap(), "seek-elide:paths=/in");
}

#[test]
fn seek_before_each_transfer() {
    let reading = |seeks_every: u64| {
        program(|p| {
            for i in 0..1000 {
                if i % seeks_every == 0 {
                    p.seeks("/in", i * MIB);
                }
                p.reads("/in", i * MIB, 64 * KIB);
            }
        })
    };
    assert_told_apart("seek-before-each-transfer", &reading(1), &reading(5));
}

#[test]
fn fsync_storm() {
    let syncing = |bytes: u64| {
        program(|p| {
            for i in 0..50 {
                p.writes("/log", i * bytes, bytes).calls(Function::FSYNC, "/log");
            }
        })
    };
    assert_told_apart("fsync-storm", &syncing(100), &syncing(16 * MIB));
    assert_eq!(
        syncing(100).finding("fsync-storm").message,
        "50 syncs, one for every 100 B written"
    );
}

#[test]
fn synchronous_writes() {
    let writing = |flags: i64| {
        program(|p| {
            p.opens("/log", flags);
            (0..50).for_each(|i| {
                p.writes("/log", i * 100, 100);
            });
        })
    };
    assert_told_apart("synchronous-writes", &writing(1 | O_DSYNC), &writing(1));
}

#[test]
fn flush_after_each_print() {
    let printing = |every: u64| {
        program(|p| {
            for i in 0..1000 {
                p.calls(Function::FPUTS, "/log");
                if i % every == 0 {
                    p.calls(Function::FFLUSH, "/log").writes("/log", i * 80, 80 * every);
                }
            }
        })
    };
    assert_told_apart("flush-after-each-print", &printing(1), &printing(100));
}

#[test]
fn open_close_churn() {
    let writing = |writes_per_open: u64| {
        program(|p| {
            for i in 0..40 {
                p.opens("/log", O_WRONLY_CREAT);
                for j in 0..writes_per_open {
                    p.writes("/log", (i * writes_per_open + j) * 100 * KIB, 100 * KIB);
                }
                p.closes("/log");
            }
        })
    };
    assert_told_apart("open-close-churn", &writing(1), &writing(50));
    let message = writing(1).finding("open-close-churn").message;
    assert_eq!(message, "opened 40 times for 1.0 reads and writes each time");
}

#[test]
fn many_ranks_that_open_a_file_once_do_not_churn() {
    let program = ranks(64, |p, _| {
        p.opens("/in", 0).reads("/in", 0, MIB).closes("/in");
    });
    assert!(!program.findings().contains(&"open-close-churn"), "{:?}", program.findings());
}

#[test]
fn read_after_write() {
    let faulty = program(|p| {
        for i in 0..300 {
            p.writes("/t", i * 64 * KIB, 64 * KIB).reads("/t", i * 64 * KIB, 64 * KIB);
        }
    });
    // All is written, then all is read: the last 64 are found, the rest is another phase.
    let near_miss = program(|p| {
        (0..300).for_each(|i| {
            p.writes("/t", i * 64 * KIB, 64 * KIB);
        });
        (0..300).for_each(|i| {
            p.reads("/t", i * 64 * KIB, 64 * KIB);
        });
    });
    assert_told_apart("read-after-write", &faulty, &near_miss);
}

#[test]
fn reading_again() {
    let reading = |passes: u64| {
        program(|p| {
            for _ in 0..passes {
                (0..10).for_each(|i| {
                    p.reads("/in", i * MIB, MIB);
                });
            }
        })
    };
    assert_told_apart("rereads", &reading(5), &reading(1));
    let message = reading(5).finding("rereads").message;
    assert_eq!(message, "10 MiB are read 5.0 times over");
}

#[test]
fn ranks_that_each_read_the_file_once_do_not_read_again() {
    let program = ranks(4, |p, _| {
        (0..10).for_each(|i| {
            p.reads("/in", i * MIB, MIB);
        })
    });
    assert!(!program.findings().contains(&"rereads"), "{:?}", program.findings());
}

#[test]
fn writing_again() {
    let writing = |step: u64| {
        program(|p| {
            (0..10).for_each(|i| {
                p.writes("/s", i * step, MIB);
            })
        })
    };
    assert_told_apart("rewrites", &writing(0), &writing(MIB));
}

#[test]
fn unaligned_writes() {
    let writing = |offset: u64| {
        program(|p| {
            (0..200).for_each(|i| {
                p.writes("/f", offset + i * MIB, 64 * KIB);
            })
        })
    };
    assert_told_apart("unaligned-writes", &writing(100), &writing(0));
}

#[test]
fn interleaved_shared_file() {
    let writing = |stride: u64, part: u64| {
        ranks(4, |p, rank| {
            for i in 0..50 {
                p.writes("/shared", rank as u64 * part + i * stride, 50 * KIB);
            }
        })
    };
    let interleaved = writing(200 * KIB, 50 * KIB);
    let segmented = writing(50 * KIB, 2500 * KIB);
    assert_told_apart("interleaved-shared-file", &interleaved, &segmented);
}

#[test]
fn backward_reads() {
    let reading = |order: &dyn Fn(u64) -> u64| {
        program(|p| {
            (0..200).for_each(|i| {
                p.reads("/in", order(i) * 64 * KIB, 64 * KIB);
            })
        })
    };
    assert_told_apart("backward-reads", &reading(&|i| 199 - i), &reading(&|i| i));
}

#[test]
fn empty_reads() {
    let polling = |polls: u64| {
        program(|p| {
            (0..150).for_each(|i| {
                p.reads("/log", i * MIB, MIB);
            });
            (0..polls).for_each(|_| {
                p.reads("/log", 150 * MIB, 0);
            });
        })
    };
    assert_told_apart("empty-reads", &polling(200), &polling(1));
}

/// A hundred starts of a program that reads its little file to the end are no habit of reading it.
#[test]
fn what_many_programs_or_openings_do_once_is_no_habit() {
    let settings = |p: &mut Program| {
        p.opens("/settings", 0).reads("/settings", 0, 2).reads("/settings", 2, 0);
    };
    let openings = program(|p| (0..150).for_each(|_| settings(p)));
    let programs = ranks(150, |p, _| settings(p));
    for many in [openings, programs] {
        for rule in ["empty-reads", "small-sequential-reads"] {
            assert!(!many.findings().contains(&rule), "{:?}", many.findings());
        }
    }
}

#[test]
fn failing_transfers() {
    let writing = |failures: u64| {
        program(|p| {
            (0..failures).for_each(|_| {
                p.fails(Function::WRITE, "/full", 28);
            })
        })
    };
    assert_told_apart("failing-transfers", &writing(50), &writing(1));
}

#[test]
fn stat_storm() {
    let asking = |files: u64| {
        program(|p| {
            (0..400).for_each(|i| {
                p.calls(Function::STAT, &format!("/dir/{}", i % files));
            })
        })
    };
    assert_told_apart("stat-storm", &asking(1), &asking(400));
}

#[test]
fn looking_for_what_is_not_there() {
    let looking = |files: u64| {
        program(|p| {
            (0..400).for_each(|i| {
                p.fails(Function::OPEN, &format!("/lib/{}", i % files), 2);
            })
        })
    };
    assert_told_apart("missing-file-lookups", &looking(1), &looking(400));
}

#[test]
fn lock_storm() {
    let locking = |count: u64| {
        program(|p| {
            (0..count).for_each(|_| {
                p.calls(Function::FCNTL_LOCK, "/db");
            })
        })
    };
    assert_told_apart("lock-storm", &locking(500), &locking(10));
}

#[test]
fn temporary_file() {
    let writing = |last: Function| {
        program(|p| {
            p.opens("/tmp/x", O_WRONLY_CREAT).writes("/tmp/x", 0, 4 * MIB).closes("/tmp/x");
            p.calls(last, "/tmp/x");
        })
    };
    assert_told_apart("temporary-file", &writing(Function::UNLINK), &writing(Function::STAT));
}

#[test]
fn many_small_files() {
    let writing = |files: u64, bytes: u64| {
        program(|p| {
            for i in 0..files {
                let path = format!("/out/part-{i}");
                p.opens(&path, O_WRONLY_CREAT).writes(&path, 0, bytes).closes(&path);
            }
        })
    };
    assert_told_apart("many-small-files", &writing(300, 1000), &writing(300, MIB));
    assert_told_apart("many-small-files", &writing(300, 1000), &writing(9, 1000));
}

#[test]
fn metadata_heavy() {
    let asking = |stats: u64| {
        program(|p| {
            (0..stats).for_each(|i| {
                p.calls(Function::STAT, &format!("/{i}"));
            });
            (0..200).for_each(|i| {
                p.writes("/out", i * MIB, MIB);
            });
        })
    };
    assert_told_apart("metadata-heavy", &asking(1000), &asking(10));
}

#[test]
fn one_slow_rank() {
    let writing = |slow_ns: u64, more: u64| {
        ranks(4, |p, rank| {
            p.call_ns = if rank == 2 { slow_ns } else { 100_000 };
            let count = if rank == 2 { 100 * more } else { 100 };
            let path = format!("/out.{rank}");
            (0..count).for_each(|i| {
                p.writes(&path, i * 100 * KIB, 100 * KIB);
            });
        })
    };
    let faulty = writing(500_000, 1);
    assert_told_apart("one-slow-rank", &faulty, &writing(120_000, 1));
    // Five times the time for five times the bytes is not slow, it is uneven.
    assert_told_apart("one-slow-rank", &faulty, &writing(100_000, 5));
    assert_told_apart("rank-imbalance", &writing(100_000, 5), &faulty);
    assert_eq!(faulty.finding("one-slow-rank").evidence.ranks, [2]);
}

#[test]
fn one_rank_does_the_io() {
    let writing = |writers: usize| {
        ranks(4, |p, rank| {
            let path = format!("/out.{rank}");
            let count = if rank < writers { 50 } else { 1 };
            (0..count).for_each(|i| {
                p.writes(&path, i * MIB, if count > 1 { MIB } else { 8 });
            });
        })
    };
    assert_told_apart("single-rank-io", &writing(1), &writing(4));
}

#[test]
fn of_two_ranks_one_may_do_it_all_and_alone_nobody_can() {
    let writing = |count: i32, bytes: u64| {
        ranks(count, |p, rank| {
            let own = if rank == 0 { bytes } else { 8 };
            p.writes("/out", rank as u64 * MIB, own).writes("/out", rank as u64 * MIB + own, own);
        })
    };
    let found = writing(2, MIB).finding("single-rank-io");
    assert_eq!(found.evidence.ranks, [0]);
    assert!(
        found
            .message
            .starts_with("rank 0 moves 100 % of all bytes (2 MiB of 2.00 MiB) for 2 ranks"),
        "{}",
        found.message
    );
    assert_told_apart("single-rank-io", &writing(2, MIB), &writing(1, MIB));
    // A mebibyte in all is worth a word, a byte less is not.
    assert_told_apart("single-rank-io", &writing(2, MIB / 2 - 8), &writing(2, MIB / 2 - 9));
}

#[test]
fn a_rank_is_held_against_the_middle_of_the_others() {
    let writing = |times_ns: &[u64]| {
        ranks(times_ns.len() as i32, |p, rank| {
            p.call_ns = times_ns[rank];
            let path = format!("/out.{rank}");
            (0..100).for_each(|i| {
                p.writes(&path, i * 100 * KIB, 100 * KIB);
            });
        })
    };
    let found = writing(&[100_000, 500_000, 300_000]).finding("one-slow-rank");
    assert_eq!(found.evidence.ranks, [1]);
    // Of two others the faster one.
    let wanted =
        "rank 1 takes 5.0 times as long for the same I/O as the others (50.0 ms against 10.0 ms)";
    assert_eq!(found.message, wanted);
    assert_eq!(found.evidence.time_ns, 40_000_000);
}

#[test]
fn a_quarter_of_the_calls_is_a_habit() {
    let writing = |tiny: u64, large: u64| {
        program(|p| {
            (0..large).for_each(|i| {
                p.writes("/out", i * MIB, MIB);
            });
            (0..tiny).for_each(|i| {
                p.writes("/out", large * MIB + i * 64, 64);
            });
        })
    };
    // The first tiny write continues the large ones, so that each of them counts.
    assert_told_apart("small-sequential-writes", &writing(110, 320), &writing(110, 340));
    assert_told_apart("small-sequential-writes", &writing(110, 100), &writing(90, 100));
}

#[test]
fn more_processes_and_files_than_are_listed_are_counted() {
    let text = |count: i32| {
        let program = ranks(count, |p, rank| {
            p.writes(&format!("/out.{rank}"), 0, MIB);
        });
        iolab_report::text::write(&program.report(), iolab_report::text::Style::default())
    };
    let more = |count: i32| text(count).matches("  … and 2 more\n").count();
    assert_eq!([more(10), more(12)].map(|count| count > 0), [false, true]);
    assert!(!text(10).contains("more\n"), "{}", text(10));
}

#[test]
fn the_page_lists_fifty_files_and_counts_the_others() {
    let page = |count: u64| {
        let program = program(|p| {
            (0..count).for_each(|i| {
                p.writes(&format!("/out.{i}"), 0, MIB);
            })
        });
        String::from_utf8(iolab_report::report_page(&program.report(), &program.trace())).unwrap()
    };
    assert!(page(53).contains("3 more files took less time."));
    assert!(!page(50).contains("more files took less time."));
}

#[test]
fn a_process_the_header_does_not_know_is_a_process_all_the_same() {
    let mut analysis = iolab_report::Analysis::new(iolab_trace::Header::default());
    let write = Event { offset: 0, length: 8, result: 8, ..Event::of(Function::WRITE) };
    analysis.observe(&Event { process: 0, ..write });
    analysis.observe(&Event { process: 3, thread: 4, ..write });
    assert_eq!(analysis.finish().summary.written_bytes, 16);
}

#[test]
fn a_cheap_habit_is_told_quietly() {
    let quiet = program(|p| {
        (0..1000).for_each(|i| {
            p.writes("/log", i * 64, 64);
        });
        p.computes(1_000_000_000).writes("/log", 64_000, 64);
    });
    assert_eq!(quiet.finding("small-sequential-writes").severity, Severity::Low);
}

#[test]
fn one_fault_in_many_files_is_one_finding() {
    let faulty = program(|p| {
        for file in 0..7 {
            let path = format!("/run/out/part.{file}");
            (0..500).for_each(|i| {
                p.writes(&path, i * 64, 64);
            });
        }
    });
    let finding = faulty.finding("small-sequential-writes");
    assert_eq!((finding.files.len(), finding.evidence.calls), (7, 3500));
    assert_eq!(finding.remedy.unwrap().strategy.unwrap(), "write-back:paths=/run/out/**");
}

#[test]
fn small_prints_through_a_stream_are_no_tiny_writes_when_the_buffer_gathers_them() {
    let printing = program(|p| {
        p.call("/out", Event { result: 3, ..Event::of(Function::OPEN) });
        for block in 0..300 {
            let last = (0..128)
                .map(|i| {
                    let offset = block * 32 * 1024 + i * 256;
                    let print =
                        Event { offset, length: 256, result: 256, ..Event::of(Function::FWRITE) };
                    p.call("/out", print)
                })
                .last();
            p.call(
                "/out",
                Event {
                    offset: block * 32 * 1024,
                    length: 32 * 1024,
                    result: 32 * 1024,
                    parent: last.unwrap(),
                    ..Event::of(Function::WRITE)
                },
            );
        }
    });
    assert!(printing.findings().is_empty(), "{:?}", printing.findings());
    let report = printing.report();
    assert_eq!(report.summary.written_bytes, 300 * 32 * KIB, "each byte counts once");
    assert_eq!(report.summary.io_ns, 301 * 1000, "time is that of what reached the system");
    assert_eq!((report.files[0].write_count, report.files[0].system_write_count), (300, 300));
}

/// Devices of a cluster that ran so long: how many accesses of how many bytes each, 1 us each.
fn devices(run_ns: u64, accesses: &[(u64, u64)]) -> Program {
    let mut cluster = ranks(accesses.len() as i32, |device, index| {
        let (count, bytes) = accesses[index];
        (0..count).for_each(|i| {
            device.device_writes("/data", i * bytes, bytes);
        });
    });
    for (index, entry) in cluster.header().processes.iter_mut().enumerate() {
        (entry.name, entry.rank) = (format!("server{index} device"), -1);
        entry.end_ns = run_ns;
    }
    cluster
}

#[test]
fn uneven_servers() {
    let (even, run) = ((100, 64 * KIB), 20_000_000);
    let faulty = devices(run, &[even, (4000, 64 * KIB), even]);
    let near = |accesses: &[(u64, u64)]| {
        assert_told_apart("uneven-servers", &faulty, &devices(run, accesses));
    };
    near(&[even, (199, 64 * KIB), even]);
    near(&[(4000, 64 * KIB)]);
    // Most of the servers work, or it is not worth a word.
    near(&[(4000, 64 * KIB), (4000, 64 * KIB), (0, 0)]);
    near(&[(4000, 1), even, even]);
    assert_told_apart(
        "uneven-servers",
        &faulty,
        &devices(100 * run, &[even, (4000, 64 * KIB), even]),
    );

    let finding = faulty.finding("uneven-servers");
    let wanted = "1 of 3 servers work for 4.00 ms each, the others for 100 µs (server1): 250 MiB each, \
                  against 6.25 MiB";
    assert_eq!(finding.message, wanted);
    assert_eq!((finding.evidence.time_ns, finding.evidence.share_of_run), (3_900_000, 0.195));
    let slow = devices(run, &[even, (4000, 1638), even]).finding("uneven-servers");
    assert!(slow.message.contains("for about as many bytes (6.25 MiB each)"), "{}", slow.message);
    // Half as much again is the limit: 1.4 times the bytes are about as many.
    let rather_more = devices(run, &[even, (4000, 2293), even]).finding("uneven-servers");
    assert!(
        rather_more.message.contains("for about as many bytes (8.75 MiB each)"),
        "{}",
        rather_more.message
    );
    let many = [(5000, KIB), (4000, KIB), (100, KIB), (100, KIB), (100, KIB), (100, KIB)];
    let two = devices(run, &many).finding("uneven-servers");
    assert!(two.message.starts_with("2 of 6 servers") && two.message.contains("server0, server1"));
}

#[test]
fn partial_chunk_access() {
    const CHUNK: i64 = 64 * 1024;
    let of = ("/f.h5", Some("/d"));
    let program = |function, count: u64, asked: u64, below: &[i64]| {
        program(|p| {
            for _ in 0..count {
                p.calls_on_object(function, of, asked, below);
            }
        })
    };
    let writing = |count, below: &[i64]| program(Function::H5D_WRITE, count, 1024, below);
    let faulty = writing(40, &[-CHUNK, CHUNK]);
    // Whole chunks, and what a compressed one comes to.
    let whole = program(Function::H5D_WRITE, 40, 64 * KIB, &[CHUNK, 40_000, -512]);
    assert_told_apart("partial-chunk-access", &faulty, &whole);
    // A few accesses, or little in all, are what a file costs anyway.
    assert_told_apart("partial-chunk-access", &faulty, &writing(10, &[-CHUNK, CHUNK]));
    assert_told_apart("partial-chunk-access", &faulty, &writing(40, &[-2048, 2048]));
    let reading = program(Function::H5D_READ, 40, 1024, &[-CHUNK]);
    assert_told_apart("partial-chunk-access", &reading, &whole);
    let finding = faulty.finding("partial-chunk-access");
    let wanted = "/d: 40 writes of 40 KiB in all move 5 MiB through chunks of 128 × 64 (64 KiB)";
    assert_eq!((finding.message.as_str(), finding.evidence.calls), (wanted, 40));
    assert_eq!((finding.severity, finding.files), (Severity::High, vec!["/f.h5".to_owned()]));
}

#[test]
fn tiny_dataset_accesses() {
    let writing = |count: u64, asked: u64| {
        program(|p| {
            let of = ("/f.h5", Some("/d"));
            for _ in 0..count {
                p.calls_on_object(Function::H5D_WRITE, of, asked, &[]);
            }
        })
    };
    let faulty = writing(1000, 8);
    assert_told_apart("small-dataset-accesses", &faulty, &writing(1000, 64 * KIB));
    assert_told_apart("small-dataset-accesses", &faulty, &writing(100, 8));
    assert_eq!(
        faulty.finding("small-dataset-accesses").message,
        "/d: 1,000 writes of 8 B on average"
    );
}

#[test]
fn metadata_between_data() {
    let writing = |flush_every: usize, small: i64| {
        program(|p| {
            for i in 0..200 {
                p.calls_on_object(Function::H5D_WRITE, ("/f.h5", Some("/d")), 4096, &[4096]);
                if i % flush_every == 0 {
                    p.calls_on_object(Function::H5F_FLUSH, ("/f.h5", None), 0, &[small, small]);
                }
            }
        })
    };
    let faulty = writing(1, 96);
    assert_told_apart("metadata-between-data", &faulty, &writing(50, 96));
    assert_told_apart("metadata-between-data", &faulty, &writing(1, 64 << 10));
    // All of it at the end is between nothing.
    let at_end = program(|p| {
        for _ in 0..200 {
            p.calls_on_object(Function::H5D_WRITE, ("/f.h5", Some("/d")), 4096, &[4096]);
        }
        p.calls_on_object(Function::H5F_CLOSE, ("/f.h5", None), 0, &[96; 400]);
    });
    assert_told_apart("metadata-between-data", &faulty, &at_end);
    let wanted = "398 small writes of HDF5's own metadata (37.3 KiB) between 200 writes of data";
    assert_eq!(faulty.finding("metadata-between-data").message, wanted);
}

#[test]
fn every_byte_below_hdf5_has_one_cause() {
    let mut program = program(|p| {
        p.calls_on_object(Function::H5D_WRITE, ("/f.h5", Some("/a")), 100, &[300, -50]);
        p.calls_on_object(Function::H5D_READ, ("/f.h5", Some("/b")), 100, &[-100]);
        p.calls_on_object(Function::H5D_CLOSE, ("/f.h5", Some("/a")), 0, &[11]);
        p.calls_on_object(Function::H5F_CLOSE, ("/f.h5", None), 0, &[7]);
        // At the end of the program, and a file that has nothing to do with it.
        p.writes("/f.h5", 0, 5).writes("/other", 0, 1000);
    });
    let rows = program.report().datasets;
    let moved = |row: &ObjectRow| {
        let below = row.level(Layer::Posix).unwrap();
        (below.read_bytes, below.written_bytes)
    };
    let names: Vec<_> = rows.iter().map(|row| row.dataset.as_deref()).collect();
    assert_eq!(names, [Some("/a"), Some("/b"), None]);
    assert_eq!(rows.iter().map(moved).collect::<Vec<_>>(), [(50, 311), (100, 0), (0, 12)]);
    assert_eq!((rows[0].write_amplification, rows[1].read_amplification), (Some(3.61), Some(1.0)));
    let above = rows[0].level(Layer::Hdf5).unwrap();
    assert_eq!((above.call_count, above.time_ns, above.own_ns), (2, 5_000, 2_000));
    assert_eq!(rows[2].share_of_file, 12.0 / 473.0);
    program.header().objects.clear();
    assert!(program.report().datasets.is_empty(), "no calls of HDF5 that say on what");
}

/// What HDF5 does for NetCDF is NetCDF's; what the program has HDF5 do itself stands beside it.
#[test]
fn every_byte_below_netcdf_has_one_cause() {
    let program = program(|p| {
        let of = ("/f.nc", Some("/t"));
        p.calls_through(
            &[(Function::NC_PUT_VARA, 100), (Function::H5D_WRITE, 50)],
            of,
            &[-200, 300],
        );
        p.calls_through(&[(Function::NC_PUT_VAR1, 8), (Function::H5D_SET_EXTENT, 0)], of, &[-16]);
        p.calls_on_object(Function::H5D_READ, ("/f.nc", Some("/d")), 10, &[-40]);
        p.calls_on_object(Function::NC_SYNC, ("/f.nc", None), 0, &[7]);
        // What leaves the cache of chunks when the file is closed.
        p.closes_dataset("/f.nc", "/t", &[1000]);
        p.closes_dataset("/f.nc", "/dimension", &[20]);
        p.calls_on_object(Function::NC_PUT_VARA, ("/classic.nc", Some("/t")), 64, &[64]);
        p.calls_on_object(Function::NCMPI_WAIT_ALL, ("/classic.nc", Some("/u")), 30, &[30]);
        p.writes("/f.nc", 0, 5);
    });
    let rows = program.report().datasets;
    let told = |row: &ObjectRow| {
        let below = row.level(Layer::Posix).unwrap();
        let name = row.dataset.clone().unwrap_or_default();
        (row.layer, name, row.levels.len(), below.read_bytes, below.written_bytes)
    };
    let wanted = [
        ("netcdf", "/t", 2, 0, 64),
        ("netcdf", "/u", 2, 0, 30),
        ("netcdf", "/t", 3, 216, 1300),
        ("hdf5", "/d", 2, 40, 0),
        ("netcdf", "", 3, 0, 32),
    ];
    assert_eq!(
        rows.iter().map(told).collect::<Vec<_>>(),
        wanted.map(|(layer, name, levels, read, written)| {
            (layer, name.to_owned(), levels, read, written)
        })
    );
    // Asked for is what the program asked NetCDF for, not what that asked HDF5 for.
    assert_eq!(rows[2].write_amplification, Some(1516.0 / 108.0));
    let above = rows[2].level(Layer::Netcdf).unwrap();
    assert_eq!((above.call_count, above.time_ns, above.own_ns), (2, 7_000, 2_000));
    let hdf5 = rows[2].level(Layer::Hdf5).unwrap();
    assert_eq!((hdf5.call_count, hdf5.time_ns, hdf5.own_ns), (3, 7_000, 3_000));
}

#[test]
fn findings_about_variables_of_netcdf_count_each_access_once() {
    const CHUNK: i64 = 64 * 1024;
    let writing = |function, asked| {
        program(|p| {
            for i in 0..200 {
                let functions = [(Function::NC_PUT_VARA, asked), (function, asked)];
                p.calls_through(&functions, ("/f.nc", Some("/t")), &[-CHUNK, CHUNK]);
                if i % 2 == 0 {
                    p.calls_on_object(Function::NC_SYNC, ("/f.nc", None), 0, &[96, 96]);
                }
            }
        })
    };
    let faulty = writing(Function::H5D_WRITE, 1024);
    let finding = faulty.finding("partial-chunk-access");
    let wanted = "/t: 200 writes of 200 KiB in all move 25 MiB through chunks of 128 × 64 (64 KiB)";
    assert_eq!((finding.message.as_str(), finding.evidence.calls), (wanted, 200));
    assert!(finding.remedy.unwrap().sentence.contains("nc_def_var_chunking"));
    let between = faulty.finding("metadata-between-data");
    let wanted = "200 small writes of NetCDF's own metadata (18.8 KiB) between 200 writes of data";
    assert_eq!(between.message, wanted);
    assert!(between.remedy.unwrap().sentence.contains("nc_sync"));
    assert_told_apart("partial-chunk-access", &faulty, &writing(Function::H5D_WRITE, 128 * KIB));
}

#[test]
fn every_rule_has_a_test_of_its_name() {
    let tests = concat!(include_str!("rules.rs"), include_str!("cluster_rules.rs"));
    for rule in iolab_report::rule_names() {
        assert!(tests.contains(&format!("\"{rule}\"")), "{rule} is not tested");
    }
}

/// What a sentence counts is what it is about, and nothing that the same file has besides.
#[test]
fn a_sentence_counts_only_what_it_is_about() {
    // One rank reads backward, three forward.
    let reading = ranks(4, |p, rank| {
        (0..200).for_each(|i| {
            let at = if rank == 0 { 199 - i } else { i };
            p.reads("/in", at * 64 * KIB, 64 * KIB);
        });
    });
    let finding = reading.finding("backward-reads");
    assert_eq!(finding.evidence.calls, 200);
    assert!(finding.message.starts_with("200 reads run from the end"), "{}", finding.message);

    // A large state, and 30 records behind it, each of which is synced.
    let syncing = program(|p| {
        p.writes("/state", 0, 900 * MIB).calls(Function::FSYNC, "/state");
        (0..30).for_each(|i| {
            p.writes("/state", 900 * MIB + i * 100, 100).calls(Function::FSYNC, "/state");
        });
    });
    let finding = syncing.finding("fsync-storm");
    assert_eq!(finding.message, "30 syncs, one for every 100 B written");
    assert_eq!((finding.evidence.calls, finding.evidence.bytes), (30, 3000));

    let locking = program(|p| {
        (0..200).for_each(|_| {
            p.calls(Function::FCNTL_LOCK, "/db");
        });
    });
    assert_eq!(locking.finding("lock-storm").message, "200 locks and unlocks");
}

#[test]
fn who_syncs_what_another_thread_wrote_syncs_no_little() {
    let syncing = |bytes: u64| {
        ranks(2, |p, rank| {
            (0..30).for_each(|i| {
                match rank {
                    0 => p.writes("/log", i * bytes, bytes),
                    _ => p.calls(Function::FSYNC, "/log"),
                };
            });
        })
    };
    assert!(!syncing(16 * MIB).findings().contains(&"fsync-storm"));
    // Nobody writes what these are for.
    let nothing = program(|p| {
        (0..30).for_each(|_| {
            p.calls(Function::FSYNC, "/dir");
        });
    });
    assert!(nothing.findings().contains(&"fsync-storm"));
}

#[test]
fn only_writes_by_a_synchronous_descriptor_wait_for_the_device() {
    const O_WRONLY_DSYNC: i64 = O_DSYNC | 1;
    let reopened = program(|p| {
        p.opens("/log", O_WRONLY_DSYNC).writes("/log", 0, 512).closes("/log");
        p.opens("/log", O_WRONLY_CREAT);
        (0..200).for_each(|i| {
            p.writes("/log", i * 512, 512);
        });
    });
    assert!(!reopened.findings().contains(&"synchronous-writes"), "{:?}", reopened.findings());
    // A thread or a child that was handed the descriptor: all who open the file do so alike, or not.
    let handed = |other: i64| {
        ranks(2, |p, rank| match rank {
            0 => {
                p.opens("/log", O_WRONLY_DSYNC).opens("/log", other);
            }
            _ => (0..200).for_each(|i| {
                p.writes("/log", i * 512, 512);
            }),
        })
    };
    assert!(handed(O_WRONLY_DSYNC).findings().contains(&"synchronous-writes"));
    assert!(!handed(O_WRONLY_CREAT).findings().contains(&"synchronous-writes"));
}

#[test]
fn a_file_that_makes_room_for_a_new_one_is_no_temporary_one() {
    let replacing = program(|p| {
        p.calls(Function::UNLINK, "/out");
        p.opens("/out", O_WRONLY_CREAT).writes("/out", 0, 4 * MIB).closes("/out");
    });
    assert!(!replacing.findings().contains(&"temporary-file"), "{:?}", replacing.findings());
    let failing = program(|p| {
        p.opens("/out", O_WRONLY_CREAT).writes("/out", 0, 4 * MIB).closes("/out");
        p.fails(Function::UNLINK, "/out", 13);
    });
    assert!(!failing.findings().contains(&"temporary-file"), "{:?}", failing.findings());
}

#[test]
fn strides_of_processes_that_meet_nowhere_or_never_are_no_turns() {
    let writing = |apart: u64, later_ns: u64| {
        ranks(2, |p, rank| {
            p.computes(rank as u64 * later_ns);
            for i in 0..50 {
                p.writes("/shared", rank as u64 * apart + i * 100 * KIB, 50 * KIB);
            }
        })
    };
    let finds = |program: Program| program.findings().contains(&"interleaved-shared-file");
    assert!(finds(writing(50 * KIB, 0)));
    assert!(!finds(writing(6 * MIB, 0)), "each has its part of the file");
    assert!(!finds(writing(50 * KIB, 1_000_000)), "one has ended when the other begins");
    // Of four, two take turns.
    let finding = ranks(4, |p, rank| {
        for i in 0..50 {
            match rank {
                0 | 1 => p.writes("/shared", rank as u64 * 50 * KIB + i * 100 * KIB, 50 * KIB),
                _ => p.writes("/shared", rank as u64 * 100 * MIB + i * 50 * KIB, 50 * KIB),
            };
        }
    })
    .finding("interleaved-shared-file");
    assert_eq!(finding.message, "2 processes write pieces of 50 KiB in turn into one file");
    assert_eq!(finding.evidence.calls, 100);
}

#[test]
fn who_is_to_ask_again_meets_no_fault() {
    let failing = |errno: i64| {
        program(|p| {
            (0..50).for_each(|_| {
                p.fails(Function::READ, "/pipe", errno);
            });
        })
    };
    for (errno, is_fault) in [(4, false), (11, false), (5, true)] {
        let found = failing(errno).findings().contains(&"failing-transfers");
        assert_eq!(found, is_fault, "errno {errno}");
    }
}

/// Each state is written to a file of its own, which is moved into place: nothing is written again.
#[test]
fn files_that_had_one_name_one_after_the_other_are_not_one_file() {
    let checkpoints = |gone: Function| {
        program(|p| {
            for _ in 0..5 {
                p.opens("/state.new", O_WRONLY_CREAT).writes("/state.new", 0, 4 * MIB);
                p.closes("/state.new").calls(gone, "/state.new");
            }
        })
    };
    let rewrites = |program: &Program| program.findings().contains(&"rewrites");
    assert!(!rewrites(&checkpoints(Function::RENAME)));
    assert!(!rewrites(&checkpoints(Function::UNLINK)));
    let same = checkpoints(Function::LINK);
    assert!(rewrites(&same), "it has two names now, and is the same file");
    assert_eq!(same.finding("rewrites").message, "4 MiB are written 5.0 times over");
}

#[test]
fn a_strategy_is_named_where_it_has_something_to_do() {
    let again = |bytes: u64| {
        program(|p| {
            (0..8000).for_each(|i| {
                p.writes("/out", i % 20 * bytes, bytes);
            });
        })
    };
    let strategy = |program: &Program, rule| program.finding(rule).remedy.unwrap().strategy;
    assert_eq!(strategy(&again(4 * KIB), "rewrites").as_deref(), Some("write-back:paths=/out"));
    assert_eq!(strategy(&again(64 * KIB), "rewrites"), None, "too large to be held");
    // Whoever asks for each write to be durable is not kept waiting for less.
    let durable = program(|p| {
        p.opens("/log", O_WRONLY_CREAT | O_DSYNC);
        (0..200).for_each(|i| {
            p.writes("/log", i * 512, 512);
        });
    });
    let remedy = durable.finding("small-sequential-writes").remedy.unwrap();
    assert_eq!(remedy.strategy, None);
    assert_eq!(remedy.sentence, "gather them into large writes: a buffer in the program");
}

/// A helper of a moment is no measure of a run of minutes; many, one after the other, are.
#[test]
fn what_a_process_of_a_moment_does_is_held_against_the_whole_run() {
    let with_helpers = |count: usize, helper_ns: u64| {
        let mut program = Program::processes(1 + count);
        program.call_ns = helper_ns;
        for helper in 0..count {
            program.on(1 + helper).computes(helper as u64 * 120 * helper_ns);
            (0..120).for_each(|_| {
                program.on(1 + helper).calls(Function::STAT, "/where");
            });
        }
        program.on(0).writes("/out", 0, MIB).computes(10_000_000_000).writes("/out", MIB, MIB);
        program.finding("stat-storm")
    };
    let one = with_helpers(1, 1_000);
    assert_eq!(one.severity, Severity::Low);
    assert_eq!(one.evidence.share_of, "the run time");
    assert!((one.evidence.share_of_run - 0.12e6 / 10e9).abs() < 1e-6, "{:?}", one.evidence);
    // Half of the run together, none of them a tenth.
    let many = with_helpers(20, 2_083_333);
    assert_eq!((many.severity, many.evidence.share_of.as_str()), (Severity::High, "the run time"));
    assert!((many.evidence.share_of_run - 0.5).abs() < 0.01, "{:?}", many.evidence);
    // Of four threads, one at a time makes such a call.
    let mut threaded = Program::processes(2);
    for process in 0..2 {
        for call in 0..400 {
            let event = Event { thread: call % 4, ..Event::of(Function::STAT) };
            threaded.on(process).call("/where", event);
        }
    }
    let share = threaded.finding("stat-storm").evidence.share_of_run;
    assert!((share - 0.25).abs() < 0.01, "{share}");
}

#[test]
fn a_process_whose_calls_take_less_than_the_clock_shows_is_counted() {
    let mut program = Program::processes(2);
    program.call_ns = 0;
    for process in 0..2 {
        program.on(process).writes("/out", 0, 10);
    }
    let report = program.report();
    assert_eq!((report.summary.process_count, report.processes.len()), (2, 2));
    let text = iolab_report::text::write(&report, iolab_report::text::Style::default());
    assert!(text.contains("2 processes"), "{text}");
}
