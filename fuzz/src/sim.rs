//! The files of the simulator: platforms, workloads, scenarios of faults, sweeps.
//!
//! What still is one is prepared, and run up to the first look at its progress.

use crate::words::{refused, text};
use crate::{Target, seeds};
use iolab_sim::platform::{LOCAL_PRESETS, PRESETS, Platform};
use iolab_sim::scenario::Scenario;
use iolab_sim::sweep::Sweep;
use iolab_sim::workload::{Settings, TEMPLATE, Workload, run_watched};
use std::ops::ControlFlow;
use std::sync::LazyLock;

static CLASSIC: LazyLock<Platform> =
    LazyLock::new(|| Platform::preset("classic-hdd").expect("a preset"));
static WORKLOAD_OF_ALL_KEYS: LazyLock<Workload> =
    LazyLock::new(|| Workload::parse(TEMPLATE).expect("a workload"));

pub(crate) const PLATFORM: Target = Target {
    name: "platform",
    seeds: || {
        let presets = PRESETS.iter().chain(LOCAL_PRESETS).map(|preset| preset.1);
        let corpus = seeds::files(
            &["pure/sim/tests/malformed/platforms", "samples/partdiff-2009"],
            &["toml"],
        );
        [seeds::texts(presets), corpus].concat()
    },
    bytes_max: 6_000,
    run: |bytes| {
        let Some(text) = text(bytes) else { return };
        match Platform::parse(text) {
            Err(refusal) => refused(&refusal),
            Ok(platform) => {
                if let Err(refusal) = platform.check() {
                    refused(&refusal);
                }
                let _ = platform.notes();
                if node_count(&platform) < 100 && platform.client_count() < 1000 {
                    assert!(!platform.draw_text().is_empty());
                    assert!(!platform.draw_svg().into_string().is_empty());
                }
                try_run(&WORKLOAD_OF_ALL_KEYS, &platform, &Settings::default());
            }
        }
    },
};

pub(crate) const WORKLOAD: Target = Target {
    name: "workload",
    seeds: || {
        let mut all =
            seeds::files(&["pure/sim/tests/malformed/workloads", "samples/workloads"], &["toml"]);
        all.push(TEMPLATE.as_bytes().to_vec());
        all
    },
    bytes_max: 8_000,
    run: |bytes| {
        let Some(text) = text(bytes) else { return };
        match Workload::parse(text) {
            Err(refusal) => refused(&refusal),
            Ok(workload) => try_run(&workload, &CLASSIC, &Settings::default()),
        }
    },
};

pub(crate) const SCENARIO: Target = Target {
    name: "scenario",
    seeds: || seeds::files(&["pure/sim/tests/malformed/scenarios", "samples/scenarios"], &["toml"]),
    bytes_max: 2_000,
    run: |bytes| {
        let Some(text) = text(bytes) else { return };
        match Scenario::parse(text) {
            Err(refusal) => refused(&refusal),
            Ok(scenario) => match scenario.resolve(&CLASSIC) {
                Err(refusal) => refused(&refusal),
                Ok(_) => {
                    let settings = Settings { faults: Some(scenario), ..Settings::default() };
                    try_run(&WORKLOAD_OF_ALL_KEYS, &CLASSIC, &settings);
                }
            },
        }
    },
};

pub(crate) const SWEEP: Target = Target {
    name: "sweep",
    seeds: || {
        let mut all = seeds::files(&["samples/sweeps"], &["toml"]);
        all.extend(seeds::texts([
            "workload = 'w'\nplatform = 'p'\n[parameters]\ncache = ['none', 'write-behind']\n\
             'platform.nodes.server.count' = [5, 10]\n\
             'workload.applications.model.phases.compute.repeat' = [1, 2, 7]\n",
            "workload='w'\nplatform='p'\nseeds=3\n[parameters]\nseed=[1,2]\ntie_seed=[4]\n\
             order=['published','documented']\ncollective=['two-phase','allgather=ring']\n\
             [plot]\nx='seed'\n",
        ]));
        all
    },
    bytes_max: 2_000,
    run: |bytes| {
        let Some(text) = text(bytes) else { return };
        match Sweep::parse(text) {
            Err(refusal) => refused(&refusal),
            Ok(sweep) if sweep.is_empty() => {}
            Ok(sweep) => {
                let last = sweep.len() - 1;
                assert_eq!(sweep.values(last).len(), sweep.names().len());
                if let Err(refusal) = sweep.case(last, TEMPLATE, PRESETS[0].1) {
                    refused(&refusal);
                }
            }
        }
    },
};

fn node_count(platform: &Platform) -> u64 {
    platform.nodes.iter().map(|group| u64::from(group.count)).sum()
}

/// Runs what is small enough until somebody would look.
fn try_run(workload: &Workload, platform: &Platform, settings: &Settings) {
    if workload.rank_count() > 64 || workload.files.len() > 200 || node_count(platform) > 200 {
        return;
    }
    if let Err(refusal) = run_watched(workload, platform, settings, &mut |_| ControlFlow::Break(()))
    {
        refused(&refusal);
    }
}
