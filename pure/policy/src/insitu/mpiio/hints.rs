//! `hints`: advice to the MPI library about files, added to what the program says.
//!
//! A user who writes a hint here wants it, so it stands in place of the program's own value for that key. The
//! library alone knows what it makes of it: it takes the value, takes another one, or does not know the key.

use super::super::parameter::Parameters;
use iolab_vocab::Refusal;

/// Bytes of a name and of a value that some MPI library takes (`MPI_MAX_INFO_KEY`, `MPI_MAX_INFO_VAL` of
/// MPICH 4; others take less, which only a driver knows).
const KEY_BYTES: usize = 254;
const VALUE_BYTES: usize = 1023;

/// Hints in the order they were written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hints {
    given: Vec<(String, String)>,
}

impl Hints {
    /// Reads `key=value,…`. A value in braces is what stands in them, so that it may have commas.
    pub fn parse(parameters: &Parameters) -> Result<Hints, Refusal> {
        if parameters.is_empty() {
            return Err(Refusal {
                message: "no hint is given".to_owned(),
                hint: "for example hints:romio_cb_write=enable".to_owned(),
            });
        }
        let given = parameters.iter().map(|(key, value)| {
            let value = within_braces(value);
            check("the name of a hint", key, KEY_BYTES)?;
            check(&format!("the value of `{key}`"), value, VALUE_BYTES)?;
            Ok((key.clone(), value.to_owned()))
        });
        Ok(Hints { given: given.collect::<Result<_, _>>()? })
    }

    /// Names and values.
    pub fn given(&self) -> &[(String, String)] {
        &self.given
    }
}

fn within_braces(value: &str) -> &str {
    value.strip_prefix('{').and_then(|rest| rest.strip_suffix('}')).unwrap_or(value)
}

/// MPI takes texts of some length, without blanks around them: it strips those, silently.
fn check(what: &str, text: &str, bytes_max: usize) -> Result<(), Refusal> {
    let problem = match text {
        "" => "is empty".to_owned(),
        _ if text.trim() != text => format!("has blanks at an end: `{text}`"),
        _ if text.contains(char::is_control) => "has control characters".to_owned(),
        _ if text.len() > bytes_max => {
            format!("has {} bytes, and MPI libraries take at most {bytes_max}", text.len())
        }
        _ => return Ok(()),
    };
    Err(Refusal {
        message: format!("{what} {problem}"),
        hint: "for example hints:romio_cb_write=enable".to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::insitu::StrategySpec;
    use crate::insitu::mpiio::MpiIoStage;

    fn given(text: &str) -> Result<Vec<(String, String)>, Refusal> {
        match StrategySpec::parse(text)?.mpiio() {
            Some(MpiIoStage::Hints(hints)) => Ok(hints.given().to_vec()),
            other => panic!("{text}: {other:?}"),
        }
    }

    #[test]
    fn values_may_have_colons_and_equals_signs_and_in_braces_commas() {
        let text = "hints:cb_config_list={*:1,node-b:2},striping=a:b=c,paths={*.a,*.b},cb_nodes=2";
        let wanted = [("cb_config_list", "*:1,node-b:2"), ("striping", "a:b=c"), ("cb_nodes", "2")];
        let wanted = wanted.map(|(key, value)| (key.to_owned(), value.to_owned()));
        assert_eq!(given(text).unwrap(), wanted);
        let spec = StrategySpec::parse(text).unwrap();
        assert_eq!(spec.selection.paths, ["{*.a,*.b}"]);
        let travelled = StrategySpec::parse_all(&StrategySpec::join(std::slice::from_ref(&spec)));
        assert_eq!(travelled.unwrap(), [spec]);
    }

    #[test]
    fn what_is_no_hint_is_refused_and_named() {
        let long = format!("hints:a={}", "x".repeat(2000));
        for (text, offender) in [
            ("hints", "no hint is given"),
            ("hints:paths=*.a", "no hint is given"),
            ("hints:cb_nodes", "`cb_nodes`"),
            ("hints:cb_nodes=", "cb_nodes"),
            ("hints:cb_nodes={}", "cb_nodes"),
            ("hints:=2", "name of a hint"),
            ("hints:cb_nodes=1,cb_nodes=2", "given twice"),
            ("hints:cb_nodes= 2", "blanks"),
            ("hints:a=b\nc", "control"),
            (&long, "2000 bytes"),
        ] {
            let refused = given(text).unwrap_err();
            assert!(refused.message.contains(offender), "{text}: {refused}");
        }
    }
}
