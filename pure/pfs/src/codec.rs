//! Little-endian fields: how messages and journal records are written and read.
