//! Whatever happens to a file, reading it ends in the same trace or in an error that says what.

mod traces;

use arrow_array::{ArrayRef, Int32Array, RecordBatch, StringArray};
use bytes::Bytes;
use iolab_iot::{HEADER_KEY, IotError, read};
use parquet::arrow::ArrowWriter;
use parquet::file::metadata::KeyValue;
use proptest::prelude::*;
use std::sync::Arc;
use traces::{bytes, header, trace};

#[test]
fn a_trace_cut_at_any_byte_is_told_to_be_cut() {
    let file = Bytes::from(bytes(&trace(300, 2)));
    for length in 0..file.len() {
        let error = read(file.slice(..length)).unwrap_err();
        assert!(matches!(error, IotError::Cut { .. }), "cut at {length}: {error}");
        assert!(error.hint().is_some());
    }
}

#[test]
fn a_flipped_bit_anywhere_is_noticed() {
    let file = bytes(&trace(300, 3));
    for position in 0..file.len() {
        let mut damaged = file.clone();
        damaged[position] ^= 1 << (position % 8);
        assert!(read(Bytes::from(damaged)).is_err(), "byte {position} of {}", file.len());
    }
}

#[test]
fn the_damaged_part_is_named() {
    let mut file = bytes(&trace(300, 4));
    file[100] ^= 0xff;
    assert_eq!(
        read(Bytes::from(file)).unwrap_err().to_string(),
        "row group 0 is damaged: its bytes do not match their checksum"
    );
}

#[test]
fn bytes_of_something_else_are_no_trace() {
    let error = read(Bytes::from_static(b"#!/bin/sh\necho hello\n")).unwrap_err();
    assert!(matches!(error, IotError::NotParquet));
}

/// The digits of a footer's checksum follow its key, as `docs/format/trace.md` says.
#[test]
fn a_seal_without_room_for_its_digits_is_damage() {
    for room in 0..8_u32 {
        let footer = [b"iolab.footer\x18\x08".as_slice(), &b"01234567"[..room as usize]].concat();
        let length = (footer.len() as u32).to_le_bytes();
        let file = [b"PAR1", footer.as_slice(), &length, b"PAR1"].concat();
        let error = read(Bytes::from(file)).unwrap_err();
        assert_eq!(
            error.to_string(),
            "the footer is damaged: its bytes do not match their checksum",
            "room for {room} digits"
        );
    }
}

/// A Parquet file with these columns and this header, as another tool would write it.
fn foreign(columns: Vec<(&str, ArrayRef)>, header_json: Option<String>) -> Bytes {
    let batch = RecordBatch::try_from_iter(columns).unwrap();
    let mut file = Vec::new();
    let mut writer = ArrowWriter::try_new(&mut file, batch.schema(), None).unwrap();
    writer.write(&batch).unwrap();
    if let Some(json) = header_json {
        writer.append_key_value_metadata(KeyValue::new(HEADER_KEY.to_owned(), json));
    }
    writer.close().unwrap();
    Bytes::from(file)
}

fn numbers() -> ArrayRef {
    Arc::new(Int32Array::from(vec![1]))
}

#[test]
fn a_parquet_file_without_header_is_told_what_is_missing() {
    let error = read(foreign(vec![("rank", numbers())], None)).unwrap_err();
    assert_eq!(
        error.to_string(),
        "the header of the trace: metadata key `iolab.header` is missing"
    );
}

#[test]
fn a_later_format_version_is_refused_by_number() {
    let json = r#"{"format_version": 99, "files": "changed shape"}"#.to_owned();
    let error = read(foreign(vec![("rank", numbers())], Some(json))).unwrap_err();
    let message = error.to_string();
    let known = iolab_trace::FORMAT_VERSION;
    assert_eq!(message, format!("the trace has format version 99, this iolab reads up to {known}"));
}

#[test]
fn a_missing_column_and_one_of_a_wrong_type_are_named() {
    let json = serde_json::to_string(&header()).unwrap();
    let error = read(foreign(vec![("rank", numbers())], Some(json.clone()))).unwrap_err();
    assert_eq!(error.to_string(), "column `process` should be uint32 but is not there");

    let text: ArrayRef = Arc::new(StringArray::from(vec!["one"]));
    let error = read(foreign(vec![("rank", text)], Some(json))).unwrap_err();
    assert_eq!(error.to_string(), "column `rank` should be int32 but is utf8");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]
    #[test]
    fn rubbish_between_two_magic_words_is_an_error(rubbish: Vec<u8>) {
        let file = [b"PAR1", rubbish.as_slice(), b"PAR1"].concat();
        prop_assert!(read(Bytes::from(file)).is_err());
    }
}
