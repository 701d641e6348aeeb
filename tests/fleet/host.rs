//! The snapshot of a host of a fleet.

/// A host with 8 ports of 8 GIDs, whose addresses and GUIDs are its own.
pub(crate) fn snapshot(host: usize) -> String {
    let (mut devices, mut interfaces) = (Vec::new(), Vec::new());
    for port in 0..8usize {
        let (ifindex, name) = (port + 2, format!("eth{port}"));
        let address = format!("10.{port}.{}.{}", host / 250, host % 250 + 1);
        let (local, global) = (format!("fe80::{port}:{host:x}"), format!("fd00:{port}::{host:x}"));
        let guid = format!("0x0002c9{host:08x}{port:02x}");
        let gids: Vec<String> = [&local, &format!("::ffff:{address}"), &global, &local]
            .into_iter()
            .enumerate()
            .flat_map(|(place, gid)| (0..2).map(move |version| (2 * place + version, gid)))
            .map(|(index, gid)| {
                format!(
                    r#"{{"port":1,"index":{index},"gid":"{gid}","gid_type":"roce_v{}","ifindex":{ifindex},"sysfs_netdev":null,"source":"ioctl","netdev":{{"index":{ifindex},"name":"{name}"}},"type_is_hidden":false}}"#,
                    index % 2 + 1
                )
            })
            .collect();
        devices.push(format!(
            r#"{{"name":"mlx5_{port}","index":{port},"node_type":1,"node_guid":"{guid}","sys_image_guid":"{guid}","fw_version":"28.39.2048","protocol":"roce","driver":1,"node":{{"name":"uverbs{port}","path":"/dev/infiniband/uverbs{port}","number":59328}},"node_mode":8630,"access":true,"hardware":{{}},"ports":[{{"number":1,"attributes":[{{"state":4,"phys_state":5,"link_layer":2,"max_mtu":5,"active_mtu":5,"lid":0,"sm_lid":0,"sm_sl":0,"lmc":0,"gid_tbl_len":255,"pkey_tbl_len":128,"active_width":2,"active_speed":128,"port_cap_flags":67174400,"port_cap_flags2":0,"max_msg_sz":1073741824,"bad_pkey_cntr":0,"qkey_viol_cntr":0,"max_vl_num":1,"subnet_timeout":0,"init_type_reply":0,"flags":1}},"ioctl"],"effective":4000,"guid":"{guid}","netdev":{{"index":{ifindex},"name":"{name}"}},"pkeys":null,"has_types":true}}],"gids":[{}]}}"#,
            gids.join(",")
        ));
        interfaces.push(format!(
            r#"{{"index":{ifindex},"name":"{name}","is_up":true,"is_lower_up":true,"mtu":9000,"mac":"02:11:22:33:44:55","addresses":[["{address}",16],["{global}",64],["{local}",64]]}}"#
        ));
    }
    format!(
        r#"{{"schema_version":1,"host":"node{host}","kernel":"6.12.0","modules":["ib_core","ib_uverbs"],"proprietary":[],"locked_memory":{{"limit":null,"is_exempt":false}},"shares_namespaces":true,"has_netlink":true,"devices":[{}],"absences":[],"interfaces":[{}],"settings":[],"problems":[]}}"#,
        devices.join(","),
        interfaces.join(",")
    )
}
