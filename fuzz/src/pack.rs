//! Containers of small files: as they are, and with every checksum mended, so that what is behind one is reached.

use crate::Target;
use iolab_pack::{
    Attributes, HEADER_BYTES, Header, RECORD_HEAD_BYTES, Record, Scanned, contents_of, index, scan,
};

/// The container.
pub(crate) const PACK: Target = Target {
    name: "pack",
    seeds: || {
        let header = Header { run: 1, begun_ns: 2, node: "n0".to_owned() };
        let attributes = Attributes { mode: 0o644, ..Attributes::default() };
        let data = |path, bytes| Record::Data { path, attributes, size: 9, offset: 1, bytes };
        let records = [
            Record::Directory { path: b"d", mode: 0o755, user: 0, group: 0 },
            data(b"d/a", b"bytes"),
            data(b"b", b""),
            Record::Rename { from: b"b", to: b"d/b" },
            Record::Commit,
            Record::Moving { path: b"d/b" },
            Record::Unlink { path: b"d/b" },
            Record::Settled { path: b"" },
        ];
        let mut pack = header.encode().to_vec();
        records.iter().for_each(|record| pack.extend(record.encode(3)));
        let open = pack.clone();
        let scanned = scan(&pack[..]).expect("a seed is a pack");
        let count = (scanned.record_count, scanned.is_committed);
        pack.extend(index::encode(&scanned.contents, count, open.len() as u64, 4).expect("small"));
        vec![open, pack]
    },
    bytes_max: 2_000,
    run: |bytes| {
        read(bytes);
        read(&mended(bytes));
    },
};

fn read(pack: &[u8]) {
    match scan(pack) {
        Ok(scanned) => holds(&scanned, pack),
        Err(refused) => assert!(!refused.message.is_empty() && !refused.hint.is_empty()),
    }
    if let Ok(found) = contents_of(pack, pack.len() as u64) {
        holds(&found, pack);
    }
}

/// Every piece lies in the pack and in its file, and no path leads out.
fn holds(scanned: &Scanned, pack: &[u8]) {
    assert!(scanned.sound_bytes <= pack.len() as u64);
    for (path, file) in &scanned.contents.files {
        assert!(path.split(|&it| it == b'/').all(|name| !matches!(name, b"" | b"." | b"..")));
        for piece in &file.pieces {
            assert!(piece.offset + piece.length <= file.size);
            assert!(piece.at + piece.length <= pack.len() as u64);
        }
    }
}

/// The same with the sums that its bytes ask for, as far as there are records.
fn mended(bytes: &[u8]) -> Vec<u8> {
    let mut pack = bytes.to_vec();
    if pack.len() < HEADER_BYTES {
        return pack;
    }
    let sum = crc32c::crc32c(&pack[..HEADER_BYTES - 4]);
    pack[HEADER_BYTES - 4..HEADER_BYTES].copy_from_slice(&sum.to_le_bytes());
    let mut at = HEADER_BYTES;
    while let Some(head) = pack.get(at..at + RECORD_HEAD_BYTES) {
        let length = u32::from_le_bytes([head[0], head[1], head[2], head[3]]) as usize;
        let Some(body) = pack.get(at + RECORD_HEAD_BYTES..at + RECORD_HEAD_BYTES + length) else {
            break;
        };
        let sum = crc32c::crc32c_append(crc32c::crc32c(&head[..16]), body);
        let is_index = head[4] == 8;
        pack[at + 16..at + 20].copy_from_slice(&sum.to_le_bytes());
        at += RECORD_HEAD_BYTES + length;
        if is_index && let Some(tail) = pack.get(at..at + 16) {
            let sum = crc32c::crc32c(tail);
            if let Some(place) = pack.get_mut(at + 16..at + index::TAIL_BYTES) {
                place.copy_from_slice(&sum.to_le_bytes());
            }
            at += index::TAIL_BYTES;
        }
    }
    pack
}
