//! The journal of names of a parallel file system, whatever its device has made of it.

use crate::Target;
use iolab_pfs::inventory::Inventory;
use iolab_pfs::journal::{Journal, SEGMENT_HEADER_BYTES, SegmentHeader};
use iolab_pfs::metadata::{Action, Event, Metadata, Settings};
use iolab_pfs::{Message, OpenWish, Peer, PeerEvent, Request, SessionId};
use iolab_policy::Machine;
use iolab_vocab::Nanos;

/// Sums are made here, because mutation does not find right ones: of the header, and of each record that has a
/// length which fits. The first byte of the input says whether: 0 leaves all as it is.
pub(crate) const JOURNAL: Target = Target {
    name: "pfs-journal",
    seeds,
    bytes_max: 4096,
    run: |bytes| {
        let Some((&is_sealed, journal)) = bytes.split_first() else { return };
        let mut journal = journal.to_vec();
        if is_sealed != 0 {
            seal(&mut journal);
        }
        let found = Journal::read(&journal);
        let salvaged = Inventory::of_journal(&journal);
        let Ok(found) = found else { return };
        let settings = Settings { journal_bytes: 1, ..Settings::usual(2) };
        let Ok(mut machine) = Metadata::recover(settings, found.all()) else { return };
        let inventory = salvaged.expect("what a manager reads, a check reads");
        // What it begins anew with makes the same names.
        let mut actions = Vec::new();
        machine.step(Nanos(1), Event::Woke, &mut actions);
        for action in actions {
            if let Action::Checkpoint { first, records } = action {
                let checkpoint_bytes = records.len() as u64;
                let header = SegmentHeader { first, checkpoint_bytes, ..found.header };
                let anew = [header.encode(), records].concat();
                let again = Inventory::of_journal(&anew).expect("it was just written");
                assert_eq!(
                    (again.unused, again.leaving),
                    (inventory.unused, inventory.leaving.clone())
                );
            }
        }
    },
};

/// A journal of some names, and the one that begins anew after it.
fn seeds() -> Vec<Vec<u8>> {
    let settings = Settings { journal_bytes: 600, ..Settings::usual(2) };
    let mut machine = Metadata::recover(settings, []).expect("an empty journal");
    let (peer, session) = (Peer(1), SessionId(7));
    let header = |first, checkpoint_bytes| {
        SegmentHeader { instance: 1, incarnation: 1, first, checkpoint_bytes }.encode()
    };
    let (mut journal, mut anew) = (header(1, 0), Vec::new());
    let opens = |path: &[u8]| {
        let wish = OpenWish { creates: true, mode: 0o644, ..OpenWish::TO_READ };
        Message::Open { path: path.to_vec(), wish }
    };
    let asked = [
        Message::MakeDirectory { path: b"/d".to_vec(), mode: 0o755 },
        opens(b"/d/a"),
        opens(b"/b"),
        Message::Rename { from: b"/b".to_vec(), to: b"/d/c".to_vec() },
        opens(b"/e"),
    ];
    let mut events = vec![PeerEvent::Up { peer, session }];
    events.extend((1..).zip(asked).map(|(number, message)| PeerEvent::Asked {
        peer,
        request: Request(number),
        message,
        payload: None,
    }));
    for event in events {
        let mut actions = Vec::new();
        machine.step(Nanos(1), Event::Peer(event), &mut actions);
        for action in actions {
            match action {
                Action::Append { record, .. } => journal.extend(record),
                Action::Checkpoint { first, records } => {
                    anew = [header(first, records.len() as u64), records].concat();
                }
                _ => {}
            }
        }
    }
    [journal, anew]
        .into_iter()
        .flat_map(|it| [[&[0][..], &it].concat(), [&[1][..], &it].concat()])
        .collect()
}

/// Gives the header and all records right sums.
fn seal(journal: &mut [u8]) {
    let end = SEGMENT_HEADER_BYTES - 4;
    let Some(header) = journal.get_mut(..SEGMENT_HEADER_BYTES) else { return };
    let sum = crc32c::crc32c(&header[..end]);
    header[end..].copy_from_slice(&sum.to_le_bytes());
    let mut rest = &mut journal[SEGMENT_HEADER_BYTES..];
    while let Some(&length) = rest.first_chunk::<4>() {
        let length = u32::from_le_bytes(length) as usize;
        let Some(record) = rest.get_mut(..length).filter(|_| length >= 8) else { return };
        record[4..8].fill(0);
        let sum = crc32c::crc32c(record);
        record[4..8].copy_from_slice(&sum.to_le_bytes());
        rest = std::mem::take(&mut rest).get_mut(length.next_multiple_of(8)..).unwrap_or_default();
    }
}
