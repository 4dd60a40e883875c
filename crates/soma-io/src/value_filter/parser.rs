//! Parses the text of a filter, with Python's precedence: `or`, `and`, `not`, comparisons, `|`,
//! `&`, signs.

use super::Problem;
use super::expression::{Comparison, Expression, Leaf, Literal, Test, Value};
use super::token::{Token, TokenKind, Tokens};

/// The deepest nesting of parentheses: each level needs stack, here and during evaluation.
const DEEPEST: usize = 64;

/// Python's keywords; a column with such a name is written `attr("…")`.
const PYTHON_WORDS: [&str; 35] = [
    "False", "None", "True", "and", "as", "assert", "async", "await", "break", "class", "continue",
    "def", "del", "elif", "else", "except", "finally", "for", "from", "global", "if", "import",
    "in", "is", "lambda", "nonlocal", "not", "or", "pass", "raise", "return", "try", "while",
    "with", "yield",
];

/// A parsed part of a filter, and the index of its first character.
#[derive(Debug, Clone)]
struct Operand {
    kind: OperandKind,
    at: usize,
}

#[derive(Debug, Clone)]
enum OperandKind {
    Condition(Expression),
    Column(String),
    Value(Value),
}

pub(super) fn parse(text: &str) -> Result<Expression, Problem> {
    let text: Vec<char> = text.chars().collect();
    let mut tokens = Tokens::new(&text);
    let next = tokens.next()?;
    let mut parser = Parser { tokens, next, depth: 0 };
    if parser.next.kind == TokenKind::End {
        return Err(Problem::new(
            0,
            "the filter is empty: expected a comparison, for example `tissue == \"lung\"`",
        ));
    }
    let operand = parser.either()?;
    match parser.next.kind {
        TokenKind::End => condition(operand, "a filter"),
        _ => Err(parser.unexpected("`and`, `or` or the end")),
    }
}

struct Parser<'a> {
    tokens: Tokens<'a>,
    next: Token,
    depth: usize,
}

impl Parser<'_> {
    /// Advances, and returns the token that was next.
    fn take(&mut self) -> Result<Token, Problem> {
        let following = self.tokens.next()?;
        Ok(std::mem::replace(&mut self.next, following))
    }

    fn next_is(&self, symbol: &str) -> bool {
        matches!(self.next.kind, TokenKind::Symbol(next) if next == symbol)
    }

    fn next_is_word(&self, word: &str) -> bool {
        matches!(&self.next.kind, TokenKind::Word(next) if next == word)
    }

    fn take_if(&mut self, symbol: &str) -> Result<bool, Problem> {
        let found = self.next_is(symbol);
        if found {
            self.take()?;
        }
        Ok(found)
    }

    fn take_word_if(&mut self, word: &str) -> Result<bool, Problem> {
        let found = self.next_is_word(word);
        if found {
            self.take()?;
        }
        Ok(found)
    }

    fn expect(&mut self, symbol: &str, expected: &str) -> Result<(), Problem> {
        if self.take_if(symbol)? { Ok(()) } else { Err(self.unexpected(expected)) }
    }

    /// The problem that the next token is not allowed here.
    fn unexpected(&self, expected: &str) -> Problem {
        let hint = match &self.next.kind {
            TokenKind::Symbol("=") => "; equality is `==`",
            TokenKind::Symbol("===") => "; write `==`",
            TokenKind::Symbol("<>") => "; write `!=`",
            TokenKind::Symbol("&&") => "; write `and`",
            TokenKind::Symbol("||") => "; write `or`",
            TokenKind::Symbol("!" | "~") => "; write `not`",
            TokenKind::Symbol("&" | "|") => {
                "; put the comparison on each side in parentheses, or write `and` and `or`"
            }
            TokenKind::Symbol(".") => "; write a name with a dot in it as attr(\"…\")",
            TokenKind::Word(word) if word == "is" => "; write `==` or `!=`",
            _ => "",
        };
        let found = self.next.kind.describe();
        Problem::new(self.next.at, format!("expected {expected}, found {found}{hint}"))
    }

    /// Turns the operand into a condition. If an invalid token follows, the problem names that
    /// token.
    fn condition(&self, operand: Operand, role: &str) -> Result<Expression, Problem> {
        let ends = match &self.next.kind {
            TokenKind::End | TokenKind::Symbol(")") => true,
            TokenKind::Word(word) => word == "and" || word == "or",
            _ => false,
        };
        if ends || matches!(operand.kind, OperandKind::Condition(_)) {
            condition(operand, role)
        } else {
            Err(self.unexpected("a comparison"))
        }
    }

    fn either(&mut self) -> Result<Operand, Problem> {
        let first = self.both()?;
        if !self.next_is_word("or") {
            return Ok(first);
        }
        let at = first.at;
        let mut parts = vec![self.condition(first, "each side of `or`")?];
        while self.take_word_if("or")? {
            let part = self.both()?;
            parts.push(self.condition(part, "each side of `or`")?);
        }
        Ok(Operand { kind: OperandKind::Condition(Expression::Any(parts)), at })
    }

    fn both(&mut self) -> Result<Operand, Problem> {
        let first = self.opposite()?;
        if !self.next_is_word("and") {
            return Ok(first);
        }
        let at = first.at;
        let mut parts = vec![self.condition(first, "each side of `and`")?];
        while self.take_word_if("and")? {
            let part = self.opposite()?;
            parts.push(self.condition(part, "each side of `and`")?);
        }
        Ok(Operand { kind: OperandKind::Condition(Expression::All(parts)), at })
    }

    fn opposite(&mut self) -> Result<Operand, Problem> {
        let at = self.next.at;
        let mut n_not = 0_usize;
        while self.take_word_if("not")? {
            n_not += 1;
        }
        let operand = self.comparison()?;
        if n_not == 0 {
            return Ok(operand);
        }
        let negated = self.condition(operand, "the operand of `not`")?;
        let negated = if n_not % 2 == 1 { negated.negated() } else { negated };
        Ok(Operand { kind: OperandKind::Condition(negated), at })
    }

    fn comparison(&mut self) -> Result<Operand, Problem> {
        let mut left = self.either_of_conditions()?;
        let at = left.at;
        let mut parts = Vec::new();
        loop {
            let comparison = match self.next.kind {
                TokenKind::Symbol(symbol) => Comparison::from_symbol(symbol),
                _ => None,
            };
            if let Some(comparison) = comparison {
                self.take()?;
                let right = self.either_of_conditions()?;
                parts.push(Expression::Leaf(leaf(left, comparison, right.clone())?));
                left = right;
                continue;
            }
            let is_member = self.next_is_word("in") || self.next_is_word("not");
            if !is_member {
                break;
            }
            let member_at = self.next.at;
            let negated = self.take_word_if("not")?;
            if !self.take_word_if("in")? {
                return Err(self.unexpected("`in` after `not`"));
            }
            if !parts.is_empty() {
                let what = "`in` cannot be part of a chain of comparisons; join them by `and`";
                return Err(Problem::new(member_at, what));
            }
            parts.push(Expression::Leaf(self.membership(left, negated)?));
            let chained = match self.next.kind {
                TokenKind::Symbol(symbol) => Comparison::from_symbol(symbol).is_some(),
                _ => self.next_is_word("in") || self.next_is_word("not"),
            };
            if chained {
                return Err(self.unexpected("`and`, `or` or the end: `in` is not part of a chain"));
            }
            let part = parts.swap_remove(0);
            return Ok(Operand { kind: OperandKind::Condition(part), at });
        }
        Ok(match parts.len() {
            0 => left,
            1 => Operand { kind: OperandKind::Condition(parts.swap_remove(0)), at },
            _ => Operand { kind: OperandKind::Condition(Expression::All(parts)), at },
        })
    }

    /// Parses the list after `in`.
    fn membership(&mut self, left: Operand, negated: bool) -> Result<Leaf, Problem> {
        let OperandKind::Column(column) = left.kind else {
            return Err(Problem::new(left.at, "a column must stand before `in`"));
        };
        let list_at = self.next.at;
        self.expect("[", "a list after `in`, for example `[\"lung\", \"blood\"]`")?;
        let mut values = Vec::new();
        while !self.next_is("]") {
            let item = self.signed()?;
            let value = match item.kind {
                OperandKind::Value(Value::None) => {
                    let what = "None cannot stand in a list; compare with it by == or !=";
                    return Err(Problem::new(item.at, what));
                }
                OperandKind::Value(value) => value,
                OperandKind::Column(name) => {
                    let what = format!(
                        "expected a value, found the column `{name}`: quote it if it is a text"
                    );
                    return Err(Problem::new(item.at, what));
                }
                OperandKind::Condition(_) => {
                    return Err(Problem::new(item.at, "expected a value, found a comparison"));
                }
            };
            values.push(Literal { value, at: item.at });
            if !self.take_if(",")? && !self.next_is("]") {
                return Err(self.unexpected("`,` or `]` in the list"));
            }
        }
        if values.is_empty() {
            return Err(Problem::new(list_at, "the list is empty: expected at least one value"));
        }
        self.expect("]", "`]`")?;
        Ok(Leaf { column, at: left.at, test: Test::Member { negated, values } })
    }

    fn either_of_conditions(&mut self) -> Result<Operand, Problem> {
        let first = self.both_of_conditions()?;
        if !self.next_is("|") {
            return Ok(first);
        }
        let at = first.at;
        let mut parts = vec![tight_condition(first, "|", "or")?];
        while self.take_if("|")? {
            parts.push(tight_condition(self.both_of_conditions()?, "|", "or")?);
        }
        Ok(Operand { kind: OperandKind::Condition(Expression::Any(parts)), at })
    }

    fn both_of_conditions(&mut self) -> Result<Operand, Problem> {
        let first = self.signed()?;
        if !self.next_is("&") {
            return Ok(first);
        }
        let at = first.at;
        let mut parts = vec![tight_condition(first, "&", "and")?];
        while self.take_if("&")? {
            parts.push(tight_condition(self.signed()?, "&", "and")?);
        }
        Ok(Operand { kind: OperandKind::Condition(Expression::All(parts)), at })
    }

    fn signed(&mut self) -> Result<Operand, Problem> {
        let at = self.next.at;
        let (mut has_sign, mut negative) = (false, false);
        while self.next_is("-") || self.next_is("+") {
            has_sign = true;
            negative ^= self.next_is("-");
            self.take()?;
        }
        let operand = self.primary()?;
        if !has_sign {
            return Ok(operand);
        }
        let integer = |value: i128| Value::Integer(if negative { -value } else { value });
        let value = match operand.kind {
            OperandKind::Value(Value::Integer(value)) => integer(value),
            OperandKind::Value(Value::Boolean(value)) => integer(value.into()),
            OperandKind::Value(Value::Float(value)) => {
                Value::Float(if negative { -value } else { value })
            }
            _ => return Err(Problem::new(operand.at, "expected a number after the sign")),
        };
        Ok(Operand { kind: OperandKind::Value(value), at })
    }

    fn primary(&mut self) -> Result<Operand, Problem> {
        let at = self.next.at;
        let value = |value| Ok(Operand { kind: OperandKind::Value(value), at });
        match &self.next.kind {
            TokenKind::Symbol("(") => self.parenthesized(),
            TokenKind::Symbol("[") => {
                Err(Problem::new(at, "a list may stand only after `in` and `not in`"))
            }
            TokenKind::Text(_) | TokenKind::Bytes(_) => value(self.quoted()?),
            TokenKind::Integer(integer) => {
                let integer = *integer;
                self.take()?;
                value(Value::Integer(integer))
            }
            TokenKind::Float(float) => {
                let float = *float;
                self.take()?;
                value(Value::Float(float))
            }
            TokenKind::Word(_) => self.word(),
            TokenKind::Symbol(_) | TokenKind::End => Err(self.unexpected("a column or a value")),
        }
    }

    fn parenthesized(&mut self) -> Result<Operand, Problem> {
        let opening = self.take()?;
        if self.depth == DEEPEST {
            let what = format!("parentheses are nested more than {DEEPEST} deep");
            return Err(Problem::new(opening.at, what));
        }
        self.depth += 1;
        let inner = self.either()?;
        self.depth -= 1;
        self.expect(")", "`)`")?;
        Ok(inner)
    }

    /// Joins adjacent texts, as Python does.
    fn quoted(&mut self) -> Result<Value, Problem> {
        let mut joined = match self.take()?.kind {
            TokenKind::Bytes(bytes) => Value::Bytes(bytes),
            TokenKind::Text(text) => Value::Text(text),
            _ => return Err(self.unexpected("a text")),
        };
        loop {
            match (&mut joined, &self.next.kind) {
                (Value::Text(text), TokenKind::Text(more)) => text.push_str(more),
                (Value::Bytes(bytes), TokenKind::Bytes(more)) => bytes.extend_from_slice(more),
                (_, TokenKind::Text(_) | TokenKind::Bytes(_)) => {
                    return Err(Problem::new(self.next.at, "texts and bytes do not join"));
                }
                _ => return Ok(joined),
            }
            self.take()?;
        }
    }

    fn word(&mut self) -> Result<Operand, Problem> {
        let at = self.next.at;
        let TokenKind::Word(word) = &self.next.kind else {
            return Err(self.unexpected("a column or a value"));
        };
        let value = match word.as_str() {
            "None" => Some(Value::None),
            "True" => Some(Value::Boolean(true)),
            "False" => Some(Value::Boolean(false)),
            word if PYTHON_WORDS.contains(&word) => {
                let what = format!(
                    "expected a column or a value, found the word `{word}` of Python; write a column of that name as attr(\"{word}\")"
                );
                return Err(Problem::new(at, what));
            }
            _ => None,
        };
        let word = word.clone();
        self.take()?;
        if let Some(value) = value {
            return Ok(Operand { kind: OperandKind::Value(value), at });
        }
        if !self.next_is("(") {
            return Ok(Operand { kind: OperandKind::Column(word), at });
        }
        self.take()?;
        let kind = match word.as_str() {
            "attr" => {
                let argument = self.argument()?;
                let OperandKind::Value(Value::Text(name)) = argument.kind else {
                    return Err(Problem::new(
                        argument.at,
                        "expected the quoted name of a column in attr(…)",
                    ));
                };
                OperandKind::Column(name)
            }
            "val" => {
                let argument = self.argument()?;
                if !matches!(argument.kind, OperandKind::Value(_)) {
                    return Err(Problem::new(argument.at, "expected a value in val(…)"));
                }
                argument.kind
            }
            _ => {
                let what = format!("there is no function `{word}`; there are attr(…) and val(…)");
                return Err(Problem::new(at, what));
            }
        };
        Ok(Operand { kind, at })
    }

    /// Parses the single argument of a function, including its closing parenthesis.
    fn argument(&mut self) -> Result<Operand, Problem> {
        if self.depth == DEEPEST {
            let what = format!("parentheses are nested more than {DEEPEST} deep");
            return Err(Problem::new(self.next.at, what));
        }
        self.depth += 1;
        let argument = self.signed()?;
        self.depth -= 1;
        self.take_if(",")?;
        self.expect(")", "`)` after the one argument")?;
        Ok(argument)
    }
}

/// Turns the operand into a condition; `role` names the operand in the error.
fn condition(operand: Operand, role: &str) -> Result<Expression, Problem> {
    let found = match operand.kind {
        OperandKind::Condition(condition) => return Ok(condition),
        OperandKind::Column(name) => format!("the column `{name}` alone"),
        OperandKind::Value(value) => value.describe(),
    };
    let what =
        format!("{role} must be a comparison, for example `tissue == \"lung\"`; found {found}");
    Err(Problem::new(operand.at, what))
}

fn tight_condition(operand: Operand, symbol: &str, word: &str) -> Result<Expression, Problem> {
    let at = operand.at;
    condition(operand, "").map_err(|_| {
        let what = format!(
            "`{symbol}` binds tighter than comparisons: put the comparison on each side of it in parentheses, or write `{word}`"
        );
        Problem::new(at, what)
    })
}

/// Makes a comparison of a column with a value, in either order.
fn leaf(left: Operand, comparison: Comparison, right: Operand) -> Result<Leaf, Problem> {
    let (column, at, comparison, value) = match (left.kind, right.kind) {
        (OperandKind::Column(column), OperandKind::Value(value)) => {
            (column, left.at, comparison, Literal { value, at: right.at })
        }
        (OperandKind::Value(value), OperandKind::Column(column)) => {
            (column, right.at, comparison.reversed(), Literal { value, at: left.at })
        }
        (OperandKind::Column(_), OperandKind::Column(name)) => {
            let what = format!(
                "expected a value, found the column `{name}`: columns are compared with values only; quote it if it is a text"
            );
            return Err(Problem::new(right.at, what));
        }
        (OperandKind::Value(_), OperandKind::Value(_)) => {
            return Err(Problem::new(right.at, "expected a column on one side of the comparison"));
        }
        (OperandKind::Condition(_), _) => {
            let what = "expected a column or a value before the comparison, found a comparison";
            return Err(Problem::new(left.at, what));
        }
        (_, OperandKind::Condition(_)) => {
            let what = "expected a column or a value after the comparison, found a comparison";
            return Err(Problem::new(right.at, what));
        }
    };
    if value.value == Value::None && comparison.is_of_order() {
        return Err(Problem::new(value.at, "None can be compared by == and != only"));
    }
    Ok(Leaf { column, at, test: Test::Compare(comparison, value) })
}
