//! The datatypes that a project file of HDTrace describes.
//!
//! A type is flattened when a view first needs it; most types of a trace only describe memory and
//! are never looked at.

use super::HdtraceError;
use super::xml::Element;
use crate::datatype::{DEPTH_MAX, Flat};
use std::collections::BTreeMap;

/// A datatype as the project file describes it. Other types are named by their number.
#[derive(Clone, Debug)]
enum Datatype {
    /// Of the language; its size.
    Named(u64),
    /// `count` blocks of `block` elements, starting `stride_bytes` or `stride` elements apart.
    Strided { count: u64, block: u64, stride: i64, in_bytes: bool, of: i64 },
    /// Blocks at displacements in bytes.
    Struct(Vec<(i64, u64, i64)>),
    /// Of a kind this importer does not know.
    Unknown(String),
}

/// The types of one rank.
#[derive(Clone, Debug, Default)]
pub(super) struct Datatypes {
    types: BTreeMap<i64, Datatype>,
}

impl Datatypes {
    /// Takes one element of the rank's list.
    pub(super) fn add(&mut self, file: &str, element: &Element) -> Result<(), HdtraceError> {
        let number = |name: &str| element.number(file, name);
        let count = |name: &str| {
            u64::try_from(number(name)?)
                .map_err(|_| element.wrong(file, format!("{name} is negative")))
        };
        let datatype = match element.name.as_str() {
            "NAMED" => {
                let name = element.attribute("name").unwrap_or("");
                size_of(name).map_or_else(|| Datatype::Unknown(name.to_owned()), Datatype::Named)
            }
            "CONTIGUOUS" => Datatype::Strided {
                count: 1,
                block: count("count")?,
                stride: 0,
                in_bytes: true,
                of: number("oldType")?,
            },
            kind @ ("VECTOR" | "HVECTOR") => Datatype::Strided {
                count: count("count")?,
                block: count("blocklength")?,
                stride: number("stride")?,
                in_bytes: kind == "HVECTOR",
                of: number("oldType")?,
            },
            "STRUCT" => Datatype::Struct(members(file, element)?),
            other => Datatype::Unknown(other.to_owned()),
        };
        self.types.insert(number("id")?, datatype);
        Ok(())
    }

    /// The bytes of the type of that number; the error says why there are none.
    pub(super) fn flat(&self, id: i64) -> Result<Flat, String> {
        self.flat_within(id, 0)
    }

    fn flat_within(&self, id: i64, depth: u32) -> Result<Flat, String> {
        if depth > DEPTH_MAX {
            return Err(format!("datatype {id} is made of itself"));
        }
        let flat = |of: i64| self.flat_within(of, depth + 1);
        match self.types.get(&id) {
            None => Err(format!("the project declares no datatype {id} for this rank")),
            Some(Datatype::Unknown(kind)) => Err(format!("datatype {id} is of kind `{kind}`")),
            Some(Datatype::Named(size)) => Flat::named(*size),
            Some(&Datatype::Strided { count, block, stride, in_bytes, of }) => {
                let old = flat(of)?;
                let unit = if in_bytes { 1 } else { old.extent() };
                let stride = stride.checked_mul(unit).ok_or("a stride leaves the address range")?;
                Flat::strided(&old, count, block, stride)
            }
            Some(Datatype::Struct(members)) => {
                let mut new = Flat::default();
                for &(displacement, block, of) in members {
                    let old = flat(of)?;
                    new.repeat(&old, displacement, block, old.extent())?;
                }
                Ok(new)
            }
        }
    }
}

fn members(file: &str, element: &Element) -> Result<Vec<(i64, u64, i64)>, HdtraceError> {
    let member = |member: &Element| {
        let block = member.number(file, "blocklen")?;
        let block = u64::try_from(block)
            .map_err(|_| member.wrong(file, format!("blocklen='{block}' is negative")))?;
        Ok((member.number(file, "displacement")?, block, member.number(file, "id")?))
    };
    element.named("Type").map(member).collect()
}

/// Sizes of the types of the languages, as on the machines of today; `MPI_LB` and `MPI_UB` are
/// marks without bytes.
fn size_of(name: &str) -> Option<u64> {
    Some(match name {
        "MPI_LB" | "MPI_UB" => 0,
        "MPI_BYTE" | "MPI_CHAR" | "MPI_SIGNED_CHAR" | "MPI_UNSIGNED_CHAR" | "MPI_PACKED"
        | "MPI_CHARACTER" => 1,
        "MPI_SHORT" | "MPI_UNSIGNED_SHORT" => 2,
        "MPI_INT" | "MPI_UNSIGNED" | "MPI_FLOAT" | "MPI_INTEGER" | "MPI_REAL" | "MPI_LOGICAL"
        | "MPI_WCHAR" => 4,
        "MPI_LONG"
        | "MPI_UNSIGNED_LONG"
        | "MPI_DOUBLE"
        | "MPI_LONG_LONG"
        | "MPI_LONG_LONG_INT"
        | "MPI_UNSIGNED_LONG_LONG"
        | "MPI_DOUBLE_PRECISION"
        | "MPI_COMPLEX" => 8,
        "MPI_LONG_DOUBLE" | "MPI_DOUBLE_COMPLEX" => 16,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn types(rows: &[(i64, Datatype)]) -> Datatypes {
        Datatypes { types: rows.iter().cloned().collect() }
    }

    fn vector(count: u64, block: u64, stride: i64, of: i64) -> Datatype {
        Datatype::Strided { count, block, stride, in_bytes: false, of }
    }

    #[test]
    fn a_vector_of_doubles_has_every_third_one() {
        let types = types(&[(0, Datatype::Named(8)), (1, vector(4, 1, 3, 0))]);
        assert_eq!(types.flat(1).unwrap().pieces(), [(0, 8), (24, 8), (48, 8), (72, 8)]);
    }

    #[test]
    fn a_struct_has_its_members_where_they_are_displaced() {
        let members = vec![(4, 2, 0), (20, 1, 0)];
        let types = types(&[(0, Datatype::Named(4)), (1, Datatype::Struct(members))]);
        assert_eq!(types.flat(1).unwrap().pieces(), [(4, 8), (20, 4)]);
    }

    #[test]
    fn absurd_types_are_refused() {
        let huge = vector(1 << 40, 1, 2, 0);
        let types = types(&[(0, Datatype::Named(8)), (1, huge), (2, vector(2, 1, 2, 2))]);
        assert!(types.flat(1).unwrap_err().contains("pieces"));
        assert!(types.flat(2).unwrap_err().contains("made of itself"));
        assert!(types.flat(9).unwrap_err().contains("no datatype 9"));
    }
}
