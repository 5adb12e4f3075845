//! What is wanted of this program, by its name: `IOLAB_ONLY` and `IOLAB_NEVER`, lists of programs.
//!
//! A name in a list is that of a program's file or what it was called by, without folders; `python3` is
//! `python3.11`, too. Where no `iolab` started the run, shells and launchers are not staged unless they are
//! named: a profile that everybody loads is meant for what they start.

use crate::system;
use std::ffi::{CStr, c_char};

type Variables<'a> = &'a dyn Fn(&[u8]) -> Option<&'static [u8]>;

/// Shells and launchers of parallel and remote programs.
const STARTERS: [&[u8]; 33] = [
    b"sh",
    b"bash",
    b"dash",
    b"zsh",
    b"ksh",
    b"mksh",
    b"csh",
    b"tcsh",
    b"fish",
    b"busybox",
    b"ssh",
    b"sshd",
    b"rsh",
    b"env",
    b"nohup",
    b"timeout",
    b"time",
    b"srun",
    b"sbatch",
    b"salloc",
    b"slurmstepd",
    b"mpiexec",
    b"mpirun",
    b"mpiexec.hydra",
    b"hydra_pmi_proxy",
    b"orterun",
    b"orted",
    b"prterun",
    b"prted",
    b"aprun",
    b"jsrun",
    b"flux",
    b"pbsdsh",
];

/// What may be done with this program's calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Chosen {
    /// They pass.
    Passed,
    /// They may be recorded.
    Recorded,
    /// Strategies may answer them, too.
    Staged,
}

/// Reads the lists.
///
/// # Safety
/// The loader's arguments of the program.
pub(crate) unsafe fn chosen(
    count: i32,
    arguments: *const *const c_char,
    variable: Variables<'_>,
) -> Chosen {
    let (only, never) = (variable(b"IOLAB_ONLY"), variable(b"IOLAB_NEVER"));
    let is_launched = variable(b"IOLAB_LAUNCHED").is_some();
    if is_launched && only.is_none() && never.is_none() {
        return Chosen::Staged;
    }
    let mut file = [0; 4096];
    // SAFETY: a terminated path, and a buffer of this frame; the loader's array.
    let (length, called) = unsafe {
        let to = file.as_mut_ptr() as usize;
        let length = system::read_link(c"/proc/self/exe", to, file.len());
        let first = if count > 0 { *arguments } else { std::ptr::null() };
        (length, if first.is_null() { &b""[..] } else { CStr::from_ptr(first).to_bytes() })
    };
    let file = file.get(..usize::try_from(length).unwrap_or(0)).unwrap_or_default();
    choose([name(file), name(called)], only, never, is_launched)
}

fn choose(
    names: [&[u8]; 2],
    only: Option<&[u8]>,
    never: Option<&[u8]>,
    is_launched: bool,
) -> Chosen {
    let is_in = |list: &[u8]| {
        let mut listed = list.split(|&byte| byte == b',' || byte == b':');
        listed.any(|entry| names.iter().any(|name| is_of(name, entry)))
    };
    let is_named = only.is_some_and(is_in);
    // What looks after recordings is none itself.
    if names[0] == b"iolab" && !is_launched
        || never.is_some_and(is_in)
        || only.is_some() && !is_named
    {
        return Chosen::Passed;
    }
    let starts_others = STARTERS.iter().any(|starter| names.contains(starter));
    match starts_others && !is_launched && !is_named {
        true => Chosen::Recorded,
        false => Chosen::Staged,
    }
}

/// The last part of a path; a login shell is called `-bash`.
fn name(path: &[u8]) -> &[u8] {
    let name = path.rsplit(|&byte| byte == b'/').next().unwrap_or_default();
    name.strip_prefix(b"-").unwrap_or(name)
}

/// Whether a program has that name, with or without a version behind it.
fn is_of(name: &[u8], entry: &[u8]) -> bool {
    let version = name.strip_prefix(entry).filter(|_| !entry.is_empty());
    version.is_some_and(|rest| rest.iter().all(|byte| byte.is_ascii_digit() || *byte == b'.'))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chosen(name: &str, only: Option<&str>, never: Option<&str>) -> Chosen {
        let bytes = |list: Option<&'static str>| list.map(str::as_bytes);
        let leaked =
            |list: Option<&str>| list.map(|it| &*Box::leak(it.to_owned().into_boxed_str()));
        choose([name.as_bytes(), b""], bytes(leaked(only)), bytes(leaked(never)), false)
    }

    #[test]
    fn programs_are_chosen_by_name_with_or_without_a_version() {
        assert_eq!(chosen("solver", None, None), Chosen::Staged);
        assert_eq!(chosen("solver", Some("ior,solver"), None), Chosen::Staged);
        assert_eq!(chosen("tar", Some("ior,solver"), None), Chosen::Passed);
        assert_eq!(chosen("python3.11", None, Some("bash,python3")), Chosen::Passed);
        assert_eq!(chosen("python3-config", None, Some("python3")), Chosen::Staged);
        assert_eq!(chosen("tar", None, Some("")), Chosen::Staged);
    }

    #[test]
    fn shells_and_launchers_are_recorded_and_not_staged_unless_they_are_named() {
        for starter in ["bash", "srun", "mpiexec"] {
            assert_eq!(chosen(starter, None, None), Chosen::Recorded);
            assert_eq!(chosen(starter, Some(starter), None), Chosen::Staged);
            assert_eq!(chosen(starter, None, Some(starter)), Chosen::Passed);
        }
        assert_eq!(choose([b"bash", b"sh"], None, None, true), Chosen::Staged);
        assert_eq!(chosen("iolab", None, None), Chosen::Passed);
        assert_eq!(name(b"-bash"), b"bash");
    }
}
