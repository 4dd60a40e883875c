//! Vocabularies: a token id for each gene's name and for each special token.

use std::collections::HashMap;
use std::collections::hash_map::Entry;

use crate::error::Error;

/// Longest sequence.
const MOST_TOKENS: usize = 1 << 20;

/// Marks a column without a token. Ids are below 2^31.
const UNKNOWN: u32 = u32::MAX;

/// Token ids by name, those of genes and those of special tokens.
#[derive(Debug, Clone)]
pub struct Vocabulary {
    ids: HashMap<String, u32>,
    special: SpecialTokens,
    /// Names of the special tokens, which are not genes.
    special_names: Vec<String>,
}

/// Names of the special tokens in a vocabulary.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SpecialNames<'a> {
    /// Fills up sequences that are shorter than others.
    pub pad: &'a str,
    /// Begins each sequence; `None` if genes do.
    pub cls: Option<&'a str>,
    /// Ends each sequence; `None` if genes do.
    pub eos: Option<&'a str>,
}

/// Ids of the special tokens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SpecialTokens {
    /// Fills up sequences that are shorter than others.
    pub pad: u32,
    /// Begins each sequence.
    pub cls: Option<u32>,
    /// Ends each sequence.
    pub eos: Option<u32>,
}

impl SpecialTokens {
    /// Number of special tokens in each sequence, not counting padding.
    pub fn n_in_sequence(&self) -> usize {
        usize::from(self.cls.is_some()) + usize::from(self.eos.is_some())
    }

    /// Fails if sequences of this length have no room for a gene, or overflow a batch.
    pub(crate) fn check_length(&self, max_length: usize) -> Result<(), Error> {
        let n_special = self.n_in_sequence();
        if n_special < max_length && max_length <= MOST_TOKENS {
            return Ok(());
        }
        Err(Error::MaxLength { max_length, n_special })
    }
}

impl Vocabulary {
    /// Makes a vocabulary of names with their token ids. The special tokens are among them.
    ///
    /// # Errors
    /// A name or an id comes twice; an id is 2^31 or more; a special token is not there.
    pub fn new(
        entries: impl IntoIterator<Item = (String, u32)>,
        special: SpecialNames<'_>,
    ) -> Result<Self, Error> {
        let (mut ids, mut names) = (HashMap::new(), HashMap::new());
        for (name, id) in entries {
            if i32::try_from(id).is_err() {
                return Err(Error::LargeId { name, id });
            }
            if let Some(first) = names.insert(id, name.clone()).filter(|first| *first != name) {
                return Err(Error::DuplicateId { id, first, second: name });
            }
            match ids.entry(name) {
                Entry::Vacant(vacant) => vacant.insert(id),
                Entry::Occupied(taken) => {
                    return Err(Error::DuplicateName { name: taken.key().clone() });
                }
            };
        }
        let special_id = |role: &'static str, name: &str| {
            let id = ids.get(name).copied();
            id.ok_or_else(|| Error::NoSpecial { role, name: name.to_owned() })
        };
        let SpecialNames { pad, cls, eos } = special;
        let tokens = SpecialTokens {
            pad: special_id("padding", pad)?,
            cls: cls.map(|name| special_id("first", name)).transpose()?,
            eos: eos.map(|name| special_id("last", name)).transpose()?,
        };
        let special_names = [Some(pad), cls, eos].into_iter().flatten().map(str::to_owned);
        Ok(Self { ids, special: tokens, special_names: special_names.collect() })
    }

    /// The id of a name, of a gene or a special token.
    pub fn id(&self, name: &str) -> Option<u32> {
        self.ids.get(name).copied()
    }

    /// Ids of the special tokens.
    pub fn special(&self) -> SpecialTokens {
        self.special
    }

    /// Finds the token of each column by the column's name.
    ///
    /// # Errors
    /// Two columns are one gene of the vocabulary, or none is.
    pub fn genes<S: AsRef<str>>(&self, names: &[S]) -> Result<Genes, Error> {
        self.genes_among(names, |_| true)
    }

    /// Finds the token of each column whose name is in the vocabulary and passes `is_known`.
    pub(crate) fn genes_among<S: AsRef<str>>(
        &self,
        names: &[S],
        is_known: impl Fn(&str) -> bool,
    ) -> Result<Genes, Error> {
        let mut columns: HashMap<u32, usize> = HashMap::new();
        let mut tokens = Vec::with_capacity(names.len());
        for (column, name) in names.iter().enumerate() {
            let name = name.as_ref();
            let is_gene = !self.special_names.iter().any(|special| special == name);
            let id = self.id(name).filter(|_| is_gene && is_known(name));
            if let Some(first) = id.and_then(|id| columns.insert(id, column)) {
                let (name, second) = (name.to_owned(), column);
                return Err(Error::DuplicateGene { name, first, second });
            }
            tokens.push(id.unwrap_or(UNKNOWN));
        }
        if let (true, Some(gene)) = (columns.is_empty(), names.first()) {
            // The first in alphabetic order, so that the message is always the same.
            let genes = self.ids.keys().filter(|name| !self.special_names.contains(name));
            let known = genes.min().cloned().unwrap_or_default();
            let (n_genes, gene) = (names.len(), gene.as_ref().to_owned());
            return Err(Error::NoKnownGene { n_genes, gene, known });
        }
        let mut n_known = 0;
        let known_before = tokens.iter().map(|token| {
            let before = n_known;
            n_known += u32::from(*token != UNKNOWN);
            before
        });
        let known_before = known_before.collect();
        Ok(Genes { tokens, known_before, n_known: columns.len(), special: self.special })
    }
}

/// The token of each column of X; columns that the vocabulary does not know have none.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Genes {
    tokens: Vec<u32>,
    /// Number of known columns before each column.
    known_before: Vec<u32>,
    n_known: usize,
    special: SpecialTokens,
}

impl Genes {
    /// Number of columns.
    pub fn n_columns(&self) -> usize {
        self.tokens.len()
    }

    /// Number of columns with a token.
    pub fn n_known(&self) -> usize {
        self.n_known
    }

    /// Number of columns without a token, whose values are left out.
    pub fn n_unknown(&self) -> usize {
        self.tokens.len() - self.n_known
    }

    /// Ids of the special tokens.
    pub fn special(&self) -> SpecialTokens {
        self.special
    }

    /// The token of a column; `None` if the vocabulary does not know it or there is no such column.
    #[inline]
    pub fn token(&self, column: usize) -> Option<u32> {
        self.tokens.get(column).copied().filter(|token| *token != UNKNOWN)
    }

    /// The position of a column among those with a token; `None` if it has none.
    pub(crate) fn known_before(&self, column: usize) -> Option<usize> {
        self.token(column).and_then(|_| self.known_before.get(column)).map(|at| *at as usize)
    }

    /// Columns with a token, ascending, each with its token.
    pub fn known(&self) -> impl Iterator<Item = (usize, u32)> {
        let known = |(_, token): &(usize, u32)| *token != UNKNOWN;
        self.tokens.iter().copied().enumerate().filter(known)
    }
}
