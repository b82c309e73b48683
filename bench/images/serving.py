"""A process with our image server and one host's image in it: `serving.py ISO FOLDER [--tls]`. Prints the URL, and
which processes serve it."""

from __future__ import annotations

import argparse
import asyncio
from pathlib import Path

from images.live import keyfiles_of, maker_of, settings_in, sha256_of
from ingot.images.server import ImageWorkers, Names, Shelf
from ingot.images.server.workers import as_many_as_processors
from ingot.trust import Authority, ServingTls


async def serve(options: argparse.Namespace) -> None:
    maker = maker_of(options.iso, sha256_of(options.iso), settings_in(options.folder))
    made = maker.make("iso", hostname="host-0", keyfiles=keyfiles_of(0))
    shelf, name = Shelf(), Names.kept_in(options.folder / "names.key").name("host-0", "iso")
    shelf.put(name, made.image)
    tls = None
    if options.tls:
        authority = Authority(options.folder / "ca")
        tls = ServingTls(lambda: authority.issue(options.folder, "images", ["127.0.0.1"]))
    async with ImageWorkers(shelf, listen=("127.0.0.1", 0), tls=tls) as server:
        while len(server.pids) < as_many_as_processors():  # noqa: ASYNC110 - they come when they come
            await asyncio.sleep(0.05)
        await shelf.everywhere()
        url = f"http{'s' if tls else ''}://127.0.0.1:{server.port}/images/{name}/coreos.iso"
        print(url, *server.pids, flush=True)
        await asyncio.Event().wait()


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("iso", type=Path)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--tls", action="store_true")
    asyncio.run(serve(parser.parse_args()))


if __name__ == "__main__":
    main()
