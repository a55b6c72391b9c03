#!/usr/bin/env bash
# orjson 3.13.0: integers beyond 64 bits are read as floats, without an error.
# Guess: `orjson.loads` reads every JSON integer as `int`, as `json` and msgspec do, or refuses it, as `orjson.dumps` does.
# Seen: 2**64 + 1 becomes 1.8446744073709552e+19, so an id or an amount in tiny units comes out changed; `dumps` refuses it.
source "$(dirname "$0")/common.sh"
install orjson==3.13.0 msgspec==0.22.0
cat >ask.py <<'END'
import json
import msgspec, orjson

number = 2**64 + 1
for loads in (json.loads, msgspec.json.decode, orjson.loads):
    read = loads(str(number))
    print(type(read).__name__, int(read) - number, end="; ")
try:
    orjson.dumps(number)
except TypeError as error:
    print(error)
END
expect 'what json, msgspec and orjson read, and by how much it is off; what orjson says to the same number' \
    'int 0; int 0; float -1; Integer exceeds 64-bit range' "$(python ask.py)"
