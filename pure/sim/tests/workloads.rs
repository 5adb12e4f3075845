//! Workloads in TOML on clusters: what they come to, and that they are what they say.

use iolab_sim::platform::Platform;
use iolab_sim::workload::{Outcome, Settings, TEMPLATE, Workload, prepare, run};
use iolab_vocab::Seed;

fn classic() -> Platform {
    Platform::preset("classic-hdd").unwrap()
}

fn outcome(text: &str) -> Outcome {
    let workload = Workload::parse(text).unwrap_or_else(|error| panic!("{error}"));
    run(&workload, &classic(), &Settings::default()).unwrap_or_else(|error| panic!("{error}"))
}

#[test]
fn the_template_is_a_workload_that_runs() {
    let outcome = outcome(TEMPLATE);
    let phases: Vec<_> = outcome.applications[0].phases.iter().map(|phase| &phase.name).collect();
    assert_eq!(phases, ["initialise", "compute", "checkpoint"]);
    let [initialise, compute, checkpoint] = &outcome.applications[0].phases[..] else { panic!() };
    assert!(initialise.start.unwrap().seconds() >= 0.001, "it starts a millisecond late");
    assert!(compute.start.unwrap() >= initialise.start.unwrap() && checkpoint.end <= outcome.end);
    assert_eq!(initialise.read_bytes, 4 * (8 << 20));
    assert_eq!(compute.calls, 0);
    let ranges = 2 * 2 * (512 << 10);
    let per_rank = 4 * (256 << 10) + ranges + (1 << 20) + 2 * 4096;
    assert_eq!(checkpoint.written_bytes, 4 * per_rank);
}

const INDIVIDUAL: &str = r#"
    files = [{ name = "data", size = "1000m" }]
    [[applications]]
    ranks = 10
    [[applications.phases]]
    commands = [
      { open = "data" },
      { read = "data", pattern = "strided:strip=512k,stripes=200" },
      { close = "data" },
    ]"#;

#[test]
fn a_described_workload_takes_the_time_of_the_same_program_written_by_hand() {
    use iolab_sim::cluster::Order;
    use iolab_sim::evaluation::{Case, Conduct};
    let name =
        |case: &Case| (case.test.name(), case.cache, case.block_bytes, case.operation.name());
    let wanted = ("individual-1".to_owned(), "none", 524_288, "READ");
    let case = Case::all().into_iter().find(|case| name(case) == wanted).unwrap();
    for order in [Order::Documented, Order::Published] {
        let by_hand = case.run(&classic(), Conduct { order, tie_seed: Seed(0) }, 0).unwrap();
        let settings = Settings { order, ..Settings::default() };
        let workload = Workload::parse(INDIVIDUAL).unwrap();
        let described = run(&workload, &classic(), &settings).unwrap();
        assert_eq!(described.end.seconds(), by_hand.seconds, "{order:?}");
        assert_eq!(described.event_count, by_hand.event_count);
    }
}

#[test]
fn every_part_of_a_platform_has_a_name_and_its_bytes() {
    let outcome = outcome(INDIVIDUAL);
    assert_eq!((outcome.servers.len(), outcome.links.len()), (10, 1 + 20 * 4));
    let read: u64 = outcome.servers.iter().map(|server| server.totals.device.read_bytes).sum();
    assert_eq!(read, 1000 << 20);
    let link = |name: &str| outcome.links.iter().find(|link| link.name == name).unwrap().totals;
    assert!(link("switch").bytes > read);
    assert!((100 << 20..101 << 20).contains(&link("server3 nic out").bytes));
    assert_eq!(link("client0 nic in").bytes, link("client0 switch port").bytes);
}

#[test]
fn two_applications_at_once_slow_each_other_down() {
    let application = |name: &str, start: &str| {
        format!(
            "[[applications]]\nname = '{name}'\nranks = 5\nstart = '{start}'\n[[applications.phases]]\n\
             commands = [{{ open = 'data' }}, {{ read = 'data', pattern = \
             'strided:strip=512k,stripes=40' }}, {{ close = 'data' }}]\n"
        )
    };
    let files = "files = [{ name = 'data', size = '1g' }]\n";
    let alone = outcome(&format!("{files}{}", application("a", "0s")));
    let both = outcome(&format!("{files}{}{}", application("a", "0s"), application("b", "0s")));
    let later = outcome(&format!("{files}{}{}", application("a", "0s"), application("b", "100s")));
    assert!(both.applications[0].end.seconds() > 1.3 * alone.applications[0].end.seconds());
    assert_eq!(later.applications[0].end, alone.applications[0].end);
    assert!(later.applications[1].phases[0].start.unwrap().seconds() >= 100.0);
}

#[test]
fn equal_seeds_give_equal_outcomes_and_another_seed_other_places() {
    let text = "files = [{ name = 'data', size = '64m' }]\n[[applications]]\nranks = 8\n\
        [[applications.phases]]\ncommands = [{ open = 'data' }, { read = 'data', pattern = \
        'database:limit=64k,file=64m,count=50' }, { close = 'data' }]";
    let of = |seed| {
        let workload = Workload::parse_seeded(text, Seed(seed)).unwrap();
        run(&workload, &classic(), &Settings::default()).unwrap()
    };
    assert_eq!(of(1), of(1));
    assert_ne!(of(1).end, of(2).end);
}

#[test]
fn ranks_that_wait_for_each_other_in_a_circle_are_told_with_the_name_of_their_application() {
    let text = "[[applications]]\nname = 'ring'\nranks = 3\n[[applications.phases]]\n\
        commands = [{ receive_from = '-1' }, { send_to = '+1', bytes = 10 }]";
    let workload = Workload::parse(text).unwrap();
    let error = run(&workload, &classic(), &Settings::default()).unwrap_err();
    assert!(error.message.contains("deadlock") && error.message.contains("rank 2"), "{error}");
}

#[test]
fn a_repeat_of_billions_needs_no_memory_to_be_read() {
    let text = INDIVIDUAL
        .replace("{ open", "{ repeat = 1_000_000_000, commands = [{ compute = 1 }] }, { open");
    let workload = Workload::parse(&text).unwrap();
    assert_eq!(workload.rank_count(), 10);
}

#[test]
fn a_recorded_run_is_the_same_run_and_its_rows_add_up_to_its_totals() {
    use iolab_trace::{Function, Layer};
    let workload = Workload::parse(TEMPLATE).unwrap();
    let plain = run(&workload, &classic(), &Settings::default()).unwrap();
    let settings = Settings { record: true, ..Settings::default() };
    let mut recorded = run(&workload, &classic(), &settings).unwrap();
    let trace = recorded.trace.take().unwrap();
    assert_eq!(recorded, plain);
    let of = |function: Function| trace.events.iter().filter(move |row| row.function == function);
    let bytes = |function| of(function).map(|row| row.length as u64).sum::<u64>();
    let servers = || plain.servers.iter().map(|server| server.totals);
    assert_eq!(
        bytes(Function::DEVICE_READ),
        servers().map(|all| all.device.read_bytes).sum::<u64>()
    );
    assert_eq!(
        bytes(Function::DEVICE_WRITE),
        servers().map(|all| all.device.written_bytes).sum::<u64>()
    );
    assert_eq!(bytes(Function::SERVE_WRITE), plain.applications[0].phases[2].written_bytes);
    let link = |name: &str| plain.links.iter().find(|link| link.name == name).unwrap().totals.bytes;
    let sent_by = |node: &str| {
        let name = format!("{node} sent");
        let process = trace.header.processes.iter().position(|one| one.name == name).unwrap();
        let rows = of(Function::SEND).filter(move |row| row.process as usize == process);
        rows.map(|row| row.length as u64).sum::<u64>()
    };
    for node in ["client0", "client3", "server7"] {
        assert_eq!(
            sent_by(node),
            link(&format!("{node} nic out")) + link(&format!("{node} internal"))
        );
    }
    assert_eq!(bytes(Function::SEND), bytes(Function::RECEIVE));
    let commands = trace.events.iter().filter(|row| matches!(row.function.layer(), Layer::Mpiio));
    assert!(commands.clone().all(|row| (0..4).contains(&row.rank) && row.end >= row.start));
    let calls: u64 = plain.applications[0].phases.iter().map(|phase| phase.calls).sum();
    assert_eq!(commands.filter(|row| row.function.class().moves_data()).count() as u64, calls);
    assert!(trace.events.iter().all(|row| row.end <= plain.end));
    let order = |row: &iolab_trace::Event| (row.process, row.start);
    assert!(trace.events.is_sorted_by_key(order));
}

#[test]
fn a_rank_without_a_part_in_a_long_loop_does_not_go_round_in_it() {
    let idle = "[[applications]]\nranks = 2\n[[applications.phases]]\ncommands = [{ only = 'last', \
        commands = [{ compute = 1 }] }, { repeat = 9_000_000_000, commands = [{ barrier = true, \
        within = 'alone', only = 'first' }] }]";
    let workload = Workload::parse(idle).unwrap();
    let mut stop = |_| std::ops::ControlFlow::Break(());
    let stopped =
        iolab_sim::workload::run_watched(&workload, &classic(), &Settings::default(), &mut stop);
    assert!(stopped.unwrap_err().message.contains("stopped"));
}

/// A client and a server on one node share its links; what was refused must come again though the
/// node is busy with somebody else's data at that moment.
#[test]
fn a_write_and_a_read_at_once_end_where_client_and_server_are_one_node() {
    let workload = r#"
        files = [{ name = "a", size = "200m" }]
        [[applications]]
        ranks = 1
        [[applications.phases]]
        commands = [
          { open = "a" },
          { write = "a", offset = "100m", bytes = "3m", start = "x" },
          { read = "a", bytes = "3m" },
          { wait = "x" },
          { close = "a" },
        ]"#;
    let platform = r#"
        [transport]
        packet_bytes = "64k"
        [[switches]]
        name = "switch"
        [[nodes]]
        name = "node"
        clients = 1
        memory_bytes = "4m"
        [nodes.server]
        [nodes.server.device]
        model = "ram"
        latency = "1us"
        rate = "8g""#;
    let (workload, platform) =
        (Workload::parse(workload).unwrap(), Platform::parse(platform).unwrap());
    for row in iolab_policy::cache::catalog::ROWS {
        let settings = Settings { cache: Some(row.name.to_owned()), ..Settings::default() };
        let outcome = run(&workload, &platform, &settings);
        let outcome = outcome.unwrap_or_else(|error| panic!("{}: {error}", row.name));
        let written: u64 = outcome.servers.iter().map(|one| one.totals.device.written_bytes).sum();
        assert_eq!(written, 3 << 20, "{}", row.name);
    }
}

/// Files that are closed while others still wait to be written; their flushes are nobody else's.
#[test]
fn a_file_that_is_closed_twice_is_flushed_for_each_close() {
    let text = r#"
        files = [{ name = "p" }, { name = "x" }, { name = "y" }]
        [[applications]]
        name = "plug"
        [[applications.phases]]
        commands = [{ open = "p" }, { write = "p", bytes = "30m" }, { close = "p" }]
        [[applications]]
        name = "X"
        start = "200ms"
        [[applications.phases]]
        commands = [
          { open = "x" }, { write = "x", bytes = "64k" }, { compute = "40ms" },
          { write = "x", bytes = "64k" }, { close = "x" },
        ]
        [[applications]]
        name = "Y"
        start = "220ms"
        [[applications.phases]]
        commands = [
          { open = "y" }, { write = "y", bytes = "64k" }, { compute = "40ms" }, { close = "y" },
          { compute = "280ms" }, { open = "y" }, { write = "y", bytes = "64k" }, { close = "y" },
        ]"#;
    let platform = "[[nodes]]\nname = 'client'\ncount = 3\nclients = 1\n[[nodes]]\nname = 'server'\n\
                    [nodes.server.device]\nmodel = 'hdd'\n[[switches]]\nname = 'switch'\n";
    let (workload, platform) = (Workload::parse(text).unwrap(), Platform::parse(platform).unwrap());
    for row in iolab_policy::cache::catalog::ROWS {
        // In a debug build every layer is held to its laws.
        let settings = Settings { cache: Some(row.name.to_owned()), ..Settings::default() };
        run(&workload, &platform, &settings)
            .unwrap_or_else(|error| panic!("{}: {error}", row.name));
    }
}

#[test]
fn a_partner_is_a_rank_a_step_or_anyone() {
    let told = |partner| {
        let text = format!(
            "[[applications]]\nranks = 3\n[[applications.phases]]\n\
             commands = [{{ send_to = {partner}, receive_from = \"any\", bytes = 8 }}]"
        );
        let read = Workload::parse(&text).and_then(|workload| prepare(&workload, &classic()));
        read.err().map(|refusal| refusal.to_string()).unwrap_or_default()
    };
    assert_eq!(["\"+1\"", "\"-2\""].map(told), ["", ""]);
    for wrong in ["\"1\"", "\"next\"", "\"+4294967296\"", "3"] {
        assert!(!told(wrong).is_empty(), "{wrong}");
    }
    assert!(told("\"1\"").contains("send_to = `1`"), "{}", told("\"1\""));
}

#[test]
fn a_phase_is_told_each_time_that_ranks_come_to_it() {
    let text = r#"
        [[applications]]
        ranks = 3
        repeat = 4
        [[applications.phases]]
        name = "compute"
        commands = [{ compute = "2ms" }, { barrier = true }]
        [[applications.phases]]
        name = "talk"
        commands = [{ allreduce = "64k" }, { barrier = true }]"#;
    let workload = Workload::parse(text).unwrap();
    let settings = Settings { record: true, ..Settings::default() };
    let outcome = run(&workload, &classic(), &settings).unwrap();
    for phase in &outcome.applications[0].phases {
        assert_eq!(phase.visits.len(), 4);
        let (first, last) = (phase.visits[0], phase.visits[3]);
        assert_eq!((Some(first.0), last.1), (phase.start, phase.end));
        assert!(phase.visits.iter().all(|(start, end)| start < end), "{phase:?}");
    }
    let mut told = outcome.trace.unwrap().header.phases;
    told.sort_by_key(|phase| phase.start_ns);
    let names: Vec<&str> = told.iter().map(|phase| phase.name.as_str()).collect();
    assert_eq!(names, ["compute", "talk"].repeat(4));
    assert!(told.is_sorted_by_key(|phase| phase.end_ns));
}

#[test]
fn a_phase_that_ranks_come_to_very_often_is_not_told_apart_for_ever() {
    let text = r#"
        [[applications]]
        ranks = 1
        repeat = 1500
        [[applications.phases]]
        name = "short"
        commands = [{ compute = 1 }]"#;
    let phase = outcome(text).applications[0].phases[0].clone();
    assert_eq!(phase.visits.len(), 1000);
    assert_eq!(phase.visits[999].1, phase.end);
}
