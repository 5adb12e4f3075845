//! Numbers in result documents come back as the very numbers that were written.

use iolab_report::bench::Measurement;

#[test]
fn a_number_that_was_written_reads_back_to_the_last_bit() {
    // The short ways to parse decimals are one unit of the last place off for some of these.
    for value in [0.090_900_010_734_381_93, 0.1 + 0.2, 1e-300, 5e-324, 123_456_789.123_456_79] {
        let written = Measurement { mib_per_second: value, ..Measurement::default() };
        let text = serde_json::to_string(&written).unwrap();
        let read: Measurement = serde_json::from_str(&text).unwrap();
        assert_eq!(read.mib_per_second.to_bits(), value.to_bits(), "{value:e}");
    }
}
