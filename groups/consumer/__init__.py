"""The consumer protocol (KIP-848): the coordinator assigns, members reconcile one by one.

A group's epoch grows whenever its members or their topics change; each epoch gets a *target*
assignment. A member moves towards it heartbeat by heartbeat: it first gives up what it shall not
keep, then takes what others have given up. No partition has two owners at any moment.
"""
