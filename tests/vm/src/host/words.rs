//! The names that a person may give, by the script `tests/vm/words`, which reads them from the sources. So they are
//! known before anything is built.

use crate::apt::Checked;
use crate::paths;
use anyhow::{Result, ensure};
use std::process::Command;

/// All names of a kind.
pub(crate) fn of(kind: &str) -> Result<Vec<String>> {
    let said = Command::new(paths::package().join("words")).arg(kind).checked()?;
    Ok(said.lines().map(str::to_owned).collect())
}

/// That all these are names of a kind.
///
/// # Errors
/// Names the first that is not, and those that there are.
pub(crate) fn check(kind: &str, given: &[String]) -> Result<()> {
    if given.is_empty() {
        return Ok(());
    }
    let known = of(kind)?;
    for word in given {
        let kind = kind.trim_end_matches('s');
        ensure!(known.contains(word), "no {kind} {word:?}; there are {}", known.join(", "));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernels;
    use uverbs_vm::job::Devices;

    #[test]
    fn the_words_are_those_of_the_program() {
        assert_eq!(of("kernels").unwrap(), kernels::all().map(|it| it.name).collect::<Vec<_>>());
        let names = Devices::ALL.iter().map(|(_, name)| *name);
        assert_eq!(of("devices").unwrap(), names.collect::<Vec<_>>());
        assert!(of("scenarios").unwrap().iter().any(|name| name == "answers_agree"));
        let commands = of("commands").unwrap();
        assert!(commands.len() > 10, "{commands:?}");
        for command in commands {
            let words = ["uverbs", &command, "--help"].map(str::to_owned);
            assert_eq!(uverbs_cli::refusal(&words), None);
        }
        assert!(of("colours").is_err());
    }

    #[test]
    fn what_is_no_name_is_refused() {
        check("kernels", &["6.1".into()]).unwrap();
        check("scenarios", &[]).unwrap();
        let error = check("kernels", &["6.1".into(), "6".into()]).unwrap_err().to_string();
        assert!(error.starts_with("no kernel \"6\"; there are 5.10, "), "{error}");
    }
}
