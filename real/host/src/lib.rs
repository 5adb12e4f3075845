//! What meets the operating system.
