//! What the catalogues of the file system's families share: a row is known by its name.

/// `Debug` and equality of `Row` by name, and `find` over `ROWS`; for the module that has both. What is not found is
/// called a `$kind`.
macro_rules! known_by_name {
    ($kind:literal) => {
        impl std::fmt::Debug for Row {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(self.name)
            }
        }

        impl PartialEq for Row {
            fn eq(&self, other: &Row) -> bool {
                self.name == other.name
            }
        }

        impl Eq for Row {}

        /// The row of that name.
        ///
        /// # Errors
        /// That there is none, with the names there are.
        pub fn find(name: &str) -> Result<&'static Row, iolab_vocab::Refusal> {
            ROWS.iter().find(|row| row.name == name).ok_or_else(|| {
                let names: Vec<_> = ROWS.iter().map(|row| row.name).collect();
                iolab_vocab::Refusal::new(
                    format!(concat!("there is no ", $kind, " `{}`"), name),
                    format!("choose from {}", names.join(", ")),
                )
            })
        }
    };
}
pub(crate) use known_by_name;
