"""Workers: programs that stay, and answer one line of JSON on standard input with one on standard output.

So a peer loads, compiles and warms up once, and is then measured a round at a time, in turn with the others.
"""

import json
import os
import subprocess
import sys
import tempfile


class PeersError(Exception):
    """What the user is to read, in one line."""


def serve(commands):
    """Answers requests {"do": NAME} by commands[NAME]() until the input ends. Prints of others go to standard error."""
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    for line in sys.stdin:
        try:
            answer = commands[json.loads(line)["do"]]()
        except Exception as error:  # whatever it is, the other side reports it
            answer = {"error": " ".join(f"{type(error).__name__}: {error}".split())}
        print(json.dumps(answer), file=answers, flush=True)


class Worker:
    """A worker's process, seen from the other side; for use in a `with`."""

    def __init__(self, name, command, environment):
        self.name, self.errors = name, tempfile.TemporaryFile("w+")
        self.process = subprocess.Popen(command, env=environment, text=True, stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, stderr=self.errors)

    def ask(self, what):
        try:
            print(json.dumps({"do": what}), file=self.process.stdin, flush=True)
            line = self.process.stdout.readline()
        except BrokenPipeError:
            line = ""
        if not line:
            self.errors.seek(0)
            last = [text.strip() for text in self.errors if text.strip()][-1:] or ["no reason given"]
            raise PeersError(f"{self.name} ended with {self.process.wait()}: {last[0]}")
        answer = json.loads(line)
        if "error" in answer:
            raise PeersError(f"{self.name}: {answer['error']}")
        return answer

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.stdin.close()
        self.process.wait()
        self.process.stdout.close()
        self.errors.close()


def peak_resident_bytes():
    """The largest resident set of this process since reset_peak(), or since it began where that is not possible."""
    with open("/proc/self/status", encoding="ascii") as status:
        return next(int(line.split()[1]) * 1024 for line in status if line.startswith("VmHWM:"))


def reset_peak():
    try:
        with open("/proc/self/clear_refs", "w", encoding="ascii") as file:
            file.write("5")
    except OSError:
        pass
