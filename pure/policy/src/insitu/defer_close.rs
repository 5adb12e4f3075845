//! `defer-close`: many small files become one container per node, and real files later, or never.
//!
//! A file system makes a file in a millisecond where servers of metadata are far or busy, and a program that makes
//! thousands of small ones waits for nothing else. The files of a chosen directory are kept as *members*: their
//! bytes in memory, and at the close in a container that is only added to (`iolab-pack`); one file is made instead
//! of thousands (Frings et al. 2009, SIONlib; Bent et al. 2009, PLFS). Whatever a member cannot be asked for makes
//! a real file of it first.
//!
//! It decides nothing about a file's bytes, so it is no machine on calls of one file: [`Names`] is one machine for all
//! members, `real/mount/src/members` carries it out.

mod names;

pub use names::{Action, Append, Call, ContainerId, Ending, MemberId, Names, Place, Target};

use super::parameter::{Parameters, answer, size, size_in, unknown};
use iolab_vocab::Refusal;

/// Files above this become real unless it is said otherwise.
const LARGEST_BYTES: u64 = 1 << 20;
/// The most that `largest` may be: a record of a container holds as much at once.
const LARGEST_BYTES_MAX: u64 = 16 << 20;
/// Memory for members unless it is said otherwise.
const MEMORY_BYTES: u64 = 1 << 30;

/// When members become real files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unpack {
    /// At the end of the run, which waits for it.
    End,
    /// After the end of the run, which does not.
    Background,
    /// When somebody asks (`iolab unpack`).
    Never,
}

/// What was asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeferClose {
    /// Longer files become real, in bytes.
    pub largest_bytes: u64,
    /// Files are made for real while members take that much memory, in bytes.
    pub memory_bytes: u64,
    /// Nobody outside of the run makes files in the directories, those that were there before included.
    pub is_exclusive: bool,
    /// When members become real files.
    pub unpack: Unpack,
    /// The directory that the container lies in; nothing if it is the one of the files.
    pub to: Option<String>,
}

impl DeferClose {
    /// Reads `largest=1m,memory=1g,exclusive=yes,unpack=end|background|never,to=DIR`.
    pub fn parse(parameters: &Parameters) -> Result<DeferClose, Refusal> {
        let mut settings = DeferClose {
            largest_bytes: LARGEST_BYTES,
            memory_bytes: MEMORY_BYTES,
            is_exclusive: false,
            unpack: Unpack::End,
            to: None,
        };
        for (key, value) in parameters {
            match key.as_str() {
                "largest" => settings.largest_bytes = size_in(key, value, 1..=LARGEST_BYTES_MAX)?,
                "memory" => settings.memory_bytes = size(key, value)?,
                "exclusive" => settings.is_exclusive = answer(key, value)?,
                "unpack" => settings.unpack = unpack(value)?,
                "to" => settings.to = Some(value.clone()),
                _ => {
                    let known = "largest, memory, exclusive, unpack, to, paths, exclude";
                    return Err(unknown(key, known));
                }
            }
        }
        Ok(settings)
    }
}

fn unpack(value: &str) -> Result<Unpack, Refusal> {
    match value {
        "end" => Ok(Unpack::End),
        "background" => Ok(Unpack::Background),
        "never" => Ok(Unpack::Never),
        _ => Err(Refusal {
            message: format!("unpack: `{value}` is not known"),
            hint: "choose from end, background, never".to_owned(),
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &[(&str, &str)]) -> Result<DeferClose, Refusal> {
        let owned = |&(key, value): &(&str, &str)| (key.to_owned(), value.to_owned());
        DeferClose::parse(&text.iter().map(owned).collect::<Vec<_>>())
    }

    #[test]
    fn parameters_are_read_and_what_is_unknown_is_named() {
        let settings = parse(&[("largest", "64k"), ("exclusive", "yes"), ("unpack", "never")]);
        let settings = settings.unwrap();
        assert_eq!((settings.to, parse(&[("to", "/a")]).unwrap().to), (None, Some("/a".into())));
        assert_eq!((settings.largest_bytes, settings.unpack), (64 << 10, Unpack::Never));
        assert!(settings.is_exclusive && !parse(&[]).unwrap().is_exclusive);
        for (key, value) in
            [("largest", "17m"), ("largest", "0"), ("exclusive", "x"), ("unpack", "soon")]
        {
            let refused = parse(&[(key, value)]).unwrap_err();
            assert!(refused.message.starts_with(key), "{refused:?}");
        }
        assert!(parse(&[("codec", "zip")]).unwrap_err().message.contains("`codec`"));
    }
}
