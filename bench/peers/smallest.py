"""The smallest relay on uvloop: reads what is there, writes it on, and looks at nothing."""

import os
import subprocess
import sys

import uvloop

CHUNK = 1 << 16


def pump(loop: uvloop.Loop, source: int, sink: int) -> None:
    """Both descriptors block, so a write takes all of a chunk; where the sink is full the other direction waits."""

    def forward() -> None:
        data = os.read(source, CHUNK)
        if not data:
            loop.remove_reader(source)
            if sink == 1:
                loop.stop()
            else:
                os.close(sink)
        while data:
            data = data[os.write(sink, data) :]

    loop.add_reader(source, forward)


agent = subprocess.Popen(sys.argv[sys.argv.index("--") + 1 :], stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0)
if agent.stdin is None or agent.stdout is None:
    sys.exit(1)
loop = uvloop.new_event_loop()
pump(loop, 0, os.dup(agent.stdin.fileno()))
agent.stdin.close()
pump(loop, agent.stdout.fileno(), 1)
loop.run_forever()
sys.exit(agent.wait())
