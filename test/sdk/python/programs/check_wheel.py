"""Checks the wheel at the path of the first argument by its own record, and prints what its metadata says as JSON."""

import base64
import csv
import email
import hashlib
import io
import json
import sys
import zipfile

with zipfile.ZipFile(sys.argv[1]) as wheel:
    broken = wheel.testzip()
    names = wheel.namelist()
    (folder,) = {name.split("/")[0] for name in names if ".dist-info/" in name}
    record = list(csv.reader(io.StringIO(wheel.read(f"{folder}/RECORD").decode())))
    wrong = []
    for name, digest, size in record:
        content = wheel.read(name)
        if name == f"{folder}/RECORD":
            continue
        sha256 = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
        if digest != f"sha256={sha256}" or int(size) != len(content):
            wrong.append(name)
    metadata = email.message_from_bytes(wheel.read(f"{folder}/METADATA"))
    tags = email.message_from_bytes(wheel.read(f"{folder}/WHEEL"))
    print(
        json.dumps(
            {
                "broken": broken,
                "wrong": wrong,
                "unrecorded": sorted(set(names) ^ {name for name, _, _ in record}),
                "repeated": len(names) - len(set(names)),
                "names": names,
                "name": metadata["Name"],
                "version": metadata["Version"],
                "requires_python": metadata["Requires-Python"],
                "requires": metadata.get_all("Requires-Dist"),
                "readme": metadata.get_payload(decode=True).decode("utf-8"),
                "tag": tags["Tag"],
            }
        )
    )
