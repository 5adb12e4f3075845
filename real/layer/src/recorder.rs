//! The way to the recorder in the other library, which is in every recorded process.

use crate::loader;
use crate::lock::Locked;
use iolab_trace::Function;
use iolab_trace::spool::{DOOR_NAME, DOOR_VERSION, Door, LeftOut, Record};
use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::OnceLock;

/// The recorder as a library of one layer meets it.
pub struct Recorder {
    layer: u32,
    found: OnceLock<Option<&'static Door>>,
}

impl Recorder {
    /// For calls of this layer ([`iolab_trace::spool::layer`]).
    pub const fn of(layer: u32) -> Recorder {
        Recorder { layer, found: OnceLock::new() }
    }

    /// The recorder, if calls of the layer are recorded.
    pub fn door(&self) -> Option<&'static Door> {
        *self.found.get_or_init(|| {
            let address = loader::anywhere(DOOR_NAME)?;
            // SAFETY: a function of ours in the other library, of this type in every version.
            let open: extern "C" fn(u32, u32) -> *const Door =
                unsafe { std::mem::transmute(address) };
            // SAFETY: null, or a table that lives as long as the process.
            unsafe { open(DOOR_VERSION, self.layer).as_ref() }
        })
    }

    /// Keeps a record.
    pub fn push(&self, record: Record) {
        if let Some(door) = self.door() {
            (door.push)(&record);
        }
    }

    /// Gives `text` a number, unique in the run.
    pub fn number(&self, text: &[u8]) -> u32 {
        let Some(door) = self.door() else { return 0 };
        let number = (door.number)();
        (door.name)(number, text.as_ptr(), text.len());
        number
    }

    /// Counts a call that is left out.
    pub fn leave_out(&self, reason: LeftOut) {
        if let Some(door) = self.door() {
            (door.left_out)(reason as usize);
        }
    }
}

/// Numbers of paths and of texts about objects, each given out once.
pub struct Numbers(BTreeMap<(u32, Vec<u8>), u32>);

impl Numbers {
    /// None so far.
    pub const fn none() -> Numbers {
        Numbers(BTreeMap::new())
    }

    /// The number of a text about an object of `file`, or (file 0) of a path. `state` is where the numbers are; it is not
    /// held while the recorder is asked.
    pub fn of<S: Send>(
        state: &Locked<S>,
        numbers: fn(&mut S) -> &mut Numbers,
        recorder: &Recorder,
        (file, text): (u32, Vec<u8>),
    ) -> u32 {
        let key = (file, text);
        if let Some(number) = numbers(&mut state.lock()).0.get(&key) {
            return *number;
        }
        let number = recorder.number(&key.1);
        numbers(&mut state.lock()).0.insert(key, number);
        number
    }
}

/// Times of a call, as the recorder's clock has them.
#[derive(Clone, Copy)]
pub struct Times {
    /// Before.
    pub start: u64,
    /// After.
    pub end: u64,
}

/// A record of a call whose fields mean nothing yet.
pub fn record(function: Function, times: Times) -> Record {
    Record {
        start: times.start,
        end: times.end,
        offset: -1,
        length: -1,
        argument: -1,
        fd: -1,
        function: function.0,
        ..Record::default()
    }
}

/// The absolute path a name of a file stands for.
pub fn absolute(name: &[u8]) -> Vec<u8> {
    let path = Path::new(OsStr::from_bytes(name));
    let absolute = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    absolute.as_os_str().as_bytes().to_vec()
}
