//! Cache layers told one thing after the other: what each of them asks of the device, in which
//! order, and when. That nothing is lost or mixed up is the conformance suite's concern.

use iolab_policy::Machine;
use iolab_policy::cache::catalog::{ROWS, find};
use iolab_policy::cache::{Action, Cache, Delay, Event, FlushId, Operation, Settings, Tag};
use iolab_vocab::{Direction, Extent, FileId, Nanos};

const FILE: FileId = FileId(0);
const OTHER: FileId = FileId(1);

const SETTINGS: Settings = Settings {
    capacity_bytes: 10_000,
    access_bytes: 100,
    depth: 1,
    near_bytes: 20,
    seek_bytes: 10,
    hole_bytes: 0,
    delay: None,
    tails: iolab_policy::cache::Tails::Kept,
    ageing: None,
};

/// A layer of the catalogue, and what the device was asked for and has not done yet.
struct Device {
    cache: Box<dyn Cache>,
    now: Nanos,
    asked: Vec<(Operation, Direction, FileId, Extent)>,
}

impl Device {
    fn of(name: &str, settings: Settings) -> Device {
        let cache = (find(name).unwrap().build)(settings);
        Device { cache, now: Nanos::ZERO, asked: Vec::new() }
    }

    fn tell(&mut self, event: Event) -> Vec<Action> {
        let mut actions = Vec::new();
        self.cache.step(self.now, event, &mut actions);
        for action in &actions {
            if let Action::Transfer { operation, direction, file, extent } = *action {
                self.asked.push((operation, direction, file, extent));
            }
        }
        actions
    }

    fn read(&mut self, tag: u32, file: FileId, offset: u64, length: u64) -> Vec<Action> {
        let extent = Extent::new(offset, length);
        self.tell(Event::ReadArrived { tag: Tag(tag), file, extent })
    }

    fn write(&mut self, tag: u32, file: FileId, offset: u64, length: u64) -> Vec<Action> {
        let mut actions = self.tell(Event::WriteOffered { bytes: length });
        assert!(actions.contains(&Action::Admit), "{actions:?}");
        let extent = Extent::new(offset, length);
        actions.extend(self.tell(Event::WriteArrived { tag: Tag(tag), file, extent }));
        actions
    }

    /// The device does the first thing it was asked for.
    fn does_one(&mut self) -> (Direction, FileId, Extent) {
        let (operation, direction, file, extent) = self.asked.remove(0);
        self.tell(Event::Completed { operation });
        self.tell(Event::DeviceReady);
        (direction, file, extent)
    }

    /// Where each transfer begins, in the order of the device, until nothing is asked any more.
    fn does_all(&mut self) -> Vec<(Direction, u32, u64)> {
        let mut done = Vec::new();
        while !self.asked.is_empty() {
            let (direction, file, extent) = self.does_one();
            done.push((direction, file.0, extent.offset));
        }
        done
    }
}

#[test]
fn layers_are_found_by_either_name_and_by_nothing_else() {
    for row in ROWS {
        assert_eq!(find(row.name).unwrap().name, row.name);
        if !row.published_name.is_empty() {
            assert_eq!(find(row.published_name).unwrap().name, row.name);
        }
    }
    for name in ["", "nothing", "None"] {
        let told = find(name).err().expect("no such layer").to_string();
        assert!(told.starts_with(&format!("there is no cache layer `{name}`; ")), "{told}");
        assert!(ROWS.iter().all(|row| told.contains(row.name)), "{told}");
    }
}

/// Far apart, so that nobody joins them; of three of each one read is on the device.
#[test]
fn what_waits_is_counted() {
    for row in ROWS.iter().filter(|row| !["none", "cruel"].contains(&row.name)) {
        // As simulations have it: held to its laws.
        let cache = row.make(SETTINGS);
        let mut device = Device { cache, now: Nanos::ZERO, asked: Vec::new() };
        for at in 0..3 {
            device.read(at, FILE, 1000 * u64::from(at), 10);
        }
        assert_eq!(device.cache.queued_count(), 2, "{}", row.name);
        for at in 3..6 {
            device.write(at, OTHER, 1000 * u64::from(at), 10);
        }
        assert_eq!(device.cache.queued_count(), 5, "{}", row.name);
    }
}

#[test]
fn writes_that_do_not_overlap_are_on_the_device_together() {
    for name in ["write-behind", "aggregation", "elevator", "server-directed"] {
        let mut device = Device::of(name, Settings { depth: 3, ..SETTINGS });
        device.write(0, FILE, 0, 10);
        device.write(1, FILE, 1000, 10);
        device.write(2, OTHER, 0, 10);
        assert_eq!(device.asked.len(), 3, "{name}: {:?}", device.asked);
        let mut device = Device::of(name, Settings { depth: 3, ..SETTINGS });
        device.write(0, FILE, 0, 10);
        device.write(1, FILE, 5, 10);
        assert_eq!(device.asked.len(), 1, "{name}: the older could win: {:?}", device.asked);
    }
}

#[test]
fn the_server_goes_on_where_it_is_before_it_takes_what_is_largest() {
    let mut device = Device::of("server-directed", SETTINGS);
    device.read(0, FILE, 0, 10);
    device.read(1, FILE, 500, 60);
    device.read(2, FILE, 15, 5);
    device.read(3, OTHER, 0, 80);
    // 15 is near the end of the first, 500 is the largest of the same file, which goes first while
    // it has a tenth of what waits elsewhere.
    let order = device.does_all();
    let reads = |list: [(u32, u64); 4]| list.map(|(file, at)| (Direction::Read, file, at));
    assert_eq!(order, reads([(0, 0), (0, 15), (0, 500), (1, 0)]));
}

#[test]
fn what_is_far_from_the_last_place_goes_by_size() {
    let mut device = Device::of("server-directed", SETTINGS);
    device.write(0, FILE, 0, 10);
    device.write(1, FILE, 40, 5);
    device.write(2, FILE, 500, 60);
    let order = device.does_all();
    assert_eq!(order, [0, 500, 40].map(|at| (Direction::Write, 0, at)));
}

#[test]
fn held_back_writes_go_when_they_are_old_many_or_asked_for() {
    let delay = Delay { age: Nanos(50), bytes: 30 };
    let layer = || {
        let settings = Settings { delay: Some(delay), ..SETTINGS };
        let mut device = Device::of("server-directed", settings);
        device.now = Nanos(1000);
        device
    };

    let mut old = layer();
    assert!(old.write(0, FILE, 0, 10).contains(&Action::WakeAt(Nanos(1050))));
    old.now = Nanos(1049);
    old.tell(Event::Woke);
    assert_eq!(old.asked.len(), 0, "a nanosecond early");
    old.now = Nanos(1050);
    old.tell(Event::Woke);
    assert_eq!(old.asked.len(), 1);

    let mut many = layer();
    many.write(0, FILE, 0, 30);
    assert_eq!(many.asked.len(), 0, "no more than may be held back");
    many.write(1, OTHER, 0, 1);
    assert_eq!(many.asked.len(), 1);

    let mut wanted = layer();
    wanted.write(0, FILE, 0, 10);
    let flush = FlushId(7);
    assert!(!wanted.tell(Event::FlushArrived { flush, file: FILE }).is_empty());
    assert_eq!(wanted.asked.len(), 1);
}

#[test]
fn a_flush_of_nothing_is_answered_at_once_and_lets_nothing_out_later() {
    let delay = Delay { age: Nanos(50), bytes: 30 };
    let mut device = Device::of("server-directed", Settings { delay: Some(delay), ..SETTINGS });
    let flush = FlushId(3);
    let told = device.tell(Event::FlushArrived { flush, file: FILE });
    assert_eq!(told, [Action::Flushed { flush }]);
    device.write(0, FILE, 0, 10);
    assert_eq!(device.asked.len(), 0, "it is held back as ever");
}

#[test]
fn half_of_the_memory_keeps_what_has_been_read() {
    let settings = Settings { capacity_bytes: 200, ..SETTINGS };
    let mut device = Device::of("read-cache", settings);
    let read_twice = |device: &mut Device, offset: u64, length: u64| {
        device.read(0, FILE, offset, length);
        let first = device.does_all().len();
        device.tell(Event::Released { bytes: length });
        let told = device.read(1, FILE, offset, length);
        let extent = Extent::new(offset, length);
        let is_kept = told.contains(&Action::Deliver { tag: Tag(1), extent });
        let again = device.does_all().len();
        device.tell(Event::Released { bytes: length });
        (first, is_kept, again)
    };
    // A hit holds its bytes a second time until they have left: 50 and 50 are the half.
    assert_eq!(read_twice(&mut device, 0, 50), (1, true, 0));
    assert_eq!(read_twice(&mut device, 1000, 60), (1, false, 1));
}

#[test]
fn a_read_passed_over_too_long_lets_no_further_write_in() {
    for (after, answer) in [(99, Action::Admit), (100, Action::Refuse)] {
        let settings = Settings { ageing: Some(Nanos(100)), ..SETTINGS };
        let mut device = Device::of("server-directed", settings);
        for at in 0..3 {
            device.read(at, FILE, 1000 * u64::from(at), 10);
        }
        // The second of three starts; from then on the third is the one that waits.
        device.now = Nanos(1000);
        device.does_one();
        device.now = Nanos(1000 + after);
        let told = device.tell(Event::WriteOffered { bytes: 1 });
        assert_eq!(told, [answer], "{after} ns after the last read was preferred");
    }
}
