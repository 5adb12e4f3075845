//! Models of media, links and hosts: a request and the present in, a cost or completion out.

mod cost_table;
pub mod local;

pub use cost_table::{CostTable, CostTableError};
