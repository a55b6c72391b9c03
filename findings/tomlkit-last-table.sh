#!/usr/bin/env bash
# tomlkit 0.15.2: deleting the last table of an array of tables leaves an empty array at the top of the file.
# Guess: the `[[budget]]` block goes, and everything around it stays as it was.
# Seen: `budget = []` is written as the first line, and a comment behind the block, about what follows it, is gone.
source "$(dirname "$0")/common.sh"
install tomlkit==0.15.2
cat >ask.py <<'END'
import tomlkit

document = tomlkit.parse('[a]\nx = 1\n\n[[budget]]\nname = "one"\n# about what follows\n')
del document["budget"][0]
print(tomlkit.dumps(document).replace("\n", "|"))
END
expect 'the file afterwards' 'budget = []|[a]|x = 1||' "$(python ask.py)"
