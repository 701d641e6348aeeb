use super::*;
use crate::inventory::{Setting, SettingsReading};

/// A host without devices.
fn host(name: &str) -> String {
    format!(
        r#"{{"schema_version":1,"host":"{name}","modules":[],"has_netlink":true,"devices":[],"absences":[],"settings":[],"problems":[]}}"#
    )
}

/// The same on lines of its own.
fn pretty(name: &str) -> String {
    host(name).replace('{', "{\n ").replace(',', ",\n ").replace('}', "\n}")
}

/// What is read of a text: each host's name, or what is wrong, with the line.
fn read(text: &str) -> Vec<String> {
    let mut documents = Snapshots::new(text.as_bytes());
    let mut found = Vec::new();
    while let Some(read) = documents.next() {
        let line = documents.line();
        found.push(match read {
            Ok(inventory) => format!("{line} {}", inventory.host.unwrap()),
            Err(error) => {
                assert_eq!(error.line(), line);
                format!("{line} {error}")
            }
        });
    }
    assert!(documents.next().is_none());
    found
}

#[test]
fn documents_on_lines() {
    let (a, b) = (host("a"), host("b"));
    assert_eq!(read(&a), ["1 a"]);
    assert_eq!(read(&format!("{a}\n")), ["1 a"]);
    assert_eq!(read(&format!("{a}\n{b}")), ["1 a", "2 b"]);
    assert_eq!(read(&format!("\n \n{a}\r\n\n\t{b}\n\n")), ["3 a", "5 b"]);
}

#[test]
fn documents_of_several_lines() {
    let (a, b) = (pretty("a"), pretty("b"));
    let lines = a.lines().count();
    assert_eq!(read(&a), ["1 a"]);
    assert_eq!(read(&format!("{a}\n{b}\n")), ["1 a".to_owned(), format!("{} b", lines + 1)]);
    assert_eq!(
        read(&format!("{a}\n{}", host("c"))),
        ["1 a".to_owned(), format!("{} c", lines + 1)]
    );
    // As some programs write lists.
    let split = host("a").replace("[]", "[\n\n]");
    assert_eq!(read(&split), ["1 a"]);
}

#[test]
fn a_bad_document_hides_no_other() {
    let (a, b) = (host("a"), host("b"));
    let bad = a.replace("true", "7");
    let has_netlink = "has_netlink: invalid type: integer `7`, expected a boolean";
    assert_eq!(read(&bad), [format!("1 {has_netlink}")]);
    assert_eq!(
        read(&format!("{a}\n{bad}\n{b}")),
        ["1 a".to_owned(), format!("2 line 2: {has_netlink}"), "3 b".to_owned()]
    );
    let bad = pretty("a").replace("true", "7");
    let next = bad.lines().count() + 1;
    let found = read(&format!("{bad}\n{b}"));
    assert_eq!(found, [format!("1 {has_netlink}"), format!("{next} b")]);
}

/// A writer that was stopped.
#[test]
fn torn_documents() {
    let (a, b) = (host("a"), host("b"));
    for end in 1..b.len() {
        let torn = &b[..end];
        let found = read(&format!("{a}\n{torn}"));
        assert_eq!(found.len(), 2, "{torn}");
        assert_eq!(found[0], "1 a");
        assert!(found[1].starts_with("2 line 2: no JSON: EOF while"), "{found:?}");
        assert!(found[1].contains(" at line 2 column "), "{found:?}");
        // Or others wrote on.
        let found = read(&format!("{torn}\n{a}\n{b}\n"));
        assert_eq!(found[1..], ["2 a", "3 b"], "{torn}");
        assert!(found[0].starts_with("1 no JSON: "), "{found:?}");
    }
}

#[test]
fn what_is_no_list_of_documents() {
    assert_eq!(read(""), ["1 no JSON: EOF while parsing a value at line 1 column 0"]);
    assert_eq!(read("\n\n"), ["1 no JSON: EOF while parsing a value at line 1 column 0"]);
    let log = "uverbs: no\nuverbs: not either\n".repeat(1000);
    assert_eq!(read(&log), ["1 no JSON: expected value at line 1 column 1"]);
    let list = "1 invalid type: sequence, expected an object";
    assert_eq!(read("[]\n{}"), [list, "2 line 2: missing field `schema_version`"]);
    // What comes after it is read.
    let found = read(&format!("{}\n{log}{}\n", host("a"), host("b")));
    assert_eq!(found, ["1 a", "2 line 2: no JSON: expected value at line 2 column 1", "2002 b"]);
    let of_two = format!("{}{}", host("a"), host("b"));
    let found = read(&of_two);
    assert!(found[0].starts_with("1 no JSON: trailing characters at line 1"), "{found:?}");
    let other = host("a").replace(r#"version":1"#, r#"version":2"#).replace("true", "7");
    assert_eq!(read(&other), ["1 a snapshot of form 2; this program reads form 1"]);
}

#[test]
fn a_document_that_is_too_long() {
    let (a, b) = (host("a"), host("b"));
    let long = a.replace("\"a\"", &format!("\"{}\"", "x".repeat(LONGEST_SNAPSHOT)));
    let found = read(&format!("{a}\n{long}\n{b}\n"));
    assert_eq!(found, ["1 a", "2 line 2: longer than 16 MiB", "3 b"]);
    let line = " ".repeat(1 << 20) + "\n";
    let long = a.replace("[]", &format!("[\n{}]", line.repeat(17)));
    let found = read(&format!("{long}\n{b}\n"));
    assert_eq!(found[0], "1 longer than 16 MiB");
    assert!(found[1].ends_with(" b") && found.len() == 2, "{found:?}");
    let errno = |text: &str| Snapshots::new(text.as_bytes()).next().unwrap().unwrap_err().errno();
    assert_eq!((errno(&long), errno("{}")), (EFBIG, EINVAL));
}

#[test]
fn what_cannot_be_read_further() {
    struct Torn<'t>(&'t [u8]);

    impl io::Read for Torn<'_> {
        fn read(&mut self, to: &mut [u8]) -> io::Result<usize> {
            let count = self.0.read(to)?;
            if count == 0 { Err(io::Error::from_raw_os_error(5)) } else { Ok(count) }
        }
    }

    let text = format!("{}\n{}", host("a"), host("b"));
    let mut documents = Snapshots::new(io::BufReader::new(Torn(text.as_bytes())));
    assert_eq!(documents.next().unwrap().unwrap().host.as_deref(), Some("a"));
    let error = documents.next().unwrap().unwrap_err();
    assert_eq!((error.errno(), error.line()), (5, 2));
    assert!(documents.next().is_none());
}

/// The place of an error, wherever it is noted.
#[test]
fn places() {
    let place = |read: &str| place_after(read.as_bytes());
    assert_eq!(place(""), "");
    assert_eq!(place(r#"{"a":1"#), "a");
    assert_eq!(place(r#"{"a":[1,{"b":"x,]}\"","c":3"#), "a.1.c");
    assert_eq!(place(r#"{"a":[1,{"b":"x"}"#), "a.1");
    assert_eq!(place(r#"{"a":[1,{"b":"x"}]"#), "a");
    assert_eq!(place(r#"{"a":[1],"b":[[],[2"#), "b.1.0");
    assert_eq!(place(r#"}]],{"a":1,"#), "");
}

/// The inventory of a text.
fn inventory(text: &str) -> Inventory {
    Snapshots::new(text.as_bytes()).next().unwrap().unwrap()
}

#[test]
fn devices_that_were_not_wanted_are_kept() {
    let mut partial = inventory(&host("a"));
    assert!(!partial.is_partial());
    partial.others.push(crate::device::Device::named("mlx5_9"));
    let text = serde_json::to_string(&partial).unwrap();
    assert_eq!(inventory(&text), partial);
}

#[test]
fn a_setting_of_a_newer_version_is_left_out_and_said() {
    let setting = |text: &str| host("a").replace(r#""settings":[]"#, text);
    let new = inventory(&setting(
        r#""settings":[{"name":"NCCL_IB_NEW","value":"1"},
        {"name":"NCCL_IB_HCA","value":"x","since":"9.99"},{"name":"NCCL_IB_HCA","value":"y"}]"#,
    ));
    assert_eq!(new.settings, [Setting::new("NCCL_IB_HCA", "y", None)]);
    let texts: Vec<&str> =
        new.unread_settings.iter().map(|problem| problem.text.as_str()).collect();
    assert_eq!(texts.len(), 2);
    assert!(texts[0].starts_with("host: the setting NCCL_IB_NEW is left out"), "{texts:?}");
    assert!(texts[1].starts_with("host: the setting NCCL_IB_HCA is left out"), "{texts:?}");
    assert_eq!(inventory(&serde_json::to_string(&new).unwrap()), new);

    let second = SettingsReading::ALL[1].since().unwrap();
    let same =
        format!(r#""name":"NCCL_IB_HCA","value":"x","since":"{second}","before":"{second}""#);
    let wrong = setting(&format!(r#""settings":[{{{same}}}]"#));
    assert_eq!(read(&wrong), ["1 settings.0.before: no release before it"]);
}

/// Older versions wrote that no module is loaded.
#[test]
fn a_refusal_is_not_a_host_without_modules() {
    let refused = |errno: i32| {
        let text = host("a").replace(r#""absences":[]"#, r#""absences":[{"reason":"no_module"}]"#);
        let refusal = format!(r#","without_netlink":{{"error":"host: no","errno":{errno}}}}}"#);
        inventory(&(text.strip_suffix('}').unwrap().to_owned() + &refusal))
    };
    let known = refused(93);
    assert!(known.is_empty() && known.unread().is_empty() && known.absences.len() == 1);
    let unknown = refused(1);
    assert!(!unknown.is_empty() && unknown.absences.is_empty());
    assert_eq!(unknown.unread(), [crate::inventory::Unread::Host]);
}
