//! One connection: framing and handshake, as a machine that is fed bytes.
