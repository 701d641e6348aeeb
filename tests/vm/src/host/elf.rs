//! The little that is read from ELF files: a section, and what a program needs to run.

use anyhow::{Context, Result};
use object::elf::{DT_NEEDED, DT_SONAME, FileHeader64, PT_INTERP};
use object::read::elf::{Dyn, FileHeader, ProgramHeader, SectionHeader};
use object::{Endianness, Object, ObjectSection};
use std::fmt::Write;

type Header = FileHeader64<Endianness>;

/// The bytes of a section by its name.
pub(crate) fn section(file: &[u8], name: &str) -> Result<Vec<u8>> {
    let file = object::File::parse(file).context("no ELF file")?;
    let section = file.section_by_name(name).with_context(|| format!("no section {name}"))?;
    Ok(section.data()?.to_vec())
}

/// What a program or library needs to run, and what it is called by others.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Needs {
    /// The dynamic loader's path. A static program has none.
    pub(crate) loader: Option<String>,
    /// The names of the libraries that it is linked with.
    pub(crate) libraries: Vec<String>,
    /// A library's own name, by which others are linked with it.
    pub(crate) name: Option<String>,
}

/// Reads what a program or library needs.
pub(crate) fn needs(file: &[u8]) -> Result<Needs> {
    let header = Header::parse(file).context("no 64-bit ELF file")?;
    let endian = header.endian()?;
    let mut needs = Needs::default();
    for segment in header.program_headers(endian, file)? {
        if segment.p_type(endian) == PT_INTERP {
            let path =
                segment.data(endian, file).ok().context("the loader's path is not in the file")?;
            needs.loader = Some(String::from_utf8_lossy(path).trim_end_matches('\0').to_owned());
        }
    }
    let sections = header.sections(endian, file)?;
    for section in sections.iter() {
        let Some((entries, link)) = section.dynamic(endian, file)? else {
            continue;
        };
        let strings = sections.strings(endian, file, link)?;
        for entry in entries {
            let tag = entry.tag(endian);
            if tag == DT_NEEDED || tag == DT_SONAME {
                let name = String::from_utf8_lossy(entry.string(endian, strings)?).into_owned();
                if tag == DT_NEEDED {
                    needs.libraries.push(name);
                } else {
                    needs.name = Some(name);
                }
            }
        }
    }
    Ok(needs)
}

/// Where Debian keeps the symbols of a program or library.
pub(crate) fn debug_file(file: &[u8]) -> Result<String> {
    let file = object::File::parse(file).context("no ELF file")?;
    let id = file.build_id()?.context("it has no build ID")?;
    let (folder, name) = id.split_first().context("its build ID is empty")?;
    let mut path = format!("usr/lib/debug/.build-id/{folder:02x}/");
    for byte in name {
        write!(path, "{byte:02x}")?;
    }
    Ok(path + ".debug")
}
