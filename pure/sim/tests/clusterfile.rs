//! Cells of Clusterfile's evaluation: what they come to, and what moves.

use iolab_sim::evaluation::clusterfile::{
    Buffers, Cell, Class, Cooperation, Method, RANKS, Ways, Work, fitted, published,
};
use iolab_vocab::{Extent, Seed};

const MATRIX: Work = Work::Cyclic { run: 64, rows: 2048 };

#[test]
fn each_byte_goes_straight_to_its_server_or_to_a_rank_first() {
    for servers in [4, 16] {
        let cell = |method| Cell { ways: Ways::Write, ..Cell::new(MATRIX, method, servers) };
        let [direct, two_phase] = [Method::Direct, Method::TwoPhase].map(cell);
        let [once, twice] = [&direct, &two_phase].map(|cell| cell.run(Seed(0)).unwrap().traffic);
        let bytes = MATRIX.bytes();
        assert_eq!((once.exchanged_bytes, once.received_bytes), (0, bytes));
        assert_eq!(twice.received_bytes, bytes);
        let journal = twice.device_written_bytes - bytes;
        assert!(
            journal < 1000,
            "besides the file only its name is on the devices, not {journal} B"
        );
        // Domains of 128 rows: each rank has some of every second one.
        let within: u64 = (0..RANKS)
            .map(|rank| {
                let share = bytes / u64::from(RANKS);
                let domain = Extent::new(u64::from(rank) * share, share);
                MATRIX.part(rank, 0).unwrap().within(domain).0
            })
            .sum();
        assert_eq!(twice.exchanged_bytes, bytes - within);
        let remote = direct.direct_remote_bytes().unwrap();
        let beyond = once.nic_bytes - remote;
        assert!(once.nic_bytes > remote && beyond < bytes / 25, "{beyond} beyond {remote}");
    }
}

/// Write, disk write and read of 1 MiB and 4 MiB in runs of 32 bytes with 16 servers, in milliseconds: the
/// machines may change them a little.
const KNOWN: [(Method, u64, [f64; 3]); 4] = [
    (Method::Direct, 1024, [1.4805, 17.4092, 1.2155]),
    (Method::TwoPhase, 1024, [3.2955, 19.2322, 2.9508]),
    (Method::Direct, 2048, [4.9318, 28.7299, 4.1228]),
    (Method::TwoPhase, 2048, [9.0356, 32.8336, 9.6224]),
];

#[test]
fn small_cells_come_to_what_they_came_to() {
    let found = KNOWN.map(|(method, rows, _)| {
        let work = Work::Cyclic { run: 32, rows };
        let one = Cell::new(work, method, 16).run(Seed(0)).unwrap();
        [one.write_seconds, one.disk_write_seconds(), one.read_seconds].map(|time| time * 1e3)
    });
    let known = KNOWN.map(|(_, _, known)| known);
    let mut both = found.iter().flatten().zip(known.iter().flatten());
    assert!(both.all(|(one, known)| (one / known - 1.0).abs() < 0.05), "{found:?}, not {known:?}");
}

#[test]
fn memory_is_fitted_on_the_write_of_class_a() {
    let class = Work::BlockTridiagonal(Class::A);
    let cell = Cell { costs: fitted(), ways: Ways::Write, ..Cell::new(class, Method::Direct, 16) };
    let seconds = cell.run(Seed(0)).unwrap().write_seconds;
    let wanted = published()[0].write_clusterfile;
    assert!((seconds / wanted - 1.0).abs() < 0.02, "{seconds} s, not {wanted}");
}

#[test]
fn the_events_of_a_cell_are_the_same_each_time() {
    let cell = Cell::new(MATRIX, Method::TwoPhase, 8);
    assert_eq!(cell.run(Seed(3)).unwrap(), cell.run(Seed(3)).unwrap());
}

#[test]
fn cold_buffers_are_filled_once_and_a_second_read_of_them_asks_nobody() {
    let cooperation = |caches, buffers| Some(Cooperation { caches, buffers });
    for caches in [3, 16] {
        let cold = cooperation(caches, Buffers::Cold);
        let cell = Cell { cooperation: cold, ..Cell::new(MATRIX, Method::Direct, 16) };
        let one = cell.run(Seed(0)).unwrap();
        let bytes = MATRIX.bytes();
        assert_eq!((one.traffic.received_bytes, one.traffic.fetched_bytes), (bytes, bytes));
        assert_eq!((one.traffic.sent_bytes, one.traffic.device_read_bytes), (bytes, 0));
        assert!(one.again_seconds < one.read_seconds, "{one:?}");
        let warm = Cell { cooperation: cooperation(caches, Buffers::Warm), ..cell };
        let warm = warm.run(Seed(0)).unwrap();
        assert_eq!((warm.traffic.fetched_bytes, warm.traffic.device_written_bytes / bytes), (0, 1));
        assert!(warm.write_seconds < one.write_seconds, "{warm:?} and {one:?}");
    }
}
