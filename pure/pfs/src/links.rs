//! Connections to those who are asked: what is under way on each, sent again after a loss.
