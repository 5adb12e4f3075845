//! One line of strace's output, taken apart: who, when, which call with which arguments.

use super::shared::TIME_END_NS;

/// A finished call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Call<'a> {
    pub(super) name: &'a str,
    pub(super) arguments: Vec<&'a str>,
    /// What it returned, `-errno` for a failure; none for `?`.
    pub(super) result: Option<i64>,
    /// None where strace ran without `-T`.
    pub(super) took_ns: Option<u64>,
}

/// What a line says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Saying<'a> {
    /// A call with its result.
    Finished(Call<'a>),
    /// The beginning of a call that another line ends.
    Unfinished(&'a str),
    /// The end of such a call.
    Resumed(&'a str),
    /// A signal.
    Notice,
    /// The process (thread) has ended.
    Ended,
}

/// A line: process (thread) number, 0 where strace had only one to follow; Unix time; what it says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Line<'a> {
    pub(super) pid: u32,
    pub(super) time_ns: u64,
    pub(super) saying: Saying<'a>,
}

/// Takes a line apart; none when it is not of `strace -f -T -ttt`.
pub(super) fn parse(line: &str) -> Option<Line<'_>> {
    let line = line.trim_end();
    let (pid, rest) = match line.strip_prefix("[pid") {
        Some(rest) => {
            let (pid, rest) = rest.split_once(']')?;
            (pid.trim().parse().ok()?, rest.trim_start())
        }
        None => leading_pid(line),
    };
    let (time, rest) = rest.split_once(' ')?;
    Some(Line { pid, time_ns: nanos(time)?, saying: saying(rest.trim_start())? })
}

/// What strace says of itself, where its output and its calls go to the same place: it breaks into the line of
/// a call, which goes on in the next one. What there was of the line so far.
pub(super) fn interrupted(line: &str) -> Option<&str> {
    const REMARK: &str = "strace: ";
    if line.starts_with(REMARK) {
        return Some("");
    }
    let (begun, said) = line.split_at(line.rfind(REMARK)?);
    let number =
        said[REMARK.len()..].strip_prefix("Process ")?.trim_end().strip_suffix(" attached")?;
    number.parse::<u32>().is_ok().then_some(begun)
}

fn leading_pid(line: &str) -> (u32, &str) {
    let number = line.split_once(' ').and_then(|(word, rest)| Some((word.parse().ok()?, rest)));
    number.map_or((0, line), |(pid, rest): (u32, &str)| (pid, rest.trim_start()))
}

/// `1700000000.123456` in nanoseconds; none for a time that no clock shows.
fn nanos(text: &str) -> Option<u64> {
    let (seconds, fraction) = text.split_once('.')?;
    let digits = fraction.get(..fraction.len().min(9))?;
    let scale = 10_u64.pow(9 - digits.len() as u32);
    let seconds: u64 = seconds.parse().ok()?;
    let nanos =
        seconds.checked_mul(1_000_000_000)?.checked_add(digits.parse::<u64>().ok()? * scale)?;
    (nanos < TIME_END_NS).then_some(nanos)
}

fn saying(text: &str) -> Option<Saying<'_>> {
    if text.starts_with("---") {
        return Some(Saying::Notice);
    }
    if text.starts_with("+++") {
        return Some(Saying::Ended);
    }
    if let Some(resumed) = text.strip_prefix("<... ") {
        return Some(Saying::Resumed(resumed.split_once("resumed>")?.1));
    }
    if let Some(begun) = text.strip_suffix("<unfinished ...>") {
        return Some(Saying::Unfinished(begun.trim_end()));
    }
    call(text).map(Saying::Finished)
}

/// `read(3, "abc", 4096) = 3 <0.000012>`.
pub(super) fn call(text: &str) -> Option<Call<'_>> {
    let (name, rest) = text.split_once('(')?;
    let is_name = !name.is_empty() && name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_');
    let (arguments, rest) = is_name.then(|| split_arguments(rest))??;
    let rest = rest.trim_start().strip_prefix('=')?.trim_start();
    // With -y a descriptor that is returned has its path in such brackets, too, but behind no space.
    let (outcome, took) = match rest.rsplit_once(" <") {
        Some((outcome, took)) => (outcome, Some(nanos(took.strip_suffix('>')?)?)),
        None => (rest, None),
    };
    let mut words = outcome.split_whitespace();
    let result = result(words.next()?, words.next());
    Some(Call { name, arguments, result, took_ns: took })
}

fn result(value: &str, error: Option<&str>) -> Option<i64> {
    match (number(value)?, error) {
        (-1, Some(name)) => Some(-errno(name)),
        (number, _) => Some(number),
    }
}

/// A number, in the system that `-X raw` or `-e raw` has it in; with -y, without the path behind it, with
/// `-X verbose` without the comment.
pub(super) fn number(text: &str) -> Option<i64> {
    let digits = text.split(['<', ' ']).next()?;
    match digits.strip_prefix("0x") {
        Some(hex) => u64::from_str_radix(hex, 16).ok().map(|number| number as i64),
        None if digits.len() > 1 && digits.starts_with('0') => i64::from_str_radix(digits, 8).ok(),
        None => digits.parse().ok(),
    }
}

/// The numbers of the errors that file calls give on Linux; another one counts as `EIO`.
fn errno(name: &str) -> i64 {
    const NUMBERS: [(&str, i64); 24] = [
        ("EPERM", 1),
        ("ENOENT", 2),
        ("EINTR", 4),
        ("EIO", 5),
        ("ENXIO", 6),
        ("EBADF", 9),
        ("EAGAIN", 11),
        ("ENOMEM", 12),
        ("EACCES", 13),
        ("EFAULT", 14),
        ("EBUSY", 16),
        ("EEXIST", 17),
        ("EXDEV", 18),
        ("ENODEV", 19),
        ("ENOTDIR", 20),
        ("EISDIR", 21),
        ("EINVAL", 22),
        ("EMFILE", 24),
        ("ENOTTY", 25),
        ("EFBIG", 27),
        ("ENOSPC", 28),
        ("ESPIPE", 29),
        ("EROFS", 30),
        ("EPIPE", 32),
    ];
    NUMBERS.iter().find(|row| row.0 == name).map_or(5, |row| row.1)
}

/// The arguments up to the closing parenthesis, and what follows it. Commas in strings, structures,
/// lists and the paths that -y tells of descriptors do not separate.
fn split_arguments(text: &str) -> Option<(Vec<&str>, &str)> {
    let mut arguments = Vec::new();
    let (mut depth, mut start, mut quoted, mut escaped) = (0, 0, false, false);
    let (mut in_path, mut before) = (false, b' ');
    for (index, byte) in text.bytes().enumerate() {
        let after = std::mem::replace(&mut before, byte);
        match byte {
            // strace escapes brackets in paths; those of connections have an arrow.
            b'>' if in_path => in_path = after == b'-',
            _ if in_path => {}
            _ if escaped => escaped = false,
            b'\\' if quoted => escaped = true,
            b'"' => quoted = !quoted,
            _ if quoted => {}
            b'<' if after.is_ascii_alphanumeric() && !text[index..].starts_with("<<") => {
                in_path = true;
            }
            b'(' | b'[' | b'{' => depth += 1,
            b')' if depth == 0 => {
                let last = text[start..index].trim();
                if !last.is_empty() {
                    arguments.push(last);
                }
                return Some((arguments, &text[index + 1..]));
            }
            b')' | b']' | b'}' => depth -= 1,
            b',' if depth == 0 => {
                arguments.push(text[start..index].trim());
                start = index + 1;
            }
            _ => {}
        }
    }
    None
}

/// A string argument as the program gave it; `\303\274` and the like are bytes.
pub(super) fn unquoted(argument: &str) -> Option<String> {
    let inner = argument.strip_prefix('"')?;
    let inner = &inner[..inner.rfind('"')?];
    let mut bytes = Vec::with_capacity(inner.len());
    let mut rest = inner.bytes().peekable();
    while let Some(byte) = rest.next() {
        if byte != b'\\' {
            bytes.push(byte);
            continue;
        }
        match rest.next()? {
            b'n' => bytes.push(b'\n'),
            b't' => bytes.push(b'\t'),
            b'r' => bytes.push(b'\r'),
            digit @ b'0'..=b'7' => {
                let mut value = u32::from(digit - b'0');
                while let Some(next) =
                    rest.next_if(|next| (b'0'..=b'7').contains(next) && value < 32)
                {
                    value = value * 8 + u32::from(next - b'0');
                }
                bytes.push(value as u8);
            }
            other => bytes.push(other),
        }
    }
    Some(String::from_utf8_lossy(&bytes).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_taken_apart() {
        let line =
            parse(r#"77 1700000000.000123 read(3</a>, "x, y\") = 9", 4096) = 13 <0.000012>"#);
        let call = Call {
            name: "read",
            arguments: vec!["3</a>", r#""x, y\") = 9""#, "4096"],
            result: Some(13),
            took_ns: Some(12_000),
        };
        let time_ns = 1_700_000_000_000_123_000;
        assert_eq!(line, Some(Line { pid: 77, time_ns, saying: Saying::Finished(call) }));
    }

    #[test]
    fn a_path_behind_a_descriptor_is_one_with_it_whatever_is_in_it() {
        let parsed = call(r#"dup2(3</a, (b"[>, 1<TCP:[1.2.3.4:5->6.7.8.9:10]>) = 1</a, (b"[>"#);
        let dup = parsed.unwrap();
        assert_eq!(dup.arguments, [r#"3</a, (b"[>"#, "1<TCP:[1.2.3.4:5->6.7.8.9:10]>"]);
        assert_eq!((dup.result, dup.took_ns), (Some(1), None));
        let cut = "read(3</a>, \"x\", 1) = 1 <0.0000";
        assert_eq!(call(cut), None);
        assert_eq!(call("kill(1, 1<<2, 3) = 0").unwrap().arguments, ["1", "1<<2", "3"]);
    }

    #[test]
    fn what_strace_says_of_itself_is_no_part_of_a_call() {
        assert_eq!(interrupted("strace: Process 7 attached"), Some(""));
        assert_eq!(
            interrupted("1.5 clone(flags=SIGCHLDstrace: Process 7 attached"),
            Some("1.5 clone(flags=SIGCHLD")
        );
        assert_eq!(
            interrupted(r#"1.5 write(2, "strace: Process 7 attached", 26) = 26 <0.1>"#),
            None
        );
    }

    #[test]
    fn a_number_is_told_in_any_system() {
        let told = ["-100", "0xffffffffffffff9c", "0x241 /* O_WRONLY|… */", "7</a>", "0644", "0"];
        let numbers = [-100, -100, 0x241, 7, 0o644, 0].map(Some);
        assert_eq!(told.map(number), numbers);
        assert_eq!(["", "O_RDONLY", "\"7\"", "09"].map(number), [None; 4]);
    }

    #[test]
    fn a_failure_is_its_error_number() {
        let failed =
            call(r#"openat(AT_FDCWD, "/x", O_RDONLY) = -1 ENOENT (No such file) <0.000004>"#);
        assert_eq!(failed.unwrap().result, Some(-2));
    }

    #[test]
    fn bytes_of_a_path_are_put_together() {
        assert_eq!(unquoted(r#""/\303\274 \"b\"""#).unwrap(), "/ü \"b\"");
    }

    #[test]
    fn what_is_not_of_strace_is_no_line() {
        for text in ["", "hello", "1.5", "77 12:00:00 read(3) = 1", "read(3, ", "1.0 = 3"] {
            assert_eq!(parse(text), None, "{text}");
        }
    }
}
