//! Parses Python's numbers: `1_000`, `0xff`, `2.5e-3`.

use super::Problem;

#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Number {
    Integer(i128),
    Float(f64),
}

/// Words that Python allows directly after a number.
const MAY_FOLLOW: [&str; 4] = ["and", "or", "in", "not"];

/// Parses the number that begins at `start`. Returns it and its end.
pub(super) fn number(text: &[char], start: usize) -> Result<(Number, usize), Problem> {
    let radix = match (text[start], text.get(start + 1)) {
        ('0', Some('x' | 'X')) => 16,
        ('0', Some('o' | 'O')) => 8,
        ('0', Some('b' | 'B')) => 2,
        _ => 10,
    };
    let mut digits = String::new();
    let (found, end) = if radix == 10 {
        decimal(text, start, &mut digits)?
    } else {
        // An underscore may follow the prefix.
        let first = start + 2;
        let first = first + usize::from(text.get(first) == Some(&'_'));
        let end = run_of_digits(text, first, radix, &mut digits)?;
        if digits.is_empty() {
            return Err(Problem::new(start, "expected digits after the prefix of the number"));
        }
        (integer(&digits, radix, start)?, end)
    };
    ends_there(text, end)?;
    Ok((found, end))
}

fn decimal(text: &[char], start: usize, digits: &mut String) -> Result<(Number, usize), Problem> {
    let mut end = run_of_digits(text, start, 10, digits)?;
    let mut is_float = false;
    if text.get(end) == Some(&'.') {
        is_float = true;
        digits.push('.');
        end = run_of_digits(text, end + 1, 10, digits)?;
    }
    if let Some('e' | 'E') = text.get(end) {
        let sign = text.get(end + 1).filter(|sign| ['+', '-'].contains(sign));
        let first = end + 1 + usize::from(sign.is_some());
        if text.get(first).is_some_and(char::is_ascii_digit) {
            is_float = true;
            digits.push('e');
            digits.extend(sign);
            end = run_of_digits(text, first, 10, digits)?;
        }
    }
    if is_float {
        let float = digits.parse().map_err(|_| Problem::new(start, "this is not a number"))?;
        return Ok((Number::Float(float), end));
    }
    if digits.starts_with('0') && digits.contains(|digit| digit != '0') {
        return Err(Problem::new(
            start,
            "a whole number must not begin with 0; octal numbers begin with 0o",
        ));
    }
    Ok((integer(digits, 10, start)?, end))
}

fn integer(digits: &str, radix: u32, start: usize) -> Result<Number, Problem> {
    i128::from_str_radix(digits, radix).map(Number::Integer).map_err(|_| {
        Problem::new(start, "the number is too large; larger than 127 bits it must be a float")
    })
}

/// Appends a run of digits to `digits`, and returns its end. A single underscore may separate two
/// digits.
fn run_of_digits(
    text: &[char],
    start: usize,
    radix: u32,
    digits: &mut String,
) -> Result<usize, Problem> {
    let is_digit = |at: usize| text.get(at).is_some_and(|c| c.is_digit(radix));
    let mut at = start;
    while let Some(&c) = text.get(at) {
        if c.is_digit(radix) {
            digits.push(c);
        } else if c == '_' && start < at && is_digit(at - 1) {
            if !is_digit(at + 1) {
                return Err(Problem::new(at, "expected a digit after `_`"));
            }
        } else {
            break;
        }
        at += 1;
    }
    Ok(at)
}

/// Fails if a word follows without a blank, unless the word is an operator.
fn ends_there(text: &[char], end: usize) -> Result<(), Problem> {
    let word: String =
        text[end..].iter().take_while(|c| c.is_alphanumeric() || **c == '_').take(20).collect();
    if word.is_empty() || MAY_FOLLOW.contains(&word.as_str()) {
        Ok(())
    } else {
        Err(Problem::new(end, format!("expected the end of the number, found `{word}`")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn whole(text: &str) -> Result<Number, Problem> {
        let characters: Vec<char> = text.chars().collect();
        number(&characters, 0).map(|(found, end)| {
            assert_eq!(end, characters.len(), "{text}");
            found
        })
    }

    #[test]
    fn numbers_are_pythons() {
        for (text, expected) in [
            ("0", 0),
            ("00", 0),
            ("0_0", 0),
            ("1_000", 1_000),
            ("0xfF", 255),
            ("0x_f", 15),
            ("0b101", 5),
            ("0O17", 15),
            ("170141183460469231731687303715884105727", i128::MAX),
        ] {
            assert_eq!(whole(text), Ok(Number::Integer(expected)), "{text}");
        }
        for (text, expected) in [
            ("5.", 5.0),
            (".5", 0.5),
            ("1_0.5_0", 10.5),
            ("05.5", 5.5),
            ("1e3", 1e3),
            ("5.e-1_0", 5e-10),
            ("2E+2", 200.0),
            ("1e400", f64::INFINITY),
        ] {
            assert_eq!(whole(text), Ok(Number::Float(expected)), "{text}");
        }
    }

    #[test]
    fn an_invalid_number_fails_at_its_place() {
        for (text, at) in [
            ("05", 0),
            ("1__0", 1),
            ("1_", 1),
            ("5L", 1),
            ("5e", 1),
            ("1e2e", 3),
            ("0x", 0),
            ("0xg", 0),
            ("0b12", 3),
            ("2j", 1),
            ("170141183460469231731687303715884105728", 0),
        ] {
            assert_eq!(whole(text).map_err(|problem| problem.at), Err(at), "{text}");
        }
    }
}
