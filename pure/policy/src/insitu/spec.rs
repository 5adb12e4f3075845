//! A strategy as written on a command line: `write-back:buffer=1m,paths=GLOB,exclude=GLOB`.

use super::Strategy;
use super::catalog::Catalog;
use iolab_vocab::Refusal;

/// Which files a strategy is for: absolute paths, by glob (`*`, `**`, `?`, `[ab]`, `{a,b}`).
/// A glob without a `/` is matched against the file name alone.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Selection {
    /// A path must match one of these; none means every path.
    pub paths: Vec<String>,
    /// … and none of these.
    pub exclude: Vec<String>,
}

impl Selection {
    /// Whether the file at that absolute path is chosen.
    pub fn chooses(&self, path: &str) -> bool {
        self.includes(path) && !self.excludes(path)
    }

    /// Whether `paths` has that path.
    pub fn includes(&self, path: &str) -> bool {
        self.paths.is_empty() || self.paths.iter().any(|glob| glob_matches(glob, path))
    }

    /// Whether `exclude` has that path.
    pub fn excludes(&self, path: &str) -> bool {
        self.exclude.iter().any(|glob| glob_matches(glob, path))
    }

    /// Whether a file of that name is not chosen, whatever folder it lies in.
    pub fn is_for_none_of_name(&self, path: &str) -> bool {
        let asks_for_folders = self.paths.iter().any(|glob| glob.contains('/'));
        !asks_for_folders && !self.includes(path)
    }
}

fn glob_matches(glob: &str, path: &str) -> bool {
    let subject = if glob.contains('/') { path } else { path.rsplit('/').next().unwrap_or(path) };
    fast_glob::glob_match(glob, subject)
}

/// Stands between strategies that travel as one text (ASCII "unit separator").
const SEPARATOR: &str = "\u{1f}";

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
}

impl StrategySpec {
    /// Reads and checks one strategy. Parameters are checked by building it once.
    pub fn parse(text: &str) -> Result<StrategySpec, Refusal> {
        let (name, rest) = text.split_once(':').unwrap_or((text, ""));
        let row = Catalog::find(name)?;
        let mut spec = StrategySpec {
            text: text.to_owned(),
            name: row.name,
            parameters: Vec::new(),
            selection: Selection::default(),
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
        (row.build)(&spec.parameters).map_err(|error| Refusal {
            message: format!("strategy `{text}`: {}", error.message),
            hint: format!("write {}", row.usage),
        })?;
        Ok(spec)
    }

    /// Several strategies as one text, top first, the way they travel to another process.
    pub fn join(specs: &[StrategySpec]) -> String {
        let texts: Vec<&str> = specs.iter().map(|spec| spec.text.as_str()).collect();
        texts.join(SEPARATOR)
    }

    /// Reads what `join` wrote.
    pub fn parse_all(text: &str) -> Result<Vec<StrategySpec>, Refusal> {
        text.split(SEPARATOR).filter(|part| !part.is_empty()).map(StrategySpec::parse).collect()
    }

    /// A fresh strategy for one file.
    pub fn build(&self) -> Box<dyn Strategy> {
        let row = Catalog::find(self.name).expect("a parsed strategy is in the catalogue");
        (row.build)(&self.parameters).expect("a parsed strategy has been built once")
    }
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
    fn a_glob_without_a_slash_is_about_the_file_name() {
        let chooses = |glob: &str, path| {
            Selection { paths: vec![glob.into()], exclude: vec![] }.chooses(path)
        };
        assert!(chooses("*.chk", "/a/b/c.chk"));
        assert!(!chooses("*.chk", "/a/b.chk/c"));
        assert!(chooses("/a/**/*.chk", "/a/b/c.chk"));
        assert!(chooses("{x,c}.chk", "/a/c.chk"));
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
    fn strategies_travel_as_one_text() {
        let specs = ["null", "null:paths=*.chk"].map(|text| StrategySpec::parse(text).unwrap());
        assert_eq!(StrategySpec::parse_all(&StrategySpec::join(&specs)).unwrap(), specs);
    }

    #[test]
    fn an_unknown_strategy_or_parameter_is_named_with_a_way_out() {
        let error = StrategySpec::parse("write-bakc").unwrap_err();
        assert!(error.message.contains("write-bakc") && error.hint.contains("null"), "{error:?}");
        let error = StrategySpec::parse("null:size=3").unwrap_err();
        assert!(error.message.contains("size"), "{error:?}");
        let error = StrategySpec::parse("null:paths").unwrap_err();
        assert!(error.message.contains("`paths`"), "{error:?}");
    }
}
