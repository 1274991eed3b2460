"""Runs `weft bench` and reads what it says."""

import json
import subprocess

from machine import environment
from worker import PeersError


class Weft:
    def __init__(self, program, threads):
        self.program, self.threads = program, threads

    def run(self, *arguments, threads=None):
        threads = threads or self.threads
        command = [str(self.program), *map(str, arguments)]
        if arguments[0] == "bench":
            command += ["--threads", str(threads)]
        try:
            done = subprocess.run(command, env=environment(threads), text=True, capture_output=True, check=False)
        except OSError as error:
            raise PeersError(f"cannot run {self.program} ({error.strerror}); build it, or say --weft") from None
        if done.returncode != 0:
            raise PeersError(f"{' '.join(command)}: {done.stderr.strip() or done.returncode}")
        return done.stdout

    def bench(self, what, config, rounds, threads=None):
        return json.loads(self.run("bench", what, config, "--rounds", rounds, "--json", threads=threads))

    def export(self, what, config, folder):
        self.run("bench", what, config, "--export", folder)
