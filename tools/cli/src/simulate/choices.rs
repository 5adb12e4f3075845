//! What is chosen on the command line on top of the platform: strategies, a cache layer, collective
//! algorithms.

use super::arguments::Arguments;
use iolab_sim::workload::Settings;

/// The flags of choices, as they were given; none if there are none.
pub(super) fn words(arguments: &Arguments) -> Option<Vec<String>> {
    let strategies = arguments.apply.iter().map(|name| format!("--apply {name}"));
    let cache = arguments.cache.iter().map(|name| format!("--cache {name}"));
    let collectives = arguments.collective.iter().map(|name| format!("--collective {name}"));
    let words: Vec<String> = strategies.chain(cache).chain(collectives).collect();
    (!words.is_empty()).then_some(words)
}

/// The settings without choices.
pub(super) fn usual(settings: &Settings) -> Settings {
    let collectives = Settings::default().collectives;
    let (cache, strategies) = (None, Vec::new());
    Settings { cache, collectives, strategies, record: false, ..settings.clone() }
}
