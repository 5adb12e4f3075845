//! The discipline of replacements.
//!
//! **The driver** says of a block that it came before anything else, and not twice before it has left or gone;
//! it holds those that are free, and frees those that are held. **The machine** answers nothing but that there is no
//! room, and that with one block that may leave; with nothing only if none may. So whenever there can be room
//! there is.

use super::{Action, Block, Event, Replacement};
use crate::machine::{Checked, Laws};
use iolab_vocab::Nanos;
use std::collections::BTreeMap;

/// One replacement, as far as its discipline goes: which blocks are there, and whether they must stay.
#[derive(Debug, Default)]
pub struct ReplacementLaws {
    held: BTreeMap<Block, bool>,
    held_count: usize,
}

/// Holds a replacement to its discipline.
pub fn checked(replacement: Box<dyn Replacement>) -> Box<dyn Replacement> {
    Box::new(Checked::new(replacement, ReplacementLaws::default()))
}

impl ReplacementLaws {
    fn hold(&mut self, block: Block, held: bool) -> Result<(), String> {
        match self.held.get_mut(&block) {
            Some(is_held) if *is_held != held => {
                *is_held = held;
                self.held_count = self.held_count + usize::from(held) - usize::from(!held);
                Ok(())
            }
            Some(_) => Err(format!("the driver says twice whether {block:?} must stay")),
            None => Err(unknown(block)),
        }
    }
}

fn unknown(block: Block) -> String {
    format!("the driver speaks of {block:?}, which is not there")
}

impl Laws for ReplacementLaws {
    type Event = Event;
    type Action = Action;

    fn check(&mut self, _: Nanos, event: &Event, actions: &[Action]) -> Result<(), String> {
        if !actions.is_empty() && *event != Event::Full {
            return Err("the machine answers what is no question".to_owned());
        }
        match (*event, actions) {
            (Event::Came { block, .. }, _) => match self.held.insert(block, false) {
                None => Ok(()),
                Some(_) => Err(format!("{block:?} comes twice")),
            },
            (Event::Used { block }, _) => match self.held.contains_key(&block) {
                true => Ok(()),
                false => Err(unknown(block)),
            },
            (Event::Held { block }, _) => self.hold(block, true),
            (Event::Freed { block }, _) => self.hold(block, false),
            (Event::Gone { block }, _) => match self.held.remove(&block) {
                Some(held) => {
                    self.held_count -= usize::from(held);
                    Ok(())
                }
                None => Err(unknown(block)),
            },
            (Event::Full, []) if self.held_count == self.held.len() => Ok(()),
            (Event::Full, &[Action::Leave { block }]) => match self.held.get(&block) {
                Some(false) => {
                    self.held.remove(&block);
                    Ok(())
                }
                Some(true) => Err(format!("{block:?} leaves, which must stay")),
                None => Err(format!("{block:?} leaves, which is not there")),
            },
            (Event::Full, []) => Err("the machine makes no room, though it could".to_owned()),
            (Event::Full, _) => Err("the machine lets several blocks leave at once".to_owned()),
        }
    }
}
