//! Files that are the same though their bytes are not: the user names a command that can tell.

use iolab_policy::insitu::{Selection, StrategySpec};
use iolab_vocab::Refusal;
use std::path::Path;
use std::process::{Command, Stdio};

/// How files of some names are compared where their bytes differ.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Same {
    files: Selection,
    /// The program and its arguments, before the two files.
    command: Vec<String>,
}

impl Same {
    /// Reads `GLOB=COMMAND`, as in `*.h5=h5diff`: the command gets both files as its last arguments, and 0 is its
    /// exit code where they are the same.
    ///
    /// # Errors
    /// That it is not written so.
    pub fn parse(text: &str) -> Result<Same, Refusal> {
        let refuse = |what: &str| {
            Refusal::new(
                format!("`{text}`: {what}"),
                "write GLOB=COMMAND, for example '*.h5=h5diff' or '*.nc=nccmp -d'",
            )
        };
        let (glob, command) = text.split_once('=').ok_or_else(|| refuse("there is no `=`"))?;
        let command: Vec<String> = command.split_whitespace().map(str::to_owned).collect();
        if command.is_empty() {
            return Err(refuse("there is no command"));
        }
        let spec = StrategySpec::parse(&format!("null:paths={glob}"))
            .map_err(|error| refuse(&error.message))?;
        Ok(Same { files: spec.selection, command })
    }

    /// Whether the file of that name is the same in both trees. What cannot be told is not.
    pub(crate) fn holds(&self, name: &Path, expected: &Path, found: &Path) -> bool {
        let (old, new) = (expected.join(name), found.join(name));
        if !self.files.chooses(&name.to_string_lossy()) || !old.is_file() || !new.is_file() {
            return false;
        }
        let mut command = Command::new(&self.command[0]);
        command.args(&self.command[1..]).args([old, new]);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        command.status().is_ok_and(|status| status.success())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn files_with_other_bytes_are_the_same_where_the_command_says_so() {
        let trees = [tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap()];
        let write = |name: &str, contents: [&str; 2]| {
            for (tree, content) in trees.iter().zip(contents) {
                fs::write(tree.path().join(name), content).unwrap();
            }
        };
        write("a.h5", ["x  y", "x y"]);
        write("b.h5", ["x  y", "x z"]);
        write("a.log", ["x  y", "x y"]);
        let same = Same::parse("*.h5=diff -b").unwrap();
        let holds = |name: &str| same.holds(Path::new(name), trees[0].path(), trees[1].path());
        assert!(holds("a.h5"));
        assert!(!holds("b.h5") && !holds("a.log") && !holds("missing.h5"));
        let absent = Same::parse("*.h5=no-such-program").unwrap();
        assert!(!absent.holds(Path::new("a.h5"), trees[0].path(), trees[1].path()));
    }

    #[test]
    fn what_is_no_glob_and_command_is_refused_with_a_way_out() {
        for text in ["*.h5", "*.h5=", "[=h5diff", "=h5diff"] {
            let refusal = Same::parse(text).unwrap_err();
            assert!(refusal.message.contains(text) && refusal.hint.contains("h5diff"), "{text}");
        }
    }
}
