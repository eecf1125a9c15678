"""Who checks the checkers: histories made here, and checkers broken on purpose.

`objects`, `transactions` and `kafka_stories` make histories, good and bad, from a source of
chance; `catalogue` lists changes that make a checker wrong; `run` applies each and asks whether any
history tells the broken checker from the real one.
"""
