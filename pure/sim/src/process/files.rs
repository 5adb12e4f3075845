//! What processes leave to the client they are linked with: everything about files.
//!
//! A set of machines has one kind of client. Processes call it without a message, as a program calls a
//! library, and it posts what it does to the world that they share.

use super::message::Message;
use super::{Outcome, Processes};
use crate::program::{File, FileOperation};
use crate::queue::EventQueue;
use crate::world::{Content, Event, TaskId, World};
use iolab_vocab::Extent;

/// What is wrong with a command, and a way out.
pub(crate) type Wrong = (String, &'static str);

/// The clients of all processes of a run.
pub(crate) trait Files: Sized {
    /// What messages of the world mean, those between processes among them.
    type Content: Content + From<Message>;

    /// Work of its own, nested in commands.
    type Work;

    /// Files of the table.
    fn file_count(&self) -> usize;

    /// How long a file is, as far as clients know.
    fn bytes_of(&self, file: File) -> u64;

    /// Whether it can do that to these extents of a file that there is.
    fn check(&self, operation: FileOperation, file: File, list: &[Extent]) -> Result<(), Wrong>;

    /// Takes the next step of an operation on a file, for a task with its list.
    fn step<Q: EventQueue<Event>>(
        processes: &mut Processes<'_, Self>,
        world: &mut World<Q, Self::Content>,
        id: TaskId,
        file: File,
        operation: FileOperation,
        step: u32,
    ) -> Outcome<Self::Work>;

    /// Takes the next step of work of its own, which is on top of the task.
    fn work_step<Q: EventQueue<Event>>(
        processes: &mut Processes<'_, Self>,
        world: &mut World<Q, Self::Content>,
        id: TaskId,
        step: u32,
    ) -> Outcome<Self::Work>;
}
