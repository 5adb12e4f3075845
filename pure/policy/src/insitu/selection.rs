//! Which files a strategy is for.

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

    /// Whether surely no file is chosen by both, as far as their globs tell by how they begin and end
    /// (`*.chk` and `*.log`, `/a/**` and `/b/**`) or by one excluding what the other names.
    pub fn is_apart_from(&self, other: &Selection) -> bool {
        let excludes = |one: &Selection, other: &Selection| {
            !one.paths.is_empty() && one.paths.iter().all(|glob| other.exclude.contains(glob))
        };
        let differ = |glob: &String| other.paths.iter().all(|other| are_apart(glob, other));
        let named = !self.paths.is_empty() && !other.paths.is_empty();
        named && self.paths.iter().all(differ) || excludes(self, other) || excludes(other, self)
    }

    /// The same with relative globs counted from `root`, an absolute directory.
    pub fn rooted(&self, root: &str) -> Selection {
        let all = |globs: &[String]| globs.iter().map(|glob| glob_from(glob, root)).collect();
        Selection { paths: all(&self.paths), exclude: all(&self.exclude) }
    }
}

/// A glob that counts from `root` where it is relative: where it has a `/` and begins with none, nor with
/// `**`, which is any directory. Alternatives at its beginning count each for itself.
fn glob_from(glob: &str, root: &str) -> String {
    if !glob.contains('/') {
        return glob.to_owned();
    }
    if let Some(rest) = glob.strip_prefix('!') {
        return format!("!{}", glob_from(rest, root));
    }
    match glob.strip_prefix('{').and_then(alternatives) {
        Some((choices, end)) => {
            let one = |choice: &&str| from_root(&format!("{choice}{end}"), root);
            format!("{{{}}}", choices.iter().map(one).collect::<Vec<_>>().join(","))
        }
        None => from_root(glob, root),
    }
}

/// The parts between the commas of a group that has begun, and what follows the group.
fn alternatives(text: &str) -> Option<(Vec<&str>, &str)> {
    let (mut choices, mut begin, mut depth, mut is_escaped) = (Vec::new(), 0, 0, false);
    for (at, character) in text.char_indices() {
        match character {
            _ if is_escaped => is_escaped = false,
            '\\' => is_escaped = true,
            '{' => depth += 1,
            ',' if depth == 0 => {
                choices.push(&text[begin..at]);
                begin = at + 1;
            }
            '}' if depth == 0 => {
                choices.push(&text[begin..at]);
                return Some((choices, &text[at + 1..]));
            }
            '}' => depth -= 1,
            _ => {}
        }
    }
    None
}

fn from_root(glob: &str, root: &str) -> String {
    if glob.starts_with('{') {
        return glob_from(glob, root);
    }
    if glob.starts_with('/') || glob == "**" || glob.starts_with("**/") {
        return glob.to_owned();
    }
    let (mut directory, mut rest) = (root.trim_end_matches('/'), glob);
    loop {
        if let Some(here) = rest.strip_prefix("./") {
            rest = here.trim_start_matches('/');
        } else if let Some(above) = rest.strip_prefix("../") {
            rest = above.trim_start_matches('/');
            directory = directory.rsplit_once('/').map_or("", |(above, _)| above);
        } else {
            return format!("{}/{rest}", literal_glob(directory));
        }
    }
}

/// A glob that matches this path. Characters that mean something in a glob, in a strategy as it is
/// written, to the shell between single quotes or to a terminal are matched by `?`.
pub fn literal_glob(path: &str) -> String {
    let means = |c: char| ",*?[]{}!\\:=+'".contains(c) || c.is_ascii_control();
    path.chars().map(|c| if means(c) { '?' } else { c }).collect()
}

fn glob_matches(glob: &str, path: &str) -> bool {
    let subject = if glob.contains('/') { path } else { path.rsplit('/').next().unwrap_or(path) };
    fast_glob::glob_match(glob, subject)
}

/// Whether no path matches both: their plain beginnings or plain ends contradict each other.
fn are_apart(one: &str, other: &str) -> bool {
    let (one_begins, one_ends) = plain_ends(one);
    let (other_begins, other_ends) = plain_ends(other);
    let contradict_at_begin =
        !one_begins.starts_with(&*other_begins) && !other_begins.starts_with(&*one_begins);
    let contradict_at_end = !one_ends.ends_with(&*other_ends) && !other_ends.ends_with(&*one_ends);
    contradict_at_begin || contradict_at_end
}

/// With what each path begins and ends that a glob matches, as far as that is plain text.
fn plain_ends(glob: &str) -> (String, String) {
    const SPECIAL: [char; 7] = ['*', '?', '[', ']', '{', '}', '\\'];
    if glob.starts_with('!') {
        // What it does not match is meant.
        return (String::new(), String::new());
    }
    let first = glob.find(SPECIAL);
    let end = &glob[glob.rfind(SPECIAL).map_or(0, |at| at + 1)..];
    // A `**/` may stand for nothing, its `/` with it.
    let end = if glob[..glob.len() - end.len()].ends_with("**") {
        end.strip_prefix('/').unwrap_or(end)
    } else {
        end
    };
    match (glob.contains('/'), first) {
        // A file name: anything may stand before it, and before it stands a `/`.
        (false, None) => (String::new(), format!("/{glob}")),
        (false, Some(_)) => (String::new(), end.to_owned()),
        (true, first) => (glob[..first.unwrap_or(glob.len())].to_owned(), end.to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use iolab_vocab::{Random, Seed};

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
    fn relative_globs_count_from_a_root() {
        for (glob, rooted) in [
            ("out/*.x", "/data/run/out/*.x"),
            ("./a.x", "/data/run/a.x"),
            ("../in/*", "/data/in/*"),
            ("../../../*", "/*"),
            ("*/a.x", "/data/run/*/a.x"),
            ("!out/*.x", "!/data/run/out/*.x"),
            ("{out,/scratch}/*.x", "{/data/run/out/*.x,/scratch/*.x}"),
            ("{{a,b}/c,d/e}", "{{/data/run/a/c,/data/run/b/c},/data/run/d/e}"),
            ("*.x", "*.x"),
            ("**/a.x", "**/a.x"),
            ("**", "**"),
            ("/abs/*.x", "/abs/*.x"),
        ] {
            assert_eq!(glob_from(glob, "/data/run"), rooted, "{glob}");
        }
        let selection = Selection { paths: vec!["a/*".into()], exclude: vec!["a/b".into()] };
        let rooted = selection.rooted("/x [1],2");
        assert!(rooted.chooses("/x [1],2/a/c") && !rooted.chooses("/x [1],2/a/b"));
    }

    #[test]
    fn selections_are_apart_when_no_path_can_match_both() {
        let selection = |paths: &[&str], exclude: &[&str]| {
            let owned = |globs: &[&str]| globs.iter().map(|&it| it.to_owned()).collect();
            Selection { paths: owned(paths), exclude: owned(exclude) }
        };
        let all = selection(&[], &[]);
        let apart = [
            (selection(&["*.a"], &[]), selection(&["*.b"], &[])),
            (selection(&["/a/**"], &[]), selection(&["/b/**"], &[])),
            (selection(&["/a/**/*.x"], &[]), selection(&["*.y", "/b/*"], &[])),
            (selection(&["one"], &[]), selection(&["*.b", "two"], &[])),
            (selection(&["*.a"], &[]), selection(&[], &["*.a"])),
        ];
        for (one, other) in &apart {
            assert!(one.is_apart_from(other) && other.is_apart_from(one), "{one:?} {other:?}");
            assert!(!one.is_apart_from(&all) || !other.is_apart_from(&all));
        }
        let may_meet = [
            (selection(&["*.a"], &[]), selection(&["/x/**"], &[])),
            (selection(&["/a/**"], &[]), selection(&["/a/b/*"], &[])),
            (selection(&["*.b"], &[]), selection(&["*.a.b"], &[])),
            (selection(&["*.{a,b}"], &[]), selection(&["*.b"], &[])),
            (selection(&["*.a", "*.b"], &[]), selection(&["*.b"], &[])),
            (selection(&["x[.]a"], &[]), selection(&["x.a"], &[])),
            (selection(&["!*.a"], &[]), selection(&["*.b"], &[])),
            (selection(&["*.a"], &[]), selection(&[], &["*.b"])),
        ];
        for (one, other) in &may_meet {
            assert!(!one.is_apart_from(other) && !other.is_apart_from(one), "{one:?} {other:?}");
        }
        assert!(!all.is_apart_from(&all));
    }

    #[test]
    fn no_path_is_chosen_by_two_selections_that_are_apart() {
        const PIECES: [&str; 12] =
            ["*", "**/", "/", "a", "b", ".c", "?", "{a,b}", "[ab]", "!", "\\*", "{a,/b}"];
        let mut random = Random::new(Seed(7));
        let mut some = |pieces: &[&str], most: u64| -> String {
            let count = 1 + random.below(most);
            (0..count).map(|_| pieces[random.below(pieces.len() as u64) as usize]).collect()
        };
        let mut apart = 0;
        for _ in 0..20_000 {
            let [one, other] = [some(&PIECES, 4), some(&PIECES, 4)]
                .map(|glob| Selection { paths: vec![glob], exclude: vec![] });
            if !one.is_apart_from(&other) {
                continue;
            }
            apart += 1;
            for _ in 0..20 {
                let path = format!("/{}", some(&["a", "b", ".c", "/", "*", "!"], 5));
                assert!(!(one.chooses(&path) && other.chooses(&path)), "{one:?} {other:?} {path}");
            }
        }
        assert!(apart > 1000, "{apart}");
    }

    #[test]
    fn a_literal_glob_matches_its_path_and_can_be_pasted() {
        let path = "/a/it's\n\u{1b}[1m, {x}";
        assert_eq!(literal_glob(path), "/a/it?s???1m? ?x?");
        assert!(glob_matches(&literal_glob(path), path));
    }
}
