#compdef acp-proxy
# Made by scripts/build-completion, of options ec8f427523338818
# It begins with what shtab 1.13.0 makes (https://github.com/tqdm/shtab, Apache-2.0).

_shtab_acp_proxy_commands() {
  local _commands=(
    budget:'Budgets: what is left, and how to allow more for a while.'
    completion:'A script that lets a shell complete commands and options.'
    config:'Every value of the configuration, and where it comes from.'
    demo:'A session against a bundled agent, without network or key.'
    doctor:'Check configuration, ledger and catalog.'
    export:'Spend in the columns of FinOps FOCUS, for chargeback.'
    hub:'One service for a team: sign-in, budgets and reports, with no database password on any machine.'
    import:'What agents wrote of their calls into files of their own, also from before acp-proxy.'
    ledger:'Copy a ledger into another one.'
    login:'Sign this machine in at a hub.'
    logout:'End what login began, at the hub as well.'
    metrics:'The metrics for Prometheus, in a file for node_exporter or on stdout.'
    notify:'Try the webhooks for notifications.'
    prices:'What models cost.'
    reconcile:'A provider'"'"'s bill beside the ledger, and why they differ.'
    report:'What was spent.'
    run:'Relay an agent and meter it. Everything after -- belongs to the agent; its exit status is the exit status.'
    serve:'The ledger as a page for browsers, and metrics for Prometheus.'
    session:'One session: its turns, tokens, cost, and context as a plot.'
    setup:'Put the agents of an editor behind acp-proxy.'
    status:'One line: today'"'"'s spend, what is left of a budget, the last turn.'
    whoami:'Whom a hub knows you as: user, role, team, organisation.'
  )
  _describe 'acp-proxy commands' _commands
}

_shtab_acp_proxy_budget_commands() {
  local _commands=(
    add:'Add a budget to the configuration.'
    approve:'Give what a request asks for, or less, until an end.'
    check:'Whether a prompt would be admitted now: status 0, or 3 when not.'
    deny:'Give nothing for a request, and say why.'
    grant:'Allow more for a while.'
    grants:'Who granted what, and why.'
    history:'Who changed which budget or price of a hub, when, and how.'
    list:'What is used, held and left of each budget; its reset.'
    remove:'Remove a budget from the configuration.'
    request:'Ask a team'"'"'s hub for more.'
    requests:'Who asked for more, and what became of it.'
    set:'Change a budget of the configuration.'
    simulate:'Which past turns the budgets of --config would have refused.'
    undo:'Take back the last add, set or remove.'
  )
  _describe 'acp-proxy budget commands' _commands
}

_shtab_acp_proxy_hub_commands() {
  local _commands=(
    audit:'The log of changes.'
    create:'Make one: it is shown once.'
    export:'All of it as lines of JSON.'
    keys:'Keys that access tokens are signed with.'
    list:'All that were made.'
    retention:'Remove now what is older than [retention] of hub.toml says.'
    revoke:'End one, and what it signed in.'
    rotate:'Sign with a new one from now on.'
    token:'Tokens for people without an account at the provider, and for programs.'
    verify:'Whether it was changed: status 1 if so.'
  )
  _describe 'acp-proxy hub commands' _commands
}

_shtab_acp_proxy_hub_audit_commands() {
  local _commands=(
    export:'All of it as lines of JSON.'
    verify:'Whether it was changed: status 1 if so.'
  )
  _describe 'acp-proxy hub audit commands' _commands
}

_shtab_acp_proxy_hub_keys_commands() {
  local _commands=(
    rotate:'Sign with a new one from now on.'
  )
  _describe 'acp-proxy hub keys commands' _commands
}

_shtab_acp_proxy_hub_token_commands() {
  local _commands=(
    create:'Make one: it is shown once.'
    list:'All that were made.'
    revoke:'End one, and what it signed in.'
  )
  _describe 'acp-proxy hub token commands' _commands
}

_shtab_acp_proxy_ledger_commands() {
  local _commands=(
    copy:'Copy all rows and grants into another ledger, which keeps what it has.'
    forget-user:'Put an alias in place of a user'"'"'s name and machines, in all that a ledger or a hub keeps.'
  )
  _describe 'acp-proxy ledger commands' _commands
}

_shtab_acp_proxy_notify_commands() {
  local _commands=(
    test:'Send a sample through each channel: status 1 when one fails.'
  )
  _describe 'acp-proxy notify commands' _commands
}

_shtab_acp_proxy_prices_commands() {
  local _commands=(
    cost:'What tokens cost.'
    list:'Every model of the catalog.'
    remove:'Remove a hub'"'"'s price of a model.'
    set:'Set a hub'"'"'s price of a model.'
    show:'What a model id resolves to, and its prices.'
  )
  _describe 'acp-proxy prices commands' _commands
}

_shtab_acp_proxy_options=(
  "(- : *)"{-h,--help}"[show this help message and exit]"
  "(- : *)"{-V,--version}"[show program\'s version number and exit]"
  "--config=[in place of the user\'s configuration file]:FILE:_files"
  "--ledger=[the ledger\: a file, or postgresql\:\/\/HOST\/DATABASE]:PATH:_files"
)

# guard to ensure default positional specs are added only once per session
_shtab_acp_proxy_defaults_added=0

_shtab_acp_proxy_budget_options=(
  "(- : *)"{-h,--help}"[show this help message and exit]"
  "--config=[in place of the user\'s configuration file]:FILE:_files"
  "--ledger=[the ledger\: a file, or postgresql\:\/\/HOST\/DATABASE]:PATH:_files"
)

# guard to ensure default positional specs are added only once per session
_shtab_acp_proxy_budget_defaults_added=0

_shtab_acp_proxy_budget_add_options=(
  "(- : *)"{-h,--help}"[show this help message and exit]"
  "--config=[in place of the user\'s configuration file]:FILE:_files"
  "--ledger=[the ledger\: a file, or postgresql\:\/\/HOST\/DATABASE]:PATH:_files"
  "--amount=[the limit as an amount of money]:N:"
  "--tokens=[the limit in tokens]:N:"
  "--turns=[the limit in turns]:N:"
  "--plan=[the limit as a percent of a plan\'s window\: five_hour, seven_day \…]:WINDOW:"
  "--percent=[of the plan\'s window\; by default 100]:N:"
  "--on-overage=[of a plan\: whether prompts go that are paid beside it]:on_overage:(allow deny)"
  "--currency=[of the amount\; by default USD]:CODE:"
  "--window=[turn, session, day, week, month, quarter, total, rolling\:24h, or a length such as 5h]:WINDOW:"
  "--per=[one for each user, team, project or agent]:KEY:(user team project agent)"
  "*--scope[only what matches\: team\=core, model\=\*opus\*\; may be repeated]:KEY=VALUE:"
  "--timezone=[of its days, weeks and months\; by default UTC]:ZONE:"
  "--mode=[shadow, warn or enforce (default)]:MODE:(shadow warn enforce)"
  "--on-exceed=[what happens to a turn that goes beyond it]:WHAT:(finish_turn deny_next_tool cancel)"
  "--dry-run[show the change, and write nothing]"
  "--own[with a hub\: your own configuration, not what holds for everybody]"
  "--if-version=[with a hub\: only if that is the last version of its history]:N:"
  ":the name of the budget:"
)

# guard to ensure default positional specs are added only once per session
_shtab_acp_proxy_budget_add_defaults_added=0

_shtab_acp_proxy_budget_approve_options=(
  "(- : *)"{-h,--help}"[show this help message and exit]"
  "--config=[in place of the user\'s configuration file]:FILE:_files"
  "--ledger=[the ledger\: a file, or postgresql\:\/\/HOST\/DATABASE]:PATH:_files"
  "--reason=[for who has asked\; it is kept]:TEXT:"
  "--amount=[by default what was asked for]:N:"
  "--for=[how long\: 90m, 2h, 7d]:DURATION:"
  ":of the request, or how it begins:(last)"
)

# guard to ensure default positional specs are added only once per session
_shtab_acp_proxy_budget_approve_defaults_added=0

_shtab_acp_proxy_budget_check_options=(
  "(- : *)"{-h,--help}"[show this help message and exit]"
  "--config=[in place of the user\'s configuration file]:FILE:_files"
  "--ledger=[the ledger\: a file, or postgresql\:\/\/HOST\/DATABASE]:PATH:_files"
  "--agent=[the prompt\'s agent\; by default not known]:NAME:"
  "--model=[the prompt\'s model\; by default not known]:NAME:"
  "--user=[the prompt\'s user\; by default yours]:NAME:"
  "--team=[the prompt\'s team\; by default yours]:NAME:"
  "--project=[the prompt\'s project\; by default yours]:NAME:"
)

# guard to ensure default positional specs are added only once per session
_shtab_acp_proxy_budget_check_defaults_added=0

_shtab_acp_proxy_budget_deny_options=(
  "(- : *)"{-h,--help}"[show this help message and exit]"
  "--config=[in place of the user\'s configuration file]:FILE:_files"
  "--ledger=[the ledger\: a file, or postgresql\:\/\/HOST\/DATABASE]:PATH:_files"
  "--reason=[for who has asked\; it is kept]:TEXT:"
  ":of the request, or how it begins:(last)"
)

# guard to ensure default positional specs are added only once per session
_shtab_acp_proxy_budget_deny_defaults_added=0

_shtab_acp_proxy_budget_grant_options=(
  "(- : *)"{-h,--help}"[show this help message and exit]"
  "--config=[in place of the user\'s configuration file]:FILE:_files"
  "--ledger=[the ledger\: a file, or postgresql\:\/\/HOST\/DATABASE]:PATH:_files"
  "--amount=[in the budget\'s currency, or tokens or turns]:N:"
  "--reason=[why\; it is kept]:TEXT:"
  "--layer=[whose, if two budgets have this name\: a file\'s or the hub\'s]:layer:(admin user hub)"
  "--for-user=[if the budget is per user\: which one, by default yours\; \* for all]:NAME:"
  "--for-team=[if the budget is per team\: which one, by default yours\; \* for all]:NAME:"
  "--for-project=[if the budget is per project\: which one, by default yours\; \* for all]:NAME:"
  "--for-agent=[if the budget is per agent\: which one, by default yours\; \* for all]:NAME:"
  "--for=[how long\: 90m, 2h, 7d]:DURATION:"
  ":the name of the budget:"
)

# guard to ensure default positional specs are added only once per session
_shtab_acp_proxy_budget_grant_defaults_added=0

_shtab_acp_proxy_budget_grants_options=(
  "(- : *)"{-h,--help}"[show this help message and exit]"
  "--config=[in place of the user\'s configuration file]:FILE:_files"
  "--ledger=[the ledger\: a file, or postgresql\:\/\/HOST\/DATABASE]:PATH:_files"
  "--json[exact figures, for programs]"
)

# guard to ensure default positional specs are added only once per session
_shtab_acp_proxy_budget_grants_defaults_added=0

_shtab_acp_proxy_budget_history_options=(
  "(- : *)"{-h,--help}"[show this help message and exit]"
  "--config=[in place of the user\'s configuration file]:FILE:_files"
  "--ledger=[the ledger\: a file, or postgresql\:\/\/HOST\/DATABASE]:PATH:_files"
  "--json[exact figures, for programs]"
  ":only of this budget or model:"
)

# guard to ensure default positional specs are added only once per session
_shtab_acp_proxy_budget_history_defaults_added=0

_shtab_acp_proxy_budget_list_options=(
  "(- : *)"{-h,--help}"[show this help message and exit]"
  "--config=[in place of the user\'s configuration file]:FILE:_files"
  "--ledger=[the ledger\: a file, or postgresql\:\/\/HOST\/DATABASE]:PATH:_files"
  "--json[exact figures, for programs]"
)

# guard to ensure default positional specs are added only once per session
_shtab_acp_proxy_budget_list_defaults_added=0

_shtab_acp_proxy_budget_remove_options=(
  "(- : *)"{-h,--help}"[show this help message and exit]"
  "--config=[in place of the user\'s configuration file]:FILE:_files"
  "--ledger=[the ledger\: a file, or postgresql\:\/\/HOST\/DATABASE]:PATH:_files"
  "--dry-run[show the change, and write nothing]"
  "--own[with a hub\: your own configuration, not what holds for everybody]"
  "--if-version=[with a hub\: only if that is the last version of its history]:N:"
  ":the name of the budget:"
)

# guard to ensure default positional specs are added only once per session
_shtab_acp_proxy_budget_remove_defaults_added=0

_shtab_acp_proxy_budget_request_options=(
  "(- : *)"{-h,--help}"[show this help message and exit]"
  "--config=[in place of the user\'s configuration file]:FILE:_files"
  "--ledger=[the ledger\: a file, or postgresql\:\/\/HOST\/DATABASE]:PATH:_files"
  "--amount=[in the budget\'s currency, or tokens or turns]:N:"
  "--reason=[why\; it is kept]:TEXT:"
  "--layer=[whose, if two budgets have this name\: a file\'s or the hub\'s]:layer:(admin user hub)"
  "--for-project=[if the budget is per project\: which one]:NAME:"
  "--for-agent=[if the budget is per agent\: which one]:NAME:"
  ":the name of the budget:"
)

# guard to ensure default positional specs are added only once per session
_shtab_acp_proxy_budget_request_defaults_added=0

_shtab_acp_proxy_budget_requests_options=(
  "(- : *)"{-h,--help}"[show this help message and exit]"
  "--config=[in place of the user\'s configuration file]:FILE:_files"
  "--ledger=[the ledger\: a file, or postgresql\:\/\/HOST\/DATABASE]:PATH:_files"
  "--json[exact figures, for programs]"
  "--own[your own only]"
)

# guard to ensure default positional specs are added only once per session
_shtab_acp_proxy_budget_requests_defaults_added=0

_shtab_acp_proxy_budget_set_options=(
  "(- : *)"{-h,--help}"[show this help message and exit]"
  "--config=[in place of the user\'s configuration file]:FILE:_files"
  "--ledger=[the ledger\: a file, or postgresql\:\/\/HOST\/DATABASE]:PATH:_files"
  "--amount=[the limit as an amount of money]:N:"
  "--tokens=[the limit in tokens]:N:"
  "--turns=[the limit in turns]:N:"
  "--plan=[the limit as a percent of a plan\'s window\: five_hour, seven_day \…]:WINDOW:"
  "--percent=[of the plan\'s window\; by default 100]:N:"
  "--on-overage=[of a plan\: whether prompts go that are paid beside it]:on_overage:(allow deny)"
  "--currency=[of the amount\; by default USD]:CODE:"
  "--window=[turn, session, day, week, month, quarter, total, rolling\:24h, or a length such as 5h]:WINDOW:"
  "--per=[one for each user, team, project or agent]:KEY:(user team project agent)"
  "*--scope[only what matches\: team\=core, model\=\*opus\*\; may be repeated]:KEY=VALUE:"
  "--timezone=[of its days, weeks and months\; by default UTC]:ZONE:"
  "--mode=[shadow, warn or enforce (default)]:MODE:(shadow warn enforce)"
  "--on-exceed=[what happens to a turn that goes beyond it]:WHAT:(finish_turn deny_next_tool cancel)"
  "--dry-run[show the change, and write nothing]"
  "--own[with a hub\: your own configuration, not what holds for everybody]"
  "--if-version=[with a hub\: only if that is the last version of its history]:N:"
  ":the name of the budget:"
)

# guard to ensure default positional specs are added only once per session
_shtab_acp_proxy_budget_set_defaults_added=0

_shtab_acp_proxy_budget_simulate_options=(
  "(- : *)"{-h,--help}"[show this help message and exit]"
  "--config=[in place of the user\'s configuration file]:FILE:_files"
  "--ledger=[the ledger\: a file, or postgresql\:\/\/HOST\/DATABASE]:PATH:_files"
  "--json[exact figures, for programs]"
  "--since=[from then on, by default all\: 2026-11-01, 2026-11, 2026-W47, today, yesterday, week, month, an RFC 3339 time, or 7d before now (also m, h, w)]:TIME:"
)

# guard to ensure default positional specs are added only once per session
_shtab_acp_proxy_budget_simulate_defaults_added=0

_shtab_acp_proxy_budget_undo_options=(
  "(- : *)"{-h,--help}"[show this help message and exit]"
  "--config=[in place of the user\'s configuration file]:FILE:_files"
  "--ledger=[the ledger\: a file, or postgresql\:\/\/HOST\/DATABASE]:PATH:_files"
  "--dry-run[show the change, and write nothing]"
  "--own[with a hub\: your own configuration, not what holds for everybody]"
  "--if-version=[with a hub\: only if that is the last version of its history]:N:"
)

# guard to ensure default positional specs are added only once per session
_shtab_acp_proxy_budget_undo_defaults_added=0

_shtab_acp_proxy_completion_options=(
  "(- : *)"{-h,--help}"[show this help message and exit]"
  "--config=[in place of the user\'s configuration file]:FILE:_files"
  "--ledger=[the ledger\: a file, or postgresql\:\/\/HOST\/DATABASE]:PATH:_files"
  ":shell:(bash zsh fish)"
)

# guard to ensure default positional specs are added only once per session
_shtab_acp_proxy_completion_defaults_added=0

_shtab_acp_proxy_config_options=(
  "(- : *)"{-h,--help}"[show this help message and exit]"
  "--config=[in place of the user\'s configuration file]:FILE:_files"
  "--ledger=[the ledger\: a file, or postgresql\:\/\/HOST\/DATABASE]:PATH:_files"
  "--json[for programs]"
)

# guard to ensure default positional specs are added only once per session
_shtab_acp_proxy_config_defaults_added=0

_shtab_acp_proxy_demo_options=(
  "(- : *)"{-h,--help}"[show this help message and exit]"
  "--config=[in place of the user\'s configuration file]:FILE:_files"
  "--ledger=[the ledger\: a file, or postgresql\:\/\/HOST\/DATABASE]:PATH:_files"
)

# guard to ensure default positional specs are added only once per session
_shtab_acp_proxy_demo_defaults_added=0

_shtab_acp_proxy_doctor_options=(
  "(- : *)"{-h,--help}"[show this help message and exit]"
  "--config=[in place of the user\'s configuration file]:FILE:_files"
  "--ledger=[the ledger\: a file, or postgresql\:\/\/HOST\/DATABASE]:PATH:_files"
  "--rebuild[recompute all totals of the ledger from its rows\; writers wait meanwhile]"
)

# guard to ensure default positional specs are added only once per session
_shtab_acp_proxy_doctor_defaults_added=0

_shtab_acp_proxy_export_options=(
  "(- : *)"{-h,--help}"[show this help message and exit]"
  "--config=[in place of the user\'s configuration file]:FILE:_files"
  "--ledger=[the ledger\: a file, or postgresql\:\/\/HOST\/DATABASE]:PATH:_files"
  "--focus=[in the columns of FinOps FOCUS\: 1.2, 1.3, 1.4\; 1.2 where none is named]:VERSION:(1.2 1.3 1.4)"
  "--since=[from then on, by default all\: 2026-11-01, 2026-11, 2026-W47, today, yesterday, week, month, an RFC 3339 time, or 7d before now (also m, h, w)]:TIME:"
  "--until=[before then, in the same forms\; by default all]:TIME:"
  "--tz=[a time zone such as Europe\/Berlin\; by default the local one]:ZONE:"
  "--json[as JSON instead of CSV]"
)

# guard to ensure default positional specs are added only once per session
_shtab_acp_proxy_export_defaults_added=0

_shtab_acp_proxy_hub_options=(
  "(- : *)"{-h,--help}"[show this help message and exit]"
  "--config=[hub.toml\; by default a hub for this machine alone]:FILE:_files"
  "--port=[by default 8765\; 0 picks a free one]:N:"
)

# guard to ensure default positional specs are added only once per session
_shtab_acp_proxy_hub_defaults_added=0

_shtab_acp_proxy_hub_audit_options=(
  "(- : *)"{-h,--help}"[show this help message and exit]"
)

# guard to ensure default positional specs are added only once per session
_shtab_acp_proxy_hub_audit_defaults_added=0

_shtab_acp_proxy_hub_audit_export_options=(
  "(- : *)"{-h,--help}"[show this help message and exit]"
  "--config=[hub.toml]:FILE:_files"
)

# guard to ensure default positional specs are added only once per session
_shtab_acp_proxy_hub_audit_export_defaults_added=0

_shtab_acp_proxy_hub_audit_verify_options=(
  "(- : *)"{-h,--help}"[show this help message and exit]"
  "--digest=[a digest that was noted earlier\: it must be in the chain]:HEX:"
  "--config=[hub.toml]:FILE:_files"
)

# guard to ensure default positional specs are added only once per session
_shtab_acp_proxy_hub_audit_verify_defaults_added=0

_shtab_acp_proxy_hub_keys_options=(
  "(- : *)"{-h,--help}"[show this help message and exit]"
)

# guard to ensure default positional specs are added only once per session
_shtab_acp_proxy_hub_keys_defaults_added=0

_shtab_acp_proxy_hub_keys_rotate_options=(
  "(- : *)"{-h,--help}"[show this help message and exit]"
  "--forget[end all earlier keys at once\: every machine renews its token]"
  "--config=[hub.toml]:FILE:_files"
)

# guard to ensure default positional specs are added only once per session
_shtab_acp_proxy_hub_keys_rotate_defaults_added=0

_shtab_acp_proxy_hub_retention_options=(
  "(- : *)"{-h,--help}"[show this help message and exit]"
  "--config=[hub.toml]:FILE:_files"
)

# guard to ensure default positional specs are added only once per session
_shtab_acp_proxy_hub_retention_defaults_added=0

_shtab_acp_proxy_hub_token_options=(
  "(- : *)"{-h,--help}"[show this help message and exit]"
)

# guard to ensure default positional specs are added only once per session
_shtab_acp_proxy_hub_token_defaults_added=0

_shtab_acp_proxy_hub_token_create_options=(
  "(- : *)"{-h,--help}"[show this help message and exit]"
  "--user=[who spends by it]:USER:"
  "--role=[administrator, finance, lead, developer, service]:ROLE:(administrator finance lead developer service)"
  "--team=[whose team\'s budgets count\; by default none]:TEAM:"
  "*--leads[a team that its user leads\; may be repeated]:TEAM:"
  "*--scope[what it is good for\: meter, read, metrics, scim\; may be repeated\; by default all that the role may do]:SCOPE:(meter read metrics scim)"
  "--for=[how long it holds\: 12h, 90d\; by default ever]:DURATION:"
  "--json[for programs]"
  "--config=[hub.toml]:FILE:_files"
  ":what it is called in lists:"
)

# guard to ensure default positional specs are added only once per session
_shtab_acp_proxy_hub_token_create_defaults_added=0

_shtab_acp_proxy_hub_token_list_options=(
  "(- : *)"{-h,--help}"[show this help message and exit]"
  "--json[for programs]"
  "--config=[hub.toml]:FILE:_files"
)

# guard to ensure default positional specs are added only once per session
_shtab_acp_proxy_hub_token_list_defaults_added=0

_shtab_acp_proxy_hub_token_revoke_options=(
  "(- : *)"{-h,--help}"[show this help message and exit]"
  "--config=[hub.toml]:FILE:_files"
  ":as in the list:(last)"
)

# guard to ensure default positional specs are added only once per session
_shtab_acp_proxy_hub_token_revoke_defaults_added=0

_shtab_acp_proxy_import_options=(
  "(- : *)"{-h,--help}"[show this help message and exit]"
  "--config=[in place of the user\'s configuration file]:FILE:_files"
  "--ledger=[the ledger\: a file, or postgresql\:\/\/HOST\/DATABASE]:PATH:_files"
  "--since=[only calls from then on, as for report]:TIME:"
  "--dry-run[show what would be imported, and write nothing]"
  "--json[for programs]"
  "(*)::all by default\: claude-code, codex, gemini-cli, qwen-code, opencode, kilo, goose, cline, copilot, kimi, openclaw, pi:"
)

# guard to ensure default positional specs are added only once per session
_shtab_acp_proxy_import_defaults_added=0

_shtab_acp_proxy_ledger_options=(
  "(- : *)"{-h,--help}"[show this help message and exit]"
  "--config=[in place of the user\'s configuration file]:FILE:_files"
  "--ledger=[the ledger\: a file, or postgresql\:\/\/HOST\/DATABASE]:PATH:_files"
)

# guard to ensure default positional specs are added only once per session
_shtab_acp_proxy_ledger_defaults_added=0

_shtab_acp_proxy_ledger_copy_options=(
  "(- : *)"{-h,--help}"[show this help message and exit]"
  "--config=[in place of the user\'s configuration file]:FILE:_files"
  "--ledger=[the ledger\: a file, or postgresql\:\/\/HOST\/DATABASE]:PATH:_files"
  "--from=[the source, as --ledger\; by default the configured]:PATH:_files"
  "--to=[the target, as --ledger\; by default the configured]:PATH:_files"
)

# guard to ensure default positional specs are added only once per session
_shtab_acp_proxy_ledger_copy_defaults_added=0

_shtab_acp_proxy_ledger_forget_user_options=(
  "(- : *)"{-h,--help}"[show this help message and exit]"
  "--config=[in place of the user\'s configuration file]:FILE:_files"
  "--ledger=[the ledger\: a file, or postgresql\:\/\/HOST\/DATABASE]:PATH:_files"
  "--alias=[a name that nobody has\; by default one is made]:ALIAS:"
  ":who left, as reports name them:"
)

# guard to ensure default positional specs are added only once per session
_shtab_acp_proxy_ledger_forget_user_defaults_added=0

_shtab_acp_proxy_login_options=(
  "(- : *)"{-h,--help}"[show this help message and exit]"
  "--config=[in place of the user\'s configuration file]:FILE:_files"
  "--ledger=[the ledger\: a file, or postgresql\:\/\/HOST\/DATABASE]:PATH:_files"
  "--token-file=[a file with a token that an administrator made, - for stdin\; by default a browser signs in]:FILE:_files"
  "--store=[where tokens are kept\: the keyring, by default if there is one, or a file that only you can read]:WHERE:(keyring file)"
  "--no-browser[open none\: the address is for another machine]"
  ":the hub\: https\:\/\/HOST:"
)

# guard to ensure default positional specs are added only once per session
_shtab_acp_proxy_login_defaults_added=0

_shtab_acp_proxy_logout_options=(
  "(- : *)"{-h,--help}"[show this help message and exit]"
  "--config=[in place of the user\'s configuration file]:FILE:_files"
  "--ledger=[the ledger\: a file, or postgresql\:\/\/HOST\/DATABASE]:PATH:_files"
  ":the hub\; by default all:"
)

# guard to ensure default positional specs are added only once per session
_shtab_acp_proxy_logout_defaults_added=0

_shtab_acp_proxy_metrics_options=(
  "(- : *)"{-h,--help}"[show this help message and exit]"
  "--config=[in place of the user\'s configuration file]:FILE:_files"
  "--ledger=[the ledger\: a file, or postgresql\:\/\/HOST\/DATABASE]:PATH:_files"
  "--textfile=[a file for node_exporter\'s textfile collector, written whole or not at all\; by default stdout]:PATH:_files"
)

# guard to ensure default positional specs are added only once per session
_shtab_acp_proxy_metrics_defaults_added=0

_shtab_acp_proxy_notify_options=(
  "(- : *)"{-h,--help}"[show this help message and exit]"
  "--config=[in place of the user\'s configuration file]:FILE:_files"
  "--ledger=[the ledger\: a file, or postgresql\:\/\/HOST\/DATABASE]:PATH:_files"
)

# guard to ensure default positional specs are added only once per session
_shtab_acp_proxy_notify_defaults_added=0

_shtab_acp_proxy_notify_test_options=(
  "(- : *)"{-h,--help}"[show this help message and exit]"
  "--config=[in place of the user\'s configuration file]:FILE:_files"
  "--ledger=[the ledger\: a file, or postgresql\:\/\/HOST\/DATABASE]:PATH:_files"
  ":only the channel of this name:"
)

# guard to ensure default positional specs are added only once per session
_shtab_acp_proxy_notify_test_defaults_added=0

_shtab_acp_proxy_prices_options=(
  "(- : *)"{-h,--help}"[show this help message and exit]"
  "--config=[in place of the user\'s configuration file]:FILE:_files"
  "--ledger=[the ledger\: a file, or postgresql\:\/\/HOST\/DATABASE]:PATH:_files"
)

# guard to ensure default positional specs are added only once per session
_shtab_acp_proxy_prices_defaults_added=0

_shtab_acp_proxy_prices_cost_options=(
  "(- : *)"{-h,--help}"[show this help message and exit]"
  "--input=[input tokens, except those read from or written to a cache]:N:"
  "--output=[output tokens, except thinking]:N:"
  "--thought=[tokens of thinking]:N:"
  "--cached-read=[input tokens read from a cache]:N:"
  "--cached-write=[input tokens written to a cache\; \[pricing\] cache_write says for how long]:N:"
  "--cached-write-1h=[input tokens written to a cache for an hour]:N:"
  "--context-used=[the largest request\'s context in tokens\; without it all tokens are one request]:N:"
  "--config=[in place of the user\'s configuration file]:FILE:_files"
  "--ledger=[the ledger\: a file, or postgresql\:\/\/HOST\/DATABASE]:PATH:_files"
  "--at=[prices of that time, by default now\: 2026-11-01, 7d \…]:TIME:"
  "--json[exact figures, for programs]"
  ":as an agent reports it:"
)

# guard to ensure default positional specs are added only once per session
_shtab_acp_proxy_prices_cost_defaults_added=0

_shtab_acp_proxy_prices_list_options=(
  "(- : *)"{-h,--help}"[show this help message and exit]"
  "--config=[in place of the user\'s configuration file]:FILE:_files"
  "--ledger=[the ledger\: a file, or postgresql\:\/\/HOST\/DATABASE]:PATH:_files"
  "--at=[prices of that time, by default now\: 2026-11-01, 7d \…]:TIME:"
  "--json[exact figures, for programs]"
  ":only names that contain it:"
)

# guard to ensure default positional specs are added only once per session
_shtab_acp_proxy_prices_list_defaults_added=0

_shtab_acp_proxy_prices_remove_options=(
  "(- : *)"{-h,--help}"[show this help message and exit]"
  "--config=[in place of the user\'s configuration file]:FILE:_files"
  "--ledger=[the ledger\: a file, or postgresql\:\/\/HOST\/DATABASE]:PATH:_files"
  "--dry-run[show the change, and make none]"
  "--if-version=[only if that is the last version of the hub\'s history]:N:"
  ":as an agent reports it:"
)

# guard to ensure default positional specs are added only once per session
_shtab_acp_proxy_prices_remove_defaults_added=0

_shtab_acp_proxy_prices_set_options=(
  "(- : *)"{-h,--help}"[show this help message and exit]"
  "--input=[US dollars per million tokens of input, except those read from or written to a cache]:N:"
  "--output=[US dollars per million tokens of output and thinking]:N:"
  "--cached-read=[US dollars per million tokens read from a cache]:N:"
  "--cached-write=[US dollars per million tokens written to a cache for five minutes]:N:"
  "--cached-write-1h=[US dollars per million tokens written to a cache for an hour]:N:"
  "--context=[the model\'s context window in tokens]:N:"
  "--config=[in place of the user\'s configuration file]:FILE:_files"
  "--ledger=[the ledger\: a file, or postgresql\:\/\/HOST\/DATABASE]:PATH:_files"
  "--dry-run[show the change, and make none]"
  "--if-version=[only if that is the last version of the hub\'s history]:N:"
  ":as an agent reports it:"
)

# guard to ensure default positional specs are added only once per session
_shtab_acp_proxy_prices_set_defaults_added=0

_shtab_acp_proxy_prices_show_options=(
  "(- : *)"{-h,--help}"[show this help message and exit]"
  "--config=[in place of the user\'s configuration file]:FILE:_files"
  "--ledger=[the ledger\: a file, or postgresql\:\/\/HOST\/DATABASE]:PATH:_files"
  "--at=[prices of that time, by default now\: 2026-11-01, 7d \…]:TIME:"
  "--json[exact figures, for programs]"
  ":as an agent reports it:"
)

# guard to ensure default positional specs are added only once per session
_shtab_acp_proxy_prices_show_defaults_added=0

_shtab_acp_proxy_reconcile_options=(
  "(- : *)"{-h,--help}"[show this help message and exit]"
  "--config=[in place of the user\'s configuration file]:FILE:_files"
  "--ledger=[the ledger\: a file, or postgresql\:\/\/HOST\/DATABASE]:PATH:_files"
  "--api[ask the provider\'s API, in place of files]"
  "--since=[with --api\: days of UTC, such as 2026-11-01\; without --until those that are over]:DAY:"
  "--until=[the first day that is no longer of the bill]:DAY:"
  "--key=[with --api\: \$\{NAME\} of the environment or \$\{file\:PATH\}\; by default ANTHROPIC_ADMIN_KEY and the like]:WHERE:"
  "--url=[with --api\: where it is, as of LiteLLM]:URL:"
  "--by=[what each row is of, by default a day]:KEY:(day model user key)"
  "*--map[the ledger\'s USER of a user or key on the bill\; may be repeated]:ID=USER:"
  "*--column[of csv\: which column has the day, model, user, key, input, prompt, cached_read, output, amount \…]:FIELD=NAME:"
  "--keep[keep how much of the bill the ledger has, for metrics and alerts]"
  "--json[exact figures, for programs]"
  "--csv[the same for spreadsheets]"
  ":one of anthropic, openai, litellm, csv:(anthropic openai litellm csv)"
  "(*):downloaded pages of the bill, in any order\: JSON, or CSV:_files"
)

# guard to ensure default positional specs are added only once per session
_shtab_acp_proxy_reconcile_defaults_added=0

_shtab_acp_proxy_report_options=(
  "(- : *)"{-h,--help}"[show this help message and exit]"
  "--config=[in place of the user\'s configuration file]:FILE:_files"
  "--ledger=[the ledger\: a file, or postgresql\:\/\/HOST\/DATABASE]:PATH:_files"
  "--by=[what each row is of, by default a day]:KEY:(hour day week month session turn model agent project user team kind billing)"
  "--since=[from then on, by default all\: 2026-11-01, 2026-11, 2026-W47, today, yesterday, week, month, an RFC 3339 time, or 7d before now (also m, h, w)]:TIME:"
  "--until=[before then, in the same forms\; by default all]:TIME:"
  "--tz=[a time zone such as Europe\/Berlin\; by default the local one]:ZONE:"
  "--agent=[only this agent]:NAME:"
  "--model=[only this model]:NAME:"
  "--user=[only this user]:NAME:"
  "--team=[only this team]:NAME:"
  "--project=[only this project]:NAME:"
  "--title=[part of a session\'s title]:TEXT:"
  "--coverage[how much of what agents used went through acp-proxy, and how much around it, by what was imported]"
  "--limit=[at most N lines\: those that cost most, or the latest days, weeks or months]:N:"
  "--plans[windows of plans and their history, in place of spend]"
  "--json[exact figures, for programs]"
  "--csv[the same for spreadsheets]"
  ":as --by\; or today, yesterday:(hour day week month session turn model agent project user team kind billing today yesterday)"
)

# guard to ensure default positional specs are added only once per session
_shtab_acp_proxy_report_defaults_added=0

_shtab_acp_proxy_run_options=(
  "(- : *)"{-h,--help}"[show this help message and exit]"
  "--config=[in place of the user\'s configuration file]:FILE:_files"
  "--ledger=[the ledger\: a file, or postgresql\:\/\/HOST\/DATABASE]:PATH:_files"
  "--agent=[a name to use instead of the one that the agent reports]:NAME:"
  "--user=[who pays\; by default the login name]:NAME:"
  "--team=[by default none]:NAME:"
  "--project=[by default the name of the git repository]:NAME:"
  "--budget=[US dollars that this run may spend, over all its sessions]:AMOUNT:"
  "--no-summary[no summary on stderr at the end]"
  "--log=[log to a file instead of stderr]:FILE:_files"
  "--log-level=[how much is logged, by default warning]:LEVEL:(debug info warning error)"
)

# guard to ensure default positional specs are added only once per session
_shtab_acp_proxy_run_defaults_added=0

_shtab_acp_proxy_serve_options=(
  "(- : *)"{-h,--help}"[show this help message and exit]"
  "--config=[in place of the user\'s configuration file]:FILE:_files"
  "--ledger=[the ledger\: a file, or postgresql\:\/\/HOST\/DATABASE]:PATH:_files"
  "--host=[where to listen\; by default 127.0.0.1]:ADDRESS:"
  "--port=[by default 9464\; 0 picks a free one]:N:"
  "--token-file=[a file with the token that clients must send\; needed except on loopback]:FILE:_files"
)

# guard to ensure default positional specs are added only once per session
_shtab_acp_proxy_serve_defaults_added=0

_shtab_acp_proxy_session_options=(
  "(- : *)"{-h,--help}"[show this help message and exit]"
  "--config=[in place of the user\'s configuration file]:FILE:_files"
  "--ledger=[the ledger\: a file, or postgresql\:\/\/HOST\/DATABASE]:PATH:_files"
  "--all[list every turn, not only the latest 40]"
  "--tz=[a time zone such as Europe\/Berlin\; by default the local one]:ZONE:"
  "--json[exact figures, for programs]"
  ":its id, the first characters of its key in a report by session, a part of its title, or last (default):(last)"
)

# guard to ensure default positional specs are added only once per session
_shtab_acp_proxy_session_defaults_added=0

_shtab_acp_proxy_setup_options=(
  "(- : *)"{-h,--help}"[show this help message and exit]"
  "--config=[in place of the user\'s configuration file]:FILE:_files"
  "--ledger=[the ledger\: a file, or postgresql\:\/\/HOST\/DATABASE]:PATH:_files"
  "--agent=[only this one\; added if it is not there]:NAME:(claude codex gemini goose opencode qwen)"
  "--list[the editors, their settings, and the agents in them]"
  "--dry-run[show the change, and write nothing]"
  "--undo[put the settings back as they were]"
  ":editor:(zed vscode jetbrains codecompanion avante agentic agent-shell obsidian toad acpx)"
)

# guard to ensure default positional specs are added only once per session
_shtab_acp_proxy_setup_defaults_added=0

_shtab_acp_proxy_status_options=(
  "(- : *)"{-h,--help}"[show this help message and exit]"
  "--config=[in place of the user\'s configuration file]:FILE:_files"
  "--ledger=[the ledger\: a file, or postgresql\:\/\/HOST\/DATABASE]:PATH:_files"
  "--format=[with fields in braces\: today, week, month, turns, tokens, budget, left, limit, used, resets, plan, requests, lent, last, last_tokens, agent, model, context\; or json]:TEXT:"
  "--json[exact figures, for programs]"
)

# guard to ensure default positional specs are added only once per session
_shtab_acp_proxy_status_defaults_added=0

_shtab_acp_proxy_whoami_options=(
  "(- : *)"{-h,--help}"[show this help message and exit]"
  "--config=[in place of the user\'s configuration file]:FILE:_files"
  "--ledger=[the ledger\: a file, or postgresql\:\/\/HOST\/DATABASE]:PATH:_files"
  "--json[for programs]"
  ":the hub\; by default all:"
)

# guard to ensure default positional specs are added only once per session
_shtab_acp_proxy_whoami_defaults_added=0


_shtab_acp_proxy() {
  local context state line curcontext="$curcontext" one_or_more='(*)' remainder='(-)*:' default='*::: :->acp-proxy'

  # Add default positional/remainder specs only if none exist, and only once per session
  if (( ! _shtab_acp_proxy_defaults_added )); then
    if (( ${_shtab_acp_proxy_options[(I)${(q)one_or_more}*]} +          ${_shtab_acp_proxy_options[(I)${(q)remainder}*]} +          ${_shtab_acp_proxy_options[(I)${(q)default}]} == 0 )); then
      _shtab_acp_proxy_options+=(': :_shtab_acp_proxy_commands' '*::: :->acp-proxy')
    fi
    _shtab_acp_proxy_defaults_added=1
  fi
  _arguments -C -s $_shtab_acp_proxy_options

  case $state in
    acp-proxy)
      words=($line[1] "${words[@]}")
      (( CURRENT += 1 ))
      curcontext="${curcontext%:*:*}:_shtab_acp_proxy-$line[1]:"
      case $line[1] in
        budget) _shtab_acp_proxy_budget ;;
        completion) _arguments -C -s $_shtab_acp_proxy_completion_options ;;
        config) _arguments -C -s $_shtab_acp_proxy_config_options ;;
        demo) _arguments -C -s $_shtab_acp_proxy_demo_options ;;
        doctor) _arguments -C -s $_shtab_acp_proxy_doctor_options ;;
        export) _arguments -C -s $_shtab_acp_proxy_export_options ;;
        hub) _shtab_acp_proxy_hub ;;
        import) _arguments -C -s $_shtab_acp_proxy_import_options ;;
        ledger) _shtab_acp_proxy_ledger ;;
        login) _arguments -C -s $_shtab_acp_proxy_login_options ;;
        logout) _arguments -C -s $_shtab_acp_proxy_logout_options ;;
        metrics) _arguments -C -s $_shtab_acp_proxy_metrics_options ;;
        notify) _shtab_acp_proxy_notify ;;
        prices) _shtab_acp_proxy_prices ;;
        reconcile) _arguments -C -s $_shtab_acp_proxy_reconcile_options ;;
        report) _arguments -C -s $_shtab_acp_proxy_report_options ;;
        run) _arguments -C -s $_shtab_acp_proxy_run_options ;;
        serve) _arguments -C -s $_shtab_acp_proxy_serve_options ;;
        session) _arguments -C -s $_shtab_acp_proxy_session_options ;;
        setup) _arguments -C -s $_shtab_acp_proxy_setup_options ;;
        status) _arguments -C -s $_shtab_acp_proxy_status_options ;;
        whoami) _arguments -C -s $_shtab_acp_proxy_whoami_options ;;
      esac
  esac
}

_shtab_acp_proxy_budget() {
  local context state line curcontext="$curcontext" one_or_more='(*)' remainder='(-)*:' default='*::: :->budget'

  # Add default positional/remainder specs only if none exist, and only once per session
  if (( ! _shtab_acp_proxy_budget_defaults_added )); then
    if (( ${_shtab_acp_proxy_budget_options[(I)${(q)one_or_more}*]} +          ${_shtab_acp_proxy_budget_options[(I)${(q)remainder}*]} +          ${_shtab_acp_proxy_budget_options[(I)${(q)default}]} == 0 )); then
      _shtab_acp_proxy_budget_options+=(': :_shtab_acp_proxy_budget_commands' '*::: :->budget')
    fi
    _shtab_acp_proxy_budget_defaults_added=1
  fi
  _arguments -C -s $_shtab_acp_proxy_budget_options

  case $state in
    budget)
      words=($line[1] "${words[@]}")
      (( CURRENT += 1 ))
      curcontext="${curcontext%:*:*}:_shtab_acp_proxy_budget-$line[1]:"
      case $line[1] in
        add) _arguments -C -s $_shtab_acp_proxy_budget_add_options ;;
        approve) _arguments -C -s $_shtab_acp_proxy_budget_approve_options ;;
        check) _arguments -C -s $_shtab_acp_proxy_budget_check_options ;;
        deny) _arguments -C -s $_shtab_acp_proxy_budget_deny_options ;;
        grant) _arguments -C -s $_shtab_acp_proxy_budget_grant_options ;;
        grants) _arguments -C -s $_shtab_acp_proxy_budget_grants_options ;;
        history) _arguments -C -s $_shtab_acp_proxy_budget_history_options ;;
        list) _arguments -C -s $_shtab_acp_proxy_budget_list_options ;;
        remove) _arguments -C -s $_shtab_acp_proxy_budget_remove_options ;;
        request) _arguments -C -s $_shtab_acp_proxy_budget_request_options ;;
        requests) _arguments -C -s $_shtab_acp_proxy_budget_requests_options ;;
        set) _arguments -C -s $_shtab_acp_proxy_budget_set_options ;;
        simulate) _arguments -C -s $_shtab_acp_proxy_budget_simulate_options ;;
        undo) _arguments -C -s $_shtab_acp_proxy_budget_undo_options ;;
      esac
  esac
}

_shtab_acp_proxy_hub() {
  local context state line curcontext="$curcontext" one_or_more='(*)' remainder='(-)*:' default='*::: :->hub'

  # Add default positional/remainder specs only if none exist, and only once per session
  if (( ! _shtab_acp_proxy_hub_defaults_added )); then
    if (( ${_shtab_acp_proxy_hub_options[(I)${(q)one_or_more}*]} +          ${_shtab_acp_proxy_hub_options[(I)${(q)remainder}*]} +          ${_shtab_acp_proxy_hub_options[(I)${(q)default}]} == 0 )); then
      _shtab_acp_proxy_hub_options+=(': :_shtab_acp_proxy_hub_commands' '*::: :->hub')
    fi
    _shtab_acp_proxy_hub_defaults_added=1
  fi
  _arguments -C -s $_shtab_acp_proxy_hub_options

  case $state in
    hub)
      words=($line[1] "${words[@]}")
      (( CURRENT += 1 ))
      curcontext="${curcontext%:*:*}:_shtab_acp_proxy_hub-$line[1]:"
      case $line[1] in
        audit) _shtab_acp_proxy_hub_audit ;;
        create) _arguments -C -s $_shtab_acp_proxy_hub_create_options ;;
        export) _arguments -C -s $_shtab_acp_proxy_hub_export_options ;;
        keys) _shtab_acp_proxy_hub_keys ;;
        list) _arguments -C -s $_shtab_acp_proxy_hub_list_options ;;
        retention) _arguments -C -s $_shtab_acp_proxy_hub_retention_options ;;
        revoke) _arguments -C -s $_shtab_acp_proxy_hub_revoke_options ;;
        rotate) _arguments -C -s $_shtab_acp_proxy_hub_rotate_options ;;
        token) _shtab_acp_proxy_hub_token ;;
        verify) _arguments -C -s $_shtab_acp_proxy_hub_verify_options ;;
      esac
  esac
}

_shtab_acp_proxy_hub_audit() {
  local context state line curcontext="$curcontext" one_or_more='(*)' remainder='(-)*:' default='*::: :->audit'

  # Add default positional/remainder specs only if none exist, and only once per session
  if (( ! _shtab_acp_proxy_hub_audit_defaults_added )); then
    if (( ${_shtab_acp_proxy_hub_audit_options[(I)${(q)one_or_more}*]} +          ${_shtab_acp_proxy_hub_audit_options[(I)${(q)remainder}*]} +          ${_shtab_acp_proxy_hub_audit_options[(I)${(q)default}]} == 0 )); then
      _shtab_acp_proxy_hub_audit_options+=(': :_shtab_acp_proxy_hub_audit_commands' '*::: :->audit')
    fi
    _shtab_acp_proxy_hub_audit_defaults_added=1
  fi
  _arguments -C -s $_shtab_acp_proxy_hub_audit_options

  case $state in
    audit)
      words=($line[1] "${words[@]}")
      (( CURRENT += 1 ))
      curcontext="${curcontext%:*:*}:_shtab_acp_proxy_hub_audit-$line[1]:"
      case $line[1] in
        export) _arguments -C -s $_shtab_acp_proxy_hub_audit_export_options ;;
        verify) _arguments -C -s $_shtab_acp_proxy_hub_audit_verify_options ;;
      esac
  esac
}

_shtab_acp_proxy_hub_keys() {
  local context state line curcontext="$curcontext" one_or_more='(*)' remainder='(-)*:' default='*::: :->keys'

  # Add default positional/remainder specs only if none exist, and only once per session
  if (( ! _shtab_acp_proxy_hub_keys_defaults_added )); then
    if (( ${_shtab_acp_proxy_hub_keys_options[(I)${(q)one_or_more}*]} +          ${_shtab_acp_proxy_hub_keys_options[(I)${(q)remainder}*]} +          ${_shtab_acp_proxy_hub_keys_options[(I)${(q)default}]} == 0 )); then
      _shtab_acp_proxy_hub_keys_options+=(': :_shtab_acp_proxy_hub_keys_commands' '*::: :->keys')
    fi
    _shtab_acp_proxy_hub_keys_defaults_added=1
  fi
  _arguments -C -s $_shtab_acp_proxy_hub_keys_options

  case $state in
    keys)
      words=($line[1] "${words[@]}")
      (( CURRENT += 1 ))
      curcontext="${curcontext%:*:*}:_shtab_acp_proxy_hub_keys-$line[1]:"
      case $line[1] in
        rotate) _arguments -C -s $_shtab_acp_proxy_hub_keys_rotate_options ;;
      esac
  esac
}

_shtab_acp_proxy_hub_token() {
  local context state line curcontext="$curcontext" one_or_more='(*)' remainder='(-)*:' default='*::: :->token'

  # Add default positional/remainder specs only if none exist, and only once per session
  if (( ! _shtab_acp_proxy_hub_token_defaults_added )); then
    if (( ${_shtab_acp_proxy_hub_token_options[(I)${(q)one_or_more}*]} +          ${_shtab_acp_proxy_hub_token_options[(I)${(q)remainder}*]} +          ${_shtab_acp_proxy_hub_token_options[(I)${(q)default}]} == 0 )); then
      _shtab_acp_proxy_hub_token_options+=(': :_shtab_acp_proxy_hub_token_commands' '*::: :->token')
    fi
    _shtab_acp_proxy_hub_token_defaults_added=1
  fi
  _arguments -C -s $_shtab_acp_proxy_hub_token_options

  case $state in
    token)
      words=($line[1] "${words[@]}")
      (( CURRENT += 1 ))
      curcontext="${curcontext%:*:*}:_shtab_acp_proxy_hub_token-$line[1]:"
      case $line[1] in
        create) _arguments -C -s $_shtab_acp_proxy_hub_token_create_options ;;
        list) _arguments -C -s $_shtab_acp_proxy_hub_token_list_options ;;
        revoke) _arguments -C -s $_shtab_acp_proxy_hub_token_revoke_options ;;
      esac
  esac
}

_shtab_acp_proxy_ledger() {
  local context state line curcontext="$curcontext" one_or_more='(*)' remainder='(-)*:' default='*::: :->ledger'

  # Add default positional/remainder specs only if none exist, and only once per session
  if (( ! _shtab_acp_proxy_ledger_defaults_added )); then
    if (( ${_shtab_acp_proxy_ledger_options[(I)${(q)one_or_more}*]} +          ${_shtab_acp_proxy_ledger_options[(I)${(q)remainder}*]} +          ${_shtab_acp_proxy_ledger_options[(I)${(q)default}]} == 0 )); then
      _shtab_acp_proxy_ledger_options+=(': :_shtab_acp_proxy_ledger_commands' '*::: :->ledger')
    fi
    _shtab_acp_proxy_ledger_defaults_added=1
  fi
  _arguments -C -s $_shtab_acp_proxy_ledger_options

  case $state in
    ledger)
      words=($line[1] "${words[@]}")
      (( CURRENT += 1 ))
      curcontext="${curcontext%:*:*}:_shtab_acp_proxy_ledger-$line[1]:"
      case $line[1] in
        copy) _arguments -C -s $_shtab_acp_proxy_ledger_copy_options ;;
        forget-user) _arguments -C -s $_shtab_acp_proxy_ledger_forget_user_options ;;
      esac
  esac
}

_shtab_acp_proxy_notify() {
  local context state line curcontext="$curcontext" one_or_more='(*)' remainder='(-)*:' default='*::: :->notify'

  # Add default positional/remainder specs only if none exist, and only once per session
  if (( ! _shtab_acp_proxy_notify_defaults_added )); then
    if (( ${_shtab_acp_proxy_notify_options[(I)${(q)one_or_more}*]} +          ${_shtab_acp_proxy_notify_options[(I)${(q)remainder}*]} +          ${_shtab_acp_proxy_notify_options[(I)${(q)default}]} == 0 )); then
      _shtab_acp_proxy_notify_options+=(': :_shtab_acp_proxy_notify_commands' '*::: :->notify')
    fi
    _shtab_acp_proxy_notify_defaults_added=1
  fi
  _arguments -C -s $_shtab_acp_proxy_notify_options

  case $state in
    notify)
      words=($line[1] "${words[@]}")
      (( CURRENT += 1 ))
      curcontext="${curcontext%:*:*}:_shtab_acp_proxy_notify-$line[1]:"
      case $line[1] in
        test) _arguments -C -s $_shtab_acp_proxy_notify_test_options ;;
      esac
  esac
}

_shtab_acp_proxy_prices() {
  local context state line curcontext="$curcontext" one_or_more='(*)' remainder='(-)*:' default='*::: :->prices'

  # Add default positional/remainder specs only if none exist, and only once per session
  if (( ! _shtab_acp_proxy_prices_defaults_added )); then
    if (( ${_shtab_acp_proxy_prices_options[(I)${(q)one_or_more}*]} +          ${_shtab_acp_proxy_prices_options[(I)${(q)remainder}*]} +          ${_shtab_acp_proxy_prices_options[(I)${(q)default}]} == 0 )); then
      _shtab_acp_proxy_prices_options+=(': :_shtab_acp_proxy_prices_commands' '*::: :->prices')
    fi
    _shtab_acp_proxy_prices_defaults_added=1
  fi
  _arguments -C -s $_shtab_acp_proxy_prices_options

  case $state in
    prices)
      words=($line[1] "${words[@]}")
      (( CURRENT += 1 ))
      curcontext="${curcontext%:*:*}:_shtab_acp_proxy_prices-$line[1]:"
      case $line[1] in
        cost) _arguments -C -s $_shtab_acp_proxy_prices_cost_options ;;
        list) _arguments -C -s $_shtab_acp_proxy_prices_list_options ;;
        remove) _arguments -C -s $_shtab_acp_proxy_prices_remove_options ;;
        set) _arguments -C -s $_shtab_acp_proxy_prices_set_options ;;
        show) _arguments -C -s $_shtab_acp_proxy_prices_show_options ;;
      esac
  esac
}



typeset -A opt_args

# After -- stands the agent's command: it is completed as it is without acp-proxy before it.
# Its name is that of the file from which it may be loaded, whose place it takes then.
_acp-proxy() {
  local end=${words[(ie)--]}
  if (( end < CURRENT )); then
    shift $end words
    (( CURRENT -= end ))
    _normal
  else
    _shtab_acp_proxy "$@"
  fi
}

if [[ $zsh_eval_context[-1] == loadautofunc ]]; then
  _acp-proxy "$@"
else
  compdef _acp-proxy acp-proxy
fi
