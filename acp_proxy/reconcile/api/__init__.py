"""A bill out of a provider's own API, page by page, as the files that `bills` reads.

`client` is the only module that uses the network. A key is never written anywhere, nor said in an error.
"""
