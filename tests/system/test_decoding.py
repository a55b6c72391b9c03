"""Threads that ask for the decoder of one Struct at once get it, each of them."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]

# Structs that nobody has decoded yet, a pair for each try. What goes wrong here ends the process.
TRIES = """
import sys, threading
from msgspec import Struct
from acp_proxy.system.decoding import json_decoder

CLASSES = '''
class Line(Struct, frozen=True):
    model: str
    counts: list[tuple[int, int]]
    notes: dict[str, tuple[int | None, list[str]]]

class Row(Struct, frozen=True):
    id: str
    lines: list[Line]
    beside: dict[str, Line]
'''
LINE = b'{"model":"m","counts":[[1,2]],"notes":{"a":[1,["b"]]}}'
TEXT = b'{"id":"x","lines":[%s],"beside":{"c":%s}}' % (b",".join([LINE] * 500), LINE)
sys.setswitchinterval(1e-6)
done = []
for number in range(300):
    exec(CLASSES, globals())
    both = threading.Barrier(2)

    def ask():
        both.wait()
        done.append(len(json_decoder(Row).decode(TEXT).lines))

    threads = [threading.Thread(target=ask) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
print(len(done), set(done))
"""


def test_two_threads_that_decode_a_struct_for_the_first_time_both_get_it() -> None:
    done = subprocess.run([sys.executable, "-c", TRIES], cwd=ROOT, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, "600 {500}\n"), done.stderr
