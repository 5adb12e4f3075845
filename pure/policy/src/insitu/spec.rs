//! Strategies as written on a command line: `write-back:buffer=1m,paths=GLOB,exclude=GLOB`, and stacks
//! of them, `A + B` with A on top.

use super::catalog::{Build, Catalog, Row};
use super::classes::{Classes, Layer, Need, Semantics, Shape};
use super::count;
use super::hdf5::Properties;
use super::mpiio::MpiIoStage;
use super::netcdf;
use super::plan::Plan;
use super::selection::Selection;
use super::write_back::{WRITERS, writers};
use super::{DeferClose, Stage, Strategy};
use iolab_vocab::Refusal;

/// Stands between strategies that travel as one text (ASCII "unit separator"), as a `+` between
/// spaces does where people write.
const SEPARATOR: &str = "\u{1f}";

/// The block or stripe, in bytes, of the storage that has the files of a selection; `None` where nobody
/// knows.
pub type BlockOf<'a> = &'a dyn Fn(&Selection) -> Option<u64>;

/// A parsed strategy: what to build, with which parameters, for which files.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StrategySpec {
    /// As it was written.
    pub text: String,
    /// Name of the row in the catalogue.
    pub name: &'static str,
    /// Parameters but `paths` and `exclude`, as written.
    pub parameters: Vec<(String, String)>,
    /// The files it is for.
    pub selection: Selection,
    /// What it goes by, once that has been read ([`StrategySpec::plan_path`]).
    pub plan: Option<Plan>,
}

impl StrategySpec {
    /// Reads and checks one strategy. Parameters are checked by building it once.
    pub fn parse(text: &str) -> Result<StrategySpec, Refusal> {
        StrategySpec::parse_on(text, &|_| None)
    }

    fn parse_on(text: &str, block: BlockOf) -> Result<StrategySpec, Refusal> {
        let (name, rest) = text.split_once(':').unwrap_or((text, ""));
        let row = Catalog::find(name)?;
        let mut spec = StrategySpec {
            text: text.to_owned(),
            name: row.name,
            parameters: Vec::new(),
            selection: Selection::default(),
            plan: None,
        };
        for parameter in split_outside_braces(rest).filter(|part| !part.is_empty()) {
            let Some((key, value)) = parameter.split_once('=') else {
                return Err(Refusal {
                    message: format!("`{parameter}` in strategy `{text}` is not `name=value`"),
                    hint: format!("write {}", row.usage),
                });
            };
            match key {
                "paths" => spec.selection.paths.push(glob(text, key, value)?),
                "exclude" => spec.selection.exclude.push(glob(text, key, value)?),
                _ if spec.parameters.iter().any(|(known, _)| known == key) => {
                    return Err(Refusal {
                        message: format!("`{key}` is given twice in strategy `{text}`"),
                        hint: "leave one of them out".to_owned(),
                    });
                }
                _ => spec.parameters.push((key.to_owned(), value.to_owned())),
            }
        }
        let spec = spec.with_block(block);
        row.build.strategy(&spec.parameters).map_err(|error| Refusal {
            message: format!("strategy `{text}`: {}", error.message),
            hint: format!("{}; in whole: {}", error.hint, row.usage),
        })?;
        Ok(spec)
    }

    /// Whether it is for what several processes do with one file, which a mount hears.
    pub fn needs_mount(&self) -> bool {
        self.row().classes.needs.contains(&Need::Mount)
    }

    /// How many threads of a mount may write at a time, where the strategy bounds that.
    pub fn writers(&self) -> Option<usize> {
        if self.row().classes.shape != Shape::HandsOver {
            return None;
        }
        let given = self.parameters.iter().rfind(|(key, _)| key == WRITERS);
        Some(given.and_then(|(_, value)| writers(value).ok()).unwrap_or(1))
    }

    /// The same with the block of the storage where it is left to that, if it is known.
    fn with_block(mut self, block: BlockOf) -> StrategySpec {
        let is_auto = |(key, value): &&mut (String, String)| key == "block" && value == "auto";
        let asked = self.parameters.iter_mut().find(is_auto);
        let Some((parameter, bytes)) = asked.zip(block(&self.selection)) else { return self };
        parameter.1 = bytes.to_string();
        StrategySpec::of(self.name, self.parameters, self.selection)
    }

    /// The same with relative globs counted from `root`, an absolute directory.
    pub fn rooted(self, root: &str) -> StrategySpec {
        let selection = self.selection.rooted(root);
        match selection == self.selection {
            true => self,
            false => StrategySpec {
                plan: self.plan,
                ..StrategySpec::of(self.name, self.parameters, selection)
            },
        }
    }

    /// The trace of a recorded run that it goes by: who starts reads it and hands its plan on.
    pub fn plan_path(&self) -> Option<&str> {
        self.parameters.iter().find(|(key, _)| key == "plan").map(|(_, path)| path.as_str())
    }

    /// A strategy of its parts, which have been parsed.
    fn of(
        name: &'static str,
        parameters: Vec<(String, String)>,
        selection: Selection,
    ) -> StrategySpec {
        let own = parameters.iter().map(|(key, value)| format!("{key}={value}"));
        let paths = selection.paths.iter().map(|glob| format!("paths={glob}"));
        let exclude = selection.exclude.iter().map(|glob| format!("exclude={glob}"));
        let words: Vec<String> = own.chain(paths).chain(exclude).collect();
        let joint = if words.is_empty() { "" } else { ":" };
        let text = format!("{name}{joint}{}", words.join(","));
        StrategySpec { text, name, parameters, selection, plan: None }
    }

    /// The same with one parameter more.
    pub(super) fn with_parameter(&self, key: &str, value: String) -> StrategySpec {
        let more = std::iter::once((key.to_owned(), value));
        let parameters = self.parameters.iter().cloned().chain(more).collect();
        StrategySpec::of(self.name, parameters, self.selection.clone())
    }

    /// The same for other files.
    pub fn for_files(&self, selection: Selection) -> StrategySpec {
        StrategySpec {
            plan: self.plan.clone(),
            ..StrategySpec::of(self.name, self.parameters.clone(), selection)
        }
    }

    /// Several strategies as one text, top first, the way they travel to another process.
    pub fn join(specs: &[StrategySpec]) -> String {
        let texts: Vec<&str> = specs.iter().map(|spec| spec.text.as_str()).collect();
        texts.join(SEPARATOR)
    }

    /// Reads a stack: `A + B`, or what `join` wrote. A `+` inside braces, behind a `\\` or without
    /// spaces around it belongs to a glob.
    pub fn parse_all(text: &str) -> Result<Vec<StrategySpec>, Refusal> {
        StrategySpec::parse_all_on(text, &|_| None).map(by_layer)
    }

    fn parse_all_on(text: &str, block: BlockOf) -> Result<Vec<StrategySpec>, Refusal> {
        let mut specs = Vec::new();
        for joined in text.split(SEPARATOR).filter(|part| !part.is_empty()) {
            for part in split_at_plus(joined) {
                if part.trim().is_empty() {
                    return Err(Refusal {
                        message: format!("a strategy is missing beside a `+` in `{joined}`"),
                        hint: "write `A + B`, A on top".to_owned(),
                    });
                }
                specs.push(StrategySpec::parse_on(part.trim(), block)?);
            }
        }
        Ok(specs)
    }

    /// Reads what was given part by part, top first; each part may be a stack.
    pub fn parse_each<T: AsRef<str>>(texts: &[T]) -> Result<Vec<StrategySpec>, Refusal> {
        StrategySpec::parse_each_on(texts, &|_| None)
    }

    /// As [`StrategySpec::parse_each`], where `block` knows the storage: `block=auto` becomes what it
    /// says, so that everybody the strategies go to has the same.
    pub fn parse_each_on<T: AsRef<str>>(
        texts: &[T],
        block: BlockOf,
    ) -> Result<Vec<StrategySpec>, Refusal> {
        let stacks = texts.iter().map(|text| match text.as_ref() {
            "" => StrategySpec::parse("").map(|spec| vec![spec]),
            text => StrategySpec::parse_all_on(text, block),
        });
        Ok(by_layer(stacks.collect::<Result<Vec<_>, _>>()?.concat()))
    }

    /// Its row in the catalogue.
    pub fn row(&self) -> &'static Row {
        Catalog::find(self.name).expect("a parsed strategy is in the catalogue")
    }

    /// Its classes, with the parameters it has.
    pub fn classes(&self) -> Classes {
        let classes = self.row().classes;
        let is_given = |key: &str| self.parameters.iter().any(|(known, _)| known == key);
        let is_set = |(key, value): (&str, &str)| {
            self.parameters.iter().any(|(known, given)| known == key && given == value)
        };
        let keeps = classes.kept_with.is_some_and(is_given)
            || classes.given_up_with.is_some_and(|it| !is_set(it));
        match keeps {
            true => Classes { semantics: Semantics::Kept, ..classes },
            false => classes,
        }
    }

    /// A fresh strategy for the file of that path.
    pub fn build_for(&self, path: &str) -> Box<dyn Strategy> {
        let mut strategy = self.build();
        if let Some(plan) = &self.plan {
            strategy.follow(plan.lanes(path));
        }
        strategy
    }

    /// A fresh strategy for one file.
    pub fn build(&self) -> Box<dyn Strategy> {
        let built = self.row().build.strategy(&self.parameters);
        built.expect("a parsed strategy has been built once")
    }

    /// Whether it holds bytes back, or keeps what it has read: a file must then be one process's alone.
    pub fn owns_files(&self) -> bool {
        let strategy = self.build();
        strategy.holding_bytes() > 0 || strategy.keeps_bytes()
    }

    /// A fresh stage of the layer MPI-IO, if it is one.
    pub fn mpiio(&self) -> Option<MpiIoStage> {
        match self.row().build {
            Build::MpiIo(build) => build(&self.parameters).ok(),
            Build::Posix(_)
            | Build::Place(_)
            | Build::Names(_)
            | Build::Hdf5(_)
            | Build::NetCdf(_) => None,
        }
    }

    /// With which properties HDF5 is to open files, if it is a stage of that layer.
    pub fn hdf5(&self) -> Option<Properties> {
        match self.row().build {
            Build::Hdf5(read) => read(&self.parameters).ok(),
            Build::Posix(_)
            | Build::MpiIo(_)
            | Build::Place(_)
            | Build::Names(_)
            | Build::NetCdf(_) => None,
        }
    }

    /// What files of NetCDF are to get, if it is a stage of that layer.
    pub fn netcdf(&self) -> Option<netcdf::Properties> {
        match self.row().build {
            Build::NetCdf(read) => read(&self.parameters).ok(),
            _ => None,
        }
    }

    /// Where the files begin that it is for, if it has them begin elsewhere.
    pub fn place(&self) -> Option<Stage> {
        match self.row().build {
            Build::Place(read) => read(&self.parameters).ok(),
            Build::Posix(_)
            | Build::MpiIo(_)
            | Build::Names(_)
            | Build::Hdf5(_)
            | Build::NetCdf(_) => None,
        }
    }

    /// How small files are kept in a container, if it does that.
    pub fn deferral(&self) -> Option<DeferClose> {
        match self.row().build {
            Build::Names(read) => read(&self.parameters).ok(),
            Build::Posix(_)
            | Build::MpiIo(_)
            | Build::Place(_)
            | Build::Hdf5(_)
            | Build::NetCdf(_) => None,
        }
    }

    /// Whose calls it hears.
    pub fn layer(&self) -> Layer {
        self.row().classes.layer
    }
}

/// A stack as it stands: who hears calls of a higher layer stands higher, in whichever order they were written.
fn by_layer(mut specs: Vec<StrategySpec>) -> Vec<StrategySpec> {
    specs.sort_by_key(|spec| spec.layer().depth());
    count::named(specs)
}

/// A glob that can match something: brackets and braces are closed, and not empty.
fn glob(strategy: &str, key: &str, value: &str) -> Result<String, Refusal> {
    let refuse = |problem: &str| {
        Err(Refusal {
            message: format!("strategy `{strategy}`: the glob {key}=`{value}` {problem}"),
            hint: "globs know *, **, ?, [ab], [!ab], {a,b}; a \\ before one of these means itself"
                .into(),
        })
    };
    if value.is_empty() {
        return refuse("is empty");
    }
    let mut characters = value.chars().peekable();
    let mut braces = 0;
    while let Some(character) = characters.next() {
        match character {
            '\\' if characters.next().is_none() => return refuse("ends in a lone `\\`"),
            '{' => braces += 1,
            '}' if braces == 0 => return refuse("has a `}` without a `{`"),
            '}' => braces -= 1,
            '[' => {
                characters.next_if(|it| matches!(it, '!' | '^'));
                // A bracket right at the beginning is a member.
                characters.next_if_eq(&']');
                if !characters.by_ref().any(|it| it == ']') {
                    return refuse("has a `[` without a `]`");
                }
            }
            _ => {}
        }
    }
    if braces > 0 { refuse("has a `{` without a `}`") } else { Ok(value.to_owned()) }
}

/// Commas inside `{…}` belong to a glob, the others separate parameters.
fn split_outside_braces(text: &str) -> impl Iterator<Item = &str> {
    let mut depth = 0;
    text.split(move |c| {
        match c {
            '{' => depth += 1,
            '}' => depth -= 1,
            _ => {}
        }
        c == ',' && depth == 0
    })
}

/// The parts of a stack: a `+` stands between them, with spaces around, outside braces.
fn split_at_plus(text: &str) -> Vec<&str> {
    let (mut parts, mut begin, mut depth) = (Vec::new(), 0, 0);
    let is_space = |character: Option<char>| character.is_none_or(char::is_whitespace);
    let mut before = None;
    let mut characters = text.char_indices().peekable();
    while let Some((at, character)) = characters.next() {
        match character {
            '\\' => before = characters.next().map(|it| it.1),
            '{' => depth += 1,
            '}' => depth -= 1,
            '+' if depth <= 0 && is_space(before) && is_space(characters.peek().map(|it| it.1)) => {
                parts.push(&text[begin..at]);
                begin = at + 1;
            }
            _ => {}
        }
        if character != '\\' {
            before = Some(character);
        }
    }
    parts.push(&text[begin..]);
    parts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_parameter_is_given_once_and_globs_as_often_as_wanted() {
        let twice = StrategySpec::parse("write-back:buffer=1m,buffer=2m").unwrap_err();
        assert!(twice.message.contains("`buffer` is given twice"), "{}", twice.message);
        let globs = StrategySpec::parse("write-back:paths=*.a,paths=*.b").unwrap();
        assert_eq!(globs.selection.paths.len(), 2);
    }

    #[test]
    fn what_cannot_be_is_refused_and_named() {
        for (text, offender) in [
            ("null:paths=[ab", "[ab"),
            ("null:paths={a,b", "{a,b"),
            ("null:exclude=a}", "a}"),
            ("null:paths=", "empty"),
            ("write-back:buffer=100g", "buffer"),
            ("write-back:buffer=0", "buffer"),
            ("write-back:largest=1t", "largest"),
            ("cruel:errno=99999", "99999"),
            ("cruel:errno=0", "errno"),
        ] {
            let error = StrategySpec::parse(text).unwrap_err();
            assert!(error.message.contains(offender), "{text}: {error}");
        }
        for text in ["null:paths=[]a]", "null:paths=[!a-c]*", "null:paths={a,b{c,d}}/**"] {
            assert!(StrategySpec::parse(text).is_ok(), "{text}");
        }
    }

    #[test]
    fn a_strategy_counts_its_globs_from_a_root_and_stays_readable() {
        let root = "/data/a + b";
        let spec = StrategySpec::parse("write-back:buffer=4k,paths=out/*.x,exclude=*.log").unwrap();
        let rooted = spec.clone().rooted(root);
        assert_eq!(StrategySpec::parse_all(&rooted.text).unwrap(), std::slice::from_ref(&rooted));
        assert!(rooted.selection.chooses("/data/a + b/out/1.x"), "{}", rooted.text);
        assert_eq!(rooted.parameters, spec.parameters);
        let everywhere = StrategySpec::parse("null:paths=*.x").unwrap();
        assert_eq!(everywhere.clone().rooted(root), everywhere);
    }

    #[test]
    fn strategies_travel_as_one_text() {
        let specs = ["null", "null:paths=*.chk"].map(|text| StrategySpec::parse(text).unwrap());
        assert_eq!(StrategySpec::parse_all(&StrategySpec::join(&specs)).unwrap(), specs);
    }

    #[test]
    fn a_plus_between_spaces_stands_between_strategies() {
        let texts = |text: &str| {
            let specs = StrategySpec::parse_all(text).unwrap();
            specs.into_iter().map(|spec| spec.text).collect::<Vec<_>>()
        };
        assert_eq!(texts("null +\twrite-back:buffer=1k"), ["null", "write-back:buffer=1k"]);
        assert_eq!(texts("null + null\u{1f}throttle"), ["null", "null", "throttle"]);
        for whole in ["null:paths=*.c++", "null:paths={a + b}/*", "null:paths=a \\+ b"] {
            assert_eq!(texts(whole), [whole]);
        }
        for missing in ["null +", "+ null", "null + + null", "+", "null +\u{1f}null"] {
            let refused = StrategySpec::parse_all(missing).unwrap_err();
            assert!(refused.message.contains("beside a `+`"), "{missing}: {refused}");
        }
        let each = StrategySpec::parse_each(&["null + throttle", "null"]).unwrap();
        assert_eq!(
            each.iter().map(|spec| spec.name).collect::<Vec<_>>(),
            ["null", "throttle", "null"]
        );
        assert!(StrategySpec::parse_each(&[""]).is_err());
    }

    #[test]
    fn a_stack_is_sorted_by_layer_and_within_one_as_it_was_written() {
        let names = |specs: Vec<StrategySpec>| specs.iter().map(|it| it.name).collect::<Vec<_>>();
        let stack = StrategySpec::parse_all("null + demote + throttle + hints:a=1").unwrap();
        assert_eq!(names(stack), ["demote", "hints", "null", "throttle"]);
        let stack = StrategySpec::parse_each(&["null + throttle", "demote"]).unwrap();
        assert_eq!(names(stack), ["demote", "null", "throttle"]);
    }

    #[test]
    fn the_layer_of_a_row_is_the_one_it_is_built_for() {
        for row in Catalog::ROWS {
            let layer = match row.build {
                Build::Posix(_) | Build::Place(_) | Build::Names(_) => Layer::Posix,
                Build::MpiIo(_) => Layer::MpiIo,
                Build::Hdf5(_) => Layer::Hdf5,
                Build::NetCdf(_) => Layer::NetCdf,
            };
            assert_eq!(row.classes.layer, layer, "{}", row.name);
        }
    }

    #[test]
    fn an_unknown_strategy_or_parameter_is_named_with_a_way_out() {
        let error = StrategySpec::parse("write-bakc").unwrap_err();
        assert!(error.message.contains("write-bakc") && error.hint.contains("null"), "{error:?}");
        let error = StrategySpec::parse("null+count").unwrap_err();
        assert_eq!(error.hint, "write a stack as `null + count`");
        let error = StrategySpec::parse("null:size=3").unwrap_err();
        assert!(error.message.contains("size"), "{error:?}");
        let error = StrategySpec::parse("null:paths").unwrap_err();
        assert!(error.message.contains("`paths`"), "{error:?}");
    }
}
