//! Numbers as people read them: their digits in groups of three.

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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digits_are_grouped_by_three() {
        let numbers = [7, 1000, 1_048_576].map(grouped);
        assert_eq!(numbers, ["7", "1,000", "1,048,576"]);
    }
}
