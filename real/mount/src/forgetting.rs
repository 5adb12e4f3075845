//! The kernel remembers files for as long as it has room, and each takes a descriptor here. So it is asked to
//! forget some before they run out.

use crate::open::Hosted;
use fuser::{INodeNo, Notifier};
use std::sync::mpsc::{Receiver, sync_channel};
use std::sync::{Arc, Weak};
use std::thread;

/// Has the kernel forget files that nobody uses, from now on to the end of the mount. In a thread of its own: the
/// kernel waits for the directory's lock, which a request that is being answered may hold.
pub(crate) fn begin(hosted: &Arc<Hosted>, notifier: Notifier) {
    let (crowded, told) = sync_channel(1);
    hosted.tree.tell(crowded);
    let hosted = Arc::downgrade(hosted);
    // Without the thread descriptors may run out, as the system says then.
    let _ = thread::Builder::new()
        .name("forgetting".to_owned())
        .spawn(move || forget(&hosted, &notifier, &told));
}

fn forget(hosted: &Weak<Hosted>, notifier: &Notifier, told: &Receiver<()>) {
    // Whoever tells goes with the mount.
    while told.recv().is_ok() {
        let Some(forgettable) = hosted.upgrade().map(|hosted| hosted.tree.forgettable()) else {
            return;
        };
        for it in forgettable {
            // It may have forgotten the name by itself; another one will do as well.
            let _ = notifier.inval_entry(INodeNo(it.parent), &it.name);
        }
    }
}
