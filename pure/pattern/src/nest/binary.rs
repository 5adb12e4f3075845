//! The binary form of a nest, byte exact in `docs/format/nest.md`.
//!
//! Little endian: displacement, extent, then the tree, root first; 9 bytes per run, 17 per Repeat,
//! 5 + 8n per Sequence of n parts.
//!
//! Promises: `decode` gives a nest or an error, whatever the bytes are, and `decode(encode(nest))`
//! is the nest. Trees that are well formed but not canonical are taken and made canonical, so that
//! a later version may fold better than its peer.
//!
//! Costs: O(nodes) each. Memory grows with the bytes that were read (less than ten times as much,
//! while folding), never with what they claim; recursion ends at [`NEST_DEPTH`].

use super::node::{Form, NEST_DEPTH, NEST_NODES, Node};
use super::{Nest, fold::Fold};
use iolab_vocab::Refusal;

const BYTES: u8 = 1;
const REPEAT: u8 = 2;
const SEQUENCE: u8 = 3;
/// The least that a part of a sequence takes: its offset and a run.
const PART_BYTES: usize = 8 + 9;

impl Nest {
    /// How many bytes [`Nest::encode`] appends.
    pub fn encoded_bytes(&self) -> u64 {
        16 + self.root.encoded_bytes()
    }

    /// Appends the binary form.
    pub fn encode(&self, out: &mut Vec<u8>) {
        out.extend(self.displacement.to_le_bytes());
        out.extend(self.extent.to_le_bytes());
        self.root.encode(out);
    }

    /// Reads a nest that takes all of `bytes`.
    pub fn decode(bytes: &[u8]) -> Result<Nest, Refusal> {
        let (nest, rest) = Nest::decode_first(bytes)?;
        match rest.len() {
            0 => Ok(nest),
            more => Err(mangled(bytes.len() - more, &format!("{more} bytes follow the nest"))),
        }
    }

    /// Reads the nest at the start of `bytes`: the nest, and the bytes behind it.
    pub fn decode_first(bytes: &[u8]) -> Result<(Nest, &[u8]), Refusal> {
        let mut reader = Reader { bytes, at: 0, nodes: 0 };
        let displacement = reader.number()?;
        let extent = reader.number()?;
        let (lowest, root) = reader.node(1)?;
        let place = displacement.checked_add(lowest);
        let place = place.ok_or_else(|| mangled(0, "the displacement is too large"))?;
        let nest = Nest::new(place, extent, root)?;
        Ok((nest, &bytes[reader.at..]))
    }
}

impl Node {
    fn encoded_bytes(&self) -> u64 {
        match &self.0 {
            Form::Bytes(_) => 9,
            Form::Repeat(r) => 17 + r.body.encoded_bytes(),
            Form::Sequence(sequence) => {
                let parts = sequence.parts.iter().map(|part| 8 + part.node.encoded_bytes());
                5 + parts.sum::<u64>()
            }
        }
    }

    fn encode(&self, out: &mut Vec<u8>) {
        match &self.0 {
            Form::Bytes(length) => {
                out.push(BYTES);
                out.extend(length.to_le_bytes());
            }
            Form::Repeat(r) => {
                out.push(REPEAT);
                out.extend(r.count.to_le_bytes());
                out.extend(r.stride.to_le_bytes());
                r.body.encode(out);
            }
            Form::Sequence(sequence) => {
                out.push(SEQUENCE);
                // A nest has at most 2^20 nodes.
                out.extend((sequence.parts.len() as u32).to_le_bytes());
                for part in &sequence.parts {
                    out.extend(part.offset.to_le_bytes());
                    part.node.encode(out);
                }
            }
        }
    }
}

fn mangled(at: usize, why: &str) -> Refusal {
    Refusal::new(
        format!("byte {at} of an encoded nest: {why}"),
        "send it again; docs/format/nest.md has the form",
    )
}

struct Reader<'a> {
    bytes: &'a [u8],
    at: usize,
    nodes: u64,
}

impl Reader<'_> {
    fn array<const LENGTH: usize>(&mut self) -> Result<[u8; LENGTH], Refusal> {
        match self.bytes[self.at..].first_chunk() {
            Some(array) => {
                self.at += LENGTH;
                Ok(*array)
            }
            None => Err(mangled(self.bytes.len(), "it ends too early")),
        }
    }

    fn number(&mut self) -> Result<u64, Refusal> {
        self.array().map(u64::from_le_bytes)
    }

    /// The tree from here on, and where in it the lowest byte was: 0 in the canonical form.
    fn node(&mut self, depth: usize) -> Result<(u64, Node), Refusal> {
        let mut fold = Fold::new();
        self.part(0, depth, &mut fold)?;
        fold.finish()
    }

    /// Pushes the tree from here on. Sequences in each other push the parts of all on one stack, so
    /// that nobody makes a reader fold the same parts once per level.
    fn part(&mut self, base: u64, depth: usize, fold: &mut Fold) -> Result<(), Refusal> {
        let start = self.at;
        self.nodes += 1;
        if depth > NEST_DEPTH || self.nodes > NEST_NODES {
            let why = format!("deeper than {NEST_DEPTH} or more than {NEST_NODES} nodes");
            return Err(mangled(start, &why));
        }
        let place = |offset| {
            let place = base.checked_add(offset);
            place.ok_or_else(|| mangled(start, "an offset is too large"))
        };
        match self.array()? {
            [BYTES] => fold.push(base, &Node::bytes(self.number()?)?),
            [REPEAT] => match (self.number()?, self.number()?) {
                (1, _) => self.part(base, depth + 1, fold),
                (count, stride) => {
                    let (lowest, body) = self.node(depth + 1)?;
                    fold.push(place(lowest)?, &body.repeated(count, stride)?)
                }
            },
            [SEQUENCE] => {
                let count = u32::from_le_bytes(self.array()?) as usize;
                if count > (self.bytes.len() - self.at) / PART_BYTES {
                    let why = format!("{count} parts are more than the bytes hold");
                    return Err(mangled(start, &why));
                }
                (0..count).try_for_each(|_| {
                    let offset = self.number()?;
                    self.part(place(offset)?, depth + 1, fold)
                })
            }
            [tag] => Err(mangled(start, &format!("{tag} is no kind of node"))),
        }
    }
}
