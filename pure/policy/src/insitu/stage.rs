//! `stage`: files are written to a fast place and moved home behind the program's back.
//!
//! The real file keeps its name, the fast place has its bytes: who opens the file within the run gets the
//! copy, and once nobody has it open any more it is moved. So nothing has to be done about renames, links,
//! modes and listings; they are the real file's. What the program sees of a checkpoint is the time the fast
//! place takes (a burst buffer: Liu et al. 2012, "On the role of burst buffers in leadership-class storage
//! systems").
//!
//! It decides nothing call by call, so it is no machine on calls: which files begin there is asked when one is
//! opened ([`Stage::begins`]), and what becomes of each is [`Residence`]. `real/host/src/stage` carries it
//! out, `real/intercept/src/fast_place` asks.

mod residence;

pub use residence::{Event, Residence, Step};

use super::parameter::{Parameters, size, unknown};
use iolab_vocab::Refusal;

/// Room that stays free in the fast place unless it is said otherwise.
const SPARE_BYTES: u64 = 64 << 20;

/// What was asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stage {
    /// The fast place: a directory.
    pub directory: String,
    /// Files begin at home while less than this is free in the fast place.
    pub spare_bytes: u64,
    /// Files are moved home at no more than that; without one, as fast as it goes.
    pub bytes_per_second: Option<u64>,
}

/// What is known of a file that was just opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Opened {
    /// It is a regular file.
    pub is_regular: bool,
    /// It was opened to be written.
    pub is_writable: bool,
    /// How long it is, in bytes.
    pub bytes: u64,
    /// How many names it has.
    pub links: u64,
    /// Nobody else has it open.
    pub is_alone: bool,
    /// It lies on the fast place's own file system.
    pub is_fast_already: bool,
    /// What is free in the fast place, in bytes.
    pub free_bytes: u64,
}

/// Why a file that a strategy chooses is not staged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Passes {
    /// It is none that is written, or has bytes already, or no name.
    NotNew,
    /// Somebody else has it open, or nobody can tell.
    Shared,
    /// It lies in the fast place's file system.
    FastAlready,
    /// There is little room in the fast place.
    NoRoom,
}

impl Passes {
    /// What a person is told of it, where it is worth a line.
    pub fn words(self) -> Option<&'static str> {
        match self {
            Passes::NotNew => None,
            Passes::Shared => Some("others have it open, or its file system cannot tell"),
            Passes::FastAlready => Some("it lies on the file system of the fast place"),
            Passes::NoRoom => Some("there is little room in the fast place"),
        }
    }
}

impl Stage {
    /// Reads `to=DIR,spare=64m,rate=100m`.
    pub fn parse(parameters: &Parameters) -> Result<Stage, Refusal> {
        let mut stage =
            Stage { directory: String::new(), spare_bytes: SPARE_BYTES, bytes_per_second: None };
        for (key, value) in parameters {
            match key.as_str() {
                "to" => stage.directory = value.clone(),
                "spare" => stage.spare_bytes = size(key, value)?,
                "rate" => {
                    let rate = size(key, value.strip_suffix("/s").unwrap_or(value))?;
                    stage.bytes_per_second = Some(rate);
                }
                _ => return Err(unknown(key, "to, spare, rate, paths, exclude")),
            }
        }
        if stage.directory.is_empty() {
            return Err(Refusal {
                message: "it does not say where the fast place is".to_owned(),
                hint: "for example to=/local/scratch".to_owned(),
            });
        }
        if stage.bytes_per_second == Some(0) {
            return Err(Refusal {
                message: "rate: at 0 bytes per second no file ever comes home".to_owned(),
                hint: "for example rate=100m; leave it out for one without limit".to_owned(),
            });
        }
        Ok(stage)
    }

    /// Whether a chosen file that was just opened begins in the fast place.
    pub fn begins(&self, opened: &Opened) -> Result<(), Passes> {
        let is_new = opened.is_regular && opened.is_writable && opened.bytes == 0;
        if !is_new || opened.links == 0 {
            return Err(Passes::NotNew);
        }
        if opened.is_fast_already {
            return Err(Passes::FastAlready);
        }
        if !opened.is_alone {
            return Err(Passes::Shared);
        }
        if opened.free_bytes < self.spare_bytes {
            return Err(Passes::NoRoom);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &[(&str, &str)]) -> Result<Stage, Refusal> {
        let owned = |&(key, value): &(&str, &str)| (key.to_owned(), value.to_owned());
        Stage::parse(&text.iter().map(owned).collect::<Vec<_>>())
    }

    #[test]
    fn parameters_are_read_and_the_place_must_be_among_them() {
        let stage = parse(&[("to", "/fast"), ("spare", "1m"), ("rate", "100m/s")]).unwrap();
        assert_eq!((stage.spare_bytes, stage.bytes_per_second), (1 << 20, Some(100 << 20)));
        assert!(parse(&[]).unwrap_err().message.contains("where the fast place is"));
        assert!(parse(&[("to", "/fast"), ("rate", "0")]).unwrap_err().message.contains("rate"));
        assert!(parse(&[("into", "/fast")]).unwrap_err().message.contains("`into`"));
    }

    #[test]
    fn only_a_new_file_that_nobody_else_has_begins_in_the_fast_place() {
        let stage = parse(&[("to", "/fast"), ("spare", "100")]).unwrap();
        let new = Opened {
            is_regular: true,
            is_writable: true,
            bytes: 0,
            links: 1,
            is_alone: true,
            is_fast_already: false,
            free_bytes: 100,
        };
        assert_eq!(stage.begins(&new), Ok(()));
        for (opened, passes) in [
            (Opened { is_regular: false, ..new }, Passes::NotNew),
            (Opened { is_writable: false, ..new }, Passes::NotNew),
            (Opened { bytes: 1, ..new }, Passes::NotNew),
            (Opened { links: 0, ..new }, Passes::NotNew),
            (Opened { is_alone: false, ..new }, Passes::Shared),
            (Opened { is_fast_already: true, ..new }, Passes::FastAlready),
            (Opened { free_bytes: 99, ..new }, Passes::NoRoom),
        ] {
            assert_eq!(stage.begins(&opened), Err(passes), "{opened:?}");
        }
    }
}
