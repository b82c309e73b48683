"""Ironic's own image services, run by the interpreter of Ironic's environment: what they make of a URL.

Takes a configuration file and prints, for each URL that it reads from its standard input, one line of JSON: how many bytes the
image has and what was downloaded of it, or the refusal. It imports nothing of ours.
"""

from __future__ import annotations

import json
import sys
import tempfile
from pathlib import Path
from typing import Any

from ironic.common import image_service, service
from ironic.common.exception import IronicException


def fetched(url: str) -> dict[str, Any]:
    """As the conductor does it before a deployment: ask about the image, then download it."""
    chosen = image_service.get_image_service(url)
    try:
        size = chosen.show(url)["size"]
        with tempfile.NamedTemporaryFile(delete=False) as file:
            chosen.download(url, file)
        return {"size": size, "content": Path(file.name).read_text()}
    except IronicException as error:
        return {"refused": str(error)}


def main() -> None:
    service.prepare_service("ironic_images", ["ironic-images", "--config-file", sys.argv[1]])
    for line in sys.stdin:
        print(json.dumps(fetched(line.strip())))


if __name__ == "__main__":
    main()
