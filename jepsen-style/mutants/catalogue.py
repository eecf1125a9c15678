"""The mutants: one change each to the text of a checker, which makes it wrong in one respect.

`old` stands exactly once in the module, so a mutant that no longer fits the code is noticed.
"""

from __future__ import annotations

from dataclasses import dataclass

CHECKERS = "logboat.jepsen_style.checkers"


@dataclass(frozen=True, slots=True)
class Mutant:
    """`module` below `checkers`; `bench` names the histories of `run` that it is judged on."""

    name: str
    bench: str
    module: str
    old: str
    new: str


def mutants(bench: str, module: str, *changes: tuple[str, str, str]) -> tuple[Mutant, ...]:
    return tuple(Mutant(f"{bench}: {name}", bench, module, old, new) for name, old, new in changes)


SEARCH = mutants(
    "linearizability",
    "linearizability.search",
    (
        "crashed calls must be placed",
        "self._remaining = sum(completed != NEVER for",
        "self._remaining = sum(True for",
    ),
    (
        "a look is placed even where it is illegal",
        "after = NO_STEP if isinstance(reached, Illegal) else",
        "after = state if isinstance(reached, Illegal) else",
    ),
    (
        "the memory forgets the state",
        "entered = seen[after]",
        "entered = seen[0]",
    ),
    ("undoing forgets to count", "remaining += 1", "remaining += 0"),
    (
        "every choice is final",
        "if not looks[kind_of[number]]:\n                    break",
        "if False:\n                    break",
    ),
    (
        "equal crashed calls exclude each other",
        "latest[kind] = 1 << number",
        "latest[kind] = 1 << (number + 1)",
    ),
)
MODELS = mutants(
    "linearizability",
    "linearizability.models",
    ("cas ignores what it expects", "return new if state == expected else ILLEGAL", "return new"),
    (
        "a failed cas may have seen the value",
        "return ILLEGAL if state == expected else state",
        "return state",
    ),
    (
        "a mutex is taken twice",
        "return wanted if state is not wanted else ILLEGAL",
        "return wanted",
    ),
    ("append puts in front", 'return f"{text}{call.result}"', 'return f"{call.result}{text}"'),
    (
        "a stack gives the oldest",
        "(items[-1], items[:-1]) if self.last_in_first_out",
        "(items[0], items[1:]) if self.last_in_first_out",
    ),
    ("empty is always right", "return ILLEGAL if items else state", "return state"),
    (
        "contains is always right",
        "return state if call.result is present else ILLEGAL",
        "return state",
    ),
    (
        "the end of a log may be read short",
        "return state if call.result == len(log) else ILLEGAL",
        "return state if call.result <= len(log) else ILLEGAL",
    ),
    (
        "an append may answer any offset",
        "if call.result not in (len(log), UNKNOWN_RESULT):",
        "if False:",
    ),
    (
        "keys are not apart",
        "def partition(self, call: Call) -> Hashable:\n        return call.argument",
        "def partition(self, call: Call) -> Hashable:\n        return None",
    ),
)
LOG = mutants(
    "log",
    "polynomial.log",
    (
        "reads of the end do not push",
        "for sort in (log.ends, log.empties):",
        "for sort in (log.empties,):",
    ),
    ("empty reads do not push", "for sort in (log.ends, log.empties):", "for sort in (log.ends,):"),
    (
        "appends are not compared with their end",
        "if late is not None:\n        return stale_append",
        "if False:\n        return stale_append",
    ),
    (
        "reads before their append pass",
        "or late_read(\n        log.reads, offsets, points\n    )",
        "or None",
    ),
    ("an end may be late", "if point >= completed[asked]:", "if False:"),
    ("failed appends may be read", "if value in failed:", "if False:"),
    ("holes fill themselves", "if len(spare) < len(holes):", "if False:"),
)
REGISTER = mutants(
    "register",
    "polynomial.register",
    ("values may be held together", "if starts[position] < ends[position - 1]:", "if False:"),
    (
        "a value within another passes",
        "if position >= 0 and first[value] < ends[position]:",
        "if False:",
    ),
    ("reads may come before the write", "if first[value] < invoked[write]:", "if False:"),
    (
        "a zone ends with its first read",
        "if begin > last[value]:",
        "if begin > last[value] and last[value] < 0:",
    ),
    (
        "backward zones may not touch",
        "first[value] < ends[position]:",
        "first[value] < ends[position] + 4:",
    ),
)
SETS = mutants(
    "sets",
    "polynomial.sets",
    ("what was seen does not bind the addition", "or into >= seen_first", ""),
    (
        "what was seen does not bind the removal",
        "out = NEVER if removed is None else max(removed[0], seen_last)",
        "out = NEVER if removed is None else removed[0]",
    ),
    (
        "who missed it does not count",
        "*(begin for begin, end, _ in element.missed if end <= out)",
        "*()",
    ),
    ("reads need not contain one another", "if not held <= members:", "if False:"),
    ("reads may be stale", "if point >= end:", "if False:"),
    (
        "additions may be forgotten",
        "for begin, end, number in waiting.values() if end != NEVER",
        "for begin, end, number in ()",
    ),
)
QUEUE = mutants(
    "queue",
    "polynomial.queue",
    (
        "values may be taken twice",
        "if life.dequeued is not None:\n                both",
        "if False:\n                both",
    ),
    (
        "values may overtake",
        "problem = out_of_order(settled) or seen_empty",
        "problem = seen_empty",
    ),
    ("empty is always right", "or seen_empty(settled, empties)", ""),
    ("values do not take turns", "if ends and start < ends[-1]:", "if False:"),
    ("a value may be taken before it came", "if end < life.enqueued[0]:", "if False:"),
)
GRAPH = mutants(
    "list-append",
    "transactions.cycles",
    (
        "G-single: forgiven",
        "    if single is not None:\n        yield G_SINGLE",
        "    if False:\n        yield G_SINGLE",
    ),
    ("G2-item: forgiven", "elif single is None and not apart:", "elif False:"),
    (
        "G0: forgiven",
        'CycleClass("G0", frozenset({Edge.WW}), Edge.WW, "PL-1-cycle-exists"),',
        "",
    ),
    ("G1c: forgiven", 'CycleClass("G1c", FLOW, Edge.WR, "PL-2-cycle-exists"),', ""),
    ("G-nonadjacent: forgiven", "if apart and single is None:", "if False:"),
    ("the order of a process is none", '("-process", frozenset({Edge.PROCESS})),', ""),
    (
        "the order of real time is none",
        '("-realtime", frozenset({Edge.PROCESS, Edge.REALTIME})),',
        "",
    ),
)
LIST_APPEND = mutants(
    "list-append",
    "transactions.list_append",
    (
        "garbage-read: passes",
        'found.append(\n                    Anomaly("garbage-read"',
        'str(\n                    Anomaly("garbage-read"',
    ),
    ("no rw edges", "graph.add(index, writer[key, order[len(value)]], Edge.RW)", "pass"),
    ("no wr edges", "graph.add(writer[key, value[-1]], index, Edge.WR)", "pass"),
    ("G1a: aborted reads pass", "elif history.outcome[source] == Outcome.FAIL:", "elif False:"),
    ("G1b: half a transaction passes", "and not final[key, value[-1]]", "and False"),
    (
        "incompatible-order: passes",
        "        if order[: len(value)] != value:\n            found",
        "        if False:\n            found",
    ),
    (
        "internal: a transaction may forget its own",
        "if value[len(outside) :] != mine or (",
        "if False and (",
    ),
    ("duplicate-elements: pass", "if len(set(value)) != len(value):", "if False:"),
)
RW_REGISTER = mutants(
    "rw-register",
    "transactions.rw_register",
    ("nil comes at any time", "graph.add(reader, source, Edge.RW)", "pass"),
    ("no wr edges", "            graph.add(source, index, Edge.WR)\n", "            pass\n"),
    ("G1a: aborted reads pass", "if history.outcome[source] == Outcome.FAIL:", "if False:"),
    (
        "G1b: half a transaction passes",
        "elif source != index and not final[key, value]:",
        "elif False:",
    ),
    (
        "internal: a transaction may forget its own",
        "if known[step.key] != step.value:",
        "if False:",
    ),
    ("unwritten-read: passes", "elif value is not None:", "elif False:"),
    (
        "duplicate-writes: pass",
        "if version in writer and writer[version] != index:",
        "if False:",
    ),
    (
        "what is overwritten may be read",
        "for reader in readers.get(before, ()):",
        "for reader in ():",
    ),
)
BANK = mutants(
    "bank",
    "data.bank",
    ("wrong-total: any will do", "elif summed != total:", "elif False:"),
    ("wrong-total: only losses count", "elif summed != total:", "elif summed < total:"),
    ("negative-value: debts pass", "if negative and not negative_balances:", "if False:"),
    (
        "nil-balance: passes",
        'found.append(Anomaly("nil-balance", f"{missing!r} have none", (operation.index,)))',
        "pass",
    ),
    (
        "unexpected-key: accounts come and go",
        "elif accounts != frozenset(balances):",
        "elif False:",
    ),
)
COUNTER = mutants(
    "counter",
    "data.counter",
    (
        "too-weak: no read is as good as any",
        'reported=(Anomaly("too-weak", "no read tells the counter"),)',
        "",
    ),
    ("negative additions count as positive", "if begins == (amount > 0):", "if begins:"),
    ("out-of-bounds: no lower bound", "if not least <= value <= greatest:", "if value > greatest:"),
    ("out-of-bounds: no upper bound", "if not least <= value <= greatest:", "if value < least:"),
    (
        "bounds of the invocation only",
        "open_reads[read] = (min(least, low), max(greatest, high))",
        "open_reads[read] = (least, greatest)",
    ),
)
SET = mutants(
    "set",
    "data.sets",
    (
        "lost: passes",
        "            and element not in seen\n            and history",
        "            and False\n            and history",
    ),
    (
        "unexpected: strangers pass",
        "for element in sorted(seen - tried, key=repr):",
        "for element in ():",
    ),
    (
        "only acknowledged additions may show",
        "if outcome != Outcome.FAIL:\n            tried.add(element)\n        if (",
        "if outcome == Outcome.OK:\n            tried.add(element)\n        if (",
    ),
    (
        "recovered: nobody is told",
        "elif outcome == Outcome.INFO and element in seen:",
        "elif False:",
    ),
)
SET_FULL = mutants(
    "set-full",
    "data.sets",
    ("lost: passes", "elif absent and absent[-1] == later[-1][0]:", "elif False:"),
    ("duplicated: doubles pass", "if len(elements) != len(set(elements)):", "if False:"),
    (
        "unexpected: strangers pass",
        "if element not in tried:\n            found",
        "if False:\n            found",
    ),
    ("stale: a moment's absence is a loss", "absent[-1] == later[-1][0]", "absent"),
    ("never-read: nobody is told", "if not later:", "if not later and False:"),
)
LONG_FORK = mutants(
    "long-fork",
    "data.long_fork",
    ("long-fork: passes", "if ahead and behind:", "if False:"),
    ("long-fork: being ahead is a fork", "if ahead and behind:", "if ahead:"),
    ("distinct-values: pass", "if differ:", "if False:"),
    ("only the first reads count", "combinations(reads, 2)", "combinations(reads[:1], 2)"),
)
CONTENT = mutants(
    "kafka",
    "kafka.content",
    (
        "inconsistent-offsets",
        "for offset, values in log.conflicts.items():\n            named",
        "for offset, values in {}.items():\n            named",
    ),
    (
        "duplicate",
        "for value, offsets in log.repeated.items():",
        "for value, offsets in {}.items():",
    ),
    ("lost-write: never", "if bound is None:", "if True:"),
    (
        "lost-write: the furthest is taken for the bound's last",
        "place > bound or excused",
        "place >= bound - 1 or excused",
    ),
    ("unseen", "if log.reader(value) is not None or excused(", "if True or excused("),
    (
        "retention excuses too much",
        "if log.offsets[place] < log.log_start:",
        "if log.offsets[place] <= log.log_start:",
    ),
    ("compaction excuses nothing", "if log.key not in settings.compacted:", "if True:"),
    ("a tombstone stays for ever", "len(value) == TOMBSTONE", "False"),
    ("whatever has a key is a tombstone", "len(value) == TOMBSTONE", "len(value) >= 2"),
    ("G1a", "if reader is not None and value not in log.writer:", "if False:"),
    ("phantom", "if value not in log.writer and value not in log.failed:", "if False:"),
    ("precommitted-read", "if (key, offset) in sent:", "if False:"),
    ("G1b", "if writer in last_of and writer != reader and last_of[writer] != value:", "if False:"),
)
ORDER = mutants(
    "kafka",
    "kafka.order",
    (
        "int-poll-skip",
        "elif after > before + 1 and skipped(log, before, after, settings) is not None:\n"
        '                    yield poll_anomaly("int-poll-skip"',
        'elif False:\n                    yield poll_anomaly("int-poll-skip"',
    ),
    (
        "int-nonmonotonic-poll",
        'if after <= before:\n                    yield poll_anomaly("int-nonmonotonic-poll"',
        'if after < before:\n                    yield poll_anomaly("int-nonmonotonic-poll"',
    ),
    (
        "poll-skip",
        "elif skipped(log, before, after, settings) is not None:\n                yield",
        "elif False:\n                yield",
    ),
    (
        "nonmonotonic-poll",
        'if after <= before:\n                yield poll_anomaly("nonmonotonic-poll"',
        'if after < before:\n                yield poll_anomaly("nonmonotonic-poll"',
    ),
    ("an assignment always forgets", "if key not in kept:", "if True:"),
    ("an assignment never forgets", "if key not in kept:", "if False:"),
    ("nonmonotonic-send", "if before is not None and first <= before[0]:", "if False:"),
    (
        "int-nonmonotonic-send",
        'if after <= before:\n                    yield poll_anomaly("int-nonmonotonic-send"',
        'if False:\n                    yield poll_anomaly("int-nonmonotonic-send"',
    ),
    (
        "int-send-skip",
        'elif after > before + 1:\n                    yield poll_anomaly("int-send-skip"',
        'elif False:\n                    yield poll_anomaly("int-send-skip"',
    ),
    ("append-order-inversion", "if offset < highest:", "if False:"),
    (
        "append-order-inversion: the quick answer is always yes",
        "return not any(map(gt, begun,",
        "return True or any(map(gt, begun,",
    ),
)
CIRCLES = mutants(
    "kafka",
    "kafka.circles",
    ("G0", "    if settings.ww_deps:", "    if False:"),
    ("G1c", "sources.append(source)\n                    targets.append(reader)", "pass"),
    ("who read an offset read all that it held", "if misread:", "if False:"),
    ("G1c by real time", "graph.add_realtime(history.invoked, history.completed, certain)", "pass"),
)
RECENCY = mutants(
    "kafka",
    "kafka.recency",
    (
        "stale-end",
        '(history.completed[operation], offset + 1, "stale-end"',
        '(history.completed[operation], offset, "stale-end"',
    ),
    (
        "end-went-back",
        'known.append((history.completed[index], end, "end-went-back", index))',
        "pass",
    ),
    (
        "lost-commit",
        "for register, calls in registers.items():",
        "for register, calls in {}.items():",
    ),
    ("two-owners", "if first != member:", "if False:"),
    ("stale-commit", "        records.commit_generations,", "        (),"),
    (
        "skipped-by-group",
        "if history.process[poll] in own)",
        "if own)",
    ),
    ("skipped-by-group: the end counts", "if offset < end and", "if offset <= end and"),
    ("generation-went-back", "if generation < highest:", "if False:"),
)
TOPICS = mutants(
    "kafka",
    "linearizability.models",
    (
        "topics-not-linearizable: refusals are as good as any answer",
        "if call.result != UNKNOWN_RESULT and (call.result == REFUSED) != refuses:",
        "if False:",
    ),
    (
        "topics-not-linearizable: descriptions are not looked at",
        "            return state if call.result == state else ILLEGAL\n        there",
        "            return state\n        there",
    ),
    (
        "topics-not-linearizable: a deletion leaves the topic",
        'return target[1:] if call.function == "create-topic" else None',
        "return target[1:]",
    ),
)
OBSERVATIONS = mutants(
    "kafka",
    "kafka.observations",
    ("two-leaders", "if first != leader:", "if False:"),
    ("epoch-went-back", "if epoch < highest.get(key, -1):", "if False:"),
    (
        "isr-by-stale-epoch",
        "if epoch is not None and epoch < highest.get(key, -1):",
        "if epoch is not None and epoch + 1 < highest.get(key, -1):",
    ),
    ("high-watermark-went-back", "if mark < highest.get(replica, -1):", "if False:"),
    ("incarnations are one", 'seen.get("incarnation"))', "0)"),
    ("sequence-gap", "if first != wanted:", "if first < wanted:"),
    ("sequence-duplicate", "if first != wanted:", "if first > wanted:"),
    ("sequence-gap: a whole log begins anywhere", 'seen.get("log_start") == 0', "False"),
    ("producer-epoch-went-back", "if epoch < epochs.get(producer, epoch):", "if False:"),
    ("replica-divergence", "elif part != reference[1]:", "elif False:"),
    (
        "replicas are compared above the watermark",
        'end = min(replica["high_watermark"]',
        'end = max(replica["high_watermark"]',
    ),
    ("two-records-in-epoch", "if first != digest:", "if False:"),
    (
        "records of two epochs are one",
        'names.setdefault((seen["key"], epoch, base)',
        'names.setdefault((seen["key"], 0, base)',
    ),
    ("lost-at-rest", "if offset >= end and", "if offset > end and"),
    ("truncated-acked-record", 'if offset >= seen["to"]', 'if offset > seen["to"]'),
)
LEDGER = mutants(
    "kafka",
    "kafka.ledger",
    (
        "a kill ends a holder",
        "return self.promises.of_key(key).mode in TAKES_A_SUFFIX.get(kind, frozenset())",
        "return True",
    ),
    (
        "a power cut takes what was synced",
        "frozenset({Mode.PAGE_CACHE}) for",
        "BOTH_MODES for",
    ),
    ("who enters again holds nothing", "holders |= entered", "pass"),
    (
        "who is elected holds all",
        "failed = failed_at(changes[at], holders, place)",
        "failed = failed_at(changes[at], holders | entered, place)",
    ),
    ("how many disks were hurt is no matter", "if len(hurt) >= least:", "if True:"),
    ("as many hurt disks as holders are few", "if len(hurt) >= least:", "if len(hurt) > least:"),
    ("a failed sync ends no membership", "or kind in DISQUALIFIES", ""),
    (
        "disks are counted under the page cache, too",
        "or promise.mode is not Mode.SYNCED:",
        "or False:",
    ),
    (
        "a disk that is hurt twice is two",
        "for _, kind, node in self._strikes(key)",
        "for node, kind, _ in self._strikes(key)",
    ),
    (
        "changes that nobody saw did not happen",
        "if unseen := passed_over(changes, acked_at):",
        "if unseen := None:",
    ),
    (
        "each change is one that nobody saw",
        "if after.epoch > before.epoch + 1:",
        "if after.epoch > before.epoch:",
    ),
    ("faults end nobody", "left = holders - {node}", "left = holders"),
    (
        "a change is in force when proposed",
        "        allowed = 0  # the newest",
        "        allowed = len(changes) - 1  # the newest",
    ),
    ("one doubtful placement is enough", "if len(places) == len(failures):", "if True:"),
    (
        "no leader is no matter",
        "if key in self.leaderless_at_end and key not in self.files_read:",
        "if False:",
    ),
)
PROMISES = mutants(
    "kafka",
    "kafka.promises",
    (
        "one promise for all topics",
        "return self.by_topic.get(name, self._otherwise)",
        "return next(iter(self.by_topic.values()), self._otherwise)",
    ),
    (
        "what a topic promised is forgotten",
        "return self.by_topic.get(name, self._otherwise)",
        "return self._otherwise",
    ),
    (
        "what was said of all topics is forgotten",
        "otherwise = said.pop(None, None)",
        "otherwise = said.pop(None, None) and None",
    ),
    (
        "a topic has as many holders as it asks for",
        "return min(self.replication_factor, self.min_insync_replicas)",
        "return self.min_insync_replicas",
    ),
    (
        "all replicas acknowledge",
        "return min(self.replication_factor, self.min_insync_replicas)",
        "return self.replication_factor",
    ),
)
RULINGS = mutants(
    "kafka",
    "kafka.rulings",
    ("a replaced record excuses nothing", '"inconsistent-offsets", "skipped', '"skipped'),
    ("a loss explains no order", "return None if worst.guarantee is", "return None if worst or"),
    (
        "what came after explains order",
        "rulings = [self._rule(anomaly, place).before(shown) for",
        "rulings = [self._rule(anomaly, place) for",
    ),
    (
        "what came after explains a replacement",
        "return ruling.before(self._ended(anomaly.operations[:2][-1]))",
        "pass",
    ),
    ("one lost record explains a whole skip", "worst = max(rulings", "worst = min(rulings"),
    ("what a group forgot has no excuse", "if home is None:", "if True:"),
    (
        "the oldest commit explains what was forgotten",
        "return max((end for end in ends if",
        "return min((end for end in ends if",
    ),
    ("a loss invents commits", "if not told <= {None, *", "if False and {None, *"),
)
RECORDS = mutants(
    "kafka",
    "kafka.records",
    (
        "who asks for a deletion is not heard",
        'if event.get("f") in DELETIONS:',
        "if False:",
    ),
    (
        "a deletion takes one record more",
        'max(log.log_start, event["value"]["before"])',
        'max(log.log_start, event["value"]["before"] + 1)',
    ),
    (
        "what retention lets go is not heard",
        'frozenset({"delete-records", "retention"})',
        'frozenset({"delete-records"})',
    ),
)
LEVELS = mutants(
    "kafka",
    "kafka.check",
    ("subscribers may not be moved", "or (subscribed and anomaly.kind in UNLESS_SUBSCRIBED)", ""),
    (
        "recency is claimed",
        'CLAIMED = frozenset(LEVELS) - {"L3 recency"}',
        "CLAIMED = frozenset(LEVELS)",
    ),
    (
        "an answer of the leader alone is a promise",
        "Records(history, acks_all=chosen.acks_all)",
        "Records(history)",
    ),
    (
        "what a topic says of its compaction is not heard",
        "if promises.of_key(key).compacted]",
        "if False]",
    ),
    (
        "what is explained fails",
        "excused = {id(anomaly) for anomaly, ruling in rulings if",
        "excused = {id(anomaly) for anomaly, ruling in () if",
    ),
)

CATALOGUE: tuple[Mutant, ...] = (
    *SEARCH,
    *MODELS,
    *LOG,
    *REGISTER,
    *SETS,
    *QUEUE,
    *GRAPH,
    *LIST_APPEND,
    *RW_REGISTER,
    *BANK,
    *COUNTER,
    *SET,
    *SET_FULL,
    *LONG_FORK,
    *CONTENT,
    *ORDER,
    *CIRCLES,
    *RECENCY,
    *TOPICS,
    *OBSERVATIONS,
    *LEDGER,
    *PROMISES,
    *RULINGS,
    *RECORDS,
    *LEVELS,
)
