//! Parts of one's own stand exactly where those of the catalogues would.

use iolab_policy::cache::{self, Cache};
use iolab_policy::collective::{
    Collective, CollectiveKind, CollectiveSelection, RingAllgather, Shape,
};
use iolab_sim::cluster::PolicyOverrides;
use iolab_sim::platform::Platform;
use iolab_sim::workload::{Outcome, Settings, Workload, prepare, simulate_with};
use std::ops::ControlFlow;

const WORKLOAD: &str = r#"
name = "exchange and write"
[[files]]
name = "f"
[[applications]]
name = "a"
ranks = 4
[[applications.phases]]
name = "all"
commands = [
  { open = "f" },
  { allgather = "64k" },
  { write = "f", rank_step = "256k", bytes = "64k", calls = 4 },
  { close = "f" },
]
"#;

/// Makes by hand what the settings of `chosen` choose by name.
struct Copies;

impl PolicyOverrides for Copies {
    fn cache(&self, settings: cache::Settings) -> Option<Box<dyn Cache>> {
        Some(Box::new(cache::aggregation(settings)))
    }

    fn messages(&self, kind: CollectiveKind, shape: Shape) -> Option<Box<dyn Collective>> {
        (kind == CollectiveKind::Allgather).then(|| Box::new(RingAllgather::new(shape)) as _)
    }
}

fn outcome(settings: &Settings, own: Box<dyn PolicyOverrides>) -> Outcome {
    let workload = Workload::parse(WORKLOAD).unwrap();
    let platform = Platform::preset("classic-hdd").unwrap();
    let job = prepare(&workload, &platform).unwrap();
    simulate_with(job, &platform, settings, own, &mut |_| ControlFlow::Continue(())).unwrap()
}

#[test]
fn a_part_made_by_hand_does_what_the_one_chosen_by_name_does() {
    let mut collectives = CollectiveSelection::default();
    collectives.choose("allgather=ring").unwrap();
    let cache = Some("aggregation".to_owned());
    let chosen = Settings { cache, collectives, ..Settings::default() };
    let by_name = outcome(&chosen, Box::new(()));
    assert_eq!(outcome(&Settings::default(), Box::new(Copies)), by_name);
    assert_ne!(outcome(&Settings::default(), Box::new(())), by_name);
}
