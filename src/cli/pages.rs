//! Man pages, made of the definition in [`crate::syntax`].

use std::fmt::Write as _;
use std::time::{Duration, UNIX_EPOCH};

use clap::{Arg, Command, CommandFactory as _};
use uverbs::watch::format_time;

use crate::complete::takes_value;
use crate::syntax::Cli;

/// When the pages last changed, unless `SOURCE_DATE_EPOCH` says otherwise: the same program prints the same
/// page on any day.
const DATE: &str = "2026-11-25";

/// The page of a command, or of `uverbs` itself.
pub(crate) fn man(name: Option<&str>) -> Vec<u8> {
    let mut root = Cli::command().disable_help_subcommand(true);
    root.build();
    let command = name.and_then(|name| find(&root, name)).unwrap_or(&root);
    let mut page = Page::default();
    let name = command.get_display_name().unwrap_or("uverbs").to_owned();
    let version = env!("CARGO_PKG_VERSION");
    let title = name.to_ascii_uppercase();
    page.raw(&format!(".TH {title} 1 {} \"uverbs {version}\" \"User Commands\"", date()));
    let about = command.get_about().map(ToString::to_string).unwrap_or_default();
    page.section("NAME");
    page.raw(&format!("{} \\- {}", escaped(&name), escaped(&about)));
    page.section("SYNOPSIS");
    page.synopsis(command);
    page.section("DESCRIPTION");
    let long = command.get_long_about().map_or(about, ToString::to_string);
    page.paragraphs(&long, ".PP");
    page.arguments(command);
    if command.has_subcommands() {
        page.section("COMMANDS");
        for own in command.get_subcommands() {
            page.raw(".TP");
            let name = own.get_display_name().unwrap_or_default();
            page.raw(&format!("{}(1)", escaped(name)));
            page.text(&own.get_about().map(ToString::to_string).unwrap_or_default());
        }
    }
    let closing = command.get_after_long_help().or_else(|| command.get_after_help());
    page.closing(&closing.map(ToString::to_string).unwrap_or_default());
    if let Some((above, _)) = name.rsplit_once('-') {
        page.section("SEE ALSO");
        let root = if above == "uverbs" { "" } else { ",\n.BR uverbs (1)" };
        page.raw(&format!(".BR {} (1){root}", escaped(above)));
    }
    page.0.into_bytes()
}

/// A command by its name; a subcommand's name follows a hyphen.
fn find<'c>(root: &'c Command, name: &str) -> Option<&'c Command> {
    let mut command = root;
    for name in name.split('-') {
        command = command.find_subcommand(name)?;
    }
    Some(command)
}

fn date() -> String {
    let epoch = std::env::var("SOURCE_DATE_EPOCH").ok().and_then(|text| text.parse().ok());
    // Beyond the year 9999 it is no date of a page.
    let time = epoch
        .filter(|seconds| *seconds < 253_402_300_800)
        .map(|seconds| format_time(UNIX_EPOCH + Duration::from_secs(seconds), 0));
    let date = time.as_deref().and_then(|time| time.split('T').next());
    date.unwrap_or(DATE).to_owned()
}

/// A page in the language man(7).
#[derive(Debug, Default)]
struct Page(String);

impl Page {
    fn raw(&mut self, line: &str) {
        let _ = writeln!(self.0, "{line}");
    }

    fn section(&mut self, name: &str) {
        self.raw(&format!(".SH {name}"));
    }

    /// The words before the options in bold, as they are typed.
    fn synopsis(&mut self, command: &Command) {
        let usage = command.clone().render_usage().to_string();
        let usage = usage.trim_start_matches("Usage:").trim();
        let words = command.get_bin_name().unwrap_or("uverbs");
        let rest = usage.strip_prefix(words).unwrap_or_default();
        self.raw(&format!("\\fB{}\\fR{}", escaped(words), escaped(rest)));
    }

    /// Paragraphs, with a request between them.
    fn paragraphs(&mut self, text: &str, between: &str) {
        for line in text.lines() {
            if line.is_empty() {
                self.raw(between);
            } else {
                self.text(line);
            }
        }
    }

    /// A line of text; what is between backticks is bold.
    fn text(&mut self, line: &str) {
        let mut text = String::new();
        for (place, part) in line.split('`').enumerate() {
            let (begin, end) = if place % 2 == 1 { ("\\fB", "\\fR") } else { ("", "") };
            let _ = write!(text, "{begin}{}{end}", escaped(part));
        }
        // A line that begins with a dot or a quote is a request.
        let guard = if text.starts_with(['.', '\'']) { "\\&" } else { "" };
        self.raw(&format!("{guard}{text}"));
    }

    /// Names of what may follow the command, then its options.
    fn arguments(&mut self, command: &Command) {
        let is_shown = |own: &&Arg| !own.is_hide_set();
        let positionals: Vec<&Arg> = command.get_positionals().filter(is_shown).collect();
        if !positionals.is_empty() {
            self.section("ARGUMENTS");
            for own in positionals {
                self.raw(".TP");
                self.raw(&format!("\\fI{}\\fR", escaped(&value_name(own))));
                self.help_of(own);
            }
        }
        self.section("OPTIONS");
        let options = command.get_arguments().filter(|own| !own.is_positional());
        for own in options.filter(is_shown) {
            self.raw(".TP");
            let short =
                own.get_short().map(|short| format!("\\fB\\-{short}\\fR, ")).unwrap_or_default();
            let long = escaped(own.get_long().unwrap_or_default());
            let value = if takes_value(own) {
                format!(" \\fI{}\\fR", escaped(&value_name(own)))
            } else {
                String::new()
            };
            self.raw(&format!("{short}\\fB\\-\\-{long}\\fR{value}"));
            self.help_of(own);
        }
    }

    fn help_of(&mut self, own: &Arg) {
        let help = own.get_long_help().or_else(|| own.get_help()).map(ToString::to_string);
        self.paragraphs(&help.unwrap_or_default(), ".IP");
        let takes = takes_value(own);
        let defaults: Vec<_> =
            own.get_default_values().iter().map(|own| own.to_string_lossy()).collect();
        if takes && !defaults.is_empty() {
            self.text(&format!("[default: {}]", defaults.join(" ")));
        }
        let possible = own.get_possible_values();
        if !takes || possible.is_empty() || own.is_hide_possible_values_set() {
            return;
        }
        self.raw(".RS");
        for value in possible.iter().filter(|own| !own.is_hide_set()) {
            self.raw(".TP");
            self.raw(&format!("\\fB{}\\fR", escaped(value.get_name())));
            self.text(
                &value.get_help().map_or_else(|| value.get_name().to_owned(), ToString::to_string),
            );
        }
        self.raw(".RE");
    }

    /// The end of a help text as sections: a line that ends in a colon is a heading, what is indented below
    /// it stays as it is.
    fn closing(&mut self, help: &str) {
        let mut is_open = false;
        for line in help.lines() {
            match line.strip_suffix(':').filter(|_| !line.starts_with(' ')) {
                Some(heading) => {
                    if std::mem::replace(&mut is_open, true) {
                        self.raw(".fi");
                    }
                    self.section(&heading.to_ascii_uppercase());
                    self.raw(".nf");
                }
                None if line.is_empty() => {}
                None => self.literal(line.strip_prefix("  ").unwrap_or(line)),
            }
        }
        if is_open {
            self.raw(".fi");
        }
    }

    /// A line as it is, without a meaning of backticks.
    fn literal(&mut self, line: &str) {
        let text = escaped(line);
        let guard = if text.starts_with(['.', '\'']) { "\\&" } else { "" };
        self.raw(&format!("{guard}{text}"));
    }
}

fn value_name(own: &Arg) -> String {
    let names = own.get_value_names().unwrap_or_default();
    names.first().map(ToString::to_string).unwrap_or_default()
}

/// Text in which each character shows as what it is: a hyphen can be copied, a quote is no accent.
fn escaped(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '\\' => escaped.push_str("\\e"),
            '-' => escaped.push_str("\\-"),
            '\'' => escaped.push_str("\\(aq"),
            '`' => escaped.push_str("\\(ga"),
            '^' => escaped.push_str("\\(ha"),
            '~' => escaped.push_str("\\(ti"),
            '"' => escaped.push_str("\\(dq"),
            other => escaped.push(other),
        }
    }
    escaped
}
