//! Flags of `open` on Linux (x86-64 and AArch64 agree on these, but for `O_DIRECT`), as stored in
//! traces; pure code has no system headers to take them from.

/// Access mode mask: 0 read, 1 write, 2 both.
pub const ACCESS_MODE: i64 = 0o3;
/// Create if missing.
pub const CREATE: i64 = 0o100;
/// Only create.
pub const EXCLUSIVE: i64 = 0o200;
/// Cut to zero length.
pub const TRUNCATE: i64 = 0o1000;
/// Every write at the end.
pub const APPEND: i64 = 0o2000;
/// `O_DSYNC`.
pub const DATA_SYNC: i64 = 0o10000;
/// `O_DIRECT` on x86-64.
pub const DIRECT: i64 = 0o40000;
/// `O_DIRECTORY` on x86-64.
pub const DIRECTORY: i64 = 0o200000;
/// Closed on exec.
pub const CLOSE_ON_EXEC: i64 = 0o2000000;
/// The part of `O_SYNC` beyond `O_DSYNC`.
pub const SYNC: i64 = 0o4000000;
/// No data access at all.
pub const PATH: i64 = 0o10000000;
/// Unnamed temporary file (includes `O_DIRECTORY`).
pub const TEMPORARY: i64 = 0o20000000;
