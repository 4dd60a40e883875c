//! The names in a group, and where they lead.

use hdf5_reader::btree_v1::collect_btree_v1_leaves_storage;
use hdf5_reader::error::Error;
use hdf5_reader::io::Cursor;
use hdf5_reader::local_heap::LocalHeap;
use hdf5_reader::messages::link::{self, LinkTarget};
use hdf5_reader::messages::{MSG_LINK, MSG_LINK_INFO, MSG_SYMBOL_TABLE, link_info};
use hdf5_reader::symbol_table::{SymbolTableEntry, SymbolTableNode};

use crate::file::{Allowance, File, Widths};
use crate::header::{Header, invalid};
use crate::heap::indexed_objects;

/// What an entry of a symbol table that is a soft link has as its type.
const SOFT_ENTRY: u32 = 2;

/// A name in a group.
#[derive(Debug, Clone)]
pub(crate) struct Link {
    pub(crate) name: String,
    pub(crate) target: Target,
}

/// Where a name leads.
#[derive(Debug, Clone)]
pub(crate) enum Target {
    /// The object whose header is at this address.
    Object(u64),
    /// The object at this path, which need not exist.
    Soft(String),
    /// The object at a path of another file.
    External { file: String, path: String },
}

/// The links in a group, sorted by name.
#[derive(Debug, Default)]
pub(crate) struct Links(Vec<Link>);

impl Links {
    /// Reads the links of the group with this header.
    pub(crate) fn read(file: &File, header: &Header) -> Result<Self, Error> {
        let mut links = match header.first(file, MSG_SYMBOL_TABLE)? {
            Some(table) => in_symbol_table(file, &table)?,
            None => in_messages(file, header)?,
        };
        // Paths are made of names, so no name may be a path, or none at all.
        let is_wrong = |link: &Link| ["", "."].contains(&&*link.name) || link.name.contains('/');
        if links.iter().any(is_wrong) {
            return Err(invalid("a name in it is empty, a dot or a path"));
        }
        links.sort_by(|a, b| a.name.cmp(&b.name));
        links.dedup_by(|a, b| a.name == b.name);
        Ok(Self(links))
    }

    pub(crate) fn find(&self, name: &str) -> Option<&Target> {
        let found = self.0.binary_search_by(|link| link.name.as_str().cmp(name)).ok()?;
        self.0.get(found).map(|link| &link.target)
    }

    /// The name that leads to the object at an address.
    pub(crate) fn name_of(&self, address: u64) -> Option<&str> {
        let leads = |link: &&Link| matches!(link.target, Target::Object(to) if to == address);
        self.0.iter().find(leads).map(|link| link.name.as_str())
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &Link> {
        self.0.iter()
    }
}

/// Links as versions of HDF5 since 1.8 keep them: each in a message, or all in a heap.
fn in_messages(file: &File, header: &Header) -> Result<Vec<Link>, Error> {
    let Widths { offsets, lengths } = file.widths();
    let parse = |bytes: &[u8]| {
        let message = link::parse(&mut Cursor::new(bytes), offsets, lengths, bytes.len())?;
        let target = match message.target {
            LinkTarget::Hard { address } => Target::Object(address),
            LinkTarget::Soft { path } => Target::Soft(path),
            LinkTarget::External { filename, path } => Target::External { file: filename, path },
        };
        Ok(Link { name: message.name, target })
    };
    let messages: Vec<Vec<u8>> = header.all(file, MSG_LINK).collect::<Result<_, Error>>()?;
    let mut links: Vec<Link> =
        messages.iter().map(|bytes| parse(bytes)).collect::<Result<_, Error>>()?;
    if let Some(bytes) = header.first(file, MSG_LINK_INFO)? {
        let info = link_info::parse(&mut Cursor::new(&bytes), offsets, lengths, bytes.len())?;
        if file.is_address(info.fractal_heap_address) {
            let (heap, index) = (info.fractal_heap_address, info.btree_name_index_address);
            for bytes in indexed_objects(file, heap, index)? {
                links.push(parse(&bytes)?);
            }
        }
    }
    Ok(links)
}

/// Links as all versions of HDF5 can keep them: in nodes of a tree, with the names in a heap.
fn in_symbol_table(file: &File, message: &[u8]) -> Result<Vec<Link>, Error> {
    let Widths { offsets, lengths } = file.widths();
    let mut cursor = Cursor::new(message);
    let (tree, heap) = (cursor.read_offset(offsets)?, cursor.read_offset(offsets)?);
    let storage = file.storage();
    let nodes = collect_btree_v1_leaves_storage(storage, tree, offsets, lengths, None, &[], None)?;
    if nodes.is_empty() {
        return Ok(Vec::new());
    }
    let heap = LocalHeap::parse_at_storage(storage, heap, offsets, lengths)?;
    let names = file.read(heap.data_segment_address, heap.data_segment_size)?;
    let mut allowance = Allowance::for_file(file);
    let mut links = Vec::new();
    for (_, address) in nodes {
        for entry in entries(file, address)? {
            let link = of_entry(&entry, &names)?;
            allowance.take(link.name.len())?;
            links.push(link);
        }
    }
    Ok(links)
}

/// The entries in a node of a symbol table.
fn entries(file: &File, address: u64) -> Result<Vec<SymbolTableEntry>, Error> {
    let Widths { offsets, lengths } = file.widths();
    let head = file.read(address, 8)?;
    let mut cursor = Cursor::new(&head);
    cursor.skip(6)?;
    let n_entries = u64::from(cursor.read_u16_le()?);
    let node = file.read(address, 8 + n_entries * (24 + 2 * u64::from(offsets)))?;
    let node = SymbolTableNode::parse(&mut Cursor::new(&node), offsets, lengths)?;
    Ok(node.entries)
}

fn of_entry(entry: &SymbolTableEntry, names: &[u8]) -> Result<Link, Error> {
    let name = name_at(names, entry.link_name_offset)?;
    let target = if entry.cache_type == SOFT_ENTRY {
        let place = Cursor::new(&entry.scratch).read_u32_le()?;
        Target::Soft(name_at(names, place.into())?)
    } else {
        Target::Object(entry.object_header_address)
    };
    Ok(Link { name, target })
}

/// The text at a place of a heap of names.
fn name_at(names: &[u8], place: u64) -> Result<String, Error> {
    let rest = usize::try_from(place).ok().and_then(|place| names.get(place..));
    let end = rest.and_then(|rest| rest.iter().position(|byte| *byte == 0));
    let (Some(rest), Some(end)) = (rest, end) else {
        return Err(invalid("a name lies beyond the heap of names"));
    };
    let name = std::str::from_utf8(&rest[..end]);
    Ok(name.map_err(|_| invalid("a name is not UTF-8"))?.to_owned())
}
