//! A parsed filter: comparisons joined by `and` and `or`. It has no `not`, which is pushed down
//! while parsing.

/// A condition on a row.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Expression {
    /// All of these.
    All(Vec<Self>),
    /// At least one of these.
    Any(Vec<Self>),
    Leaf(Leaf),
}

/// A test on one column.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Leaf {
    pub(super) column: String,
    /// The index of the column's first character.
    pub(super) at: usize,
    pub(super) test: Test<Literal>,
}

/// A test on a value of type `V`.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Test<V> {
    /// The column is the left operand.
    Compare(Comparison, V),
    Member {
        negated: bool,
        values: Vec<V>,
    },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Comparison {
    Equal,
    NotEqual,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
}

/// A value in the text of a filter, and the index of its first character.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Literal {
    pub(super) value: Value,
    pub(super) at: usize,
}

#[derive(Debug, Clone, PartialEq)]
pub(super) enum Value {
    None,
    Boolean(bool),
    Integer(i128),
    Float(f64),
    Text(String),
    Bytes(Vec<u8>),
}

impl Expression {
    /// Negates the expression. Null matches neither a comparison nor its opposite, as in
    /// tiledbsoma.
    pub(super) fn negated(self) -> Self {
        let negate_each =
            |parts: Vec<Self>| parts.into_iter().map(Self::negated).collect::<Vec<_>>();
        match self {
            Self::All(parts) => Self::Any(negate_each(parts)),
            Self::Any(parts) => Self::All(negate_each(parts)),
            Self::Leaf(Leaf { column, at, test }) => {
                let test = match test {
                    Test::Compare(comparison, value) => Test::Compare(comparison.opposite(), value),
                    Test::Member { negated, values } => Test::Member { negated: !negated, values },
                };
                Self::Leaf(Leaf { column, at, test })
            }
        }
    }

    pub(super) fn for_each_leaf<'a>(&'a self, visit: &mut impl FnMut(&'a Leaf)) {
        match self {
            Self::All(parts) | Self::Any(parts) => {
                for part in parts {
                    part.for_each_leaf(visit);
                }
            }
            Self::Leaf(leaf) => visit(leaf),
        }
    }
}

impl Comparison {
    pub(super) fn from_symbol(symbol: &str) -> Option<Self> {
        Some(match symbol {
            "==" => Self::Equal,
            "!=" => Self::NotEqual,
            "<" => Self::Less,
            "<=" => Self::LessOrEqual,
            ">" => Self::Greater,
            ">=" => Self::GreaterOrEqual,
            _ => return None,
        })
    }

    /// The comparison that is true when this one is false.
    fn opposite(self) -> Self {
        match self {
            Self::Equal => Self::NotEqual,
            Self::NotEqual => Self::Equal,
            Self::Less => Self::GreaterOrEqual,
            Self::LessOrEqual => Self::Greater,
            Self::Greater => Self::LessOrEqual,
            Self::GreaterOrEqual => Self::Less,
        }
    }

    /// The comparison with its operands exchanged.
    pub(super) fn reversed(self) -> Self {
        match self {
            Self::Equal | Self::NotEqual => self,
            Self::Less => Self::Greater,
            Self::LessOrEqual => Self::GreaterOrEqual,
            Self::Greater => Self::Less,
            Self::GreaterOrEqual => Self::LessOrEqual,
        }
    }

    /// Whether it compares order, not only equality.
    pub(super) fn is_of_order(self) -> bool {
        !matches!(self, Self::Equal | Self::NotEqual)
    }
}

impl Value {
    /// Describes the value for a message.
    pub(super) fn describe(&self) -> String {
        match self {
            Self::None => "None".to_owned(),
            Self::Boolean(true) => "True".to_owned(),
            Self::Boolean(false) => "False".to_owned(),
            Self::Integer(integer) => integer.to_string(),
            Self::Float(float) => format!("{float:?}"),
            Self::Text(text) => format!("the text {text:?}"),
            Self::Bytes(_) => "bytes".to_owned(),
        }
    }
}
