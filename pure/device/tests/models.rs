//! What models refuse, what policies are told of them, and figures worked out by hand.

use iolab_device::local::LocalFile;
use iolab_device::{
    Access, CostTable, Device, DeviceModel, Direction, FlashModel, Rate, Seek, Service, Size,
    SsdModel, Time, ZonedHdd, ZonedHddModel,
};
use iolab_vocab::{Extent, FileId, Nanos};

fn model(text: &str) -> DeviceModel {
    toml::from_str(text).unwrap()
}

fn access(direction: Direction, file: u32, offset: u64, length: u64) -> Access {
    Access { file: FileId(file), direction, extent: Extent::new(offset, length) }
}

const NVME: &str = "model = 'nvme'\nread_latency = '80us'\nwrite_latency = '20us'\n\
                    read_rate = '2g'\nwrite_rate = '1g'\n";

fn nvme(queue_depth: u32, channels: u32) -> DeviceModel {
    model(&format!("{NVME}queue_depth = {queue_depth}\nchannels = {channels}"))
}

#[test]
fn figures_out_of_range_are_refused_at_both_ends() {
    for (depth, channels, is_right) in [
        (1, 1, true),
        (65_536, 4096, true),
        (0, 1, false),
        (65_537, 1, false),
        (1, 0, false),
        (1, 4097, false),
    ] {
        assert_eq!(nvme(depth, channels).check().is_ok(), is_right, "{depth}, {channels}");
    }
    let ssd = |change: fn(&mut SsdModel)| {
        let mut model = SsdModel::default();
        change(&mut model);
        DeviceModel::Ssd(model).check()
    };
    assert_eq!(ssd(|_| {}), Ok(()));
    assert_eq!(ssd(|ssd| ssd.spare = 10.0), Ok(()));
    // Blocks of 256 KiB.
    assert_eq!(ssd(|ssd| ssd.capacity_bytes = Size(4 << 18)), Ok(()));
    let most = u64::from(u32::MAX) / 64 / 16;
    assert_eq!(ssd(|ssd| ssd.capacity_bytes = Size((u64::from(u32::MAX) / 64 / 16) << 18)), Ok(()));
    type Change = fn(&mut SsdModel);
    let refused: [(&str, Change); 7] = [
        ("page_bytes = 0", |ssd| ssd.page_bytes = Size(0)),
        ("block_pages = 1", |ssd| ssd.block_pages = 1),
        ("channels = 0", |ssd| ssd.channels = 0),
        ("spare = 0", |ssd| ssd.spare = 0.0),
        ("spare = 10.5", |ssd| ssd.spare = 10.5),
        ("are 3 blocks", |ssd| ssd.capacity_bytes = Size((4 << 18) - 1)),
        ("blocks", |ssd| ssd.capacity_bytes = Size((u64::from(u32::MAX) / 64 / 16 + 1) << 18)),
    ];
    assert_eq!(most, 4_194_303);
    for (named, change) in refused {
        let error = ssd(change).unwrap_err();
        assert!(error.contains(named), "{error}");
    }
    for rpm in ["0", "-1", "inf", "nan"] {
        assert!(model(&format!("model = 'hdd'\nrpm = {rpm}")).check().is_err(), "{rpm}");
        assert!(model(&format!("model = 'hdd-zoned'\nrpm = {rpm}")).check().is_err(), "{rpm}");
    }
    assert_eq!(model("model = 'hdd'").check(), Ok(()));
    assert_eq!(model("model = 'hdd-zoned'\nrpm = 1").check(), Ok(()));
    assert!(model("model = 'hdd-zoned'\nzones = 0").check().is_err());
}

#[test]
fn rates_are_above_zero_and_times_are_not_below() {
    let ram = |latency: &str, rate: &str| {
        let text = format!("model = 'ram'\nlatency = {latency}\nrate = {rate}");
        toml::from_str::<DeviceModel>(&text)
    };
    let expected = DeviceModel::Ram(iolab_device::RamModel {
        latency: Time(0.0000003),
        rate: Rate(1048576.0),
    });
    assert_eq!(ram("'300ns'", "'1m/s'"), Ok(expected));
    for (latency, rate) in [("0", "0"), ("0", "-5"), ("0", "nan"), ("-1", "1"), ("1e9", "1")] {
        assert!(ram(latency, rate).is_err(), "{latency}, {rate}");
    }
}

#[test]
fn policies_are_told_how_many_accesses_a_drive_wants_and_how_far_is_far() {
    let depth = |model: DeviceModel| model.build().queue_depth();
    assert_eq!(depth(nvme(7, 1)), 7);
    assert_eq!(depth(DeviceModel::Ssd(SsdModel { queue_depth: 9, ..SsdModel::default() })), 9);
    assert_eq!(depth(model("model = 'hdd-zoned'\nqueue_depth = 11")), 11);
    assert_eq!(depth(model("model = 'hdd'")), 1);
    let disk = ZonedHddModel {
        rpm: 6000.0,
        track_seek: Time(0.001),
        average_seek: Time(0.009),
        outer_rate: Rate(3e6),
        inner_rate: Rate(1e6),
        ..ZonedHddModel::default()
    };
    let figures = DeviceModel::HddZoned(disk).figures();
    assert_eq!((figures.near, figures.rate), (Time(0.006), Rate(2e6)));
    assert!((figures.far.0 - 0.014).abs() < 1e-12, "{:?}", figures.far);
}

#[test]
fn a_place_less_than_the_limit_away_in_the_same_file_is_near() {
    let model = ZonedHddModel { near_bytes: Size(1000), ..ZonedHddModel::default() };
    let mut disk = ZonedHdd::new(model);
    let mut seek =
        |file, offset| disk.serve(Nanos(1 << 50), access(Direction::Read, file, offset, 100)).seek;
    assert_eq!(seek(0, 5000), Seek::Far);
    assert_eq!(seek(0, 5100), Seek::None);
    assert_eq!(seek(0, 5200 + 999), Seek::Near);
    assert_eq!(seek(0, 6299 + 1000), Seek::Far);
    assert_eq!(seek(1, 7399), Seek::Far);
}

#[test]
fn a_drive_of_one_zone_has_the_outer_rate_everywhere() {
    let model = ZonedHddModel { zones: 1, ..ZonedHddModel::default() };
    let capacity = model.capacity_bytes.0;
    let mut disk = ZonedHdd::new(model);
    // Where the head is, so that only the transfer counts.
    disk.serve(Nanos(0), access(Direction::Read, 0, capacity - 200_000, 0));
    let there = access(Direction::Read, 0, capacity - 200_000, 130_000);
    let Service { duration, positioning, seek } = disk.serve(Nanos(1 << 50), there);
    assert_eq!((duration, seek), (Nanos(1_000_000), Seek::None));
    assert_eq!(positioning, Nanos::ZERO);
}

#[test]
fn flash_takes_its_constant_and_then_its_rate() {
    let flash = FlashModel { constant: Time(0.001), rate: Rate(1e6) };
    let service = flash.serve(access(Direction::Read, 0, 0, 500));
    let (duration, positioning) = (Nanos(1_500_000), Nanos(1_000_000));
    assert_eq!(service, Service { duration, positioning, seek: Seek::None });
}

#[test]
fn an_ssd_keeps_writes_in_its_cache_and_no_more_than_fit() {
    let model = SsdModel {
        capacity_bytes: Size(64 << 20),
        channels: 1,
        cache_bytes: Size(8 * 4096),
        rate: Rate(4096e6),
        program_page: Time(1e-3),
        ..SsdModel::default()
    };
    let mut drive = DeviceModel::Ssd(model).build();
    // A page takes 1 us by the bus and 1 ms to program; eight fit into the cache.
    let write = |drive: &mut Device, pages: u64| {
        drive.serve(Nanos(0), access(Direction::Write, 0, 0, pages * 4096)).duration.0
    };
    assert_eq!(write(&mut drive, 4), 4_000);
    // Twelve are under way, of which eight may be in the cache: four have to be programmed.
    assert_eq!(write(&mut drive, 8), 4_000_000);
}

#[test]
fn points_of_a_cost_table_come_back() {
    let points = vec![(0, 5.0), (10, 7.5), (4096, 100.0)];
    let table = CostTable::new(points.clone()).unwrap();
    assert_eq!(table.points(), points);
    assert_eq!(Vec::from(table), points);
}

#[test]
fn a_file_that_exists_is_cached_unless_it_is_cold_or_empty() {
    assert_eq!(LocalFile::existing(5000, false).cached_bytes(), 8192);
    assert_eq!(LocalFile::existing(5000, true).cached_bytes(), 0);
    assert_eq!(LocalFile::existing(0, false).cached_bytes(), 0);
}
