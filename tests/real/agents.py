"""How each released agent is started offline. `{port}`, `{home}` and `{npm}` are filled in."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Agent:
    name: str
    package: str  # npm's name and version
    command: tuple[str, ...]
    environment: dict[str, str]
    files: dict[str, str] = field(default_factory=dict)  # in its home
    sign_in: str | None = None  # the method to use when `session/new` wants authentication
    asking_mode: str | None = None  # the mode in which it asks the user, not a model, for permission
    versions: tuple[int, ...] = (1,)  # of the protocol


COMMON = {
    "PATH": "{npm}/node22/node_modules/node/bin:/usr/local/bin:/usr/bin:/bin",
    "HOME": "{home}",
    "TMPDIR": "{home}/tmp",
    "LANG": "C.UTF-8",
    "TERM": "dumb",
    "NO_COLOR": "1",
    "DO_NOT_TRACK": "1",
    "CI": "1",
    "NO_BROWSER": "1",
}

NODE = "22"

CLAUDE = Agent(
    "claude-agent-acp",
    "@agentclientprotocol/claude-agent-acp@0.101.0",
    ("node", "{npm}/claude-agent-acp/node_modules/@agentclientprotocol/claude-agent-acp/dist/index.js"),
    {
        "ANTHROPIC_BASE_URL": "http://127.0.0.1:{port}",
        "ANTHROPIC_API_KEY": "sk-none",
        "CLAUDE_CONFIG_DIR": "{home}/.claude",
        "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
        "DISABLE_TELEMETRY": "1",
        "DISABLE_ERROR_REPORTING": "1",
        "DISABLE_AUTOUPDATER": "1",
        "IS_SANDBOX": "1",
    },
    versions=(1, 2),
)

CODEX = Agent(
    "codex-acp",
    "@agentclientprotocol/codex-acp@2.6.0",
    ("node", "{npm}/codex-acp/node_modules/@agentclientprotocol/codex-acp/dist/index.js"),
    {"CODEX_HOME": "{home}/.codex", "MODEL_KEY": "none", "CODEX_API_KEY": "none", "MODEL_PROVIDER": "loopback"},
    {
        ".codex/config.toml": """\
model = "gpt-6.1-sol"
model_provider = "loopback"
check_for_update_on_startup = false
[analytics]
enabled = false
[feedback]
enabled = false
[model_providers.loopback]
name = "loopback"
base_url = "http://127.0.0.1:{port}/v1"
env_key = "MODEL_KEY"
wire_api = "responses"
request_max_retries = 1
stream_max_retries = 1
"""
    },
    sign_in="api-key",
    asking_mode="workspace-write",
    versions=(1, 2),
)

GEMINI = Agent(
    "gemini-cli",
    "@google/gemini-cli@0.61.0",
    ("node", "{npm}/gemini-cli/node_modules/@google/gemini-cli/bundle/gemini.js", "--acp"),
    {
        "GEMINI_API_KEY": "none",
        "GOOGLE_GEMINI_BASE_URL": "http://127.0.0.1:{port}",
        "GEMINI_CLI_NO_RELAUNCH": "true",
        "GEMINI_TELEMETRY_ENABLED": "false",
    },
    {
        ".gemini/settings.json": """\
{"security": {"auth": {"selectedType": "gemini-api-key"}, "folderTrust": {"enabled": false}},
 "general": {"enableAutoUpdate": false, "enableAutoUpdateNotification": false, "maxAttempts": 2},
 "privacy": {"usageStatisticsEnabled": false}, "telemetry": {"enabled": false}}
"""
    },
    sign_in="gemini-api-key",
)

QWEN = Agent(
    "qwen-code",
    "@qwen-code/qwen-code@0.24.4",
    ("node", "{npm}/qwen-code/node_modules/@qwen-code/qwen-code/cli.js", "--acp"),
    {
        "OPENAI_BASE_URL": "http://127.0.0.1:{port}/v1",
        "OPENAI_API_KEY": "none",
        "OPENAI_MODEL": "qwen3-coder-plus",
        "QWEN_TELEMETRY_ENABLED": "false",
    },
    {
        ".qwen/settings.json": """\
{"security": {"auth": {"selectedType": "openai"}}, "general": {"enableAutoUpdate": false, "disableAutoUpdate": true},
 "privacy": {"usageStatisticsEnabled": false}, "telemetry": {"enabled": false},
 "model": {"name": "qwen3-coder-plus", "generationConfig": {"maxRetries": 1}}}
"""
    },
    sign_in="openai",
    asking_mode="default",
)

OPENCODE = Agent(
    "opencode",
    "opencode-ai@1.18.33",
    ("{npm}/opencode/node_modules/opencode-linux-x64/bin/opencode", "acp"),
    {"OPENCODE_DISABLE_AUTOUPDATE": "1", "OPENCODE_DISABLE_MODELS_FETCH": "1"},
    {
        ".config/opencode/opencode.json": """\
{"autoupdate": false, "model": "loopback/mock-large", "small_model": "loopback/mock-small",
 "provider": {"loopback": {"npm": "@ai-sdk/openai-compatible", "name": "loopback",
  "options": {"baseURL": "http://127.0.0.1:{port}/v1", "apiKey": "none"},
  "models": {"mock-large": {"name": "Large", "limit": {"context": 200000, "output": 8000},
                            "cost": {"input": 3, "output": 15, "cache_read": 0.3}},
             "mock-small": {"name": "Small", "limit": {"context": 200000, "output": 8000},
                            "cost": {"input": 1, "output": 5, "cache_read": 0.1}}}}}}
"""
    },
)

GOOSE = Agent(
    "goose",
    "@aaif/goose-binary-linux-x64@1.52.0",
    ("{npm}/goose/node_modules/@aaif/goose-binary-linux-x64/bin/goose", "acp", "--with-builtin", "developer"),
    {
        "GOOSE_PROVIDER": "openai",
        "GOOSE_MODEL": "mock-small",
        "OPENAI_HOST": "http://127.0.0.1:{port}",
        "OPENAI_API_KEY": "none",
        "GOOSE_MODE": "approve",
        "GOOSE_DISABLE_KEYRING": "1",
    },
)

NANOCODER = Agent(
    "nanocoder",
    "@nanocollective/nanocoder@1.30.0",
    ("{npm}/nanocoder/node_modules/.bin/nanocoder", "--acp"),
    {},
    {
        ".config/nanocoder/agents.config.json": """\
{"nanocoder": {"providers": [{"name": "loopback", "sdkProvider": "anthropic", "apiKey": "none",
 "baseUrl": "http://127.0.0.1:{port}/v1", "models": ["claude-sonnet-4-5"]}]}}
""",
        ".config/nanocoder/nanocoder-preferences.json": """\
{"lastProvider": "loopback", "lastModel": "claude-sonnet-4-5"}
""",
    },
    asking_mode="normal",
)

AGENTS = {agent.name: agent for agent in (CLAUDE, CODEX, GEMINI, QWEN, OPENCODE, GOOSE, NANOCODER)}
