"""Crashes, kills and races: every writer, at every durable step, beside other processes."""
