# SPDX-License-Identifier: Apache-2.0
"""A real terminal for tests: a shell in a tmux server of its own, whose screen and modes can be read."""
import itertools
import os
import subprocess

from launched import wait_for


class Screen:
    """A window of a fixed size; `show` is what a person sees."""

    numbers = itertools.count()

    def __init__(self, folder, width, height):
        # Of its own: the server before may still be ending.
        self.socket = str(folder / f"tmux-{next(Screen.numbers)}.socket")
        environment = {**os.environ, "TERM": "xterm-256color", "LC_ALL": "C.UTF-8", "ENV": ""}
        environment.pop("TMUX", None)
        self.tmux("-f", "/dev/null", "new-session", "-d", "-s", "top", "-x", str(width), "-y", str(height),
                  "-c", str(folder), "env PS1='ready> ' sh", environment=environment)
        self.tmux("set-option", "-g", "window-size", "manual")
        self.wait("ready>")

    def tmux(self, *words, environment=None):
        done = subprocess.run(["tmux", "-S", self.socket, *words], capture_output=True, text=True,
                              env=environment, timeout=60)
        assert done.returncode == 0, f"tmux {' '.join(words)}: {done.stderr}"
        return done.stdout

    def run(self, command):
        self.tmux("send-keys", "-t", "top", "-l", command)
        self.key("Enter")

    def key(self, *names):
        self.tmux("send-keys", "-t", "top", *names)

    def resize(self, width, height):
        self.tmux("resize-window", "-t", "top", "-x", str(width), "-y", str(height))

    def show(self, *options):
        return self.tmux("capture-pane", "-p", *options, "-t", "top").rstrip("\n").split("\n")

    def wait(self, text, present=True):
        """The screen once it holds the text (or does not)."""

        def look():
            lines = self.show()
            return lines if any(text in line for line in lines) == present else None

        return wait_for(look, f"{'' if present else 'no '}{text!r} on the screen:\n" + "\n".join(self.show()))

    def ask(self, form):
        return self.tmux("display-message", "-p", "-t", "top", form).strip()

    def close(self):
        subprocess.run(["tmux", "-S", self.socket, "kill-server"], capture_output=True)
