//! A profile: strategies that were chosen for a program, what speaks for them, and where they are meant
//! to be used. TOML; docs/format/profile.md lists every key.
//!
//! A profile carries no consent: what strategies give up has to be allowed where it is used.

use chrono::DateTime;
use iolab_policy::insitu::{Selection, StrategySpec};
use iolab_vocab::Refusal;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The version that is written, and the one that is read.
const FORMAT: u32 = 1;

/// A profile, as it is written.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Profile {
    /// Version of the format.
    format: u32,
    /// Where relative globs count from; without it, from the directory it is used in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    root: Option<String>,
    /// Where it is meant to be used.
    #[serde(default, skip_serializing_if = "Guards::is_empty")]
    pub guards: Guards,
    /// Top first.
    #[serde(default, rename = "strategy")]
    strategies: Vec<Stage>,
    /// What speaks for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub evidence: Option<Evidence>,
}

/// One strategy.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Stage {
    name: String,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    paths: Vec<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    exclude: Vec<String>,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    parameters: BTreeMap<String, String>,
}

/// Where a profile is meant to be used; elsewhere it steps aside.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Guards {
    /// Types of the file system its root is on; none is any.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub file_systems: Vec<String>,
    /// Numbers of ranks; none is any.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub ranks: Vec<u32>,
}

/// What speaks for a profile, for people and programs that look at it; nothing follows from it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
#[allow(missing_docs, reason = "each is what its name says")]
pub struct Evidence {
    pub command: Vec<String>,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub trace: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub platform: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub host: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub date: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub iolab_version: String,
    pub reasons: Vec<String>,
    /// How many times as fast as plain, by the simulator.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub predicted: Option<Speedup>,
    /// The same in real runs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub measured: Option<Speedup>,
}

/// How many times as fast, with the ends of its band.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[allow(missing_docs, reason = "each is what its name says")]
pub struct Speedup {
    pub low: f64,
    pub median: f64,
    pub high: f64,
    /// Runs, or orders of simultaneous events, that it is from.
    pub count: usize,
}

/// The day of that Unix time, as `2026-11-23`.
pub fn day(unix_s: u64) -> String {
    let time = i64::try_from(unix_s).ok().and_then(|unix_s| DateTime::from_timestamp(unix_s, 0));
    time.map_or_else(String::new, |time| time.date_naive().to_string())
}

/// Where a profile is about to be used.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Site {
    /// Type of the file system its root is on, if that can be told.
    pub file_system: Option<String>,
    /// Ranks of the program, if that can be told before it starts.
    pub ranks: Option<u32>,
}

impl Profile {
    /// A profile of this stack. Globs below `root` are written relative to it.
    pub fn of(stack: &[StrategySpec], root: Option<&str>, guards: Guards) -> Profile {
        let relative = |glob: &String| match root.and_then(|root| below(glob, root)) {
            Some(rest) => format!("./{rest}"),
            None => glob.clone(),
        };
        let stage = |spec: &StrategySpec| Stage {
            name: spec.name.to_owned(),
            paths: spec.selection.paths.iter().map(relative).collect(),
            exclude: spec.selection.exclude.iter().map(relative).collect(),
            parameters: spec.parameters.iter().cloned().collect(),
        };
        Profile {
            format: FORMAT,
            root: root.map(str::to_owned),
            guards,
            strategies: stack.iter().map(stage).collect(),
            evidence: None,
        }
    }

    /// Reads a profile; `name` is said of one that cannot be.
    ///
    /// # Errors
    /// What is wrong, naming the key.
    pub fn parse(text: &str, name: &str) -> Result<Profile, Refusal> {
        let refuse = |what: &str, hint: &str| Err(Refusal::new(format!("{name}: {what}"), hint));
        let profile: Profile = match toml::from_str(text) {
            Ok(profile) => profile,
            Err(error) => {
                let line = error.span().map_or(0, |span| text[..span.start].lines().count().max(1));
                let what = format!("line {line}: {}", error.message());
                return refuse(&what, "docs/format/profile.md lists every key");
            }
        };
        if profile.format != FORMAT {
            let what = format!("format {} is not known", profile.format);
            return refuse(&what, "this iolab reads format 1");
        }
        if profile.strategies.is_empty() {
            return refuse("it has no [[strategy]]", "name at least one strategy");
        }
        if profile.root.as_ref().is_some_and(|root| !root.starts_with('/')) {
            return refuse(
                "root is not an absolute directory",
                "begin it with a `/`, or leave it out",
            );
        }
        for stage in &profile.strategies {
            stage
                .spec()
                .map_err(|error| Refusal::new(format!("{name}: {}", error.message), error.hint))?;
        }
        Ok(profile)
    }

    /// As a file, with `remark` on top as a comment.
    pub fn text(&self, remark: &str) -> String {
        let body = toml::to_string(self).expect("a profile is tables, texts and numbers");
        format!("# {remark}\n{body}")
    }

    /// Where relative globs count from when it is used in `here`.
    pub fn root<'a>(&'a self, here: &'a str) -> &'a str {
        self.root.as_deref().unwrap_or(here)
    }

    /// Its strategies, top first, used in the directory `here`.
    pub fn specs(&self, here: &str) -> Vec<StrategySpec> {
        let root = self.root(here);
        let spec = |stage: &Stage| stage.spec().expect("a profile that was read has been checked");
        self.strategies.iter().map(|stage| spec(stage).rooted(root)).collect()
    }

    /// Why it is not to be used there; what cannot be told speaks against nothing.
    pub fn steps_aside(&self, site: &Site) -> Option<String> {
        let Guards { file_systems, ranks } = &self.guards;
        if let Some(here) = &site.file_system
            && !file_systems.is_empty()
            && !file_systems.contains(here)
        {
            return Some(format!(
                "the file system is {here}, and it was made for {}",
                file_systems.join(", ")
            ));
        }
        let here = site.ranks?;
        let made_for: Vec<String> = ranks.iter().map(u32::to_string).collect();
        (!ranks.is_empty() && !ranks.contains(&here)).then(|| {
            format!("the program has {here} ranks, and it was made for {}", made_for.join(", "))
        })
    }
}

impl Guards {
    fn is_empty(&self) -> bool {
        *self == Guards::default()
    }
}

impl Stage {
    fn spec(&self) -> Result<StrategySpec, Refusal> {
        let mut words = Vec::new();
        for (key, value) in &self.parameters {
            if key.contains([',', '=']) || value.contains(',') {
                let message = format!("strategy `{}`: {key} = `{value}` has a comma", self.name);
                return Refusal::refuse(message, "give each parameter a line of its own");
            }
            if key == "paths" || key == "exclude" {
                let message = format!("strategy `{}`: `{key}` is no parameter", self.name);
                return Refusal::refuse(message, "give it beside `parameters`, as a list of globs");
            }
            words.push(format!("{key}={value}"));
        }
        let joint = if words.is_empty() { "" } else { ":" };
        let plain = StrategySpec::parse(&format!("{}{joint}{}", self.name, words.join(",")))?;
        for (key, glob) in (self.paths.iter().map(|glob| ("paths", glob)))
            .chain(self.exclude.iter().map(|glob| ("exclude", glob)))
        {
            let one = StrategySpec::parse(&format!("null:{key}={glob}"))?;
            if one.selection.paths.len() + one.selection.exclude.len() != 1 {
                let message = format!("strategy `{}`: {key} = `{glob}` is several", self.name);
                return Refusal::refuse(message, "give each glob as an entry of its own");
            }
        }
        let selection = Selection { paths: self.paths.clone(), exclude: self.exclude.clone() };
        Ok(plain.for_files(selection))
    }
}

/// What is left of a glob below a directory.
fn below<'g>(glob: &'g str, root: &str) -> Option<&'g str> {
    let literal = iolab_policy::insitu::literal_glob(root.trim_end_matches('/'));
    glob.strip_prefix(&literal)?.strip_prefix('/')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stack(texts: &[&str]) -> Vec<StrategySpec> {
        StrategySpec::parse_each(texts).unwrap()
    }

    #[test]
    fn what_is_written_is_read_again_and_counts_from_its_root() {
        let chosen =
            stack(&["seek-elide:paths=/d/run/**", "align:block=64k,paths=/in/a,paths=/d/run/x"]);
        let guards = Guards { file_systems: vec!["ext4".into()], ranks: vec![4] };
        let mut profile = Profile::of(&chosen, Some("/d/run"), guards);
        let measured = Speedup { low: 1.1, median: 1.2, high: 1.3, count: 8 };
        profile.evidence = Some(Evidence { measured: Some(measured), ..Evidence::default() });
        let text = profile.text("made by a test");
        assert!(text.contains("\"./**\"") && text.contains("block = \"64k\""), "{text}");
        let read = Profile::parse(&text, "p.toml").unwrap();
        assert_eq!(read, profile);
        assert_eq!(read.specs("/elsewhere"), chosen);
    }

    #[test]
    fn without_a_root_globs_count_from_where_it_is_used() {
        let text = "format = 1\n[[strategy]]\nname = \"null\"\npaths = [\"out/*.x\"]\n";
        let profile = Profile::parse(text, "p").unwrap();
        assert_eq!(profile.specs("/here")[0].selection.paths, ["/here/out/*.x"]);
    }

    #[test]
    fn what_is_not_known_is_refused_by_its_name() {
        let head = "format = 1\n[[strategy]]\nname = \"write-back\"\n";
        for (text, offender) in [
            (format!("{head}colour = 3\n"), "colour"),
            (format!("{head}[strategy.parameters]\nbufer = \"1m\"\n"), "bufer"),
            (format!("{head}[strategy.parameters]\nbuffer = \"1m,largest=1k\"\n"), "comma"),
            (format!("{head}[strategy.parameters]\npaths = \"*.x\"\n"), "`paths`"),
            (format!("{head}paths = [\"a,paths=b\"]\n"), "several"),
            (format!("{head}paths = [\"[a\"]\n"), "[a"),
            ("format = 1\n[[strategy]]\nname = \"write-bakc\"\n".to_owned(), "write-bakc"),
            ("format = 2\n".to_owned(), "format 2"),
            ("format = 1\n".to_owned(), "[[strategy]]"),
            (format!("root = \"out\"\n{head}"), "root"),
            (format!("{head}[guards]\nfile_system = [\"xfs\"]\n"), "file_system"),
            ("format = ".to_owned(), "line 1"),
        ] {
            let refused = Profile::parse(&text, "p.toml").unwrap_err();
            assert!(refused.message.starts_with("p.toml: "), "{refused}");
            assert!(refused.message.contains(offender), "{offender}: {refused}");
        }
    }

    #[test]
    fn a_day_is_that_of_the_calendar() {
        for (unix_s, date) in [
            (0, "1970-01-01"),
            (951_782_400, "2000-02-29"),
            (1_709_251_199, "2024-02-29"),
            (1_735_689_599, "2024-12-31"),
            (4_107_542_400, "2100-03-01"),
        ] {
            assert_eq!(day(unix_s), date);
        }
    }

    #[test]
    fn it_steps_aside_where_the_site_differs_and_not_where_that_cannot_be_told() {
        let guards = Guards { file_systems: vec!["lustre".into()], ranks: vec![8, 16] };
        let profile = Profile::of(&stack(&["null"]), None, guards);
        let site =
            |file_system: &str, ranks| Site { file_system: Some(file_system.to_owned()), ranks };
        assert_eq!(profile.steps_aside(&Site::default()), None);
        assert_eq!(profile.steps_aside(&site("lustre", Some(16))), None);
        let why = |site| profile.steps_aside(&site).unwrap();
        assert!(why(site("ext4", None)).contains("ext4"));
        assert!(why(site("lustre", Some(4))).contains("4 ranks"));
    }
}
