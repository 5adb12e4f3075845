//! Each rule about simulated clusters finds its fault in a small faulty workload and is silent about the near miss.

use iolab_report::{Analysis, Finding};
use iolab_sim::platform::{PRESETS, Platform};
use iolab_sim::workload::{Settings, Workload, run};

/// What is found in a run of ranks with these commands, on the cluster of disks changed so.
fn findings(ranks: u32, commands: &str, cache: &str, changes: &[(&str, &str)]) -> Vec<Finding> {
    let workload = format!(
        "name = 'program'
files = [{{ name = 'data', size = '2g' }}]
[[applications]]
name = 'program'
ranks = {ranks}
phases = [{{ name = 'all', commands = [{{ open = 'data' }}, {commands}, {{ close = 'data' }}] }}]
"
    );
    let mut platform =
        PRESETS.iter().find(|preset| preset.0 == "classic-hdd").unwrap().1.to_owned();
    for (before, after) in changes {
        assert!(platform.contains(before), "{before}");
        platform = platform.replace(before, after);
    }
    let settings = Settings { record: true, cache: Some(cache.to_owned()), ..Settings::default() };
    let workload = Workload::parse(&workload).unwrap();
    let outcome = run(&workload, &Platform::parse(&platform).unwrap(), &settings).unwrap();
    Analysis::of(&outcome.trace.unwrap()).findings
}

fn told<'a>(findings: &'a [Finding], rule: &str) -> Option<&'a Finding> {
    findings.iter().find(|finding| finding.rule == rule)
}

#[track_caller]
fn assert_told_apart(rule: &str, faulty: &[Finding], near_miss: &[Finding]) -> String {
    let names: Vec<_> = faulty.iter().map(|finding| (finding.rule, &finding.message)).collect();
    let found = told(faulty, rule).unwrap_or_else(|| panic!("missed: {names:?}"));
    assert!(found.evidence.share_of_run >= 0.02, "{:?}", found.evidence);
    let false_alarm = told(near_miss, rule);
    assert!(false_alarm.is_none(), "false alarm: {false_alarm:?}");
    found.message.clone()
}

#[test]
fn devices_that_seek_more_than_they_move() {
    let read = |request: &str, count: u32| {
        let pattern = format!("segmented:request={request},count={count}");
        findings(4, &format!("{{ read = 'data', pattern = '{pattern}' }}"), "none", &[])
    };
    let message = assert_told_apart("seek-bound-devices", &read("64k", 64), &read("40m", 4));
    assert!(message.contains("256 places, 64 KiB at each"), "{message}");
}

#[test]
fn ranks_that_wait_for_one_device_after_the_other() {
    let read = |ranks| {
        let pattern = "segmented:request=64k,count=160";
        findings(ranks, &format!("{{ read = 'data', pattern = '{pattern}' }}"), "none", &[])
    };
    let message = assert_told_apart("servers-idle-while-ranks-wait", &read(1), &read(10));
    assert!(message.contains("0.5 of 10 are at work"), "{message}");
}

#[test]
fn stripes_so_small_that_each_call_becomes_many_requests() {
    let write = |stripe: &str| {
        let pattern = "segmented:request=40k,count=100";
        let stripe = format!("stripe_bytes = \"{stripe}\"");
        let command = format!("{{ write = 'data', pattern = '{pattern}' }}");
        findings(4, &command, "write-behind", &[("stripe_bytes = \"64k\"", &stripe)])
    };
    let message = assert_told_apart("small-requests", &write("4k"), &write("64k"));
    assert!(message.contains("calls of 40 KiB") && message.contains("4,000 requests"), "{message}");
}

#[test]
fn all_ranks_write_to_one_server_over_its_link() {
    // On one server, as what is written lies apart by its share of ten.
    let write = |step: &str, think: &str, cache: &str| {
        let command = format!(
            "{{ repeat = 40, commands = [{{ write = 'data', bytes = '64k', rank_step = '64000k', step = '{step}' }}, {think}] }}"
        );
        findings(8, &command, cache, &[])
    };
    let faulty = write("640k", "{ compute = 1 }", "write-behind");
    let rare = write("640k", "{ compute = '500ms' }", "write-behind");
    let message = assert_told_apart("saturated-link", &faulty, &rare);
    let for_devices = write("640k", "{ compute = 1 }", "none");
    assert!(told(&for_devices, "saturated-link").is_none(), "{for_devices:?}");
    assert!(message.starts_with("server0 received: 20.0 MiB at 99"), "{message}");
}

#[test]
fn more_is_written_than_servers_keep_in_memory() {
    let write = |memory: &str| {
        let pattern = "segmented:request=1m,count=40";
        let memory = format!("memory_bytes = \"{memory}\"");
        let command = format!("{{ write = 'data', pattern = '{pattern}' }}");
        findings(8, &command, "write-behind", &[("memory_bytes = \"1000m\"", &memory)])
    };
    let message = assert_told_apart("cache-full", &write("8m"), &write("1000m"));
    assert!(message.starts_with("after 8"), "all of ten servers' 8 MiB: {message}");
}
