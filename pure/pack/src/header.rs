//! What a pack begins with.

use iolab_vocab::Refusal;

/// Bytes in front of the records.
pub const HEADER_BYTES: usize = 64;
/// The longest name of a node that is kept; longer ones are cut.
pub const NODE_BYTES: usize = 28;
const MAGIC: &[u8; 8] = b"iolabpak";
/// The version that is written here.
const VERSION: u16 = 1;

/// Which run wrote the pack, and where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Header {
    /// The run, by a number that no other one has.
    pub run: u64,
    /// When it was begun, in nanoseconds since 1970 (UTC).
    pub begun_ns: u64,
    /// The node's name.
    pub node: String,
}

impl Header {
    /// Its bytes.
    pub fn encode(&self) -> [u8; HEADER_BYTES] {
        let mut out = [0; HEADER_BYTES];
        out[..8].copy_from_slice(MAGIC);
        out[8..10].copy_from_slice(&VERSION.to_le_bytes());
        out[16..24].copy_from_slice(&self.run.to_le_bytes());
        out[24..32].copy_from_slice(&self.begun_ns.to_le_bytes());
        let node = self.node.as_bytes();
        let length = node.len().min(NODE_BYTES);
        out[32..32 + length].copy_from_slice(&node[..length]);
        let sum = crc32c::crc32c(&out[..HEADER_BYTES - 4]);
        out[HEADER_BYTES - 4..].copy_from_slice(&sum.to_le_bytes());
        out
    }

    /// Reads it from the beginning of a file.
    ///
    /// # Errors
    /// When the file is no pack, of a later version, or damaged there.
    pub fn decode(bytes: &[u8]) -> Result<Header, Refusal> {
        let wrong = |what: &str, hint: &str| Err(Refusal::new(what, hint));
        let Some(bytes) = bytes.get(..HEADER_BYTES).filter(|it| it.starts_with(MAGIC)) else {
            let what = "it is no pack of iolab's, or cut within its first 64 bytes";
            return wrong(what, "name a file iolab-RUN-NODE.pack");
        };
        let field = |at: usize| {
            let mut field = [0; 8];
            field.copy_from_slice(&bytes[at..at + 8]);
            u64::from_le_bytes(field)
        };
        let version = u16::from_le_bytes([bytes[8], bytes[9]]);
        if version != VERSION {
            let what = format!("it is a pack of version {version}; this iolab reads {VERSION}");
            return Err(Refusal::new(what, "use the iolab that wrote it, or a newer one"));
        }
        let (fields, sum) = bytes.split_at(HEADER_BYTES - 4);
        if crc32c::crc32c(fields).to_le_bytes() != sum {
            return wrong("its first 64 bytes are damaged", "restore the file from a copy");
        }
        let node = bytes[32..32 + NODE_BYTES].split(|&it| it == 0).next().unwrap_or_default();
        let node = String::from_utf8_lossy(node).into_owned();
        Ok(Header { run: field(16), begun_ns: field(24), node })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_header_reads_back_and_no_other_byte_passes_for_it() {
        let header = Header { run: 7, begun_ns: 9, node: "n0".to_owned() };
        let bytes = header.encode();
        assert_eq!(Header::decode(&bytes), Ok(header));
        for at in 0..HEADER_BYTES {
            let mut damaged = bytes;
            damaged[at] ^= 4;
            assert!(Header::decode(&damaged).is_err(), "byte {at}");
            assert!(Header::decode(&bytes[..at]).is_err(), "cut at {at}");
        }
    }

    #[test]
    fn a_long_name_of_a_node_is_cut() {
        let header = Header { run: 7, begun_ns: 9, node: "n".repeat(40) };
        assert_eq!(Header::decode(&header.encode()).unwrap().node, "n".repeat(NODE_BYTES));
    }
}
