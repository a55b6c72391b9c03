"""Receivers of deploy/alertmanager/alertmanager.yml as they stand, but for where they send to."""

from __future__ import annotations

import json
from pathlib import Path
from urllib.request import Request, urlopen

import pytest
import yaml

from harness.daemons import SECONDS
from tests.real.alertmanager import alertmanager, webhook

pytestmark = pytest.mark.needs("prometheus-alertmanager", "amtool")

SHIPPED = Path(__file__).parents[2] / "deploy/alertmanager/alertmanager.yml"


def test_the_name_of_a_model_mentions_nobody_in_slack_and_is_no_link(tmp_path: Path) -> None:
    (chat,) = [each for each in yaml.safe_load(SHIPPED.read_text())["receivers"] if each["name"] == "chat"]
    with webhook() as slack:
        url = tmp_path / "slack_url"
        url.write_text(slack.url)
        chat["slack_configs"][0]["api_url_file"] = str(url)
        model = "<!channel> & <https://evil.example|prices>"
        about = {"summary": f"Model {model} has no price", "description": f"5 tokens of {model} were used."}
        alert = {"labels": {"alertname": "AcpProxyTokensUnpriced", "model": model}, "annotations": about}
        with alertmanager(tmp_path, slack, chat) as port:
            body, to_json = json.dumps([alert]).encode(), {"Content-Type": "application/json"}
            urlopen(Request(f"http://127.0.0.1:{port}/api/v2/alerts", body, to_json), timeout=SECONDS).close()
            (sent,) = slack.next()["attachments"]
    shown = "&lt;!channel> &amp; &lt;https://evil.example|prices>"
    assert (sent["title"], sent["fallback"]) == (f"Model {shown} has no price",) * 2
    assert sent["text"] == f"5 tokens of {shown} were used.\n"
