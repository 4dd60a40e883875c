//! Splits a filter's text into words, symbols and values.

use super::Problem;
use super::number::{Number, number};
use super::quoted::{Prefix, Quoted, quoted};

/// A token, and the index of its first character.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Token {
    pub(super) kind: TokenKind,
    pub(super) at: usize,
}

#[derive(Debug, Clone, PartialEq)]
pub(super) enum TokenKind {
    /// A column's name, or a keyword of the grammar.
    Word(String),
    Text(String),
    Bytes(Vec<u8>),
    Integer(i128),
    Float(f64),
    Symbol(&'static str),
    End,
}

/// Longer symbols first. Symbols without a meaning in filters are listed so that messages show them
/// whole.
const SYMBOLS: [&str; 41] = [
    "===", "**", "//", "<<", ">>", "<>", "==", "!=", "<=", ">=", "&&", "||", ":=", "(", ")", "[",
    "]", "{", "}", ",", "<", ">", "&", "|", "+", "-", "=", ".", "~", "^", "*", "/", "%", "@", ":",
    ";", "!", "$", "?", "`", "\\",
];

/// Splits a text into tokens.
#[derive(Debug)]
pub(super) struct Tokens<'a> {
    text: &'a [char],
    at: usize,
    /// Number of open parentheses and lists, inside of which a line may end.
    n_open: usize,
    is_first: bool,
}

impl<'a> Tokens<'a> {
    pub(super) fn new(text: &'a [char]) -> Self {
        Self { text, at: 0, n_open: 0, is_first: true }
    }

    /// Returns the next token; after the last one, always [`TokenKind::End`].
    pub(super) fn next(&mut self) -> Result<Token, Problem> {
        let crossed_line = self.skip_blanks();
        let at = self.at;
        let Some(&c) = self.text.get(at) else { return Ok(Token { kind: TokenKind::End, at }) };
        if crossed_line && self.n_open == 0 && !self.is_first {
            return Err(Problem::new(
                at,
                "expected the end: a filter is one line, or goes on in the next within parentheses",
            ));
        }
        self.is_first = false;
        let next_is_digit = self.text.get(at + 1).is_some_and(char::is_ascii_digit);
        let kind = if c == '"' || c == '\'' {
            self.quoted("")?
        } else if c.is_ascii_digit() || (c == '.' && next_is_digit) {
            let (found, end) = number(self.text, at)?;
            self.at = end;
            match found {
                Number::Integer(integer) => TokenKind::Integer(integer),
                Number::Float(float) => TokenKind::Float(float),
            }
        } else if c.is_alphabetic() || c == '_' {
            self.word()?
        } else {
            self.symbol(c)?
        };
        Ok(Token { kind, at })
    }

    /// Skips blanks and comments; returns whether a line ended among them.
    fn skip_blanks(&mut self) -> bool {
        let mut crossed_line = false;
        while let Some(c) = self.text.get(self.at) {
            match c {
                ' ' | '\t' | '\u{c}' => self.at += 1,
                '\n' | '\r' => {
                    crossed_line = true;
                    self.at += 1;
                }
                '\\' if self.text.get(self.at + 1) == Some(&'\n') => self.at += 2,
                '#' => {
                    let rest = &self.text[self.at..];
                    self.at += rest.iter().position(|c| *c == '\n').unwrap_or(rest.len());
                }
                _ => break,
            }
        }
        crossed_line
    }

    /// A word, or the quoted text that it is the prefix of.
    fn word(&mut self) -> Result<TokenKind, Problem> {
        let start = self.at;
        let word: String =
            self.text[start..].iter().take_while(|c| c.is_alphanumeric() || **c == '_').collect();
        self.at += word.chars().count();
        if !matches!(self.text.get(self.at), Some('"' | '\'')) {
            return Ok(TokenKind::Word(word));
        }
        if Prefix::parse(&word).is_some() {
            self.quoted(&word)
        } else {
            Err(Problem::new(start, format!("`{word}` cannot stand before a quote")))
        }
    }

    fn quoted(&mut self, word: &str) -> Result<TokenKind, Problem> {
        let prefix = Prefix::parse(word).ok_or_else(|| {
            Problem::new(self.at, format!("`{word}` cannot stand before a quote"))
        })?;
        let (found, end) = quoted(self.text, self.at, prefix)?;
        self.at = end;
        Ok(match found {
            Quoted::Text(text) => TokenKind::Text(text),
            Quoted::Bytes(bytes) => TokenKind::Bytes(bytes),
        })
    }

    fn symbol(&mut self, first: char) -> Result<TokenKind, Problem> {
        let rest = &self.text[self.at..];
        let matches =
            |symbol: &&str| symbol.chars().enumerate().all(|(idx, c)| rest.get(idx) == Some(&c));
        let symbol = SYMBOLS.into_iter().find(matches).ok_or_else(|| {
            let what = format!("the character {first:?} means nothing in a filter");
            Problem::new(self.at, what)
        })?;
        self.at += symbol.len();
        match symbol {
            "(" | "[" => self.n_open += 1,
            ")" | "]" => self.n_open = self.n_open.saturating_sub(1),
            _ => {}
        }
        Ok(TokenKind::Symbol(symbol))
    }
}

impl TokenKind {
    /// Describes the token for a message.
    pub(super) fn describe(&self) -> String {
        match self {
            Self::Word(word) => format!("`{word}`"),
            Self::Text(text) => format!("the text {text:?}"),
            Self::Bytes(_) => "bytes".to_owned(),
            Self::Integer(integer) => integer.to_string(),
            Self::Float(float) => format!("{float:?}"),
            Self::Symbol(symbol) => format!("`{symbol}`"),
            Self::End => "the end".to_owned(),
        }
    }
}
