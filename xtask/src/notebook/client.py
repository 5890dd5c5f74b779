"""Runs cells in a kernel of Jupyter for `cargo xtask notebook`, as every client of Jupyter does.

    client.py KERNELS NAME FOLDER LOG

Starts the kernel NAME, which KERNELS describes, in FOLDER. What its process writes past Jupyter, cargo's
progress among it, goes to LOG. Requests are lines of standard input, each a JSON object:

    {"run": CODE}   runs a cell. The answer is {"outputs": [..]}, as Jupyter keeps them in a notebook
    {"restart": ""} restarts the kernel. The answer is {}

Each is answered by a line of standard output, as is the start of the kernel, by {}. The answer is
{"ended": TEXT} if the kernel ended, or was ended since it took too long.
"""

import json
import queue
import signal
import sys
import time

from jupyter_client.kernelspec import KernelSpecManager
from jupyter_client.manager import KernelManager

# How long a cell and a start may take, in seconds. The first cell may compile Kiln.
LIMIT = 900


class Ended(Exception):
    """The kernel ended, or was ended."""


class Heard:
    """What a kernel says to all its clients."""

    def __init__(self):
        self.outputs = []
        self.busy = False

    def take(self, kind, content):
        if kind == "stream":
            stream = self.stream(content["name"])
            if stream is None:
                stream = {"output_type": kind, "name": content["name"], "text": ""}
                self.outputs.append(stream)
            stream["text"] += content["text"]
        elif kind in ("execute_result", "display_data", "error"):
            self.outputs.append({"output_type": kind, **content})
        elif kind == "status":
            self.busy |= content["execution_state"] == "busy"

    def stream(self, name):
        return next((output for output in self.outputs if output.get("name") == name), None)

    def text(self, name):
        return (self.stream(name) or {"text": ""})["text"]

    def outputs_before(self, end):
        for output in self.outputs:
            if output["output_type"] == "stream":
                output["text"] = output["text"].split(end)[0]
        return [output for output in self.outputs if output.get("text") != ""]


class Kernel:
    def __init__(self, kernels, name, folder, log):
        specs = KernelSpecManager(kernel_dirs=[kernels], ensure_native_kernel=False)
        self.manager = KernelManager(kernel_name=name, kernel_spec_manager=specs)
        self.client = None
        self.cells = 0
        self.place = {"cwd": folder, "stdout": log, "stderr": log}

    def start(self):
        self.manager.start_kernel(**self.place)
        self.connect()
        return {}

    def connect(self):
        self.client = self.manager.blocking_client()
        self.client.start_channels()
        try:
            self.client.wait_for_ready(timeout=LIMIT)
        except RuntimeError as error:
            raise Ended(f"it did not start: {error}") from error

    def restart(self):
        self.client.stop_channels()
        self.manager.restart_kernel(now=False)
        self.connect()
        return {}

    def end(self):
        if self.client:
            self.client.stop_channels()
        if self.manager.has_kernel:
            self.manager.shutdown_kernel(now=not self.manager.is_alive())

    def run(self, code):
        """Runs a cell and gives its outputs.

        Text of a cell arrives at any time, also after the kernel said that the cell is done, since
        threads of evcxr pass it on. So each cell is followed by one that prints a line on both streams;
        what comes before the line is the cell's.
        """
        self.cells += 1
        end = f"\1kiln: end of cell {self.cells}"
        follower = f'println!("\\u{{1}}{end[1:]}"); eprintln!("\\u{{1}}{end[1:]}");'
        deadline = time.monotonic() + LIMIT
        heard = Heard()
        self.hear_cell(code, heard, deadline)
        if not heard.busy:
            raise Ended("it did not say that it was busy, so nobody would see that it is")
        self.hear_cell(follower, heard, deadline)
        while not all(end in heard.text(name) for name in ("stdout", "stderr")):
            heard.take(*self.hear(deadline)[:2])
        return {"outputs": heard.outputs_before(end)}

    def hear_cell(self, code, heard, deadline):
        """Runs a cell until the kernel says that it is idle again."""
        cell = self.client.execute(code, allow_stdin=False)
        while True:
            kind, content, of = self.hear(deadline)
            heard.take(kind, content)
            if (kind, of) == ("status", cell) and content["execution_state"] == "idle":
                return

    def hear(self, deadline):
        """The next message to all clients: its kind, its content, and the cell that it is of."""
        while True:
            try:
                message = self.client.get_iopub_msg(timeout=1)
                cell = message["parent_header"].get("msg_id")
                return message["msg_type"], message["content"], cell
            except queue.Empty:
                if not self.manager.is_alive():
                    raise Ended("it ended") from None
                if time.monotonic() > deadline:
                    raise Ended(f"it was ended after {LIMIT} s") from None


def answers(kernel):
    """The answer to the start, then those to the requests on standard input."""
    yield kernel.start()
    for line in sys.stdin:
        request = json.loads(line)
        yield kernel.run(request["run"]) if "run" in request else kernel.restart()


def main():
    # A kernel is in a session of its own: whatever ends this program must end it, too.
    for ending in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(ending, lambda *_: sys.exit(1))
    *where, log = sys.argv[1:]
    with open(log, "ab", buffering=0) as log:
        kernel = Kernel(*where, log)
        try:
            for answer in answers(kernel):
                print(json.dumps(answer), flush=True)
        except Ended as ended:
            print(json.dumps({"ended": str(ended)}), flush=True)
        finally:
            kernel.end()


main()
