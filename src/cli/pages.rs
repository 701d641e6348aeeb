//! Shell completions and man pages, made of the definition in [`crate::args`].

use clap::CommandFactory;
use clap_complete::Shell;
use clap_mangen::Man;
use clap_mangen::roff::{Roff, roman};

use crate::syntax::Cli;

pub(crate) fn completions(shell: Shell) -> Vec<u8> {
    let mut text = Vec::new();
    clap_complete::generate(shell, &mut Cli::command(), "uverbs", &mut text);
    text
}

/// The page of a command, or of `uverbs` itself.
pub(crate) fn man(name: Option<&str>) -> Vec<u8> {
    let mut root = Cli::command().disable_help_subcommand(true);
    root.build();
    let command = name.and_then(|name| find(&root, name)).unwrap_or(&root).clone();
    let has_commands = command.has_subcommands();
    let closing = command
        .get_after_long_help()
        .or_else(|| command.get_after_help())
        .map(ToString::to_string)
        .unwrap_or_default();
    let man = Man::new(command)
        .source(concat!("uverbs ", env!("CARGO_PKG_VERSION")))
        .manual("User Commands");
    let mut page = Vec::new();
    // Nothing can fail in memory.
    let _ = man
        .render_title(&mut page)
        .and_then(|()| man.render_name_section(&mut page))
        .and_then(|()| man.render_synopsis_section(&mut page))
        .and_then(|()| man.render_description_section(&mut page))
        .and_then(|()| man.render_options_section(&mut page));
    if has_commands {
        let _ = man.render_subcommands_section(&mut page);
    }
    page.extend(sections(&closing).render().into_bytes());
    page
}

/// A command by its name; a subcommand's name follows a hyphen.
fn find<'c>(root: &'c clap::Command, name: &str) -> Option<&'c clap::Command> {
    let mut command = root;
    for name in name.split('-') {
        command = command.find_subcommand(name)?;
    }
    Some(command)
}

/// The end of a help text as sections of a page: a line that ends in a colon is a heading, what
/// is indented below it stays as it is.
fn sections(help: &str) -> Roff {
    let mut page = Roff::new();
    for line in help.lines() {
        match line.strip_suffix(':').filter(|_| !line.starts_with(' ')) {
            Some(heading) => {
                page.control("fi", []);
                page.control("SH", [heading.to_uppercase().as_str()]);
                page.control("nf", []);
            }
            None if line.is_empty() => {}
            None => {
                page.text([roman(line.strip_prefix("  ").unwrap_or(line))]);
            }
        }
    }
    page.control("fi", []);
    page
}
