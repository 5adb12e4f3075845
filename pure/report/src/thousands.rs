//! Numbers as people read them: their digits in groups of three, and what they count in its number.

/// `1,048,576`.
pub(crate) fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::with_capacity(digits.len() * 4 / 3);
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// `1 file`, `2 files`.
pub(crate) fn of_files(number: u64) -> String {
    counted(number, "file")
}

/// `1 call`, `2 calls`.
pub(crate) fn of_calls(number: u64) -> String {
    counted(number, "call")
}

/// `1 process`, `2 processes`.
pub(crate) fn of_processes(number: u64) -> String {
    if number == 1 { "1 process".to_owned() } else { format!("{} processes", grouped(number)) }
}

/// `1 round`, `2 rounds`.
pub(crate) fn of_rounds(number: usize) -> String {
    counted(number as u64, "round")
}

fn counted(number: u64, noun: &str) -> String {
    let ending = if number == 1 { "" } else { "s" };
    format!("{} {noun}{ending}", grouped(number))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digits_are_grouped_by_three() {
        let numbers = [7, 1000, 1_048_576].map(grouped);
        assert_eq!(numbers, ["7", "1,000", "1,048,576"]);
    }

    #[test]
    fn one_file_is_no_files() {
        assert_eq!([0, 1, 2, 1000].map(of_files), ["0 files", "1 file", "2 files", "1,000 files"]);
        assert_eq!([1, 2].map(of_calls), ["1 call", "2 calls"]);
        assert_eq!([1, 2000].map(of_processes), ["1 process", "2,000 processes"]);
        assert_eq!([1, 2].map(of_rounds), ["1 round", "2 rounds"]);
    }
}
