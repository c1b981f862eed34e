"""The real command in a process of its own, and a client that answers as fast as it can."""

import http.client
import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

ADDRESS = re.compile(r"http://127\.0\.0\.1:(\d+)/\?token=(\S+)")


class Command:
    """`labelmend review RUN` as a user starts it."""

    def __init__(self, run: Path, *words: str) -> None:
        command = [sys.executable, "-m", "labelmend", "review", str(run), "--no-browser", *words]
        self.process = subprocess.Popen(
            command,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            env=os.environ | {"OMP_NUM_THREADS": "1", "PYTHONUNBUFFERED": "1"},
        )
        assert self.process.stdout is not None
        said = []
        for line in self.process.stdout:
            said.append(line)
            if found := ADDRESS.search(line):
                break
        else:
            raise AssertionError(f"no address: {''.join(said)}")
        self.port, self.token = int(found[1]), found[2]
        self.address = found[0]

    def kill(self) -> None:
        """End it as a power failure would."""
        self.process.send_signal(signal.SIGKILL)
        self.process.communicate()

    def stop(self) -> tuple[int, str]:
        """End it as Ctrl-C does; gives the exit code and what was said since the address."""
        self.process.send_signal(signal.SIGINT)
        said, _ = self.process.communicate(timeout=20)
        return self.process.returncode, said

    def memory(self) -> int:
        """Resident memory in kilobytes."""
        status = Path(f"/proc/{self.process.pid}/status").read_text()
        return int(next(line.split()[1] for line in status.splitlines() if line.startswith("VmRSS")))


class Client:
    """A browser of one reviewer, on one connection."""

    def __init__(self, command: Command, reviewer: str = "ann") -> None:
        self.reviewer = reviewer
        self.connection = http.client.HTTPConnection("127.0.0.1", command.port, timeout=20)
        self.headers = {"Origin": f"http://127.0.0.1:{command.port}", "Content-Type": "application/json"}
        self.connection.request("GET", f"/?token={command.token}")
        reply = self.connection.getresponse()
        reply.read()
        self.headers["Cookie"] = (reply.getheader("set-cookie") or "").partition(";")[0]

    def post(self, path: str, value: Any) -> Any:
        self.connection.request("POST", path, json.dumps(value), self.headers)
        return self._reply()

    def get(self, path: str) -> Any:
        self.connection.request("GET", path, headers=self.headers)
        return self._reply()

    def decide(self, row: int, word: str, label: int | None = None) -> Any:
        return self.post("/api/decide", {"answers": [[row, word, label]], "reviewer": self.reviewer})

    def _reply(self) -> Any:
        reply = self.connection.getresponse()
        content = json.loads(reply.read())
        assert reply.status == 200, content
        return content
