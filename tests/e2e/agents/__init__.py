"""Many processes on one graph: each works on branches of its own and merges them into main.

In: how many of what. Out: how often and how fast they merged. Guarantee: what main shows after
each merge is what the two sides of it say, and every conflict is a true one. `agent` is what a
process does, `crowd` starts the processes, `judge` goes through the history afterwards.
"""
