"""Whom a connection with TLS believes: the authority that the URL names, and nobody else."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from acp_proxy.ledger import LedgerError, LedgerUnavailableError, Query, open_ledger
from harness.postgres import asked, running
from harness.rows import row


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two authorities, one of which vouches for localhost."""
    if not shutil.which("openssl"):
        pytest.skip("needs openssl")
    place = tmp_path_factory.mktemp("tls")
    for name in ("ours", "others"):
        made = ("-keyout", f"{name}.key", "-out", f"{name}.crt", "-subj", f"/CN={name}", "-days", "2")
        says = ("-addext", "keyUsage=critical,keyCertSign,cRLSign")  # Python 3.13 believes no other
        openssl(place, "req", "-x509", "-newkey", "rsa:2048", "-nodes", *made, *says)
    wanted = ("-keyout", "server.key", "-out", "server.csr", "-subj", "/CN=localhost")
    openssl(place, "req", "-newkey", "rsa:2048", "-nodes", *wanted)
    (place / "names").write_text("subjectAltName=DNS:localhost")
    by = ("-CA", "ours.crt", "-CAkey", "ours.key", "-CAcreateserial", "-extfile", "names")
    openssl(place, "x509", "-req", "-in", "server.csr", "-out", "server.crt", "-days", "2", *by)
    return place


@pytest.fixture(scope="module")
def url(place: Path) -> Iterator[str]:
    with running() as server:
        url = server.create("ledger").replace("127.0.0.1", "localhost")
        open_ledger(url, journals=()).close()
        if not asked(server.url("postgres"), "SELECT 1 WHERE current_setting('ssl_library') <> ''"):
            pytest.skip("this server was built without TLS")
        server.stop("fast")
        for name in ("server.key", "server.crt"):
            server.put(place / name)
        server.start("ssl=on")
        yield f"{url}?sslmode=verify-full"


def test_a_server_is_known_by_an_authority_of_ones_own(url: str, place: Path) -> None:
    with closing(open_ledger(f"{url}&sslrootcert={place}/ours.crt", journals=())) as ledger:
        ledger.append([row()])
        assert len(list(ledger.rows(Query()))) == 1


def test_a_server_is_known_by_the_system_where_that_is_asked_for(
    url: str, place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As libpq 16 spells it."""
    with pytest.raises(LedgerUnavailableError, match=r"SSL error: certificate verify failed$"):
        open_ledger(f"{url}&sslrootcert=system", journals=())
    monkeypatch.setenv("SSL_CERT_FILE", f"{place}/ours.crt")
    open_ledger(f"{url}&sslrootcert=system", journals=()).close()


def test_another_authority_and_another_name_are_not_believed(url: str, place: Path) -> None:
    for tried, said in (
        (
            f"{url}&sslrootcert={place}/others.crt",
            "SSL error: certificate verify failed$",
        ),
        (
            f"{url.replace('localhost', '127.0.0.1')}&sslrootcert={place}/ours.crt",
            r'server certificate for "localhost" .*does not match host name "127\.0\.0\.1"$',
        ),
    ):
        with pytest.raises(LedgerUnavailableError, match=rf"^ledger postgresql://\S+/ledger: {said}"):
            open_ledger(tried, journals=())


def test_a_file_that_is_not_there_is_named(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(LedgerError, match=r': root certificate file "/nowhere/ca\.crt" does not exist$') as refused:
        open_ledger(f"{url}&sslrootcert=/nowhere/ca.crt", journals=())
    assert not isinstance(refused.value, LedgerUnavailableError)
    monkeypatch.setenv("PGSSLROOTCERT", "/nowhere/else.crt")
    with pytest.raises(LedgerError, match=r': root certificate file "/nowhere/else\.crt" does not exist$'):
        open_ledger(url, journals=())


def test_of_several_hosts_each_says_why_it_is_not_believed(url: str, place: Path) -> None:
    port = re.findall(r"localhost:(\d+)", url)[0]
    hosts = f"localhost:1,nowhere.invalid:{port},127.0.0.1:{port}"
    expected = f"localhost:1: Connection refused; nowhere.invalid:{port}: .+; "
    expected += rf'127.0.0.1:{port}: server certificate for "localhost" .*does not match host name "127\.0\.0\.1"$'
    with pytest.raises(LedgerUnavailableError, match=expected):
        open_ledger(f"{url.replace(f'localhost:{port}', hosts)}&sslrootcert={place}/ours.crt", journals=())
    right = url.replace(f"localhost:{port}", f"{hosts},localhost:{port}")
    open_ledger(f"{right}&sslrootcert={place}/ours.crt", journals=()).close()


def test_a_certificate_without_its_key_is_told_from_a_server_that_is_away(url: str, place: Path) -> None:
    with pytest.raises(LedgerError, match=r': certificate present, but not private key file ".*"$') as refused:
        open_ledger(f"{url}&sslrootcert={place}/ours.crt&sslcert={place}/ours.crt", journals=())
    assert not isinstance(refused.value, LedgerUnavailableError)


def openssl(place: Path, *arguments: str) -> None:
    subprocess.run(["openssl", *arguments], cwd=place, check=True, capture_output=True)
