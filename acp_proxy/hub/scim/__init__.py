"""SCIM 2.0 (RFC 7643, 7644): an identity provider tells who comes, who leaves, and who is in which group.

By scim2-server, which speaks the protocol; `storage` keeps what it is told, and what follows for people, in one
transaction. It needs the extra `scim`, and is imported at the first request.
"""
