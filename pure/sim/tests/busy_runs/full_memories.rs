//! Random workloads on servers whose memory is full nearly always.

use super::Settings;
use iolab_policy::cache::catalog;
use iolab_sim::platform::Platform;
use iolab_sim::workload::{Workload, run};
use iolab_trace::Trace;
use iolab_vocab::{Random, Seed};
use std::fmt::Write;

/// One of so many choices.
fn pick<'a, T>(random: &mut Random, choices: &'a [T]) -> &'a T {
    &choices[random.below(choices.len() as u64) as usize]
}

/// Ranks that write and read one file and files of their own, alone and together, and wait for each other.
fn workload(random: &mut Random) -> String {
    let ranks = 2 + random.below(7);
    let mut text = format!(
        "name = 'random'
files = [{{ name = 'shared', size = '64m' }}, {{ name = 'own', size = '8m', per_rank = true }}]
[[applications]]
name = 'random'
ranks = {ranks}
"
    );
    let open = "{ open = 'shared' }, { open = 'own' }";
    let phases = 1 + random.below(3);
    for phase in 0..phases {
        let mut commands =
            vec![if phase == 0 { open.to_owned() } else { "{ compute = 100 }".into() }];
        for _ in 0..2 + random.below(4) {
            commands.push(command(random));
        }
        _ = write!(
            text,
            "[[applications.phases]]\nname = 'phase {phase}'\nrepeat = {}\ncommands = [{}]\n",
            if phase == 0 { 1 } else { 1 + random.below(3) },
            commands.join(", ")
        );
    }
    text + "[[applications.phases]]\nname = 'close'\ncommands = [{ close = 'shared' }, { close = 'own' }]\n"
}

fn command(random: &mut Random) -> String {
    let way = pick(random, &["write", "write", "write", "read"]);
    let request = pick(random, &["700", "40k", "100k", "256k", "1m"]);
    let count = 1 + random.below(4);
    let offset = 1000 * random.below(4000);
    match random.below(8) {
        0 | 1 => {
            format!("{{ {way} = 'shared', pattern = 'segmented:request={request},count={count}' }}")
        }
        2 => format!("{{ {way} = 'shared', bytes = '{request}', offset = {offset} }}"),
        3 => format!("{{ {way} = 'own', bytes = '{request}', offset = {offset} }}"),
        4 => format!(
            "{{ {way} = 'shared', pattern = 'strided:strip=20k,stripes={}', per_call = 'all' }}",
            5 + random.below(30)
        ),
        5 => format!(
            "{{ {way}_all = 'shared', pattern = 'strided:strip=30k,stripes={}', per_call = 'all' }}",
            5 + random.below(20)
        ),
        6 => pick(random, &["{ barrier = true }", "{ allreduce = 8 }"]).to_string(),
        _ => format!("{{ compute = '{}us' }}", random.below(9000)),
    }
}

/// The cluster of disks with so much memory per server.
fn platform(memory_bytes: u64) -> Platform {
    let preset = iolab_sim::platform::PRESETS.iter().find(|preset| preset.0 == "classic-hdd");
    let text = preset.unwrap().1;
    let memory = format!("memory_bytes = {memory_bytes}");
    Platform::parse(&text.replace("memory_bytes = \"1000m\"", &memory)).unwrap()
}

/// The run of the random workload of a seed, under its cache layer, with what is particular about it.
pub(crate) fn random(seed: u64) -> (String, Trace) {
    let mut random = Random::new(Seed(seed));
    let workload = Workload::parse(&workload(&mut random)).unwrap();
    let memory_bytes = 205_000 + random.below(400_000);
    let cache = pick(&mut random, catalog::ROWS).name;
    let mut settings =
        Settings { record: true, cache: Some(cache.to_owned()), ..Settings::default() };
    let collective = pick(&mut random, &["file=direct", "file=two-phase"]);
    settings.collectives.choose(collective).unwrap();
    let outcome = run(&workload, &platform(memory_bytes), &settings).unwrap();
    let name = format!("seed {seed}, {cache}, {collective}, {memory_bytes} B of memory");
    (name, outcome.trace.unwrap())
}
