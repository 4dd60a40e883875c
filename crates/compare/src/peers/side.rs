//! The sides of a comparison: our loader on the experiment, our loader on a copy that `relayout`
//! made, each peer at each of its settings, and our loader on the AnnData that a peer reads.

use std::fmt;
use std::path::PathBuf;

use bench_report::OWN_LOADER;
use bench_run::{LinkAccess, LinkServers};
use grid_point::Data;

use super::peer::{Peer, Variant};
use super::work::Work;

/// Name of our loader's side on the copy that `relayout` made.
pub(crate) const RELAID: &str = "somafeed relaid";

/// The column of a peer's AnnData that has the joinids of the experiment: the index, to which
/// `write_h5ad` of `benches/peers/soma_reading.py` gives no name.
pub(crate) const ANNDATA_JOINIDS: &str = "obs_id";

/// Layout recorded in rows of that copy.
const RELAID_LAYOUT: &str = "relaid";

/// A loader with its settings and its data; the sides run in turn.
#[derive(Clone, Debug)]
pub(crate) enum Side {
    /// Our loader on the original experiment.
    Own,
    /// Our loader on the copy that `relayout` made.
    Relaid {
        /// Path of the copy.
        uri: String,
        /// The link over which the copy is read.
        link: Option<LinkAccess>,
    },
    Peer(PeerSide),
    /// Our loader on the AnnData that a peer reads.
    AnnData {
        /// What a peer reads.
        files: PeerFiles,
        /// Path of the AnnData.
        uri: String,
        /// The link over which it is read.
        link: Option<LinkAccess>,
    },
}

/// An AnnData in the copy of a peer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct PeerFiles {
    pub(crate) peer: String,
    /// Path in the copy.
    pub(crate) anndata: String,
}

impl fmt::Display for PeerFiles {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}'s {}", self.peer, self.anndata)
    }
}

/// A peer at one of its settings.
#[derive(Clone, Debug)]
pub(crate) struct PeerSide {
    pub(crate) peer: Peer,
    pub(crate) variant: Variant,
    pub(crate) gene_subsets: bool,
    /// Folder of its copy of the data, if it reads a format of its own.
    pub(crate) copy: Option<PathBuf>,
    /// The link over which the copy is read.
    pub(crate) link: Option<LinkAccess>,
}

impl PeerSide {
    /// Returns the link over which it reads: its copy's, or the data's.
    pub(crate) fn link<'a>(&'a self, data: &'a Data) -> Option<&'a LinkAccess> {
        if self.copy.is_some() { self.link.as_ref() } else { data.link.as_ref() }
    }

    /// Returns the data with the link over which it reads.
    pub(crate) fn data(&self, data: &Data) -> Data {
        Data { link: self.link(data).cloned(), ..data.clone() }
    }
}

impl Side {
    pub(crate) fn label(&self) -> String {
        match self {
            Self::Own => OWN_LOADER.to_owned(),
            Self::Relaid { .. } => RELAID.to_owned(),
            Self::Peer(side) => side.peer.label(&side.variant.name),
            Self::AnnData { files, .. } => format!("{OWN_LOADER} on {files}"),
        }
    }

    /// Returns the layout of our loader's copy of the experiment; `None` if it reads the original.
    pub(crate) fn layout(&self) -> Option<String> {
        match self {
            Self::Relaid { .. } => Some(RELAID_LAYOUT.to_owned()),
            Self::AnnData { files, .. } => Some(files.to_string()),
            Self::Own | Self::Peer(_) => None,
        }
    }

    /// Returns the files that a peer and our loader both read, if it reads such.
    pub(crate) fn shared_files(&self) -> Option<PeerFiles> {
        match self {
            Self::AnnData { files, .. } => Some(files.clone()),
            Self::Peer(PeerSide { peer, variant, .. }) => {
                let anndata = variant.anndata.clone()?;
                Some(PeerFiles { peer: peer.name.clone(), anndata })
            }
            Self::Own | Self::Relaid { .. } => None,
        }
    }

    /// Returns the column that says which cell of the experiment a row is, if joinids do not.
    pub(crate) fn joinid_column(&self) -> Option<String> {
        matches!(self, Self::AnnData { .. }).then(|| ANNDATA_JOINIDS.to_owned())
    }

    /// Returns the settings of a peer; `None` for our loader.
    pub(crate) fn settings(&self) -> Option<String> {
        match self {
            Self::Peer(side) => Some(format!("{}: {}", self.label(), side.variant.summary)),
            Self::Own | Self::Relaid { .. } | Self::AnnData { .. } => None,
        }
    }

    /// Returns the reason why this side skips a work; `None` if it is measured on it.
    pub(crate) fn unfit(&self, work: &Work, earlier: &[Work]) -> Option<String> {
        let Self::Peer(PeerSide { variant, gene_subsets, .. }) = self else { return None };
        if !variant.forms.iter().any(|form| form == work.form.name()) {
            return Some(format!("it makes no {} batches", work.form.name()));
        }
        if work.n_genes.is_some() && !gene_subsets {
            return Some("it cannot take a part of the genes".to_owned());
        }
        let like = |other: &&Work| (other.form, other.n_genes) == (work.form, work.n_genes);
        let before = earlier.iter().find(like).filter(|_| !variant.takes_blocks)?;
        Some(format!("its settings are its own, measured with {before}"))
    }

    /// Has this side read its copy over a link, if it has a copy. Fails if no server can be
    /// started.
    pub(crate) fn read_over(
        &mut self,
        servers: &mut LinkServers,
        data: &Data,
    ) -> anyhow::Result<()> {
        match self {
            Self::Own | Self::Peer(PeerSide { copy: None, .. }) => {}
            Self::Relaid { uri, link } | Self::AnnData { uri, link, .. } => {
                let data = Data { uri: uri.as_str().into(), link: None, ..data.clone() };
                *link = data.over(servers)?.link;
            }
            Self::Peer(PeerSide { copy: Some(copy), link, .. }) => {
                // Its script reports which of the stored bytes an epoch needs.
                *link = Some(servers.serve(copy, None)?);
            }
        }
        Ok(())
    }

    /// Returns the data for this side's loader and records.
    pub(crate) fn data(&self, data: &Data) -> Data {
        match self {
            Self::Relaid { uri, link } => {
                // Its layout is what is compared.
                let data = data.clone().without_row_cache();
                Data { uri: uri.as_str().into(), link: link.clone(), ..data }
            }
            Self::AnnData { uri, link, .. } => {
                let data = data.clone().without_row_cache();
                let (measurement, layer) = ("RNA".to_owned(), "X".to_owned());
                Data { uri: uri.as_str().into(), link: link.clone(), measurement, layer, ..data }
            }
            Self::Peer(side) => side.data(data),
            Self::Own => data.clone(),
        }
    }

    /// Returns the data whose files this side reads: a peer's own copy, if it has one.
    pub(crate) fn files(&self, data: &Data) -> Data {
        match self {
            Self::Peer(PeerSide { copy: Some(copy), .. }) => {
                Data { uri: copy.display().to_string().into(), ..data.clone() }
            }
            _ => self.data(data),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    fn side(takes_blocks: bool, forms: &[&str], gene_subsets: bool) -> Side {
        let peer = Peer {
            name: "other".into(),
            python: PathBuf::new(),
            script: PathBuf::new(),
            variables: BTreeMap::new(),
        };
        let variant = Variant {
            name: if takes_blocks { "ours" } else { "documented" }.into(),
            summary: String::new(),
            takes_blocks,
            forms: forms.iter().map(|form| (*form).to_owned()).collect(),
            anndata: None,
        };
        Side::Peer(PeerSide { peer, variant, gene_subsets, copy: None, link: None })
    }

    #[track_caller]
    fn check(side: &Side, work: &str, earlier: &[&str], expect: Option<&str>) {
        let earlier: Vec<Work> = earlier.iter().map(|work| work.parse().unwrap()).collect();
        let found = side.unfit(&work.parse().unwrap(), &earlier);
        assert_eq!(found.is_some(), expect.is_some(), "{found:?}");
        assert!(found.unwrap_or_default().contains(expect.unwrap_or_default()));
    }

    #[test]
    fn a_side_has_the_works_that_it_can_do_and_each_once() {
        let all = side(true, &["dense", "csr"], true);
        check(&all, "dense-50-8x4", &["dense-50-4x4"], None);
        check(&side(true, &["csr"], true), "dense-all-8x4", &[], Some("no dense batches"));
        check(&side(true, &["csr"], false), "csr-50-8x4", &[], Some("a part of the genes"));
        let own = side(false, &["dense", "csr"], true);
        check(&own, "csr-all-8x4", &["dense-all-8x4", "csr-50-8x4"], None);
        check(&own, "csr-all-8x4", &["csr-all-2x4"], Some("measured with csr-all-2x4"));
        check(&Side::Own, "csr-50-8x4", &["csr-50-2x4"], None);
    }

    #[test]
    fn a_side_reads_its_copy_where_it_has_one() {
        let data = Data { uri: "x".into(), ..Data::default() };
        let mut other = side(true, &["dense"], true);
        let reads = |side: &Side| side.files(&data).uri.to_string();
        assert_eq!([&Side::Own, &other].map(reads), ["x", "x"]);
        if let Side::Peer(other) = &mut other {
            other.copy = Some("zarr".into());
        }
        assert_eq!(
            [&Side::Relaid { uri: "relaid".into(), link: None }, &other].map(reads),
            ["relaid", "zarr"]
        );
    }

    #[test]
    fn sides_have_names_of_their_own() {
        let relaid = Side::Relaid { uri: "copy".into(), link: None };
        let labels = [Side::Own, relaid, side(true, &[], true), side(false, &[], true)];
        let labels: Vec<String> = labels.iter().map(Side::label).collect();
        assert_eq!(labels, ["somafeed", "somafeed relaid", "other", "other documented"]);
        let relaid = Side::Relaid { uri: "copy".into(), link: None };
        assert_eq!((relaid.layout().as_deref(), Side::Own.layout()), (Some("relaid"), None));
    }

    #[test]
    fn our_loader_on_the_files_of_a_peer_is_known_by_them() {
        let mut other = side(true, &["csr"], true);
        assert_eq!(other.shared_files(), None);
        if let Side::Peer(other) = &mut other {
            other.variant.anndata = Some("plain.zarr".into());
        }
        let files = other.shared_files().unwrap();
        let uri = "copy/plain.zarr".to_owned();
        let ours = Side::AnnData { files: files.clone(), uri, link: None };
        assert_eq!(
            (ours.label().as_str(), ours.shared_files()),
            ("somafeed on other's plain.zarr", Some(files))
        );
        let data = Data { measurement: "protein".into(), layer: "raw".into(), ..Data::default() };
        let read = ours.data(&data);
        assert_eq!(
            [&*read.uri.to_string(), &*read.measurement, &*read.layer],
            ["copy/plain.zarr", "RNA", "X"]
        );
        assert_eq!(ours.joinid_column().as_deref(), Some(ANNDATA_JOINIDS));
    }
}
