//! What clients, servers and processes say to each other.

use super::request::{Request, RequestId};
use crate::process::{self, Caller};
use crate::program::File;
use crate::world::{Content, TaskId};

/// What a message means to its receiver.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Message {
    /// A read or write request to a server.
    Request { request: RequestId },
    /// The bytes of a write request.
    WriteData { request: RequestId },
    /// The bytes a read request asked for, to the task that waits for them.
    ReadData { request: RequestId, task: TaskId },
    /// The data of a write request may come.
    Invitation { request: RequestId },
    /// A write request is done, to the task that waits for it.
    WriteDone { task: TaskId },
    /// Somebody wants a file on the device.
    Flush { file: File },
    /// The same, with an answer to the task that waits for it.
    Sync { file: File, from: Caller },
    /// A file has another size now; with an answer to the task that waits for it.
    Resize { from: Caller },
    /// A sync or another size is done, to the task that waits for it.
    Done { task: TaskId },
    /// From process to process.
    Between(process::Message),
}

impl From<process::Message> for Message {
    fn from(message: process::Message) -> Message {
        Message::Between(message)
    }
}

impl Content for Message {
    type Payload = Request;

    /// 0 request, 1 write data, 2 read data, 3 completion, 4 flush, 5 message between processes, 6 its
    /// arrangement.
    fn number(self) -> i64 {
        match self {
            Message::Request { .. } | Message::Resize { .. } => 0,
            Message::WriteData { .. } => 1,
            Message::ReadData { .. } => 2,
            Message::WriteDone { .. } | Message::Done { .. } | Message::Invitation { .. } => 3,
            Message::Flush { .. } | Message::Sync { .. } => 4,
            Message::Between(message) => message.number(),
        }
    }
}
