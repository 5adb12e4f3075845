//! What can be wrong with a trace file, each with its offender and, where there is one, a way out.

use std::fmt;

/// Why a trace could not be written or read.
#[derive(Debug)]
pub enum IotError {
    /// The first bytes are not those of a Parquet file.
    NotParquet,
    /// The file ends before its footer: it was cut, or is still being written.
    Cut {
        /// Bytes that are there.
        length: u64,
    },
    /// A part of the file does not have the checksum it was written with.
    Damaged {
        /// Which part: `row group 3`, `the footer`.
        part: String,
    },
    /// Written by a later version, whose columns may mean something else.
    NewerVersion {
        /// Version of the file.
        found: u64,
        /// Latest version this reader knows.
        known: u32,
    },
    /// The header is missing or is not what the format says.
    Header(String),
    /// A column is missing or has another type or an empty cell.
    Column {
        /// Name of the column.
        name: &'static str,
        /// What the format says.
        wanted: &'static str,
        /// What is there.
        found: String,
    },
    /// A cell of one row has a value that cannot be.
    Row {
        /// Position of the row in the file, or among the events handed to the writer.
        row: u64,
        /// What is wrong with it.
        problem: String,
    },
    /// The Parquet library could not make sense of the bytes.
    Parquet(String),
    /// The bytes could not be written or read at all.
    Io(std::io::Error),
}

impl IotError {
    /// A way out, where one is known.
    pub fn hint(&self) -> Option<&'static str> {
        Some(match self {
            IotError::NotParquet => "an .iot trace is written by `iolab record` or `iolab import`",
            IotError::Cut { .. } => {
                "if the recording was interrupted, `iolab recover` builds the trace from its spools"
            }
            IotError::Damaged { .. } => "copy or record it again",
            IotError::NewerVersion { .. } => "read it with the iolab that wrote it, or a later one",
            IotError::Header(_) | IotError::Column { .. } | IotError::Row { .. } => {
                "docs/format/trace.md says what a trace file holds"
            }
            IotError::Parquet(_) | IotError::Io(_) => return None,
        })
    }
}

impl fmt::Display for IotError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            IotError::NotParquet => f.write_str("not a trace: it does not begin with `PAR1`"),
            IotError::Cut { length } => {
                write!(f, "the trace is cut after {length} bytes: its footer is missing")
            }
            IotError::Damaged { part } => {
                write!(f, "{part} is damaged: its bytes do not match their checksum")
            }
            IotError::NewerVersion { found, known } => {
                write!(f, "the trace has format version {found}, this iolab reads up to {known}")
            }
            IotError::Header(problem) => write!(f, "the header of the trace: {problem}"),
            IotError::Column { name, wanted, found } => {
                write!(f, "column `{name}` should be {wanted} but is {found}")
            }
            IotError::Row { row, problem } => write!(f, "row {row}: {problem}"),
            IotError::Parquet(problem) => write!(f, "the trace is not readable: {problem}"),
            IotError::Io(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for IotError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            IotError::Io(error) => Some(error),
            _ => None,
        }
    }
}

impl From<std::io::Error> for IotError {
    fn from(error: std::io::Error) -> IotError {
        IotError::Io(error)
    }
}

impl From<parquet::errors::ParquetError> for IotError {
    fn from(error: parquet::errors::ParquetError) -> IotError {
        use parquet::errors::ParquetError;
        // A full disk must be told as what it is, not as a problem of the format.
        match error {
            ParquetError::External(source) => match source.downcast::<std::io::Error>() {
                Ok(io) => IotError::Io(*io),
                Err(other) => IotError::Parquet(other.to_string()),
            },
            other => IotError::Parquet(other.to_string()),
        }
    }
}

impl From<arrow_schema::ArrowError> for IotError {
    fn from(error: arrow_schema::ArrowError) -> IotError {
        match error {
            arrow_schema::ArrowError::IoError(_, source) => IotError::Io(source),
            other => IotError::Parquet(other.to_string()),
        }
    }
}
