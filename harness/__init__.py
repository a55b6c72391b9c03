"""What tests and measurements both stand on: servers, file systems, recordings, and trials in which parts fail.

Real parts, and no test.
"""
