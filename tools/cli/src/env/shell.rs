//! Variables as shells, batch systems, containers and module files take them, quoted as each wants it.

use crate::failure::Failure;
use clap::ValueEnum;
use iolab_vocab::printable;
use std::fmt::Write;
use std::path::{Path, PathBuf};

/// For whom variables are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum Shell {
    /// Words for `env $(iolab env …) COMMAND`
    Words,
    /// `eval "$(iolab env --shell sh …)"`, also for bash, zsh, ksh
    Sh,
    /// `eval "`iolab env --shell csh …`"`, also for tcsh
    Csh,
    /// `iolab env --shell fish … | source`
    Fish,
    /// `srun --export=ALL,$(iolab env --shell slurm …) COMMAND`
    Slurm,
    /// `docker run $(iolab env --shell docker …) IMAGE COMMAND`, also for podman
    Docker,
    /// `eval "$(iolab env --shell apptainer …)"`, then `apptainer exec`
    Apptainer,
    /// Lines of a module file (Tcl)
    Modulefile,
    /// Lines of a module file for Lmod
    Lua,
}

/// A variable to set.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Variable {
    name: &'static str,
    value: String,
    /// What it lists, where it is one of paths that may be set already.
    paths: Vec<String>,
}

impl Variable {
    pub(super) fn new(name: &'static str, value: String) -> Variable {
        Variable { name, value, paths: Vec::new() }
    }

    /// `LD_PRELOAD`; where a path would be divided, the library is not found in the first place.
    pub(super) fn preload(libraries: Vec<PathBuf>) -> Result<Variable, Failure> {
        let mut paths = Vec::new();
        for library in libraries {
            let text = library.to_string_lossy().into_owned();
            if text.contains(['\t', '\n']) || library.to_str().is_none() {
                return Err(Failure::new(format!("{text}: no shell can be told such a path"))
                    .hint("install iolab where the path is plain text"));
            }
            paths.push(text);
        }
        Ok(Variable { name: "LD_PRELOAD", value: paths.join(":"), paths })
    }

    fn is_preload(&self) -> bool {
        !self.paths.is_empty()
    }
}

impl Shell {
    /// Whether the text is written down and used for many runs.
    pub(super) const fn is_kept(self) -> bool {
        matches!(self, Shell::Modulefile | Shell::Lua)
    }

    /// Whether the variables are for processes that this one's shell starts here.
    pub(super) const fn is_here(self) -> bool {
        matches!(self, Shell::Words | Shell::Sh | Shell::Csh | Shell::Fish)
    }

    /// The text for standard output, without its last line end; `places` are directories that a container
    /// has to see.
    pub(super) fn text(self, variables: &[Variable], places: &[String]) -> Result<String, Failure> {
        Ok(match self {
            Shell::Words => words(variables)?,
            Shell::Slurm => slurm(variables)?,
            Shell::Docker => docker(variables, places)?,
            Shell::Apptainer => apptainer(variables, places)?,
            Shell::Sh => lines(variables, sh_line),
            Shell::Csh => lines(variables, csh_line),
            Shell::Fish => lines(variables, fish_line),
            Shell::Modulefile => lines(variables, tcl_line),
            Shell::Lua => lines(variables, lua_line),
        })
    }
}

fn lines(variables: &[Variable], line: impl Fn(&Variable) -> String) -> String {
    variables.iter().map(line).collect::<Vec<_>>().join("\n")
}

/// Words that a shell divides at blanks and takes names of files for patterns in.
fn words(variables: &[Variable]) -> Result<String, Failure> {
    let mut words = Vec::new();
    for variable in variables {
        let is_plain = |byte: char| !byte.is_whitespace() && !"*?[]\\'\"$`".contains(byte);
        if !variable.value.chars().all(is_plain) {
            return Err(Failure::new(format!(
                "{} has a value that is no single word: {}",
                variable.name, variable.value
            ))
            .hint("eval \"$(iolab env --shell sh …)\" sets it in the shell"));
        }
        words.push(format!("{}={}", variable.name, variable.value));
    }
    Ok(words.join("\n"))
}

/// A path as a word that can be pasted after a command, in quotes where it needs them; nothing where no line of
/// text holds it.
pub(crate) fn sh_word(path: &Path) -> Option<String> {
    let text = path.to_str().filter(|text| printable(text) == *text)?;
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "/._-+=:,@%".contains(c);
    let text = if text.starts_with('-') { format!("./{text}") } else { text.to_owned() };
    Some(if text.chars().all(is_plain) { text } else { sh_quoted(&text) })
}

/// In quotes of `sh`, which end at a quote only.
fn sh_quoted(value: &str) -> String {
    format!("'{}'", value.replace('\'', r"'\''"))
}

fn sh_line(variable: &Variable) -> String {
    let value = sh_quoted(&variable.value);
    match variable.is_preload() {
        true => format!("export LD_PRELOAD={value}\"${{LD_PRELOAD:+:$LD_PRELOAD}}\""),
        false => format!("export {}={value}", variable.name),
    }
}

/// In quotes of `csh`, where an exclamation mark and a line end need a backslash all the same.
fn csh_line(variable: &Variable) -> String {
    let value = sh_quoted(&variable.value).replace('!', r"\!").replace('\n', "\\\n");
    match variable.is_preload() {
        true => format!(
            "if ( $?LD_PRELOAD ) setenv LD_PRELOAD {value}:\"$LD_PRELOAD\";\n\
             if ( ! $?LD_PRELOAD ) setenv LD_PRELOAD {value};"
        ),
        false => format!("setenv {} {value};", variable.name),
    }
}

fn fish_line(variable: &Variable) -> String {
    let value = format!("'{}'", variable.value.replace('\\', r"\\").replace('\'', r"\'"));
    match variable.is_preload() {
        true => format!(
            "set -q LD_PRELOAD; and set -gx LD_PRELOAD {value}:\"$LD_PRELOAD\"; or set -gx LD_PRELOAD {value}"
        ),
        false => format!("set -gx {} {value}", variable.name),
    }
}

fn tcl_line(variable: &Variable) -> String {
    let value = quoted(&variable.value, "\\\"$[]{}");
    match variable.is_preload() {
        true => path_lines(variable, |path| {
            format!("prepend-path LD_PRELOAD {}", quoted(path, "\\\"$[]{}"))
        }),
        false => format!("setenv {} {value}", variable.name),
    }
}

fn lua_line(variable: &Variable) -> String {
    match variable.is_preload() {
        true => path_lines(variable, |path| {
            format!("prepend_path(\"LD_PRELOAD\", {})", quoted(path, "\\\""))
        }),
        false => format!("setenv(\"{}\", {})", variable.name, quoted(&variable.value, "\\\"")),
    }
}

/// The last one is put in front first.
fn path_lines(variable: &Variable, line: impl Fn(&str) -> String) -> String {
    let last_first = variable.paths.iter().rev();
    last_first.map(|path| line(path)).collect::<Vec<_>>().join("\n")
}

/// In double quotes, with a backslash before what means something in them.
fn quoted(value: &str, special: &str) -> String {
    let mut text = String::from("\"");
    for character in value.chars() {
        match character {
            '\n' => text.push_str("\\n"),
            _ if special.contains(character) => {
                text.push('\\');
                text.push(character);
            }
            _ => text.push(character),
        }
    }
    text.push('"');
    text
}

/// A list for `--export`, divided at commas, by names alone where a value cannot stand in it: those have to be
/// in the environment of `srun`, which is told.
fn slurm(variables: &[Variable]) -> Result<String, Failure> {
    let mut list = Vec::new();
    for variable in variables {
        let is_plain = |byte: char| !byte.is_whitespace() && !",'\"\\*?[$`".contains(byte);
        if variable.value.chars().all(is_plain) {
            list.push(format!("{}={}", variable.name, variable.value));
        } else if variable.is_preload() {
            return Err(Failure::new(format!("{} cannot stand in --export", variable.value))
                .hint("install iolab where the path has no comma and no quotes"));
        } else {
            eprintln!("iolab: before srun, in the script: {}", sh_line(variable));
            list.push(variable.name.to_owned());
        }
    }
    Ok(list.join(","))
}

/// Options of `docker run` and `podman run`, as words.
fn docker(variables: &[Variable], places: &[String]) -> Result<String, Failure> {
    let mut options = Vec::new();
    for word in words(variables)?.lines() {
        options.push(format!("-e {word}"));
    }
    for path in bound(variables, places)? {
        options.push(format!("-v {path}:{path}"));
    }
    Ok(options.join("\n"))
}

/// Variables of the shell that starts Apptainer or Singularity.
fn apptainer(variables: &[Variable], places: &[String]) -> Result<String, Failure> {
    let mut text = String::new();
    for variable in variables {
        let value = sh_quoted(&variable.value);
        // Writing to a string cannot fail.
        _ = writeln!(text, "export APPTAINERENV_{}={value}", variable.name);
    }
    let list = bound(variables, places)?.join(",");
    let more = "\"${APPTAINER_BINDPATH:+,$APPTAINER_BINDPATH}\"";
    _ = write!(text, "export APPTAINER_BINDPATH={}{more}", sh_quoted(&list));
    Ok(text)
}

/// What a container has to see: the folders of the libraries, and the directories of spools.
fn bound(variables: &[Variable], places: &[String]) -> Result<Vec<String>, Failure> {
    let libraries = variables.iter().flat_map(|variable| &variable.paths);
    let folder =
        |path: &String| Path::new(path).parent().map(|it| it.to_string_lossy().into_owned());
    let mut bound: Vec<String> = libraries.filter_map(folder).collect();
    for place in places {
        let real = Path::new(place).canonicalize().unwrap_or_else(|_| PathBuf::from(place));
        bound.push(real.to_string_lossy().into_owned());
    }
    bound.dedup();
    match bound.iter().find(|path| path.contains([' ', ':', ',', '\n'])) {
        Some(path) => Err(Failure::new(format!("{path} cannot be bound into a container"))
            .hint("choose a path without blanks, colons and commas")),
        None => Ok(bound),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;

    #[test]
    fn a_path_is_pasted_as_it_is_or_in_quotes_or_not_at_all() {
        let word = |path: &str| sh_word(Path::new(path));
        assert_eq!(word("runs/a-1.iot").unwrap(), "runs/a-1.iot");
        assert_eq!(word("it's my run.iot").unwrap(), r"'it'\''s my run.iot'");
        assert_eq!(word("-o").unwrap(), "./-o");
        assert_eq!(word("a\nb.iot"), None);
    }

    const NASTY: &str = r#"a b'c"d$HOME`id`\!*[x];{y}"#;

    fn variables(value: &str) -> Vec<Variable> {
        let preload = Variable::preload(vec!["/l/a.so".into(), "/l/b.so".into()]).unwrap();
        vec![preload, Variable::new("IOLAB_RECORD", value.to_owned())]
    }

    fn text(shell: Shell, value: &str) -> Result<String, String> {
        shell.text(&variables(value), &[]).map_err(|failure| failure.to_string())
    }

    /// What a program that a shell starts finds in the variable; nothing where there is no such shell.
    fn found_by(shell: &str, script: &str) -> Option<String> {
        let ran =
            Command::new(shell).args(["-c", script]).env_remove("LD_PRELOAD").output().ok()?;
        Some(String::from_utf8_lossy(&ran.stdout).into_owned())
    }

    #[test]
    fn whatever_a_path_holds_arrives_through_the_shells() {
        let print = "printf '%s\\n' \"$LD_PRELOAD\" \"$IOLAB_RECORD\"";
        // Read by the shell itself: what it starts would load the libraries, which are not there.
        let script = format!("{}\n{print}", text(Shell::Sh, NASTY).unwrap());
        for shell in ["sh", "bash"] {
            let found = found_by(shell, &script).expect(shell);
            assert_eq!(found, format!("/l/a.so:/l/b.so\n{NASTY}\n"), "{shell}");
        }
        let script = format!("LD_PRELOAD=/x.so\n{}\n{print}", text(Shell::Sh, "v").unwrap());
        assert_eq!(found_by("bash", &script).unwrap(), "/l/a.so:/l/b.so:/x.so\nv\n");
        let script = format!("{}\necho $IOLAB_RECORD:q", text(Shell::Csh, NASTY).unwrap());
        if let Some(found) = found_by("tcsh", &script) {
            assert_eq!(found, format!("{NASTY}\n"));
        }
        let script = format!("{}\necho $IOLAB_RECORD", text(Shell::Fish, NASTY).unwrap());
        if let Some(found) = found_by("fish", &script) {
            assert_eq!(found, format!("{NASTY}\n"));
        }
    }

    #[test]
    fn what_cannot_be_written_in_a_form_is_refused_with_a_way_out() {
        let problem = text(Shell::Words, "/a b").unwrap_err();
        assert!(problem.contains("IOLAB_RECORD") && problem.contains("--shell sh"), "{problem}");
        assert!(text(Shell::Words, "/a*").is_err() && text(Shell::Docker, "/a b").is_err());
        assert!(Variable::preload(vec!["/a\nb/c.so".into()]).is_err());
        assert!(Shell::Apptainer.text(&variables("/v"), &["/a,b".to_owned()]).is_err());
    }

    #[test]
    fn each_form_is_what_its_reader_takes() {
        assert_eq!(
            text(Shell::Words, "/d").unwrap(),
            "LD_PRELOAD=/l/a.so:/l/b.so\nIOLAB_RECORD=/d"
        );
        assert_eq!(text(Shell::Slurm, "/d").unwrap(), "LD_PRELOAD=/l/a.so:/l/b.so,IOLAB_RECORD=/d");
        assert_eq!(text(Shell::Slurm, "/d,e").unwrap(), "LD_PRELOAD=/l/a.so:/l/b.so,IOLAB_RECORD");
        assert_eq!(
            Shell::Docker.text(&variables("/d"), &["/".to_owned()]).unwrap(),
            "-e LD_PRELOAD=/l/a.so:/l/b.so\n-e IOLAB_RECORD=/d\n-v /l:/l\n-v /:/"
        );
        assert_eq!(
            text(Shell::Modulefile, "a[b]$c").unwrap(),
            "prepend-path LD_PRELOAD \"/l/b.so\"\nprepend-path LD_PRELOAD \"/l/a.so\"\n\
             setenv IOLAB_RECORD \"a\\[b\\]\\$c\""
        );
        assert_eq!(
            text(Shell::Lua, "a\"b\\").unwrap(),
            "prepend_path(\"LD_PRELOAD\", \"/l/b.so\")\nprepend_path(\"LD_PRELOAD\", \"/l/a.so\")\n\
             setenv(\"IOLAB_RECORD\", \"a\\\"b\\\\\")"
        );
        let script = text(Shell::Apptainer, "/d e").unwrap();
        assert!(script.contains("export APPTAINERENV_IOLAB_RECORD='/d e'\n"), "{script}");
        assert!(
            script.ends_with(
                "APPTAINER_BINDPATH='/l'\"${APPTAINER_BINDPATH:+,$APPTAINER_BINDPATH}\""
            )
        );
    }
}
