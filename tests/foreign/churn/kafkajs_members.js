// Members that come and go, of kafkajs, in one process: what `python_members.py` is for Python's.
const { Kafka, logLevel } = require('kafkajs')
const RoundRobin = require('kafkajs').PartitionAssigners.roundRobin
const ConsumerGroup = require('kafkajs/src/consumer/consumerGroup')

const [, assignor, bootstrap, topic] = process.argv.slice(2)
const POLL_MS = 500 // Each partition's records are a request to commit: let some gather.
const members = new Map()

// kafkajs tells its application of a new assignment, but neither of the generation nor of what it
// gives up: both happen in this one method, wherever it is called from.
const joinAndSync = ConsumerGroup.prototype.joinAndSync
ConsumerGroup.prototype.joinAndSync = async function () {
  const member = this.assigners[0].member
  member.gaveUp(this.memberId === null)
  const result = await joinAndSync.call(this)
  const mine = this.assigned().find(each => each.topic === topic)
  member.took(mine ? mine.partitions : [], this)
  return result
}

class Member {
  constructor(name) {
    this.name = name
    this.owned = new Set()
    this.leaves = false
    const brokers = bootstrap.split(',')
    // It looks for a new coordinator only when it has given up with the old one.
    const retry = { initialRetryTime: 100, maxRetryTime: 500, retries: 5 }
    const kafka = new Kafka({ clientId: name, brokers, logLevel: logLevel.NOTHING, retry })
    const assigner = tools => Object.assign(RoundRobin(tools), { name: assignor, member: this })
    this.consumer = kafka.consumer({
      groupId: topic,
      partitionAssigners: [assigner],
      sessionTimeout: 6000,
      rebalanceTimeout: 30000,
      heartbeatInterval: 500,
      maxWaitTimeInMs: POLL_MS,
      minBytes: 1 << 20,
      retry,
    })
    this.consumer.on(this.consumer.events.CRASH, ({ payload }) => {
      if (!payload.restart) this.say('failed', { member_id: String(payload.error) })
    })
    this.started = this.start()
  }

  async start() {
    await this.consumer.connect()
    await this.consumer.subscribe({ topics: [topic], fromBeginning: true })
    await this.consumer.run({ autoCommit: false, eachBatch: each => this.work(each) })
  }

  async work({ batch, commitOffsetsIfNecessary, heartbeat }) {
    const { partition, messages } = batch
    // Fetched before, and its worker has not heard that it is another's now.
    if (!this.owned.has(partition)) return
    this.say('processed', { positions: messages.map(({ offset }) => [partition, Number(offset)]) })
    const offset = Number(messages[messages.length - 1].offset) + 1
    const partitions = [{ partition, offset: String(offset) }]
    await commitOffsetsIfNecessary({ topics: [{ topic, partitions }] })
    this.say('committed', { positions: [[partition, offset]] })
    await heartbeat()
  }

  took(partitions, { generationId, memberId }) {
    if (this.leaves) return
    this.owned = new Set(partitions)
    this.say('taken', { partitions, generation: generationId, member_id: memberId })
  }

  gaveUp(wasThrownOut) {
    const partitions = [...this.owned]
    this.owned = new Set()
    this.say(wasThrownOut ? 'lost' : 'given up', { partitions })
  }

  async leave() {
    try {
      await this.started
      this.leaves = true
      this.owned = new Set()
      await this.consumer.disconnect()
      this.say('dead')
    } catch (error) {
      this.say('failed', { member_id: String(error) })
    }
  }

  say(what, more) {
    const seconds = Number(process.hrtime.bigint()) / 1e9
    process.stdout.write(JSON.stringify({ seconds, name: this.name, what, ...more }) + '\n')
  }
}

const lines = require('readline').createInterface({ input: process.stdin })
lines.on('line', line => {
  const [what, name] = line.split(' ')
  if (what === 'add') members.set(name, new Member(name))
  else members.get(name).leave().then(() => members.delete(name))
})
lines.on('close', () => Promise.all([...members.values()].map(each => each.leave())).then(() => process.exit(0)))
