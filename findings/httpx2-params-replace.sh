#!/usr/bin/env bash
# httpx2 2.16.2: `params` takes away the parameters that are in the URL already, also where it is empty.
# Guess: `params` is added to the query of the URL, as requests does it; an empty dict adds nothing.
# Seen: `GET /cost?starting_at=...` with `params={"page": 2}` asks for page 2 of everything, and with `params={}` for
# everything: the bill of another month, without an error. requests 2.34.2 keeps the query in both cases.
source "$(dirname "$0")/common.sh"
install httpx2==2.16.2 requests==2.34.2
cat >ask.py <<'END'
import httpx2, requests

url = "http://127.0.0.1/cost?starting_at=2026-11-01"
for params in ({"page": 2}, {}):
    for request in (requests.Request("GET", url, params=params).prepare(), httpx2.Request("GET", url, params=params)):
        print(str(request.url).removeprefix("http://127.0.0.1"), end="  ")
END
expect 'asked for by requests and by httpx2: with a parameter, and with none' \
    '/cost?starting_at=2026-11-01&page=2  /cost?page=2  /cost?starting_at=2026-11-01  /cost  ' "$(python ask.py)"
