//! Records of the metadata manager's journal.
