# Made by scripts/build-completion, of options 591e422866ab694b
# It begins with what shtab 1.13.0 makes (https://github.com/tqdm/shtab, Apache-2.0).

_shtab_acp_proxy_budget_subparsers=(list check grant grants request requests approve deny simulate add set remove undo history)
_shtab_acp_proxy_hub_token_subparsers=(create list revoke)
_shtab_acp_proxy_hub_keys_subparsers=(rotate)
_shtab_acp_proxy_hub_audit_subparsers=(export verify)
_shtab_acp_proxy_hub_subparsers=(token keys audit retention)
_shtab_acp_proxy_notify_subparsers=(test)
_shtab_acp_proxy_prices_subparsers=(list show cost set remove)
_shtab_acp_proxy_ledger_subparsers=(copy forget-user)
_shtab_acp_proxy_subparsers=(run report export reconcile session status budget serve hub metrics notify setup prices ledger import login logout whoami config doctor demo completion)

_shtab_acp_proxy_run_option_strings=(-h --help --config --ledger --agent --user --team --project --budget --no-summary --log --log-level)
_shtab_acp_proxy_report_option_strings=(-h --help --config --ledger --by --since --until --tz --agent --model --user --team --project --title --coverage --limit --plans --json --csv)
_shtab_acp_proxy_export_option_strings=(-h --help --config --ledger --focus --since --until --tz --json)
_shtab_acp_proxy_reconcile_option_strings=(-h --help --config --ledger --api --since --until --key --url --by --map --column --keep --json --csv)
_shtab_acp_proxy_session_option_strings=(-h --help --config --ledger --all --tz --json)
_shtab_acp_proxy_status_option_strings=(-h --help --config --ledger --format --json)
_shtab_acp_proxy_budget_list_option_strings=(-h --help --config --ledger --json)
_shtab_acp_proxy_budget_check_option_strings=(-h --help --config --ledger --agent --model --user --team --project)
_shtab_acp_proxy_budget_grant_option_strings=(-h --help --config --ledger --amount --reason --layer --for-user --for-team --for-project --for-agent --for)
_shtab_acp_proxy_budget_grants_option_strings=(-h --help --config --ledger --json)
_shtab_acp_proxy_budget_request_option_strings=(-h --help --config --ledger --amount --reason --layer --for-project --for-agent)
_shtab_acp_proxy_budget_requests_option_strings=(-h --help --config --ledger --json --own)
_shtab_acp_proxy_budget_approve_option_strings=(-h --help --config --ledger --reason --amount --for)
_shtab_acp_proxy_budget_deny_option_strings=(-h --help --config --ledger --reason)
_shtab_acp_proxy_budget_simulate_option_strings=(-h --help --config --ledger --json --since)
_shtab_acp_proxy_budget_add_option_strings=(-h --help --config --ledger --amount --tokens --turns --plan --percent --on-overage --currency --window --per --scope --timezone --mode --on-exceed --dry-run --own --if-version)
_shtab_acp_proxy_budget_set_option_strings=(-h --help --config --ledger --amount --tokens --turns --plan --percent --on-overage --currency --window --per --scope --timezone --mode --on-exceed --dry-run --own --if-version)
_shtab_acp_proxy_budget_remove_option_strings=(-h --help --config --ledger --dry-run --own --if-version)
_shtab_acp_proxy_budget_undo_option_strings=(-h --help --config --ledger --dry-run --own --if-version)
_shtab_acp_proxy_budget_history_option_strings=(-h --help --config --ledger --json)
_shtab_acp_proxy_budget_option_strings=(-h --help --config --ledger)
_shtab_acp_proxy_serve_option_strings=(-h --help --config --ledger --host --port --token-file)
_shtab_acp_proxy_hub_token_create_option_strings=(-h --help --user --role --team --leads --scope --for --json --config)
_shtab_acp_proxy_hub_token_list_option_strings=(-h --help --json --config)
_shtab_acp_proxy_hub_token_revoke_option_strings=(-h --help --config)
_shtab_acp_proxy_hub_token_option_strings=(-h --help)
_shtab_acp_proxy_hub_keys_rotate_option_strings=(-h --help --forget --config)
_shtab_acp_proxy_hub_keys_option_strings=(-h --help)
_shtab_acp_proxy_hub_audit_export_option_strings=(-h --help --config)
_shtab_acp_proxy_hub_audit_verify_option_strings=(-h --help --digest --config)
_shtab_acp_proxy_hub_audit_option_strings=(-h --help)
_shtab_acp_proxy_hub_retention_option_strings=(-h --help --config)
_shtab_acp_proxy_hub_option_strings=(-h --help --config --port)
_shtab_acp_proxy_metrics_option_strings=(-h --help --config --ledger --textfile)
_shtab_acp_proxy_notify_test_option_strings=(-h --help --config --ledger)
_shtab_acp_proxy_notify_option_strings=(-h --help --config --ledger)
_shtab_acp_proxy_setup_option_strings=(-h --help --config --ledger --agent --list --dry-run --undo)
_shtab_acp_proxy_prices_list_option_strings=(-h --help --config --ledger --at --json)
_shtab_acp_proxy_prices_show_option_strings=(-h --help --config --ledger --at --json)
_shtab_acp_proxy_prices_cost_option_strings=(-h --help --input --output --thought --cached-read --cached-write --cached-write-1h --context-used --config --ledger --at --json)
_shtab_acp_proxy_prices_set_option_strings=(-h --help --input --output --cached-read --cached-write --cached-write-1h --context --config --ledger --dry-run --if-version)
_shtab_acp_proxy_prices_remove_option_strings=(-h --help --config --ledger --dry-run --if-version)
_shtab_acp_proxy_prices_option_strings=(-h --help --config --ledger)
_shtab_acp_proxy_ledger_copy_option_strings=(-h --help --config --ledger --from --to)
_shtab_acp_proxy_ledger_forget_user_option_strings=(-h --help --config --ledger --alias)
_shtab_acp_proxy_ledger_option_strings=(-h --help --config --ledger)
_shtab_acp_proxy_import_option_strings=(-h --help --config --ledger --since --dry-run --json)
_shtab_acp_proxy_login_option_strings=(-h --help --config --ledger --token-file --store --no-browser)
_shtab_acp_proxy_logout_option_strings=(-h --help --config --ledger)
_shtab_acp_proxy_whoami_option_strings=(-h --help --config --ledger --json)
_shtab_acp_proxy_config_option_strings=(-h --help --config --ledger --json)
_shtab_acp_proxy_doctor_option_strings=(-h --help --config --ledger --rebuild)
_shtab_acp_proxy_demo_option_strings=(-h --help --config --ledger)
_shtab_acp_proxy_completion_option_strings=(-h --help --config --ledger)
_shtab_acp_proxy_option_strings=(-h --help -V --version --config --ledger)

_shtab_acp_proxy_run___config_COMPGEN=:
_shtab_acp_proxy_run___ledger_COMPGEN=:
_shtab_acp_proxy_run___log_COMPGEN=:
_shtab_acp_proxy_report___config_COMPGEN=:
_shtab_acp_proxy_report___ledger_COMPGEN=:
_shtab_acp_proxy_export___config_COMPGEN=:
_shtab_acp_proxy_export___ledger_COMPGEN=:
_shtab_acp_proxy_reconcile_pos_1_COMPGEN=:
_shtab_acp_proxy_reconcile___config_COMPGEN=:
_shtab_acp_proxy_reconcile___ledger_COMPGEN=:
_shtab_acp_proxy_session___config_COMPGEN=:
_shtab_acp_proxy_session___ledger_COMPGEN=:
_shtab_acp_proxy_status___config_COMPGEN=:
_shtab_acp_proxy_status___ledger_COMPGEN=:
_shtab_acp_proxy_budget_list___config_COMPGEN=:
_shtab_acp_proxy_budget_list___ledger_COMPGEN=:
_shtab_acp_proxy_budget_check___config_COMPGEN=:
_shtab_acp_proxy_budget_check___ledger_COMPGEN=:
_shtab_acp_proxy_budget_grant___config_COMPGEN=:
_shtab_acp_proxy_budget_grant___ledger_COMPGEN=:
_shtab_acp_proxy_budget_grants___config_COMPGEN=:
_shtab_acp_proxy_budget_grants___ledger_COMPGEN=:
_shtab_acp_proxy_budget_request___config_COMPGEN=:
_shtab_acp_proxy_budget_request___ledger_COMPGEN=:
_shtab_acp_proxy_budget_requests___config_COMPGEN=:
_shtab_acp_proxy_budget_requests___ledger_COMPGEN=:
_shtab_acp_proxy_budget_approve___config_COMPGEN=:
_shtab_acp_proxy_budget_approve___ledger_COMPGEN=:
_shtab_acp_proxy_budget_deny___config_COMPGEN=:
_shtab_acp_proxy_budget_deny___ledger_COMPGEN=:
_shtab_acp_proxy_budget_simulate___config_COMPGEN=:
_shtab_acp_proxy_budget_simulate___ledger_COMPGEN=:
_shtab_acp_proxy_budget_add___config_COMPGEN=:
_shtab_acp_proxy_budget_add___ledger_COMPGEN=:
_shtab_acp_proxy_budget_set___config_COMPGEN=:
_shtab_acp_proxy_budget_set___ledger_COMPGEN=:
_shtab_acp_proxy_budget_remove___config_COMPGEN=:
_shtab_acp_proxy_budget_remove___ledger_COMPGEN=:
_shtab_acp_proxy_budget_undo___config_COMPGEN=:
_shtab_acp_proxy_budget_undo___ledger_COMPGEN=:
_shtab_acp_proxy_budget_history___config_COMPGEN=:
_shtab_acp_proxy_budget_history___ledger_COMPGEN=:
_shtab_acp_proxy_budget___config_COMPGEN=:
_shtab_acp_proxy_budget___ledger_COMPGEN=:
_shtab_acp_proxy_serve___config_COMPGEN=:
_shtab_acp_proxy_serve___ledger_COMPGEN=:
_shtab_acp_proxy_serve___token_file_COMPGEN=:
_shtab_acp_proxy_hub_token_create___config_COMPGEN=:
_shtab_acp_proxy_hub_token_list___config_COMPGEN=:
_shtab_acp_proxy_hub_token_revoke___config_COMPGEN=:
_shtab_acp_proxy_hub_keys_rotate___config_COMPGEN=:
_shtab_acp_proxy_hub_audit_export___config_COMPGEN=:
_shtab_acp_proxy_hub_audit_verify___config_COMPGEN=:
_shtab_acp_proxy_hub_retention___config_COMPGEN=:
_shtab_acp_proxy_hub___config_COMPGEN=:
_shtab_acp_proxy_metrics___config_COMPGEN=:
_shtab_acp_proxy_metrics___ledger_COMPGEN=:
_shtab_acp_proxy_metrics___textfile_COMPGEN=:
_shtab_acp_proxy_notify_test___config_COMPGEN=:
_shtab_acp_proxy_notify_test___ledger_COMPGEN=:
_shtab_acp_proxy_notify___config_COMPGEN=:
_shtab_acp_proxy_notify___ledger_COMPGEN=:
_shtab_acp_proxy_setup___config_COMPGEN=:
_shtab_acp_proxy_setup___ledger_COMPGEN=:
_shtab_acp_proxy_prices_list___config_COMPGEN=:
_shtab_acp_proxy_prices_list___ledger_COMPGEN=:
_shtab_acp_proxy_prices_show___config_COMPGEN=:
_shtab_acp_proxy_prices_show___ledger_COMPGEN=:
_shtab_acp_proxy_prices_cost___config_COMPGEN=:
_shtab_acp_proxy_prices_cost___ledger_COMPGEN=:
_shtab_acp_proxy_prices_set___config_COMPGEN=:
_shtab_acp_proxy_prices_set___ledger_COMPGEN=:
_shtab_acp_proxy_prices_remove___config_COMPGEN=:
_shtab_acp_proxy_prices_remove___ledger_COMPGEN=:
_shtab_acp_proxy_prices___config_COMPGEN=:
_shtab_acp_proxy_prices___ledger_COMPGEN=:
_shtab_acp_proxy_ledger_copy___config_COMPGEN=:
_shtab_acp_proxy_ledger_copy___ledger_COMPGEN=:
_shtab_acp_proxy_ledger_copy___from_COMPGEN=:
_shtab_acp_proxy_ledger_copy___to_COMPGEN=:
_shtab_acp_proxy_ledger_forget_user___config_COMPGEN=:
_shtab_acp_proxy_ledger_forget_user___ledger_COMPGEN=:
_shtab_acp_proxy_ledger___config_COMPGEN=:
_shtab_acp_proxy_ledger___ledger_COMPGEN=:
_shtab_acp_proxy_import___config_COMPGEN=:
_shtab_acp_proxy_import___ledger_COMPGEN=:
_shtab_acp_proxy_login___config_COMPGEN=:
_shtab_acp_proxy_login___ledger_COMPGEN=:
_shtab_acp_proxy_login___token_file_COMPGEN=:
_shtab_acp_proxy_logout___config_COMPGEN=:
_shtab_acp_proxy_logout___ledger_COMPGEN=:
_shtab_acp_proxy_whoami___config_COMPGEN=:
_shtab_acp_proxy_whoami___ledger_COMPGEN=:
_shtab_acp_proxy_config___config_COMPGEN=:
_shtab_acp_proxy_config___ledger_COMPGEN=:
_shtab_acp_proxy_doctor___config_COMPGEN=:
_shtab_acp_proxy_doctor___ledger_COMPGEN=:
_shtab_acp_proxy_demo___config_COMPGEN=:
_shtab_acp_proxy_demo___ledger_COMPGEN=:
_shtab_acp_proxy_completion___config_COMPGEN=:
_shtab_acp_proxy_completion___ledger_COMPGEN=:
_shtab_acp_proxy___config_COMPGEN=:
_shtab_acp_proxy___ledger_COMPGEN=:

_shtab_acp_proxy_run___log_level_choices=(debug info warning error)
_shtab_acp_proxy_report_pos_0_choices=(hour day week month session turn model agent project user team kind billing today yesterday)
_shtab_acp_proxy_report___by_choices=(hour day week month session turn model agent project user team kind billing)
_shtab_acp_proxy_export___focus_choices=(1.2 1.3 1.4)
_shtab_acp_proxy_reconcile_pos_0_choices=(anthropic openai litellm csv)
_shtab_acp_proxy_reconcile___by_choices=(day model user key)
_shtab_acp_proxy_session_pos_0_choices=(last)
_shtab_acp_proxy_budget_grant___layer_choices=(admin user hub)
_shtab_acp_proxy_budget_request___layer_choices=(admin user hub)
_shtab_acp_proxy_budget_approve_pos_0_choices=(last)
_shtab_acp_proxy_budget_deny_pos_0_choices=(last)
_shtab_acp_proxy_budget_add___on_overage_choices=(allow deny)
_shtab_acp_proxy_budget_add___per_choices=(user team project agent)
_shtab_acp_proxy_budget_add___mode_choices=(shadow warn enforce)
_shtab_acp_proxy_budget_add___on_exceed_choices=(finish_turn deny_next_tool cancel)
_shtab_acp_proxy_budget_set___on_overage_choices=(allow deny)
_shtab_acp_proxy_budget_set___per_choices=(user team project agent)
_shtab_acp_proxy_budget_set___mode_choices=(shadow warn enforce)
_shtab_acp_proxy_budget_set___on_exceed_choices=(finish_turn deny_next_tool cancel)
_shtab_acp_proxy_budget_pos_0_choices=(list check grant grants request requests approve deny simulate add set remove undo history)
_shtab_acp_proxy_hub_token_create___role_choices=(administrator finance lead developer service)
_shtab_acp_proxy_hub_token_create___scope_choices=(meter read metrics scim)
_shtab_acp_proxy_hub_token_revoke_pos_0_choices=(last)
_shtab_acp_proxy_hub_token_pos_0_choices=(create list revoke)
_shtab_acp_proxy_hub_keys_pos_0_choices=(rotate)
_shtab_acp_proxy_hub_audit_pos_0_choices=(export verify)
_shtab_acp_proxy_hub_pos_0_choices=(token keys audit retention)
_shtab_acp_proxy_notify_pos_0_choices=(test)
_shtab_acp_proxy_setup_pos_0_choices=(zed vscode jetbrains codecompanion avante agentic agent-shell obsidian toad acpx)
_shtab_acp_proxy_setup___agent_choices=(claude codex gemini goose opencode qwen)
_shtab_acp_proxy_prices_pos_0_choices=(list show cost set remove)
_shtab_acp_proxy_ledger_pos_0_choices=(copy forget-user)
_shtab_acp_proxy_login___store_choices=(keyring file)
_shtab_acp_proxy_completion_pos_0_choices=(bash zsh fish)
_shtab_acp_proxy_pos_0_choices=(run report export reconcile session status budget serve hub metrics notify setup prices ledger import login logout whoami config doctor demo completion)

_shtab_acp_proxy_run__h_nargs=0
_shtab_acp_proxy_run___help_nargs=0
_shtab_acp_proxy_run___no_summary_nargs=0
_shtab_acp_proxy_report__h_nargs=0
_shtab_acp_proxy_report___help_nargs=0
_shtab_acp_proxy_report___coverage_nargs=0
_shtab_acp_proxy_report___plans_nargs=0
_shtab_acp_proxy_report___json_nargs=0
_shtab_acp_proxy_report___csv_nargs=0
_shtab_acp_proxy_export__h_nargs=0
_shtab_acp_proxy_export___help_nargs=0
_shtab_acp_proxy_export___focus_nargs='?'
_shtab_acp_proxy_export___json_nargs=0
_shtab_acp_proxy_reconcile_pos_1_nargs=+
_shtab_acp_proxy_reconcile__h_nargs=0
_shtab_acp_proxy_reconcile___help_nargs=0
_shtab_acp_proxy_reconcile___api_nargs=0
_shtab_acp_proxy_reconcile___keep_nargs=0
_shtab_acp_proxy_reconcile___json_nargs=0
_shtab_acp_proxy_reconcile___csv_nargs=0
_shtab_acp_proxy_session__h_nargs=0
_shtab_acp_proxy_session___help_nargs=0
_shtab_acp_proxy_session___all_nargs=0
_shtab_acp_proxy_session___json_nargs=0
_shtab_acp_proxy_status__h_nargs=0
_shtab_acp_proxy_status___help_nargs=0
_shtab_acp_proxy_status___json_nargs=0
_shtab_acp_proxy_budget_list__h_nargs=0
_shtab_acp_proxy_budget_list___help_nargs=0
_shtab_acp_proxy_budget_list___json_nargs=0
_shtab_acp_proxy_budget_check__h_nargs=0
_shtab_acp_proxy_budget_check___help_nargs=0
_shtab_acp_proxy_budget_grant__h_nargs=0
_shtab_acp_proxy_budget_grant___help_nargs=0
_shtab_acp_proxy_budget_grants__h_nargs=0
_shtab_acp_proxy_budget_grants___help_nargs=0
_shtab_acp_proxy_budget_grants___json_nargs=0
_shtab_acp_proxy_budget_request__h_nargs=0
_shtab_acp_proxy_budget_request___help_nargs=0
_shtab_acp_proxy_budget_requests__h_nargs=0
_shtab_acp_proxy_budget_requests___help_nargs=0
_shtab_acp_proxy_budget_requests___json_nargs=0
_shtab_acp_proxy_budget_requests___own_nargs=0
_shtab_acp_proxy_budget_approve__h_nargs=0
_shtab_acp_proxy_budget_approve___help_nargs=0
_shtab_acp_proxy_budget_deny__h_nargs=0
_shtab_acp_proxy_budget_deny___help_nargs=0
_shtab_acp_proxy_budget_simulate__h_nargs=0
_shtab_acp_proxy_budget_simulate___help_nargs=0
_shtab_acp_proxy_budget_simulate___json_nargs=0
_shtab_acp_proxy_budget_add__h_nargs=0
_shtab_acp_proxy_budget_add___help_nargs=0
_shtab_acp_proxy_budget_add___dry_run_nargs=0
_shtab_acp_proxy_budget_add___own_nargs=0
_shtab_acp_proxy_budget_set__h_nargs=0
_shtab_acp_proxy_budget_set___help_nargs=0
_shtab_acp_proxy_budget_set___dry_run_nargs=0
_shtab_acp_proxy_budget_set___own_nargs=0
_shtab_acp_proxy_budget_remove__h_nargs=0
_shtab_acp_proxy_budget_remove___help_nargs=0
_shtab_acp_proxy_budget_remove___dry_run_nargs=0
_shtab_acp_proxy_budget_remove___own_nargs=0
_shtab_acp_proxy_budget_undo__h_nargs=0
_shtab_acp_proxy_budget_undo___help_nargs=0
_shtab_acp_proxy_budget_undo___dry_run_nargs=0
_shtab_acp_proxy_budget_undo___own_nargs=0
_shtab_acp_proxy_budget_history__h_nargs=0
_shtab_acp_proxy_budget_history___help_nargs=0
_shtab_acp_proxy_budget_history___json_nargs=0
_shtab_acp_proxy_budget_pos_0_nargs=A...
_shtab_acp_proxy_budget__h_nargs=0
_shtab_acp_proxy_budget___help_nargs=0
_shtab_acp_proxy_serve__h_nargs=0
_shtab_acp_proxy_serve___help_nargs=0
_shtab_acp_proxy_hub_token_create__h_nargs=0
_shtab_acp_proxy_hub_token_create___help_nargs=0
_shtab_acp_proxy_hub_token_create___json_nargs=0
_shtab_acp_proxy_hub_token_list__h_nargs=0
_shtab_acp_proxy_hub_token_list___help_nargs=0
_shtab_acp_proxy_hub_token_list___json_nargs=0
_shtab_acp_proxy_hub_token_revoke__h_nargs=0
_shtab_acp_proxy_hub_token_revoke___help_nargs=0
_shtab_acp_proxy_hub_token_pos_0_nargs=A...
_shtab_acp_proxy_hub_token__h_nargs=0
_shtab_acp_proxy_hub_token___help_nargs=0
_shtab_acp_proxy_hub_keys_rotate__h_nargs=0
_shtab_acp_proxy_hub_keys_rotate___help_nargs=0
_shtab_acp_proxy_hub_keys_rotate___forget_nargs=0
_shtab_acp_proxy_hub_keys_pos_0_nargs=A...
_shtab_acp_proxy_hub_keys__h_nargs=0
_shtab_acp_proxy_hub_keys___help_nargs=0
_shtab_acp_proxy_hub_audit_export__h_nargs=0
_shtab_acp_proxy_hub_audit_export___help_nargs=0
_shtab_acp_proxy_hub_audit_verify__h_nargs=0
_shtab_acp_proxy_hub_audit_verify___help_nargs=0
_shtab_acp_proxy_hub_audit_pos_0_nargs=A...
_shtab_acp_proxy_hub_audit__h_nargs=0
_shtab_acp_proxy_hub_audit___help_nargs=0
_shtab_acp_proxy_hub_retention__h_nargs=0
_shtab_acp_proxy_hub_retention___help_nargs=0
_shtab_acp_proxy_hub_pos_0_nargs=A...
_shtab_acp_proxy_hub__h_nargs=0
_shtab_acp_proxy_hub___help_nargs=0
_shtab_acp_proxy_metrics__h_nargs=0
_shtab_acp_proxy_metrics___help_nargs=0
_shtab_acp_proxy_notify_test__h_nargs=0
_shtab_acp_proxy_notify_test___help_nargs=0
_shtab_acp_proxy_notify_pos_0_nargs=A...
_shtab_acp_proxy_notify__h_nargs=0
_shtab_acp_proxy_notify___help_nargs=0
_shtab_acp_proxy_setup__h_nargs=0
_shtab_acp_proxy_setup___help_nargs=0
_shtab_acp_proxy_setup___list_nargs=0
_shtab_acp_proxy_setup___dry_run_nargs=0
_shtab_acp_proxy_setup___undo_nargs=0
_shtab_acp_proxy_prices_list__h_nargs=0
_shtab_acp_proxy_prices_list___help_nargs=0
_shtab_acp_proxy_prices_list___json_nargs=0
_shtab_acp_proxy_prices_show__h_nargs=0
_shtab_acp_proxy_prices_show___help_nargs=0
_shtab_acp_proxy_prices_show___json_nargs=0
_shtab_acp_proxy_prices_cost__h_nargs=0
_shtab_acp_proxy_prices_cost___help_nargs=0
_shtab_acp_proxy_prices_cost___json_nargs=0
_shtab_acp_proxy_prices_set__h_nargs=0
_shtab_acp_proxy_prices_set___help_nargs=0
_shtab_acp_proxy_prices_set___dry_run_nargs=0
_shtab_acp_proxy_prices_remove__h_nargs=0
_shtab_acp_proxy_prices_remove___help_nargs=0
_shtab_acp_proxy_prices_remove___dry_run_nargs=0
_shtab_acp_proxy_prices_pos_0_nargs=A...
_shtab_acp_proxy_prices__h_nargs=0
_shtab_acp_proxy_prices___help_nargs=0
_shtab_acp_proxy_ledger_copy__h_nargs=0
_shtab_acp_proxy_ledger_copy___help_nargs=0
_shtab_acp_proxy_ledger_forget_user__h_nargs=0
_shtab_acp_proxy_ledger_forget_user___help_nargs=0
_shtab_acp_proxy_ledger_pos_0_nargs=A...
_shtab_acp_proxy_ledger__h_nargs=0
_shtab_acp_proxy_ledger___help_nargs=0
_shtab_acp_proxy_import_pos_0_nargs='*'
_shtab_acp_proxy_import__h_nargs=0
_shtab_acp_proxy_import___help_nargs=0
_shtab_acp_proxy_import___dry_run_nargs=0
_shtab_acp_proxy_import___json_nargs=0
_shtab_acp_proxy_login__h_nargs=0
_shtab_acp_proxy_login___help_nargs=0
_shtab_acp_proxy_login___no_browser_nargs=0
_shtab_acp_proxy_logout__h_nargs=0
_shtab_acp_proxy_logout___help_nargs=0
_shtab_acp_proxy_whoami__h_nargs=0
_shtab_acp_proxy_whoami___help_nargs=0
_shtab_acp_proxy_whoami___json_nargs=0
_shtab_acp_proxy_config__h_nargs=0
_shtab_acp_proxy_config___help_nargs=0
_shtab_acp_proxy_config___json_nargs=0
_shtab_acp_proxy_doctor__h_nargs=0
_shtab_acp_proxy_doctor___help_nargs=0
_shtab_acp_proxy_doctor___rebuild_nargs=0
_shtab_acp_proxy_demo__h_nargs=0
_shtab_acp_proxy_demo___help_nargs=0
_shtab_acp_proxy_completion__h_nargs=0
_shtab_acp_proxy_completion___help_nargs=0
_shtab_acp_proxy_pos_0_nargs=A...
_shtab_acp_proxy__h_nargs=0
_shtab_acp_proxy___help_nargs=0
_shtab_acp_proxy__V_nargs=0
_shtab_acp_proxy___version_nargs=0


# $1=COMP_WORDS[1]
_shtab_compgen_files() {
  compgen -f -- $1  # files
}

# $1=COMP_WORDS[1]
_shtab_compgen_dirs() {
  compgen -d -- $1  # recurse into subdirs
}

# $1=COMP_WORDS[1]
_shtab_replace_nonword() {
  echo "${1//[^[:word:]]/_}"
}

# set default values (called for the initial parser & any subparsers)
_set_parser_defaults() {
  local subparsers_var="${prefix}_subparsers[@]"
  sub_parsers=${!subparsers_var-}

  local current_option_strings_var="${prefix}_option_strings[@]"
  current_option_strings=${!current_option_strings_var}

  completed_positional_actions=0

  _set_new_action "pos_$completed_positional_actions" true
}

# $1=action identifier
# $2=positional action (bool)
# set all identifiers for an action's parameters
_set_new_action() {
  current_action="${prefix}_$(_shtab_replace_nonword $1)"

  local current_action_compgen_var=${current_action}_COMPGEN
  current_action_compgen="${!current_action_compgen_var-}"

  local current_action_choices_var="${current_action}_choices[@]"
  current_action_choices="${!current_action_choices_var-}"

  local current_action_nargs_var="${current_action}_nargs"
  if [ -n "${!current_action_nargs_var-}" ]; then
    current_action_nargs="${!current_action_nargs_var}"
  else
    current_action_nargs=1
  fi

  current_action_args_start_index=$(( $word_index + 1 - $pos_only ))

  current_action_is_positional=$2
}

# Notes:
# `COMPREPLY`: what will be rendered after completion is triggered
# `completing_word`: currently typed word to generate completions for
# `${!var}`: evaluates the content of `var` and expand its content as a variable
#     hello="world"
#     x="hello"
#     ${!x} -> ${hello} -> "world"
_shtab_acp_proxy() {
  local completing_word="${COMP_WORDS[COMP_CWORD]}"
  local previous_word="${COMP_WORDS[COMP_CWORD-1]}"
  local completed_positional_actions
  local current_action
  local current_action_args_start_index
  local current_action_choices
  local current_action_compgen
  local current_action_is_positional
  local current_action_nargs
  local current_option_strings
  local sub_parsers
  COMPREPLY=()

  local prefix=_shtab_acp_proxy
  local word_index=0
  local pos_only=0 # "--" delimiter not encountered yet
  _set_parser_defaults
  word_index=1

  # determine what arguments are appropriate for the current state
  # of the arg parser
  while [ $word_index -ne $COMP_CWORD ]; do
    local this_word="${COMP_WORDS[$word_index]}"

    if [[ $pos_only = 1 || " $this_word " != " -- " ]]; then
      if [[ -n $sub_parsers && " ${sub_parsers[@]} " == *" $this_word "* ]]; then
        # valid subcommand: add it to the prefix & reset the current action
        prefix="${prefix}_$(_shtab_replace_nonword $this_word)"
        _set_parser_defaults
      fi

      if [[ " ${current_option_strings[@]} " == *" $this_word "* ]]; then
        # a new action should be acquired (due to recognised option string or
        # no more input expected from current action);
        # the next positional action can fill in here
        _set_new_action $this_word false
      fi

      if [[ "$current_action_nargs" != "*" ]] && \
         [[ "$current_action_nargs" != "+" ]] && \
         [[ "$current_action_nargs" != "?" ]] && \
         [[ "$current_action_nargs" != *"..." ]] && \
         (( $word_index + 1 - $current_action_args_start_index - $pos_only >= \
            $current_action_nargs )); then
        $current_action_is_positional && let "completed_positional_actions += 1"
        _set_new_action "pos_$completed_positional_actions" true
      fi
    else
      pos_only=1 # "--" delimiter encountered
    fi

    let "word_index+=1"
  done

  # Generate the completions

  COMPREPLY=()
  if [[ $pos_only = 0 && "$completing_word" == -* &&
        ( -z "$current_action_compgen" || "$current_action_is_positional" = true ) ]]; then
    # optional argument started: use option strings
    while IFS= read -r line; do COMPREPLY+=("$line"); done < <(
      compgen -W "${current_option_strings[*]}" -- "$completing_word")
  elif [[ "$previous_word" =~ ^[0-9\&]*[\<\>]\>?$ ]]; then
    # handle redirection operators
    compopt -o filenames 2>/dev/null || : # bash>=4
    while IFS= read -r line; do COMPREPLY+=("$line"); done < <(compgen -f -- "$completing_word")
  else
    # use choices & compgen
    local action_compgen_word="$completing_word"
    # handle tab-completing in the middle of a line (#248 <- #116)
    [[ -n "$current_action_compgen" && "$completing_word" == -* ]] && action_compgen_word=""
    [ -n "$current_action_compgen" ] && {
      [[ "$current_action_compgen" =~ _(file|dir|glob|FILE|DIR|GLOB)|File|Dir|Glob ]] &&
        compopt -o filenames 2>/dev/null || : # bash>=4
      while IFS= read -r line; do COMPREPLY+=("$line"); done < <(
        "$current_action_compgen" "$action_compgen_word")
    }
    while IFS= read -r line; do COMPREPLY+=("$line"); done < <(
      compgen -W "${current_action_choices[*]}" -- "$completing_word")
  fi

  if [[ ${#COMPREPLY[@]} = 0 ]]; then
    # native fallback matches are not necessarily filenames (e.g. variables)
    compopt +o filenames 2>/dev/null || : # bash>=4
  fi

  return 0
}

# After -- stands the agent's command: it is completed as it is without acp-proxy before it.
_acp_proxy() {
  local at
  for (( at = 1; at < COMP_CWORD; at++ )); do
    [[ ${COMP_WORDS[at]} == -- ]] || continue
    if declare -F _comp_command_offset >/dev/null; then
      _comp_command_offset $(( at + 1 ))
    elif declare -F _command_offset >/dev/null; then
      _command_offset $(( at + 1 ))
    elif (( at + 1 == COMP_CWORD )); then
      COMPREPLY=( $(compgen -c -- "${COMP_WORDS[COMP_CWORD]}") )
    else
      COMPREPLY=()
    fi
    return
  done
  _acp_proxy_words
}

# Bash takes a URL or a time apart at its colons, and --by=month at its =.
_acp_proxy_words() {
  local rest=$COMP_LINE words=() at last word option=
  for (( at = 0; at <= COMP_CWORD; at++ )); do
    word=${COMP_WORDS[at]} last=$(( ${#words[@]} - 1 ))
    if [[ $at -gt 0 && $rest != [[:space:]]* && ( $word == [=:]* || ${words[last]} == *[=:] ) ]]; then
      words[last]+=$word
    else
      rest=${rest#"${rest%%[![:space:]]*}"} words+=("$word")
    fi
    rest=${rest#"$word"}
  done
  [[ $word == --*=* ]] && option=${word%%=*}=  # where = is none of COMP_WORDBREAKS
  local COMP_WORDS=()
  for word in "${words[@]}"; do
    if [[ $word == --*=* ]]; then
      COMP_WORDS+=("${word%%=*}" "${word#*=}")
    else
      COMP_WORDS+=("$word")
    fi
  done
  local COMP_CWORD=$(( ${#COMP_WORDS[@]} - 1 ))
  _shtab_acp_proxy
  [[ -z $option ]] || COMPREPLY=("${COMPREPLY[@]/#/$option}")
}

complete -o bashdefault -o default -F _acp_proxy acp-proxy
