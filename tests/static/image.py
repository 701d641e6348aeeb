"""tests/static/image.py LAYOUT OUT NAME=PLATFORM…

Reads an OCI image layout from its index down to the layers, by the specification alone: every
descriptor's digest and size are those of what it names, these platforms (amd64, arm/v7) are there, and each
runs the program. Unpacks the layers of each into OUT/NAME.
"""

import gzip
import hashlib
import io
import json
import pathlib
import shutil
import sys
import tarfile

layout, out = map(pathlib.Path, sys.argv[1:3])
OCI = "application/vnd.oci.image."
MACHINES = {platform: name for name, platform in (word.split("=") for word in sys.argv[3:])}


def blob(descriptor, *kinds):
    assert descriptor["mediaType"] in [OCI + kind for kind in kinds], descriptor
    algorithm, digest = descriptor["digest"].split(":")
    data = (layout / "blobs" / algorithm / digest).read_bytes()
    assert algorithm == "sha256" and hashlib.sha256(data).hexdigest() == digest, descriptor
    assert len(data) == descriptor["size"], descriptor
    return data


assert json.loads((layout / "oci-layout").read_text()) == {"imageLayoutVersion": "1.0.0"}
(top,) = json.loads((layout / "index.json").read_text())["manifests"]
found = set()
for entry in json.loads(blob(top, "index.v1+json"))["manifests"]:
    manifest = json.loads(blob(entry, "manifest.v1+json"))
    config = json.loads(blob(manifest["config"], "config.v1+json"))
    assert config["os"] == "linux" == entry["platform"]["os"]
    platform = entry["platform"]["architecture"]
    assert config["architecture"] == platform
    # 32-bit Arm has several, and only there do we name one.
    if platform == "arm":
        platform += "/" + entry["platform"]["variant"]
    assert config["config"]["Entrypoint"] == ["/uverbs"] and "Cmd" not in config["config"]
    assert config["config"]["User"] == "65534:65534"
    machine = MACHINES[platform]
    found.add(machine)
    shutil.rmtree(out / machine, ignore_errors=True)
    (out / machine).mkdir(parents=True)
    assert len(manifest["layers"]) == len(config["rootfs"]["diff_ids"]) == 1
    for layer, plain in zip(manifest["layers"], config["rootfs"]["diff_ids"]):
        data = blob(layer, "layer.v1.tar", "layer.v1.tar+gzip")
        if layer["mediaType"].endswith("+gzip"):
            data = gzip.decompress(data)
        assert "sha256:" + hashlib.sha256(data).hexdigest() == plain
        with tarfile.open(fileobj=io.BytesIO(data)) as tar:
            for member in tar:
                assert (member.uid, member.gid) == (0, 0) and member.isfile(), member
            tar.extractall(out / machine)
    print(f"{machine}: {entry['digest']}, created {config['created']}")
assert found == set(MACHINES.values()), found
