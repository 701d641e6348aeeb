//! `guids`: of nodes, system images and ports.

use serde_json::json;

use crate::tree::Tree;

#[test]
fn an_element_for_each_port() {
    let tree = Tree::new();
    tree.with_infiniband();
    tree.with_switch();
    let expected = json!({
        "guids": [
            {
                "device": "mlx4_0", "node_guid": "0x0002c90300000004",
                "sys_image_guid": "0x0002c90300010004",
                "port_guids": ["0x0002c90300040001", null],
            },
            {
                "device": "sw0", "node_guid": "0x0002c9030000000c",
                "sys_image_guid": "0x0002c9030001000c",
                "port_guids": ["0x0002c903000c0000"],
            },
        ],
        "problems": [],
    });
    assert_eq!(tree.json(&["guids"]), expected);
    assert_eq!(tree.json(&["guids", "sw0"])["guids"], json!([expected["guids"][1]]));
    assert_eq!(
        tree.answer(&["guids"]),
        "\
DEVICE  NODE_GUID           SYS_IMAGE_GUID      PORT  PORT_GUID
mlx4_0  0x0002c90300000004  0x0002c90300010004  1     0x0002c90300040001
mlx4_0  0x0002c90300000004  0x0002c90300010004  2     -
sw0     0x0002c9030000000c  0x0002c9030001000c  0     0x0002c903000c0000
"
    );
}

#[test]
fn a_guid_that_cannot_be_read_is_null_and_a_problem() {
    let tree = Tree::new();
    tree.with_infiniband().port_again(1).file("gids/0", "nonsense");
    let run = tree.uverbs(&["guids", "--json"]);
    let answer: serde_json::Value = serde_json::from_str(&run.stdout).unwrap();
    assert_eq!(answer["guids"][0]["port_guids"], json!([null, null]));
    assert_eq!(answer["guids"][0]["node_guid"], "0x0002c90300000004");
    assert_eq!(answer["problems"].as_array().unwrap().len(), 1);
    assert_eq!(answer["problems"][0]["errno"], 71);
    assert_eq!(run.status, 3);
}
