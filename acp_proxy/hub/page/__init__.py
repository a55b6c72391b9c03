"""What people see of a hub in a browser: the page of `acp-proxy serve`, narrowed to who has signed in."""
