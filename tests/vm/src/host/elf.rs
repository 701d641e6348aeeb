//! The little that is read from ELF files: a section, and what a program needs to run.

use anyhow::{Context, Result};
use object::elf::{DT_NEEDED, FileHeader64, PT_INTERP};
use object::read::elf::{Dyn, FileHeader, ProgramHeader, SectionHeader};
use object::{LittleEndian, Object, ObjectSection};

type Header = FileHeader64<LittleEndian>;

/// The bytes of a section by its name.
pub(crate) fn section(file: &[u8], name: &str) -> Result<Vec<u8>> {
    let file = object::File::parse(file).context("no ELF file")?;
    let section = file.section_by_name(name).with_context(|| format!("no section {name}"))?;
    Ok(section.data()?.to_vec())
}

/// The dynamic loader's path, if any, and the names of the libraries that a file is linked with.
pub(crate) fn needs(file: &[u8]) -> Result<(Option<String>, Vec<String>)> {
    let header = Header::parse(file).context("no 64-bit ELF file")?;
    let endian = header.endian()?;
    let mut loader = None;
    for segment in header.program_headers(endian, file)? {
        if segment.p_type(endian) == PT_INTERP {
            let path =
                segment.data(endian, file).ok().context("the loader's path is not in the file")?;
            loader = Some(String::from_utf8_lossy(path).trim_end_matches('\0').to_owned());
        }
    }
    let sections = header.sections(endian, file)?;
    let mut libraries = Vec::new();
    for section in sections.iter() {
        let Some((entries, link)) = section.dynamic(endian, file)? else {
            continue;
        };
        let strings = sections.strings(endian, file, link)?;
        for entry in entries {
            if entry.tag(endian) == DT_NEEDED {
                let name = entry.string(endian, strings)?;
                libraries.push(String::from_utf8_lossy(name).into_owned());
            }
        }
    }
    Ok((loader, libraries))
}
