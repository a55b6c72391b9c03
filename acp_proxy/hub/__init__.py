"""`acp-proxy hub`: one service for a team, in front of a ledger. It needs the extra `hub`.

Nothing else imports it: a relay asks a hub by `ledger/hub`, with the standard library alone.
"""
