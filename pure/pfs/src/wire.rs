//! Frames: messages as bytes, byte exact in `docs/format/pfs-wire.md`.
