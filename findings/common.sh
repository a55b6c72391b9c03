# What every finding begins with: a temporary directory that is removed, with a Python of its own.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"

install() { # pinned packages from PyPI
    python3 -m venv .venv
    .venv/bin/python -m pip install --quiet --no-compile --disable-pip-version-check "$@"
}

install_npm() { # pinned packages from npm, and what talks to agents
    cp "$here/talk.py" .
    npm install --silent --no-audit --no-fund --prefix . "$@"
    PATH=$work/node_modules/node/bin:$PATH # where node itself is one of them
}

python() { env -u PYTHONPATH "$([ -d .venv ] && echo .venv/bin/python || echo python3)" "$@"; }

expect() { # a description, what is expected, and what was seen
    printf '%s: %s\n' "$1" "$3"
    if [ "$2" != "$3" ]; then
        printf 'CHANGED: expected %s\n' "$2"
        exit 1
    fi
}
