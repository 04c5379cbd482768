"""The loop that sends, the strategies that decide, and the scopes that operations share."""
