# Made by scripts/build-completion, of options 8f40f02c6b28cce6
# It begins with what shtab 1.13.0 makes (https://github.com/tqdm/shtab, Apache-2.0).

# Parse current commandline:
# - _shtab_acp_proxy_cmdpath=(sub)command path seen so far
# - _shtab_acp_proxy_npos=number of positional arguments given after it
# - options are skipped based on _shtab_acp_proxy_opts_with_value & _shtab_acp_proxy_commands lists
function _shtab_acp_proxy_scan
  set -g _shtab_acp_proxy_cmdpath ''
  set -g _shtab_acp_proxy_npos 0
  set -l tokens (commandline -opc)
  set -e tokens[1]
  set -l expect_value 0
  for t in $tokens
    if test $expect_value -eq 1
      set expect_value 0
      continue
    end
    switch "$t"
      case '--*=*'
        continue
      case '-*'
        if contains -- $t $_shtab_acp_proxy_opts_with_value
          set expect_value 1
        end
        continue
      case '*'
        if test $_shtab_acp_proxy_npos -eq 0
          set -l candidate $t
          if test -n "$_shtab_acp_proxy_cmdpath"
            set candidate "$_shtab_acp_proxy_cmdpath $t"
          end
          if contains -- $candidate $_shtab_acp_proxy_commands
            set -g _shtab_acp_proxy_cmdpath $candidate
            continue
          end
        end
        set -g _shtab_acp_proxy_npos (math $_shtab_acp_proxy_npos + 1)
    end
  end
end

# Condition helper: true if the current (sub)command path equals the given one.
function _shtab_acp_proxy_using
  _shtab_acp_proxy_scan
  test "$_shtab_acp_proxy_cmdpath" = "$argv"
end

set -g _shtab_acp_proxy_commands run report export reconcile session status budget 'budget list' 'budget check' 'budget grant' 'budget grants' 'budget simulate' 'budget add' 'budget set' 'budget remove' 'budget undo' serve metrics notify 'notify test' setup prices 'prices list' 'prices show' 'prices cost' ledger 'ledger copy' import config doctor demo completion
set -g _shtab_acp_proxy_opts_with_value --agent --amount --at --budget --by --cached-read --cached-write --cached-write-1h --column --config --context-used --currency --focus --for --for-agent --for-project --for-team --for-user --format --from --host --input --key --layer --ledger --limit --log --log-level --map --mode --model --on-exceed --on-overage --output --per --percent --plan --port --project --reason --scope --since --team --textfile --thought --timezone --title --to --token-file --tokens --turns --tz --until --url --user --window

complete -c acp-proxy -e
complete -c acp-proxy -f

complete -c acp-proxy -n _shtab_acp_proxy_using -s h -l help -d 'show this help message and exit'
complete -c acp-proxy -n _shtab_acp_proxy_using -s V -l version -d 'show program'"'"'s version number and exit'
complete -c acp-proxy -n _shtab_acp_proxy_using -l config -rF -d 'in place of the user'"'"'s configuration file'
complete -c acp-proxy -n _shtab_acp_proxy_using -l ledger -rF -d 'the ledger: a file, or postgresql://HOST/DATABASE'
complete -c acp-proxy -n '_shtab_acp_proxy_using; and test $_shtab_acp_proxy_npos -eq 0' -a run -d 'Relay an agent and meter it. Everything after -- belongs to the agent; its exit status is the exit status.'
complete -c acp-proxy -n '_shtab_acp_proxy_using run' -s h -l help -d 'show this help message and exit'
complete -c acp-proxy -n '_shtab_acp_proxy_using run' -l config -rF -d 'in place of the user'"'"'s configuration file'
complete -c acp-proxy -n '_shtab_acp_proxy_using run' -l ledger -rF -d 'the ledger: a file, or postgresql://HOST/DATABASE'
complete -c acp-proxy -n '_shtab_acp_proxy_using run' -l agent -x -d 'a name to use instead of the one that the agent reports'
complete -c acp-proxy -n '_shtab_acp_proxy_using run' -l user -x -d 'who pays; by default the login name'
complete -c acp-proxy -n '_shtab_acp_proxy_using run' -l team -x -d 'by default none'
complete -c acp-proxy -n '_shtab_acp_proxy_using run' -l project -x -d 'by default the name of the git repository'
complete -c acp-proxy -n '_shtab_acp_proxy_using run' -l budget -x -d 'US dollars that this run may spend, over all its sessions'
complete -c acp-proxy -n '_shtab_acp_proxy_using run' -l no-summary -d 'no summary on stderr at the end'
complete -c acp-proxy -n '_shtab_acp_proxy_using run' -l log -rF -d 'log to a file instead of stderr'
complete -c acp-proxy -n '_shtab_acp_proxy_using run' -l log-level -xka "debug info warning error" -d 'how much is logged, by default warning'
complete -c acp-proxy -n '_shtab_acp_proxy_using; and test $_shtab_acp_proxy_npos -eq 0' -a report -d 'What was spent.'
complete -c acp-proxy -n '_shtab_acp_proxy_using report' -s h -l help -d 'show this help message and exit'
complete -c acp-proxy -n '_shtab_acp_proxy_using report' -l config -rF -d 'in place of the user'"'"'s configuration file'
complete -c acp-proxy -n '_shtab_acp_proxy_using report' -l ledger -rF -d 'the ledger: a file, or postgresql://HOST/DATABASE'
complete -c acp-proxy -n '_shtab_acp_proxy_using report' -l by -xka "hour day week month session turn model agent project user team kind" -d 'what each row is of, by default a day'
complete -c acp-proxy -n '_shtab_acp_proxy_using report' -l since -x -d 'from then on, by default all: 2026-11-01, 2026-11, 2026-W47, today, yesterday, week, month, an RFC 3339 time, or 7d before now (also m, h, w)'
complete -c acp-proxy -n '_shtab_acp_proxy_using report' -l until -x -d 'before then, in the same forms; by default all'
complete -c acp-proxy -n '_shtab_acp_proxy_using report' -l tz -x -d 'a time zone such as Europe/Berlin; by default the local one'
complete -c acp-proxy -n '_shtab_acp_proxy_using report' -l agent -x -d 'only this agent'
complete -c acp-proxy -n '_shtab_acp_proxy_using report' -l model -x -d 'only this model'
complete -c acp-proxy -n '_shtab_acp_proxy_using report' -l user -x -d 'only this user'
complete -c acp-proxy -n '_shtab_acp_proxy_using report' -l team -x -d 'only this team'
complete -c acp-proxy -n '_shtab_acp_proxy_using report' -l project -x -d 'only this project'
complete -c acp-proxy -n '_shtab_acp_proxy_using report' -l title -x -d 'part of a session'"'"'s title'
complete -c acp-proxy -n '_shtab_acp_proxy_using report' -l coverage -d 'how much of what agents used went through acp-proxy, and how much around it, by what was imported'
complete -c acp-proxy -n '_shtab_acp_proxy_using report' -l limit -x -d 'at most N lines: those that cost most, or the latest days, weeks or months'
complete -c acp-proxy -n '_shtab_acp_proxy_using report' -l plans -d 'windows of plans and their history, in place of spend'
complete -c acp-proxy -n '_shtab_acp_proxy_using report' -l json -d 'exact figures, for programs'
complete -c acp-proxy -n '_shtab_acp_proxy_using report' -l csv -d 'the same for spreadsheets'
complete -c acp-proxy -n '_shtab_acp_proxy_using report; and test $_shtab_acp_proxy_npos -eq 0' -ka "hour day week month session turn model agent project user team kind today yesterday" -d 'as --by; or today, yesterday'
complete -c acp-proxy -n '_shtab_acp_proxy_using; and test $_shtab_acp_proxy_npos -eq 0' -a export -d 'Spend in the columns of FinOps FOCUS, for chargeback.'
complete -c acp-proxy -n '_shtab_acp_proxy_using export' -s h -l help -d 'show this help message and exit'
complete -c acp-proxy -n '_shtab_acp_proxy_using export' -l config -rF -d 'in place of the user'"'"'s configuration file'
complete -c acp-proxy -n '_shtab_acp_proxy_using export' -l ledger -rF -d 'the ledger: a file, or postgresql://HOST/DATABASE'
complete -c acp-proxy -n '_shtab_acp_proxy_using export' -l focus -xka "1.2 1.3 1.4" -d 'in the columns of FinOps FOCUS: 1.2, 1.3, 1.4; 1.2 where none is named'
complete -c acp-proxy -n '_shtab_acp_proxy_using export' -l since -x -d 'from then on, by default all: 2026-11-01, 2026-11, 2026-W47, today, yesterday, week, month, an RFC 3339 time, or 7d before now (also m, h, w)'
complete -c acp-proxy -n '_shtab_acp_proxy_using export' -l until -x -d 'before then, in the same forms; by default all'
complete -c acp-proxy -n '_shtab_acp_proxy_using export' -l tz -x -d 'a time zone such as Europe/Berlin; by default the local one'
complete -c acp-proxy -n '_shtab_acp_proxy_using export' -l json -d 'as JSON instead of CSV'
complete -c acp-proxy -n '_shtab_acp_proxy_using; and test $_shtab_acp_proxy_npos -eq 0' -a reconcile -d 'A provider'"'"'s bill beside the ledger, and why they differ.'
complete -c acp-proxy -n '_shtab_acp_proxy_using reconcile' -s h -l help -d 'show this help message and exit'
complete -c acp-proxy -n '_shtab_acp_proxy_using reconcile' -l config -rF -d 'in place of the user'"'"'s configuration file'
complete -c acp-proxy -n '_shtab_acp_proxy_using reconcile' -l ledger -rF -d 'the ledger: a file, or postgresql://HOST/DATABASE'
complete -c acp-proxy -n '_shtab_acp_proxy_using reconcile' -l api -d 'ask the provider'"'"'s API, in place of files'
complete -c acp-proxy -n '_shtab_acp_proxy_using reconcile' -l since -x -d 'with --api: days of UTC, such as 2026-11-01; without --until those that are over'
complete -c acp-proxy -n '_shtab_acp_proxy_using reconcile' -l until -x -d 'the first day that is no longer of the bill'
complete -c acp-proxy -n '_shtab_acp_proxy_using reconcile' -l key -x -d 'with --api: ${NAME} of the environment or ${file:PATH}; by default ANTHROPIC_ADMIN_KEY and the like'
complete -c acp-proxy -n '_shtab_acp_proxy_using reconcile' -l url -x -d 'with --api: where it is, as of LiteLLM'
complete -c acp-proxy -n '_shtab_acp_proxy_using reconcile' -l by -xka "day model user key" -d 'what each row is of, by default a day'
complete -c acp-proxy -n '_shtab_acp_proxy_using reconcile' -l map -x -d 'the ledger'"'"'s USER of a user or key on the bill; may be repeated'
complete -c acp-proxy -n '_shtab_acp_proxy_using reconcile' -l column -x -d 'of csv: which column has the day, model, user, key, input, prompt, cached_read, output, amount …'
complete -c acp-proxy -n '_shtab_acp_proxy_using reconcile' -l keep -d 'keep how much of the bill the ledger has, for metrics and alerts'
complete -c acp-proxy -n '_shtab_acp_proxy_using reconcile' -l json -d 'exact figures, for programs'
complete -c acp-proxy -n '_shtab_acp_proxy_using reconcile' -l csv -d 'the same for spreadsheets'
complete -c acp-proxy -n '_shtab_acp_proxy_using reconcile; and test $_shtab_acp_proxy_npos -eq 0' -ka "anthropic openai litellm csv" -d 'one of anthropic, openai, litellm, csv'
complete -c acp-proxy -n '_shtab_acp_proxy_using reconcile; and test $_shtab_acp_proxy_npos -ge 1' -ka "FILES" -d 'downloaded pages of the bill, in any order: JSON, or CSV'
complete -c acp-proxy -n '_shtab_acp_proxy_using; and test $_shtab_acp_proxy_npos -eq 0' -a session -d 'One session: its turns, tokens, cost, and context as a plot.'
complete -c acp-proxy -n '_shtab_acp_proxy_using session' -s h -l help -d 'show this help message and exit'
complete -c acp-proxy -n '_shtab_acp_proxy_using session' -l config -rF -d 'in place of the user'"'"'s configuration file'
complete -c acp-proxy -n '_shtab_acp_proxy_using session' -l ledger -rF -d 'the ledger: a file, or postgresql://HOST/DATABASE'
complete -c acp-proxy -n '_shtab_acp_proxy_using session' -l all -d 'list every turn, not only the latest 40'
complete -c acp-proxy -n '_shtab_acp_proxy_using session' -l tz -x -d 'a time zone such as Europe/Berlin; by default the local one'
complete -c acp-proxy -n '_shtab_acp_proxy_using session' -l json -d 'exact figures, for programs'
complete -c acp-proxy -n '_shtab_acp_proxy_using session; and test $_shtab_acp_proxy_npos -eq 0' -ka "last" -d 'its id, the first characters of its key in a report by session, a part of its title, or last (default)'
complete -c acp-proxy -n '_shtab_acp_proxy_using; and test $_shtab_acp_proxy_npos -eq 0' -a status -d 'One line: today'"'"'s spend, what is left of a budget, the last turn.'
complete -c acp-proxy -n '_shtab_acp_proxy_using status' -s h -l help -d 'show this help message and exit'
complete -c acp-proxy -n '_shtab_acp_proxy_using status' -l config -rF -d 'in place of the user'"'"'s configuration file'
complete -c acp-proxy -n '_shtab_acp_proxy_using status' -l ledger -rF -d 'the ledger: a file, or postgresql://HOST/DATABASE'
complete -c acp-proxy -n '_shtab_acp_proxy_using status' -l format -x -d 'with fields in braces: today, week, month, turns, tokens, budget, left, limit, used, resets, plan, last, last_tokens, agent, model, context; or json'
complete -c acp-proxy -n '_shtab_acp_proxy_using status' -l json -d 'exact figures, for programs'
complete -c acp-proxy -n '_shtab_acp_proxy_using; and test $_shtab_acp_proxy_npos -eq 0' -a budget -d 'Budgets: what is left, and how to allow more for a while.'
complete -c acp-proxy -n '_shtab_acp_proxy_using budget' -s h -l help -d 'show this help message and exit'
complete -c acp-proxy -n '_shtab_acp_proxy_using budget' -l config -rF -d 'in place of the user'"'"'s configuration file'
complete -c acp-proxy -n '_shtab_acp_proxy_using budget' -l ledger -rF -d 'the ledger: a file, or postgresql://HOST/DATABASE'
complete -c acp-proxy -n '_shtab_acp_proxy_using budget; and test $_shtab_acp_proxy_npos -eq 0' -a list -d 'What is used, held and left of each budget; its reset.'
complete -c acp-proxy -n '_shtab_acp_proxy_using budget list' -s h -l help -d 'show this help message and exit'
complete -c acp-proxy -n '_shtab_acp_proxy_using budget list' -l config -rF -d 'in place of the user'"'"'s configuration file'
complete -c acp-proxy -n '_shtab_acp_proxy_using budget list' -l ledger -rF -d 'the ledger: a file, or postgresql://HOST/DATABASE'
complete -c acp-proxy -n '_shtab_acp_proxy_using budget list' -l json -d 'exact figures, for programs'
complete -c acp-proxy -n '_shtab_acp_proxy_using budget; and test $_shtab_acp_proxy_npos -eq 0' -a check -d 'Whether a prompt would be admitted now: status 0, or 3 when not.'
complete -c acp-proxy -n '_shtab_acp_proxy_using budget check' -s h -l help -d 'show this help message and exit'
complete -c acp-proxy -n '_shtab_acp_proxy_using budget check' -l config -rF -d 'in place of the user'"'"'s configuration file'
complete -c acp-proxy -n '_shtab_acp_proxy_using budget check' -l ledger -rF -d 'the ledger: a file, or postgresql://HOST/DATABASE'
complete -c acp-proxy -n '_shtab_acp_proxy_using budget check' -l agent -x -d 'the prompt'"'"'s agent; by default not known'
complete -c acp-proxy -n '_shtab_acp_proxy_using budget check' -l model -x -d 'the prompt'"'"'s model; by default not known'
complete -c acp-proxy -n '_shtab_acp_proxy_using budget check' -l user -x -d 'the prompt'"'"'s user; by default yours'
complete -c acp-proxy -n '_shtab_acp_proxy_using budget check' -l team -x -d 'the prompt'"'"'s team; by default yours'
complete -c acp-proxy -n '_shtab_acp_proxy_using budget check' -l project -x -d 'the prompt'"'"'s project; by default yours'
complete -c acp-proxy -n '_shtab_acp_proxy_using budget; and test $_shtab_acp_proxy_npos -eq 0' -a grant -d 'Allow more for a while.'
complete -c acp-proxy -n '_shtab_acp_proxy_using budget grant' -s h -l help -d 'show this help message and exit'
complete -c acp-proxy -n '_shtab_acp_proxy_using budget grant' -l config -rF -d 'in place of the user'"'"'s configuration file'
complete -c acp-proxy -n '_shtab_acp_proxy_using budget grant' -l ledger -rF -d 'the ledger: a file, or postgresql://HOST/DATABASE'
complete -c acp-proxy -n '_shtab_acp_proxy_using budget grant' -l amount -x -d 'in the budget'"'"'s currency, or tokens or turns'
complete -c acp-proxy -n '_shtab_acp_proxy_using budget grant' -l for -x -d 'how long: 90m, 2h, 7d'
complete -c acp-proxy -n '_shtab_acp_proxy_using budget grant' -l reason -x -d 'why; it is kept'
complete -c acp-proxy -n '_shtab_acp_proxy_using budget grant' -l for-user -x -d 'if the budget is per user: which one, by default yours; * for all'
complete -c acp-proxy -n '_shtab_acp_proxy_using budget grant' -l for-team -x -d 'if the budget is per team: which one, by default yours; * for all'
complete -c acp-proxy -n '_shtab_acp_proxy_using budget grant' -l for-project -x -d 'if the budget is per project: which one, by default yours; * for all'
complete -c acp-proxy -n '_shtab_acp_proxy_using budget grant' -l for-agent -x -d 'if the budget is per agent: which one, by default yours; * for all'
complete -c acp-proxy -n '_shtab_acp_proxy_using budget grant' -l layer -xka "admin user" -d 'which file'"'"'s, if two budgets have this name'
complete -c acp-proxy -n '_shtab_acp_proxy_using budget; and test $_shtab_acp_proxy_npos -eq 0' -a grants -d 'Who granted what, and why.'
complete -c acp-proxy -n '_shtab_acp_proxy_using budget grants' -s h -l help -d 'show this help message and exit'
complete -c acp-proxy -n '_shtab_acp_proxy_using budget grants' -l config -rF -d 'in place of the user'"'"'s configuration file'
complete -c acp-proxy -n '_shtab_acp_proxy_using budget grants' -l ledger -rF -d 'the ledger: a file, or postgresql://HOST/DATABASE'
complete -c acp-proxy -n '_shtab_acp_proxy_using budget grants' -l json -d 'exact figures, for programs'
complete -c acp-proxy -n '_shtab_acp_proxy_using budget; and test $_shtab_acp_proxy_npos -eq 0' -a simulate -d 'Which past turns the budgets of --config would have refused.'
complete -c acp-proxy -n '_shtab_acp_proxy_using budget simulate' -s h -l help -d 'show this help message and exit'
complete -c acp-proxy -n '_shtab_acp_proxy_using budget simulate' -l config -rF -d 'in place of the user'"'"'s configuration file'
complete -c acp-proxy -n '_shtab_acp_proxy_using budget simulate' -l ledger -rF -d 'the ledger: a file, or postgresql://HOST/DATABASE'
complete -c acp-proxy -n '_shtab_acp_proxy_using budget simulate' -l json -d 'exact figures, for programs'
complete -c acp-proxy -n '_shtab_acp_proxy_using budget simulate' -l since -x -d 'from then on, by default all: 2026-11-01, 2026-11, 2026-W47, today, yesterday, week, month, an RFC 3339 time, or 7d before now (also m, h, w)'
complete -c acp-proxy -n '_shtab_acp_proxy_using budget; and test $_shtab_acp_proxy_npos -eq 0' -a add -d 'Add a budget to the configuration.'
complete -c acp-proxy -n '_shtab_acp_proxy_using budget add' -s h -l help -d 'show this help message and exit'
complete -c acp-proxy -n '_shtab_acp_proxy_using budget add' -l config -rF -d 'in place of the user'"'"'s configuration file'
complete -c acp-proxy -n '_shtab_acp_proxy_using budget add' -l ledger -rF -d 'the ledger: a file, or postgresql://HOST/DATABASE'
complete -c acp-proxy -n '_shtab_acp_proxy_using budget add' -l amount -x -d 'the limit as an amount of money'
complete -c acp-proxy -n '_shtab_acp_proxy_using budget add' -l tokens -x -d 'the limit in tokens'
complete -c acp-proxy -n '_shtab_acp_proxy_using budget add' -l turns -x -d 'the limit in turns'
complete -c acp-proxy -n '_shtab_acp_proxy_using budget add' -l plan -x -d 'the limit as a percent of a plan'"'"'s window: five_hour, seven_day …'
complete -c acp-proxy -n '_shtab_acp_proxy_using budget add' -l percent -x -d 'of the plan'"'"'s window; by default 100'
complete -c acp-proxy -n '_shtab_acp_proxy_using budget add' -l on-overage -xka "allow deny" -d 'of a plan: whether prompts go that are paid beside it'
complete -c acp-proxy -n '_shtab_acp_proxy_using budget add' -l currency -x -d 'of the amount; by default USD'
complete -c acp-proxy -n '_shtab_acp_proxy_using budget add' -l window -x -d 'turn, session, day, week, month, quarter, total, rolling:24h, or a length such as 5h'
complete -c acp-proxy -n '_shtab_acp_proxy_using budget add' -l per -xka "user team project agent" -d 'one for each user, team, project or agent'
complete -c acp-proxy -n '_shtab_acp_proxy_using budget add' -l scope -x -d 'only what matches: team=core, model=*opus*; may be repeated'
complete -c acp-proxy -n '_shtab_acp_proxy_using budget add' -l timezone -x -d 'of its days, weeks and months; by default UTC'
complete -c acp-proxy -n '_shtab_acp_proxy_using budget add' -l mode -xka "shadow warn enforce" -d 'shadow, warn or enforce (default)'
complete -c acp-proxy -n '_shtab_acp_proxy_using budget add' -l on-exceed -xka "finish_turn deny_next_tool cancel" -d 'what happens to a turn that goes beyond it'
complete -c acp-proxy -n '_shtab_acp_proxy_using budget add' -l dry-run -d 'show the change, and write nothing'
complete -c acp-proxy -n '_shtab_acp_proxy_using budget; and test $_shtab_acp_proxy_npos -eq 0' -a set -d 'Change a budget of the configuration.'
complete -c acp-proxy -n '_shtab_acp_proxy_using budget set' -s h -l help -d 'show this help message and exit'
complete -c acp-proxy -n '_shtab_acp_proxy_using budget set' -l config -rF -d 'in place of the user'"'"'s configuration file'
complete -c acp-proxy -n '_shtab_acp_proxy_using budget set' -l ledger -rF -d 'the ledger: a file, or postgresql://HOST/DATABASE'
complete -c acp-proxy -n '_shtab_acp_proxy_using budget set' -l amount -x -d 'the limit as an amount of money'
complete -c acp-proxy -n '_shtab_acp_proxy_using budget set' -l tokens -x -d 'the limit in tokens'
complete -c acp-proxy -n '_shtab_acp_proxy_using budget set' -l turns -x -d 'the limit in turns'
complete -c acp-proxy -n '_shtab_acp_proxy_using budget set' -l plan -x -d 'the limit as a percent of a plan'"'"'s window: five_hour, seven_day …'
complete -c acp-proxy -n '_shtab_acp_proxy_using budget set' -l percent -x -d 'of the plan'"'"'s window; by default 100'
complete -c acp-proxy -n '_shtab_acp_proxy_using budget set' -l on-overage -xka "allow deny" -d 'of a plan: whether prompts go that are paid beside it'
complete -c acp-proxy -n '_shtab_acp_proxy_using budget set' -l currency -x -d 'of the amount; by default USD'
complete -c acp-proxy -n '_shtab_acp_proxy_using budget set' -l window -x -d 'turn, session, day, week, month, quarter, total, rolling:24h, or a length such as 5h'
complete -c acp-proxy -n '_shtab_acp_proxy_using budget set' -l per -xka "user team project agent" -d 'one for each user, team, project or agent'
complete -c acp-proxy -n '_shtab_acp_proxy_using budget set' -l scope -x -d 'only what matches: team=core, model=*opus*; may be repeated'
complete -c acp-proxy -n '_shtab_acp_proxy_using budget set' -l timezone -x -d 'of its days, weeks and months; by default UTC'
complete -c acp-proxy -n '_shtab_acp_proxy_using budget set' -l mode -xka "shadow warn enforce" -d 'shadow, warn or enforce (default)'
complete -c acp-proxy -n '_shtab_acp_proxy_using budget set' -l on-exceed -xka "finish_turn deny_next_tool cancel" -d 'what happens to a turn that goes beyond it'
complete -c acp-proxy -n '_shtab_acp_proxy_using budget set' -l dry-run -d 'show the change, and write nothing'
complete -c acp-proxy -n '_shtab_acp_proxy_using budget; and test $_shtab_acp_proxy_npos -eq 0' -a remove -d 'Remove a budget from the configuration.'
complete -c acp-proxy -n '_shtab_acp_proxy_using budget remove' -s h -l help -d 'show this help message and exit'
complete -c acp-proxy -n '_shtab_acp_proxy_using budget remove' -l config -rF -d 'in place of the user'"'"'s configuration file'
complete -c acp-proxy -n '_shtab_acp_proxy_using budget remove' -l ledger -rF -d 'the ledger: a file, or postgresql://HOST/DATABASE'
complete -c acp-proxy -n '_shtab_acp_proxy_using budget remove' -l dry-run -d 'show the change, and write nothing'
complete -c acp-proxy -n '_shtab_acp_proxy_using budget; and test $_shtab_acp_proxy_npos -eq 0' -a undo -d 'Take back the last add, set or remove.'
complete -c acp-proxy -n '_shtab_acp_proxy_using budget undo' -s h -l help -d 'show this help message and exit'
complete -c acp-proxy -n '_shtab_acp_proxy_using budget undo' -l config -rF -d 'in place of the user'"'"'s configuration file'
complete -c acp-proxy -n '_shtab_acp_proxy_using budget undo' -l ledger -rF -d 'the ledger: a file, or postgresql://HOST/DATABASE'
complete -c acp-proxy -n '_shtab_acp_proxy_using budget undo' -l dry-run -d 'show the change, and write nothing'
complete -c acp-proxy -n '_shtab_acp_proxy_using; and test $_shtab_acp_proxy_npos -eq 0' -a serve -d 'The ledger as a page for browsers, and metrics for Prometheus.'
complete -c acp-proxy -n '_shtab_acp_proxy_using serve' -s h -l help -d 'show this help message and exit'
complete -c acp-proxy -n '_shtab_acp_proxy_using serve' -l config -rF -d 'in place of the user'"'"'s configuration file'
complete -c acp-proxy -n '_shtab_acp_proxy_using serve' -l ledger -rF -d 'the ledger: a file, or postgresql://HOST/DATABASE'
complete -c acp-proxy -n '_shtab_acp_proxy_using serve' -l host -x -d 'where to listen; by default 127.0.0.1'
complete -c acp-proxy -n '_shtab_acp_proxy_using serve' -l port -x -d 'by default 9464; 0 picks a free one'
complete -c acp-proxy -n '_shtab_acp_proxy_using serve' -l token-file -rF -d 'a file with the token that clients must send; needed except on loopback'
complete -c acp-proxy -n '_shtab_acp_proxy_using; and test $_shtab_acp_proxy_npos -eq 0' -a metrics -d 'The metrics for Prometheus, in a file for node_exporter or on stdout.'
complete -c acp-proxy -n '_shtab_acp_proxy_using metrics' -s h -l help -d 'show this help message and exit'
complete -c acp-proxy -n '_shtab_acp_proxy_using metrics' -l config -rF -d 'in place of the user'"'"'s configuration file'
complete -c acp-proxy -n '_shtab_acp_proxy_using metrics' -l ledger -rF -d 'the ledger: a file, or postgresql://HOST/DATABASE'
complete -c acp-proxy -n '_shtab_acp_proxy_using metrics' -l textfile -rF -d 'a file for node_exporter'"'"'s textfile collector, written whole or not at all; by default stdout'
complete -c acp-proxy -n '_shtab_acp_proxy_using; and test $_shtab_acp_proxy_npos -eq 0' -a notify -d 'Try the webhooks for notifications.'
complete -c acp-proxy -n '_shtab_acp_proxy_using notify' -s h -l help -d 'show this help message and exit'
complete -c acp-proxy -n '_shtab_acp_proxy_using notify' -l config -rF -d 'in place of the user'"'"'s configuration file'
complete -c acp-proxy -n '_shtab_acp_proxy_using notify' -l ledger -rF -d 'the ledger: a file, or postgresql://HOST/DATABASE'
complete -c acp-proxy -n '_shtab_acp_proxy_using notify; and test $_shtab_acp_proxy_npos -eq 0' -a test -d 'Send a sample through each channel: status 1 when one fails.'
complete -c acp-proxy -n '_shtab_acp_proxy_using notify test' -s h -l help -d 'show this help message and exit'
complete -c acp-proxy -n '_shtab_acp_proxy_using notify test' -l config -rF -d 'in place of the user'"'"'s configuration file'
complete -c acp-proxy -n '_shtab_acp_proxy_using notify test' -l ledger -rF -d 'the ledger: a file, or postgresql://HOST/DATABASE'
complete -c acp-proxy -n '_shtab_acp_proxy_using; and test $_shtab_acp_proxy_npos -eq 0' -a setup -d 'Put the agents of an editor behind acp-proxy.'
complete -c acp-proxy -n '_shtab_acp_proxy_using setup' -s h -l help -d 'show this help message and exit'
complete -c acp-proxy -n '_shtab_acp_proxy_using setup' -l config -rF -d 'in place of the user'"'"'s configuration file'
complete -c acp-proxy -n '_shtab_acp_proxy_using setup' -l ledger -rF -d 'the ledger: a file, or postgresql://HOST/DATABASE'
complete -c acp-proxy -n '_shtab_acp_proxy_using setup' -l agent -xka "claude codex gemini goose opencode qwen" -d 'only this one; added if it is not there'
complete -c acp-proxy -n '_shtab_acp_proxy_using setup' -l list -d 'the editors, their settings, and the agents in them'
complete -c acp-proxy -n '_shtab_acp_proxy_using setup' -l dry-run -d 'show the change, and write nothing'
complete -c acp-proxy -n '_shtab_acp_proxy_using setup' -l undo -d 'put the settings back as they were'
complete -c acp-proxy -n '_shtab_acp_proxy_using setup; and test $_shtab_acp_proxy_npos -eq 0' -ka "zed vscode jetbrains codecompanion avante agentic agent-shell obsidian toad acpx" -d editor
complete -c acp-proxy -n '_shtab_acp_proxy_using; and test $_shtab_acp_proxy_npos -eq 0' -a prices -d 'What models cost.'
complete -c acp-proxy -n '_shtab_acp_proxy_using prices' -s h -l help -d 'show this help message and exit'
complete -c acp-proxy -n '_shtab_acp_proxy_using prices' -l config -rF -d 'in place of the user'"'"'s configuration file'
complete -c acp-proxy -n '_shtab_acp_proxy_using prices' -l ledger -rF -d 'the ledger: a file, or postgresql://HOST/DATABASE'
complete -c acp-proxy -n '_shtab_acp_proxy_using prices; and test $_shtab_acp_proxy_npos -eq 0' -a list -d 'Every model of the catalog.'
complete -c acp-proxy -n '_shtab_acp_proxy_using prices list' -s h -l help -d 'show this help message and exit'
complete -c acp-proxy -n '_shtab_acp_proxy_using prices list' -l config -rF -d 'in place of the user'"'"'s configuration file'
complete -c acp-proxy -n '_shtab_acp_proxy_using prices list' -l ledger -rF -d 'the ledger: a file, or postgresql://HOST/DATABASE'
complete -c acp-proxy -n '_shtab_acp_proxy_using prices list' -l at -x -d 'prices of that time, by default now: 2026-11-01, 7d …'
complete -c acp-proxy -n '_shtab_acp_proxy_using prices list' -l json -d 'exact figures, for programs'
complete -c acp-proxy -n '_shtab_acp_proxy_using prices; and test $_shtab_acp_proxy_npos -eq 0' -a show -d 'What a model id resolves to, and its prices.'
complete -c acp-proxy -n '_shtab_acp_proxy_using prices show' -s h -l help -d 'show this help message and exit'
complete -c acp-proxy -n '_shtab_acp_proxy_using prices show' -l config -rF -d 'in place of the user'"'"'s configuration file'
complete -c acp-proxy -n '_shtab_acp_proxy_using prices show' -l ledger -rF -d 'the ledger: a file, or postgresql://HOST/DATABASE'
complete -c acp-proxy -n '_shtab_acp_proxy_using prices show' -l at -x -d 'prices of that time, by default now: 2026-11-01, 7d …'
complete -c acp-proxy -n '_shtab_acp_proxy_using prices show' -l json -d 'exact figures, for programs'
complete -c acp-proxy -n '_shtab_acp_proxy_using prices; and test $_shtab_acp_proxy_npos -eq 0' -a cost -d 'What tokens cost.'
complete -c acp-proxy -n '_shtab_acp_proxy_using prices cost' -s h -l help -d 'show this help message and exit'
complete -c acp-proxy -n '_shtab_acp_proxy_using prices cost' -l input -x -d 'input tokens, except those read from or written to a cache'
complete -c acp-proxy -n '_shtab_acp_proxy_using prices cost' -l output -x -d 'output tokens, except thinking'
complete -c acp-proxy -n '_shtab_acp_proxy_using prices cost' -l thought -x -d 'tokens of thinking'
complete -c acp-proxy -n '_shtab_acp_proxy_using prices cost' -l cached-read -x -d 'input tokens read from a cache'
complete -c acp-proxy -n '_shtab_acp_proxy_using prices cost' -l cached-write -x -d 'input tokens written to a cache; [pricing] cache_write says for how long'
complete -c acp-proxy -n '_shtab_acp_proxy_using prices cost' -l cached-write-1h -x -d 'input tokens written to a cache for an hour'
complete -c acp-proxy -n '_shtab_acp_proxy_using prices cost' -l context-used -x -d 'the largest request'"'"'s context in tokens; without it all tokens are one request'
complete -c acp-proxy -n '_shtab_acp_proxy_using prices cost' -l config -rF -d 'in place of the user'"'"'s configuration file'
complete -c acp-proxy -n '_shtab_acp_proxy_using prices cost' -l ledger -rF -d 'the ledger: a file, or postgresql://HOST/DATABASE'
complete -c acp-proxy -n '_shtab_acp_proxy_using prices cost' -l at -x -d 'prices of that time, by default now: 2026-11-01, 7d …'
complete -c acp-proxy -n '_shtab_acp_proxy_using prices cost' -l json -d 'exact figures, for programs'
complete -c acp-proxy -n '_shtab_acp_proxy_using; and test $_shtab_acp_proxy_npos -eq 0' -a ledger -d 'Copy a ledger into another one.'
complete -c acp-proxy -n '_shtab_acp_proxy_using ledger' -s h -l help -d 'show this help message and exit'
complete -c acp-proxy -n '_shtab_acp_proxy_using ledger' -l config -rF -d 'in place of the user'"'"'s configuration file'
complete -c acp-proxy -n '_shtab_acp_proxy_using ledger' -l ledger -rF -d 'the ledger: a file, or postgresql://HOST/DATABASE'
complete -c acp-proxy -n '_shtab_acp_proxy_using ledger; and test $_shtab_acp_proxy_npos -eq 0' -a copy -d 'Copy all rows and grants into another ledger, which keeps what it has.'
complete -c acp-proxy -n '_shtab_acp_proxy_using ledger copy' -s h -l help -d 'show this help message and exit'
complete -c acp-proxy -n '_shtab_acp_proxy_using ledger copy' -l config -rF -d 'in place of the user'"'"'s configuration file'
complete -c acp-proxy -n '_shtab_acp_proxy_using ledger copy' -l ledger -rF -d 'the ledger: a file, or postgresql://HOST/DATABASE'
complete -c acp-proxy -n '_shtab_acp_proxy_using ledger copy' -l from -rF -d 'the source, as --ledger; by default the configured'
complete -c acp-proxy -n '_shtab_acp_proxy_using ledger copy' -l to -rF -d 'the target, as --ledger; by default the configured'
complete -c acp-proxy -n '_shtab_acp_proxy_using; and test $_shtab_acp_proxy_npos -eq 0' -a import -d 'What agents wrote of their calls into files of their own, also from before acp-proxy.'
complete -c acp-proxy -n '_shtab_acp_proxy_using import' -s h -l help -d 'show this help message and exit'
complete -c acp-proxy -n '_shtab_acp_proxy_using import' -l config -rF -d 'in place of the user'"'"'s configuration file'
complete -c acp-proxy -n '_shtab_acp_proxy_using import' -l ledger -rF -d 'the ledger: a file, or postgresql://HOST/DATABASE'
complete -c acp-proxy -n '_shtab_acp_proxy_using import' -l since -x -d 'only calls from then on, as for report'
complete -c acp-proxy -n '_shtab_acp_proxy_using import' -l dry-run -d 'show what would be imported, and write nothing'
complete -c acp-proxy -n '_shtab_acp_proxy_using import' -l json -d 'for programs'
complete -c acp-proxy -n '_shtab_acp_proxy_using; and test $_shtab_acp_proxy_npos -eq 0' -a config -d 'Every value of the configuration, and where it comes from.'
complete -c acp-proxy -n '_shtab_acp_proxy_using config' -s h -l help -d 'show this help message and exit'
complete -c acp-proxy -n '_shtab_acp_proxy_using config' -l config -rF -d 'in place of the user'"'"'s configuration file'
complete -c acp-proxy -n '_shtab_acp_proxy_using config' -l ledger -rF -d 'the ledger: a file, or postgresql://HOST/DATABASE'
complete -c acp-proxy -n '_shtab_acp_proxy_using config' -l json -d 'for programs'
complete -c acp-proxy -n '_shtab_acp_proxy_using; and test $_shtab_acp_proxy_npos -eq 0' -a doctor -d 'Check configuration, ledger and catalog.'
complete -c acp-proxy -n '_shtab_acp_proxy_using doctor' -s h -l help -d 'show this help message and exit'
complete -c acp-proxy -n '_shtab_acp_proxy_using doctor' -l config -rF -d 'in place of the user'"'"'s configuration file'
complete -c acp-proxy -n '_shtab_acp_proxy_using doctor' -l ledger -rF -d 'the ledger: a file, or postgresql://HOST/DATABASE'
complete -c acp-proxy -n '_shtab_acp_proxy_using doctor' -l rebuild -d 'recompute all totals of the ledger from its rows; writers wait meanwhile'
complete -c acp-proxy -n '_shtab_acp_proxy_using; and test $_shtab_acp_proxy_npos -eq 0' -a demo -d 'A session against a bundled agent, without network or key.'
complete -c acp-proxy -n '_shtab_acp_proxy_using demo' -s h -l help -d 'show this help message and exit'
complete -c acp-proxy -n '_shtab_acp_proxy_using demo' -l config -rF -d 'in place of the user'"'"'s configuration file'
complete -c acp-proxy -n '_shtab_acp_proxy_using demo' -l ledger -rF -d 'the ledger: a file, or postgresql://HOST/DATABASE'
complete -c acp-proxy -n '_shtab_acp_proxy_using; and test $_shtab_acp_proxy_npos -eq 0' -a completion -d 'A script that lets a shell complete commands and options.'
complete -c acp-proxy -n '_shtab_acp_proxy_using completion' -s h -l help -d 'show this help message and exit'
complete -c acp-proxy -n '_shtab_acp_proxy_using completion' -l config -rF -d 'in place of the user'"'"'s configuration file'
complete -c acp-proxy -n '_shtab_acp_proxy_using completion' -l ledger -rF -d 'the ledger: a file, or postgresql://HOST/DATABASE'
complete -c acp-proxy -n '_shtab_acp_proxy_using completion; and test $_shtab_acp_proxy_npos -eq 0' -ka "bash zsh fish" -d shell

# After -- stands the agent's command: it is completed as it is without acp-proxy before it.
function _shtab_acp_proxy_using
  contains -- -- (commandline -opc)
  and return 1
  _shtab_acp_proxy_scan
  test "$_shtab_acp_proxy_cmdpath" = "$argv"
end

function _acp_proxy_agent
  set -l typed (commandline -opc)
  set -l before $typed[(math (contains -i -- -- $typed) + 1)..]
  complete -C (string join ' ' -- (string escape -- $before) (commandline -ct))
end

complete -c acp-proxy -n 'contains -- -- (commandline -opc)' -xa '(_acp_proxy_agent)'
