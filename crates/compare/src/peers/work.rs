//! A work: the form of batches, the genes and the blocks for a comparison of loaders.

use std::fmt;
use std::str::FromStr;

use bench_run::{BlockSpec, parse_blocks};
use loader::BatchForm;

/// One work of the comparison.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Work {
    pub(crate) form: WorkForm,
    /// Number of first genes to read; `None` is all.
    pub(crate) n_genes: Option<u64>,
    pub(crate) block: BlockSpec,
}

/// Forms of batches that every loader supports.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WorkForm {
    Dense,
    Csr,
}

impl Work {
    /// Works that are compared by default.
    pub(crate) const DEFAULT: [&str; 6] = [
        "dense-all-1024x64",
        "dense-20000-1024x64",
        "csr-all-1024x64",
        "dense-all-2000x64",
        "csr-all-128x64",
        "csr-all-256x32",
    ];
}

impl From<WorkForm> for BatchForm {
    fn from(form: WorkForm) -> Self {
        match form {
            WorkForm::Dense => Self::Dense,
            WorkForm::Csr => Self::Csr,
        }
    }
}

impl WorkForm {
    /// Returns the name that `loader::BatchForm` and the peers use.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Dense => "dense",
            Self::Csr => "csr",
        }
    }
}

impl fmt::Display for Work {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-", self.form.name())?;
        match self.n_genes {
            Some(n_genes) => write!(f, "{n_genes}")?,
            None => f.write_str("all")?,
        }
        write!(f, "-{}", self.block)
    }
}

impl FromStr for Work {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let expected =
            || format!("{text:?} is no work: expected FORM-GENES-NxSIZE, as {}", Self::DEFAULT[0]);
        let mut parts = text.splitn(3, '-');
        let mut part = || parts.next().ok_or_else(expected);
        let form = match part()? {
            "dense" => WorkForm::Dense,
            "csr" => WorkForm::Csr,
            _ => return Err(expected()),
        };
        let n_genes = match part()? {
            "all" => None,
            number => Some(number.parse().ok().filter(|n| *n != 0).ok_or_else(expected)?),
        };
        match parse_blocks(part()?).map_err(|error| format!("{text:?}: {error}"))?[..] {
            [block] => Ok(Self { form, n_genes, block }),
            _ => Err(format!("{text:?} stands for several blocks: name them one by one")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn works_are_understood_as_they_are_written() {
        for text in Work::DEFAULT {
            assert_eq!(text.parse::<Work>().unwrap().to_string(), text);
        }
        let work: Work = "csr-20000-128x64".parse().unwrap();
        assert_eq!((work.form, work.n_genes), (WorkForm::Csr, Some(20_000)));
        assert_eq!((work.block.chunks_per_block, work.block.chunk_rows), (128, 64));
    }

    #[test]
    fn what_is_no_work_is_told_what_one_is() {
        for bad in ["", "dense", "coo-all-1x1", "dense-0-1x1", "dense-some-1x1", "dense-all"] {
            let error = bad.parse::<Work>().unwrap_err();
            assert!(error.contains("FORM-GENES-NxSIZE"), "{error}");
        }
        "dense-all-0x64".parse::<Work>().unwrap_err();
        "dense-all-64 / [1,4]".parse::<Work>().unwrap_err();
    }
}
