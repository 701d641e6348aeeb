//! The definition of the command line.

use clap::CommandFactory as _;

use super::*;

#[test]
fn the_definition_is_sound() {
    Cli::command().debug_assert();
}

#[test]
fn every_command_has_a_page() {
    let command = Cli::command();
    let mut names = Vec::new();
    for command in command.get_subcommands() {
        let name = command.get_name();
        assert!(!name.contains('-'), "{name}: a hyphen leads to a subcommand");
        names.push(name.to_owned());
        names.extend(command.get_subcommands().map(|own| format!("{name}-{}", own.get_name())));
    }
    assert_eq!(names, COMMANDS);
}
