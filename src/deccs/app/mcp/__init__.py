"""``deccs mcp``: the commands as tools of the Model Context Protocol.

``server`` knows the protocol and nothing of clustering; it loads in a second. Each call of a tool runs in a
process of its own (``worker``), which ``workers`` keeps for the next call: the server answers meanwhile, a fit that is
canceled is killed, and what crashes takes nothing else down.
"""
