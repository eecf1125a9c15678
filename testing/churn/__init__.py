"""`make churn`: nodes are killed, paused and stopped without end under three producers.

What the demo shows once, many times over: the same client, the same text, the same comparison. The
seed decides what is done to which node; what the machine makes of it differs from run to run.
"""
