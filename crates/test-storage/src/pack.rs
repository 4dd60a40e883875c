//! Folders packed in Zip archives.

use std::fs;
use std::io::{self, Write as _};
use std::path::Path;

use rawzip::ZipArchiveWriter;

/// Packs the files of a folder, without compression, in an archive with their paths from there.
///
/// # Panics
/// The folder cannot be read, or the archive not be written.
pub fn pack(folder: &Path, archive: &Path) {
    let written = write(folder, archive);
    assert!(written.is_ok(), "{} cannot be packed: {written:?}", folder.display());
}

fn write(folder: &Path, archive: &Path) -> io::Result<()> {
    let mut writer = ZipArchiveWriter::new(fs::File::create(archive)?);
    let mut folders = vec![folder.to_owned()];
    while let Some(below) = folders.pop() {
        for entry in fs::read_dir(below)? {
            let path = entry?.path();
            if path.is_dir() {
                folders.push(path);
                continue;
            }
            let name = path.strip_prefix(folder).map_err(io::Error::other)?;
            let name = name.to_str().ok_or(io::ErrorKind::InvalidData)?;
            let begun = writer.new_file(name).start();
            let (mut file, config) = begun.map_err(io::Error::other)?;
            let mut to = config.wrap(&mut file);
            to.write_all(&fs::read(&path)?)?;
            let (_, described) = to.finish().map_err(io::Error::other)?;
            file.finish(described).map_err(io::Error::other)?;
        }
    }
    writer.finish().map_err(io::Error::other)?;
    Ok(())
}
