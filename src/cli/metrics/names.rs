//! The names of counters as metrics. Drivers choose their names, and some firmware does.

use uverbs::counter::{Counter, Group, Unit};

/// The family of a counter, without the ending of its kind, and its unit.
///
/// `uverbs_port_`, or `uverbs_device_` for one of a whole device; then `hw_` for a driver's own counter; then
/// the kernel's name in lower case, with `_` for what may not be in a name and between words; then `_bytes`
/// if it counts bytes and does not say so.
pub(crate) fn family(counter: &Counter, is_of_port: bool) -> (String, Option<&'static str>) {
    let mut name = String::from(if is_of_port { "uverbs_port_" } else { "uverbs_device_" });
    let own = if counter.group == Group::Pma {
        counter.name.strip_prefix("port_").unwrap_or(&counter.name)
    } else {
        name.push_str("hw_");
        &counter.name
    };
    let mut was_small = false;
    for c in own.chars() {
        let is_word = c.is_ascii_alphanumeric();
        if c.is_ascii_uppercase() && was_small || !is_word {
            push_break(&mut name);
        }
        if is_word {
            name.push(c.to_ascii_lowercase());
        }
        was_small = c.is_ascii_lowercase() || c.is_ascii_digit();
    }
    while let Some(rest) = name.strip_suffix("_total").or_else(|| name.strip_suffix('_')) {
        name.truncate(rest.len());
    }
    let is_bytes = matches!(counter.unit, Some(Unit::Bytes | Unit::Words));
    if is_bytes && !name.ends_with("_bytes") {
        name.push_str("_bytes");
    }
    (name, is_bytes.then_some("bytes"))
}

fn push_break(name: &mut String) {
    if !name.ends_with('_') {
        name.push('_');
    }
}

/// What a counter counts, for people.
pub(crate) fn help(counter: &Counter) -> String {
    let meaning = match (counter.group, counter.name.as_str()) {
        (Group::Pma, "port_xmit_data") => "Bytes that the port sent.",
        (Group::Pma, "port_rcv_data") => "Bytes that the port received.",
        (Group::Pma, "port_xmit_packets") => "Packets that the port sent.",
        (Group::Pma, "port_rcv_packets") => "Packets that the port received.",
        (Group::Pma, "port_xmit_wait") => {
            "Ticks of the device in which data waited for credits of the peer."
        }
        (Group::Pma, "link_downed") => "How often the link went down.",
        (Group::Pma, "symbol_error") => "Minor errors of the link on one lane or more.",
        (Group::Hardware, "out_of_buffer") => "Drops for want of receive work requests.",
        (Group::Hardware, "local_ack_timeout_err") => {
            "How often the timer of retransmissions ran out."
        }
        (Group::Hardware, "packet_seq_err") => "NAKs for a packet out of sequence that came in.",
        (Group::Hardware, "out_of_sequence") => "Packets that came in out of sequence.",
        (Group::Hardware, "np_cnp_sent") => {
            "Congestion notifications that were sent for marked packets."
        }
        (Group::Hardware, "np_ecn_marked_roce_packets") => {
            "Packets that came in marked for congestion."
        }
        (Group::Hardware, "rp_cnp_handled") => {
            "Congestion notifications that came in and slowed the sender."
        }
        _ => "",
    };
    if !meaning.is_empty() {
        return meaning.to_owned();
    }
    match counter.group {
        Group::Pma => format!("The counter {} of the performance management agent.", counter.name),
        _ => format!("The counter {} of the driver.", counter.name),
    }
}

#[cfg(test)]
mod tests {
    use uverbs::counter::CounterSource;

    use super::*;

    #[test]
    fn names_follow_the_conventions() {
        for (group, own, expected) in [
            (Group::Pma, "port_xmit_data", "uverbs_port_xmit_data_bytes"),
            (Group::Pma, "VL15_dropped", "uverbs_port_vl15_dropped"),
            (Group::Hardware, "link_downed", "uverbs_port_hw_link_downed"),
            (Group::Hardware, "tx_bytes", "uverbs_port_hw_tx_bytes"),
            (Group::Hardware, "ip4InOctets", "uverbs_port_hw_ip4_in_octets_bytes"),
            (Group::Hardware, "RNR sent", "uverbs_port_hw_rnr_sent"),
            (Group::Hardware, "x_total", "uverbs_port_hw_x"),
            (Group::Hardware, "é{\"\n__ y", "uverbs_port_hw_y"),
            (Group::Hardware, "", "uverbs_port_hw"),
        ] {
            let counter = Counter::new(own, group, CounterSource::Sysfs, None, 1);
            assert_eq!(family(&counter, true).0, expected, "{own}");
        }
        let counter = Counter::new("cmds", Group::Hardware, CounterSource::Sysfs, None, 1);
        assert_eq!(family(&counter, false).0, "uverbs_device_hw_cmds");
    }
}
