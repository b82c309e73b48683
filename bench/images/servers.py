"""The two that are compared: our server with a host's image, nginx with a plain file. Each has one processor, or all of them.

nginx has one worker either way; ours has as many as it gives itself: one for each processor."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from api.procfs import memory, processor_time
from ingot.trust import Authority

FOLDER = Path(__file__).parents[1]
MISSING = "nginx is not installed, and the figures are beside its own: `apt-get install nginx-light`, or give --without-nginx"
ALL = os.sched_getaffinity(0)
SERVER_ON, CLIENT_ON = ({min(ALL)}, {max(ALL)})


@dataclass(frozen=True, slots=True)
class Server:
    name: str
    url: str
    pids: tuple[int, ...]

    @property
    def cpu(self) -> float:
        """Seconds of processor time that it has used."""
        return processor_time(self.pids)

    @property
    def memory(self) -> float:
        return memory(self.pids)


@contextmanager
def ingot(iso: Path, folder: Path, *, tls: bool, on: set[int]) -> Iterator[Server]:
    command = [sys.executable, str(FOLDER / "images" / "serving.py"), str(iso), str(folder)]
    command += ["--tls"] * tls
    python_path = os.pathsep.join(filter(None, [str(FOLDER), os.environ.get("PYTHONPATH")]))
    process = subprocess.Popen(
        command,
        env={**os.environ, "PYTHONPATH": python_path},
        stdout=subprocess.PIPE,
        text=True,
        preexec_fn=lambda: os.sched_setaffinity(0, on),
    )
    try:
        assert process.stdout is not None
        url, *workers = process.stdout.readline().split()
        yield Server("Ingot", url, (process.pid, *map(int, workers)))
    finally:
        process.terminate()
        process.wait()


@contextmanager
def nginx(iso: Path, folder: Path, *, tls: bool, on: set[int]) -> Iterator[Server]:
    """One worker, tuned for this: no log, the kernel sends files, connections are kept for any number of requests. Not with
    `tcp_nopush`: ranges then wait for an acknowledgement that their client delays."""
    program = shutil.which("nginx") or shutil.which("/usr/sbin/nginx")
    if program is None:
        raise SystemExit(MISSING)
    port = _free_port()
    prefix = folder / f"nginx-{port}"
    prefix.mkdir()
    certificate = Authority(folder / "ca").issue(folder, "images", ["127.0.0.1"])
    # The same cipher on both sides: OpenSSL's first choice, not the client's.
    secure = (
        f"ssl_certificate {certificate.cert_file}; ssl_certificate_key {certificate.key_file}; "
        "ssl_protocols TLSv1.2 TLSv1.3; ssl_prefer_server_ciphers on;"
    )
    configuration = prefix / "nginx.conf"
    configuration.write_text(f"""
        {"user root;" if os.geteuid() == 0 else ""}
        worker_processes 1; daemon off; pid {prefix}/pid; error_log stderr error;
        events {{ worker_connections 2048; }}
        http {{
            access_log off; sendfile on; keepalive_requests 1000000000; default_type application/octet-stream;
            client_body_temp_path {prefix}/body; proxy_temp_path {prefix}/proxy; fastcgi_temp_path {prefix}/fastcgi;
            uwsgi_temp_path {prefix}/uwsgi; scgi_temp_path {prefix}/scgi;
            server {{
                listen 127.0.0.1:{port}{" ssl" if tls else ""}; {secure if tls else ""}
                location / {{ root {iso.parent}; }}
            }}
        }}""")
    process = subprocess.Popen(
        [program, "-p", str(prefix), "-c", str(configuration)],
        preexec_fn=lambda: os.sched_setaffinity(0, on),
    )
    try:
        pids = _workers_of(process.pid, port)
        yield Server("nginx", f"http{'s' if tls else ''}://127.0.0.1:{port}/{iso.name}", pids)
    finally:
        process.terminate()
        process.wait()


def _free_port() -> int:
    with socket.socket() as asked:
        asked.bind(("127.0.0.1", 0))
        port: int = asked.getsockname()[1]
        return port


def _workers_of(master: int, port: int) -> tuple[int, ...]:
    give_up = time.monotonic() + 10
    while time.monotonic() < give_up:
        children = Path(f"/proc/{master}/task/{master}/children").read_text().split()
        with socket.socket() as probe:
            if children and probe.connect_ex(("127.0.0.1", port)) == 0:
                return master, *map(int, children)
        time.sleep(0.05)
    raise SystemExit("nginx does not answer; what it says stands above")
