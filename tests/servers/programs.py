"""The programs of others, each on free loopback ports, with files in a folder of its own. Ended by their own handle."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from contextlib import closing, suppress
from pathlib import Path

import pytest

from tests.unit.features.redis.servers import free_port

HERE = Path(__file__).parent
LONGEST = 60
"""Seconds for a program to start or to end on a busy machine."""


class Program:
    """A server of somebody else's, which can be stopped and started again on the same port.

    :param folder: where its files go.
    :param port: of its own; a free one by default.
    """

    name = ""
    """Of the program on the ``PATH``; the test is skipped where it is missing."""

    def __init__(self, folder: Path, port: int | None = None) -> None:
        self.folder = folder / f"{type(self).__name__}-{time.monotonic_ns()}"
        self.folder.mkdir(mode=0o755)
        self.port = free_port() if port is None else port
        self.url = f"http://127.0.0.1:{self.port}"
        self.process: subprocess.Popen[bytes] | None = None

    def command(self) -> list[str]:
        """Return the command that runs it in the foreground."""
        raise NotImplementedError

    def __enter__(self) -> Program:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop(signal.SIGKILL)

    def start(self) -> None:
        """Start it, and wait until it accepts connections."""
        program, *arguments = self.command()
        found = shutil.which(program)
        if found is None:
            pytest.skip(f"{program} is not installed")
        with (self.folder / "output").open("ab") as output:
            self.process = subprocess.Popen(
                [found, *arguments], cwd=self.folder, stdout=output, stderr=output, start_new_session=True
            )
        until = time.monotonic() + LONGEST
        while True:
            with closing(socket.socket()) as probe:
                if probe.connect_ex(("127.0.0.1", self.port)) == 0:
                    return
            is_late = self.process.poll() is not None or time.monotonic() > until
            assert not is_late, (self.folder / "output").read_text(errors="replace")
            time.sleep(0.02)

    def stop(self, how: signal.Signals = signal.SIGTERM) -> None:
        """End it and its workers."""
        if self.process is not None:
            with suppress(ProcessLookupError):
                os.killpg(self.process.pid, how)
            self.process.wait(LONGEST)
            with suppress(ProcessLookupError):  # workers that outlive their master
                os.killpg(self.process.pid, signal.SIGKILL)
            self.process = None

    def restart(self, how: signal.Signals, down: float) -> None:
        """Have it away for so many seconds."""
        self.stop(how)
        time.sleep(down)
        self.start()

    def say(self, how: signal.Signals) -> None:
        """Send a signal to the master alone."""
        assert self.process is not None
        self.process.send_signal(how)


class Nginx(Program):
    """nginx.

    :param location: what it does with each request.
    :param keep: seconds of ``keepalive_timeout``.
    """

    name = "nginx"

    def __init__(self, folder: Path, location: str, keep: float = 75, port: int | None = None) -> None:
        super().__init__(folder, port)
        temporary = "".join(f"{part}_temp_path {self.folder}/{part};" for part in ("client_body", "proxy"))
        (self.folder / "nginx.conf").write_text(f"""
            daemon off; worker_processes 1; pid {self.folder}/pid; error_log {self.folder}/errors;
            {"user root;" if os.geteuid() == 0 else ""}
            events {{ worker_connections 1024; }}
            http {{ access_log off; {temporary}
                fastcgi_temp_path {self.folder}/f; uwsgi_temp_path {self.folder}/u; scgi_temp_path {self.folder}/s;
                keepalive_timeout {keep}s;
                server {{ listen 127.0.0.1:{self.port}; location / {{ {location} }} }} }}""")

    def command(self) -> list[str]:
        return [
            "nginx",
            "-p",
            str(self.folder),
            "-e",
            str(self.folder / "errors"),
            "-c",
            str(self.folder / "nginx.conf"),
        ]


class Haproxy(Program):
    """HAProxy in front of a port.

    :param more: lines of its ``defaults``.
    """

    name = "haproxy"

    def __init__(self, folder: Path, origin: int, more: str = "", keep: float = 75, port: int | None = None) -> None:
        super().__init__(folder, port)
        (self.folder / "conf").write_text(
            "global\n  maxconn 2000\n"
            f"defaults\n  mode http\n  timeout connect 2s\n  timeout client 60s\n  timeout server 60s\n"
            f"  timeout http-keep-alive {int(keep * 1000)}ms\n{more}\n"
            f"listen front\n  bind 127.0.0.1:{self.port}\n  server origin 127.0.0.1:{origin}\n"
        )

    def command(self) -> list[str]:
        return ["haproxy", "-db", "-f", str(self.folder / "conf")]


class Apache(Program):
    """Apache httpd.

    :param more: lines of its configuration.
    """

    name = "apache2"
    modules = "/usr/lib/apache2/modules"

    def __init__(self, folder: Path, more: str, keep: int = 5, port: int | None = None) -> None:
        super().__init__(folder, port)
        loaded = "".join(
            f"LoadModule {name}_module {self.modules}/mod_{name}.so\n"
            for name in (
                "mpm_event",
                "authz_core",
                "mime",
                "env",
                "filter",
                "deflate",
                "ratelimit",
                "proxy",
                "proxy_http",
            )
        )
        (self.folder / "conf").write_text(
            f"{loaded}ServerRoot {self.folder}\nServerName localhost\nListen 127.0.0.1:{self.port}\nPidFile pid\n"
            f"Mutex file:{self.folder}\nDefaultRuntimeDir {self.folder}\nErrorLog errors\nTypesConfig /dev/null\n"
            f"KeepAlive On\nKeepAliveTimeout {keep}\nMaxKeepAliveRequests 0\nUser nobody\nGroup nogroup\n{more}\n"
        )

    def command(self) -> list[str]:
        return ["apache2", "-DFOREGROUND", "-f", str(self.folder / "conf")]


class Squid(Program):
    """squid, which lets through what ``rules`` allow."""

    name = "squid"

    def __init__(self, folder: Path, rules: str) -> None:
        super().__init__(folder)
        if os.geteuid() == 0:
            self.folder.chmod(0o777)  # it goes on as a user of its own
        (self.folder / "conf").write_text(
            f"http_port 127.0.0.1:{self.port}\npid_filename none\ncache deny all\naccess_log none\n"
            f"cache_log {self.folder}/log\ncoredump_dir {self.folder}\nshutdown_lifetime 0 seconds\n"
            f"visible_hostname proxy\nnetdb_filename none\n{rules}\n"
        )

    def command(self) -> list[str]:
        return ["squid", "-N", "-f", str(self.folder / "conf")]


class Gunicorn(Program):
    """gunicorn with the application of ``ledger_app.py``, whose ledger is the file ``ledger``."""

    name = "gunicorn"

    def __init__(self, folder: Path, *options: str, port: int | None = None) -> None:
        pytest.importorskip("gunicorn")
        super().__init__(folder, port)
        self.options = options
        self.ledger = self.folder / "ledger"
        self.ledger.touch()

    def command(self) -> list[str]:
        bound = ["--bind", f"127.0.0.1:{self.port}", "--chdir", str(HERE), "--env", f"LEDGER={self.ledger}"]
        return [
            sys.executable,
            "-m",
            "gunicorn",
            *bound,
            "--no-control-socket",
            *self.options,
            "ledger_app:application",
        ]

    def applied(self) -> list[str]:
        """Return what was applied, in its order."""
        return self.ledger.read_text().split()


class Azurite(Program):
    """Azurite's blob service, from npm."""

    name = "azurite-blob"

    def command(self) -> list[str]:
        options = ["--blobHost", "127.0.0.1", "--blobPort", str(self.port), "--location", str(self.folder)]
        return ["azurite-blob", "--skipApiVersionCheck", "--disableTelemetry", "--silent", *options]


class Moto(Program):
    """The server of moto, a stand-in for AWS."""

    name = "moto_server"

    def command(self) -> list[str]:
        return ["moto_server", "-H", "127.0.0.1", "-p", str(self.port)]
