//! Sweeps: the product of parameter lists over a workload and a platform, one run each.
//!
//! A parameter is a setting of the run (`cache`, `collective`, `order`, `seed`, `tie_seed`) or a
//! path into the platform or the workload (`platform.nodes.client.count`,
//! `workload.applications.model.ranks`); parts of a list are found by their name or number. The
//! product is never stored: any run is found by its number, the last parameter going fastest.

use crate::band::tie_seeds;
use crate::cluster::Order;
use crate::platform::Platform;
use crate::workload::{Settings, Workload, in_words};
use iolab_policy::collective::{CollectiveKind, catalog};
use iolab_vocab::{Refusal, Seed};
use serde::Deserialize;
use toml::{Table, Value};

/// Runs of one sweep.
const RUNS_MAX: u64 = 1_000_000;

const SETTINGS: [&str; 5] = ["cache", "collective", "order", "seed", "tie_seed"];

/// A sweep as written down.
#[derive(Clone, Debug, Deserialize, PartialEq)]
#[serde(deny_unknown_fields)]
pub struct Sweep {
    /// What to call it.
    #[serde(default)]
    pub name: String,
    /// Path of the workload, from where the sweep's file is.
    pub workload: String,
    /// A preset, or the path of a platform.
    pub platform: String,
    /// Orders of simultaneous events of each combination; its row is the median. As usual where
    /// it is left out, and one where `tie_seed` is a parameter.
    pub seeds: Option<u64>,
    parameters: Table,
    /// How the comparison is drawn.
    #[serde(default)]
    pub plot: Plot,
}

/// Which parameters make the axes of the comparison.
#[derive(Clone, Debug, Default, Deserialize, PartialEq)]
#[serde(deny_unknown_fields, default)]
pub struct Plot {
    /// Along the horizontal axis; the first parameter with several values by itself.
    pub x: Option<String>,
    /// One series each; the next such parameter by itself.
    pub series: Option<String>,
}

/// One run of a sweep, ready to go.
#[derive(Clone)]
pub struct Case {
    /// The workload with its parameters set.
    pub workload: Workload,
    /// The platform with its own.
    pub platform: Platform,
    /// How it is run.
    pub settings: Settings,
    /// With these tie seeds.
    pub tie_seeds: Vec<Seed>,
}

impl Sweep {
    /// Reads a sweep.
    ///
    /// # Errors
    /// What is wrong, with its place.
    pub fn parse(text: &str) -> Result<Sweep, Refusal> {
        let sweep: Sweep = toml::from_str(text).map_err(|error| Refusal {
            message: format!("this sweep cannot be read: {}", in_words(&error)),
            hint: "docs/howto/sweep.md shows one with every key".to_owned(),
        })?;
        sweep.check()?;
        Ok(sweep)
    }

    /// Replaces the number of orders of each combination.
    ///
    /// # Errors
    /// Where `tie_seed` is a parameter, which makes single runs.
    pub fn set_seeds(&mut self, count: u64) -> Result<(), Refusal> {
        self.seeds = Some(count);
        self.check()
    }

    fn check(&self) -> Result<(), Refusal> {
        for (name, values) in &self.parameters {
            let is_path = name.starts_with("platform.") || name.starts_with("workload.");
            if !is_path && !SETTINGS.contains(&name.as_str()) {
                let message = format!("there is no parameter `{name}`");
                return Refusal::refuse(
                    message,
                    "choose from cache, collective, order, seed, tie_seed, \
                     or quote a path as in \"platform.files.stripe_bytes\"",
                );
            }
            match values.as_array() {
                Some(list) if !list.is_empty() => {}
                _ => {
                    let message = format!("parameter `{name}` is not a list with values");
                    return Refusal::refuse(message, "write its values as [a, b, c]");
                }
            }
        }
        let count =
            self.lists().try_fold(1u64, |count, list| count.checked_mul(list.1.len() as u64));
        if count.is_none_or(|count| count > RUNS_MAX) {
            let message = format!("the product has more than {RUNS_MAX} runs");
            return Refusal::refuse(message, "make lists shorter, or several sweeps");
        }
        if self.seeds.is_some_and(|count| count == 0 || count > RUNS_MAX) {
            let message = format!("seeds = {}", self.seeds.unwrap_or(0));
            return Refusal::refuse(message, "give 1 for single runs, or more orders for a band");
        }
        if self.seeds.is_some_and(|count| count > 1) && self.parameters.contains_key("tie_seed") {
            let message = "seeds stands beside the parameter `tie_seed`".to_owned();
            return Refusal::refuse(
                message,
                "leave out one: `tie_seed` names single runs, `seeds` makes bands",
            );
        }
        for name in [&self.plot.x, &self.plot.series].into_iter().flatten() {
            if !self.parameters.contains_key(name) {
                let message = format!("plot: there is no parameter `{name}`");
                return Refusal::refuse(message, "name one of [parameters]");
            }
        }
        Ok(())
    }

    fn lists(&self) -> impl DoubleEndedIterator<Item = (&str, &[Value])> {
        self.parameters
            .iter()
            .map(|(name, values)| (name.as_str(), values.as_array().map_or(&[][..], Vec::as_slice)))
    }

    /// Names of the parameters.
    pub fn names(&self) -> Vec<&str> {
        self.lists().map(|list| list.0).collect()
    }

    /// Values of a parameter, as results write them.
    pub fn values_of(&self, name: &str) -> Vec<String> {
        let list = self.parameters.get(name).and_then(Value::as_array);
        list.map_or_else(Vec::new, |list| list.iter().map(written).collect())
    }

    /// How many runs.
    pub fn len(&self) -> u64 {
        self.lists().map(|list| list.1.len() as u64).product()
    }

    /// Whether there is none; a sweep without parameters is one run.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Values of the parameters in run `index`.
    pub fn values(&self, index: u64) -> Vec<&Value> {
        let mut rest = index;
        let mut values: Vec<&Value> = Vec::new();
        for (_, list) in self.lists().rev() {
            values.push(&list[(rest % list.len() as u64) as usize]);
            rest /= list.len() as u64;
        }
        values.reverse();
        values
    }

    /// Run `index`, of the given texts of workload and platform.
    ///
    /// # Errors
    /// A path that leads nowhere, or what the workload or platform then has wrong.
    pub fn case(&self, index: u64, workload: &str, platform: &str) -> Result<Case, Refusal> {
        let mut workload = table(workload, "workload")?;
        let mut platform = table(platform, "platform")?;
        let mut settings = Settings::default();
        let mut seed = None;
        for (name, value) in self.names().into_iter().zip(self.values(index)) {
            match name.split_once('.') {
                Some(("platform", path)) => set(&mut platform, name, path, value)?,
                Some((_, path)) => set(&mut workload, name, path, value)?,
                None if name == "seed" => seed = Some(Seed(number(name, value)?)),
                None => set_setting(&mut settings, name, value)?,
            }
        }
        let text = text_of(&workload)?;
        let workload = match seed {
            Some(seed) => Workload::parse_seeded(&text, seed)?,
            None => Workload::parse(&text)?,
        };
        let platform = Platform::parse(&text_of(&platform)?)?;
        let tie_seed = self.parameters.contains_key("tie_seed").then_some(settings.tie_seed);
        let tie_seeds = tie_seeds(settings.order, self.seeds, tie_seed);
        Ok(Case { workload, platform, settings, tie_seeds })
    }
}

/// A value as results write it.
pub fn written(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

fn refused<T>(message: String, hint: impl Into<String>) -> Result<T, Refusal> {
    Err(Refusal { message, hint: hint.into() })
}

fn table(text: &str, what: &str) -> Result<Value, Refusal> {
    match text.parse::<Table>() {
        Ok(table) => Ok(Value::Table(table)),
        Err(error) => refused(
            format!("this {what} cannot be read: {}", in_words(&error)),
            "check it by itself with `iolab simulate`",
        ),
    }
}

/// A table as the text that a parser reads.
fn text_of(value: &Value) -> Result<String, Refusal> {
    toml::to_string(value).map_err(|error| Refusal {
        message: format!("the parameters make no table: {error}"),
        hint: "check the paths of the sweep's parameters".to_owned(),
    })
}

fn number(name: &str, value: &Value) -> Result<u64, Refusal> {
    match value.as_integer().and_then(|value| u64::try_from(value).ok()) {
        Some(number) => Ok(number),
        None => refused(format!("{name} = {value}"), "give whole numbers, 0 or more"),
    }
}

fn set_setting(settings: &mut Settings, name: &str, value: &Value) -> Result<(), Refusal> {
    if name == "tie_seed" {
        settings.tie_seed = Seed(number(name, value)?);
        return Ok(());
    }
    let Some(text) = value.as_str() else {
        return refused(format!("{name} = {value}"), "give names in quotes");
    };
    match name {
        "cache" => settings.cache = Some(text.to_owned()),
        "order" => {
            settings.order = match text {
                "published" => Order::Published,
                "documented" => Order::Documented,
                _ => {
                    return refused(
                        format!("there is no order `{text}`"),
                        "choose from published, documented",
                    );
                }
            }
        }
        _ => {
            let chosen = match text.contains('=') {
                true => settings.collectives.choose(text),
                false => catalog::find(CollectiveKind::File, text)
                    .map(|row| settings.collectives.set(row)),
            };
            if let Err(error) = chosen {
                return refused(error.message, error.hint);
            }
        }
    }
    Ok(())
}

/// Sets what a path leads to; its last part may be new.
fn set(root: &mut Value, name: &str, path: &str, value: &Value) -> Result<(), Refusal> {
    let mut at = root;
    let mut parts = path.split('.').peekable();
    while let Some(part) = parts.next() {
        if parts.peek().is_none()
            && let Value::Table(table) = at
        {
            table.insert(part.to_owned(), value.clone());
            return Ok(());
        }
        at = match step(at, part) {
            Some(next) => next,
            None => {
                let hint = "paths go by keys, names of parts (or their numbers, from 0)";
                return refused(format!("parameter `{name}`: there is no `{part}`"), hint);
            }
        };
    }
    *at = value.clone();
    Ok(())
}

fn step<'a>(at: &'a mut Value, part: &str) -> Option<&'a mut Value> {
    match at {
        Value::Table(table) => table.get_mut(part),
        Value::Array(list) => {
            let is_named = |one: &Value| one.get("name").and_then(Value::as_str) == Some(part);
            let place = list.iter().position(is_named).or_else(|| part.parse().ok())?;
            list.get_mut(place)
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::platform::PRESETS;
    use crate::workload::TEMPLATE;

    const SWEEP: &str = "workload = 'w'\nplatform = 'p'\n[parameters]\ncache = ['none', 'write-behind']\n\
        'platform.nodes.server.count' = [5, 10]\n'workload.applications.model.phases.compute.repeat' = [1, 2, 7]\n";

    #[test]
    fn every_run_of_the_product_has_its_own_values() {
        let sweep = Sweep::parse(SWEEP).unwrap();
        assert_eq!(sweep.len(), 12);
        let all: std::collections::BTreeSet<_> =
            (0..12).map(|index| format!("{:?}", sweep.values(index))).collect();
        assert_eq!(all.len(), 12);
        let case = sweep.case(11, TEMPLATE, PRESETS[0].1).unwrap();
        assert_eq!(case.settings.cache.as_deref(), Some("write-behind"));
        assert_eq!(case.platform.server_count(), 10);
        assert_eq!(sweep.case(0, TEMPLATE, PRESETS[0].1).unwrap().platform.server_count(), 5);
    }

    #[test]
    fn what_is_wrong_is_named() {
        let error = |from: &str, to: &str| {
            let text = SWEEP.replace(from, to);
            match Sweep::parse(&text) {
                Err(error) => error.to_string(),
                Ok(sweep) => match sweep.case(0, TEMPLATE, PRESETS[0].1) {
                    Err(error) => error.to_string(),
                    Ok(_) => panic!("not refused: {text}"),
                },
            }
        };
        let cases = [
            ("cache =", "cash =", "there is no parameter `cash`"),
            ("['none', 'write-behind']", "[]", "parameter `cache` is not a list"),
            ("['none', 'write-behind']", "'none'", "parameter `cache` is not a list"),
            ("['none', 'write-behind']", "[1]", "cache = 1"),
            ("nodes.server", "nodes.sever", "there is no `sever`"),
            ("workload = 'w'\n", "", "missing field `workload`"),
            ("workload = 'w'", "workload = 'w'\nworklod = 1", "unknown field `worklod`"),
            ("[5, 10]", "[-5]", "-5"),
            ("[1, 2, 7]", "[0]", "repeat = 0"),
            ("cache =", "order =", "there is no order `none`"),
            ("cache =", "collective =", "there is no algorithm `none`"),
            ("cache =", "tie_seed =", "tie_seed = \"none\""),
            ("cache = ['none', 'write-behind']", "seed = [-1]", "seed = -1"),
            ("[parameters]", "seeds = 0\n[parameters]", "seeds = 0"),
            ("[parameters]", "[plot]\nx = 'y'\n[parameters]", "plot: there is no parameter `y`"),
            ("[parameters]", "[parameters", "this sweep cannot be read"),
        ];
        for (from, to, wanted) in cases {
            let told = error(from, to);
            assert!(told.contains(wanted) && told.contains("\nhint: "), "{wanted} in {told}");
        }
        let long: Vec<String> = (0..1001).map(|number| number.to_string()).collect();
        let list = format!("[{}]", long.join(","));
        let text = SWEEP.replace("[5, 10]", &list).replace("[1, 2, 7]", &list);
        assert!(Sweep::parse(&text).unwrap_err().message.contains("more than 1000000 runs"));
    }
}
