//! The how-tos about workloads and sweeps: what they show is what the samples have.

use std::path::{Path, PathBuf};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// The lines of the first TOML block of a page, and the sample with its leading comment left out,
/// both without comments.
fn shown_and_sample(page: &str, sample: &str) -> [Vec<String>; 2] {
    let page = std::fs::read_to_string(root().join(page)).unwrap();
    let block = page.split("```toml\n").nth(1).unwrap().split("```").next().unwrap();
    let sample = std::fs::read_to_string(root().join(sample)).unwrap();
    [block, &sample].map(|text| {
        let bare = |line: &str| line.split('#').next().unwrap().trim().to_owned();
        text.lines().map(bare).filter(|line| !line.is_empty()).collect()
    })
}

#[test]
fn the_page_on_workloads_shows_the_checkpoint_sample() {
    let [shown, sample] =
        shown_and_sample("docs/howto/simulate-a-workload.md", "samples/workloads/checkpoint.toml");
    assert_eq!(shown, sample);
}

#[test]
fn the_page_on_sweeps_shows_the_checkpoint_sweep_which_is_one() {
    let sample = "samples/sweeps/checkpoint.toml";
    let [shown, lines] = shown_and_sample("docs/howto/sweep.md", sample);
    assert_eq!(shown, lines);
    let text = std::fs::read_to_string(root().join(sample)).unwrap();
    let sweep = iolab_sim::sweep::Sweep::parse(&text).unwrap();
    let read = |path: PathBuf| std::fs::read_to_string(path).unwrap();
    let workload = read(root().join("samples/sweeps").join(&sweep.workload));
    let preset = iolab_sim::platform::PRESETS.iter().find(|one| one.0 == sweep.platform);
    assert_eq!(sweep.len(), 24);
    for run in 0..sweep.len() {
        sweep.case(run, &workload, preset.unwrap().1).unwrap();
    }
}
