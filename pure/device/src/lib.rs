//! Models of media, links and hosts.
