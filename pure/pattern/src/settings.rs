//! A pattern as written: `name:key=value,key=value`, resolved against the row's parameters.
//!
//! Every parameter has a default in its row, so building code asks for values that are always
//! there; what cannot be read names the parameter, the text and what would be right.

use iolab_vocab::{Refusal, Seed, parse_bytes};

/// One parameter of a pattern.
#[derive(Clone, Copy, Debug)]
pub struct Parameter {
    /// How it is written.
    pub name: &'static str,
    /// Its value when nothing is said.
    pub default: &'static str,
    /// What it means, in one line.
    pub meaning: &'static str,
}

/// Splits `name:key=value,key=value` into the name and its pairs.
pub fn parse_spec(text: &str) -> Result<(String, Vec<(String, String)>), Refusal> {
    let (name, rest) = text.split_once(':').unwrap_or((text, ""));
    let pairs = rest.split(',').map(str::trim).filter(|pair| !pair.is_empty());
    let pairs = pairs
        .map(|pair| match pair.split_once('=') {
            Some((key, value)) => Ok((key.trim().to_owned(), value.trim().to_owned())),
            None => Err(Refusal::new(
                format!("`{pair}` in pattern `{text}` has no value"),
                "write key=value, separated by commas",
            )),
        })
        .collect::<Result<Vec<(String, String)>, _>>()?;
    let is_again = |at: usize| pairs[..at].iter().any(|(key, _)| *key == pairs[at].0);
    if let Some(at) = (0..pairs.len()).find(|&at| is_again(at)) {
        return Err(Refusal::new(
            format!("`{}` is given twice in pattern `{text}`", pairs[at].0),
            "leave one of them out",
        ));
    }
    Ok((name.trim().to_owned(), pairs))
}

/// The resolved parameters of one pattern, with how many ranks run it and the seed of chance.
#[derive(Clone, Debug)]
pub struct Settings {
    pattern: &'static str,
    values: Vec<(&'static str, String)>,
    /// How many ranks take part; at least 1.
    pub ranks: u64,
    /// What makes its random choices repeatable.
    pub seed: Seed,
}

impl Settings {
    /// Puts what was written over the defaults; a key nobody knows is refused.
    pub(crate) fn resolve(
        pattern: &'static str,
        parameters: &'static [Parameter],
        pairs: &[(String, String)],
        ranks: u32,
        seed: Seed,
    ) -> Result<Settings, Refusal> {
        let mut values: Vec<_> =
            parameters.iter().map(|p| (p.name, p.default.to_owned())).collect();
        for (key, value) in pairs {
            match values.iter_mut().find(|(name, _)| name == key) {
                Some(slot) => slot.1.clone_from(value),
                None => return Err(unknown_key(pattern, parameters, key)),
            }
        }
        if ranks == 0 {
            return Err(Refusal::new("0 ranks were asked for", "give at least 1"));
        }
        Ok(Settings { pattern, values, ranks: u64::from(ranks), seed })
    }

    /// The text of a parameter; every name asked for is one of the row.
    pub(crate) fn text(&self, name: &str) -> &str {
        let found = self.values.iter().find(|(key, _)| *key == name);
        &found.unwrap_or_else(|| panic!("{} has no parameter {name}", self.pattern)).1
    }

    /// A size of at least 1 byte.
    pub(crate) fn bytes(&self, name: &str) -> Result<u64, Refusal> {
        match parse_bytes(self.text(name)) {
            Ok(0) => Err(self.wrong(name, "must not be 0")),
            Ok(bytes) => Ok(bytes),
            Err(error) => Err(self.wrong(name, &error.to_string())),
        }
    }

    /// A size, or `otherwise` when the parameter is left empty.
    pub(crate) fn bytes_or(&self, name: &str, otherwise: u64) -> Result<u64, Refusal> {
        if self.text(name).is_empty() { Ok(otherwise) } else { self.bytes(name) }
    }

    /// A number of at least 1; size suffixes are understood.
    pub(crate) fn count(&self, name: &str) -> Result<u64, Refusal> {
        self.bytes(name)
    }

    /// A number that may be 0.
    pub(crate) fn number(&self, name: &str) -> Result<u64, Refusal> {
        parse_bytes(self.text(name)).map_err(|error| self.wrong(name, &error.to_string()))
    }

    /// Numbers separated by `x`, as in `64x64`.
    pub(crate) fn counts(&self, name: &str) -> Result<Vec<u64>, Refusal> {
        let parts = self.text(name).split('x');
        let numbers = parts.map(|part| parse_bytes(part).ok().filter(|&n| n > 0)).collect();
        let numbers: Option<Vec<u64>> = numbers;
        numbers.ok_or_else(|| self.wrong(name, "wants numbers above 0 separated by x, as in 8x8"))
    }

    /// One of some words, as its index.
    pub(crate) fn choice(&self, name: &str, words: &[&str]) -> Result<usize, Refusal> {
        let found = words.iter().position(|word| *word == self.text(name));
        found.ok_or_else(|| self.wrong(name, &format!("is one of {}", words.join(", "))))
    }

    /// The product of some numbers, refused when it leaves what a file offset can hold.
    pub(crate) fn volume(&self, factors: &[u64]) -> Result<u64, Refusal> {
        let product = factors.iter().try_fold(1u64, |product, &f| product.checked_mul(f));
        product.filter(|&bytes| bytes <= i64::MAX as u64).ok_or_else(|| {
            Refusal::new(
                format!("pattern {} would need more than 2^63 bytes", self.pattern),
                "make its sizes or counts smaller",
            )
        })
    }

    /// The error for a parameter whose value does not do.
    pub(crate) fn wrong(&self, name: &str, why: &str) -> Refusal {
        Refusal::new(
            format!("{name}={} of pattern {}: {why}", self.text(name), self.pattern),
            format!("see `iolab bench --draw {}` for its parameters", self.pattern),
        )
    }
}

fn unknown_key(pattern: &str, parameters: &[Parameter], key: &str) -> Refusal {
    let names: Vec<_> = parameters.iter().map(|p| p.name).collect();
    Refusal::new(
        format!("pattern {pattern} has no parameter `{key}`"),
        format!("it has {}", names.join(", ")),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_parameter_that_is_given_twice_is_refused_by_name() {
        let twice = parse_spec("strided:strip=1k,stripes=2,strip=2k").unwrap_err();
        assert!(twice.message.contains("`strip` is given twice"), "{}", twice.message);
        assert_eq!(parse_spec("strided:strip=1k, stripes=2").unwrap().1.len(), 2);
    }
}
